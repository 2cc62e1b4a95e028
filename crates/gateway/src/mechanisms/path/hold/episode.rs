//! The episode of a connection: whether the kick worked, and when to repeat it.

use super::super::SendReason;
use super::rules::{HoldRule, HoldRules};
use super::segment::CopyChoice;
use super::stamp::Stamp;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// The longest pause between two kicks.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The shortest: below it, an answer may be late for reasons of scheduling alone.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The longest time that a sender's data waits until it is known whether the link has kept something.
const LONGEST_LISTENING: Duration = Duration::from_secs(1);
/// A flow whose far host owes no answer (only acknowledgements went its way) is kicked this
/// often at most.
const KICKS_WITHOUT_DATA: u8 = 6;

/// From the link's return, or a late drop, until all that was kept then is acknowledged and nothing waits behind it, or
/// kicks are given up.
#[derive(Debug)]
pub(super) struct Episode {
    /// Everything that was kept at link-up ends here; `None` if only an acknowledgement was.
    target: Option<SeqNumber>,
    /// The newest timestamp that the near host had sent by then.
    near_clock: Option<Stamp>,
    first_sent: Option<FirstSent>,
    /// More data went out behind it.
    has_sent_more: bool,
    doubt: Doubt,
    /// Acknowledgements that repeated the last.
    duplicates: u64,
    /// Until then, what was set aside waits for a hole or a gap to be filled; `None` if nothing was.
    aside_until: Option<Instant>,
    /// Whether the link was down for certain. If it was only silent, what it had been given may
    /// still be on its way, and acknowledgements that go on are its answers.
    is_certain: bool,
    /// When the flow ought to have moved; `None` until something was sent.
    next_kick: Option<Instant>,
    pause: Duration,
    kicks: u8,
    has_moved: bool,
    /// All that was kept at link-up is acknowledged: what still waits came later.
    is_delivered: bool,
}

/// The first data that went out.
#[derive(Clone, Copy, Debug)]
struct FirstSent {
    seq: SeqNumber,
    end: SeqNumber,
    at: Instant,
}

/// Whether what was merely transmitted may have arrived, or yet arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Doubt {
    /// The far host has not answered: it may, until then.
    Open { until: Instant },
    /// It has just answered: nothing else goes out until then, so that what is heard is what the link has kept.
    Listening { until: Instant },
    /// It has answered, and more of what the link has kept may arrive until then; each such arrival prolongs it.
    Answered { until: Instant },
    /// What is not acknowledged was lost.
    Over,
}

impl Doubt {
    const fn until(self) -> Option<Instant> {
        match self {
            Self::Open { until } | Self::Listening { until } | Self::Answered { until } => {
                Some(until)
            }
            Self::Over => None,
        }
    }
}

/// What to do when the flow has not moved in time.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Kick {
    /// Kick again.
    Again,
    /// Nobody is to answer: the episode ends.
    GiveUp,
}

impl Episode {
    pub(super) fn new(
        now: Instant,
        patience: Duration,
        target: Option<SeqNumber>,
        near_clock: Option<Stamp>,
        is_certain: bool,
    ) -> Self {
        Self {
            target,
            near_clock,
            first_sent: None,
            has_sent_more: false,
            doubt: Doubt::Open {
                until: now + patience,
            },
            duplicates: 0,
            aside_until: None,
            is_certain,
            next_kick: None,
            pause: patience.clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            kicks: 0,
            has_moved: false,
            is_delivered: false,
        }
    }

    pub(super) const fn target(&self) -> Option<SeqNumber> {
        self.target
    }

    /// The newest timestamp that the near host had sent when the link came back, and where its data ended.
    pub(super) fn sent_before(&self) -> Option<(Stamp, SeqNumber)> {
        self.near_clock.zip(self.target)
    }

    /// Which copies go out now.
    pub(super) const fn copy(&self, rules: HoldRules) -> CopyChoice {
        if (self.kicks == 0 || !rules.has(HoldRule::FreshKick)) && rules.has(HoldRule::FirstCopy) {
            CopyChoice::InOrder
        } else {
            CopyChoice::Freshest
        }
    }

