//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers: from a packet's first byte to its transport header.
//!
//! Lengths as they occur on a Linux host, not only on a wire: a super-segment of more than 65535
//! bytes has total length 0 under IPv4 and payload length 0 under IPv6, with or without a jumbo
//! payload option (RFC 2675); the buffer then says how long it is.
//!
//! Left out: a packet whose routing header has segments left is not looked into, because its
//! destination is not the connection's; the home address option of Mobile IPv6 is not followed.

mod v4;
mod v6;

pub(crate) use v4::relabel as relabel_v4;
pub(crate) use v6::{relabel as relabel_v6, strip_jumbo, write_jumbo_len};

use crate::IpHeader;
use crate::error::ParseError;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP protocol number, or IPv6 "next header".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Protocol(pub(crate) u8);

impl Protocol {
    pub(crate) const ICMP: Self = Self(1);
    pub(crate) const TCP: Self = Self(6);
    pub(crate) const UDP: Self = Self(17);
    pub(crate) const ICMPV6: Self = Self(58);
}

/// What the network layer of a packet says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) header: IpHeader,
    /// What lies at `transport_at`.
    pub(crate) protocol: Protocol,
    /// Whether this is a piece of a packet.
    pub(crate) fragment: bool,
    /// Whether the transport header, if there is one, lies here and not in an earlier fragment.
    pub(crate) first: bool,
    /// An authentication header covers the packet, so that nobody may alter it on its way.
    pub(crate) authenticated: bool,
    /// Offset of the first byte behind the IP headers; at most `end`.
    pub(crate) transport_at: usize,
    /// Offset behind the packet's last byte; at most the length of the bytes.
    pub(crate) end: usize,
}

/// How much of a packet the bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// Its beginning, as an ICMP error quotes it: lengths may point behind the end, and the
    /// checksum may be that of another hop.
    Quoted,
}

impl Network {
    /// Reads the IP headers at the start of `data`.
    #[inline]
    pub(crate) fn parse(data: &[u8], extent: Extent) -> Result<Self, ParseError> {
        match data.first().map(|byte| byte >> 4) {
            None | Some(4) => v4::parse(data, extent),
            Some(6) => v6::parse(data, extent),
            Some(version) => Err(ParseError::Version(version)),
        }
    }
}

/// Leaves both addresses of one family (IPv4 is mapped into IPv6 if they differ) and no fields that
/// the family lacks: what a header reads after it was written.
#[inline]
pub(crate) fn normalise(ip: &mut IpHeader) {
    if !(ip.source.is_ipv4() && ip.destination.is_ipv4()) {
        normalise_v6(ip);
    }
}

fn normalise_v6(ip: &mut IpHeader) {
    if ip.source.is_ipv4() != ip.destination.is_ipv4() {
        ip.source = IpAddr::V6(mapped(ip.source));
        ip.destination = IpAddr::V6(mapped(ip.destination));
    }
    if ip.source.is_ipv6() {
        ip.identification = 0;
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Bytes of the headers that [`write`] makes in front of `body_len` bytes.
#[inline]
pub(crate) fn headers_len(ip: &IpHeader, body_len: usize) -> usize {
    match ip.source {
        IpAddr::V4(_) => v4::HEADER_LEN,
        IpAddr::V6(_) => v6::headers_len(body_len),
    }
}

/// Writes the IP headers of a packet with `body_len` bytes behind them. `ip` is [normalised](normalise).
pub(crate) fn write(ip: &IpHeader, protocol: Protocol, body_len: usize, out: &mut Vec<u8>) {
    match (ip.source, ip.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            v4::write(ip, source, destination, protocol, body_len, out);
        }
        (source, destination) => {
            v6::write(
                ip,
                mapped(source),
                mapped(destination),
                protocol,
                body_len,
                out,
            );
        }
    }
}

fn address_v4(octets: &[u8; 4]) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(*octets))
}

fn address_v6(octets: &[u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(*octets))
}
