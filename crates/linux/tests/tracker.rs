//! The kernel's tracker and that of `gateway` know the same after the same packets.

mod conversation;
mod loopback;

use conversation::{Step, bytes, conversation, greeting, step, step_of};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::{Contest, FlowKey, Heard, Observation, PATIENCE, Phase, TcpFlow};
use outlast_linux::namespace::Namespace;
use outlast_linux::tracker::{
    Acknowledgement, Tracker, TrackerConfig, TrackerCounters, TrackerError,
};
use outlast_skip::skip;
use outlast_wire::{Packet, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex, PoisonError};

/// An evicting table with little room evicts before it is full.
const FLOWS: u32 = 4096;
/// The mark of the gateway's own packets.
const MARK: u32 = 7;

/// What a connection's segments are behind in the counters at most.
const LAG: u64 = 64;

/// A tracker; `None`, with the reason, where this machine does not allow one.
fn tracker() -> Option<Tracker> {
    tracker_with(TrackerConfig::default().rate)
}

/// A tracker that records at most so much.
fn tracker_with(rate: BitRate) -> Option<Tracker> {
    let config = TrackerConfig {
        flows: FLOWS,
        slots: 256,
        mark: MARK,
        rate,
    };
    match Tracker::load_for_trial(&config) {
        Ok(tracker) => Some(tracker),
        Err(error) => {
            assert!(
                !is_refusal_of_the_verifier(&error),
                "{}",
                error.source().expect("what the verifier says")
            );
            skip(error);
            None
        }
    }
}

/// Whether the kernel understood the programs, and found them wanting.
fn is_refusal_of_the_verifier(error: &TrackerError) -> bool {
    use aya::programs::ProgramError;
    matches!(error, TrackerError::Program(ProgramError::LoadError { io_error, .. })
        if io_error.raw_os_error() != Some(libc::EPERM))
}

/// Both trackers, fed with the same packets of one connection.
struct Both<'t> {
    kernel: &'t mut Tracker,
    core: BTreeMap<FlowKey, Known>,
    counters: TrackerCounters,
    now: Instant,
    /// Somebody else's conversation, with the same addresses and ports.
    foreign: TcpFlow,
    /// What the recorder has, from the conversation's first segment on.
    recorded: Vec<(Instant, Vec<u8>)>,
}

/// What is known of a connection: as the gateway tracks it, and what the kernel keeps beside.
#[derive(Clone, Debug, Default)]
struct Known {
    tcp: TcpFlow,
    contest: Option<Box<Contest>>,
    heard_at: Option<Instant>,
    owed_since: Option<Instant>,
    is_proven: bool,
    newest_to_link: Option<(Instant, Vec<u8>)>,
    newest_from_link: Option<(Instant, Vec<u8>)>,
}

/// The tracker of all conversations, since it takes long to load, and when the last one ended; who
/// uses it does so alone.
static KERNEL: LazyLock<Mutex<Option<(Tracker, Instant)>>> =
    LazyLock::new(|| Mutex::new(tracker().map(|tracker| (tracker, Instant::from_millis(1000)))));

/// A tracker whose recorder pauses for weeks, and when its last conversation ended.
static PAUSED: LazyLock<Mutex<Option<(Tracker, Instant)>>> = LazyLock::new(|| {
    let slowest = BitRate::from_bits_per_second(1).expect("not zero");
    let paused = tracker_with(slowest).map(|mut tracker| {
        let mut both = Both::new(&mut tracker, Instant::from_millis(1000));
        let data = |_| Step {
            payload: 1400,
            ..step_of(Direction::ToLink, TcpFlags::ACK)
        };
        both.converse(false, greeting().into_iter().chain((0..256).map(data)));
        let now = both.now + Duration::from_secs(1);
        drop(both);
        assert!(tracker.counters().expect("readable").thinned > 0);
        (tracker, now)
    });
    Mutex::new(paused)
});

impl<'t> Both<'t> {
    /// A conversation that begins at `now`, later than what the kernel has seen.
    fn new(kernel: &'t mut Tracker, now: Instant) -> Self {
        Self {
            counters: kernel.counters().expect("readable"),
            kernel,
            core: BTreeMap::new(),
            now,
            foreign: foreign(),
            recorded: Vec::new(),
        }
    }