    /// Why data goes out now. That goes by the episode, not by the segment at hand: one that was merely transmitted, and goes
    /// out first, counts as kept.
    pub(super) const fn reason(&self) -> SendReason {
        match (self.kicks, self.doubt) {
            (0, Doubt::Over) => SendReason::Unacknowledged,
            (0, _) => SendReason::Kept,
            _ => SendReason::RepeatedKick,
        }
    }

    /// Something went out: an answer is due within `patience`.
    pub(super) fn sent(&mut self, now: Instant, patience: Duration) {
        if self.next_kick.is_none() {
            self.next_kick = Some(now + self.pause.max(patience));
        }
    }

    /// Data goes out. What was on the link before the first of it arrives before it, or never.
    pub(super) fn sent_data(&mut self, now: Instant, packet: &Packet) {
        self.has_sent_more = self.first_sent.is_some();
        if self.first_sent.is_none() {
            self.first_sent = packet.tcp().map(|tcp| FirstSent {
                seq: tcp.seq,
                end: tcp.seq + packet.sequence_len(),
                at: now,
            });
        }
    }

    /// Whether data has gone out since the link is back.
    pub(super) const fn has_sent_data(&self) -> bool {
        self.first_sent.is_some()
    }

    /// True once data has gone out, until the connection moves.
    pub(super) const fn is_in_vain(&self) -> bool {
        self.has_sent_data() && !self.has_moved
    }

    /// Whether something is on its way that draws a duplicate, if there is a hole before it.
    pub(super) const fn draws_duplicates(&self) -> bool {
        self.has_sent_more
    }

    /// The far host's first acknowledgement after link-up ends the doubt of what had arrived; returns
    /// whether this is it. After mere silence only one that `repeats` the last does, or one that says
    /// that what was sent first has come a second time (RFC 2883, section 4).
    pub(super) fn hear_acknowledgement(
        &mut self,
        now: Instant,
        patience: Duration,
        repeats: bool,
        tcp: &TcpHeader,
    ) -> bool {
        if !matches!(self.doubt, Doubt::Open { .. }) {
            return false;
        }
        let is_answer = self.is_certain || repeats || self.has_come_twice(tcp);
        if !is_answer {
            let until = now + patience;
            self.doubt = Doubt::Open { until };
        }
        is_answer
    }

    /// What was merely transmitted and is not acknowledged was lost.
    pub(super) const fn end_doubt(&mut self) {
        self.doubt = Doubt::Over;
    }

    /// The far host has answered, and without SACK it cannot say what it has. What the link has kept arrives at the link's rate:
    /// one answer after the other within a small part of the `round_trip` before the outage. The first of them may be as late again as
    /// this answer, which another gateway half-way to the far host may have given.
    pub(super) fn listen(&mut self, now: Instant, round_trip: Duration) {
        let answered_in = self
            .first_sent
            .map_or(round_trip, |first| now.since(first.at).min(round_trip));
        let lasts = (answered_in + round_trip / 8).min(LONGEST_LISTENING);
        self.doubt = Doubt::Listening { until: now + lasts };
    }

    /// Whether nothing goes out but the oldest segment, so that what is heard is what the link has kept.
    pub(super) const fn is_listening(&self) -> bool {
        matches!(self.doubt, Doubt::Listening { .. })
    }

    /// Something may still arrive that the link has kept: until then, unless it goes on.
    pub(super) const fn await_more(&mut self, until: Instant) {
        self.doubt = Doubt::Answered { until };
    }

    /// The far host repeats its last acknowledgement. Returns whether only what the link had kept can have drawn that: more
    /// has come than the `sent` segments that went out since the return can have.
    pub(super) const fn hear_duplicate(&mut self, sent: u64) -> bool {
        self.duplicates += 1;
        self.duplicates > sent
    }

    /// True while what was merely transmitted may still arrive.
    pub(super) const fn doubts(&self) -> bool {
        self.doubt.until().is_some()
    }

