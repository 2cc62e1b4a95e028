//! Hold for everything that is not an established TCP connection: UDP (and so QUIC and most
//! tunnels), ICMP, ESP, the SYN of a connection that is opened while the link is down.
//!
//! Nothing is known of how these protocols recover, so what the link would have dropped is sent
//! once, in order, when it is back. Past the caps the oldest goes first: what such protocols
//! send again, they send fresher.

use crate::limits::Limits;
use crate::link::LinkId;
use alloc::collections::VecDeque;
use outlast_wire::Packet;

/// Packets that wait for their link, of one interface.
#[derive(Debug, Default)]
pub(crate) struct OtherTraffic {
    waiting: VecDeque<(LinkId, Packet)>,
    bytes: u64,
}

impl OtherTraffic {
    /// Takes a packet in; returns how many older ones had to go for it.
    pub(crate) fn keep(&mut self, link: LinkId, packet: &Packet, limits: &Limits) -> u64 {
        self.waiting.push_back((link, packet.clone()));
        self.bytes += u64::from(packet.total_len());
        let mut evicted = 0;
        while self.waiting.len() > limits.other_packets || self.bytes > limits.other_bytes.0 {
            let Some((_, oldest)) = self.waiting.pop_front() else {
                break;
            };
            self.bytes -= u64::from(oldest.total_len());
            evicted += 1;
        }
        evicted
    }

    /// The oldest packet of a link for which `ready` holds.
    pub(crate) fn next(&mut self, ready: impl Fn(LinkId) -> bool) -> Option<(LinkId, Packet)> {
        let place = self.waiting.iter().position(|(link, _)| ready(*link))?;
        let (link, packet) = self.waiting.remove(place)?;
        self.bytes -= u64::from(packet.total_len());
        Some((link, packet))
    }

    pub(crate) fn has_waiting(&self, ready: impl Fn(LinkId) -> bool) -> bool {
        self.waiting.iter().any(|(link, _)| ready(*link))
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
