//! What travels over the simulated link.

use alloc::boxed::Box;
use outlast_core::units::ByteCount;
use outlast_link::Frame;
use outlast_wire::Packet;

/// A packet on its way. It changes hands a dozen times, which a box makes cheap.
#[derive(Clone, Debug)]
pub(crate) struct SimFrame {
    pub(crate) packet: Box<Packet>,
    /// Counts what was put into the link or offered to it, from either end. A copy that the link
    /// makes has the number of the original.
    pub(crate) serial: u64,
}

impl Frame for SimFrame {
    fn wire_len(&self) -> ByteCount {
        ByteCount(self.packet.total_len().into())
    }
}
