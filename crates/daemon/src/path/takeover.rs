//! The takeover of connections from the kernel, as if the gateway had seen every packet.
//!
//! Connections with data in flight, now or a moment ago, are taken over at once, and as many of the others as the gateway
//! asks after an outage whether their far hosts wait: those that were heard last. The rest are taken over with their
//! next packet: nothing that they have sent can have been lost.

use super::as_carried;
use super::kernel::is_one_sided;
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Gateway, MOST_ASKED_AT_REST};
use outlast_gateway::links::{Direction, LinkId};
use outlast_gateway::tracking::{FlowKey, Phase, TcpFlow};
use outlast_linux::tracker::{Acknowledgement, Recorded, TrackedFlow, Tracker};
use outlast_wire::{Packet, TcpFlags};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

/// An acknowledgement older than this, and than the connection's patience, counts as arrived.
const RECENT: Duration = Duration::from_secs(5);

/// Connections, and their packets that may not have arrived.
#[derive(Debug, Default)]
pub(crate) struct Takeover {
    flows: BTreeMap<FlowKey, KnownFlow>,
    crossed: Vec<Crossed>,
}

#[derive(Debug)]
struct KnownFlow {
    tracked: TrackedFlow,
    /// As it was before the oldest of its packets.
    before: TcpFlow,
}

/// A packet that has crossed.
#[derive(Debug)]
struct Crossed {
    at: Instant,
    direction: Direction,
    key: FlowKey,
    packet: Packet,
}

impl Takeover {
    /// What `tracker` knows of those connections for which `is_behind` holds. Their packets do not
    /// cross without the gateway any more.
    pub(super) fn read(
        tracker: &Tracker,
        now: Instant,
        mtu: u32,
        is_behind: impl Fn(&FlowKey) -> bool,
    ) -> Self {
        let mut takeover = Self::default();
        let mut idle = BinaryHeap::new();
        tracker.flows(&is_behind, |key, tracked| {
            if is_of_use(now, &tracked) {
                takeover.take(key, tracked);
            } else if is_open(&tracked) {
                idle.push(Reverse((tracked.heard_at, key)));
                if idle.len() > MOST_ASKED_AT_REST {
                    idle.pop();
                }
            }
        });
        for Reverse((_, key)) in idle {
            // It may have ended meanwhile.
            let tracked = tracker.flow(&key).ok().flatten();
            if let Some(tracked) = tracked.filter(is_open) {
                takeover.take(key, tracked);
            }
        }
        takeover.take_packets(tracker, mtu, |key| {
            let tracked = is_behind(key).then(|| tracker.flow(key).ok().flatten())?;
            tracked.filter(|tracked| tracked.tcp.phase == Phase::Opening)
        });
        takeover
    }

    /// What `tracker` knows of those of these connections of which only the near host was heard.
    pub(super) fn read_one_sided<'k>(
        tracker: &Tracker,
        mtu: u32,
        keys: impl IntoIterator<Item = &'k FlowKey>,
    ) -> Self {
        let mut takeover = Self::default();
        for key in keys {
            let flow = tracker.flow(key).ok().flatten();
            if let Some(tracked) = flow.filter(is_one_sided) {
                takeover.take(*key, tracked);
            }
        }
        if !takeover.flows.is_empty() {
            takeover.take_packets(tracker, mtu, |_| None);
        }
        takeover
    }

    fn take(&mut self, key: FlowKey, tracked: TrackedFlow) {
        let before = tracked.tcp;
        self.flows.insert(key, KnownFlow { tracked, before });
    }

    /// Reads the packets; `opening` gives a connection that is not taken yet and whose SYN is recorded, if it is of use.
    fn take_packets(
        &mut self,
        tracker: &Tracker,
        mtu: u32,
        opening: impl Fn(&FlowKey) -> Option<TrackedFlow>,
    ) {
        tracker.recorded(|recorded| self.take_data(&recorded, mtu, &opening));
        self.take_acknowledgements(mtu);
        // Stable: what the recorder has is in the order in which it crossed.
        self.crossed.sort_by_key(|crossed| crossed.at);
    }

    /// Connections taken.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Packets taken.
    pub(crate) const fn packets(&self) -> usize {
        self.crossed.len()
    }

    fn take_data(
        &mut self,
        recorded: &Recorded<'_>,
        mtu: u32,
        opening: impl Fn(&FlowKey) -> Option<TrackedFlow>,
    ) {
        let Ok(packet) = Packet::parse(Bytes::copy_from_slice(recorded.bytes)) else {
            return;
        };
        let Some(key) = FlowKey::of_tcp(packet.header(), Direction::ToLink) else {
            return;
        };
        let opens = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
        if opens
            && !self.flows.contains_key(&key)
            && let Some(tracked) = opening(&key)
        {
            self.take(key, tracked);
        }
        let Some(KnownFlow { tracked, before }) = self.flows.get_mut(&key) else {
            return;
        };
        if recorded.at < tracked.opened_at {
            return;
        }
        let packets = match recorded.left_out {
            0 => whole(packet, mtu, recorded.segment_size),
            left_out => Vec::from_iter(first(packet, recorded.segment_size, left_out)),
        };
        for packet in packets {
            let Some(tcp) = packet.tcp() else { continue };
            let (seq, acked) = (tcp.seq, tracked.tcp.near.acked);
            if !(seq + packet.sequence_len()).after(acked) {
                continue;
            }
            let seq = if acked.after(seq) { acked } else { seq };
            let near = &mut before.near;
            if near.next.after(seq) {
                near.next = seq;
                near.fin = near.fin.filter(|fin| !fin.after(seq));
            }
            self.crossed.push(Crossed {
                at: recorded.at,
                direction: Direction::ToLink,
                key,
                packet,
            });
        }
    }

    fn take_acknowledgements(&mut self, mtu: u32) {
        for (key, KnownFlow { tracked, .. }) in &self.flows {
            let both = [
                (Direction::ToLink, tracked.newest_to_link),
                (Direction::FromLink, tracked.newest_from_link),
            ];
            for (direction, newest) in both {
                let parsed = newest.and_then(|newest| parsed(&newest));
                let (Some(newest), Some(packet)) = (newest, parsed) else {
                    continue;
                };
                let packets = whole(packet, mtu, 0).into_iter();
                self.crossed.extend(packets.map(|packet| Crossed {
                    at: newest.at,
                    direction,
                    key: *key,
                    packet,
                }));
            }
        }
    }

    /// Hands connections and packets to `gateway`; `link_to` gives the link of a far host.
    pub(crate) fn hand_to(
        self,
        now: Instant,
        gateway: &mut Gateway,
        link_to: impl Fn(IpAddr) -> LinkId,
    ) {
        let link_of = |key: &FlowKey| link_to(key.far.ip());
        for (key, taken) in &self.flows {
            gateway.adopt(now, link_of(key), *key, taken.before);
        }
        for crossed in &self.crossed {
            let link = link_of(&crossed.key);
            gateway.recall(crossed.at, link, crossed.direction, &crossed.packet);
        }
        for (key, taken) in &self.flows {
            gateway.adopt(now, link_of(key), *key, taken.tracked.tcp);
        }
    }
}

