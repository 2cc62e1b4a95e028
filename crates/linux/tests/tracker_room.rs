//! The kernel's table at its limits: 200,000 connections, and a flood of SYNs.

mod trial;

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::{FlowKey, Phase};
use outlast_linux::tracker::{Tracker, TrackerConfig};
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

/// As many as are to be tracked at once.
const CONNECTIONS: u32 = 200_000;
/// What one that is idle may cost.
const BYTES_PER_FLOW: u64 = 512;

fn ends(number: u32) -> [SocketAddr; 2] {
    let near = Ipv4Addr::from_bits(0x0a00_0000 + number / 50_000);
    let port = u16::try_from(10_000 + number % 50_000).expect("below 60,000");
    let far = Ipv4Addr::new(198, 51, 100, 2);
    [(near, port).into(), (far, 443).into()]
}

struct Room {
    tracker: Tracker,
    now: Instant,
}

impl Room {
    fn new() -> Option<Self> {
        Self::for_flows(TrackerConfig::default().flows)
    }

    fn for_flows(flows: u32) -> Option<Self> {
        let tracker = Tracker::load_for_trial(&TrackerConfig {
            flows,
            ..TrackerConfig::default()
        });
        Some(Self {
            tracker: tracker
                .inspect_err(|error| outlast_skip::skip(error.lack().what))
                .ok()?,
            now: Instant::from_millis(1_000),
        })
    }

    fn cross(&self, direction: Direction, number: u32, flags: TcpFlags, seq: u32, ack: u32) {
        let header = TcpHeader {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            ..TcpHeader::default()
        };
        trial::cross(&self.tracker, self.now, direction, ends(number), header, 0);
    }

    fn syn(&self, number: u32) {
        self.cross(Direction::ToLink, number, TcpFlags::SYN, number, 0);
    }

    /// A whole handshake.
    fn open(&self, number: u32) {
        let both = TcpFlags::SYN | TcpFlags::ACK;
        self.syn(number);
        self.cross(Direction::FromLink, number, both, 7, number.wrapping_add(1));
        let (seq, ack) = (number.wrapping_add(1), 8);
        self.cross(Direction::ToLink, number, TcpFlags::ACK, seq, ack);
    }

    fn is_established(&self, number: u32) -> bool {
        let [near, far] = ends(number);
        let flow = self.tracker.flow(&FlowKey { near, far }).expect("readable");
        flow.is_some_and(|flow| flow.is_proven && flow.tcp.phase == Phase::Established)
    }

    fn established(&self) -> u32 {
        let mut count = 0;
        self.tracker.flows(|_| true, |_, _| count += 1);
        count
    }
}

#[test]
fn a_flood_of_syns_displaces_no_connection_and_new_ones_are_tracked() {
    let Some(room) = Room::new() else { return };
    (0..CONNECTIONS).for_each(|number| room.open(number));
    assert_eq!(room.established(), CONNECTIONS);
    let places = u64::from(TrackerConfig::default().flows);
    let memory = room.tracker.memory().expect("told").connections;
    assert!(
        memory.0 <= places * BYTES_PER_FLOW,
        "{memory:?} for {places} places"
    );
    // More of them than there is room for anybody.
    (CONNECTIONS..3 * CONNECTIONS).for_each(|number| room.syn(number));
    assert_eq!(room.established(), CONNECTIONS);
    assert!(room.is_established(17));
    for number in 3 * CONNECTIONS..3 * CONNECTIONS + 100 {
        room.open(number);
        assert!(room.is_established(number), "{number}");
    }
}

#[test]
fn the_connection_that_was_used_least_recently_gives_way() {
    let Some(mut room) = Room::new() else { return };
    let more = TrackerConfig::default().flows + 50_000;
    for number in 0..more {
        room.now += Duration::from_micros(10);
        room.open(number);
        // One is used all the time.
        if number.is_multiple_of(1_000) {
            room.cross(Direction::ToLink, 0, TcpFlags::ACK, 1, 8);
        }
    }
    assert!(room.is_established(0) && room.is_established(more - 1));
    assert_eq!(room.established(), TrackerConfig::default().flows);
    let evicted = room.tracker.counters().expect("readable").evicted;
    assert_eq!(evicted, 50_000);
}

