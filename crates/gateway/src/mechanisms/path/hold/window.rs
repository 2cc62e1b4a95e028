//! The segments of one flow that went towards the link and are not acknowledged yet.

use super::super::Context;
use super::order::Order;
use super::retention::Retention;
use super::rules::HoldRule;
use super::segment::{CopyChoice, Fate, Segment, range};
use super::stamp::Stamp;
use crate::limits::Budget;
use alloc::collections::VecDeque;
use outlast_base::time::Instant;
use outlast_wire::tcp::SackBlock;
use outlast_wire::{Packet, SeqNumber};

/// As many segments go before the one that the far host lacks next, for their older timestamps: itself,
/// and the three duplicate acknowledgements that make a sender repeat it (RFC 5681, section 3.2).
const FEW: usize = 4;

/// A window keeps room for this many segments, however few there are.
const IDLE_CAPACITY: usize = 16;

/// Unacknowledged segments in sequence order, bounded.
#[derive(Debug, Default)]
pub(super) struct Window {
    segments: VecDeque<Segment>,
    charged: u64,
    lost: usize,
    /// No segment is longer than this, in sequence numbers.
    longest: u32,
    /// Up to there, timestamps may be in another order than sequence numbers.
    unordered_until: Option<SeqNumber>,
    /// The newest timestamp of the near host that the far host has echoed, of those that the gateway has seen.
    echoed: Option<Stamp>,
    /// The far host's TS.Recent, as it last echoed it: it rejects anything older.
    taken_from: Option<Stamp>,
    /// What the far host would reject as too old is kept, too: if it is sent, its timestamp is renewed.
    keeps_stale: bool,
    /// The oldest segment goes out once more than it is lost.
    front_twice: bool,
    /// So many others, which are lost, go out before the oldest one.
    before_front: usize,
    /// All that is before it was seen, or is behind [`Self::unseen`].
    seen_until: Option<SeqNumber>,
    /// Where the first segment begins that passed unseen: nobody but its sender has it.
    unseen: Option<SeqNumber>,
    /// What begins there passed unseen: what follows waits until all before it is acknowledged.
    gap: Option<SeqNumber>,
    /// The first segment that waits behind [`Self::gap`]: nobody but the gateway has it.
    waits_from: Option<SeqNumber>,
    order: Order,
}

/// The window is full: nothing has changed.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Full;

impl Window {
    /// Whether nothing is kept whose timestamp the far host would accept: the last segment has the newest one, unless its
    /// sender has repeated others since.
    pub(super) fn has_nothing_acceptable(&self) -> bool {
        let newest = self.segments.back();
        newest.is_none_or(|newest| self.keeps_stale && self.is_stale(newest))
    }

    /// Whether a segment is to be sent.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    pub(super) fn front(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// The number behind the last kept one.
    pub(super) fn end(&self) -> Option<SeqNumber> {
        self.segments.back().map(|segment| segment.end)
    }

    /// The last of the kept segments that follow `from` without a gap; `None` if none does. A FIN
    /// is not among them.
    pub(super) fn last_in_sequence(&self, from: SeqNumber) -> Option<&Segment> {
        // Before the last one that begins earlier there may be a longer one.
        let begin = match self.place(from - self.longest) {
            Ok(place) | Err(place) => place,
        };
        let mut reached = from;
        let mut last = None;
        for segment in self.segments.range(begin..) {
            if segment.seq.after(reached) || segment.has_fin() {
                break;
            }
            if segment.end.after(reached) {
                reached = segment.end;
                last = Some(segment);
            }
        }
        last
    }

    /// The kept segment that ends at `end`.
    pub(super) fn ending_at(&self, end: SeqNumber) -> Option<&Segment> {
        let behind = match self.place(end) {
            Ok(place) | Err(place) => place,
        };
        // Short ones that begin later may lie within it.
        let mut before = self.segments.range(..behind).rev();
        before.find(|segment| segment.end == end)
    }

    /// Whether a kept segment begins before `until` and ends no earlier.
    pub(super) fn reaches(&self, until: SeqNumber) -> bool {
        let behind = match self.place(until) {
            Ok(place) | Err(place) => place,
        };
        let mut before = self.segments.range(..behind).rev();
        before.any(|segment| segment.end.at_or_after(until))
    }

