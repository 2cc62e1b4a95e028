//! What an association has carried, and its last readdressing.

use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// Applications' packets, and their bytes with the IPv6 header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Volume {
    /// Counts one packet.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// A readdressing that is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Readdressing {
    /// Where the peer was reached then.
    pub address: IpAddr,
    /// When it was complete.
    pub ended: Instant,
    /// Time since its first packet was sent or received.
    pub took: Duration,
}
