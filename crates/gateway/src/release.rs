//! What waits for one interface, and when it goes out: small urgent packets first, then data, far host by
//! far host and connection by connection, at the link's pace.
//!
//! Bound: a packet that arrives while its link is up waits for what its own connection has kept, and for
//! no more than one turn of each other far host that answers, per turn of its own far host ([`Round`]); a far host
//! that does not answer takes an eighth of the pace at most, whatever is kept for it ([`Answers`]). A
//! packet that is no segment of a tracked connection does not wait at all.

mod allotments;
mod answers;
mod bandwidth;
mod handshakes;
mod interfaces;
mod lifetime;
mod others;
mod pace;
mod round;

use crate::limits::Limits;
use crate::links::{Indicator, InterfaceId, LinkId, LinkState, StateSince};
use crate::mechanisms::path::Waiting;
use crate::tracking::{FlowIndex, Half, LinkRtt};
pub(crate) use allotments::Allotment;
use allotments::Allotments;
use answers::Answers;
use bandwidth::{Departure, Seen, seen_before};
use core::net::IpAddr;
use handshakes::Handshakes;
pub(crate) use interfaces::Releases;
pub(crate) use others::OtherTraffic;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};
pub(crate) use pace::{INITIAL_BURST, Pacer};
use round::{Party, Round};
pub(crate) use round::{Taken, Turn};

/// The line goes on after the backlog is gone, for as long as the backlog took, but no longer than this.
///
/// Hosts have held data back meanwhile, and would overflow the link's queue at once. Later the link's own drops
/// are to tell them that they send too much.
const LONGEST_TAIL: Duration = Duration::from_secs(2);
/// Silent far hosts get one part in so many of the pace, all together.
const PROBE_SHARE: u32 = 8;
/// What a duplicate acknowledgement stands for, in bytes: a segment that has arrived.
const SEGMENT: u32 = 1_460;
/// A handshake takes as much of the link as this many bytes.
const HANDSHAKE_ROOM: u32 = 375;
/// Above so many awaited far hosts, those for which nothing waits are forgotten.
const MANY_FAR_HOSTS: usize = 1_024;

/// What waits for one interface.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) interface: InterfaceId,
    pub(crate) pacer: Pacer,
    pub(crate) others: OtherTraffic,
    pub(crate) handshakes: Handshakes,
    urgent: Round,
    data: Round,
    answers: Answers,
    /// What of the link's rate each connection gets, if that is shared out.
    allotments: Option<Allotments>,
    /// Silent far hosts may be probed again from then on.
    probe_at: Instant,
    /// When the first link of this return came back.
    back_since: Instant,
    /// From then on nobody joins the line, once nothing that was kept waits.
    line_ends: Instant,
    /// Until then, the first answers are on their way.
    first_answers_by: Instant,
}

impl Release {
    pub(crate) fn new(interface: InterfaceId, rate: Option<BitRate>) -> Self {
        Self {
            interface,
            pacer: Pacer::new(rate),
            others: OtherTraffic::default(),
            handshakes: Handshakes::default(),
            urgent: Round::default(),
            data: Round::default(),
            answers: Answers::default(),
            allotments: None,
            probe_at: Instant::ZERO,
            back_since: Instant::ZERO,
            line_ends: Instant::ZERO,
            first_answers_by: Instant::ZERO,
        }
    }

    /// Shares the link's rate out among connections from now on, or no longer.
    pub(crate) fn share_out(&mut self, shares_out: bool) {
        self.allotments = shares_out.then(|| self.allotments.take().unwrap_or_default());
    }

    /// Notes that new data has come for the connection at `index` with `far_host`.
    pub(crate) fn note_data(&mut self, now: Instant, far_host: IpAddr, index: FlowIndex) {
        if let Some(allotments) = &mut self.allotments {
            allotments.note_data(now, far_host, index);
        }
    }

    /// The connection at `index` with `far_host` is gone.
    pub(crate) fn forget_share(&mut self, far_host: IpAddr, index: FlowIndex) {
        if let Some(allotments) = &mut self.allotments {
            allotments.forget(far_host, index);
        }
    }

    /// What of the link's rate the connection at `index` with `far_host` gets. `None` if the rate is not shared out,
    /// or not known.
    pub(crate) fn allotment(&self, far_host: IpAddr, index: FlowIndex) -> Option<Allotment> {
        let rate = self.pacer.configured_rate()?;
        Some(self.allotments.as_ref()?.of(rate, far_host, index))
    }

