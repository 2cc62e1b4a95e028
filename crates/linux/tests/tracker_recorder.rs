//! The flight recorder on a link that is faster than it may be: what it records, pauses and goes on
//! with.

mod trial;

use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::links::Direction;
use outlast_linux::tracker::{Tracker, TrackerConfig};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{Ipv4Addr, SocketAddr};

const SLOTS: u32 = 64;
/// A KiB is paid for in 1 ms.
const RATE_BITS_PER_S: u64 = 1024 * 8 * 1000;
/// What may be recorded at once, at that rate: a KiB of each slot.
const BURST: Duration = Duration::from_millis(64);
/// `SHORTEST_PAUSE` in `bpf/recorder.h`.
const PAUSE: Duration = Duration::from_millis(4 * 64);
/// Segments that are recorded at once behind a pause: a part of a burst, by `PROBE` in `bpf/recorder.h`.
const PROBE: u32 = SLOTS / 4;
/// Payload of a segment that has one KiB with its headers.
const PAYLOAD: usize = 1024 - 40;

/// One connection, whose near host sends, and the recorder.
struct Stream {
    tracker: Tracker,
    now: Instant,
    /// What the near host sends next.
    next: SeqNumber,
    /// Its port.
    port: u16,
}

impl Stream {
    /// An established connection, of which nothing is recorded yet.
    fn new() -> Option<Self> {
        let config = TrackerConfig {
            flows: 1024,
            slots: SLOTS,
            rate: BitRate::from_bits_per_second(RATE_BITS_PER_S).expect("not zero"),
            mark: 0,
        };
        let tracker = Tracker::load_for_trial(&config)
            .inspect_err(|error| outlast_skip::skip(error.lack().what))
            .ok()?;
        let mut stream = Self {
            tracker,
            now: Instant::from_millis(60_000),
            next: SeqNumber(101),
            port: 0,
        };
        stream.open(40_000);
        Some(stream)
    }

    /// From now on it is another connection, from this port.
    fn open(&mut self, port: u16) {
        self.port = port;
        self.next = SeqNumber(101);
        let stream = self;
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        stream.cross(Direction::ToLink, syn, SeqNumber(100), SeqNumber(0), 0);
        let (seq, acked) = (SeqNumber(500), SeqNumber(101));
        stream.cross(Direction::FromLink, syn | ack, seq, acked, 0);
        stream.cross(Direction::ToLink, ack, acked, SeqNumber(501), 0);
        // A window that is scaled.
        stream.cross(Direction::FromLink, ack, SeqNumber(501), acked, 0);
    }

    fn cross(
        &self,
        direction: Direction,
        flags: TcpFlags,
        seq: SeqNumber,
        ack: SeqNumber,
        payload: usize,
    ) {
        let header = TcpHeader {
            seq,
            ack,
            flags,
            options: TcpOptions {
                window_scale: flags.contains(TcpFlags::SYN).then_some(7),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        trial::cross(
            &self.tracker,
            self.now,
            direction,
            self.ends(),
            header,
            payload,
        );
    }

    fn ends(&self) -> [SocketAddr; 2] {
        [
            (Ipv4Addr::new(192, 0, 2, 1), self.port).into(),
            (Ipv4Addr::new(198, 51, 100, 2), 80).into(),
        ]
    }

    /// Sends segments of a KiB at once; how many of them are recorded.
    fn send(&mut self, segments: u32) -> u64 {
        let before = self.tracker.counters().expect("readable");
        for _ in 0..segments {
            let ack = SeqNumber(501);
            self.cross(Direction::ToLink, TcpFlags::ACK, self.next, ack, PAYLOAD);
            self.next += PAYLOAD as u32;
        }
        self.count();
        let after = self.tracker.counters().expect("readable");
        let recorded = after.recorded - before.recorded;
        let thinned = after.thinned - before.thinned;
        assert_eq!(recorded + thinned, u64::from(segments));
        assert_eq!(after.odd, 0);
        recorded
    }

    /// All are counted when a segment passes that says more.
    fn count(&self) {
        let (ack, behind) = (SeqNumber(501), self.next);
        self.cross(Direction::ToLink, TcpFlags::ACK, behind, ack, 0);
    }

    /// The far host acknowledges all of it.
    fn acknowledge(&self) {
        let seq = SeqNumber(501);
        self.cross(Direction::FromLink, TcpFlags::ACK, seq, self.next, 0);
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Uses up what may be recorded at once.
    fn exhaust(&mut self) {
        let recorded = self.send(2 * SLOTS);
        assert_eq!(recorded, u64::from(SLOTS) + 1, "the last one on credit");
    }
}

#[test]
fn a_link_that_is_too_fast_is_recorded_again_when_the_pause_is_over() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    stream.exhaust();
    // All has been paid for since: nothing but the pause keeps it from recording.
    stream.wait(PAUSE - Duration::from_nanos(1));
    assert_eq!(stream.send(10), 0);
    stream.wait(Duration::from_nanos(1));
    assert_eq!(stream.send(10), 10);
}

#[test]
fn a_link_that_is_slow_enough_is_recorded_without_pause() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    assert_eq!(stream.send(SLOTS), u64::from(SLOTS));
    for _ in 0..8 {
        stream.wait(BURST);
        assert_eq!(stream.send(SLOTS), u64::from(SLOTS));
    }
}

#[test]
fn in_a_pause_the_first_segment_in_a_round_trip_is_recorded() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    stream.exhaust();
    for _ in 0..3 {
        stream.wait(Duration::from_millis(10));
        assert_eq!(stream.send(10), 0);
        stream.acknowledge();
        assert_eq!(stream.send(10), 1);
    }
}