#[test]
fn a_closed_connection_gives_way_first() {
    let Some(mut room) = Room::new() else { return };
    let flows = TrackerConfig::default().flows;
    let is_closed = |number: u32| number.is_multiple_of(16);
    for number in 0..flows {
        room.open(number);
        if is_closed(number) {
            let (rst, seq) = (TcpFlags::RST, number.wrapping_add(1));
            room.cross(Direction::ToLink, number, rst, seq, 0);
        }
    }
    room.now += Duration::from_secs(1);
    for number in flows..flows + flows / 16 {
        room.open(number);
        assert!(room.is_established(number), "{number}");
    }
    assert_eq!(room.established(), flows);
    assert_eq!(room.tracker.counters().expect("readable").evicted, 0);
    assert!((0..flows).all(|number| is_closed(number) != room.is_established(number)));
}

#[test]
fn a_connection_that_came_back_to_another_place_takes_the_short_way_again() {
    const FLOWS: u32 = 64;
    const SEGMENTS: u32 = 40;
    let Some(mut room) = Room::for_flows(FLOWS) else {
        return;
    };
    // What only continues a stream is counted later (`take_next`): how many segments were not.
    let counted = |room: &Room| {
        let before = room.tracker.counters().expect("readable").tracked;
        for number in 0..SEGMENTS {
            let header = TcpHeader {
                seq: SeqNumber(8 + 100 * number),
                ack: SeqNumber(1),
                flags: TcpFlags::ACK,
                ..TcpHeader::default()
            };
            let direction = Direction::FromLink;
            trial::cross(&room.tracker, room.now, direction, ends(0), header, 100);
        }
        let counters = room.tracker.counters().expect("readable");
        assert_eq!((counters.odd, counters.not_tracked), (0, 0));
        counters.tracked - before
    };
    room.open(0);
    assert!(counted(&room) < 3);
    for number in 1..=FLOWS {
        room.now += Duration::from_millis(10);
        room.open(number);
    }
    assert!(!room.is_established(0), "it gave way");
    room.open(0);
    // A processor finds out with one segment that it was wrong about the place.
    let processors = std::thread::available_parallelism().expect("known").get() as u64;
    let again = counted(&room);
    assert!(again < 3 + processors, "{again}");
    let [near, far] = ends(0);
    let flow = room.tracker.flow(&FlowKey { near, far }).expect("readable");
    let next = flow.map(|flow| flow.tcp.far.next);
    assert_eq!(next, Some(SeqNumber(8 + 100 * SEGMENTS)));
}

#[test]
fn connections_that_two_processors_make_give_way_and_are_read_are_never_mixed() {
    const FLOWS: u32 = 64;
    const EACH: u32 = 50_000;
    let Some(room) = Room::for_flows(FLOWS) else {
        return;
    };
    // A connection's first sequence number tells which it is.
    let number_of = |key: FlowKey| {
        let port = u32::from(key.near.port()) - 10_000;
        let IpAddr::V4(near) = key.near.ip() else {
            panic!("{key:?}")
        };
        (near.to_bits() - 0x0a00_0000) * 50_000 + port
    };
    let running = AtomicU32::new(2);
    let mut read = 0_u64;
    std::thread::scope(|threads| {
        for half in 0..2 {
            let (room, running) = (&room, &running);
            threads.spawn(move || {
                (0..EACH).for_each(|number| room.open(2 * number + half));
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            room.tracker.flows(
                |_| true,
                |key, flow| {
                    let expected = SeqNumber(number_of(key) + 1);
                    assert_eq!(flow.tcp.near.next, expected, "{key:?}");
                    read += 1;
                },
            );
        }
    });
    assert!(read > 10_000, "{read}");
    let mut known = Vec::new();
    room.tracker.flows(|_| true, |key, _| known.push(key));
    // One that finds its bucket full, or its place in use, waits for its next segment.
    let most = FLOWS as usize;
    assert!(
        known.len() > most / 2 && known.len() <= most,
        "{}",
        known.len()
    );
    assert!(known.iter().all(|key| room.is_established(number_of(*key))));
    let evicted = room.tracker.counters().expect("readable").evicted;
    assert!(evicted <= u64::from(2 * EACH - FLOWS / 2), "{evicted}");
}