    /// A packet crosses; `bytes` begin with its IP header.
    fn see(&mut self, direction: Direction, bytes: &[u8]) {
        self.see_marked(direction, bytes, 0);
    }

    fn see_marked(&mut self, direction: Direction, bytes: &[u8], mark: u32) {
        let frame = ethernet(bytes);
        self.kernel
            .try_out(self.now, direction, &frame, mark)
            .expect("it runs");
        let packet = Packet::parse(bytes.to_vec().into()).ok();
        let segment = packet.as_ref().and_then(|packet| {
            let key = FlowKey::of_tcp(packet.header(), direction)?;
            Some((key, packet.tcp()?, packet))
        });
        let Some((key, tcp, packet)) = segment else {
            self.counters.not_tracked += u64::from(!is_other(bytes));
            return;
        };
        // As the gateway does: a lone RST begins nothing.
        if tcp.has(TcpFlags::RST) && !self.core.contains_key(&key) {
            self.counters.not_tracked += 1;
            return;
        }
        let known = self.core.entry(key).or_default();
        let payload_len = packet.header().payload_len;
        let Some(observed) = known.observe(self.now, direction, tcp, payload_len) else {
            self.counters.odd += 1;
            return;
        };
        self.counters.tracked += 1;
        note(known, tcp, observed);
        if tcp.has(TcpFlags::SYN) || observed.begins_anew {
            (known.newest_to_link, known.newest_from_link) = (None, None);
        }
        let whole = &bytes[..packet.total_len() as usize];
        let now = self.now;
        match direction {
            Direction::FromLink => {
                known.heard_at = Some(now);
                known.owed_since = None;
                if tcp.flags == TcpFlags::ACK && payload_len == 0 {
                    known.newest_from_link = Some((now, whole.to_vec()));
                }
            }
            Direction::ToLink if tcp.has(TcpFlags::RST) => {}
            Direction::ToLink if tcp.has(TcpFlags::SYN) => {
                if observed.repeated && mark != MARK {
                    self.counters.recorded += 1;
                    self.recorded.push((now, whole.to_vec()));
                }
            }
            // A probe of the gateway's.
            Direction::ToLink
                if packet.sequence_len() == 0 && mark == MARK && tcp.seq != known.tcp.near.next => {
            }
            Direction::ToLink if packet.sequence_len() == 0 => {
                known.newest_to_link = Some((now, whole.to_vec()));
            }
            Direction::ToLink => {
                let end = tcp.seq + packet.sequence_len();
                let is_open = known.tcp.phase != Phase::Closed;
                if is_open {
                    known.owed_since.get_or_insert(now);
                }
                if is_open && end.after(known.tcp.near.acked) {
                    self.counters.recorded += 1;
                    self.recorded.push((now, whole.to_vec()));
                }
            }
        }
    }

