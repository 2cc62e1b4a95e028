//! The headers of a packet of which perhaps only the beginning was captured.
//!
//! [`Packet::parse`](crate::Packet::parse) wants a whole packet. A capture with a snap length has
//! less; lengths then come from the headers. Tunnels in the clear are looked into, see `tunnel.rs`.
//!
//! Left out: the second and later fragments of a packet, which have no ports.

use crate::frame::NotIp;
use crate::ip::{Extent, Network, Protocol};
use crate::tcp::TcpHeader;
use crate::tunnel::ip_within;
use core::net::IpAddr;

/// Tunnels that are looked into, one in another.
const DEEPEST: usize = 4;

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
    /// A tunnel that cannot be looked into, by its name.
    Sealed(&'static str),
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
            let inner = match network.protocol {
                // The first one has the headers.
                _ if network.fragment && !network.first => Err(NotIp::Other),
                Protocol::TCP => {
                    let transport = tcp(rest, rest_len).unwrap_or(OutlinedTransport::Other);
                    return Some(Self {
                        transport,
                        ..outline
                    });
                }
                protocol => ip_within(protocol, rest),
            };
            let inner = match inner {
                Ok(inner) => inner,
                Err(NotIp::Sealed(name)) => {
                    let transport = OutlinedTransport::Sealed(name);
                    return Some(Self {
                        transport,
                        ..outline
                    });
                }
                Err(_) => return Some(outline),
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
            OutlinedTransport::Sealed(_) | OutlinedTransport::Other => None,
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
