//! Hold for handshakes: the SYN and the SYN-ACK of connections that open around an outage.
//!
//! A host repeats them by a timer that has backed off to many seconds by the time the link is back,
//! and a single one that a full queue drops then costs all of that. So the newest copy of each is
//! kept, goes out when the link is back, and is repeated until the answer is seen.
//!
//! It is repeated a few times at most, with pauses that double. Of a SYN whose answer was never seen
//! no more goes out than its host has sent while the link was down. The first pause is the round trip
//! that the link's other connections show, within bounds: no shorter than the time for which a host
//! answers no second copy (Linux, `tcp_invalid_ratelimit`), and no longer than the timeout that RFC
//! 6298, section 2.1, gives whoever knows nothing. Past the caps the oldest handshake goes first.

use crate::flow::FlowIndex;
use crate::limits::Limits;
use crate::mechanisms::path::SendReason;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use outlast_wire::{Packet, TcpFlags};

/// The first pause between two copies, at least and at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_FIRST_PAUSE: Duration = Duration::from_secs(1);
/// What has passed, or went out as often as it may, is forgotten when nobody has spoken of it for as long.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// Copies that the gateway sends of a SYN-ACK, however few its host has sent: it is the answer to a
/// SYN that was seen.
const OF_SYN_ACK: u8 = 4;
/// Copies that go out, at most, before the host has sent another.
const MOST: u8 = 5;

/// The handshakes that cross one interface, as far as something may have to be done for them.
#[derive(Debug)]
pub(crate) struct Handshakes {
    kept: BTreeMap<FlowIndex, Handshake>,
    /// The same, the oldest first.
    ages: BTreeSet<(u64, FlowIndex)>,
    next_age: u64,
    /// Those that have their turn, or had it.
    due: VecDeque<FlowIndex>,
    deadlines: BTreeSet<(Instant, FlowIndex)>,
    bytes: u64,
    first_pause: Duration,
}

#[derive(Debug)]
struct Handshake {
    packet: Packet,
    /// That very copy has not gone onto the link, or was lost with it.
    is_owed: bool,
    age: u64,
    /// Copies that may still go out.
    copies_left: u8,
    stage: Stage,
    pause: Duration,
}

/// Where a handshake stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// The link is down.
    Away,
    /// It passed, and is remembered for as long.
    Passed { until: Instant },
    /// It has its turn, for the first time since the link is back or not.
    Due { is_first: bool },
    /// It went out, and goes out again then.
    Awaiting { again_at: Instant },
    /// It went out as often as it may: nothing more until then.
    Spent { until: Instant },
}

impl Stage {
    const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Away | Self::Due { .. } => None,
            Self::Awaiting { again_at: at }
            | Self::Passed { until: at }
            | Self::Spent { until: at } => Some(at),
        }
    }
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            kept: BTreeMap::new(),
            ages: BTreeSet::new(),
            next_age: 0,
            due: VecDeque::new(),
            deadlines: BTreeSet::new(),
            bytes: 0,
            first_pause: LONGEST_FIRST_PAUSE,
        }
    }
}

impl Handshakes {
    /// A host's `packet` was taken, or lost with the link. Returns how many others that were have to go
    /// for it.
    pub(crate) fn keep(&mut self, index: FlowIndex, packet: &Packet, limits: &Limits) -> u64 {
        let evicted = self.enter(index, packet, limits);
        if let Some(handshake) = self.kept.get_mut(&index) {
            handshake.copies_left = (handshake.copies_left + 1).min(MOST);
            handshake.is_owed = true;
        }
        evicted
    }

    /// A host's `packet` passed towards the link. Its answer `is_urgent` where others send what they
    /// have kept at the same time. Returns how many older ones had to go for it.
    pub(crate) fn pass(
        &mut self,
        now: Instant,
        index: FlowIndex,
        packet: &Packet,
        is_urgent: bool,
        limits: &Limits,
    ) -> u64 {
        if !self.kept.contains_key(&index) && !is_answer(packet) {
            return 0;
        }
        let evicted = self.enter(index, packet, limits);
        match self.kept.get(&index).map(|handshake| handshake.stage) {
            Some(Stage::Away | Stage::Passed { .. }) if !is_urgent => {
                let until = now + REMEMBERED_FOR;
                self.set_stage(index, Stage::Passed { until });
            }
            Some(Stage::Away | Stage::Passed { .. } | Stage::Due { .. }) => {
                self.await_answer(now, index, self.first_pause);
            }
            // The host's own copy counts as one of ours: the pause begins anew.
            Some(Stage::Awaiting { .. } | Stage::Spent { .. }) => {
                let pause = self.kept[&index].pause;
                self.await_answer(now, index, pause);
            }
            None => {}
        }
        evicted
    }

    /// The link is back: what is kept of the connection goes out, in its turn.
    pub(crate) fn come_back(&mut self, now: Instant, index: FlowIndex) {
        match self.kept.get(&index).map(|handshake| handshake.copies_left) {
            Some(1..) => {
                self.set_stage(index, Stage::Due { is_first: true });
                self.due.push_back(index);
            }
            Some(0) => self.await_answer(now, index, self.first_pause),
            None => {}
        }
    }

