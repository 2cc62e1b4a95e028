//! The headers of a packet of which perhaps only the beginning was captured.
//!
//! [`Packet::parse`](crate::Packet::parse) wants a whole packet. A capture with a snap length has
//! less; lengths then come from the headers. Tunnels in the clear are looked into: IP in IP
//! (RFC 2003, RFC 2473, RFC 4213) and GRE (RFC 2784, RFC 2890) with IP or Ethernet inside.
//!
//! Left out: the second and later fragments of a packet, which have no ports.

use crate::ip::{Extent, Network, Protocol};
use crate::pcapng::{self, ETHERNET};
use crate::tcp::TcpHeader;
use core::net::IpAddr;

/// Tunnels that are looked into, one in another.
const DEEPEST: usize = 4;

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// What the headers of a packet say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outline {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Identification of an IPv4 packet; 0 under IPv6.
    pub identification: u16,
    /// What it carries.
    pub transport: OutlinedTransport,
}

/// What an outlined packet carries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OutlinedTransport {
    /// A TCP segment.
    Tcp {
        /// Its header; options that were not captured are not there.
        header: TcpHeader,
        /// Its payload in bytes, captured or not.
        payload_len: u32,
    },
    /// Something else, or a fragment.
    Other,
}

impl Outline {
    /// Reads the beginning of an IP packet that had `original_len` bytes; `None` if the bytes are
    /// none, or end before the addresses.
    #[must_use]
    pub fn of(bytes: &[u8], original_len: usize) -> Option<Self> {
        let mut bytes = bytes;
        let mut original_len = original_len.max(bytes.len());
        let mut outermost = None;
        for _ in 0..DEEPEST {
            let Some((network, total_len)) = network(bytes, original_len) else {
                break;
            };
            let rest = bytes.get(network.transport_at..network.end);
            let rest = rest.unwrap_or_default();
            let rest_len = total_len.saturating_sub(network.transport_at);
            let outline = Self {
                source: network.header.source,
                destination: network.header.destination,
                identification: network.header.identification,
                transport: OutlinedTransport::Other,
            };
            let is_whole =
                !network.fragment || (network.first && network.protocol == Protocol::TCP);
            let inner = match network.protocol {
                _ if !is_whole => None,
                Protocol::TCP => {
                    let transport = tcp(rest, rest_len).unwrap_or(OutlinedTransport::Other);
                    return Some(Self {
                        transport,
                        ..outline
                    });
                }
                Protocol(IP_IN_IP | IPV6_IN_IP) => Some(rest),
                Protocol(GRE) => in_gre(rest),
                _ => None,
            };
            let Some(inner) = inner else {
                return Some(outline);
            };
            // What is cut off at the end is missing from the inner packet, too.
            original_len = rest_len.saturating_sub(rest.len() - inner.len());
            bytes = inner;
            outermost = outermost.or(Some(outline));
        }
        outermost
    }

    /// The TCP header and the payload's length, if it is a TCP segment.
    #[must_use]
    pub fn tcp(&self) -> Option<(&TcpHeader, u32)> {
        match &self.transport {
            OutlinedTransport::Tcp {
                header,
                payload_len,
            } => Some((header, *payload_len)),
            OutlinedTransport::Other => None,
        }
    }
}

/// The IP headers and the length of the packet as they say it.
fn network(bytes: &[u8], original_len: usize) -> Option<(Network, usize)> {
    let network = Network::parse(bytes, Extent::Quoted).ok()?;
    let word = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk::<2>()?));
    let declared = match network.header.source {
        IpAddr::V4(_) => usize::from(word(2)?),
        IpAddr::V6(_) => match word(4)? {
            0 => 0,
            payload_len => usize::from(payload_len) + 40,
        },
    };
    // A super-segment of a sending host declares no length.
    let total_len = match declared {
        0 => original_len,
        declared => declared,
    };
    Some((network, total_len))
}

fn tcp(segment: &[u8], segment_len: usize) -> Option<OutlinedTransport> {
    let (header, header_len) = TcpHeader::parse_beginning(segment)?;
    let payload_len = segment_len.checked_sub(header_len.max(20))?;
    Some(OutlinedTransport::Tcp {
        header,
        payload_len: u32::try_from(payload_len).ok()?,
    })
}

/// The IP packet in a GRE packet of version 0.
fn in_gre(packet: &[u8]) -> Option<&[u8]> {
    let &[flags, version, ..] = packet else {
        return None;
    };
    if version & 0x07 != 0 {
        return None;
    }
    // Checksum, key and sequence number; routing (RFC 1701) is not in use.
    let optional = [0x80, 0x20, 0x10].map(|bit| usize::from(flags & bit != 0) * 4);
    let inner = packet.get(4 + optional.iter().sum::<usize>()..)?;
    match packet.get(2..4)? {
        [0x08, 0x00] | [0x86, 0xdd] => Some(inner),
        [0x65, 0x58] => pcapng::ip_in_frame(ETHERNET, inner),
        _ => None,
    }
}
