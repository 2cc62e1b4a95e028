//! Hold for connections of which the gateway has not heard both hosts: the SYN and the SYN-ACK of those
//! that open around an outage, and the newest data of those that are older than the gateway.
//!
//! A host repeats them by a timer that has backed off to many seconds by the time the link is back,
//! and a single one that a full queue drops then costs all of that. So the newest copy of each is
//! kept, goes out when the link is back, and is repeated until the answer is seen.
//!
//! It is repeated a few times at most, with pauses that double. Of a SYN whose answer was never seen
//! no more goes out than its host has sent: while the link was down, or was silent and nobody knew. The first pause is the round trip
//! that the link's other connections show, within bounds: no shorter than the time for which a host
//! answers no second copy (Linux, `tcp_invalid_ratelimit`), and no longer than the timeout that RFC
//! 6298, section 2.1, gives whoever knows nothing. Past the caps the oldest handshake goes first.
//!
//! A *one-sided* connection is one whose beginning was not seen and of which only the near host was heard: a
//! gateway that starts amid an outage meets no others. Nobody can say what its far host has, so that
//! nothing is made up for it. The newest segment with data that its host has sent is delivered when the
//! link is back, as a SYN is and no more often than its host has sent some. Where nobody says that the link
//! is away, data that is not answered while nobody else is heard has the far host asked. During an outage that is the
//! retransmission of what the far host lacks first; the answer makes the connection one like any other.
//!
//! The far host may have had that segment all along: the outage took its acknowledgement. Then its answer
//! echoes a timestamp from before the outage (RFC 7323, section 4.3). The near host would measure a round
//! trip as long as the outage, take its timeouts for spurious, and wait for a tail loss probe of twice that
//! round trip (RFC 8985, section 7). So the near host does not get that answer: an ICMP error makes it
//! repeat its segment at once (RFC 6069), its new timestamp reaches the far host by a bare acknowledgement,
//! and the far host's answer to the repeated segment echoes that.
//! One-sided connections have a cap of their own, the [`SHARE_OF_ONE_SIDED`]th part of what may be kept for all.

use crate::limits::Limits;
use crate::mechanisms::path::SendReason;
use crate::tracking::FlowIndex;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};

/// The first pause between two copies, at least and at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_FIRST_PAUSE: Duration = Duration::from_secs(1);
/// What has passed, or went out as often as it may, is forgotten when nobody has spoken of it for as long.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// No sender of data that gets no answer waits longer before it tries again (RFC 6298, section 2.4; Linux,
/// `TCP_RTO_MAX`).
const ONE_SIDED_REMEMBERED_FOR: Duration = Duration::from_secs(150);
/// The pause between two questions is at least this part of the time since the first.
const SLOWING: u32 = 200;
/// One in so many of the bytes that may be kept for all connections may be one-sided connections'.
const SHARE_OF_ONE_SIDED: u64 = 16;
/// Copies that the gateway sends of a SYN-ACK, however few its host has sent: it is the answer to a
/// SYN that was seen.
const OF_SYN_ACK: u8 = 4;
/// A far host has no more behind the segment that is kept of a one-sided connection, in bytes.
const MOST_BEYOND: i32 = 1 << 24;
/// A near host repeats its segment within this of the ICMP error, or the kept copy goes out again.
const REPEATED_WITHIN: Duration = Duration::from_millis(200);
/// Copies that go out, at most, before the host has sent another.
const MOST: u8 = 5;

/// The handshakes that cross one interface, as far as something may have to be done for them.
#[derive(Debug)]
pub(crate) struct Handshakes {
    kept: BTreeMap<FlowIndex, Handshake>,
    /// Places in `kept`, the oldest first: handshakes, and one-sided connections.
    ages: [BTreeSet<(u64, FlowIndex)>; 2],
    next_age: u64,
    /// Entries that have their turn, or had it.
    due: VecDeque<FlowIndex>,
    /// One-sided connections whose data was not answered in time, and when that passed.
    unanswered: VecDeque<(FlowIndex, Instant)>,
    /// Entries whose far host is asked, or was; and when the next one is.
    probed: VecDeque<FlowIndex>,
    probe_at: Option<Instant>,
    deadlines: BTreeSet<(Instant, FlowIndex)>,
    /// Of handshakes, and of one-sided connections.
    bytes: [u64; 2],
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
    /// The far host has shown that it had the copy before the link went away; that answer was withheld.
    was_stale: bool,
}

