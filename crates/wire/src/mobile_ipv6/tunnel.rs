//! IPv6 in IPv6 (RFC 2473), and errors that come out of a tunnel.

use crate::build::emit_ip;
use crate::edit::EditError;
use crate::icmp::{self, Version};
use crate::ip::Protocol;
use crate::packet::Body;
use crate::{IpHeader, Packet, ParseError, Transport};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv6Addr};

/// Bytes that the outer header adds.
pub const TUNNEL_OVERHEAD: u32 = HEADER_LEN as u32;

/// The protocol number of IPv6 in IP.
const IPV6_IN_IP: u8 = 41;
const HEADER_LEN: usize = 40;
/// Congestion, in the traffic class (RFC 3168, section 5).
const ECN: u8 = 0x03;
/// Every link carries so much (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// Why a packet does not go through a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TunnelError {
    /// It is no IPv6 packet.
    #[error("the packet is not IPv6")]
    Family,
    /// Its hop limit has run out (RFC 2473, section 3.1).
    #[error("the inner hop limit has run out")]
    HopLimit,
    /// It would be longer than 65575 bytes.
    #[error("the packet would be too long")]
    TooLong,
    /// It is in a tunnel from the same entry already.
    #[error("the packet would loop in the tunnel")]
    Loop,
    /// It is a fragment, or of another protocol.
    #[error("the packet carries no whole IPv6 packet")]
    NotEncapsulated,
    /// What it carries is no packet.
    #[error("what is inside is no packet: {0}")]
    Inner(#[from] ParseError),
}

/// Puts `inner` in a tunnel: its hop limit goes down by one, the upper six bits of its traffic class are copied
/// outward.
///
/// The outer header says that it knows no ECN, so that routers in the tunnel drop where they would mark: a mark in
/// the outer header would be lost at the tunnel's end (compatibility mode, RFC 6040, section 4.3).
///
/// # Errors
///
/// [`TunnelError`] if the packet cannot go through a tunnel.
pub fn encapsulate(
    inner: Packet,
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Result<Packet, TunnelError> {
    if !inner.header.ip.source.is_ipv6() {
        return Err(TunnelError::Family);
    }
    if is_tunnelled(&inner) && inner.header.ip.source == IpAddr::V6(source) {
        return Err(TunnelError::Loop);
    }
    let traffic_class = inner.header.ip.traffic_class & !ECN;
    let mut edit = inner.edit();
    match edit.decrement_hop_limit() {
        Ok(_) => {}
        Err(EditError::HopLimit) => return Err(TunnelError::HopLimit),
        Err(_) => return Err(TunnelError::Family),
    }
    let inner = edit.finish().to_bytes();
    if inner.len() > usize::from(u16::MAX) {
        return Err(TunnelError::TooLong);
    }
    let outer = IpHeader {
        traffic_class,
        ..IpHeader::new(source.into(), destination.into())
    };
    Ok(Packet::of_protocol(outer, IPV6_IN_IP, &inner))
}

const fn is_tunnelled(packet: &Packet) -> bool {
    matches!(
        packet.header.transport,
        Transport::Other {
            protocol: IPV6_IN_IP,
            fragment: false,
        }
    )
}

/// Takes the inner packet out of `outer`. Its hop limit stays as it is.
///
/// # Errors
///
/// [`TunnelError`] if there is none.
pub fn decapsulate(outer: &Packet) -> Result<Packet, TunnelError> {
    let Body::Captured(captured) = &outer.body else {
        return Err(TunnelError::NotEncapsulated);
    };
    if !is_tunnelled(outer) || !outer.header.ip.source.is_ipv6() {
        return Err(TunnelError::NotEncapsulated);
    }
    let inner = captured.bytes.slice(captured.transport_at as usize..);
    let inner = Packet::parse(inner)?;
    match inner.header.ip.source.is_ipv6() {
        true => Ok(inner),
        false => Err(TunnelError::Family),
    }
}

/// Turns an error about a tunnel's outer packet into one for the sender of the inner packet, if it
/// quotes enough of that (RFC 2473, section 8). `router` is the tunnel's entry.
///
/// A "too big" tells the tunnel's MTU less the outer header, but no less than every link carries.
/// All others become "address unreachable".
#[must_use]
pub fn relay_error(error: &Packet, router: Ipv6Addr) -> Option<Packet> {
    let Transport::IcmpError(about) = &error.header.transport else {
        return None;
    };
    let quoted = about.quoted.as_ref()?;
    if quoted.protocol != IPV6_IN_IP || !error.header.ip.source.is_ipv6() {
        return None;
    }
    let inner = error.payload()?.get(HEADER_LEN..)?;
    let fixed = inner.first_chunk::<HEADER_LEN>()?;
    if fixed[0] >> 4 != 6 {
        return None;
    }
    let sender = Ipv6Addr::from(*fixed[8..].first_chunk::<16>()?);
    if sender.is_unspecified() || sender.is_multicast() {
        return None;
    }
    let (kind, code, word) = match (about.kind, about.mtu) {
        (2, Some(mtu)) => (2_u8, 0, mtu.saturating_sub(TUNNEL_OVERHEAD).max(LEAST_MTU)),
        (1 | 3 | 4, _) => (1, 3, 0),
        _ => return None,
    };
    let mut message = Vec::with_capacity(icmp::HEADER_LEN + inner.len());
    message.extend_from_slice(&[kind, code, 0, 0]);
    message.extend_from_slice(&word.to_be_bytes());
    message.extend_from_slice(inner);
    // An error is no longer than what every link carries.
    message.truncate(LEAST_MTU as usize - HEADER_LEN);
    let ip = IpHeader::new(router.into(), sender.into());
    let protocol = Protocol::ICMPV6;
    debug_assert_eq!(Version::of(protocol, ip.source), Some(Version::V6));
    let checksum_at = Some(icmp::CHECKSUM_AT);
    let made = emit_ip(&ip, protocol, message.len(), checksum_at, |out| {
        out.extend_from_slice(&message);
    });
    Packet::parse(Bytes::clone(&made.bytes)).ok()
}
