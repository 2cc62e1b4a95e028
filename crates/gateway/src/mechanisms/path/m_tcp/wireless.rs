//! M-TCP: the supervisor host's half towards the mobile (section 4.2, figure 5).
//!
//! A timeout freezes this half: nothing is sent but a question, which makes a silent link probed, and persist packets, from five
//! seconds to a minute apart; from a timeout on where it is likely that packets were lost without an outage, as after a repetition
//! that is not acknowledged. The mobile's return sends everything again that is unacknowledged; an acknowledgement of a
//! mobile that was only slow sends nothing again.

use super::super::smart_link::KeptPacket;
use super::super::{Context, SendReason, TakeReason, Verdict, Waiting};
use super::cache::Cache;
use super::timeout;
use crate::limits::Budget;
use crate::links::LinkState;
use crate::tracking::TcpFlow;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// The first pause between two persist packets (section 4.2).
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Duplicate acknowledgements that show a loss (RFC 5681, section 3.2).
const DUPLICATES: u8 = 3;

/// The state of figure 5.
#[derive(Debug)]
enum State {
    /// Segments go out as they come.
    NoFreeze {
        /// The retransmission timer, while something is unacknowledged.
        rexmt: Option<Instant>,
    },
    /// The mobile does not answer.
    Frozen {
        /// When the next persist packet goes out, and the pause after it; `None` while the link is
        /// known to be down.
        persist: Option<(Instant, Duration)>,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::NoFreeze { rexmt: None }
    }
}

/// A packet of a half that its own timer has frozen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Due {
    /// A keep-alive: the link is asked from then on, until it answers.
    Question,
    /// The oldest unacknowledged segment.
    PersistPacket,
}

/// What became of a segment of the fixed host's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Arrival {
    /// It goes to the mobile at once.
    New,
    /// It waits for the mobile, or behind what waits.
    Queued,
    /// Its sender repeats it, and it goes to the mobile again.
    Again,
    /// All of the segment is here already, on its way or to be sent.
    Known,
    /// The mobile has it.
    Acknowledged,
    /// There is no memory for it.
    NoRoom,
}

/// What a segment of the mobile's says of what it lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Heard {
    /// A duplicate acknowledgement that is this half's own affair.
    Local,
    /// A duplicate acknowledgement: the mobile lacks what the sender is to repeat.
    Hole,
    /// Nothing of either kind.
    Other,
}

/// The supervisor host's half towards the mobile.
#[derive(Debug, Default)]
pub(super) struct Wireless {
    state: State,
    cache: Cache,
    /// Sent next while the half is frozen by its own timer.
    due: Option<Due>,
    /// What the last persist packet has carried, up to this number, while its answer is awaited.
    probed: Option<SeqNumber>,
    /// The last freeze was loss, not an outage: at the next one a persist packet goes out after a timeout.
    is_lossy: bool,
    /// The newest acknowledgement for the mobile, and whether the link may have dropped it.
    newest_ack: KeptPacket,
    owes_ack: bool,
    /// The acknowledgement and window field that the mobile has sent last, and how often again.
    heard: Option<(SeqNumber, u16)>,
    duplicates: u8,
    /// What was sent again, at the mobile's return or for a loss, is not acknowledged up to this number: duplicates
    /// may be its echoes, and a timeout is loss sooner than an outage.
    recover: Option<SeqNumber>,
    /// A segment has passed for which there was no memory, and may be unacknowledged.
    has_passed_unkept: bool,
    /// What is lost without an outage is the sender's to repeat, as it sees fit.
    sender_recovers: bool,
    /// The mobile is back, and was asked, or is to be, what it has.
    question: Option<Question>,
    /// When the mobile was last known to be back, by its mark or otherwise.
    returned_at: Option<Instant>,
    /// When that is sent again which its sender has repeated meanwhile, unless the mobile acknowledges it.
    repetition_at: Option<Instant>,
}

/// What of that which was sent before an outage has arrived?
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Whether the question is to be asked.
    is_due: bool,
    /// When the mobile came back.
    since: Instant,
    /// When no answer is expected any more.
    until: Instant,
}

impl Wireless {
    /// A half that leaves losses other than by outages to the sender.
    pub(super) fn of_outages_alone() -> Self {
        Self {
            sender_recovers: true,
            ..Self::default()
        }
    }

    pub(super) fn has_kept(&self) -> bool {
        !self.cache.is_empty() || self.owes_ack
    }

    pub(super) fn acknowledge(&mut self, flow: &TcpFlow, budget: &mut Budget) {
        self.cache.acknowledge(flow.near.acked, budget);
    }

    /// The link has dropped `packet`.
    pub(super) fn lose(&mut self, packet: &Packet) {
        match packet.sequence_len() {
            0 => self.owes_ack |= self.newest_ack.packet().is_some(),
            _ => self.cache.lose(packet),
        }
    }

