//! The order of what goes out after a move, where several TCP connections go on at once.
//!
//! Each connection sends a whole window as soon as its peer answers. The windows meet in the path's queue: a segment
//! that another connection lacks waits behind them, or finds the queue full. So from the moment at which connections
//! are made to move again until each of them has gone on, segments with data wait here, a line for each connection.
//!
//! - The first [`FIRST`] bytes of each connection go at once.
//! - The others take turns, a segment of each connection, within a flight of [`INITIAL`] bytes. Each acknowledged
//!   byte makes room for one, and as long as round trips show no queue ([`QUEUE`]) for [`GROWTH`], as in slow start.
//! - A connection has gone on when nothing of it is unacknowledged, or at its second new acknowledgement. The first
//!   one may be for what the peer had before; a peer that says so (RFC 2883) has not gone on by it.
//! - The flight ends when all have gone on, when its time is over, or when more than [`MOST_HELD`] bytes wait. What
//!   waits goes out then.
//!
//! What waits is late by as much as slow start takes from [`INITIAL`] on, for the time of the flight at most. A connection
//! whose peer never answers has the flight last until its time is over. Left out, so that they never wait: other
//! protocols, segments without data, a connection that moves alone, and connections beyond [`MOST_CONNECTIONS`].

use crate::association::Data;
use crate::recent::{Acknowledged, MOST_CONNECTIONS, Ports, is_repetition, ports_of_data};
use alloc::collections::{BTreeMap, VecDeque};
use outlast_base::time::{Duration, Instant};

/// Bytes of each connection that never wait: a segment that it moves again with, and one that its peer lacks; many of a
/// session.
const FIRST: u64 = 2 * 1_460;

/// Bytes of the other segments before the first acknowledgement (RFC 3390, section 1: four segments).
const INITIAL: u64 = 4 * 1_460;

/// Room that an acknowledged byte makes where no queue shows.
const GROWTH: u64 = 2;

/// By how much a round trip is longer than the shortest one where a queue shows.
const QUEUE: Duration = Duration::from_millis(10);

/// New acknowledgements after which a connection has gone on.
const ENOUGH: u32 = 2;

/// Time of a flight: this long, or three round trips if that is longer.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);

/// Bytes that may wait. What comes then is in nobody's line.
const MOST_HELD: usize = 512 << 10;

/// What waits of one connection, and how it fares.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Data>,
    /// Bytes that went out.
    sent: u64,
    /// Bytes that went out and are not acknowledged.
    in_flight: u64,
    acknowledgements: u32,
    has_gone_on: bool,
}

/// The flight after one move.
#[derive(Debug)]
pub(crate) struct FirstFlight {
    lines: BTreeMap<Ports, Line>,
    /// Connections of which something waits, in the order of their turns.
    turns: VecDeque<Ports>,
    /// Bytes that may go out.
    room: u64,
    /// Bytes of all segments that wait.
    held: usize,
    /// The shortest one.
    round_trip: Duration,
    /// When its time is over.
    pub(crate) until: Instant,
}

impl FirstFlight {
    /// Begins for these connections, or goes on for them.
    pub(crate) fn begin(
        (now, round_trip): (Instant, Option<Duration>),
        connections: &[Ports],
        former: Option<Self>,
    ) -> Self {
        let length = round_trip.map_or(SHORTEST, |it| (it * 3).clamp(SHORTEST, LONGEST));
        let mut flight = former.unwrap_or_else(|| Self {
            lines: BTreeMap::new(),
            turns: VecDeque::new(),
            room: 0,
            held: 0,
            round_trip: Duration::MAX,
            until: now,
        });
        for ports in connections {
            flight.lines.entry(*ports).or_default();
        }
        // What went out before may have been lost.
        flight.room = flight.room.max(INITIAL);
        flight.until = now + length;
        flight
    }

