//! IP in IP (RFC 2003), and errors that come out of a tunnel.

use super::PORT;
use crate::checksum::Sum;
use crate::edit::EditError;
use crate::icmp::Version;
use crate::packet::Body;
use crate::{IcmpError, Packet, ParseError, Transport};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};

/// The protocol number of IPv4 in IP.
const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const HEADER_LEN: usize = 20;
const DONT_FRAGMENT: u8 = 0x40;
/// Congestion, in TOS (RFC 3168, section 5).
const ECN: u8 = 0x03;
/// An IP header without options, and the eight bytes that every error quotes behind it.
const LEAST_QUOTE: usize = HEADER_LEN + 8;

/// What the outer header of an encapsulated packet says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OuterHeader {
    /// The encapsulator.
    pub source: Ipv4Addr,
    /// The decapsulator.
    pub destination: Ipv4Addr,
    /// TTL: enough to reach the decapsulator.
    pub ttl: u8,
    /// Tells fragments of outer packets apart.
    pub identification: u16,
}

/// Why a packet is not encapsulated or decapsulated.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EncapsulationError {
    /// It is no IPv4 packet.
    #[error("the packet is not IPv4")]
    Family,
    /// Its TTL has run out (RFC 2003, section 3.1).
    #[error("the inner TTL has run out")]
    Ttl,
    /// It would be longer than 65535 bytes.
    #[error("the packet would be too long")]
    TooLong,
    /// It is in a tunnel already, and comes from the encapsulator or is for the tunnel's end: a loop
    /// (RFC 2003, section 3.2).
    #[error("the packet would loop in the tunnel")]
    Loop,
    /// It is a fragment, or of another protocol.
    #[error("the packet carries no whole IPv4 packet")]
    NotEncapsulated,
    /// What it carries is no packet.
    #[error("what is inside is no packet: {0}")]
    Inner(#[from] ParseError),
}

/// Puts `inner` in a tunnel: its TTL goes down by one, DF and the upper six bits of TOS are copied outward
/// (RFC 2003, section 3.1).
///
/// The outer header says that it knows no ECN, so that routers in the tunnel drop where they would mark: a mark in
/// the outer header would be lost at the tunnel's end (compatibility mode, RFC 6040, section 4.3).
///
/// # Errors
///
/// [`EncapsulationError`] if the packet cannot go through a tunnel.
pub fn encapsulate(inner: Packet, outer: OuterHeader) -> Result<Packet, EncapsulationError> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) =
        (inner.header.ip.source, inner.header.ip.destination)
    else {
        return Err(EncapsulationError::Family);
    };
    let is_between_the_ends = source == outer.source || destination == outer.destination;
    if is_between_the_ends && may_be_tunnelled(&inner) {
        return Err(EncapsulationError::Loop);
    }
    let mut edit = inner.edit();
    match edit.decrement_hop_limit() {
        Ok(_) => {}
        Err(EditError::HopLimit) => return Err(EncapsulationError::Ttl),
        Err(_) => return Err(EncapsulationError::Family),
    }
    let inner = edit.finish().to_bytes();
    let total_len = u16::try_from(HEADER_LEN + inner.len());
    let total_len = total_len.map_err(|_| EncapsulationError::TooLong)?;
    let (&[_, tos, _, _, _, _, fragment, ..], _) = inner
        .split_first_chunk::<HEADER_LEN>()
        .ok_or(EncapsulationError::Family)?;
    let mut header = [0; HEADER_LEN];
    header[0] = 0x45;
    header[1] = tos & !ECN;
    header[2..4].copy_from_slice(&total_len.to_be_bytes());
    header[4..6].copy_from_slice(&outer.identification.to_be_bytes());
    header[6] = fragment & DONT_FRAGMENT;
    header[8] = outer.ttl;
    header[9] = IPV4_IN_IP;
    header[12..16].copy_from_slice(&outer.source.octets());
    header[16..20].copy_from_slice(&outer.destination.octets());
    let checksum = Sum::default().bytes(&header).checksum();
    header[10..12].copy_from_slice(&checksum);
    let mut out = Vec::with_capacity(HEADER_LEN + inner.len());
    out.extend_from_slice(&header);
    out.extend_from_slice(&inner);
    Ok(Packet::parse(Bytes::from(out))?)
}

/// Whether `packet` may have come out of a tunnel's entry. What programs at the tunnel's two ends say to
/// each other has not, and cannot loop.
const fn may_be_tunnelled(packet: &Packet) -> bool {
    match packet.header.transport {
        Transport::Other { protocol, fragment } => {
            protocol == IPV4_IN_IP || protocol == UDP && fragment
        }
        Transport::Udp(udp) => udp.source_port == PORT || udp.destination_port == PORT,
        _ => false,
    }
}

/// Takes the inner packet out of `outer`. Its TTL stays as it is.
///
/// A kernel that carries the tunnel at the other end leaves the inner checksum to a network card, and between
/// virtual interfaces there is none: the packet gets it here
/// ([`Packet::with_completed_checksum`]).
///
/// # Errors
///
/// [`EncapsulationError`] if there is none.
pub fn decapsulate(outer: &Packet) -> Result<Packet, EncapsulationError> {
    let carries_ip = matches!(
        outer.header.transport,
        Transport::Other {
            protocol: IPV4_IN_IP,
            fragment: false,
        }
    );
    let Body::Captured(captured) = &outer.body else {
        return Err(EncapsulationError::NotEncapsulated);
    };
    if !carries_ip || !outer.header.ip.source.is_ipv4() {
        return Err(EncapsulationError::NotEncapsulated);
    }
    let inner = captured.bytes.slice(captured.transport_at as usize..);
    let inner = Packet::parse(inner)?;
    match inner.header.ip.source.is_ipv4() {
        true => Ok(inner.with_completed_checksum()),
        false => Err(EncapsulationError::Family),
    }
}

