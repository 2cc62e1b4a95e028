//! One IP packet: parsed once at the edge, cheap to clone.

use crate::{IcmpError, TcpHeader, UdpHeader};
use bytes::Bytes;
use core::net::IpAddr;

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
    Captured(Bytes),
    /// The payload is a stretch of a generated stream.
    Modelled(ModelledPayload),
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

    /// Sequence numbers that the segment occupies (SEG.LEN): payload, SYN and FIN.
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        match &self.header.transport {
            Transport::Tcp(tcp) => self.header.payload_len + tcp.control_len(),
            _ => 0,
        }
    }
}
