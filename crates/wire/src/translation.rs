//! Translation of packets between IPv4 and IPv6 (RFC 7915), for two hosts with an address of each family.
//!
//! Needs whole packets of TCP, UDP, or ICMP echo and errors. The checksums of TCP, UDP and echo are updated
//! for the other pseudo-header (RFC 1624): one that was wrong stays wrong. IPv4's options are
//! dropped (RFC 7915, section 4.1). A fragment stays a fragment; the first one carries the checksum.
//!
//! Left out, with an error of its own each: other protocols, fragments of ICMP (RFC 7915, section 1.2),
//! a first fragment of UDP without a checksum (section 4.5), IPv6's extension headers other than the fragment header, errors
//! about a fragment, and ICMP messages that the other family lacks, parameter problems among them.

mod header;
mod icmp;

use crate::checksum::{Sum, address, pseudo_header, updated};
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use header::{Extent, Fields};

/// A host's address in each family.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DualAddress {
    /// In packets of IPv4.
    pub v4: Ipv4Addr,
    /// In packets of IPv6.
    pub v6: Ipv6Addr,
}

/// Why a packet has no form in the other family.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TranslationError {
    /// The packet ends before its headers do, or is of another family.
    #[error("the packet is cut short, or of another family")]
    Malformed,
    /// The packet is not between the two hosts.
    #[error("the packet is not between the two hosts")]
    Address,
    /// A protocol whose checksum is not known here, or an extension header.
    #[error("protocol {0} is not translated")]
    Protocol(u8),
    /// A fragment of ICMP, or an error about a fragment.
    #[error("fragments of ICMP are not translated")]
    Fragment,
    /// UDP of IPv6 needs a checksum, which a fragment cannot be given.
    #[error("a fragment without a checksum is not translated")]
    NoChecksum,
    /// An ICMP message that the other family lacks, or whose checksum is wrong.
    #[error("ICMP type {kind} code {code} is not translated")]
    Message {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// The result would be longer than its length field says.
    #[error("the packet would be too long")]
    TooLong,
}

/// The family that a packet is translated to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Target {
    V4,
    V6,
}

impl Target {
    const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    const fn icmp(self) -> Protocol {
        match self {
            Self::V4 => Protocol::ICMP,
            Self::V6 => Protocol::ICMPV6,
        }
    }
}

impl DualAddress {
    const fn of(&self, family: Target) -> IpAddr {
        match family {
            Target::V4 => IpAddr::V4(self.v4),
            Target::V6 => IpAddr::V6(self.v6),
        }
    }
}

/// The IPv6 form of an IPv4 packet from the first host to the second one.
///
/// # Errors
/// What the module's page leaves out.
pub fn to_v6(packet: &[u8], hosts: [DualAddress; 2]) -> Result<Vec<u8>, TranslationError> {
    translate(packet, hosts, Target::V6, Extent::Whole)
}

/// The IPv4 form of an IPv6 packet from the first host to the second one.
///
/// # Errors
/// What the module's page leaves out.
pub fn to_v4(packet: &[u8], hosts: [DualAddress; 2]) -> Result<Vec<u8>, TranslationError> {
    translate(packet, hosts, Target::V4, Extent::Whole)
}

fn translate(
    packet: &[u8],
    hosts: [DualAddress; 2],
    target: Target,
    extent: Extent,
) -> Result<Vec<u8>, TranslationError> {
    let source = target.other();
    let fields = match source {
        Target::V4 => Fields::parse_v4(packet, extent),
        Target::V6 => Fields::parse_v6(packet, extent),
    };
    let fields = fields.ok_or(TranslationError::Malformed)?;
    if fields.addresses != hosts.map(|host| host.of(source)) {
        return Err(TranslationError::Address);
    }
    let is_whole = fields.fragment.is_none();
    if !is_whole && (extent == Extent::Quoted || fields.protocol == source.icmp()) {
        return Err(TranslationError::Fragment);
    }
    let mut out = Vec::with_capacity(packet.len() + header::MOST_ADDED);
    let (protocol, length) = match fields.protocol {
        Protocol::TCP | Protocol::UDP => (fields.protocol, fields.declared),
        protocol if protocol == source.icmp() => {
            let message = icmp::translate(&fields, hosts, target, extent)?;
            let declared = match extent {
                Extent::Whole => message.len(),
                Extent::Quoted => fields.declared,
            };
            fields.write(target, hosts, (target.icmp(), declared), &mut out)?;
            out.extend_from_slice(&message);
            return Ok(out);
        }
        Protocol(other) => return Err(TranslationError::Protocol(other)),
    };
    fields.write(target, hosts, (protocol, length), &mut out)?;
    let at = out.len();
    out.extend_from_slice(fields.payload);
    let transport = out.get_mut(at..).unwrap_or_default();
    if fields.is_first() {
        rebase(transport, &fields, hosts, (target, extent))?;
    }
    Ok(out)
}

/// Makes a TCP or UDP checksum fit the other family's pseudo-header.
fn rebase(
    transport: &mut [u8],
    fields: &Fields<'_>,
    hosts: [DualAddress; 2],
    (target, extent): (Target, Extent),
) -> Result<(), TranslationError> {
    let is_udp = fields.protocol == Protocol::UDP;
    let at = if is_udp {
        crate::udp::CHECKSUM_AT
    } else {
        crate::tcp::CHECKSUM_AT
    };
    let Some(&[high, low]) = transport.get(at..at + 2) else {
        return match extent {
            Extent::Whole => Err(TranslationError::Malformed),
            Extent::Quoted => Ok(()),
        };
    };
    let sum = |family: Target| {
        let of_family = hosts.map(|host| host.of(family));
        of_family.into_iter().fold(Sum::default(), address)
    };
    let field = match [high, low] {
        [0, 0] if is_udp => match (target, extent) {
            // RFC 768: the sender has made none.
            (Target::V4, _) | (Target::V6, Extent::Quoted) => return Ok(()),
            (Target::V6, Extent::Whole) if fields.fragment.is_some() => {
                return Err(TranslationError::NoChecksum);
            }
            (Target::V6, Extent::Whole) => {
                let [from, to] = hosts.map(|host| host.of(target));
                let sum = pseudo_header(from, to, fields.protocol, transport.len());
                sum.bytes(transport).checksum()
            }
        },
        field => updated(field, sum(target.other()), sum(target)),
    };
    let field = match field {
        // RFC 768: zero would say that there is none.
        [0, 0] if is_udp => [0xff, 0xff],
        field => field,
    };
    if let Some(place) = transport.get_mut(at..at + 2) {
        place.copy_from_slice(&field);
    }
    Ok(())
}
