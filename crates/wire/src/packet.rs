//! One IP packet: parsed once at the edge, cheap to clone.

use crate::checksum::{Sum, pseudo_header};
use crate::ip::Protocol;
use crate::parse::payload_at;
use crate::{IcmpError, TcpHeader, UdpHeader};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};

/// An IP packet: what its headers say, and its bytes.
///
/// A packet from the wire owns its bytes by reference count: a clone copies no payload, so
/// keeping a packet costs no copy. A packet of the simulator has no bytes until
/// [`Packet::to_bytes`] makes them, for a capture; nothing that decides can tell the two apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packet {
    pub(crate) header: Header,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Body {
    /// The packet as it was on the wire, from the first byte of the IP header.
    Captured(Captured),
    /// A TCP segment whose payload is a stretch of a generated stream.
    Modelled(ModelledPayload),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Captured {
    /// Exactly the packet: `total_len` bytes.
    pub(crate) bytes: Bytes,
    /// Offset of the transport header.
    pub(crate) transport_at: u32,
    /// An authentication header protects the packet.
    pub(crate) authenticated: bool,
}

/// Payload that is known by where it stands in a generated stream, instead of by its bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ModelledPayload {
    /// Which stream.
    pub stream: u64,
    /// Position of the first payload byte in that stream.
    pub offset: u64,
}

/// What the headers of a packet say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// The IP header.
    pub ip: IpHeader,
    /// The transport header.
    pub transport: Transport,
    /// Length of the whole packet in bytes, IP header included.
    pub total_len: u32,
    /// Length of the transport payload in bytes.
    pub payload_len: u32,
}

/// The part of an IP header that Outlast reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpHeader {
    /// Source address; of the same family as the destination.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN (traffic class).
    pub traffic_class: u8,
    /// IPv4 identification; zero for IPv6.
    pub identification: u16,
}

impl IpHeader {
    /// What a host sends with by itself: hop limit 64 (RFC 1700's default), best effort.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            hop_limit: 64,
            traffic_class: 0,
            identification: 0,
        }
    }
}

/// The transport header of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Transport {
    /// A whole TCP segment.
    Tcp(TcpHeader),
    /// A whole UDP datagram.
    Udp(UdpHeader),
    /// An ICMP or ICMPv6 error with the start of the packet that it is about.
    IcmpError(IcmpError),
    /// Anything else, fragments among it: carried, not looked into.
    Other {
        /// IP protocol number (of the fragment's payload, for a fragment).
        protocol: u8,
        /// Whether this is an IP fragment.
        fragment: bool,
    },
}

impl Packet {
    /// What the headers say.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The TCP header, if the packet is a whole TCP segment.
    #[must_use]
    pub const fn tcp(&self) -> Option<&TcpHeader> {
        match &self.header.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Length of the whole packet in bytes, IP header included.
    #[must_use]
    pub const fn total_len(&self) -> u32 {
        self.header.total_len
    }

    /// The packet's bytes from the first of the IP header on, if it has any: a modelled packet
    /// gets them from [`Packet::to_bytes`].
    #[must_use]
    pub const fn bytes(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Captured(captured) => Some(&captured.bytes),
            Body::Modelled(_) => None,
        }
    }

