//! The last segment of each TCP connection, to be sent again once a readdressing is complete.
//!
//! A sender whose retransmission timer has backed off sends nothing for a long time after the path
//! is back. The last segment that it sent is then the oldest that its peer lacks; sent again from
//! below, it is answered, and the answer makes the sender go on. A receiver's last segment repeats
//! its acknowledgement, which may have been lost. Other protocols are left alone: their packets
//! must not come twice.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use outlast_base::time::Instant;

/// The protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// Connections that are remembered for one peer; the one that was silent longest makes room.
const MOST_CONNECTIONS: usize = 256;

/// The last segments to one peer, by the ports.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    segments: BTreeMap<[u8; 4], (Instant, Vec<u8>)>,
}

impl Recent {
    /// Notes a packet that was sent.
    pub(crate) fn note(&mut self, now: Instant, next: u8, payload: Vec<u8>) {
        let Some(&ports) = payload.first_chunk::<4>().filter(|_| next == TCP) else {
            return;
        };
        if self.segments.len() >= MOST_CONNECTIONS && !self.segments.contains_key(&ports) {
            let oldest = self.segments.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(ports, _)| *ports) {
                self.segments.remove(&oldest);
            }
        }
        self.segments.insert(ports, (now, payload));
    }

    /// Takes all segments.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Vec<u8>> + use<> {
        let segments = core::mem::take(&mut self.segments);
        segments.into_values().map(|(_, payload)| payload)
    }
}
