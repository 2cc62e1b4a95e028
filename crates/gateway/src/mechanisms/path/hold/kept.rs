//! What is kept of the data sent towards the link: all of it, or past a cap one packet.

use super::super::Context;
use super::super::smart_link::KeptPacket;
use super::rules::HoldRule;
use super::segment::{Fate, Segment};
use super::stamp::Stamp;
use super::window::{Full, Window};
use crate::limits::Budget;
use outlast_base::time::Instant;
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// What is kept of the data sent towards the link.
#[derive(Debug)]
pub(super) enum Kept {
    /// All that is unacknowledged.
    Window(Window),
    /// Past a cap: one packet, until everything up to `until` is acknowledged.
    One {
        packet: KeptPacket,
        until: SeqNumber,
        pending: bool,
    },
}

/// How much of what is kept goes out at reconnection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::mechanisms::path) enum Scope {
    /// All that is not acknowledged.
    #[default]
    All,
    /// After an outage that was reported, the oldest segment, twice, and the first behind it that the link did not carry;
    /// after one that only silence has shown, one behind the oldest, and the oldest. The sender repeats the others.
    Few,
}

impl Default for Kept {
    fn default() -> Self {
        Self::Window(Window::default())
    }
}

impl Kept {
    /// Whether nothing is kept whose timestamp the far host would accept: nothing goes out by itself.
    pub(super) fn has_nothing_acceptable(&self) -> bool {
        match self {
            Self::Window(window) => window.has_nothing_acceptable(),
            Self::One { packet, .. } => packet.packet().is_none(),
        }
    }

    /// What the far host would reject for its timestamp is kept from now on, too, or no longer.
    pub(super) fn keep_stale(&mut self, keeps: bool, cx: &mut Context<'_>) {
        if let Self::Window(window) = self {
            window.keep_stale(keeps, cx);
        }
    }

    /// Marks the oldest as lost, also if its copies are too old.
    pub(super) fn lose_oldest_even_stale(&mut self) {
        if let Self::Window(window) = self {
            window.lose_oldest_even_stale();
        }
    }

    /// Where the far host, which lacks what begins at `acked`, shows a hole that is kept.
    pub(super) fn shown_hole(&self, acked: SeqNumber) -> Option<SeqNumber> {
        match self {
            Self::Window(window) => window.shown_hole(acked),
            Self::One { .. } => None,
        }
    }

    /// What is behind a segment that passed unseen waits. Returns whether there is such.
    pub(super) fn set_aside_behind_gap(&mut self) -> bool {
        match self {
            Self::Window(window) => window.set_aside_behind_gap(),
            Self::One { .. } => false,
        }
    }

    /// Whether `packet`, new data, waits behind a segment that passed unseen, and whether nothing else does.
    pub(super) fn waits_behind_gap(&mut self, packet: &Packet, acked: SeqNumber) -> (bool, bool) {
        match self {
            Self::Window(window) => window.waits_behind_gap(packet, acked),
            Self::One { .. } => (false, false),
        }
    }

    /// Whether something waits behind a segment that passed unseen.
    pub(super) const fn has_gap(&self) -> bool {
        matches!(self, Self::Window(window) if window.has_gap())
    }

    /// What waits behind a segment that passed unseen need not wait any more.
    pub(super) fn forget_gap(&mut self) {
        if let Self::Window(window) = self {
            window.forget_gap();
        }
    }

    /// Marks as lost what the far host shows that it lacks.
    pub(super) fn lose_holes(&mut self) {
        if let Self::Window(window) = self {
            window.lose_holes();
        }
    }

    /// The number behind all that is kept; `None` where that is one packet, or none.
    pub(super) fn end(&self) -> Option<SeqNumber> {
        match self {
            Self::Window(window) => window.end(),
            Self::One { .. } => None,
        }
    }