    /// Gives a connection with `far_host` a turn, unless it has one.
    pub(crate) fn give_flow_a_turn(
        &mut self,
        index: FlowIndex,
        far_host: IpAddr,
        waiting: Waiting,
    ) {
        if self.has_turn(index) {
            return;
        }
        let round = match waiting {
            Waiting::Urgent => &mut self.urgent,
            Waiting::Data | Waiting::InLine => &mut self.data,
        };
        round.enter(Party::FarHost(far_host), Turn::Flow(index, waiting));
    }

    /// Whether a connection waits for its turn.
    pub(crate) fn has_turn(&self, index: FlowIndex) -> bool {
        self.urgent.has(index) || self.data.has(index)
    }

    /// Takes a connection's turn back.
    pub(crate) fn take_turn_back(&mut self, index: FlowIndex, far_host: IpAddr) {
        self.urgent.leave(Party::FarHost(far_host), index);
        self.data.leave(Party::FarHost(far_host), index);
    }

    /// `link`, of this interface, came back, as `by` has said: how its connections have worked before, by
    /// their `round_trips`, is where its pace begins.
    pub(crate) fn welcome<'a>(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        round_trips: impl Iterator<Item = &'a LinkRtt> + Clone,
    ) {
        let known = round_trips.clone().filter(|rtt| rtt.measured().is_some());
        let longest = known.map(LinkRtt::patience).max();
        let deliveries = round_trips.filter_map(|rtt| Some((rtt.delivery()?, rtt.smoothed())));
        self.restart(now, link, by, seen_before(deliveries), longest);
        self.give_others_a_turn();
    }

    /// The pace begins anew with what was `seen` of the link before; a round trip takes no longer than
    /// `longest`.
    fn restart(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        seen: Seen,
        longest: Option<Duration>,
    ) {
        let answered_in = longest.unwrap_or(LinkRtt::INITIAL).min(LONGEST_TAIL);
        match link.peer {
            None => {
                self.pacer.restart(now, seen, answered_in);
                if by != Indicator::FirstPacket {
                    self.pacer.await_sign(now);
                }
            }
            Some(_) => self.pacer.welcome_peer(now, seen, answered_in),
        }
        if self.data.kept() == 0 {
            self.back_since = now;
        }
        self.handshakes.learn_round_trip(longest);
        self.first_answers_by = self.first_answers_by.max(now + answered_in);
        if self.answers.len() > MANY_FAR_HOSTS {
            let (urgent, data) = (&self.urgent, &self.data);
            let waits = |far_host| {
                urgent.waits_for(Party::FarHost(far_host))
                    || data.waits_for(Party::FarHost(far_host))
            };
            self.answers.retain(waits);
        }
    }

    /// Waits for a sign of life from `far_host`, whose link came back.
    pub(crate) fn expect(&mut self, far_host: IpAddr) {
        self.answers.expect(far_host);
        self.data.call_back(Party::FarHost(far_host));
    }

    /// Notes that something plausible came from `far_host`.
    pub(crate) fn hear(&mut self, far_host: IpAddr) {
        if self.answers.heard(far_host) {
            self.data.call_back(Party::FarHost(far_host));
        }
    }

    /// Notes that something was sent to `far_host` that draws an answer within `patience`.
    pub(crate) fn ask(&mut self, now: Instant, far_host: IpAddr, patience: Duration) {
        self.answers.sent(now, far_host, patience);
    }

    /// True once no kept segment has waited for [`LONGEST_TAIL`].
    ///
    /// Who is in line then waits only for its own earlier segments.
    pub(crate) fn line_is_over(&self, now: Instant) -> bool {
        self.data.kept() == 0 && now >= self.line_ends + LONGEST_TAIL
    }

    /// Whether the new data of a connection whose link is up `since` then is paced: the first answer opens a
    /// whole window to its sender at once.
    pub(crate) fn is_paced(&self, now: Instant, since: Instant) -> bool {
        now < self.first_answers_by && since >= self.back_since
    }

    /// Whether others that came back with a connection, whose link is up `since` then, send what they have kept.
    fn is_busy(&self, now: Instant, since: Instant) -> bool {
        let is_at_work = self.data.kept() > 0 || self.data.in_line() > 0 && now < self.line_ends;
        is_at_work && since >= self.back_since
    }

    /// A packet of the connection at `index` with `far_host`, whose round trips are `rtt`, goes onto the link while
    /// the link's rate is measured; `departed` counts its data.
    pub(crate) fn note_departure(
        &mut self,
        now: Instant,
        (far_host, index): (IpAddr, FlowIndex),
        rtt: &LinkRtt,
        departed: &mut u32,
        packet: &Packet,
    ) {
        let len = packet.sequence_len();
        let Some(tcp) = packet.tcp() else {
            return;
        };
        *departed = departed.saturating_add(len);
        let departure = Departure {
            far_host,
            index,
            end: tcp.seq + len,
            data: len,
            len: packet.total_len(),
            round_trip: rtt.measured().unwrap_or_default(),
            patience: rtt.patience(),
        };
        self.pacer.depart(now, departure);
    }

    /// A segment of the connection at `index` has come from `far_host` while the link's rate is measured: of what
    /// has `departed` some has arrived, as it acknowledges, or says `selectively` in so many bytes.
    pub(crate) fn note_arrival(
        &mut self,
        now: Instant,
        (far_host, index): (IpAddr, FlowIndex),
        near: &Half,
        departed: &mut u32,
        (packet, newly_acked, selectively): (&Packet, u32, u32),
    ) {
        let repeats = packet.sequence_len() == 0
            && packet.tcp().is_some_and(|tcp| {
                tcp.flags == TcpFlags::ACK && tcp.ack == near.acked && tcp.options.sack.is_empty()
            });
        let arrived = match newly_acked {
            0 if repeats && near.has_outstanding() => SEGMENT,
            newly_acked => newly_acked.saturating_add(selectively),
        };
        let arrived = arrived.min(*departed);
        *departed -= arrived;
        let sacked = packet.tcp().map(|tcp| &tcp.options.sack);
        let sacked = sacked.into_iter().flatten().map(|block| block.right);
        // What is selectively acknowledged was sent, or says nothing.
        let sacked = sacked.filter(|right| !right.after(near.next));
        let reached = sacked.fold(near.acked, SeqNumber::max);
        self.pacer
            .delivered(now, (far_host, index), arrived, reached);
    }

    /// A SYN or SYN-ACK that waits for its answer crosses towards the link, which is in `state`. Returns how
    /// many older handshakes had to go for it.
    pub(crate) fn pass_handshake(
        &mut self,
        now: Instant,
        index: FlowIndex,
        packet: &Packet,
        state: StateSince,
        limits: &Limits,
    ) -> u64 {
        if state.state == LinkState::Down {
            return self.handshakes.keep(index, packet, limits);
        }
        let is_urgent = self.is_busy(now, state.since);
        self.handshakes.pass(now, index, packet, is_urgent, limits)
    }

    /// A segment shows whether a connection's handshake, or its one-sided data, needs no further copies.
    pub(crate) fn note_opened(
        &mut self,
        index: FlowIndex,
        near: &Half,
        tcp: &TcpHeader,
        (is_from_link, newly_acked, has_met): (bool, u32, bool),
    ) {
        // Of a one-sided connection nobody knows what was acknowledged before.
        let is_answer = is_from_link
            && (newly_acked > 0
                || tcp.has(TcpFlags::ACK) && self.handshakes.is_acknowledged(index, tcp.ack));
        // Once the hosts have met, it is known whether the far host lacks what is kept.
        let is_past = has_met && !self.handshakes.is_lacking(index, near.acked, near.next);
        if is_answer || is_past || tcp.has(TcpFlags::RST) {
            self.handshakes.remove(index);
        }
    }

    /// The link of a connection went or came.
    pub(crate) fn change_link(&mut self, now: Instant, index: FlowIndex, state: LinkState) {
        match state {
            LinkState::Down => self.handshakes.go_away(index),
            LinkState::Up => {
                self.handshakes.come_back(now, index);
                self.give_handshakes_a_turn();
            }
        }
    }

    /// One packet of other traffic whose link `is_up`, and how many were dropped because they are older than
    /// `age`.
    pub(crate) fn next_other(
        &mut self,
        now: Instant,
        age: Duration,
        is_up: impl Fn(LinkId) -> bool,
    ) -> (Option<(LinkId, Packet)>, u64) {
        let dropped = self.others.drop_stale(now, age);
        let next = self.others.next(now, &is_up);
        if next.is_some() && self.others.has_next(is_up) {
            self.give_others_a_turn();
        }
        (next, dropped)
    }

    /// Packets of a connection have gone out, `len` bytes, in its turn for what was `waiting`. One with a
    /// `standing_queue` feels from there when it sends too much.
    pub(crate) fn charge_connection(
        &mut self,
        now: Instant,
        waiting: Waiting,
        len: u32,
        has_standing_queue: bool,
    ) {
        if self.allotments.is_some() {
            // All that goes out waits here, and nothing in the link's own queue.
            self.pacer.charge_rest(len);
        } else if waiting == Waiting::InLine && self.line_is_over(now) {
            self.pacer.charge_half(len);
        } else if !has_standing_queue {
            self.pacer.charge_rest(len);
        }
    }

    /// A handshake of `len` bytes has gone out. Returns what it counts as: what is counted in packets, or
    /// answered by more than it has itself, is not to meet a full queue.
    pub(crate) fn charge_handshake(&mut self, len: u32) -> u32 {
        self.pacer.charge_more(HANDSHAKE_ROOM.saturating_sub(len));
        self.pacer.charge_rest(len.max(HANDSHAKE_ROOM));
        len.max(HANDSHAKE_ROOM)
    }

    /// When a handshake is due again.
    pub(crate) fn next_handshake(&self) -> Option<Instant> {
        self.handshakes.deadline()
    }

    /// Other traffic takes part in the round, as one party.
    pub(crate) fn give_others_a_turn(&mut self) {
        self.data.enter(Party::Others, Turn::Others);
    }

    /// Handshakes that are due take part in the round, all of them as one party.
    pub(crate) fn give_handshakes_a_turn(&mut self) {
        if self.handshakes.has_waiting() {
            self.data.enter(Party::Handshakes, Turn::Handshakes);
        }
    }

    /// Takes the next turn, if one may be taken now.
    pub(crate) fn next_turn(&mut self, now: Instant) -> Option<Taken> {
        if !self.pacer.allows(now) {
            return None;
        }
        let taken = self.probe(now).or_else(|| self.take_urgent());
        let taken = taken.or_else(|| self.take_data(now));
        // Whoever was found to be silent just now is probed at once.
        let taken = taken.or_else(|| self.probe(now));
        if taken.is_none() {
            self.pacer.ran_dry();
            if now >= self.line_ends + LONGEST_TAIL && now >= self.first_answers_by {
                self.pacer.stop_measuring();
            }
        }
        taken
    }

    fn take_urgent(&mut self) -> Option<Taken> {
        let party = self.urgent.head()?;
        self.urgent.take(party)
    }

    fn take_data(&mut self, now: Instant) -> Option<Taken> {
        while let Some(party) = self.data.head() {
            if let Party::FarHost(far_host) = party
                && self.answers.is_silent(now, far_host)
            {
                self.data.set_aside(party);
                self.answers.probe(now, far_host);
                continue;
            }
            let taken = self.data.take(party)?;
            if taken.turn.waiting() == Some(Waiting::Data) {
                let took = now.since(self.back_since).min(LONGEST_TAIL);
                self.line_ends = now + took;
            }
            return Some(taken);
        }
        None
    }

    /// A turn of a silent far host, if one is due.
    fn probe(&mut self, now: Instant) -> Option<Taken> {
        while let Some((at, far_host)) = self.answers.next_probe()
            && at.max(self.probe_at) <= now
        {
            let party = Party::FarHost(far_host);
            if self.data.waits_for(party) {
                return self.data.take(party);
            }
            self.answers.rest(far_host);
        }
        None
    }

    /// What was taken has sent `len` bytes.
    pub(crate) fn charge(&mut self, now: Instant, taken: Taken, len: u32) {
        if let Party::FarHost(far_host) = taken.party
            && !self.answers.has_answered(far_host)
            && self.answers.is_silent(now, far_host)
        {
            self.probe_at = now + self.pacer.time_for(len) * PROBE_SHARE;
        }
        match taken.turn.waiting() {
            Some(Waiting::Urgent) => self.urgent.charge(taken, len),
            _ => self.data.charge(taken, len),
        }
    }

    /// When the next turn may be taken; `None` if nothing waits.
    pub(crate) fn next_chance(&self) -> Option<Instant> {
        if !self.urgent.is_empty() || !self.data.is_empty() {
            return Some(self.pacer.next_chance());
        }
        let (at, _) = self.answers.next_probe()?;
        Some(self.pacer.next_chance().max(at).max(self.probe_at))
    }
}

impl Turn {
    const fn waiting(self) -> Option<Waiting> {
        match self {
            Self::Flow(_, waiting) => Some(waiting),
            Self::Handshakes | Self::Others => None,
        }
    }
}
