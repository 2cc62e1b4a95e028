//! Puts packets of tunnels together that came in fragments (RFC 8200, section 4.5).
//!
//! A tunnel's entry cuts a packet that every link carries where the outer header makes it too long (RFC 2473,
//! section 7.1). Kernels put together what is for protocols that they know; most know no IPv6 in IPv6.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv6Addr};
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// How long the rest of a packet may take (RFC 8200, section 4.5).
const LIFETIME: Duration = Duration::from_secs(60);
/// Packets of which fragments wait; the oldest goes first.
const PACKETS: usize = 64;
/// Fragments of one packet: the longest has no more on the smallest link.
const FRAGMENTS: usize = 64;

const FIXED: usize = 40;
const HEADERS: usize = FIXED + 8;
const NEXT_HEADER_AT: usize = 6;
const FRAGMENT_HEADER: u8 = 44;
const IPV6_IN_IP: u8 = 41;
/// In the field of the fragment header.
const MORE: u16 = 1;
const OFFSET: u16 = !7;

/// Fragments of tunnels' packets, until they are whole. At most 64 packets of 64 fragments wait.
#[derive(Debug, Default)]
pub struct Reassembly {
    packets: BTreeMap<Key, Partial>,
    /// Until when each of them waits, the oldest first.
    begun: VecDeque<(Instant, Key)>,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Reassembled {
    /// It is no fragment of a tunnel's packet.
    Other(Packet),
    /// It waits for the rest, or nothing can be made of it.
    Kept,
    /// It was the last one that was missing.
    Whole(Packet),
}

/// Source, destination and identification.
type Key = (Ipv6Addr, Ipv6Addr, u32);

#[derive(Debug, Default)]
struct Partial {
    /// The first fragment's header, once that is there.
    header: Option<Bytes>,
    /// Payload by its offset in bytes.
    pieces: BTreeMap<usize, Bytes>,
    /// Where the payload ends, once that is known.
    end: Option<usize>,
    /// Fragments contradict each other: all are dropped (RFC 5722).
    is_void: bool,
}

impl Reassembly {
    /// A packet comes to this host.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) -> Reassembled {
        let Some(fragment) = Fragment::of(&packet) else {
            return Reassembled::Other(packet);
        };
        self.expire(now);
        let Fragment { key, .. } = fragment;
        if !self.packets.contains_key(&key) {
            self.make_room();
            self.packets.insert(key, Partial::default());
            self.begun.push_back((now + LIFETIME, key));
        }
        let partial = self.packets.get_mut(&key);
        match partial.and_then(|partial| partial.add(fragment)) {
            Some(whole) => {
                self.packets.remove(&key);
                self.begun.retain(|(_, other)| *other != key);
                // A tunnel's entry has made it, or somebody else: then it is none.
                Packet::parse(whole).map_or(Reassembled::Kept, Reassembled::Whole)
            }
            None => Reassembled::Kept,
        }
    }

    /// How many packets are not whole yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.packets.len()
    }

    fn expire(&mut self, now: Instant) {
        while let Some(&(until, key)) = self.begun.front()
            && until <= now
        {
            self.begun.pop_front();
            self.packets.remove(&key);
        }
    }

    fn make_room(&mut self) {
        while self.packets.len() >= PACKETS {
            let Some((_, key)) = self.begun.pop_front() else {
                break;
            };
            self.packets.remove(&key);
        }
    }
}

impl Partial {
    /// One fragment more; the packet, if it was the last one.
    fn add(&mut self, fragment: Fragment) -> Option<Bytes> {
        if self.is_void {
            return None;
        }
        let (start, end) = (fragment.start, fragment.start + fragment.payload.len());
        if self.pieces.get(&start) == Some(&fragment.payload) {
            return None;
        }
        let contradicts = match (self.end, fragment.is_last) {
            (Some(known), true) => known != end,
            (Some(known), false) => end > known,
            (None, true) => self.length() > end,
            (None, false) => false,
        };
        if contradicts || self.overlaps(start, end) || self.pieces.len() >= FRAGMENTS {
            self.pieces.clear();
            self.is_void = true;
            return None;
        }
        if fragment.is_last {
            self.end = Some(end);
        }
        if start == 0 {
            self.header = Some(fragment.header);
        }
        self.pieces.insert(start, fragment.payload);
        self.whole()
    }

    /// Where the last piece that is there ends.
    fn length(&self) -> usize {
        let last = self.pieces.last_key_value();
        last.map_or(0, |(start, piece)| start + piece.len())
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        let before = self.pieces.range(..=start).next_back();
        let after = self.pieces.range(start..).next();
        before.is_some_and(|(at, piece)| at + piece.len() > start)
            || after.is_some_and(|(at, _)| *at < end)
    }

    fn whole(&self) -> Option<Bytes> {
        let (header, end) = (self.header.as_ref()?, self.end?);
        let there: usize = self.pieces.values().map(Bytes::len).sum();
        if there != end {
            return None;
        }
        let length = u16::try_from(end).ok()?;
        let mut whole = Vec::with_capacity(FIXED + end);
        whole.extend_from_slice(&header[..FIXED]);
        whole[4..6].copy_from_slice(&length.to_be_bytes());
        whole[NEXT_HEADER_AT] = IPV6_IN_IP;
        for piece in self.pieces.values() {
            whole.extend_from_slice(piece);
        }
        Some(whole.into())
    }
}

