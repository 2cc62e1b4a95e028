//! TCP (RFC 9293): the header as a value.

pub(crate) mod options;

pub use options::{
    Experimental, MAX_OPTIONS_LEN, SackBlock, TcpOption, TcpOptions, Timestamps, UserTimeout, kind,
};

use crate::SeqNumber;
use crate::error::{ParseError, Part};
use alloc::vec::Vec;

/// Length of a header without options.
pub(crate) const HEADER_LEN: usize = 20;

/// Where the checksum lies in the header.
pub(crate) const CHECKSUM_AT: usize = 16;

/// The control bits of a TCP header (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `bits` is set.
    #[must_use]
    pub const fn contains(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Whether any bit of `bits` is set.
    #[must_use]
    pub const fn intersects(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    /// The bits of both.
    #[must_use]
    pub const fn union(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }
}

impl core::ops::BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, bits: Self) -> Self {
        self.union(bits)
    }
}

/// A TCP header.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; meaningful only with [`TcpFlags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as on the wire, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// The options that Outlast reads.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Whether `bit` is set.
    #[must_use]
    pub const fn has(&self, bit: TcpFlags) -> bool {
        self.flags.contains(bit)
    }

    /// Sequence numbers that SYN and FIN occupy: 0, 1 or 2.
    #[must_use]
    pub const fn control_len(&self) -> u32 {
        self.has(TcpFlags::SYN) as u32 + self.has(TcpFlags::FIN) as u32
    }

    /// Length of the header on the wire in bytes, as builders write it: 20..=60.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.emitted_len()
    }

    /// Reads the header at the start of `segment`, and its length.
    #[inline]
    pub(crate) fn parse(segment: &[u8]) -> Result<(Self, usize), ParseError> {
        let truncated = |needed| ParseError::Truncated {
            part: Part::Tcp,
            needed,
            available: segment.len(),
        };
        let Some(fixed) = segment.first_chunk::<HEADER_LEN>() else {
            return Err(truncated(HEADER_LEN));
        };
        let header_len = declared_len(fixed);
        if header_len < HEADER_LEN {
            return Err(ParseError::HeaderLength {
                part: Part::Tcp,
                length: header_len,
            });
        }
        let Some(options) = segment.get(HEADER_LEN..header_len) else {
            return Err(truncated(header_len));
        };
        Ok((Self::of_fields(fixed, options), header_len))
    }

    /// Reads the header at the start of a segment that may be cut off behind its first 20 bytes,
    /// and its length; options that are cut off are left out.
    pub(crate) fn parse_beginning(segment: &[u8]) -> Option<(Self, usize)> {
        let fixed = segment.first_chunk::<HEADER_LEN>()?;
        let header_len = declared_len(fixed);
        let options = segment.get(HEADER_LEN..header_len.min(segment.len()))?;
        Some((Self::of_fields(fixed, options), header_len))
    }

    #[inline]
    fn of_fields(fixed: &[u8; HEADER_LEN], options: &[u8]) -> Self {
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        Self {
            source_port: word(0),
            destination_port: word(2),
            seq: SeqNumber(long(4)),
            ack: SeqNumber(long(8)),
            flags: TcpFlags(fixed[13]),
            window: word(14),
            urgent: word(18),
            options: TcpOptions::parse(options),
        }
    }

    /// Writes the header, its checksum zero.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut fixed = [0; HEADER_LEN];
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        // At most fifteen words: four bits.
        fixed[12] = ((self.header_len() / 4) as u8) << 4;
        fixed[13] = self.flags.0;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&fixed);
        self.options.write(|bytes| out.extend_from_slice(bytes));
    }
}

/// The length of the header in bytes as its data offset says.
#[inline]
fn declared_len(fixed: &[u8; HEADER_LEN]) -> usize {
    usize::from(fixed[12] >> 4) * 4
}