    /// The conversation, as it goes on.
    fn converse(&mut self, is_v6: bool, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            self.take(is_v6, &step);
        }
    }

    fn take(&mut self, is_v6: bool, step: &Step) {
        let known = self.core.get(&conversation(is_v6));
        let flow = known.map(|known| known.tcp).unwrap_or_default();
        self.now += step.pause;
        self.see(step.direction, &bytes(step, is_v6, &flow));
    }

    /// A segment with the addresses and ports of the conversation, and numbers of another.
    fn take_foreign(&mut self, is_v6: bool, step: &Step) {
        self.now += step.pause;
        let bytes = bytes(step, is_v6, &self.foreign);
        if let Ok(packet) = Packet::parse(bytes.clone().into())
            && let Some(tcp) = packet.tcp()
        {
            let payload_len = packet.header().payload_len;
            let seen = self
                .foreign
                .observe(self.now, step.direction, tcp, payload_len);
            if seen.is_err() || self.foreign.phase == Phase::Closed {
                self.foreign = foreign();
            }
        }
        self.see(step.direction, &bytes);
    }

    /// Whether they know the same. Who is suspected is another test's matter, and so is what is
    /// recorded in a pause.
    fn compare(&self) -> Result<(), TestCaseError> {
        let counted = self.kernel.counters().expect("readable");
        let behind = self.counters.tracked.checked_sub(counted.tracked);
        prop_assert!(behind.is_some_and(|behind| behind <= LAG), "{:?}", counted);
        let to_record = |counters: &TrackerCounters| counters.recorded + counters.thinned;
        let behind = to_record(&self.counters).checked_sub(to_record(&counted));
        prop_assert!(behind.is_some_and(|behind| behind <= LAG), "{:?}", counted);
        let exact = TrackerCounters {
            tracked: counted.tracked,
            recorded: counted.recorded,
            thinned: counted.thinned,
            suspected: counted.suspected,
            ..self.counters
        };
        prop_assert_eq!(counted, exact);
        for (key, known) in &self.core {
            let kernel = self.kernel.flow(key).expect("readable");
            prop_assert!(kernel.is_some(), "{:?}", key);
            let Some(kernel) = kernel else { continue };
            prop_assert_eq!(kernel.tcp, known.tcp);
            prop_assert_eq!(kernel.heard_at, known.heard_at);
            prop_assert_eq!(kernel.owed_since, known.owed_since);
            prop_assert_eq!(kernel.is_proven, known.is_proven);
            let kept = |ack: Option<Acknowledgement>| ack.map(|ack| (ack.at, ack.bytes().to_vec()));
            prop_assert_eq!(&kept(kernel.newest_to_link), &known.newest_to_link);
            prop_assert_eq!(&kept(kernel.newest_from_link), &known.newest_from_link);
        }
        Ok(())
    }

    /// Whether the recorder has what it should have.
    fn compare_recorder(&self) -> Result<(), TestCaseError> {
        let mut recorded = Vec::new();
        self.kernel.recorded(|segment| {
            recorded.push((segment.at, segment.bytes.to_vec()));
        });
        let begins = recorded.len().saturating_sub(self.recorded.len());
        prop_assert!(recorded[begins..] == self.recorded[..]);
        Ok(())
    }
}

impl Drop for Both<'_> {
    fn drop(&mut self) {
        for key in self.core.keys() {
            self.kernel.forget(key).expect("writable");
        }
    }
}

impl Known {
    /// As the gateway does that keeps nothing of the connection: what a segment means, if it does.
    fn observe(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Option<Observation> {
        let (contest, flow) = (&mut self.contest, &mut self.tcp);
        match Contest::observe(contest, flow, now, direction, tcp, payload_len) {
            Heard::Honest(observed) => Some(observed),
            Heard::Odd(_) => None,
            Heard::OfRival(_) => {
                if let Some(contest) = contest {
                    contest.yield_to_rival(flow);
                }
                (self.newest_to_link, self.newest_from_link) = (None, None);
                self.is_proven = false;
                self.owed_since = None;
                None
            }
        }
    }
}

/// Far from where other conversations begin.
fn foreign() -> TcpFlow {
    let mut flow = TcpFlow::new();
    flow.near.next += 1_000_000_000;
    flow.far.next += 2_000_000_000;
    flow
}

/// What the gateway makes of an honest segment, beside what it tracks.
fn note(known: &mut Known, tcp: &TcpHeader, observed: Observation) {
    let flow = &known.tcp;
    let began_unseen = flow.near.window_scale.is_none() && flow.far.window_scale.is_none();
    match flow.phase {
        _ if observed.begins_anew => {
            known.is_proven = true;
            known.owed_since = None;
        }
        Phase::Opening => {
            known.is_proven = false;
            known.owed_since = None;
        }
        Phase::Established if !tcp.has(TcpFlags::SYN) => {
            known.is_proven |= began_unseen || observed.newly_acked > 0;
        }
        Phase::Established | Phase::Closed => {}
    }
}

/// Whether a packet's IP header alone says that it is none of TCP's.
fn is_other(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(6) => packet.len() >= 40 && matches!(packet[6], 17 | 58),
        _ => packet.len() >= 20 && packet[9] != 6,
    }
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = match packet.first().map(|byte| byte >> 4) {
        Some(6) => [0x86, 0xdd],
        _ => [0x08, 0x00],
    };
    [&[2; 6][..], &[4; 6], &kind, packet].concat()
}