/// A fragment of a tunnel's packet.
#[derive(Debug)]
struct Fragment {
    key: Key,
    start: usize,
    is_last: bool,
    header: Bytes,
    payload: Bytes,
}

impl Fragment {
    /// `None` of what is none, or cannot be part of a packet.
    fn of(packet: &Packet) -> Option<Self> {
        let ip = packet.header().ip;
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (ip.source, ip.destination) else {
            return None;
        };
        let bytes = packet.bytes()?;
        let header = bytes.first_chunk::<HEADERS>()?;
        if (header[NEXT_HEADER_AT], header[FIXED]) != (FRAGMENT_HEADER, IPV6_IN_IP) {
            return None;
        }
        let field = u16::from_be_bytes([header[FIXED + 2], header[FIXED + 3]]);
        let payload = bytes.slice(HEADERS..);
        let is_last = field & MORE == 0;
        let start = usize::from(field & OFFSET);
        let is_whole_units = payload.len() % 8 == 0;
        let fits = start + payload.len() <= usize::from(u16::MAX);
        if payload.is_empty() || !fits || (!is_last && !is_whole_units) {
            return None;
        }
        let identification = bytes[FIXED + 4..].first_chunk::<4>()?;
        Some(Self {
            key: (source, destination, u32::from_be_bytes(*identification)),
            start,
            is_last,
            header: bytes.slice(..HEADERS),
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use outlast_wire::mobile_ipv6::encapsulate;
    use outlast_wire::{IpHeader, UdpHeader};

    const ENTRY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);
    const EXIT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

    fn tunnelled(length: usize) -> Packet {
        let ip = IpHeader::new(ENTRY.into(), "2001:db8:50::5".parse().expect("literal"));
        let udp = UdpHeader {
            source_port: 1000,
            destination_port: 2000,
        };
        let payload: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let inner = Packet::udp_datagram(ip, udp, &payload);
        encapsulate(inner, ENTRY, EXIT).expect("room")
    }

    fn whole_of(reassembly: &mut Reassembly, fragments: &[Packet]) -> Vec<Packet> {
        let now = Instant::ZERO;
        let results = fragments
            .iter()
            .map(|one| reassembly.handle_packet(now, one.clone()));
        let whole = results.filter_map(|result| match result {
            Reassembled::Whole(packet) => Some(packet),
            Reassembled::Kept => None,
            Reassembled::Other(packet) => panic!("{packet:?} is a fragment"),
        });
        whole.collect()
    }

    #[test]
    fn a_packet_is_whole_again_whatever_the_order_and_the_size() {
        for length in [1100, 1232, 1400, 9000, 60_000] {
            for mtu in [1280, 1400, 1500] {
                let packet = tunnelled(length);
                let mut fragments = packet.fragment_at_source(mtu, 7).expect("ours");
                assert!(fragments.iter().all(|one| one.total_len() <= mtu));
                if fragments.len() == 1 {
                    continue;
                }
                for turn in 0..fragments.len() {
                    fragments.rotate_left(1);
                    if turn % 2 == 0 {
                        fragments.reverse();
                    }
                    // One comes twice.
                    let again = fragments[0].clone();
                    let all = [core::slice::from_ref(&again), &fragments].concat();
                    let mut reassembly = Reassembly::default();
                    let whole = whole_of(&mut reassembly, &all);
                    assert_eq!(whole.len(), 1, "{length}, {mtu}");
                    assert_eq!(whole[0].to_bytes(), packet.to_bytes());
                    assert_eq!(reassembly.waiting(), 0);
                }
            }
        }
    }

    #[test]
    fn other_packets_are_left_alone() {
        let packet = tunnelled(100);
        let mut reassembly = Reassembly::default();
        let result = reassembly.handle_packet(Instant::ZERO, packet.clone());
        assert_eq!(result, Reassembled::Other(packet));
    }

    #[test]
    fn fragments_that_overlap_make_no_packet() {
        let fragments = tunnelled(2000).fragment_at_source(1280, 7).expect("ours");
        let others = tunnelled(2000).fragment_at_source(1300, 7).expect("ours");
        let mixed = vec![others[0].clone(), fragments[1].clone(), others[1].clone()];
        let mut reassembly = Reassembly::default();
        assert_eq!(whole_of(&mut reassembly, &mixed), []);
    }

    #[test]
    fn a_flood_of_first_fragments_takes_no_more_room_than_there_is() {
        let mut reassembly = Reassembly::default();
        for identification in 0..10_000 {
            let fragments = tunnelled(2000).fragment_at_source(1280, identification);
            let first = fragments.expect("ours").swap_remove(0);
            assert_eq!(whole_of(&mut reassembly, &[first]), []);
        }
        assert_eq!(reassembly.waiting(), PACKETS);
        assert_eq!(reassembly.begun.len(), PACKETS);
        // Nothing of them is left after a minute.
        let fragments = tunnelled(2000).fragment_at_source(1280, 0).expect("ours");
        let later = Instant::ZERO + LIFETIME;
        let _ = reassembly.handle_packet(later, fragments[0].clone());
        assert_eq!(reassembly.waiting(), 1);
    }
}