/// The beginning of a packet in a tunnel, as an ICMP error quotes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunnelQuote {
    /// The encapsulator.
    pub source: Ipv4Addr,
    /// The decapsulator.
    pub destination: Ipv4Addr,
    /// Length of the quoted packet in bytes.
    pub total_len: u16,
    /// DF is set.
    pub must_not_be_cut: bool,
    /// The content of the outer packet.
    pub content: QuotedContent,
}

/// The content of a packet in a tunnel, as far as an error quotes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QuotedContent {
    /// IP in IP.
    Packet {
        /// The outer identification less [`identification_base`] of the inner packet.
        offset: u16,
        /// Source and destination of the inner packet, if they are quoted.
        ends: Option<(Ipv4Addr, Ipv4Addr)>,
    },
    /// A datagram, perhaps of a tunnel in UDP.
    Datagram {
        /// Source and destination port.
        ports: (u16, u16),
        /// Length and checksum.
        length_and_checksum: [u8; 4],
    },
}

impl TunnelQuote {
    /// Reads what an ICMP error quotes; `None` if that is no packet of a tunnel, or too little of one.
    #[must_use]
    pub fn of(error: &Packet) -> Option<Self> {
        if !matches!(error.header.transport, Transport::IcmpError(_)) {
            return None;
        }
        let quote = error.payload()?;
        let outer: &[u8; HEADER_LEN] = quote.first_chunk()?;
        let header_len = usize::from(outer[0] & 0x0f) * 4;
        let is_first = u16::from_be_bytes([outer[6], outer[7]]) & 0x1fff == 0;
        if outer[0] >> 4 != 4 || header_len < HEADER_LEN || !is_first {
            return None;
        }
        let content = quote.get(header_len..)?;
        let begin: &[u8; 8] = content.first_chunk()?;
        let content = match outer[9] {
            IPV4_IN_IP if begin[0] >> 4 == 4 => {
                let identification = u16::from_be_bytes([outer[4], outer[5]]);
                let inner: Option<&[u8; HEADER_LEN]> = content.first_chunk();
                QuotedContent::Packet {
                    offset: identification.wrapping_sub(identification_base(begin)),
                    ends: inner.map(|inner| (address(inner, 12), address(inner, 16))),
                }
            }
            UDP => {
                let [s0, s1, d0, d1, length_and_checksum @ ..] = *begin;
                QuotedContent::Datagram {
                    ports: (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])),
                    length_and_checksum,
                }
            }
            _ => return None,
        };
        Some(Self {
            source: address(outer, 12),
            destination: address(outer, 16),
            total_len: u16::from_be_bytes([outer[2], outer[3]]),
            must_not_be_cut: outer[6] & DONT_FRAGMENT != 0,
            content,
        })
    }
}

const fn address(header: &[u8; HEADER_LEN], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])
}

/// A number that differs between packets of one source, from the first eight bytes of an IPv4 header: the
/// identification, and in fragments their place, too.
#[must_use]
pub const fn identification_base(header: &[u8; 8]) -> u16 {
    let &[_, _, _, _, id0, id1, place0, place1] = header;
    let place = u16::from_be_bytes([place0, place1]) & 0x1fff;
    u16::from_be_bytes([id0, id1]).wrapping_add(place)
}

/// Turns an error about a tunnel's outer packet into one for the sender of the inner packet, if it
/// quotes enough of that (RFC 2003, section 4). `router` is the encapsulator.
///
/// A "too big" tells the tunnel's MTU, which is at least `least_mtu`, less the outer header. "Unreachable"
/// and "TTL exceeded" inside the tunnel become "host unreachable" (RFC 2003, sections 4.1 and 4.4).
#[must_use]
pub fn relay_error(error: &Packet, router: Ipv4Addr, least_mtu: u32) -> Option<Packet> {
    let Transport::IcmpError(about) = &error.header.transport else {
        return None;
    };
    let quoted = about.quoted.as_ref()?;
    if quoted.protocol != IPV4_IN_IP {
        return None;
    }
    let quote = error.payload()?;
    let outer_len = usize::from(quote.first()? & 0x0f) * 4;
    let inner = quote.get(outer_len..)?;
    let (&fixed, _) = inner.split_first_chunk::<LEAST_QUOTE>()?;
    if fixed[0] >> 4 != 4 {
        return None;
    }
    let sender = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
    if sender.is_unspecified() || sender.is_multicast() || sender.is_broadcast() {
        return None;
    }
    let (code, word) = match (about.kind, about.code) {
        (3, 4) => {
            let mtu = about.mtu?.max(least_mtu).checked_sub(HEADER_LEN as u32)?;
            (4, mtu.min(0xffff))
        }
        (3 | 11, _) => (1, 0),
        _ => return None,
    };
    let mut message = alloc::vec![3_u8, code, 0, 0];
    message.extend_from_slice(&word.to_be_bytes());
    message.extend_from_slice(inner);
    let ip = crate::IpHeader::new(router.into(), sender.into());
    let captured = crate::build::emit_ip(
        &ip,
        crate::ip::Protocol::ICMP,
        message.len(),
        Some(crate::icmp::CHECKSUM_AT),
        |out| out.extend_from_slice(&message),
    );
    let parsed = IcmpError::parse(Version::V4, &message).ok().flatten()?;
    Some(Packet {
        header: crate::Header {
            ip,
            transport: Transport::IcmpError(parsed),
            // A quotation is shorter than the error that it came in.
            total_len: captured.bytes.len() as u32,
            payload_len: (message.len() - crate::icmp::HEADER_LEN) as u32,
        },
        body: Body::Captured(captured),
    })
}
