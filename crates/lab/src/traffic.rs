//! What the link tells of connections: bytes sent again, and bytes delivered for the first time.

use crate::delivery::DeliveryLog;
use outlast_base::time::Instant;
use outlast_link::Way;
use outlast_wire::{Packet, SeqNumber, TcpFlags, Transport};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Connections told apart; further ones are not looked into.
const MAX_STREAMS: usize = 4_096;
/// Stretches of one stream between which bytes are missing; more are taken for one.
const MAX_STRETCHES: usize = 4_096;

/// The traffic of one way of the link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    streams: BTreeMap<StreamKey, Stream>,
    retransmitted: u64,
    delivered: DeliveryLog,
}

/// One direction of one connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct StreamKey {
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

/// Sequence space of one direction of a connection, unwrapped to 64 bits.
#[derive(Clone, Debug)]
struct Stream {
    /// A sequence number and its place in the stream: the end of the highest byte sent.
    anchor: (SeqNumber, u64),
    delivered: Stretches,
}

/// The traffic of both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct BothWays {
    to_mobile: Traffic,
    to_fixed: Traffic,
}

impl BothWays {
    pub(crate) fn way(&self, way: Way) -> &Traffic {
        match way {
            Way::ToMobile => &self.to_mobile,
            Way::ToFixed => &self.to_fixed,
        }
    }

    pub(crate) fn way_mut(&mut self, way: Way) -> &mut Traffic {
        match way {
            Way::ToMobile => &mut self.to_mobile,
            Way::ToFixed => &mut self.to_fixed,
        }
    }

    /// The way that carried more payload: the answer to a request counts, not the request.
    pub(crate) fn busier(&self) -> Way {
        let delivered = |way| self.way(way).delivered.total();
        match delivered(Way::ToFixed) > delivered(Way::ToMobile) {
            true => Way::ToFixed,
            false => Way::ToMobile,
        }
    }
}

impl Traffic {
    /// The sending host has put `packet` on its way.
    pub(crate) fn sent(&mut self, packet: &Packet) {
        let header = packet.header();
        let (Some(tcp), length) = (packet.tcp(), u64::from(header.payload_len)) else {
            return;
        };
        let Some(key) = key(packet) else { return };
        let first = tcp.seq + u32::from(tcp.has(TcpFlags::SYN));
        if tcp.has(TcpFlags::SYN) && self.streams.get(&key).is_some_and(|s| s.begins_anew(first)) {
            self.streams.remove(&key);
        }
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&key) {
            return;
        }
        let stream = self
            .streams
            .entry(key)
            .or_insert_with(|| Stream::new(first));
        let highest = stream.anchor.1;
        let start = stream.place(first);
        let end = start + length;
        self.retransmitted += highest.min(end).saturating_sub(start);
        if end > highest {
            stream.anchor = (first + header.payload_len, end);
        }
    }

    /// The receiving host gets `packet`.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Packet) {
        let length = u64::from(packet.header().payload_len);
        let new = match (&packet.header().transport, packet.tcp()) {
            (_, Some(tcp)) => {
                let Some(stream) = key(packet).and_then(|key| self.streams.get_mut(&key)) else {
                    return;
                };
                let start = stream.place(tcp.seq + u32::from(tcp.has(TcpFlags::SYN)));
                stream.delivered.insert(start, start + length)
            }
            (Transport::Udp(_), _) => length,
            _ => 0,
        };
        self.delivered.record(now, new);
    }

    /// TCP payload bytes that the sending host sent again.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// When the receiving host got payload that it did not have.
    pub(crate) fn delivered(&self) -> &DeliveryLog {
        &self.delivered
    }
}

impl Stream {
    /// Places start far from zero, so that what was sent before the first segment seen, and comes
    /// late, has a place too.
    const ORIGIN: u64 = 1 << 32;

    fn new(first: SeqNumber) -> Self {
        Self {
            anchor: (first, Self::ORIGIN),
            delivered: Stretches::default(),
        }
    }

    fn place(&self, seq: SeqNumber) -> u64 {
        let (anchor, place) = self.anchor;
        place.saturating_add_signed(seq.distance_from(anchor).into())
    }

    /// Whether a SYN whose first byte is `first` opens a new connection between the same ports,
    /// rather than being the old one's sent again.
    fn begins_anew(&self, first: SeqNumber) -> bool {
        self.place(first) != Self::ORIGIN
    }
}

