//! TCP (RFC 9293): the header as a value.

mod options;

pub use options::{Experimental, SackBlock, TcpOptions, Timestamps, UserTimeout};

use crate::SeqNumber;

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
}