#[test]
fn in_a_pause_debts_are_no_more_than_what_may_be_recorded_at_once() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    stream.exhaust();
    let mut recorded = 0;
    for port in 0..2 * SLOTS as u16 {
        stream.open(50_000 + port);
        recorded += stream.send(1);
    }
    assert_eq!(recorded, u64::from(SLOTS));
    // What was recorded before is not overwritten by it.
    let mut kept = 0;
    stream.tracker.recorded(|_| kept += 1);
    assert_eq!(kept, SLOTS);
}

#[test]
fn in_a_pause_one_segment_in_a_millisecond_is_enough() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    stream.exhaust();
    stream.wait(Duration::from_millis(10));
    stream.acknowledge();
    assert_eq!(stream.send(1), 1);
    let mut recorded = 0;
    // Round trips of 100 us.
    for _ in 0..100 {
        stream.wait(Duration::from_micros(100));
        stream.acknowledge();
        recorded += stream.send(1);
    }
    assert!((8..=10).contains(&recorded), "{recorded} in 10 ms");
}

#[test]
fn a_link_that_stays_too_fast_is_recorded_ever_more_seldom() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    stream.exhaust();
    for bursts in [4, 8, 16, 32, 32] {
        stream.wait(BURST * bursts - Duration::from_nanos(1));
        assert_eq!(stream.send(10), 0, "within {bursts} bursts");
        stream.wait(Duration::from_nanos(1));
        let recorded = stream.send(2 * SLOTS);
        assert_eq!(recorded, u64::from(PROBE) + 1, "the last one on credit");
    }
    // Slow enough for the length of a burst: there is one again, and the next pause is as short as the
    // first.
    stream.wait(BURST * 32);
    for _ in 0..2 {
        assert_eq!(stream.send(PROBE), u64::from(PROBE));
        stream.wait(BURST);
    }
    stream.exhaust();
    stream.wait(PAUSE);
    assert_eq!(stream.send(10), 10);
}

/// A super-segment's packets.
const PACKETS: u32 = 3;

#[test]
fn in_a_pause_the_first_packet_of_a_super_segment_is_enough() {
    let Some(mut stream) = Stream::new() else {
        return;
    };
    let whole = stream.super_segment();
    assert_eq!(stream.newest(), (whole, 0));
    stream.wait(BURST);
    stream.exhaust();
    stream.wait(Duration::from_millis(10));
    stream.acknowledge();
    let mut expected = stream.super_segment();
    let left_out = (PACKETS as usize - 1) * PAYLOAD;
    let there = expected.len() - left_out;
    expected[there..].fill(0);
    assert_eq!(stream.newest(), (expected, left_out));
    // What was not recorded is not taken for recorded: when the first packet is acknowledged, the
    // next segment is important again.
    stream.wait(Duration::from_millis(10));
    stream.next += PAYLOAD as u32;
    stream.acknowledge();
    stream.next += (PACKETS - 1) * PAYLOAD as u32;
    assert_eq!(stream.send(1), 1);
}

impl Stream {
    /// A packet that stands for several passes, the first bytes of which `next` is behind then; what
    /// it is.
    fn super_segment(&mut self) -> Vec<u8> {
        let [near, far] = self.ends();
        let header = TcpHeader {
            source_port: near.port(),
            destination_port: far.port(),
            seq: self.next,
            ack: SeqNumber(501),
            flags: TcpFlags::ACK,
            window: 60_000,
            ..TcpHeader::default()
        };
        let payload = vec![7; PACKETS as usize * PAYLOAD];
        let ip = IpHeader::new(near.ip(), far.ip());
        let packet = Packet::tcp_segment(ip, header, &payload).to_bytes();
        let frame = [&[2; 12][..], &[8, 0], &packet].concat();
        let size = PAYLOAD as u16;
        self.tracker
            .try_out_super_segment(self.now, Direction::ToLink, &frame, size)
            .expect("it runs");
        packet.to_vec()
    }

    /// What was recorded last, and how much of it was not.
    fn newest(&self) -> (Vec<u8>, usize) {
        let mut newest = None;
        self.tracker.recorded(|recorded| {
            newest = Some((recorded.bytes.to_vec(), recorded.left_out.into()));
        });
        newest.expect("something")
    }
}
