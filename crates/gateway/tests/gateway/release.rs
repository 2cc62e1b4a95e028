//! What leaves after an outage, and when: at the pace that the link has shown, and with nobody waiting
//! for a peer that does not answer.

use crate::path::{MSS, Path};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A far host, by the last byte of its address, and a port of the near host.
type Connection = (u8, u16);

/// A link with a queue behind the gateway, and hosts beyond it that acknowledge what arrives.
struct Network {
    path: Path,
    rate: BitRate,
    round_trip: Duration,
    /// Packets before the link as time: what would wait for longer is dropped.
    longest_wait: Duration,
    free_at: Instant,
    /// Far hosts that answer nothing.
    silent: BTreeSet<u8>,
    arrived: BTreeMap<Connection, Arrived>,
    /// What is under way: when it arrives, whose it is, first byte and length.
    under_way: BinaryHeap<Reverse<(Instant, Connection, u32, u32)>>,
    dropped: usize,
}

#[derive(Default)]
struct Arrived {
    segments: BTreeSet<u32>,
    next: u32,
    last_at: Option<Instant>,
    /// When each segment left the gateway first.
    left_at: BTreeMap<u32, Instant>,
    /// When its sender has filled each hole last.
    repeated: BTreeMap<u32, Instant>,
}

fn mbit(rate: u64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1_000_000).expect("not zero")
}

impl Network {
    /// A link of `rate` of which the gateway is told `told`.
    fn new(rate: BitRate, told: Option<BitRate>) -> Self {
        let path = Path::with_rate(PathMechanismKind::Hold, Limits::default(), told);
        let round_trip = Duration::from_millis(20);
        Self {
            path,
            rate,
            round_trip,
            longest_wait: round_trip.max(rate.time_for(ByteCount(20 * 1_500))),
            free_at: Instant::ZERO,
            silent: BTreeSet::new(),
            arrived: BTreeMap::new(),
            under_way: BinaryHeap::new(),
            dropped: 0,
        }
    }

    fn turn_to(&mut self, (far, port): Connection) {
        self.path.use_far_host(far);
        self.path.use_port(port);
    }

    fn open(&mut self, connection: Connection) {
        self.turn_to(connection);
        self.path.open();
        // The window of a SYN-ACK is not scaled: this one is.
        self.path.far_ack(0);
        self.arrived.insert(connection, Arrived::default());
    }

    /// The near host sends a segment, which goes onto the link or waits.
    fn send(&mut self, connection: Connection, first: u32) {
        self.turn_to(connection);
        if self.path.data(first, MSS).is_none() {
            self.carry(connection, first, MSS);
        }
    }

    fn carry(&mut self, connection: Connection, first: u32, len: u32) {
        let now = self.path.now();
        let arrived = self.arrived.entry(connection).or_default();
        if len > 0 {
            arrived.left_at.entry(first).or_insert(now);
        }
        self.free_at = self.free_at.max(now);
        if self.free_at.since(now) > self.longest_wait {
            self.dropped += 1;
            return;
        }
        self.free_at += self.rate.time_for(ByteCount(u64::from(len) + 52));
        if !self.silent.contains(&connection.0) {
            let at = self.free_at + self.round_trip;
            self.under_way.push(Reverse((at, connection, first, len)));
        }
    }

    /// Until `until`: the gateway sends, segments arrive, acknowledgements come back.
    fn run(&mut self, until: Instant) {
        loop {
            while let Some(transmit) = self.path.gateway.poll_transmit() {
                let first = self.path.first_byte(&transmit.packet);
                let (ip, len) = (transmit.packet.header().ip, transmit.packet.sequence_len());
                let std::net::IpAddr::V4(far) = ip.destination else {
                    continue;
                };
                let port = transmit.packet.tcp().expect("only TCP").source_port;
                self.carry((far.octets()[3], port), first, len);
            }
            let arrival = self.under_way.peek().map(|Reverse((at, ..))| *at);
            let due = self.path.gateway.poll_timeout().map(|(at, _)| at);
            let next = arrival.into_iter().chain(due).min().unwrap_or(until);
            if next > until {
                break;
            }
            self.path.at(next.max(self.path.now()));
            if arrival == Some(next)
                && let Some(Reverse((_, connection, first, len))) = self.under_way.pop()
            {
                self.arrive(connection, first, len);
            }
        }
        self.path.at(until);
    }

