//! TCP segments whose payload is compressed between two ends of a link, and how the ends agree.
//!
//! The messages are carried by IP protocol 253, which is for experiments (RFC 3692, section 2.1), behind the IP
//! header of the segment itself. They model "Compressed M-TCP" (K. Brown and S. Singh, 1997, sections 4.2.1 and
//! 6.3), where the data portion of each packet of the wireless half is compressed. All numbers are big-endian.
//!
//! ```text
//! offer:         "MC"  version  1  nonce (8)  zero (4)
//! acceptance:    "MC"  version  2  nonce (8)  tag (4)
//! confirmation:  "MC"  version  3  tag (4)
//! segment:       tag (4)  check (4)  payload length (2)  TCP header (20 to 60)  compressed payload
//! ```
//!
//! A [`Tag`] is told by the end that accepts and shown by every segment: whoever has not heard it sends nothing that is
//! restored. It comes first, so that each ICMP error quotes it. An offer is as long as its answer.
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
pub const OVERHEAD: usize = TAG_LEN + CHECK_LEN + LENGTH_LEN;

/// Other experiments use the protocol number as well; the last byte is the version.
const START: [u8; 3] = [b'M', b'C', 2];
const OFFER: u8 = 1;
const ACCEPTANCE: u8 = 2;
const CONFIRMATION: u8 = 3;
const NONCE_LEN: usize = 8;
const TAG_LEN: usize = 4;
const CHECK_LEN: usize = 4;
const LENGTH_LEN: usize = 2;
/// Where the data offset lies in a TCP header.
const DATA_OFFSET_AT: usize = 12;

/// A number that only two ends know which have agreed, and who hears them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tag([u8; TAG_LEN]);

impl Tag {
    /// The tag made of random bits; no tag looks like the beginning of another message.
    #[must_use]
    pub const fn of(bits: u32) -> Self {
        match bits.to_be_bytes() {
            [b'M', b'C', 2, last] => Self([b'M', b'C', 0, last]),
            bytes => Self(bytes),
        }
    }

    /// True if an ICMP error quotes this `beginning` of a segment with the tag.
    #[must_use]
    pub fn is_quoted(self, beginning: [u8; 8]) -> bool {
        beginning.starts_with(&self.0)
    }
}

/// What a packet of protocol 253 says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CompressionMessage<'a> {
    /// Asks the host behind the link whether it restores compressed segments.
    Offer {
        /// Drawn at random by whoever asks.
        nonce: u64,
    },
    /// Answers an offer: compressed segments are restored here that show the tag.
    Acceptance {
        /// That of the offer.
        nonce: u64,
        /// That of all compressed segments between the two addresses.
        tag: Tag,
    },
    /// Answers an acceptance: whoever has made the offer has heard the tag, and restores, too.
    Confirmation {
        /// That of the acceptance.
        tag: Tag,
    },
    /// A TCP segment with a compressed payload, or a packet of another experiment.
    Segment(CompressedSegment<'a>),
}

/// A TCP segment whose payload is compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressedSegment<'a> {
    /// The tag that the two ends have agreed on.
    pub tag: Tag,
    /// CRC-32 of the original TCP header and payload.
    pub check: u32,
    /// Length of the original payload in bytes.
    pub payload_len: u16,
    /// The original TCP header with its options: 20 to 60 bytes.
    pub header: &'a [u8],
    /// The compressed payload; bytes behind the end of its stream say nothing.
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
        let Some(rest) = body.strip_prefix(&START) else {
            let segment = CompressedSegment::parse(body).ok_or(CompressionError::Start)?;
            return Ok(Self::Segment(segment));
        };
        let (&kind, rest) = rest.split_first().ok_or(CompressionError::Truncated)?;
        let nonce = || {
            let nonce = rest.first_chunk().ok_or(CompressionError::Truncated)?;
            Ok(u64::from_be_bytes(*nonce))
        };
        let tag_at = |at: usize| {
            let tag = rest.get(at..).and_then(<[u8]>::first_chunk);
            Ok(Tag(*tag.ok_or(CompressionError::Truncated)?))
        };
        match kind {
            // As long as its answer, or it is no offer.
            OFFER => tag_at(NONCE_LEN).and_then(|_| Ok(Self::Offer { nonce: nonce()? })),
            ACCEPTANCE => Ok(Self::Acceptance {
                nonce: nonce()?,
                tag: tag_at(NONCE_LEN)?,
            }),
            CONFIRMATION => Ok(Self::Confirmation { tag: tag_at(0)? }),
            kind => Err(CompressionError::Kind(kind)),
        }
    }

    /// Appends the message to `out`, as [`CompressionMessage::parse`] reads it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut begin = |kind| {
            out.extend_from_slice(&START);
            out.push(kind);
        };
        match self {
            Self::Offer { nonce } => {
                begin(OFFER);
                out.extend_from_slice(&nonce.to_be_bytes());
                out.extend_from_slice(&[0; TAG_LEN]);
            }
            Self::Acceptance { nonce, tag } => {
                begin(ACCEPTANCE);
                out.extend_from_slice(&nonce.to_be_bytes());
                out.extend_from_slice(&tag.0);
            }
            Self::Confirmation { tag } => {
                begin(CONFIRMATION);
                out.extend_from_slice(&tag.0);
            }
            Self::Segment(segment) => {
                out.extend_from_slice(&segment.tag.0);
                out.extend_from_slice(&segment.check.to_be_bytes());
                out.extend_from_slice(&segment.payload_len.to_be_bytes());
                out.extend_from_slice(segment.header);
                out.extend_from_slice(segment.compressed);
            }
        }
    }
}

/// True if an ICMP error quotes this `beginning` of the offer with `nonce`.
#[must_use]
pub fn is_offer_quoted(nonce: u64, beginning: [u8; 8]) -> bool {
    let [a, b, c, d, ..] = nonce.to_be_bytes();
    beginning.starts_with(&START) && beginning.ends_with(&[OFFER, a, b, c, d])
}

impl<'a> CompressedSegment<'a> {
    fn parse(rest: &'a [u8]) -> Option<Self> {
        let (tag, rest) = rest.split_first_chunk()?;
        let (check, rest) = rest.split_first_chunk::<CHECK_LEN>()?;
        let (payload_len, rest) = rest.split_first_chunk::<LENGTH_LEN>()?;
        let header_len = usize::from(rest.get(DATA_OFFSET_AT)? >> 4) * 4;
        if header_len < tcp::HEADER_LEN {
            return None;
        }
        let (header, compressed) = rest.split_at_checked(header_len)?;
        Some(Self {
            tag: Tag(*tag),
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