    /// The link is down: nothing goes out.
    pub(crate) fn go_away(&mut self, index: FlowIndex) {
        self.set_stage(index, Stage::Away);
    }

    /// Those whose pause is over have their turn again; what has been remembered for long is forgotten.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(_, index)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            let stage = self.kept.get(&index).map(|handshake| handshake.stage);
            if matches!(stage, Some(Stage::Awaiting { .. })) {
                self.set_stage(index, Stage::Due { is_first: false });
                self.due.push_back(index);
            } else {
                self.remove(index);
            }
        }
    }

    /// Whether something has its turn.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.due.is_empty()
    }

    /// The next copy that goes out, of which connection, and why.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(FlowIndex, Packet, SendReason)> {
        while let Some(index) = self.due.pop_front() {
            let Some(handshake) = self.kept.get_mut(&index) else {
                continue;
            };
            let Stage::Due { is_first } = handshake.stage else {
                continue;
            };
            handshake.copies_left -= 1;
            handshake.is_owed = false;
            let packet = handshake.packet.clone();
            let (pause, reason) = match is_first {
                true => (self.first_pause, SendReason::Kept),
                false => (2 * handshake.pause, SendReason::RepeatedKick),
            };
            self.await_answer(now, index, pause);
            return Some((index, packet, reason));
        }
        None
    }

    /// The answer was seen, or none is to come.
    pub(crate) fn remove(&mut self, index: FlowIndex) {
        self.set_stage(index, Stage::Away);
        if let Some(handshake) = self.kept.remove(&index) {
            self.ages.remove(&(handshake.age, index));
            self.bytes -= u64::from(handshake.packet.total_len());
        }
    }

    /// What the link's other connections need at most for a round trip; `None` if nobody knows.
    pub(crate) fn learn_round_trip(&mut self, longest: Option<Duration>) {
        self.first_pause = longest
            .unwrap_or(LONGEST_FIRST_PAUSE)
            .clamp(SHORTEST_PAUSE, LONGEST_FIRST_PAUSE);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Whether a copy of the connection's handshake is to go out, now or later.
    pub(crate) fn is_at_work(&self, index: FlowIndex) -> bool {
        self.kept
            .get(&index)
            .is_some_and(|one| matches!(one.stage, Stage::Due { .. } | Stage::Awaiting { .. }))
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Another copy of what is kept, or the first packet of another handshake.
    fn enter(&mut self, index: FlowIndex, packet: &Packet, limits: &Limits) -> u64 {
        if self
            .kept
            .get(&index)
            .is_some_and(|one| !is_same(&one.packet, packet))
        {
            self.remove(index);
        }
        self.bytes += u64::from(packet.total_len());
        if let Some(handshake) = self.kept.get_mut(&index) {
            self.bytes -= u64::from(handshake.packet.total_len());
            handshake.packet.clone_from(packet);
            handshake.is_owed = false;
        } else {
            let handshake = Handshake {
                packet: packet.clone(),
                is_owed: false,
                age: self.next_age,
                copies_left: if is_answer(packet) { OF_SYN_ACK } else { 0 },
                stage: Stage::Away,
                pause: self.first_pause,
            };
            self.ages.insert((self.next_age, index));
            self.next_age += 1;
            self.kept.insert(index, handshake);
        }
        let mut evicted = 0;
        while self.kept.len() > limits.other_packets || self.bytes > limits.other_bytes.0 {
            let Some(&(_, oldest)) = self.ages.first() else {
                break;
            };
            evicted += u64::from(self.kept[&oldest].is_owed);
            self.remove(oldest);
        }
        evicted
    }

    fn await_answer(&mut self, now: Instant, index: FlowIndex, pause: Duration) {
        let Some(handshake) = self.kept.get_mut(&index) else {
            return;
        };
        handshake.pause = pause;
        let stage = match handshake.copies_left {
            0 => Stage::Spent {
                until: now + REMEMBERED_FOR,
            },
            _ => Stage::Awaiting {
                again_at: now + pause,
            },
        };
        self.set_stage(index, stage);
    }

    fn set_stage(&mut self, index: FlowIndex, stage: Stage) {
        let Some(handshake) = self.kept.get_mut(&index) else {
            return;
        };
        let before = core::mem::replace(&mut handshake.stage, stage);
        if let Some(at) = before.deadline() {
            self.deadlines.remove(&(at, index));
        }
        if let Some(at) = stage.deadline() {
            self.deadlines.insert((at, index));
        }
    }
}

/// Whether it is a SYN-ACK: both hosts were seen.
fn is_answer(packet: &Packet) -> bool {
    packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::ACK))
}

/// Whether both are of the same connection. Other flags may differ: a host that gets no answer gives
/// up ECN (RFC 3168, section 6.1.1.1).
fn is_same(one: &Packet, other: &Packet) -> bool {
    let seq = |packet: &Packet| packet.tcp().map(|tcp| tcp.seq);
    is_answer(one) == is_answer(other) && seq(one) == seq(other)
}