    /// Gives data back that may go now; keeps the rest.
    pub(crate) fn admit(&mut self, data: Data) -> Option<Data> {
        let Some(ports) = ports_of_data(&data) else {
            return Some(data);
        };
        let is_known = self.lines.contains_key(&ports);
        if self.held > MOST_HELD || !is_known && self.lines.len() >= MOST_CONNECTIONS {
            return Some(data);
        }
        let line = self.lines.entry(ports).or_insert_with(|| Line {
            has_gone_on: true,
            ..Line::default()
        });
        let is_free = line.sent < FIRST || self.room > 0 && self.turns.is_empty();
        if line.waiting.is_empty() && is_free {
            return Some(data);
        }
        if let Some(earlier) = line.waiting.iter_mut().find(|it| is_repetition(it, &data)) {
            // Their options may differ, as SACK blocks do.
            self.held += data.payload.len();
            self.held -= earlier.payload.len();
            *earlier = data;
            return None;
        }
        if line.waiting.is_empty() {
            self.turns.push_back(ports);
        }
        self.held += data.payload.len();
        line.waiting.push_back(data);
        None
    }

    /// Notes data that goes out.
    pub(crate) fn note_sent(&mut self, data: &Data) {
        let Some(line) = ports_of_data(data).and_then(|ports| self.lines.get_mut(&ports)) else {
            return;
        };
        let bytes = data.payload.len() as u64;
        line.sent = line.sent.saturating_add(bytes);
        line.in_flight = line.in_flight.saturating_add(bytes);
        self.room = self.room.saturating_sub(bytes);
    }

    /// Notes what a peer acknowledges.
    pub(crate) fn note_acknowledged(&mut self, now: Instant, acknowledged: &Acknowledged) {
        let Some(line) = self.lines.get_mut(&acknowledged.ports) else {
            return;
        };
        // The peer may have had the rest before.
        let bytes = line.in_flight.min(u64::from(acknowledged.bytes));
        line.in_flight -= bytes;
        line.acknowledgements = line.acknowledgements.saturating_add(1);
        line.has_gone_on |= acknowledged.is_all || line.acknowledgements >= ENOUGH;
        let took = acknowledged.sent_at.map(|sent_at| now.since(sent_at));
        self.round_trip = took.unwrap_or(Duration::MAX).min(self.round_trip);
        let is_soon = took.is_some_and(|took| took <= self.round_trip.saturating_add(QUEUE));
        // `acknowledged.bytes` has 32 bits, so the product fits.
        let more = bytes * if is_soon { GROWTH } else { 1 };
        self.room = self.room.saturating_add(more);
    }

