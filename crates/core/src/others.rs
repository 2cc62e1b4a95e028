//! Hold for everything that is not TCP: UDP (and so QUIC and most tunnels), ICMP, ESP; and for a RST.
//!
//! Nothing is known of how these protocols recover, so what the link would have dropped is sent
//! once, in order, when it is back. Past the caps the oldest goes first: what such protocols
//! send again, they send fresher.

use crate::limits::Limits;
use crate::link::LinkId;
use alloc::collections::{BTreeMap, VecDeque};
use outlast_wire::Packet;

/// Packets that wait for their link, of one interface.
#[derive(Debug, Default)]
pub(crate) struct OtherTraffic {
    waiting: VecDeque<(LinkId, Packet)>,
    /// How many of them wait for each link.
    links: BTreeMap<LinkId, usize>,
    bytes: u64,
}

impl OtherTraffic {
    /// Takes a packet in; returns how many older ones had to go for it.
    pub(crate) fn keep(&mut self, link: LinkId, packet: &Packet, limits: &Limits) -> u64 {
        self.waiting.push_back((link, packet.clone()));
        *self.links.entry(link).or_default() += 1;
        self.bytes += u64::from(packet.total_len());
        let mut evicted = 0;
        while self.waiting.len() > limits.other_packets || self.bytes > limits.other_bytes.0 {
            if self.remove(0).is_none() {
                break;
            }
            evicted += 1;
        }
        evicted
    }

    /// The oldest packet of a link for which `ready` holds.
    pub(crate) fn next(&mut self, ready: impl Fn(LinkId) -> bool) -> Option<(LinkId, Packet)> {
        if !self.has_waiting(&ready) {
            return None;
        }
        let place = self.waiting.iter().position(|(link, _)| ready(*link))?;
        self.remove(place)
    }

    pub(crate) fn has_waiting(&self, ready: impl Fn(LinkId) -> bool) -> bool {
        self.links.keys().any(|link| ready(*link))
    }

    pub(crate) fn wait_for(&self, link: LinkId) -> bool {
        self.links.contains_key(&link)
    }

    /// The links for which something waits.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.keys().copied()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn remove(&mut self, place: usize) -> Option<(LinkId, Packet)> {
        let (link, packet) = self.waiting.remove(place)?;
        self.bytes -= u64::from(packet.total_len());
        if let Some(count) = self.links.get_mut(&link) {
            *count -= 1;
            if *count == 0 {
                self.links.remove(&link);
            }
        }
        Some((link, packet))
    }
}