/// Whether something of the connection may have been lost by now.
fn is_of_use(now: Instant, flow: &TrackedFlow) -> bool {
    let tcp = &flow.tcp;
    let recent = RECENT.max(tcp.rtt.patience());
    let is_recent = |newest: &Acknowledgement| now.since(newest.at) < recent;
    is_open(flow)
        && (tcp.near.has_outstanding()
            || tcp.far.has_outstanding()
            || flow.newest_to_link.as_ref().is_some_and(is_recent))
}

/// Whether both hosts take the connection for open.
fn is_open(flow: &TrackedFlow) -> bool {
    flow.is_proven && flow.tcp.phase == Phase::Established
}

/// The newest pure acknowledgement of the far host.
pub(super) fn newest_from_link(flow: &TrackedFlow) -> Option<Packet> {
    parsed(flow.newest_from_link.as_ref()?)
}

fn parsed(newest: &Acknowledgement) -> Option<Packet> {
    Packet::parse(Bytes::copy_from_slice(newest.bytes())).ok()
}

/// The first packet of a super-segment whose last `left_out` bytes are not there; none if they are
/// part of it.
fn first(packet: Packet, segment_size: u16, left_out: u16) -> Option<Packet> {
    let there = packet.total_len().checked_sub(left_out.into())?;
    let first = packet.segment_by(segment_size).ok()?.next()?;
    (first.total_len() <= there).then_some(first)
}

/// The packets that the link carries for `packet`, which stands for several of `segment_size` bytes
/// of payload, or for itself; none for one that was damaged before it came here, which no checksum
/// of ours is to make good.
fn whole(packet: Packet, mtu: u32, segment_size: u16) -> Vec<Packet> {
    let is_partial = packet.has_partial_checksum();
    if segment_size > 0
        && packet.header().payload_len > segment_size.into()
        && let Ok(segments) = packet.segment_by(segment_size)
    {
        return segments.collect();
    }
    let is_cut = packet.total_len() > mtu;
    if !is_partial && !is_cut && !packet.checksums_ok() {
        return Vec::new();
    }
    as_carried(packet, mtu, is_partial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::{IpHeader, SeqNumber, TcpHeader};
    use std::net::Ipv4Addr;

    #[test]
    fn of_a_super_segment_that_is_not_all_there_the_first_packet_is_taken() {
        const SIZE: u16 = 1000;
        let ip = IpHeader::new(
            Ipv4Addr::new(192, 0, 2, 1).into(),
            Ipv4Addr::new(198, 51, 100, 2).into(),
        );
        let header = TcpHeader {
            seq: SeqNumber(7),
            ..TcpHeader::default()
        };
        let super_segment = |payload: &[u8]| Packet::tcp_segment(ip, header.clone(), payload);
        let mut there = vec![5; SIZE.into()];
        let expected = super_segment(&there).to_bytes();
        there.resize(2700, 0);
        let bytes = super_segment(&there).to_bytes();
        let taken = |left_out| {
            let packet = Packet::parse(bytes.clone()).expect("sound");
            first(packet, SIZE, left_out).map(|first| first.to_bytes())
        };
        assert_eq!(taken(1700), Some(expected.clone()));
        assert_eq!(taken(700), Some(expected));
        assert_eq!(taken(1701), None, "zeros are nobody's data");
        assert_eq!(taken(u16::MAX), None);
    }
}