fn key(packet: &Packet) -> Option<StreamKey> {
    let tcp = packet.tcp()?;
    let ip = packet.header().ip;
    Some(StreamKey {
        source: (ip.source, tcp.source_port),
        destination: (ip.destination, tcp.destination_port),
    })
}

/// A set of places, as disjoint stretches that do not touch.
#[derive(Clone, Debug, Default)]
struct Stretches {
    /// Start to end.
    stretches: BTreeMap<u64, u64>,
}

impl Stretches {
    /// Adds `start..end`; how many places of it are new.
    fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut low, mut high, mut known) = (start, end, 0);
        // From the last stretch that begins at or before `end`, backwards.
        while let Some((&from, &to)) = self.stretches.range(..=end).next_back() {
            if to < start {
                break;
            }
            known += to.min(end).saturating_sub(from.max(start));
            low = low.min(from);
            high = high.max(to);
            self.stretches.remove(&from);
        }
        self.stretches.insert(low, high);
        if self.stretches.len() > MAX_STRETCHES {
            self.close_first_gap();
        }
        end - start - known
    }

    fn close_first_gap(&mut self) {
        if let Some((first, _)) = self.stretches.pop_first()
            && let Some((_, end)) = self.stretches.pop_first()
        {
            self.stretches.insert(first, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::{IpHeader, TcpHeader};

    fn segment(seq: u32, flags: TcpFlags, length: usize) -> Packet {
        let ip = IpHeader::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let tcp = TcpHeader {
            seq: SeqNumber(seq),
            flags,
            ..TcpHeader::default()
        };
        Packet::tcp_segment(ip, tcp, &vec![0; length])
    }

    fn data(seq: u32, length: usize) -> Packet {
        segment(seq, TcpFlags::ACK, length)
    }

    #[test]
    fn only_bytes_that_were_sent_before_count_as_retransmitted() {
        let mut traffic = Traffic::default();
        traffic.sent(&segment(99, TcpFlags::SYN, 0));
        traffic.sent(&segment(99, TcpFlags::SYN, 0));
        traffic.sent(&data(100, 50));
        traffic.sent(&data(150, 50));
        assert_eq!(traffic.retransmitted(), 0);
        traffic.sent(&data(100, 60));
        assert_eq!(traffic.retransmitted(), 60);
        traffic.sent(&data(180, 40));
        assert_eq!(traffic.retransmitted(), 80, "20 of those 40 bytes are new");
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut traffic = Traffic::default();
        for seq in [u32::MAX - 99, 0, 100, u32::MAX - 99] {
            let packet = data(seq, 100);
            traffic.sent(&packet);
            traffic.arrived(Instant::ZERO, &packet);
        }
        assert_eq!(
            (traffic.retransmitted(), traffic.delivered().total()),
            (100, 300)
        );
    }

    #[test]
    fn filling_a_hole_is_new_and_repeating_is_not() {
        let mut traffic = Traffic::default();
        let arrive = |traffic: &mut Traffic, seq, length| {
            let before = traffic.delivered().total();
            traffic.arrived(Instant::ZERO, &data(seq, length));
            traffic.delivered().total() - before
        };
        for seq in [100, 200, 300] {
            traffic.sent(&data(seq, 100));
        }
        assert_eq!(arrive(&mut traffic, 300, 100), 100);
        assert_eq!(arrive(&mut traffic, 100, 100), 100);
        assert_eq!(arrive(&mut traffic, 300, 100), 0);
        assert_eq!(arrive(&mut traffic, 100, 300), 100, "only the hole is new");
    }

    #[test]
    fn a_new_connection_between_the_same_ports_starts_afresh() {
        let mut traffic = Traffic::default();
        traffic.sent(&segment(99, TcpFlags::SYN, 0));
        traffic.sent(&data(100, 50));
        traffic.sent(&segment(4_000_000, TcpFlags::SYN, 0));
        traffic.sent(&data(4_000_001, 50));
        assert_eq!(traffic.retransmitted(), 0);
    }

    #[test]
    fn scattered_stretches_are_bounded() {
        let mut stretches = Stretches::default();
        for n in 0..10_000 {
            assert_eq!(stretches.insert(n * 2, n * 2 + 1), 1);
        }
        assert_eq!(stretches.stretches.len(), MAX_STRETCHES);
    }
}