    /// The link is known to be down.
    pub(super) fn leave(&mut self) {
        self.state = State::Frozen { persist: None };
        self.question = None;
        self.repetition_at = None;
        self.due = None;
        self.probed = None;
    }

    /// The number behind what has gone to the mobile.
    pub(super) fn sent_until(&self, flow: &TcpFlow) -> SeqNumber {
        self.cache.sent_until(flow.near.acked)
    }

    /// Whether the byte at `number` is kept.
    pub(super) fn has(&self, number: SeqNumber) -> bool {
        self.cache.has(number)
    }

    /// The mobile is back: everything is sent again that it has not acknowledged (section 4.2). What the
    /// link has dropped goes out at once; of the rest the mobile is asked first, in place of its marked
    /// acknowledgement.
    pub(super) fn come_back(&mut self, now: Instant, flow: &TcpFlow) {
        self.state = State::default();
        self.due = None;
        self.probed = None;
        self.is_lossy = false;
        self.duplicates = 0;
        self.recover = self.cache.end();
        self.returned_at = Some(now);
        self.question = self.cache.has_sent().then(|| Question {
            is_due: true,
            since: now,
            until: now + timeout(flow),
        });
    }

    /// The mobile's marked acknowledgement: it was away and is back, and what it does not acknowledge is lost
    /// (section 4.2, figure 5). Says whether something is sent again.
    ///
    /// Where the supervisor has heard of the return itself, what was sent before that is lost. A further mark within a
    /// timeout speaks of what was sent since only if that had the time of a round trip: nobody has more sent than he
    /// acknowledges.
    pub(super) fn reconnect(&mut self, cx: &Context<'_>) -> bool {
        let now = cx.now;
        self.state = State::default();
        self.due = None;
        self.probed = None;
        self.is_lossy = false;
        self.duplicates = 0;
        self.recover = self.cache.end();
        let is_repeated = self
            .returned_at
            .replace(now)
            .is_some_and(|before| now.since(before) < timeout(cx.flow));
        match self.question.take() {
            Some(question) => self.cache.send_older_again(question.since),
            None if is_repeated => self.cache.send_older_again(now - cx.flow.rtt.smoothed()),
            None => self.cache.send_all_again(),
        }
        self.rearm(cx);
        if let State::NoFreeze { rexmt } = &mut self.state
            && self.cache.has_waiting()
        {
            // It counts from when that is sent.
            *rexmt = None;
        }
        self.cache.has_waiting()
    }

    /// The mobile has said what it has, or says nothing: the rest of what was sent before its outage is
    /// lost.
    fn end_question(&mut self) {
        if let Some(question) = self.question.take() {
            self.cache.send_older_again(question.since);
            if let State::NoFreeze { rexmt } = &mut self.state
                && self.cache.has_waiting()
            {
                // It counts from when that is sent.
                *rexmt = None;
            }
        }
    }