    fn arrive(&mut self, connection: Connection, first: u32, len: u32) {
        let now = self.path.now();
        let arrived = self.arrived.entry(connection).or_default();
        if len == 0 {
            // Whatever is asked, the answer is what has arrived.
            let next = arrived.next;
            self.turn_to(connection);
            return self.path.far_ack(next);
        }
        arrived.segments.insert(first);
        while arrived.segments.remove(&arrived.next) {
            arrived.next += MSS;
            arrived.last_at = Some(now);
        }
        let next = arrived.next;
        arrived.segments.retain(|segment| *segment > next);
        let block = arrived
            .segments
            .contains(&first)
            .then_some((first, first + MSS));
        // The sender fills the first holes, each once in two round trips.
        let highest = arrived.segments.last().copied().unwrap_or(next);
        let holes = (next..highest).step_by(MSS as usize);
        let again_after = 2 * self.round_trip;
        let due = |hole: &u32| {
            let last = arrived.repeated.get(hole);
            !arrived.segments.contains(hole) && last.is_none_or(|at| now.since(*at) > again_after)
        };
        let due: Vec<u32> = holes.filter(due).take(2).collect();
        arrived.repeated.extend(due.iter().map(|hole| (*hole, now)));
        self.turn_to(connection);
        self.path.far_sack(next, block.as_slice());
        for hole in due {
            self.send(connection, hole);
        }
    }

    fn for_ms(&mut self, ms: u64) {
        self.run(self.path.now() + Duration::from_millis(ms));
    }

    /// Data goes over the link as fast as that takes it, for half a second.
    fn fill(&mut self, connection: Connection) -> u32 {
        let mut first = 0;
        let end = self.path.now() + Duration::from_millis(500);
        while self.path.now() < end {
            self.send(connection, first);
            first += MSS;
            let next = self.path.now() + self.rate.time_for(ByteCount(u64::from(MSS) + 52));
            self.run(next);
        }
        self.for_ms(100);
        first
    }

    /// The link goes; meanwhile `count` segments are sent from `first` on.
    fn lose(&mut self, connections: &[Connection], first: u32, count: u32) {
        self.path.down();
        for &connection in connections {
            for n in 0..count {
                self.turn_to(connection);
                self.path.data(first + n * MSS, MSS);
            }
        }
        self.for_ms(1_000);
    }

    /// When, since `begin`, everything before `end` has arrived; `None`: it has not.
    fn all_arrived(&self, connection: Connection, end: u32, begin: Instant) -> Option<Duration> {
        let arrived = &self.arrived[&connection];
        let last = arrived.last_at.filter(|_| arrived.next >= end)?;
        Some(last.since(begin))
    }
}

const BULK: Connection = (1, 5_000);

/// A download that has filled the link, and has `count` segments more to deliver when it is back.
fn resumed(
    rate: BitRate,
    later: BitRate,
    told: Option<BitRate>,
    count: u32,
) -> (Network, Option<Duration>) {
    let mut network = Network::new(rate, told);
    network.open(BULK);
    let first = network.fill(BULK);
    network.lose(&[BULK], first, count);
    network.rate = later;
    let begin = network.path.now();
    network.path.up();
    network.for_ms(20_000);
    let took = network.all_arrived(BULK, first + count * MSS, begin);
    (network, took)
}

#[test]
fn what_was_kept_goes_out_as_fast_as_the_link_was_seen_to_be() {
    for rate in [1, 10, 100, 400, 1_000].map(mbit) {
        // One bandwidth-delay product.
        let count = (rate.bits_per_second() / 50 / 8 / u64::from(MSS)).clamp(10, 2_000) as u32;
        let ideal = rate.time_for(ByteCount(u64::from(count) * 1_052)) + Duration::from_millis(20);
        let (known, with_rate) = resumed(rate, rate, Some(rate), count);
        let (unknown, without) = resumed(rate, rate, None, count);
        let [with_rate, without] = [with_rate, without].map(|took| took.expect("all arrives"));
        assert!(
            with_rate <= ideal * 12 / 10,
            "{rate}: {with_rate:?}, ideal {ideal:?}"
        );
        assert!(
            without <= ideal * 12 / 10,
            "{rate}: {without:?}, ideal {ideal:?}"
        );
        assert_eq!((known.dropped, unknown.dropped), (0, 0), "{rate}");
    }
}