/// Where a handshake stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// The link is down.
    Away,
    /// It passed, and is remembered for as long.
    Passed { until: Instant },
    /// Data of a one-sided connection passed `at` that time, and ought to be answered by `until`.
    Asked { at: Instant, until: Instant },
    /// It was not, and nobody else was heard: the far host is asked until then.
    Probed { since: Instant, until: Instant },
    /// It has its turn, for the first time since the link is back or not.
    Due { is_first: bool },
    /// It went out; then it goes out again, if it may.
    Awaiting { again_at: Instant },
    /// The far host has it, and `acked` in all, by an answer that was withheld: the near host is to repeat
    /// it until then.
    Stale { acked: SeqNumber, until: Instant },
    /// It went out as often as it may: nothing more until then.
    Spent { until: Instant },
}

impl Stage {
    const fn is_at_work(self) -> bool {
        matches!(
            self,
            Self::Due { .. }
                | Self::Awaiting { .. }
                | Self::Asked { .. }
                | Self::Probed { .. }
                | Self::Stale { .. }
        )
    }

    const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Away | Self::Due { .. } => None,
            Self::Awaiting { again_at: at }
            | Self::Asked { until: at, .. }
            | Self::Probed { until: at, .. }
            | Self::Stale { until: at, .. }
            | Self::Passed { until: at }
            | Self::Spent { until: at } => Some(at),
        }
    }
}

impl Default for Handshakes {
    fn default() -> Self {
        Self {
            kept: BTreeMap::new(),
            ages: [BTreeSet::new(), BTreeSet::new()],
            next_age: 0,
            due: VecDeque::new(),
            unanswered: VecDeque::new(),
            probed: VecDeque::new(),
            probe_at: None,
            deadlines: BTreeSet::new(),
            bytes: [0; 2],
            first_pause: LONGEST_FIRST_PAUSE,
        }
    }
}

impl Handshakes {
    /// A host's `packet` was taken. Returns how many others that were have to go for it.
    pub(crate) fn keep(&mut self, index: FlowIndex, packet: &Packet, limits: &Limits) -> u64 {
        self.own(index, packet, limits, |copies| (copies + 1).min(MOST))
    }

    /// A host's `packet` had passed, and was lost with the link. Returns how many others that were taken or lost have to go for
    /// it.
    pub(crate) fn lose(&mut self, index: FlowIndex, packet: &Packet, limits: &Limits) -> u64 {
        self.own(index, packet, limits, |copies| copies.max(1))
    }

    /// Enters a copy that nobody else has, of which so many go out.
    fn own(
        &mut self,
        index: FlowIndex,
        packet: &Packet,
        limits: &Limits,
        copies: impl Fn(u8) -> u8,
    ) -> u64 {
        let evicted = self.enter(index, packet, limits);
        if let Some(handshake) = self.kept.get_mut(&index) {
            handshake.copies_left = copies(handshake.copies_left);
            handshake.is_owed = true;
        }
        evicted
    }

    /// A host's `packet` passed towards the link, which may be silent. A SYN-ACK `is_urgent` where others send what they
    /// have kept at the same time. Returns how many older ones had to go for it.
    pub(crate) fn pass(
        &mut self,
        now: Instant,
        index: FlowIndex,
        packet: &Packet,
        is_urgent: bool,
        limits: &Limits,
    ) -> u64 {
        let evicted = self.enter(index, packet, limits);
        let Some(handshake) = self.kept.get_mut(&index) else {
            return evicted;
        };
        let answers = is_answer(packet);
        let pause = handshake.pause;
        match handshake.stage {
            Stage::Away | Stage::Passed { .. } if !(is_urgent && answers) => {
                if !answers {
                    handshake.copies_left = (handshake.copies_left + 1).min(MOST);
                }
                let until = now + REMEMBERED_FOR;
                self.set_stage(index, Stage::Passed { until });
            }
            Stage::Away | Stage::Passed { .. } | Stage::Due { .. } => {
                self.await_answer(now, index, self.first_pause);
            }
            // The host's own copy counts as one of ours: the pause begins anew.
            Stage::Awaiting { .. } | Stage::Spent { .. } => self.await_answer(now, index, pause),
            Stage::Asked { .. } | Stage::Probed { .. } | Stage::Stale { .. } => {}
        }
        evicted
    }

