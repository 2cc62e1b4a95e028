//! TCP segments whose payload is compressed between two ends of a link, and how the ends agree.
//!
//! The messages are carried by IP protocol 253, which is for experiments (RFC 3692, section 2.1), behind the IP
//! header of the segment itself. They model "Compressed M-TCP" (K. Brown and S. Singh, 1997, sections 4.2.1 and
//! 6.3), where the data portion of each packet of the wireless half is compressed. All numbers are big-endian.
//!
//! ```text
//! "MC"  version  kind                          what every message begins with: 4 bytes
//! offer, acceptance:  nonce (8)
//! segment:            check (4)  payload length (2)  TCP header (20 to 60)  compressed payload
//! ```
//!
//! A message says nothing of how the payload is compressed: whoever restores a segment compares `check` with the
//! CRC-32 of the restored TCP header and payload.

use crate::ip::Protocol;
use crate::packet::Body;
use crate::{Packet, Transport, tcp};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;

/// The IP protocol number of the messages (RFC 3692, section 2.1).
pub const PROTOCOL: u8 = 253;

/// Bytes that a compressed segment has and its original has not.
pub const OVERHEAD: usize = START.len() + 1 + CHECK_LEN + LENGTH_LEN;

/// Other experiments use the protocol number as well; the last byte is the version.
const START: [u8; 3] = [b'M', b'C', 1];
const OFFER: u8 = 1;
const ACCEPTANCE: u8 = 2;
const SEGMENT: u8 = 3;
const CHECK_LEN: usize = 4;
const LENGTH_LEN: usize = 2;
/// Where the data offset lies in a TCP header.
const DATA_OFFSET_AT: usize = 12;

/// What a packet of protocol 253 says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompressionMessage<'a> {
    /// Asks the host behind the link whether it restores compressed segments.
    Offer {
        /// Drawn at random by whoever asks.
        nonce: u64,
    },
    /// Answers an offer: compressed segments are restored here.
    Acceptance {
        /// That of the offer.
        nonce: u64,
    },
    /// A TCP segment with a compressed payload.
    Segment(CompressedSegment<'a>),
}

/// A TCP segment whose payload is compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressedSegment<'a> {
    /// CRC-32 of the original TCP header and payload.
    pub check: u32,
    /// Length of the original payload in bytes.
    pub payload_len: u16,
    /// The original TCP header with its options: 20 to 60 bytes.
    pub header: &'a [u8],
    /// The compressed payload.
    pub compressed: &'a [u8],
}

/// Why the bytes behind an IP header are no message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CompressionError {
    /// It is of another experiment with the same protocol number.
    #[error("it does not begin as a message does")]
    Start,
    /// A kind of message that is not known.
    #[error("kind {0} is not known")]
    Kind(u8),
    /// It ends too early, or its TCP header has an impossible length.
    #[error("it is cut short")]
    Truncated,
}

impl<'a> CompressionMessage<'a> {
    /// Reads the bytes behind the IP header of a packet of protocol 253.
    ///
    /// # Errors
    /// [`CompressionError`], if they are no message.
    pub fn parse(body: &'a [u8]) -> Result<Self, CompressionError> {
        let rest = body.strip_prefix(&START).ok_or(CompressionError::Start)?;
        let (&kind, rest) = rest.split_first().ok_or(CompressionError::Truncated)?;
        let nonce = || {
            let nonce = rest.first_chunk().ok_or(CompressionError::Truncated)?;
            Ok(u64::from_be_bytes(*nonce))
        };
        match kind {
            OFFER => Ok(Self::Offer { nonce: nonce()? }),
            ACCEPTANCE => Ok(Self::Acceptance { nonce: nonce()? }),
            SEGMENT => CompressedSegment::parse(rest)
                .map(Self::Segment)
                .ok_or(CompressionError::Truncated),
            kind => Err(CompressionError::Kind(kind)),
        }
    }

    /// Appends the message to `out`, as [`CompressionMessage::parse`] reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&START);
        match self {
            Self::Offer { nonce } => {
                out.push(OFFER);
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::Acceptance { nonce } => {
                out.push(ACCEPTANCE);
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::Segment(segment) => {
                out.push(SEGMENT);
                out.extend_from_slice(&segment.check.to_be_bytes());
                out.extend_from_slice(&segment.payload_len.to_be_bytes());
                out.extend_from_slice(segment.header);
                out.extend_from_slice(segment.compressed);
            }
        }
    }
}

impl<'a> CompressedSegment<'a> {
    fn parse(rest: &'a [u8]) -> Option<Self> {
        let (check, rest) = rest.split_first_chunk::<CHECK_LEN>()?;
        let (payload_len, rest) = rest.split_first_chunk::<LENGTH_LEN>()?;
        let header_len = usize::from(rest.get(DATA_OFFSET_AT)? >> 4) * 4;
        if header_len < tcp::HEADER_LEN {
            return None;
        }
        let (header, compressed) = rest.split_at_checked(header_len)?;
        Some(Self {
            check: u32::from_be_bytes(*check),
            payload_len: u16::from_be_bytes(*payload_len),
            header,
            compressed,
        })
    }
}

impl Packet {
    /// The packet's bytes behind its IP headers, if it has bytes.
    ///
    /// Those of a TCP segment begin with its header.
    #[must_use]
    pub fn body(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Captured(captured) => captured.bytes.get(captured.transport_at as usize..),
            Body::Modelled(_) => None,
        }
    }

    /// A packet with this one's IP header that carries `body` as `protocol`.
    ///
    /// `None` if that cannot be: the packet has no bytes, is a fragment, is authenticated, or has extension
    /// headers, or the new one had more than 65,535 bytes, or its body does not parse as `protocol`.
    #[must_use]
    pub fn carrying(&self, protocol: u8, body: &[u8]) -> Option<Self> {
        let Body::Captured(captured) = &self.body else {
            return None;
        };
        let is_fragment = matches!(
            self.header.transport,
            Transport::Other { fragment: true, .. }
        );
        if captured.authenticated || is_fragment {
            return None;
        }
        let ip = captured.bytes.get(..captured.transport_at as usize)?;
        let was = self.header.transport.protocol(self.header.ip.source);
        let mut bytes = Vec::with_capacity(ip.len() + body.len());
        bytes.extend_from_slice(ip);
        bytes.extend_from_slice(body);
        match self.header.ip.source {
            IpAddr::V4(_) => {
                crate::ip::relabel_v4(&mut bytes, ip.len(), Protocol(protocol))?;
            }
            IpAddr::V6(_) => {
                crate::ip::relabel_v6(&mut bytes, ip.len(), [was, Protocol(protocol)])?;
            }
        }
        Self::parse(Bytes::from(bytes)).ok()
    }
}
