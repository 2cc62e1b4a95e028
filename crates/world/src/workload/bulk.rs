//! One side sends a stream of bytes; complete when the last one has arrived.

use crate::side::Side;
use outlast_link::Way;

#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    bytes: u64,
    receiver: Side,
    received: u64,
}

impl Bulk {
    pub(super) fn new(bytes: u64, way: Way) -> Self {
        Self {
            bytes: bytes.max(1),
            receiver: Side::reached_by(way),
            received: 0,
        }
    }

    pub(super) fn connected(&mut self, side: Side) -> u64 {
        if side == self.receiver { 0 } else { self.bytes }
    }

    pub(super) fn received(&mut self, side: Side, bytes: u64) -> u64 {
        if side == self.receiver {
            self.received += bytes;
        }
        0
    }

    pub(super) fn is_complete(&self) -> bool {
        self.received >= self.bytes
    }
}