    /// Data of a one-sided connection passed towards the link. Returns how many older such connections had
    /// to go for it.
    pub(crate) fn pass_one_sided(
        &mut self,
        now: Instant,
        index: FlowIndex,
        packet: &Packet,
        limits: &Limits,
    ) -> u64 {
        let evicted = self.enter(index, packet, limits);
        let Some(one) = self.kept.get_mut(&index) else {
            return evicted;
        };
        let (stage, pause) = (one.stage, one.pause);
        match stage {
            // The host's own copy counts as one of ours: the pause begins anew.
            Stage::Due { .. } | Stage::Awaiting { .. } => self.await_answer(now, index, pause),
            Stage::Asked { .. } | Stage::Stale { .. } => {}
            Stage::Probed { since, .. } => {
                one.copies_left = (one.copies_left + 1).min(MOST);
                let until = now + ONE_SIDED_REMEMBERED_FOR;
                self.set_stage(index, Stage::Probed { since, until });
            }
            Stage::Away | Stage::Passed { .. } | Stage::Spent { .. } => {
                one.copies_left = (one.copies_left + 1).min(MOST);
                let until = now + self.first_pause;
                self.set_stage(index, Stage::Asked { at: now, until });
            }
        }
        evicted
    }

    /// The next one-sided connection whose data was not answered in time, and when that passed.
    pub(crate) fn next_unanswered(&mut self) -> Option<(FlowIndex, Instant)> {
        self.unanswered.pop_front()
    }

    /// The far host of a one-sided connection is asked from now on whether it is there.
    pub(crate) fn begin_to_probe(&mut self, now: Instant, index: FlowIndex) {
        let until = now + ONE_SIDED_REMEMBERED_FOR;
        self.set_stage(index, Stage::Probed { since: now, until });
        self.probed.push_back(index);
        self.probe_at = Some(self.probe_at.map_or(now, |at| at.max(now)));
    }

    /// The one-sided connection whose far host is to be asked now. The next one is so `gap` later, or
    /// the later the longer this one has been asked for.
    pub(crate) fn next_to_probe(&mut self, now: Instant, gap: Duration) -> Option<FlowIndex> {
        if self.probe_at.is_none_or(|at| at > now) {
            return None;
        }
        while let Some(index) = self.probed.pop_front() {
            if let Some(since) = self.probed_since(index) {
                self.probed.push_back(index);
                self.probe_at = Some(now + gap.max(now.since(since) / SLOWING));
                return Some(index);
            }
        }
        self.probe_at = None;
        None
    }

    /// No far host is asked any more.
    pub(crate) fn stop_probing(&mut self) {
        self.probed.clear();
        self.probe_at = None;
    }

    /// One-sided connections whose far hosts are asked.
    pub(crate) fn probed(&self) -> impl Iterator<Item = FlowIndex> {
        let probed = self.probed.iter().copied();
        probed.filter(|index| self.probed_since(*index).is_some())
    }

