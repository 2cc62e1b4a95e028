//! Why bytes are not a packet that Outlast looks into.

use core::fmt;

/// Why [`Packet::parse`](crate::Packet::parse) refused some bytes.
///
/// On a live path such a packet passes untouched and is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// A header, or what it announces, does not end within the bytes.
    #[error("{part} needs {needed} bytes, there are {available}")]
    Truncated {
        /// What is cut off.
        part: Part,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// A length field says less than the header that it belongs to has.
    #[error("{part} declares an impossible length of {length} bytes")]
    HeaderLength {
        /// Whose length it is.
        part: Part,
        /// The declared length in bytes.
        length: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0} is not known")]
    Version(u8),
    /// The IPv4 header checksum does not fit the header.
    #[error("the IPv4 header checksum is wrong")]
    Ipv4Checksum,
    /// More than 2^32-1 bytes.
    #[error("{0} bytes are more than any IP packet has")]
    TooLong(usize),
}

/// A part of a packet, for [`ParseError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// IPv4 header or packet.
    Ipv4,
    /// IPv6 header or packet.
    Ipv6,
    /// IPv6 extension header.
    Extension,
    /// TCP header.
    Tcp,
    /// UDP header or datagram.
    Udp,
    /// ICMP or ICMPv6 message.
    Icmp,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Extension => "IPv6 extension header",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
        })
    }
}