    /// Says whether the half has frozen just now. It does not where the mobile waits for what the wired
    /// half has lost: then it is not the mobile that owes an answer.
    pub(super) fn handle_timeout(&mut self, now: Instant, flow: &TcpFlow) -> bool {
        if self.question.is_some_and(|question| question.until <= now) {
            self.end_question();
        }
        if self.repetition_at.take_if(|at| *at <= now).is_some() {
            let pause = timeout(flow);
            let next = self.cache.send_repetitions(now - pause);
            self.repetition_at = next.map(|sent_at| sent_at + pause);
        }
        match &mut self.state {
            State::NoFreeze { rexmt } => {
                let has_expired = rexmt.take_if(|at| *at <= now).is_some();
                if !has_expired || !self.cache.has(flow.near.acked) {
                    return false;
                }
                let is_loss_likely = self.is_lossy || self.recover.is_some();
                self.due = Some(Due::Question);
                self.state = State::Frozen {
                    persist: Some(match is_loss_likely {
                        true => (now + timeout(flow), timeout(flow) * 2),
                        false => (now + FIRST_PAUSE, FIRST_PAUSE * 2),
                    }),
                };
                true
            }
            State::Frozen { persist } => {
                if let Some((_, pause)) = persist.filter(|(at, _)| *at <= now) {
                    *persist = Some((now + pause, (pause * 2).min(LONGEST_PAUSE)));
                    self.due = Some(Due::PersistPacket);
                }
                false
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let question = self.question.map(|question| question.until);
        let timer = match self.state {
            State::NoFreeze { rexmt } => rexmt,
            State::Frozen {
                persist: Some((at, _)),
            } => Some(at),
            State::Frozen { persist: None } => None,
        };
        [question, timer, self.repetition_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// A segment of the mobile's.
    pub(super) fn hear(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        tcp: &TcpHeader,
        newly_acked: u32,
    ) -> Heard {
        let acked = cx.flow.near.acked;
        self.cache.acknowledge(acked, cx.budget);
        self.has_passed_unkept &= cx.flow.near.has_outstanding();
        if self.question.is_some_and(|question| !question.is_due) {
            self.end_question();
        }
        if newly_acked > 0 {
            self.duplicates = 0;
            self.heard = Some((tcp.ack, tcp.window));
            self.hear_new(cx, acked);
            return Heard::Other;
        }
        let is_same = self.heard.replace((tcp.ack, tcp.window)) == Some((tcp.ack, tcp.window));
        let is_duplicate = is_same
            && packet.sequence_len() == 0
            && tcp.ack == acked
            && tcp.window > 0
            && self.cache.has(acked);
        if !is_duplicate {
            return Heard::Other;
        }
        if matches!(self.state, State::Frozen { persist: Some(_) }) {
            // It answers, so it is there: only what it has not got was lost.
            self.resume(cx, true);
            return Heard::Local;
        }
        if self.sender_recovers {
            // Linux may forget a segment that it held for lost, once it takes its timeout for spurious
            // (`tcp_try_undo_partial`): then nobody else sends this one before a timeout as long as the outage.
            self.cache
                .send_front_again_if_older(acked, cx.now, timeout(cx.flow));
            return Heard::Hole;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        let is_echo = self.recover.is_some_and(|recover| acked.before(recover));
        if self.duplicates == DUPLICATES && !is_echo {
            self.recover = self.cache.end();
            self.cache.send_front_again(acked);
        }
        Heard::Local
    }

    /// The mobile acknowledges something new.
    fn hear_new(&mut self, cx: &Context<'_>, acked: SeqNumber) {
        if !self.sender_recovers
            && self
                .recover
                .take_if(|recover| acked.at_or_after(*recover))
                .is_none()
            && self.recover.is_some()
            && matches!(self.state, State::NoFreeze { .. })
        {
            // A part of what was outstanding when a loss was seen: the next hole (RFC 6582).
            let patience = cx.flow.rtt.patience();
            self.cache
                .send_front_again_if_older(acked, cx.now, patience);
        }
        match self.state {
            State::NoFreeze { .. } => self.rearm(cx),
            State::Frozen { persist: None } => {}
            State::Frozen { persist: Some(_) } => {
                // If the answer covers the persist packet alone, all behind it is lost.
                let is_loss = self.probed.is_some_and(|probed| acked.at_or_before(probed));
                self.resume(cx, is_loss);
            }
        }
    }

    fn resume(&mut self, cx: &Context<'_>, is_loss: bool) {
        self.state = State::default();
        self.due = None;
        self.probed = None;
        self.is_lossy = is_loss;
        if is_loss {
            self.send_all_again();
        }
        self.rearm(cx);
    }

    fn send_all_again(&mut self) {
        self.duplicates = 0;
        self.recover = self.cache.end();
        self.cache.send_all_again();
    }

    fn rearm(&mut self, cx: &Context<'_>) {
        if let State::NoFreeze { rexmt } = &mut self.state {
            let is_timed = !self.cache.is_empty() && !self.sender_recovers;
            *rexmt = is_timed.then(|| cx.now + timeout(cx.flow));
        }
    }

    /// Whether the segment shows that the wired half has lost something before it.
    pub(super) fn has_hole_before(&self, flow: &TcpFlow, seq: SeqNumber, end: SeqNumber) -> bool {
        let received = self.cache.received(flow.near.acked);
        self.knows_holes(flow) && end == flow.near.next && seq.after(received)
    }

    /// Whether the wired half has lost what the mobile lacks next, and later data is here.
    pub(super) fn lacks_next(&self, flow: &TcpFlow) -> bool {
        self.knows_holes(flow) && self.cache.begins_after(flow.near.acked)
    }

    /// What the mobile had acknowledged before it was first seen here is a guess; and what did not fit is
    /// no hole.
    fn knows_holes(&self, flow: &TcpFlow) -> bool {
        flow.near.window_scale.is_some() && !self.has_passed_unkept
    }

    /// A segment with data from the fixed host.
    pub(super) fn take(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        tcp: &TcpHeader,
        end: SeqNumber,
    ) -> Arrival {
        let acked = cx.flow.near.acked;
        if end.at_or_before(acked) {
            return Arrival::Acknowledged;
        }
        if self.cache.has_all(tcp.seq.max(acked), end) {
            let span = (tcp.seq.max(acked), end);
            self.cache.renew(span, packet);
            let may_pass = self.sender_recovers
                && matches!(self.state, State::NoFreeze { .. })
                && cx.link.state == LinkState::Up;
            let patience = cx.flow.rtt.patience();
            if may_pass && !self.cache.is_in_hand(span, cx.now, patience) {
                self.cache.note_passed(span, cx.now);
                return Arrival::Again;
            }
            if self.question.is_none() {
                // Otherwise the mobile is about to say whether it has that.
                self.cache
                    .send_again_if_older(span, cx.now, timeout(cx.flow));
            }
            if self.sender_recovers
                && let Some(sent_at) = self.cache.owe_repetition(span)
            {
                self.await_repetition(cx, sent_at);
            }
            return Arrival::Known;
        }
        if matches!(self.state, State::Frozen { persist: Some(_) }) && tcp.seq.at_or_before(acked) {
            // What the mobile lacks next is here at last.
            self.resume(cx, false);
        }
        let may_go = matches!(self.state, State::NoFreeze { .. })
            && cx.link.state == LinkState::Up
            && cx.allotment.is_none()
            && !self.cache.has_waiting();
        let sent_at = may_go.then_some(cx.now);
        if !self.cache.keep(cx, packet, sent_at) {
            self.has_passed_unkept = true;
            self.cache.note_unkept(packet);
            return Arrival::NoRoom;
        }
        if !may_go {
            return Arrival::Queued;
        }
        self.start_timer(cx);
        Arrival::New
    }

    /// What was sent at `sent_at` is sent again after a timeout.
    fn await_repetition(&mut self, cx: &Context<'_>, sent_at: Instant) {
        if matches!(self.state, State::NoFreeze { .. }) && cx.link.state == LinkState::Up {
            let at = sent_at + timeout(cx.flow);
            self.repetition_at.get_or_insert(at.max(cx.now));
        }
    }

    fn start_timer(&mut self, cx: &Context<'_>) {
        // A sender that recovers itself does so by its own timer: nothing freezes here without a word
        // of the link.
        if let State::NoFreeze { rexmt } = &mut self.state
            && !self.sender_recovers
        {
            rexmt.get_or_insert(cx.now + timeout(cx.flow));
        }
    }

    /// A bare acknowledgement for the mobile.
    pub(super) fn pass_acknowledgement(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.newest_ack.replace(packet, cx);
        match cx.link.state {
            LinkState::Up => {
                self.owes_ack = false;
                Verdict::Pass
            }
            LinkState::Down if self.newest_ack.packet().is_none() => Verdict::Pass,
            LinkState::Down => {
                self.owes_ack = true;
                Verdict::Taken(TakeReason::LinkDown)
            }
        }
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        let asks = self.question.is_some_and(|question| question.is_due);
        match self.state {
            State::NoFreeze { .. } if asks => Some(Waiting::Urgent),
            State::NoFreeze { .. } if self.owes_ack => Some(Waiting::Urgent),
            State::NoFreeze { .. } if self.cache.has_waiting() => Some(Waiting::Data),
            State::Frozen { persist: Some(_) } => self.due.map(|due| match due {
                Due::Question => Waiting::Urgent,
                Due::PersistPacket => Waiting::Data,
            }),
            _ => None,
        }
    }

    pub(super) fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<(Packet, SendReason)> {
        if cx.link.state == LinkState::Down {
            self.leave();
            return None;
        }
        // Who tracks the connection elsewhere may know that the mobile has more.
        self.cache.acknowledge(cx.flow.near.acked, cx.budget);
        let (packet, reason) = match self.state {
            State::NoFreeze { .. } if self.question.is_some_and(|question| question.is_due) => {
                if let Some(question) = &mut self.question {
                    question.is_due = false;
                }
                let packet = cx.near_host_proxy.keep_alive(cx.key, cx.flow)?;
                (packet, SendReason::Question)
            }
            State::NoFreeze { .. } if core::mem::take(&mut self.owes_ack) => {
                (self.newest_ack.packet()?.clone(), SendReason::NewestAck)
            }
            State::NoFreeze { .. } => {
                let next = self.cache.next_waiting(cx.now, cx.budget)?;
                self.start_timer(cx);
                if next.owes_repetition {
                    self.await_repetition(cx, cx.now);
                }
                let reason = next.reason();
                (next.packet, reason)
            }
            State::Frozen { persist: Some(_) } => match self.due.take()? {
                Due::Question => {
                    let packet = cx.near_host_proxy.keep_alive(cx.key, cx.flow)?;
                    (packet, SendReason::Overdue)
                }
                Due::PersistPacket => {
                    let packet = self.cache.oldest()?;
                    self.probed = packet.tcp().map(|tcp| tcp.seq + packet.sequence_len());
                    (packet, SendReason::RepeatedKick)
                }
            },
            State::Frozen { persist: None } => return None,
        };
        Some((packet, reason))
    }

    pub(super) fn release(&mut self, budget: &mut Budget) {
        self.cache.clear(budget);
        self.newest_ack.clear(budget);
        *self = Self {
            sender_recovers: self.sender_recovers,
            ..Self::default()
        };
    }
}