    /// The oldest that is kept, as it would go out in a repeated kick.
    pub(super) fn oldest(&self) -> Option<&Packet> {
        match self {
            Self::Window(window) => window.acceptable_front().map(Segment::freshest),
            Self::One { packet, .. } => packet.packet(),
        }
    }

    /// The longest packet, in bytes with its IP header, that certainly went onto the link since its return and has arrived.
    pub(super) const fn longest_arrived(&self) -> u32 {
        match self {
            Self::Window(window) => window.longest_arrived(),
            Self::One { .. } => 0,
        }
    }

    /// The longer segment that is kept and begins where `packet` does.
    pub(super) fn longer(&self, packet: &Packet) -> Option<&Packet> {
        match self {
            Self::Window(window) => window.longer(packet).map(Segment::freshest),
            Self::One { .. } => None,
        }
    }

    /// Marks as lost what was re-sent until `at` and the far host does not show to have: the first of these, `most` at most.
    pub(super) fn lose_resent_until(&mut self, at: Instant, most: usize) {
        match self {
            Self::Window(window) => window.lose_resent_until(at, most),
            Self::One { .. } => self.lose_front(),
        }
    }

    /// Marks the segment that begins at `seq` as lost.
    pub(super) fn lose_at(&mut self, seq: SeqNumber) {
        match self {
            Self::Window(window) => window.lose_at(seq),
            Self::One { .. } => self.lose_front(),
        }
    }

    /// Whether something is to be sent.
    pub(super) fn has_lost(&self) -> bool {
        match self {
            Self::Window(window) => window.has_lost(),
            Self::One { pending, .. } => *pending,
        }
    }

    /// Marks the oldest as lost: it is worth sending even if it has arrived.
    pub(super) fn lose_front(&mut self) {
        match self {
            Self::Window(window) => window.lose_front(),
            Self::One {
                packet, pending, ..
            } => *pending = packet.packet().is_some(),
        }
    }

    /// Segments that went onto the link since its last return, each as often as it did.
    pub(super) const fn sent_since_return(&self) -> u64 {
        match self {
            Self::Window(window) => window.sent_since_return(),
            Self::One { .. } => 0,
        }
    }

    /// Whether only the sender can fill the hole at `acked`.
    pub(super) fn has_no_copy_of(&self, acked: SeqNumber) -> bool {
        match self {
            Self::Window(window) => {
                let front = window.acceptable_front();
                front.is_none_or(|front| front.seq.after(acked))
            }
            Self::One { .. } => false,
        }
    }

    /// What was merely transmitted when the link came back, and is not acknowledged by now, counts as lost: all of it, or with
    /// [`Scope::Few`] the oldest segment and two behind it.
    pub(super) fn lose_transmitted(&mut self, until: Option<SeqNumber>, scope: Scope) {
        if let (Self::Window(window), Some(until)) = (self, until) {
            match scope {
                Scope::All => window.lose_transmitted(until),
                Scope::Few => window.lose_front_and_two_behind(),
            }
        }
    }

    /// The far host lacks the oldest segment: if that was merely transmitted, it was lost.
    pub(super) fn lose_front_if_transmitted(&mut self) {
        if let Self::Window(window) = self {
            window.lose_front_if_transmitted();
        }
    }

    /// What was kept at link-up, until `target`, and was lost again behind the gateway goes out again.
    /// What came later is the sender's affair: it has not taken back that loss.
    pub(super) fn lose_overtaken(&mut self, target: Option<SeqNumber>, cx: &Context<'_>) {
        if let (Self::Window(window), Some(target)) = (self, target) {
            // An answer that comes sooner is not that to what was re-sent.
            let sent_by = cx.now - cx.flow.rtt.smoothed() / 2;
            window.lose_overtaken(target, sent_by);
        }
    }

