//! What crosses a path.

use alloc::boxed::Box;
use bytes::Bytes;
use core::fmt;
use outlast_base::units::ByteCount;
use outlast_link::Frame;
use outlast_wire::Packet;

/// What crosses a [`Path`](super::Path): a packet, in the form in which its driver has it. What a
/// gateway sends is made from its packet.
pub trait Load: Clone + fmt::Debug + From<Packet> {
    /// The packet; `None` if it is nothing that can be looked into. That crosses all the same.
    fn packet(&self) -> Option<&Packet>;

    /// Its length on the wire in bytes.
    fn wire_len(&self) -> u32;

    /// It as a host receives it.
    fn to_bytes(&self) -> Bytes;
}

/// The simulator's packets change hands a dozen times, which a box makes cheap.
impl Load for Box<Packet> {
    #[inline]
    fn packet(&self) -> Option<&Packet> {
        Some(self)
    }

    #[inline]
    fn wire_len(&self) -> u32 {
        self.total_len()
    }

    fn to_bytes(&self) -> Bytes {
        Packet::to_bytes(self)
    }
}

/// A load on its way.
#[derive(Clone, Debug)]
pub(super) struct Carried<L> {
    pub(super) load: L,
    /// Counts what was put into the link or offered to it, from either end. A copy that the link
    /// makes has the number of the original.
    pub(super) serial: u64,
    /// How it crosses the link.
    pub(super) form: Form,
}

/// How a load crosses the link.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// As this packet, from which the other end restores it.
    Compressed(Box<Packet>),
    /// As it is, and only for the other end of the link.
    Between,
}

impl<L: Load> Frame for Carried<L> {
    #[inline]
    fn wire_len(&self) -> ByteCount {
        match &self.form {
            Form::Plain | Form::Between => ByteCount(self.load.wire_len().into()),
            Form::Compressed(packet) => ByteCount(packet.total_len().into()),
        }
    }
}