    /// Whether something is kept that may not be let go of.
    pub(super) fn has_retained(&self, retention: Retention) -> bool {
        self.front().is_some_and(|first| retention.covers(first))
    }

    /// The kept segment that `packet` is, or is a retransmission of.
    pub(super) fn find(&self, packet: &Packet) -> Option<&Segment> {
        let (seq, end) = range(packet)?;
        let place = self.place(seq).ok()?;
        self.segments
            .get(place)
            .filter(|segment| segment.end == end)
    }

    /// The longer kept segment that begins where `packet` does.
    pub(super) fn longer(&self, packet: &Packet) -> Option<&Segment> {
        let (seq, end) = range(packet)?;
        let segment = self.segments.get(self.place(seq).ok()?);
        segment.filter(|segment| segment.end.after(end))
    }

    /// Keeps `packet`. The freshest copy of equal sequence is kept beside the first one; of two
    /// segments that begin alike the longer one stays.
    pub(super) fn keep(
        &mut self,
        packet: &Packet,
        (passes, fate): (bool, Fate),
        cx: &mut Context<'_>,
    ) -> Result<(), Full> {
        let Some((seq, end)) = range(packet) else {
            return Ok(());
        };
        self.note_seen(seq, end, cx.flow.near.acked);
        let charge = Segment::charge(packet);
        if self.charged + charge > cx.limits.held_per_flow.0 || !cx.budget.take(charge) {
            return self.repeat_in_place(seq, end, packet, fate);
        }
        let transmission = self.number(passes);
        self.charged += charge;
        self.longest = self.longest.max(packet.sequence_len());
        match self.place(seq) {
            Ok(place) => {
                self.repeat(place, end, packet, fate, cx.budget);
                if let Some(transmission) = transmission {
                    self.segments[place].go(transmission);
                }
            }
            Err(place) => {
                let is_newest = self.segments.back().is_none_or(|last| {
                    seq.after(last.seq) && !Stamp::of(packet).is_before(Stamp::of(last.freshest()))
                });
                let first = packet.clone();
                let new = Segment {
                    seq,
                    end,
                    fate,
                    transmission: transmission.unwrap_or_default(),
                    went_again: false,
                    sacked: false,
                    first,
                    freshest: None,
                };
                self.lost += usize::from(new.is_lost());
                self.segments.insert(place, new);
                if !is_newest {
                    self.unordered_until = self.end();
                }
            }
        }
        Ok(())
    }

    /// A segment from `seq` to `end` is seen, while everything before `acked` has arrived.
    fn note_seen(&mut self, seq: SeqNumber, end: SeqNumber, acked: SeqNumber) {
        let seen = self.seen_until.unwrap_or(seq).max(acked);
        if seq.after(seen) {
            self.unseen.get_or_insert(seen);
        }
        let filled = self
            .unseen
            .take_if(|from| seq.at_or_before(*from) && end.after(*from));
        if filled.is_some() && filled == self.gap {
            self.forget_gap();
        }
        self.seen_until = Some(seen.max(end));
    }

    /// The number of a segment's transmission, if it passes.
    fn number(&mut self, passes: bool) -> Option<u64> {
        passes.then(|| self.order.next_transmission())
    }

    /// A segment that begins where the one at `place` does; it is charged for already.
    fn repeat(
        &mut self,
        place: usize,
        end: SeqNumber,
        packet: &Packet,
        fate: Fate,
        budget: &mut Budget,
    ) {
        let mut released = Segment::charge(packet);
        self.unordered_until = self.end();
        self.update(place, |segment| {
            // Whoever sends it again does not rely on the SACK (RFC 2018, section 8).
            segment.sacked = false;
            if end.before(segment.end) {
                // The longer one that is kept stands for it.
                if fate == Fate::Lost {
                    segment.fate = fate;
                }
                return;
            }
            if end.after(segment.end) {
                // A longer one: the old copies say nothing that this one does not.
                released = segment.total_charge();
                segment.first = packet.clone();
                segment.freshest = None;
                segment.end = end;
            } else {
                released = segment.freshest.as_ref().map_or(0, Segment::charge);
                segment.freshest = Some(packet.clone());
            }
            segment.fate = fate;
        });
        self.charged -= released;
        budget.give_back(released);
    }

