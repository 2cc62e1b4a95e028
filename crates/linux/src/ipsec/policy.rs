//! One policy of IPsec, as the kernel tells it (`struct xfrm_userpolicy_info` and attributes).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::Prefix;

/// Offsets in `struct xfrm_userpolicy_info`, which begins with `struct xfrm_selector`; and its length.
const DESTINATION: usize = 0;
const SOURCE: usize = 16;
const FAMILY: usize = 40;
const DESTINATION_LENGTH: usize = 42;
const SOURCE_LENGTH: usize = 43;
const PROTOCOL: usize = 44;
const DIRECTION: usize = 160;
const ACTION: usize = 161;
const LENGTH: usize = 168;
/// `XFRM_POLICY_OUT`, and `XFRM_POLICY_ALLOW`.
const OUT: u8 = 1;
const ALLOW: u8 = 0;
/// `XFRMA_TMPL`, `XFRMA_MARK` and `XFRMA_IF_ID`.
const TEMPLATES: u16 = 5;
const MARK: u16 = 21;
const INTERFACE: u16 = 31;
/// Length of `struct nlattr`.
const ATTRIBUTE: usize = 4;

/// A policy, as far as it says which packets it is for, and whether it lets them leave as they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Policy {
    is_outbound: bool,
    /// Lets packets leave as they are.
    is_exemption: bool,
    source: Prefix,
    destination: Prefix,
    /// Zero: all.
    protocol: u8,
    pub(super) mark: Mark,
    /// The identifier of interfaces whose packets it is for; zero: it is for those that go past them.
    interface: u32,
}

/// The mark of packets that a policy is for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Mark {
    pub(super) value: u32,
    mask: u32,
}

impl Mark {
    /// True if it stands for all packets, marked or not.
    pub(super) const fn is_none(&self) -> bool {
        self.mask == 0
    }

    pub(super) const fn has(self, mark: u32) -> bool {
        mark & self.mask == self.value
    }
}

/// The addresses of a packet, and its protocol as far as that is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Addresses {
    source: IpAddr,
    destination: IpAddr,
    protocol: Option<u8>,
}

impl Addresses {
    /// Those of a packet whose protocol is not known.
    pub(super) const fn between(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            protocol: None,
        }
    }

    /// Reads them from an IP header; `None` if there is none.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let v4 = |at| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
        let v6 = |at| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
        match packet.first()? >> 4 {
            4 => Some(Self {
                source: v4(12)?,
                destination: v4(16)?,
                protocol: packet.get(9).copied(),
            }),
            // Other headers may come before the protocol's.
            6 => Some(Self {
                source: v6(8)?,
                destination: v6(24)?,
                protocol: None,
            }),
            _ => None,
        }
    }
}

impl Policy {
    /// Reads a policy; `None` for something that is none.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let fixed = body.first_chunk::<LENGTH>()?;
        let family = u16::from_ne_bytes([fixed[FAMILY], fixed[FAMILY + 1]]);
        let mut policy = Self {
            is_outbound: fixed[DIRECTION] == OUT,
            is_exemption: fixed[ACTION] == ALLOW,
            source: prefix(family, fixed.get(SOURCE..)?, fixed[SOURCE_LENGTH])?,
            destination: prefix(family, fixed.get(DESTINATION..)?, fixed[DESTINATION_LENGTH])?,
            protocol: fixed[PROTOCOL],
            mark: Mark::default(),
            interface: 0,
        };
        let mut rest = body.get(LENGTH..)?;
        while let Some((kind, value)) = next_attribute(&mut rest) {
            match kind {
                TEMPLATES => policy.is_exemption &= value.is_empty(),
                MARK => {
                    policy.mark = Mark {
                        value: number(value)?,
                        mask: number(value.get(4..)?)?,
                    };
                }
                INTERFACE => policy.interface = number(value)?,
                _ => {}
            }
        }
        Some(policy)
    }

    /// True if it keeps packets that this host sends or forwards from leaving as they are.
    pub(super) const fn is_for_forwarded(&self) -> bool {
        self.is_outbound && !self.is_exemption && self.interface == 0
    }

    /// True if packets with these addresses may be its, whatever their ports and mark are.
    pub(super) fn covers(&self, packet: &Addresses) -> bool {
        let is_of_protocol = |protocol| self.protocol == 0 || self.protocol == protocol;
        self.source.contains(packet.source)
            && self.destination.contains(packet.destination)
            && packet.protocol.is_none_or(is_of_protocol)
    }
}

/// A prefix as a selector has it; of no family it is every address of either.
fn prefix(family: u16, bytes: &[u8], length: u8) -> Option<Prefix> {
    let address = match i32::from(family) {
        libc::AF_INET => IpAddr::from(*bytes.first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*bytes.first_chunk::<16>()?),
        _ => return None,
    };
    Some(Prefix { address, length })
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.first_chunk()?))
}

/// Kind and value of the first of several attributes, which is taken from them.
fn next_attribute<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let (length, kind) = (rest.get(..2)?, rest.get(2..ATTRIBUTE)?);
    let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
    let kind = u16::from_ne_bytes(kind.try_into().ok()?);
    let value = rest.get(ATTRIBUTE..length)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, value))
}