proptest! {
    #[test]
    fn the_same_packets_leave_the_same_state(
        is_v6 in any::<bool>(),
        handshake in any::<bool>(),
        is_paused in any::<bool>(),
        steps in proptest::collection::vec((step(), 0_u8..6, 0_u8..12), 1..60),
    ) {
        let kernel = if is_paused { &PAUSED } else { &KERNEL };
        let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kernel, began)) = &mut *kernel else { return Ok(()) };
        let mut both = Both::new(kernel, *began);
        let greeting = handshake.then(greeting).into_iter().flatten();
        let greeting = greeting.map(|step| (step, 1, 1));
        for (mut step, foreign, pause) in greeting.chain(steps) {
            if pause == 0 {
                step.pause += PATIENCE / 2;
            }
            // Another conversation is not to begin before this one has ended, however it ends.
            *began = both.now + step.pause + Duration::from_secs(1);
            match foreign {
                0 => both.take_foreign(is_v6, &step),
                _ => both.take(is_v6, &step),
            }
            both.compare()?;
        }
        if !is_paused {
            both.compare_recorder()?;
        }
    }
}

/// Segments that a stream consists of are what a short path in the kernel is for, which the trackers
/// must agree on as well: data in order, both ways, with what interrupts it.
#[test]
fn streams_of_data_leave_the_same_state() {
    for is_paused in [true, false] {
        let kernel = if is_paused { &PAUSED } else { &KERNEL };
        let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kernel, began)) = &mut *kernel else {
            return;
        };
        for is_v6 in [false, true] {
            let mut both = Both::new(kernel, *began);
            both.converse(is_v6, greeting());
            for round in 0..6_u16 {
                for (from, to) in [
                    (Direction::ToLink, Direction::FromLink),
                    (Direction::FromLink, Direction::ToLink),
                ] {
                    for place in 0..100 {
                        both.take(
                            is_v6,
                            &Step {
                                pause: Duration::from_millis(1),
                                payload: 700,
                                // Neither window grows, nor does that of the other host's last word.
                                window: 60_000 - 100 * round - place % 2,
                                ..step_of(from, TcpFlags::ACK)
                            },
                        );
                        both.compare().expect("the same");
                    }
                    both.take(is_v6, &step_of(to, TcpFlags::ACK));
                    both.compare().expect("the same");
                }
            }
            let counted = both.kernel.counters().expect("readable");
            assert_eq!(
                counted.tracked, both.counters.tracked,
                "all are acknowledged"
            );
            *began = both.now + Duration::from_secs(1);
        }
    }
}

#[test]
fn a_handshake_makes_a_connection_established() {
    let Some(mut kernel) = tracker() else {
        return;
    };
    let mut both = Both::new(&mut kernel, Instant::from_millis(1000));
    for step in greeting() {
        let flow = both.core.values().next().map(|known| known.tcp);
        let flow = flow.unwrap_or_default();
        both.now += step.pause;
        both.see(step.direction, &bytes(&step, false, &flow));
    }
    both.compare().expect("the same");
    let (key, known) = both.core.first_key_value().expect("one connection");
    assert_eq!(known.tcp.phase, Phase::Established);
    let kernel = both.kernel.flow(key).expect("readable").expect("tracked");
    assert_eq!(kernel.tcp.near.window_scale, Some(7));
    // The SYN was timed.
    assert_eq!(kernel.tcp.rtt.smoothed(), Duration::from_millis(20));
}