    /// Whether nothing needs to wait any more.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until <= now
            || self.held > MOST_HELD
            || self.lines.values().all(|line| line.has_gone_on)
    }

    /// The next segment that may go now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Data> {
        if self.room == 0 && !self.is_over(now) {
            return None;
        }
        let ports = self.turns.pop_front()?;
        let line = self.lines.get_mut(&ports)?;
        let data = line.waiting.pop_front()?;
        if !line.waiting.is_empty() {
            self.turns.push_back(ports);
        }
        self.held -= data.payload.len();
        Some(data)
    }

    /// Takes a segment back that had no path; it is the next one.
    pub(crate) fn put_back(&mut self, now: Instant, data: Data) {
        // Nothing goes until there is a path, of which nobody tells the time.
        self.until = self.until.max(now + SHORTEST);
        let Some(ports) = ports_of_data(&data) else {
            return;
        };
        let line = self.lines.entry(ports).or_default();
        self.turns.retain(|other| *other != ports);
        self.turns.push_front(ports);
        self.held += data.payload.len();
        line.waiting.push_front(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use outlast_base::random::Stream;

    const HEADER: usize = 20;

    /// A segment with data of one of a few connections.
    fn segment(port: u8, seq: u32, length: usize) -> Data {
        let mut payload = alloc::vec![0, port, 0, 80];
        payload.extend_from_slice(&seq.to_be_bytes());
        payload.extend_from_slice(&[0, 0, 0, 0, 5 << 4, 0x10, 0, 0, 0, 0, 0, 0]);
        payload.resize(HEADER + length, 7);
        Data {
            next: 6,
            payload,
            handed_at: Instant::ZERO,
        }
    }

    fn name(data: &Data) -> (u8, u32) {
        let seq = data.payload[4..8].try_into().expect("four bytes");
        (data.payload[1], u32::from_be_bytes(seq))
    }

    /// Whatever is acknowledged and whenever time passes: each segment goes out once, in the order of its connection.
    #[test]
    fn nothing_is_lost_or_overtaken_within_a_connection() {
        for seed in 0..200 {
            let mut random = Stream::new(seed, "flight");
            let mut now = Instant::from_millis(1_000);
            let ports = [[0, 1, 0, 80], [0, 2, 0, 80]];
            let mut flight = FirstFlight::begin((now, None), &ports, None);
            let (mut given, mut taken) = (Vec::new(), Vec::new());
            for number in 0..300_u32 {
                let port = 1 + (random.next_u64() % 3) as u8;
                let length = 1 + (random.next_u64() % 1_400) as usize;
                let data = segment(port, number * 2_000, length);
                given.push(name(&data));
                if let Some(data) = flight.admit(data) {
                    flight.note_sent(&data);
                    taken.push(name(&data));
                }
                let acknowledged = Acknowledged {
                    ports: [0, port, 0, 80],
                    bytes: (random.next_u64() % 2_000) as u32,
                    is_all: random.chance(0.01),
                    sent_at: Some(now),
                };
                now += Duration::from_micros(random.next_u64() % 1_000);
                if random.chance(0.2) {
                    flight.note_acknowledged(now, &acknowledged);
                }
                while let Some(data) = flight.next(now) {
                    if random.chance(0.1) {
                        flight.put_back(now, data);
                        break;
                    }
                    flight.note_sent(&data);
                    taken.push(name(&data));
                }
            }
            now += LONGEST;
            while let Some(data) = flight.next(now) {
                taken.push(name(&data));
            }
            for port in 1..=3 {
                let of = |all: &[(u8, u32)]| -> Vec<u32> {
                    let own = all.iter().filter(|it| it.0 == port);
                    own.map(|it| it.1).collect()
                };
                assert_eq!(of(&taken), of(&given), "seed {seed}, port {port}");
            }
            assert_eq!(flight.held, 0, "seed {seed}");
        }
    }

    /// TCP sends a segment again that waits, with fewer SACK blocks or with more: it waits once, and counts once.
    #[test]
    fn a_repetition_of_another_length_counts_as_what_it_is() {
        /// The segment with so many words of options.
        fn with_options(data: &Data, words: u8) -> Data {
            let mut data = data.clone();
            data.payload[12] = (5 + words) << 4;
            let options = core::iter::repeat_n(1, usize::from(words) * 4);
            data.payload.splice(HEADER..HEADER, options);
            data
        }
        let now = Instant::from_millis(1_000);
        for [first, second] in [[10, 0], [0, 10], [3, 3]] {
            let ports = [[0, 1, 0, 80], [0, 2, 0, 80]];
            let mut flight = FirstFlight::begin((now, None), &ports, None);
            for number in 0..4 {
                flight.note_sent(&segment(1, number * 1_440, 1_440));
            }
            let plain = segment(1, 4 * 1_440, 100);
            assert!(flight.admit(with_options(&plain, first)).is_none());
            assert!(flight.admit(with_options(&plain, second)).is_none());
            let expected = HEADER + 100 + usize::from(second) * 4;
            assert_eq!(flight.held, expected);
            let released = flight.next(now + LONGEST).expect("what waits");
            assert_eq!(released.payload.len(), expected);
            assert!(flight.next(now + LONGEST).is_none());
            assert_eq!(flight.held, 0);
        }
    }

    /// A queue that shows in round trips stops growth.
    #[test]
    fn room_grows_while_no_queue_shows() {
        let began = Instant::from_millis(1_000);
        let ports = [[0, 1, 0, 80], [0, 2, 0, 80]];
        for (later_ms, room) in [(25, GROWTH), (31, 1)] {
            let mut flight = FirstFlight::begin((began, None), &ports, None);
            for number in 0..4 {
                flight.note_sent(&segment(1, number * 1_440, 1_440));
            }
            assert_eq!(flight.room, 0);
            let mut hear = |after_ms| {
                let acknowledged = Acknowledged {
                    ports: ports[0],
                    bytes: 1_000,
                    is_all: false,
                    sent_at: Some(began),
                };
                let before = flight.room;
                let now = began + Duration::from_millis(after_ms);
                flight.note_acknowledged(now, &acknowledged);
                flight.room - before
            };
            assert_eq!(hear(20), GROWTH * 1_000);
            assert_eq!(hear(later_ms), room * 1_000);
        }
    }
}