    /// Whether the far host has answered, and something may still arrive that the link has kept.
    pub(super) const fn awaits_more(&self) -> bool {
        matches!(self.doubt, Doubt::Listening { .. } | Doubt::Answered { .. })
    }

    /// Some of what is kept was set aside: for `patience` at most.
    pub(super) fn set_aside(&mut self, now: Instant, patience: Duration) {
        self.aside_until = Some(now + patience.max(SHORTEST_PAUSE));
    }

    /// The far host has moved, so that nothing is set aside any more. Returns whether something was.
    pub(super) fn take_aside(&mut self) -> bool {
        self.aside_until.take().is_some()
    }

    /// Ends the time of what was set aside, if that is over by `now`. Returns whether it has just ended.
    pub(super) fn end_aside_if_due(&mut self, now: Instant) -> bool {
        self.aside_until.take_if(|until| *until <= now).is_some()
    }

    fn has_come_twice(&self, tcp: &TcpHeader) -> bool {
        let duplicate = tcp.options.sack.first().zip(self.first_sent);
        duplicate.is_some_and(|(block, FirstSent { seq, end, .. })| {
            let is_within = seq.at_or_before(block.left) && block.right.at_or_before(end);
            is_within && block.right.at_or_before(tcp.ack)
        })
    }

    /// Ends the doubt if its time is over by `now`. Returns whether it has just ended.
    ///
    /// What then goes out has its own time to work: the next kick is later.
    pub(super) fn end_doubt_if_due(&mut self, now: Instant) -> bool {
        let is_over = self.doubt.until().is_some_and(|until| until <= now);
        if is_over {
            self.end_doubt();
            self.next_kick = self.next_kick.map(|_| now + self.pause);
        }
        is_over
    }

    /// The flow moved.
    pub(super) fn moved(&mut self, now: Instant, patience: Duration) {
        self.pause = patience.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.kicks = 0;
        self.next_kick = Some(now + self.pause);
        self.has_moved = true;
    }

    pub(super) fn kick_is_due(&self, now: Instant) -> bool {
        self.next_kick.is_some_and(|at| at <= now)
    }

    /// What was to make the flow move waits for its turn still. Its time begins when that [was
    /// sent](Self::sent).
    pub(super) const fn postpone_kick(&mut self) {
        self.next_kick = None;
    }

    /// The flow did not move in time. Without data, a connection that `is_over` is not kicked again: a FIN that was not
    /// acknowledged is its host's to repeat.
    pub(super) fn kick(&mut self, now: Instant, has_data: bool, is_over: bool) -> Kick {
        self.kicks = self.kicks.saturating_add(1);
        let most = if is_over { 0 } else { KICKS_WITHOUT_DATA };
        if !has_data && (self.has_moved || self.kicks > most) {
            return Kick::GiveUp;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next_kick = Some(now + self.pause);
        Kick::Again
    }

    /// Whether all that was kept at link-up is acknowledged, or the far host has moved where
    /// nothing was kept.
    pub(super) fn is_over(&self, acked: SeqNumber, nothing_kept: bool) -> bool {
        match self.target {
            Some(target) => acked.at_or_after(target),
            None => nothing_kept && self.has_moved,
        }
    }

    /// Notes that it [is over](Self::is_over) but for what came later and waits in line.
    pub(super) const fn note_delivered(&mut self) {
        self.is_delivered = true;
    }

    pub(super) const fn is_delivered(&self) -> bool {
        self.is_delivered
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let all = [self.doubt.until(), self.aside_until, self.next_kick];
        all.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement that came late once makes a round trip of minutes.
    #[test]
    fn nobody_listens_for_longer_than_a_second() {
        let patience = Duration::from_secs(60);
        let mut episode = Episode::new(Instant::ZERO, patience, None, None, true);
        episode.listen(Instant::ZERO, patience);
        assert_eq!(episode.deadline(), Some(Instant::ZERO + LONGEST_LISTENING));
    }
}
