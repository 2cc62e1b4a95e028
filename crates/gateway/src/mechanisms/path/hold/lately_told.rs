//! What the near host has acknowledged within a round trip before an outage: where a sender beyond the link may stand that
//! asks or answers little at a time.
//!
//! The last acknowledgements before an outage may be lost. The sender then repeats what the oldest of these acknowledges, and an
//! [ICMP error](super::super::unreachable) helps only if it quotes just that number. Linux puts what it repeats into one
//! segment, and the newest acknowledgement ends amid it. Once that has come, Linux takes no error any more (its count of timeouts
//! is back at zero), repeats the rest of the segment at its next timeout only, and has no room for another one: who types
//! while answers come waits for about as long as the outage was. So errors about each of these numbers go before that
//! acknowledgement.
//!
//! A sender with more under way than a segment needs none: of what it repeats, the acknowledgement leaves whole segments. It is
//! told by that it was acknowledged for more than [`SEGMENT`] bytes, or more often than [`MOST`] times, in the round trip.

use super::super::Context;
use super::super::unreachable::unreachable_from;
use crate::links::Direction;
use arrayvec::ArrayVec;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber};

/// A link may have been gone for so long when somebody notices: Linux tells of carriers once a second.
const NOTICED_LATE: Duration = Duration::from_secs(1);
/// Who is acknowledged more often in a round trip has much under way.
const MOST: usize = 12;
/// What fits into one segment over every link of IPv6.
pub(super) const SEGMENT: i32 = 1_220;
/// So many errors go out for a connection at most: about as many bytes as a segment has.
const MOST_ERRORS: usize = 24;

#[derive(Debug, Default)]
pub(super) struct LatelyTold {
    /// The last numbers that went onto the link, oldest first, and when; before them one that has arrived for certain.
    told: ArrayVec<(SeqNumber, Instant), { MOST + 1 }>,
    /// What the near host sent first with the newest of them, unless that was its first of all: where its answer began.
    answer: Option<SeqNumber>,
    /// So many errors are to go out about each of them.
    each: usize,
    /// So many have gone out.
    sent: usize,
}

/// Whether the newest number may be lost.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Doubt {
    /// It is not.
    #[default]
    None,
    /// It is if the link went long before somebody noticed.
    Small,
    /// It may be: it was told within a round trip before.
    Large,
}

impl LatelyTold {
    /// This was acknowledged by a segment that begins with `seq`, and goes onto the link.
    pub(super) fn note(&mut self, now: Instant, ack: SeqNumber, seq: SeqNumber) {
        let before = self.newest();
        if before.is_none_or(|told| told.before(ack)) {
            self.answer = before.map(|_| seq);
            if self.told.is_full() {
                self.told.remove(0);
            }
            self.told.push((ack, now));
        }
    }

    /// The newest number is told again, as its first telling may be lost.
    pub(super) fn tell_again(&mut self, now: Instant) {
        if let Some((_, at)) = self.told.last_mut() {
            *at = now;
        }
    }

    pub(super) fn newest(&self) -> Option<SeqNumber> {
        self.told.last().map(|(number, _)| *number)
    }

    /// Whether the near host, which sends `next` next, has sent one small answer since it acknowledged what was new.
    pub(super) fn has_answered(&self, next: SeqNumber) -> bool {
        let answer = self.answer.map(|from| next.distance_from(from));
        answer.is_some_and(|bytes| (1..=SEGMENT).contains(&bytes))
    }

    /// The link has gone away, which was noticed at `since`, when the far host had been heard last at `heard_at`: after that it
    /// may have been away, up to a [second](NOTICED_LATE). Returns whether the newest number may be lost. Errors are about those that
    /// were told within a round trip before.
    pub(super) fn suspend(
        &mut self,
        since: Instant,
        heard_at: Instant,
        round_trip: Duration,
    ) -> Doubt {
        let told_until = |end: Instant| {
            let is_early = |(_, at): &(SeqNumber, Instant)| end.since(*at) >= round_trip;
            self.told.partition_point(is_early)
        };
        let gone_at = heard_at.max(since - NOTICED_LATE).min(since);
        let is_late = told_until(since) < self.told.len();
        let late = self.told.len() - told_until(gone_at);
        let newest = self.told.last().map(|(_, at)| since.since(*at));
        let kept = if late > MOST { 0 } else { late + 1 };
        self.told.drain(..self.told.len().saturating_sub(kept));
        match newest {
            _ if is_late => Doubt::Large,
            Some(before) if before < round_trip + NOTICED_LATE => Doubt::Small,
            _ => Doubt::None,
        }
    }

    /// The link is back, and a sender may have doubled its timeout `back_offs` times.
    pub(super) fn begin(&mut self, back_offs: u8) {
        let each = MOST_ERRORS / self.told.len().max(1);
        self.each = each.min(usize::from(back_offs));
        self.sent = 0;
    }

    /// The next error, oldest number first; none about what the near host has `acked` last.
    pub(super) fn next_error(&mut self, cx: &Context<'_>, acked: SeqNumber) -> Option<Packet> {
        let (oldest, _) = self.told.first()?;
        let (seq, _) = self.told.get(self.sent.checked_div(self.each)?)?;
        if acked.distance_from(*oldest) > SEGMENT || !seq.before(acked) {
            return None;
        }
        let error = unreachable_from(cx.key, cx.flow, Direction::FromLink, *seq)?;
        self.sent += 1;
        Some(error)
    }
}
