//! Hold for everything that is not TCP: UDP (and so QUIC and most tunnels), ICMP, ESP; and for a RST or
//! SYN amid a connection.
//!
//! Nothing is known of how most of these protocols recover, and much of what they carry is of no use
//! when it is late. So what the link would have dropped is sent once, in order, when the link is back,
//! and only what is no older than [`Limits::other_age`] then. What arrives meanwhile passes at once:
//! fresh packets never wait behind old ones.
//!
//! Two exceptions. The newest packet of each flow of a transport that numbers its packets, and
//! discards what is repeated or too old, waits for as long as the link is away: QUIC (RFC 9000, section
//! 12.3), WireGuard, ESP (RFC 4303, section 3.4.3), SCTP (RFC 9260, section 6.2) and DCCP. It can do no
//! harm, and its answer wakes a sender that has backed off. So do segments of TCP that stand alone. Past
//! the caps the oldest goes first.

use super::lifetime::Lifetime;
use crate::limits::Limits;
use crate::links::LinkId;
use alloc::collections::{BTreeMap, VecDeque};
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// Packets that wait for their link, of one interface.
#[derive(Debug, Default)]
pub(crate) struct OtherTraffic {
    waiting: VecDeque<Kept>,
    /// How many of them wait for each link.
    links: BTreeMap<LinkId, usize>,
    bytes: u64,
}

#[derive(Debug)]
struct Kept {
    link: LinkId,
    packet: Packet,
    since: Instant,
    lifetime: Lifetime,
}

impl OtherTraffic {
    /// Takes a packet in; returns how many older ones had to go for it.
    pub(crate) fn keep(
        &mut self,
        now: Instant,
        link: LinkId,
        packet: &Packet,
        limits: &Limits,
    ) -> u64 {
        let lifetime = Lifetime::of(packet);
        if matches!(lifetime, Lifetime::Newest(_)) {
            let same = |kept: &&mut Kept| kept.lifetime == lifetime;
            if let Some(last) = self.waiting.iter_mut().rfind(same) {
                last.lifetime = Lifetime::Brief;
            }
        }
        let mut evicted = self.drop_stale(now, limits.other_age);
        self.waiting.push_back(Kept {
            link,
            packet: packet.clone(),
            since: now,
            lifetime,
        });
        *self.links.entry(link).or_default() += 1;
        self.bytes += u64::from(packet.total_len());
        while self.waiting.len() > limits.other_packets || self.bytes > limits.other_bytes.0 {
            if self.remove(0).is_none() {
                break;
            }
            evicted += 1;
        }
        evicted
    }

    /// Drops what is older than `age` and not to be kept for longer, from the front on; returns how many
    /// these were. Costs no more than what it drops, and those before it that last.
    pub(crate) fn drop_stale(&mut self, now: Instant, age: Duration) -> u64 {
        let (mut place, mut dropped) = (0, 0);
        while let Some(kept) = self.waiting.get(place)
            && now.since(kept.since) > age
        {
            if kept.lifetime == Lifetime::Brief {
                self.remove(place);
                dropped += 1;
            } else {
                place += 1;
            }
        }
        dropped
    }

    /// The oldest packet of a link for which `ready` holds.
    pub(crate) fn next(&mut self, ready: impl Fn(LinkId) -> bool) -> Option<(LinkId, Packet)> {
        if !self.has_waiting(&ready) {
            return None;
        }
        let place = self.waiting.iter().position(|kept| ready(kept.link))?;
        self.remove(place)
    }

    pub(crate) fn has_waiting(&self, ready: impl Fn(LinkId) -> bool) -> bool {
        self.links.keys().any(|link| ready(*link))
    }

    /// The links for which something waits.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.keys().copied()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn remove(&mut self, place: usize) -> Option<(LinkId, Packet)> {
        let Kept { link, packet, .. } = self.waiting.remove(place)?;
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