    /// Sets segments with older timestamps aside, so that few go before the one that the far host lacks next.
    ///
    /// The receiving application waits for that one. Returns whether some were set aside.
    pub(super) fn give_way(
        &mut self,
        sent_before: Option<(Stamp, SeqNumber)>,
        cx: &Context<'_>,
    ) -> bool {
        match (self, sent_before) {
            (Self::Window(window), Some(sent_before)) => {
                window.give_way_to(cx.flow.near.acked, sent_before, cx.retention)
            }
            _ => false,
        }
    }

    /// The far host says what has arrived, echoing what the near host has sent. Returns whether the link has
    /// delivered some of it that the gateway has not re-sent.
    pub(super) fn hear(
        &mut self,
        cx: &mut Context<'_>,
        tcp: &TcpHeader,
        near_clock: Option<Stamp>,
    ) -> bool {
        let acked = cx.flow.near.acked;
        match self {
            Self::Window(window) => {
                let delivers = window.acknowledge(acked, cx.budget);
                let echo = near_clock.and_then(|clock| clock.echoed_by(tcp));
                if let Some(echo) = echo.filter(|_| cx.rules.has(HoldRule::GiveUpStale)) {
                    window.hear_echo(echo, cx);
                }
                *cx.arrived += window.selectively_acknowledge(&tcp.options.sack);
                delivers
            }
            Self::One {
                packet,
                until,
                pending,
            } => {
                packet.forget_acknowledged(cx);
                *pending &= packet.packet().is_some();
                if acked.at_or_after(*until) {
                    packet.clear(cx.budget);
                    *self = Self::default();
                }
                false
            }
        }
    }

    /// The far host answers what was re-sent, and has not moved. If it echoes a timestamp that the near host
    /// was not seen to send, a repetition has passed somewhere else, and the older copies are rejected.
    pub(super) fn hear_rejection(
        &mut self,
        cx: &mut Context<'_>,
        tcp: &TcpHeader,
        near_clock: Option<Stamp>,
    ) {
        if let (Self::Window(window), Some(clock), Some(echo)) =
            (self, near_clock, Stamp::echo_of(tcp))
            && clock.is_before(echo)
            // Nobody repeats what may not be let go of.
            && !window.has_retained(cx.retention)
        {
            window.give_up_before(echo, cx);
        }
    }

    /// The far host lacks the segment at `acked`: if it rejects the copy that was re-sent, a fresher one
    /// goes out.
    pub(super) fn lose_rejected(&mut self, acked: SeqNumber) {
        if let Self::Window(window) = self {
            window.lose_rejected(acked);
        }
    }

    /// Keeps a segment that goes towards the link, or is taken; past a cap one packet of all.
    pub(super) fn keep(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        (passes, fate): (bool, Fate),
    ) -> Result<(), Full> {
        match self {
            Self::Window(window) => {
                if window.keep(packet, (passes, fate), cx).is_ok() {
                    return Ok(());
                }
                // What nobody else has is not given up for what its sender still has.
                if window.has_retained(cx.retention) {
                    cx.counters.not_kept += 1;
                } else {
                    self.fall_back(cx, packet);
                }
            }
            Self::One { packet: kept, .. } => kept.offer_sent(packet, cx),
        }
        Err(Full)
    }

    /// Past a cap: the freshest copy of the oldest segment is all that stays. Before the link
    /// went down nothing is lost by that; while it is down the sender's own retransmission of
    /// the rest is needed.
    fn fall_back(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        cx.counters.fallbacks += 1;
        let oldest = match self {
            Self::Window(window) => {
                let oldest = window.front().map(|segment| segment.freshest().clone());
                window.clear(cx.budget);
                oldest
            }
            Self::One { .. } => None,
        };
        let mut one = KeptPacket::default();
        one.offer_sent(oldest.as_ref().unwrap_or(packet), cx);
        *self = Self::One {
            packet: one,
            until: cx.flow.near.next,
            pending: false,
        };
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        match self {
            Self::Window(window) => window.clear(budget),
            Self::One { packet, .. } => packet.clear(budget),
        }
        *self = Self::default();
    }
}