    /// The transport payload, if the packet has bytes. For [`Transport::IcmpError`] that is the
    /// quotation and what follows it, for [`Transport::Other`] what follows the IP headers.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        let Body::Captured(captured) = &self.body else {
            return None;
        };
        let start = payload_at(&self.header, captured.transport_at as usize);
        captured
            .bytes
            .get(start..start + self.header.payload_len as usize)
    }

    /// Where the payload of a modelled packet stands in its stream.
    #[must_use]
    pub const fn modelled(&self) -> Option<ModelledPayload> {
        match &self.body {
            Body::Captured(_) => None,
            Body::Modelled(payload) => Some(*payload),
        }
    }

    /// Whether the checksum of the transport is right, where Outlast knows what it covers: TCP,
    /// UDP, ICMP and ICMPv6, not in fragments. A UDP checksum of zero says that there is none
    /// (RFC 768; RFC 6935 for IPv6) and counts as right. A packet that still waits for a network
    /// card to fill it in fails: complete it with
    /// [`Edit::fill_checksums`](crate::edit::Edit::fill_checksums).
    #[must_use]
    pub fn checksums_ok(&self) -> bool {
        let Body::Captured(captured) = &self.body else {
            return true;
        };
        let data = captured
            .bytes
            .get(captured.transport_at as usize..)
            .unwrap_or_default();
        match self.checksum_cover(data) {
            Some((_, [0, 0])) if matches!(self.header.transport, Transport::Udp(_)) => true,
            Some((sum, _)) => sum.is_intact(),
            None => true,
        }
    }

    /// Whether the checksum field has the pseudo-header's sum alone, as long as the packet is on
    /// its way to a network card that completes it (`CHECKSUM_PARTIAL` of Linux). One packet in
    /// 65,536 that waits for nothing looks so, too.
    #[must_use]
    pub fn has_partial_checksum(&self) -> bool {
        let Body::Captured(captured) = &self.body else {
            return false;
        };
        if !matches!(self.header.transport, Transport::Tcp(_) | Transport::Udp(_)) {
            return false;
        }
        let data = captured
            .bytes
            .get(captured.transport_at as usize..)
            .unwrap_or_default();
        let length = self.header.transport_covered_len().unwrap_or(data.len());
        let Some((_, field)) = self.checksum_cover(data) else {
            return false;
        };
        let ip = self.header.ip;
        let protocol = self.header.transport.protocol(ip.source);
        let pseudo = pseudo_header(ip.source, ip.destination, protocol, length);
        // The field is the sum itself, where a finished one is its complement.
        pseudo.checksum().map(|byte| !byte) == field
    }

    /// The sum over all that the transport's checksum covers, that field included, and the field;
    /// `None` if there is none that is known. `data` starts with the transport header.
    pub(crate) fn checksum_cover(&self, data: &[u8]) -> Option<(Sum, [u8; 2])> {
        let protocol = self.header.transport.protocol(self.header.ip.source);
        let at = self.header.transport.checksum_at(self.header.ip.source)?;
        let field = *data.get(at..)?.first_chunk::<2>()?;
        let covered = match self.header.transport_covered_len() {
            Some(length) => data.get(..length)?,
            None => data,
        };
        let pseudo = match protocol {
            Protocol::ICMP => Sum::default(),
            _ => {
                let IpHeader {
                    source,
                    destination,
                    ..
                } = self.header.ip;
                pseudo_header(source, destination, protocol, covered.len())
            }
        };
        Some((pseudo.bytes(covered), field))
    }

    /// Sequence numbers that the segment occupies (SEG.LEN): payload, SYN and FIN.
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        match &self.header.transport {
            Transport::Tcp(tcp) => self.header.payload_len + tcp.control_len(),
            _ => 0,
        }
    }
}

impl Default for Packet {
    /// A modelled TCP segment that says nothing, to be [written over](Self::become_modelled_tcp).
    fn default() -> Self {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let ip = IpHeader {
            source: nowhere,
            destination: nowhere,
            hop_limit: 0,
            traffic_class: 0,
            identification: 0,
        };
        Self::modelled_tcp(ip, TcpHeader::default(), ModelledPayload::default(), 0)
    }
}

impl Header {
    /// How much of what IP carries the transport's checksum covers, if not all.
    pub(crate) const fn transport_covered_len(&self) -> Option<usize> {
        match self.transport {
            // Its own length counts, which may be less.
            Transport::Udp(_) => Some(crate::udp::HEADER_LEN + self.payload_len as usize),
            _ => None,
        }
    }
}

impl Transport {
    /// The protocol number in the last IP header, in a packet from `source`.
    pub(crate) const fn protocol(&self, source: IpAddr) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::TCP,
            Self::Udp(_) => Protocol::UDP,
            Self::IcmpError(_) if source.is_ipv4() => Protocol::ICMP,
            Self::IcmpError(_) => Protocol::ICMPV6,
            Self::Other { protocol, .. } => Protocol(*protocol),
        }
    }

    /// Offset of the checksum in the transport header, if there is one that is known.
    pub(crate) fn checksum_at(&self, source: IpAddr) -> Option<usize> {
        match self {
            Self::Tcp(_) => Some(crate::tcp::CHECKSUM_AT),
            Self::Udp(_) => Some(crate::udp::CHECKSUM_AT),
            Self::IcmpError(_) => Some(crate::icmp::CHECKSUM_AT),
            Self::Other { fragment: true, .. } => None,
            Self::Other { protocol, .. } => crate::icmp::Version::of(Protocol(*protocol), source)
                .map(|_| crate::icmp::CHECKSUM_AT),
        }
    }
}