/// A forged handshake has a connection's place only after a long silence.
///
/// Two packets of somebody who knows no number make up another conversation on the same ports. It
/// gives the place back for one segment of the connection.
#[test]
fn a_foreign_handshake_has_a_connections_place_no_longer_than_that_is_silent() {
    let Some(mut kernel) = tracker() else {
        return;
    };
    for client in [Direction::ToLink, Direction::FromLink] {
        let server = match client {
            Direction::ToLink => Direction::FromLink,
            Direction::FromLink => Direction::ToLink,
        };
        let handshake = [
            step_of(client, TcpFlags::SYN),
            step_of(server, TcpFlags::SYN | TcpFlags::ACK),
            step_of(client, TcpFlags::ACK),
        ];
        let refused = [
            step_of(client, TcpFlags::SYN),
            step_of(server, TcpFlags::RST | TcpFlags::ACK),
        ];
        for steps in [&handshake[..], &refused[..]] {
            let mut both = Both::new(&mut kernel, Instant::from_millis(1000));
            both.converse(false, greeting());
            let mine = both.core[&conversation(false)].tcp;
            for step in steps {
                both.take_foreign(false, step);
                both.compare().expect("the same");
                assert_eq!(
                    both.core[&conversation(false)].tcp,
                    mine,
                    "nothing has changed"
                );
            }
            // They go on, and the connection does not, for long.
            for _ in 0..4 {
                let step = Step {
                    pause: PATIENCE / 3,
                    payload: 100,
                    ..step_of(client, TcpFlags::ACK)
                };
                both.take_foreign(false, &step);
                both.compare().expect("the same");
            }
            let now = both.core[&conversation(false)].tcp;
            assert_eq!(now.near.next == mine.near.next, steps.len() == 2, "{now:?}");
            // One segment of it shows that it is alive.
            let goes_on = bytes(&step_of(Direction::ToLink, TcpFlags::ACK), false, &mine);
            both.see(Direction::ToLink, &goes_on);
            both.compare().expect("the same");
            let known = &both.core[&conversation(false)];
            assert_eq!(known.tcp.near.next, mine.near.next);
            assert!(known.is_proven && known.tcp.phase == Phase::Established);
        }
    }
}

/// What somebody who knows no number says first, in either host's name or in both, keeps no honest
/// connection from being known.
#[test]
fn an_older_connection_becomes_known_whatever_was_said_first() {
    let Some(mut kernel) = tracker() else {
        return;
    };
    let (to, from) = (Direction::ToLink, Direction::FromLink);
    for forged in [
        &[to][..],
        &[from],
        &[to, to, from],
        &[from, to],
        &[to, from, to],
    ] {
        let mut both = Both::new(&mut kernel, Instant::from_millis(1000));
        for direction in forged {
            both.take_foreign(
                false,
                &Step {
                    payload: 1,
                    window: u16::MAX,
                    ..step_of(*direction, TcpFlags::ACK)
                },
            );
            both.compare().expect("the same");
        }
        let mut mine = TcpFlow::new();
        let mut known_after = None;
        for n in 0..20_u32 {
            let direction = if n % 2 == 0 { to } else { from };
            let payload = if n % 2 == 0 { 1000 } else { 0 };
            let step = Step {
                pause: Duration::from_secs(2),
                payload,
                ..step_of(direction, TcpFlags::ACK)
            };
            let bytes = bytes(&step, false, &mine);
            let packet = Packet::parse(bytes.clone().into()).expect("sound");
            let tcp = packet.tcp().expect("a segment");
            mine.observe(both.now, direction, tcp, payload.into())
                .expect("honest");
            both.now += step.pause;
            both.see(direction, &bytes);
            both.compare().expect("the same");
            let known = &both.core[&conversation(false)];
            if known.tcp.near.next == mine.near.next && known.tcp.phase == Phase::Established {
                known_after.get_or_insert(n);
            }
        }
        let both_names = forged.contains(&to) && forged.contains(&from);
        let most = if both_names { 17 } else { 3 };
        assert!(
            known_after.is_some_and(|n| n <= most),
            "{forged:?}: {known_after:?}"
        );
    }
}

#[test]
fn the_connections_of_an_interface_are_tracked_as_they_pass() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return skip(error),
    };
    let Some(mut tracker) = tracker() else { return };
    let run = || {
        loopback::switch_on();
        tracker.attach("lo").expect("tcx, or clsact");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let server = listener.local_addr().expect("bound");
        let mut client = TcpStream::connect(server).expect("connect");
        let (mut accepted, _) = listener.accept().expect("accept");
        client.write_all(&[7; 100_000]).expect("write");
        accepted.read_exact(&mut [0; 100_000]).expect("read");
        // Both programs see every packet of this device: each end is near once, and far once.
        let (one, two) = (client.local_addr().expect("bound"), server);
        for (near, far) in [(one, two), (two, one)] {
            let flow = tracker.flow(&FlowKey { near, far }).expect("readable");
            assert_eq!(flow.expect("tracked").tcp.phase, Phase::Established);
        }
        let counters = tracker.counters().expect("readable");
        assert!(counters.tracked > 6 && counters.odd == 0, "{counters:?}");
    };
    namespace.run(run).expect("enter");
}
