//! Agent advertisements and solicitations (RFC 5944, section 2; RFC 1256).

use super::{Lifetime, MessageError, split};
use crate::build::emit_ip;
use crate::checksum::Sum;
use crate::ip::Protocol;
use crate::packet::Body;
use crate::{Header, IpHeader, Packet, Transport};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::ops::BitOr;

const ECHO_REQUEST: u8 = 8;
const ADVERTISEMENT: u8 = 9;
const SOLICITATION: u8 = 10;
/// Addresses of routers with a preference are two words long.
const ADDRESS_WORDS: u8 = 2;
const PADDING: u8 = 0;
const MOBILITY_AGENT: u8 = 16;
const PREFIX_LENGTHS: u8 = 19;
/// What the mobility agent's extension has besides its care-of addresses.
const AGENT_LEN: usize = 6;
/// As many as the extension's length can say.
const MOST_CARE_OF_ADDRESSES: usize = (255 - AGENT_LEN) / 4;
const MOST_ROUTERS: usize = 255;

/// An agent advertisement: the ICMP message, without its IP header (RFC 5944, section 2.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentAdvertisement {
    /// The agent routes nothing but the traffic of mobile nodes: ICMP code 16 instead of 0.
    pub is_for_mobiles_only: bool,
    /// How long the advertisement is true, in seconds; movement detection counts it.
    pub lifetime_s: u16,
    /// Routers on this link; at most 255.
    pub routers: Vec<RouterAddress>,
    /// Counted for each advertisement: from 0 after a start, from 65535 on to 256.
    pub sequence: u16,
    /// The longest registration that the agent accepts.
    pub registration_lifetime: Lifetime,
    /// What the agent offers.
    pub flags: AgentFlags,
    /// At most 62.
    pub care_of_addresses: Vec<Ipv4Addr>,
    /// The prefix length of each router's network, in the order of `routers`; empty if not told.
    pub prefix_lengths: Vec<u8>,
}

/// A router in an advertisement (RFC 1256).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RouterAddress {
    /// Its address on this link.
    pub address: Ipv4Addr,
    /// How much it wants to be the default router.
    pub preference: Preference,
}

/// A router's preference; the higher, the better (RFC 1256).
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Preference(pub i32);

/// The flags of a mobility agent (RFC 5944, section 2.1.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AgentFlags(pub u16);

impl AgentFlags {
    /// R: also a mobile node with a co-located address has to register through the agent.
    pub const REGISTRATION_REQUIRED: Self = Self(0x8000);
    /// B: the foreign agent takes no more mobile nodes.
    pub const BUSY: Self = Self(0x4000);
    /// H: a home agent on this link.
    pub const HOME_AGENT: Self = Self(0x2000);
    /// F: a foreign agent on this link.
    pub const FOREIGN_AGENT: Self = Self(0x1000);
    /// M: minimal encapsulation (RFC 2004).
    pub const MINIMAL_ENCAPSULATION: Self = Self(0x0800);
    /// G: generic routing encapsulation.
    pub const GRE: Self = Self(0x0400);
    /// T: reverse tunnels (RFC 3024).
    pub const REVERSE_TUNNEL: Self = Self(0x0100);
    /// U: tunnels in UDP (RFC 3519).
    pub const UDP_TUNNEL: Self = Self(0x0080);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    const fn has_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for AgentFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl AgentAdvertisement {
    /// Reads an ICMP message.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if it is no agent's advertisement, is damaged, or contradicts itself.
    pub fn parse(message: &[u8]) -> Result<Self, MessageError> {
        let (&[kind, code, _, _, count, words, l0, l1], rest) = split(message)?;
        if kind != ADVERTISEMENT {
            return Err(MessageError::Kind(kind));
        }
        if code != 0 && code != 16 {
            return Err(MessageError::Code(code));
        }
        if !Sum::default().bytes(message).is_intact() {
            return Err(MessageError::Checksum);
        }
        let (routers, rest) = routers(rest, count, words)?;
        let mut advertisement = Self {
            is_for_mobiles_only: code == 16,
            lifetime_s: u16::from_be_bytes([l0, l1]),
            routers,
            sequence: 0,
            registration_lifetime: Lifetime(0),
            flags: AgentFlags::default(),
            care_of_addresses: Vec::new(),
            prefix_lengths: Vec::new(),
        };
        let mut is_agent = false;
        let mut rest = rest;
        while let [kind, after_kind @ ..] = rest {
            if *kind == PADDING {
                rest = after_kind;
                continue;
            }
            let (&[kind, length], body) = split(rest)?;
            let (data, behind) =
                body.split_at_checked(usize::from(length))
                    .ok_or(MessageError::Truncated {
                        needed: usize::from(length),
                        available: body.len(),
                    })?;
            rest = behind;
            match kind {
                MOBILITY_AGENT => {
                    advertisement.read_agent(data)?;
                    is_agent = true;
                }
                // An extension of another length tells nothing of these routers.
                PREFIX_LENGTHS if data.len() == advertisement.routers.len() => {
                    advertisement.prefix_lengths = data.to_vec();
                }
                PREFIX_LENGTHS | 128.. => {}
                unknown => return Err(MessageError::UnknownExtension(unknown)),
            }
        }
        match is_agent {
            true => Ok(advertisement),
            false => Err(MessageError::NoAgent),
        }
    }

    /// The ICMP message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let routers = &self.routers[..self.routers.len().min(MOST_ROUTERS)];
        let care_of = self.care_of_addresses.iter().take(MOST_CARE_OF_ADDRESSES);
        let code = if self.is_for_mobiles_only { 16 } else { 0 };
        let mut out = alloc::vec![ADVERTISEMENT, code, 0, 0];
        // At most 255, and at most 6 + 4 * 62.
        out.extend_from_slice(&[routers.len() as u8, ADDRESS_WORDS]);
        out.extend_from_slice(&self.lifetime_s.to_be_bytes());
        for router in routers {
            out.extend_from_slice(&router.address.octets());
            out.extend_from_slice(&router.preference.0.to_be_bytes());
        }
        out.extend_from_slice(&[MOBILITY_AGENT, (AGENT_LEN + 4 * care_of.len()) as u8]);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.registration_lifetime.0.to_be_bytes());
        out.extend_from_slice(&self.flags.0.to_be_bytes());
        for address in care_of {
            out.extend_from_slice(&address.octets());
        }
        if !routers.is_empty() && self.prefix_lengths.len() == routers.len() {
            out.extend_from_slice(&[PREFIX_LENGTHS, routers.len() as u8]);
            out.extend_from_slice(&self.prefix_lengths);
        }
        if out.len() % 2 == 1 {
            out.push(PADDING);
        }
        let checksum = Sum::default().bytes(&out).checksum();
        out[2..4].copy_from_slice(&checksum);
        out
    }

    fn read_agent(&mut self, data: &[u8]) -> Result<(), MessageError> {
        let length = MessageError::Length {
            kind: MOBILITY_AGENT,
            // It was read from one byte.
            length: data.len() as u8,
        };
        let (&[s0, s1, r0, r1, f0, f1], addresses) = split(data).map_err(|_| length)?;
        let (addresses, []) = addresses.as_chunks::<4>() else {
            return Err(length);
        };
        self.sequence = u16::from_be_bytes([s0, s1]);
        self.registration_lifetime = Lifetime(u16::from_be_bytes([r0, r1]));
        self.flags = AgentFlags(u16::from_be_bytes([f0, f1]));
        self.care_of_addresses = addresses.iter().copied().map(Ipv4Addr::from).collect();
        let is_foreign = self.flags.has(AgentFlags::FOREIGN_AGENT);
        let is_agent = is_foreign || self.flags.has(AgentFlags::HOME_AGENT);
        let for_foreign = AgentFlags::BUSY | AgentFlags::REGISTRATION_REQUIRED;
        let is_odd = !is_foreign && self.flags.has_any(for_foreign);
        let has_no_address = is_foreign && self.care_of_addresses.is_empty();
        match !is_agent || is_odd || has_no_address {
            true => Err(MessageError::Flags),
            false => Ok(()),
        }
    }
}