#[test]
fn a_link_that_is_slower_than_before_is_soon_known_to_be() {
    let (later, count) = (mbit(10), 1_000);
    let (network, took) = resumed(mbit(100), later, None, count);
    let ideal = later.time_for(ByteCount(u64::from(count) * 1_052));
    let took = took.expect("all arrives");
    assert!(took <= ideal * 15 / 10, "{took:?}, ideal {ideal:?}");
    assert!(network.dropped <= 900, "{} dropped", network.dropped);
}

#[test]
fn a_link_of_which_nothing_is_known_is_tried_as_in_slow_start() {
    let (rate, count) = (mbit(100), 600);
    let mut network = Network::new(rate, None);
    network.open(BULK);
    network.for_ms(1_000);
    network.lose(&[BULK], 0, count);
    let begin = network.path.now();
    network.path.up();
    network.for_ms(20_000);
    let took = network
        .all_arrived(BULK, count * MSS, begin)
        .expect("all arrives");
    // 10, 20, 40, 80, 160, 320 packets in a round trip each.
    assert!(took <= Duration::from_millis(8 * 20), "{took:?}");
    assert_eq!(network.dropped, 0);
}

/// Two downloads beside a peer with 400 connections, each with 30 segments that it never acknowledges.
fn beside_a_silent_peer(told: Option<BitRate>, silent: u16) -> [Duration; 2] {
    const HONEST: [Connection; 2] = [(1, 5_000), (2, 5_000)];
    let rate = mbit(16);
    let mut network = Network::new(rate, told);
    for connection in HONEST {
        network.open(connection);
    }
    let dead: Vec<Connection> = (0..silent).map(|port| (9, 10_000 + port)).collect();
    for &connection in &dead {
        network.open(connection);
    }
    let first = HONEST.map(|connection| network.fill(connection));
    network.silent.insert(9);
    network.lose(&HONEST[..1], first[0], 300);
    for n in 0..300 {
        network.turn_to(HONEST[1]);
        network.path.data(first[1] + n * MSS, MSS);
    }
    for &connection in &dead {
        for n in 0..30 {
            network.turn_to(connection);
            network.path.data(n * MSS, MSS);
        }
    }
    let begin = network.path.now();
    network.path.up();
    network.for_ms(60_000);
    [0, 1].map(|n| {
        let end = first[n] + 300 * MSS;
        network
            .all_arrived(HONEST[n], end, begin)
            .expect("all arrives")
    })
}

#[test]
fn a_peer_that_does_not_answer_delays_nobody_else() {
    for told in [Some(mbit(16)), None] {
        let alone = beside_a_silent_peer(told, 0);
        let beside = beside_a_silent_peer(told, 400);
        for (alone, beside) in alone.into_iter().zip(beside) {
            let most = alone * 13 / 10 + Duration::from_millis(200);
            assert!(beside <= most, "{beside:?}, without it {alone:?}");
        }
    }
}

/// How long a download of 300 segments takes beside a peer that answers on one connection of 400, and
/// loses everything of all.
fn beside_a_peer_that_loses_all(told: Option<BitRate>) -> Duration {
    let rate = mbit(16);
    let mut network = Network::new(rate, told);
    let (honest, liar) = ((1, 5_000), (9, 10_000));
    network.open(honest);
    let dead: Vec<Connection> = (0..400).map(|port| (9, 10_000 + port)).collect();
    for &connection in &dead {
        network.open(connection);
    }
    let first = network.fill(honest);
    network.silent.insert(9);
    network.lose(&[honest], first, 300);
    for &connection in &dead {
        for n in 0..30 {
            network.turn_to(connection);
            network.path.data(n * MSS, MSS);
        }
    }
    let begin = network.path.now();
    network.path.up();
    for _ in 0..600 {
        network.for_ms(100);
        network.turn_to(liar);
        network.path.far_ack(0);
    }
    let end = first + 300 * MSS;
    network
        .all_arrived(honest, end, begin)
        .expect("all arrives")
}

