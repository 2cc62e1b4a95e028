//! ICMP (RFC 792) and ICMPv6 (RFC 4443) errors and the packet that they quote.

mod notice;

pub use notice::{IcmpExtension, IcmpNotice, IcmpRefusal};

use crate::SeqNumber;
use crate::error::{ParseError, Part};
use crate::ip::{Extent, Network, Protocol};
use core::net::IpAddr;

/// Length of the fixed part of an error, in front of what it quotes.
pub(crate) const HEADER_LEN: usize = 8;

/// Where the checksum lies in the message.
pub(crate) const CHECKSUM_AT: usize = 2;

/// An ICMP or ICMPv6 error (RFC 792, RFC 4443).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IcmpError {
    /// Type on the wire.
    pub kind: u8,
    /// Code on the wire.
    pub code: u8,
    /// The next hop's MTU in bytes, if the error says that the packet is too big (RFC 1191,
    /// RFC 4443 section 3.2). Zero from IPv4 routers that are older than RFC 1191.
    pub mtu: Option<u32>,
    /// What can be told of the packet that the error is about; `None` if not even its IP header
    /// is quoted.
    pub quoted: Option<QuotedPacket>,
}

/// The packet that an ICMP error is about, as far as the quotation goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuotedPacket {
    /// Its source: where the error is sent.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Its transport protocol number.
    pub protocol: u8,
    /// Its source and destination port, if it is TCP or UDP and they are quoted.
    pub ports: Option<(u16, u16)>,
    /// Its SEG.SEQ, if it is TCP and that is quoted.
    pub seq: Option<SeqNumber>,
    /// Its first bytes behind the IP headers, if they are quoted: RFC 792 asks for as many.
    pub beginning: Option<[u8; 8]>,
}

/// Which messages are errors, and where they keep what, differs between ICMP and ICMPv6.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) fn of(protocol: Protocol, source: IpAddr) -> Option<Self> {
        match (protocol, source) {
            (Protocol::ICMP, IpAddr::V4(_)) => Some(Self::V4),
            (Protocol::ICMPV6, IpAddr::V6(_)) => Some(Self::V6),
            _ => None,
        }
    }

    const fn protocol(self) -> Protocol {
        match self {
            Self::V4 => Protocol::ICMP,
            Self::V6 => Protocol::ICMPV6,
        }
    }

    /// Whether a message of this type quotes a packet.
    fn is_error(self, kind: u8) -> bool {
        match self {
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            Self::V4 => matches!(kind, 3 | 4 | 5 | 11 | 12),
            // RFC 4443, section 2.1: the high bit tells informational messages.
            Self::V6 => kind < 128,
        }
    }

    fn mtu(self, message: &[u8; HEADER_LEN]) -> Option<u32> {
        let &[kind, code, _, _, a, b, c, d] = message;
        match (self, kind, code) {
            (Self::V4, 3, 4) => Some(u32::from(u16::from_be_bytes([c, d]))),
            (Self::V6, 2, _) => Some(u32::from_be_bytes([a, b, c, d])),
            _ => None,
        }
    }

    /// How much of what follows the fixed part is quotation, if extensions follow it (RFC 4884,
    /// section 3); zero if the message does not say.
    fn quoted_len(self, message: &[u8; HEADER_LEN]) -> usize {
        let &[kind, _, _, _, a, b, _, _] = message;
        match (self, kind) {
            (Self::V4, 3 | 11 | 12) => usize::from(b) * 4,
            (Self::V6, 1 | 3) => usize::from(a) * 8,
            _ => 0,
        }
    }
}

impl IcmpError {
    /// Reads `message`, all that the IP header carries; `None` if it is no error.
    pub(crate) fn parse(version: Version, message: &[u8]) -> Result<Option<Self>, ParseError> {
        match message.first() {
            Some(&kind) if !version.is_error(kind) => return Ok(None),
            _ => {}
        }
        let Some((fixed, rest)) = message.split_first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated {
                part: Part::Icmp,
                needed: HEADER_LEN,
                available: message.len(),
            });
        };
        let quotation = match version.quoted_len(fixed) {
            0 => rest,
            length => rest.get(..length).unwrap_or(rest),
        };
        Ok(Some(Self {
            kind: fixed[0],
            code: fixed[1],
            mtu: version.mtu(fixed),
            quoted: QuotedPacket::parse(quotation),
        }))
    }
}

impl QuotedPacket {
    fn parse(quotation: &[u8]) -> Option<Self> {
        let network = Network::parse(quotation, Extent::Quoted).ok()?;
        let transport = match network.first {
            true => quotation
                .get(network.transport_at..network.end)
                .unwrap_or_default(),
            false => &[],
        };
        let has_ports = matches!(network.protocol, Protocol::TCP | Protocol::UDP);
        let ports = transport
            .first_chunk::<4>()
            .filter(|_| has_ports)
            .map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        let seq = match transport {
            &[_, _, _, _, a, b, c, d, ..] if network.protocol == Protocol::TCP => {
                Some(SeqNumber(u32::from_be_bytes([a, b, c, d])))
            }
            _ => None,
        };
        Some(Self {
            source: network.header.source,
            destination: network.header.destination,
            protocol: network.protocol.0,
            ports,
            seq,
            beginning: transport.first_chunk().copied(),
        })
    }
}
