//! The flight recorder on a link that is faster than it may be: what it records, pauses and goes on
//! with.

mod trial;

use outlast_core::link::Direction;
use outlast_core::time::{Duration, Instant};
use outlast_core::units::BitRate;
use outlast_linux::tracker::{Tracker, TrackerConfig};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};
use std::net::Ipv4Addr;

const SLOTS: u32 = 64;
/// A KiB is paid for in 1 ms.
const RATE_BITS_PER_S: u64 = 1024 * 8 * 1000;
/// What may be recorded at once, at that rate: a KiB of each slot.
const BURST: Duration = Duration::from_millis(64);
/// `PAUSE_BURSTS` in `bpf/recorder.h`.
const PAUSE: Duration = Duration::from_millis(4 * 64);
/// Payload of a segment that has one KiB with its headers.
const PAYLOAD: usize = 1024 - 40;

/// One connection, whose near host sends, and the recorder.
struct Stream {
    tracker: Tracker,
    now: Instant,
    /// What the near host sends next.
    next: SeqNumber,
}

impl Stream {
    /// An established connection, of which nothing is recorded yet.
    #[expect(clippy::print_stderr, reason = "a skipped test names what is missing")]
    fn new() -> Option<Self> {
        let config = TrackerConfig {
            flows: 1024,
            slots: SLOTS,
            rate: BitRate::from_bits_per_second(RATE_BITS_PER_S).expect("not zero"),
            mark: 0,
        };
        let tracker = Tracker::load_for_trial(&config)
            .inspect_err(|error| eprintln!("skipped: {}", error.lack().what))
            .ok()?;
        let stream = Self {
            tracker,
            now: Instant::from_millis(60_000),
            next: SeqNumber(101),
        };
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        stream.cross(Direction::ToLink, syn, SeqNumber(100), SeqNumber(0), 0);
        let (seq, acked) = (SeqNumber(500), SeqNumber(101));
        stream.cross(Direction::FromLink, syn | ack, seq, acked, 0);
        stream.cross(Direction::ToLink, ack, acked, SeqNumber(501), 0);
        // A window that is scaled.
        stream.cross(Direction::FromLink, ack, SeqNumber(501), acked, 0);
        Some(stream)
    }

    fn cross(
        &self,
        direction: Direction,
        flags: TcpFlags,
        seq: SeqNumber,
        ack: SeqNumber,
        payload: usize,
    ) {
        let ends = [
            (Ipv4Addr::new(192, 0, 2, 1), 40_000).into(),
            (Ipv4Addr::new(198, 51, 100, 2), 80).into(),
        ];
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
        trial::cross(&self.tracker, self.now, direction, ends, header, payload);
    }

    /// Sends segments of a KiB at once; how many of them are recorded.
    fn send(&mut self, segments: u32) -> u64 {
        let before = self.tracker.counters().expect("readable");
        for _ in 0..segments {
            let ack = SeqNumber(501);
            self.cross(Direction::ToLink, TcpFlags::ACK, self.next, ack, PAYLOAD);
            self.next += PAYLOAD as u32;
        }
        let after = self.tracker.counters().expect("readable");
        let recorded = after.recorded - before.recorded;
        let thinned = after.thinned - before.thinned;
        assert_eq!(recorded + thinned, u64::from(segments));
        assert_eq!(after.odd, 0);
        recorded
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
    for _ in 0..2 * SLOTS {
        stream.acknowledge();
        recorded += stream.send(1);
    }
    assert_eq!(recorded, u64::from(SLOTS));
    // What was recorded before is not overwritten by it.
    let mut kept = 0;
    stream.tracker.recorded(|_| kept += 1);
    assert_eq!(kept, SLOTS);
}