fn routers(rest: &[u8], count: u8, words: u8) -> Result<(Vec<RouterAddress>, &[u8]), MessageError> {
    if count > 0 && words < ADDRESS_WORDS {
        return Err(MessageError::Length {
            kind: 0,
            length: words,
        });
    }
    let each = usize::from(words) * 4;
    let needed = usize::from(count) * each;
    let (entries, rest) = rest
        .split_at_checked(needed)
        .ok_or(MessageError::Truncated {
            needed,
            available: rest.len(),
        })?;
    let router = |entry: &[u8]| {
        let &[a, b, c, d, p0, p1, p2, p3] = entry.first_chunk::<8>()?;
        Some(RouterAddress {
            address: Ipv4Addr::new(a, b, c, d),
            preference: Preference(i32::from_be_bytes([p0, p1, p2, p3])),
        })
    };
    let routers = entries.chunks_exact(each.max(1)).filter_map(router);
    Ok((routers.collect(), rest))
}

/// The ICMP message of an agent solicitation (RFC 5944, section 2.2).
#[must_use]
pub fn solicitation() -> Vec<u8> {
    let mut out = alloc::vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    let checksum = Sum::default().bytes(&out).checksum();
    out[2..4].copy_from_slice(&checksum);
    out
}

/// Whether an ICMP message is an agent solicitation (RFC 1256).
#[must_use]
pub fn solicitation_is_valid(message: &[u8]) -> bool {
    matches!(message, [SOLICITATION, 0, _, _, _, _, _, _, ..])
        && Sum::default().bytes(message).is_intact()
}

impl Packet {
    /// An IPv4 packet with an ICMP message of agent discovery. Its TTL is 1 (RFC 5944, section 2.1).
    #[must_use]
    pub fn agent_discovery(source: Ipv4Addr, destination: Ipv4Addr, message: &[u8]) -> Self {
        let ip = IpHeader {
            hop_limit: 1,
            ..IpHeader::new(source.into(), destination.into())
        };
        icmp(ip, message)
    }

    /// The ICMP echo request by which a mobile node keeps a translator's mapping alive
    /// (RFC 3519, section 4.9).
    #[must_use]
    pub fn keep_alive(source: Ipv4Addr, destination: Ipv4Addr, sequence: u16) -> Self {
        let [s0, s1] = sequence.to_be_bytes();
        let mut message = [ECHO_REQUEST, 0, 0, 0, 0, 0, s0, s1];
        let checksum = Sum::default().bytes(&message).checksum();
        message[2..4].copy_from_slice(&checksum);
        icmp(IpHeader::new(source.into(), destination.into()), &message)
    }
}

fn icmp(ip: IpHeader, message: &[u8]) -> Packet {
    let captured = emit_ip(&ip, Protocol::ICMP, message.len(), None, |out| {
        out.extend_from_slice(message);
    });
    let transport = Transport::Other {
        protocol: Protocol::ICMP.0,
        fragment: false,
    };
    Packet {
        header: Header {
            ip,
            transport,
            total_len: u32::try_from(captured.bytes.len()).unwrap_or(u32::MAX),
            payload_len: u32::try_from(message.len()).unwrap_or(u32::MAX),
        },
        body: Body::Captured(captured),
    }
}