/// A peer that answers, and loses what it is sent, takes its share of the link, and no more.
#[test]
fn a_peer_that_loses_what_it_is_sent_slows_nobody_else_down() {
    let told = beside_a_peer_that_loses_all(Some(mbit(16)));
    let unknown = beside_a_peer_that_loses_all(None);
    // Half of the link, and what a full queue costs.
    let share = 2 * mbit(16).time_for(ByteCount(300 * 1_052));
    // Half as much more without a rate, which has to be found out while half of what is sent is lost.
    for (took, most) in [(told, 3 * share / 2), (unknown, 2 * share)] {
        assert!(took <= most, "{told:?} and {unknown:?} for {share:?}");
    }
}

/// The bound of the release: a segment of a connection that has kept nothing waits one turn of each
/// other peer, not for all that is kept.
#[test]
fn fresh_data_waits_for_one_turn_of_every_other_peer() {
    const PEERS: u8 = 20;
    for told in [Some(mbit(10)), None] {
        let rate = mbit(10);
        let mut network = Network::new(rate, told);
        let idle = (100, 6_000);
        network.open(idle);
        let busy: Vec<Connection> = (1..=PEERS).map(|far| (far, 5_000)).collect();
        for &connection in &busy {
            network.open(connection);
        }
        network.fill(busy[0]);
        network.lose(&busy[1..], 0, 60);
        network.path.up();
        network.for_ms(200);
        let begin = network.path.now();
        network.send(idle, 0);
        network.for_ms(2_000);
        let waited = network.arrived[&idle].left_at[&0].since(begin);
        // Two packets of each at most, since turns are counted in bytes.
        let most = rate.time_for(ByteCount(2 * u64::from(PEERS) * 1_052));
        assert!(waited <= most, "{waited:?}, {most:?} at most");
    }
}

/// A peer of a random crowd.
#[derive(Clone, Debug)]
struct Neighbour {
    connections: u16,
    backlog: u32,
    answers: bool,
}

fn neighbour() -> impl Strategy<Value = Neighbour> {
    (1..6_u16, 0..40_u32, any::<bool>()).prop_map(|(connections, backlog, answers)| Neighbour {
        connections,
        backlog,
        answers,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever waits for others, and whoever of them answers: a segment of a connection that has kept
    /// nothing leaves within one turn of each peer that answers, at the pace of a link of which nothing
    /// is known or of this one, and the time for which a link may say nothing.
    #[test]
    fn nobody_waits_for_longer_than_the_bound(
        crowd in proptest::collection::vec(neighbour(), 1..10),
        mbits in prop_oneof![Just(1), Just(10), Just(100)],
        is_told in any::<bool>(),
        after in 0..1_500_u64,
    ) {
        let rate = mbit(mbits);
        let mut network = Network::new(rate, is_told.then_some(rate));
        let idle = (200, 6_000);
        network.open(idle);
        for (far, one) in (1..).zip(&crowd) {
            for port in 0..one.connections {
                network.open((far, 5_000 + port));
            }
        }
        network.for_ms(500);
        network.path.down();
        for (far, one) in (1..).zip(&crowd) {
            for n in 0..one.backlog {
                for port in 0..one.connections {
                    network.turn_to((far, 5_000 + port));
                    network.path.data(n * MSS, MSS);
                }
            }
            if !one.answers {
                network.silent.insert(far);
            }
        }
        network.for_ms(1_000);
        network.path.up();
        network.for_ms(after);
        let begin = network.path.now();
        network.send(idle, 0);
        network.for_ms(5_000);
        let left = network.arrived[&idle].left_at.get(&0);
        let waited = left.map(|at| at.since(begin));
        let slowest = rate.min(BitRate::from_bits_per_second(600_000).expect("not zero"));
        let turns = 2 * (u64::try_from(crowd.len()).expect("few") + 1);
        let most = slowest.time_for(ByteCount(turns * 1_052)) + Duration::from_millis(400);
        prop_assert!(waited.is_some_and(|waited| waited <= most), "{waited:?}, {most:?} at most");
    }
}