    fn probed_since(&self, index: FlowIndex) -> Option<Instant> {
        match self.kept.get(&index)?.stage {
            Stage::Probed { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Whether a far host's bare acknowledgement is to be withheld, and its near host to be made to repeat
    /// what is kept: the far host had that before, and echoes an older timestamp. Returns where what is kept
    /// begins.
    pub(crate) fn withhold_stale(
        &mut self,
        now: Instant,
        index: FlowIndex,
        tcp: &TcpHeader,
    ) -> Option<SeqNumber> {
        if !self.is_acknowledged(index, tcp.ack) {
            return None;
        }
        let one = self.kept.get_mut(&index)?;
        let is_asked = matches!(
            one.stage,
            Stage::Due { .. } | Stage::Awaiting { .. } | Stage::Probed { .. }
        );
        let kept = one.packet.tcp()?;
        let (of_kept, of_answer) = (kept.options.timestamps?, tcp.options.timestamps?);
        let is_stale = SeqNumber(of_answer.echo).before(SeqNumber(of_kept.value));
        // What has arrived behind a hole shows the near host by itself what was lost.
        let shows_hole = tcp
            .options
            .sack
            .iter()
            .any(|block| block.right.after(tcp.ack));
        if one.was_stale || !is_asked || !is_stale || shows_hole || tcp.flags != TcpFlags::ACK {
            return None;
        }
        let begins = kept.seq;
        one.was_stale = true;
        let until = now + REPEATED_WITHIN;
        self.set_stage(
            index,
            Stage::Stale {
                acked: tcp.ack,
                until,
            },
        );
        Some(begins)
    }

    /// The near host repeats what the far host has by an answer that was withheld: the copy goes out in its
    /// turn. Returns all that the far host has.
    pub(crate) fn renew(
        &mut self,
        index: FlowIndex,
        packet: &Packet,
        limits: &Limits,
    ) -> Option<SeqNumber> {
        let Stage::Stale { acked, .. } = self.kept.get(&index)?.stage else {
            return None;
        };
        let end = packet.tcp()?.seq + packet.sequence_len();
        if packet.sequence_len() == 0 || end.after(acked) {
            return None;
        }
        self.enter(index, packet, limits);
        self.send_again(index);
        Some(acked)
    }

    /// One more copy of what is kept goes out, in its turn.
    fn send_again(&mut self, index: FlowIndex) {
        if let Some(one) = self.kept.get_mut(&index) {
            one.copies_left = one.copies_left.max(1);
            self.set_stage(index, Stage::Due { is_first: true });
            self.due.push_back(index);
        }
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
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
        if let Some(one) = self.kept.get_mut(&index) {
            one.was_stale = false;
        }
        self.set_stage(index, Stage::Away);
    }

    /// Gives entries whose pause is over their turn again, and forgets old ones.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(_, index)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            match self.kept.get(&index).map(|handshake| handshake.stage) {
                Some(Stage::Awaiting { .. }) if self.kept[&index].copies_left == 0 => {
                    let until = now + REMEMBERED_FOR;
                    self.set_stage(index, Stage::Spent { until });
                }
                Some(Stage::Awaiting { .. }) => {
                    self.set_stage(index, Stage::Due { is_first: false });
                    self.due.push_back(index);
                }
                Some(Stage::Asked { at, .. }) => {
                    let until = now + ONE_SIDED_REMEMBERED_FOR;
                    self.set_stage(index, Stage::Passed { until });
                    self.unanswered.push_back((index, at));
                }
                Some(Stage::Stale { .. }) => self.send_again(index),
                _ => self.remove(index),
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
            let (pause, reason) = match (is_first, Class::of(&packet)) {
                (true, _) => (self.first_pause, SendReason::Kept),
                (false, Class::Handshake) => (2 * handshake.pause, SendReason::RepeatedKick),
                (false, Class::OneSided) => (2 * handshake.pause, SendReason::Kept),
            };
            self.await_answer(now, index, pause);
            return Some((index, packet, reason));
        }
        None
    }

    /// Whether what is kept of a connection ends behind `acked`, and not behind `next`.
    pub(crate) fn is_lacking(&self, index: FlowIndex, acked: SeqNumber, next: SeqNumber) -> bool {
        let packet = self.kept.get(&index).map(|one| &one.packet);
        packet.is_some_and(|packet| {
            let end = packet.tcp().map(|tcp| tcp.seq + packet.sequence_len());
            end.is_some_and(|end| end.after(acked) && end.at_or_before(next))
        })
    }

    /// Whether `ack` acknowledges the data of a one-sided connection that is kept.
    pub(crate) fn is_acknowledged(&self, index: FlowIndex, ack: SeqNumber) -> bool {
        let packet = self.kept.get(&index).map(|one| &one.packet);
        packet.is_some_and(|packet| {
            let end = packet.tcp().map(|tcp| tcp.seq + packet.sequence_len());
            let beyond = end.map(|end| ack.distance_from(end));
            packet.header().payload_len > 0
                && beyond.is_some_and(|beyond| (0..MOST_BEYOND).contains(&beyond))
        })
    }

    /// The answer was seen, or none is to come.
    pub(crate) fn remove(&mut self, index: FlowIndex) {
        self.set_stage(index, Stage::Away);
        if let Some(handshake) = self.kept.remove(&index) {
            let class = Class::of(&handshake.packet) as usize;
            self.ages[class].remove(&(handshake.age, index));
            self.bytes[class] -= u64::from(handshake.packet.total_len());
        }
    }

    /// What the link's other connections need at most for a round trip; `None` if nobody knows.
    pub(crate) fn learn_round_trip(&mut self, longest: Option<Duration>) {
        self.first_pause = longest
            .unwrap_or(LONGEST_FIRST_PAUSE)
            .clamp(SHORTEST_PAUSE, LONGEST_FIRST_PAUSE);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of_one = self.deadlines.first().map(|(at, _)| *at);
        of_one.into_iter().chain(self.probe_at).min()
    }

    /// Whether a copy of what is kept of the connection is to go out, now or later, or its far host is asked.
    pub(crate) fn is_at_work(&self, index: FlowIndex) -> bool {
        self.kept
            .get(&index)
            .is_some_and(|one| one.stage.is_at_work())
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes[0] + self.bytes[1]
    }

    /// Enters another copy of a kept packet, or the first packet of another handshake.
    fn enter(&mut self, index: FlowIndex, packet: &Packet, limits: &Limits) -> u64 {
        if self
            .kept
            .get(&index)
            .is_some_and(|one| !is_same(&one.packet, packet))
        {
            self.remove(index);
        }
        let class = Class::of(packet);
        let (ages, bytes) = (
            &mut self.ages[class as usize],
            &mut self.bytes[class as usize],
        );
        *bytes += u64::from(packet.total_len());
        if let Some(handshake) = self.kept.get_mut(&index) {
            *bytes -= u64::from(handshake.packet.total_len());
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
                was_stale: false,
            };
            ages.insert((self.next_age, index));
            self.next_age += 1;
            self.kept.insert(index, handshake);
        }
        let mut evicted = 0;
        while class.is_past_cap(
            self.ages[class as usize].len(),
            self.bytes[class as usize],
            limits,
        ) {
            let Some(&(_, oldest)) = self.ages[class as usize].first() else {
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
        let stage = Stage::Awaiting {
            again_at: now + pause,
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

/// What is kept of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    /// Its SYN or SYN-ACK.
    Handshake,
    /// Data: its beginning was not seen.
    OneSided,
}

impl Class {
    fn of(packet: &Packet) -> Self {
        match packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN)) {
            true => Self::Handshake,
            false => Self::OneSided,
        }
    }

    const fn is_past_cap(self, count: usize, bytes: u64, limits: &Limits) -> bool {
        match self {
            Self::Handshake => count > limits.other_packets || bytes > limits.other_bytes.0,
            Self::OneSided => bytes > limits.held_in_all.0 / SHARE_OF_ONE_SIDED,
        }
    }
}

/// Whether it is a SYN-ACK: both hosts were seen.
fn is_answer(packet: &Packet) -> bool {
    let answers = |tcp: &TcpHeader| tcp.has(TcpFlags::SYN) && tcp.has(TcpFlags::ACK);
    packet.tcp().is_some_and(answers)
}

/// Whether both are of the same connection: data always is, however old. Other flags of a
/// SYN may differ: a host that gets no answer gives up ECN (RFC 3168, section 6.1.1.1).
fn is_same(one: &Packet, other: &Packet) -> bool {
    let seq = |packet: &Packet| packet.tcp().map(|tcp| tcp.seq);
    match (Class::of(one), Class::of(other)) {
        (Class::OneSided, Class::OneSided) => true,
        (Class::Handshake, Class::Handshake) => {
            is_answer(one) == is_answer(other) && seq(one) == seq(other)
        }
        _ => false,
    }
}