    /// There is no room for one more copy: what is kept of the same data stands for it, if all of it is.
    fn repeat_in_place(
        &mut self,
        seq: SeqNumber,
        end: SeqNumber,
        packet: &Packet,
        fate: Fate,
    ) -> Result<(), Full> {
        let place = self.place(seq).map_err(|_| Full)?;
        if end.after(self.segments[place].end) {
            return Err(Full);
        }
        self.update(place, |segment| {
            segment.sacked = false;
            let is_same = end == segment.end;
            if is_same || fate == Fate::Lost {
                segment.fate = fate;
            }
            let is_as_long = |one: &&mut Packet| one.total_len() == packet.total_len();
            if let Some(freshest) = segment.freshest.as_mut().filter(is_as_long)
                && is_same
            {
                freshest.clone_from(packet);
            }
        });
        Ok(())
    }

    /// Everything before `ack` has arrived. Returns whether the link has delivered some of it that the gateway
    /// has not re-sent.
    pub(super) fn acknowledge(&mut self, ack: SeqNumber, budget: &mut Budget) -> bool {
        let mut delivers = false;
        while self
            .segments
            .front()
            .is_some_and(|segment| segment.end.at_or_before(ack))
        {
            if let Some(segment) = self.segments.pop_front() {
                delivers |= self.is_from_link(&segment);
                self.order.note_acknowledgement(&segment);
                self.forget(&segment, budget);
                self.front_twice = false;
                self.before_front = 0;
            }
        }
        // Behind a longer segment that begins earlier there may be short ones that have arrived.
        let mut place = 1;
        while let Some(segment) = self.segments.get(place).filter(|s| s.seq.before(ack)) {
            if segment.end.at_or_before(ack)
                && let Some(segment) = self.segments.remove(place)
            {
                delivers |= self.is_from_link(&segment);
                self.order.note_acknowledgement(&segment);
                self.forget(&segment, budget);
            } else {
                place += 1;
            }
        }
        if self.unordered_until.is_some_and(|end| ack.at_or_after(end)) {
            self.unordered_until = None;
        }
        if self.gap.is_some_and(|gap| ack.at_or_after(gap)) {
            self.forget_gap();
        }
        self.unseen.take_if(|from| ack.at_or_after(*from));
        self.shrink();
        delivers
    }

    /// Whether only the link can have delivered the segment, from what it had before its return.
    fn is_from_link(&self, segment: &Segment) -> bool {
        segment.fate == Fate::Transmitted && self.order.is_from_before(segment.transmission)
    }

    /// The longest packet, in bytes with its IP header, that went onto the link since its return and has arrived.
    pub(super) const fn longest_arrived(&self) -> u32 {
        self.order.longest_arrived()
    }

    /// The link is back.
    pub(super) const fn note_return(&mut self) {
        self.order.note_return();
    }

    /// Segments that went onto the link since its last return, each as often as it did.
    pub(super) const fn sent_since_return(&self) -> u64 {
        self.order.since_return()
    }

    /// Memory that a burst has taken is not kept for good.
    fn shrink(&mut self) {
        if self.segments.capacity() > IDLE_CAPACITY.max(4 * self.segments.len()) {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }

    /// The far host echoes `echo`, which the near host was seen to send: what only exists with older
    /// timestamps is of no use any more, and its sender has to send it again.
    pub(super) fn hear_echo(&mut self, echo: Stamp, cx: &mut Context<'_>) {
        if self.echoed.is_none_or(|echoed| echoed.is_before(echo)) {
            self.echoed = Some(echo);
        }
        self.give_up_before(echo, cx);
    }

    /// The far host takes nothing with a timestamp before `echo`.
    pub(super) fn give_up_before(&mut self, echo: Stamp, cx: &mut Context<'_>) {
        let is_news = self.taken_from.is_none_or(|known| known.is_before(echo));
        if !is_news {
            return;
        }
        self.taken_from = Some(echo);
        if self.keeps_stale {
            return self.leave_stale_to_sender(cx.retention);
        }
        let retention = cx.retention;
        let is_stale = |segment: &Segment| {
            !retention.covers(segment) && Stamp::of(segment.freshest()).is_before(echo)
        };
        // In the order of their sending, the old ones are in front but for retransmissions.
        let is_ordered = self.unordered_until.is_none() && retention.is_empty();
        loop {
            let place = match is_ordered {
                true => self.segments.front().is_some_and(is_stale).then_some(0),
                false => self.segments.iter().position(is_stale),
            };
            let Some(place) = place else {
                break;
            };
            if let Some(segment) = self.segments.remove(place) {
                self.forget(&segment, cx.budget);
            }
        }
    }

    /// What the far host would reject as too old is kept from now on, or given up as soon as it is known to be.
    pub(super) fn keep_stale(&mut self, keeps: bool, cx: &mut Context<'_>) {
        if core::mem::replace(&mut self.keeps_stale, keeps) == keeps {
            return;
        }
        if !keeps && let Some(taken_from) = self.taken_from.take() {
            self.give_up_before(taken_from, cx);
        }
    }

    /// What the far host would reject as too old does not go out by itself.
    fn leave_stale_to_sender(&mut self, retention: Retention) {
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            if self.is_stale(segment) && !retention.covers(segment) {
                self.set_fate(place, Fate::Transmitted);
            }
        }
    }

    /// Whether the far host would reject the freshest copy as too old.
    fn is_stale(&self, segment: &Segment) -> bool {
        let stamp = Stamp::of(segment.freshest());
        self.taken_from
            .is_some_and(|oldest| stamp.is_before(oldest))
    }

    /// The place of the oldest segment whose freshest copy the far host would accept.
    fn acceptable_place(&self) -> Option<usize> {
        if !self.keeps_stale {
            return (!self.segments.is_empty()).then_some(0);
        }
        let mut segments = self.segments.iter();
        segments.position(|segment| !self.is_stale(segment))
    }

    /// The oldest segment whose freshest copy the far host would accept.
    pub(super) fn acceptable_front(&self) -> Option<&Segment> {
        self.segments.get(self.acceptable_place()?)
    }

    /// The oldest segment is lost, also if its copies are too old.
    pub(super) fn lose_oldest_even_stale(&mut self) {
        if !self.segments.is_empty() {
            self.set_fate(0, Fate::Lost);
        }
    }

    /// Where the far host, which lacks the segment at `wanted`, shows that it has something of what follows; `None`
    /// if that segment is not kept.
    pub(super) fn shown_hole(&self, wanted: SeqNumber) -> Option<SeqNumber> {
        let front = self.front()?;
        let is_lacking = front.seq.at_or_before(wanted) && !front.sacked;
        let is_shown = is_lacking && self.segments.iter().any(|segment| segment.sacked);
        is_shown.then_some(front.seq)
    }

    /// Sets aside what is behind a [gap](Self::gap). Returns whether there is one.
    ///
    /// A sender that hears of a hole marks it as lost. If what is before the hole is acknowledged then, and it has
    /// repeated nothing, Linux takes the mark back for good (`tcp_try_undo_partial`).
    pub(super) fn set_aside_behind_gap(&mut self) -> bool {
        let is_within = |gap: &SeqNumber| self.front().is_some_and(|front| front.seq.before(*gap));
        self.gap = self.unseen.filter(is_within);
        let Some(gap) = self.gap else {
            return false;
        };
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            if segment.is_lost() && segment.seq.at_or_after(gap) {
                self.waits_from.get_or_insert(segment.seq);
                self.set_fate(place, Fate::Transmitted);
            }
        }
        true
    }

    /// Whether `packet`, new data after the link's return, waits behind a [gap](Self::gap), and whether the gap is new: all
    /// that is before `acked` has arrived.
    pub(super) fn waits_behind_gap(&mut self, packet: &Packet, acked: SeqNumber) -> (bool, bool) {
        let Some((seq, _)) = range(packet) else {
            return (false, false);
        };
        let seen = self.seen_until.unwrap_or(seq).max(acked);
        let is_new = self.gap.is_none() && seq.after(seen) && seen.after(acked);
        if is_new {
            self.gap = Some(seen);
        }
        let waits = self.gap.is_some_and(|gap| seq.at_or_after(gap));
        if waits {
            let from = self.waits_from.map_or(seq, |from| from.min(seq));
            self.waits_from = Some(from);
        }
        (waits, is_new)
    }

    /// Whether something waits behind a [gap](Self::gap).
    pub(super) const fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// What is behind a [gap](Self::gap) has waited for long enough.
    pub(super) fn forget_gap(&mut self) {
        self.gap = None;
        let Some(from) = self.waits_from.take() else {
            return;
        };
        let begin = match self.place(from) {
            Ok(place) | Err(place) => place,
        };
        for place in begin..self.segments.len() {
            if self.segments[place].fate == Fate::Transmitted {
                self.set_fate(place, Fate::Lost);
            }
        }
    }

    /// What went before the last segment that the far host says to have, and has not arrived, is lost.
    pub(super) fn lose_holes(&mut self) {
        let shown = self.segments.iter().rposition(|segment| segment.sacked);
        for place in 0..shown.unwrap_or_default() {
            if !self.segments[place].sacked {
                self.set_fate(place, Fate::Lost);
            }
        }
    }

    /// The far host lacks the oldest segment, at `wanted`, and rejects the copy of it that was re-sent: a
    /// fresher one goes out.
    pub(super) fn lose_rejected(&mut self, wanted: SeqNumber) {
        let place = self.acceptable_place();
        let front = place.and_then(|place| Some((place, self.segments.get(place)?)));
        let (Some((place, front)), Some(taken_from)) = (front, self.taken_from) else {
            return;
        };
        let is_rejected =
            matches!(front.fate, Fate::Resent(_, stamp) if stamp.is_before(taken_from));
        let is_lacking = front.seq.at_or_before(wanted);
        if is_rejected && is_lacking && !Stamp::of(front.freshest()).is_before(taken_from) {
            self.set_fate(place, Fate::Lost);
        }
    }

    /// The segment at `wanted` is the next that the far host lacks. At most a [few](FEW) segments with older timestamps
    /// go before it; the application can read none of them until the hole is filled, and once it is, the far host
    /// rejects them. Of what the sender had sent by `clock`, and up to `end`, the others are set aside as merely
    /// transmitted; returns whether there are such. If the segment at `wanted` is not kept, its sender has to repeat it, with a newer
    /// timestamp than all of these.
    pub(super) fn give_way_to(
        &mut self,
        wanted: SeqNumber,
        (clock, end): (Stamp, SeqNumber),
        retention: Retention,
    ) -> bool {
        let is_last = self.segments.len() == 1;
        let front = self.acceptable_front();
        let front = front.filter(|front| front.seq.at_or_before(wanted));
        if front.is_some_and(|front| !front.is_lost()) {
            // It has gone: the far host will say what it still takes.
            return false;
        }
        let hole = front.map(|front| {
            front
                .choose(CopyChoice::InOrder, is_last, self.taken_from)
                .1
        });
        let (mut few, mut is_any_aside) = (FEW, false);
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            let own = Stamp::of(segment.freshest());
            let is_older = hole.is_none_or(|hole| own.is_before(hole));
            // What is sent in the millisecond of the return has that timestamp, too.
            let is_kept = !clock.is_before(own) && segment.end.at_or_before(end);
            if !(segment.is_lost() && is_older && is_kept && !retention.covers(segment)) {
                continue;
            }
            if few == 0 {
                self.set_fate(place, Fate::Transmitted);
                is_any_aside = true;
            }
            few = few.saturating_sub(1);
        }
        is_any_aside
    }

    /// The far host says that it has these, too. Returns how many bytes of them it has not said so before.
    pub(super) fn selectively_acknowledge(&mut self, blocks: &[SackBlock]) -> u32 {
        let mut news = 0;
        for block in blocks {
            let from = self.place(block.left).unwrap_or_else(|place| place);
            for segment in self.segments.range_mut(from..) {
                if segment.end.after(block.right) {
                    break;
                }
                self.lost -= usize::from(segment.is_lost());
                if !segment.sacked {
                    news += segment.end.distance_from(segment.seq).unsigned_abs();
                    self.order.note_arrival(segment);
                }
                segment.sacked = true;
            }
        }
        news
    }

    /// The link dropped this very segment.
    pub(super) fn lose_dropped(&mut self, packet: &Packet) {
        let Some((seq, end)) = range(packet) else {
            return;
        };
        if let Ok(place) = self.place(seq)
            && self.segments[place].end == end
        {
            self.set_fate(place, Fate::Lost);
        }
    }

    /// What was merely transmitted, and ends no later than `until`, has not arrived.
    pub(super) fn lose_transmitted(&mut self, until: SeqNumber) {
        let until = self.gap.map_or(until, |gap| gap.min(until));
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            let is_in_doubt = segment.fate == Fate::Transmitted && !self.is_stale(segment);
            if is_in_doubt && segment.end.at_or_before(until) {
                self.set_fate(place, Fate::Lost);
            }
        }
    }

    /// What was re-sent by `sent_by` and ends no later than `until` was lost on the way, if enough of
    /// what went out later has arrived.
    pub(super) fn lose_overtaken(&mut self, until: SeqNumber, sent_by: Instant) {
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            if segment.end.after(until) {
                break;
            }
            let is_old = matches!(segment.fate, Fate::Resent(at, _) if at <= sent_by);
            if is_old && !segment.sacked && self.order.has_overtaken(segment.transmission) {
                self.set_fate(place, Fate::Lost);
            }
        }
    }

    /// Marks as lost what was re-sent until `at` and is not acknowledged: the first `most` of these.
    pub(super) fn lose_resent_until(&mut self, at: Instant, most: usize) {
        let is_lost = |segment: &Segment| {
            let is_from_before = matches!(segment.fate, Fate::Resent(when, _) if when <= at);
            is_from_before && !segment.sacked
        };
        let mut lost = 0;
        for place in 0..self.segments.len() {
            if lost < most && is_lost(&self.segments[place]) {
                self.set_fate(place, Fate::Lost);
                lost += 1;
            }
        }
    }

    /// Marks the segment that begins at `seq` as lost.
    pub(super) fn lose_at(&mut self, seq: SeqNumber) {
        if let Ok(place) = self.place(seq) {
            self.set_fate(place, Fate::Lost);
        }
    }

    /// The link went down: whatever was re-sent may have been on it.
    pub(super) fn mark_resent_as_transmitted(&mut self) {
        self.front_twice = false;
        self.before_front = 0;
        self.forget_gap();
        for segment in &mut self.segments {
            if matches!(segment.fate, Fate::Resent(..)) {
                segment.fate = Fate::Transmitted;
            }
        }
    }

    /// Only two segments are re-sent, and their sender is to repeat the others: the oldest one, which
    /// may have arrived, twice, and the first behind it that was certainly lost. Returns how many of
    /// what was lost are given up.
    pub(super) fn lose_only_two(&mut self) -> u64 {
        let before = self.lost;
        let behind = self.segments.iter().skip(1).position(Segment::is_lost);
        let kept = behind.map(|place| place + 1);
        for place in 1..self.segments.len() {
            if Some(place) != kept && self.segments[place].is_lost() {
                self.set_fate(place, Fate::Transmitted);
            }
        }
        self.lose_front();
        self.front_twice = true;
        before.saturating_sub(self.lost) as u64
    }

    /// Only the oldest segment is re-sent, behind one more: see [`Self::lose_front_behind`]. Returns how
    /// many of what was lost are given up.
    pub(super) fn lose_only_front(&mut self) -> u64 {
        let before = self.lost;
        for place in 1..self.segments.len() {
            if self.segments[place].is_lost() {
                self.set_fate(place, Fate::Transmitted);
            }
        }
        self.lose_front();
        self.lose_front_behind(1);
        before.saturating_sub(self.lost) as u64
    }

    /// The oldest segment, if it was merely transmitted, has not arrived: the far host has said so.
    pub(super) fn lose_front_and_two_behind(&mut self) {
        if self
            .front()
            .is_some_and(|front| front.fate == Fate::Transmitted)
        {
            self.set_fate(0, Fate::Lost);
            // The first duplicate may say, too, that the application has read: that does not count.
            self.lose_front_behind(2);
        }
    }

    /// The oldest segment, if it was merely transmitted, has not arrived.
    pub(super) fn lose_front_if_transmitted(&mut self) {
        if let Some(place) = self.acceptable_place()
            && self.segments[place].fate == Fate::Transmitted
        {
            self.set_fate(place, Fate::Lost);
        }
    }

    /// The sender may have heard that the oldest segment, which is lost, is missing: it then sends new
    /// data, to find out whether its timeout was spurious, and takes it for that if the next it hears
    /// acknowledges the oldest one (RFC 5682, section 2.1, step 3b). So others go before that, `most` of those
    /// that follow it: they draw duplicates, by which the sender knows that the timeout was real.
    fn lose_front_behind(&mut self, most: usize) {
        let last = self.segments.len().min(1 + most);
        self.before_front = 0;
        for place in 1..last {
            if self.segments[place].fate == Fate::Transmitted {
                self.set_fate(place, Fate::Lost);
                self.before_front += 1;
            }
        }
    }

    /// Marks the oldest [acceptable](Self::acceptable_front) segment as lost: it is worth sending even if it has
    /// arrived.
    pub(super) fn lose_front(&mut self) {
        if let Some(place) = self.acceptable_place() {
            self.update(place, |oldest| {
                oldest.sacked = false;
                oldest.fate = Fate::Lost;
            });
        }
    }

    /// The next segment to re-send, now marked as re-sent, and whether it went out before: the oldest timestamp first, for what
    /// is fresher must not come before it; of equal ones in sequence order.
    pub(super) fn next_lost(
        &mut self,
        cx: &Context<'_>,
        copy: CopyChoice,
    ) -> Option<(Packet, bool)> {
        if self.lost == 0 {
            return None;
        }
        let last = self.segments.len() - 1;
        let mut oldest: Option<(usize, &Packet, Stamp)> = None;
        let is_behind = self.before_front > 0 && self.segments[0].is_lost();
        let passed_over = usize::from(is_behind && self.lost > 1);
        self.before_front = self.before_front.saturating_sub(1);
        for (place, segment) in self.segments.iter().enumerate().skip(passed_over) {
            if !segment.is_lost() {
                continue;
            }
            let (packet, stamp) = segment.choose(copy, place == last, self.taken_from);
            let is_ordered = cx.rules.has(HoldRule::OldestStampFirst);
            if oldest.is_none_or(|(.., before)| is_ordered && stamp.is_before(before)) {
                oldest = Some((place, packet, stamp));
            }
        }
        let (place, packet, mut stamp) = oldest?;
        let mut packet = packet.clone();
        if let Some(echoed) = self.echoed
            && (self.keeps_stale || cx.retention.covers(&self.segments[place]))
        {
            packet = echoed.renew(packet);
            stamp = Stamp::of(&packet);
        }
        let is_to_follow = place == 0 && core::mem::take(&mut self.front_twice);
        self.segments[place].go(self.order.next_transmission());
        if !is_to_follow {
            self.set_fate(place, Fate::Resent(cx.now, stamp));
        }
        Some((packet, self.segments[place].went_again))
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.segments = VecDeque::new();
        self.lost = 0;
        self.longest = 0;
        self.unordered_until = None;
        self.front_twice = false;
        self.before_front = 0;
        (self.gap, self.waits_from) = (None, None);
        (self.unseen, self.seen_until) = (None, None);
        budget.give_back(core::mem::take(&mut self.charged));
    }

    /// Changes a segment and keeps count of the lost ones.
    fn update(&mut self, place: usize, change: impl FnOnce(&mut Segment)) {
        let segment = &mut self.segments[place];
        let was_lost = segment.is_lost();
        change(segment);
        self.lost = self.lost + usize::from(segment.is_lost()) - usize::from(was_lost);
    }

    fn set_fate(&mut self, place: usize, fate: Fate) {
        self.update(place, |segment| segment.fate = fate);
    }

    fn forget(&mut self, segment: &Segment, budget: &mut Budget) {
        self.lost -= usize::from(segment.is_lost());
        self.charged -= segment.total_charge();
        budget.give_back(segment.total_charge());
    }

    /// Where the segment that begins at `seq` is, or would go.
    fn place(&self, seq: SeqNumber) -> Result<usize, usize> {
        match self.segments.back() {
            // By far the most frequent: new data at the end.
            Some(last) if seq.after(last.seq) => Err(self.segments.len()),
            None => Err(0),
            _ => self
                .segments
                .binary_search_by(|segment| segment.seq.compare(seq)),
        }
    }
}
