//! The segments that the mobile has not acknowledged, in the order of their numbers.

use super::super::{Context, SendReason, newer_stamp};
use crate::limits::Budget;
use crate::links::LinkState;
use alloc::collections::VecDeque;
use outlast_base::time::{Duration, Instant};
use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, SeqNumber};

/// One segment.
#[derive(Debug)]
struct Kept {
    packet: Packet,
    seq: SeqNumber,
    end: SeqNumber,
    /// The newest timestamp with which its host has sent it.
    stamp: Option<u32>,
    /// When it went to the mobile last; `None`: it is to be sent.
    sent_at: Option<Instant>,
    /// It was last sent from here, not by its host.
    is_own: bool,
    /// Its host has repeated it, and takes that for under way: it goes out once more unless it arrives.
    owes_repetition: bool,
    /// It has waited for its share of the link since it came, and has not been sent yet.
    awaits_share: bool,
}

impl Kept {
    /// Whether it overlaps `seq` to `end`.
    fn overlaps(&self, (seq, end): (SeqNumber, SeqNumber)) -> bool {
        self.seq.before(end) && self.end.after(seq)
    }

    fn charge(packet: &Packet) -> u64 {
        u64::from(packet.total_len()) + size_of::<Self>() as u64
    }
}

/// What is unacknowledged.
#[derive(Debug, Default)]
pub(super) struct Cache {
    segments: VecDeque<Kept>,
    /// How many of them are to be sent.
    waiting: usize,
    charged: u64,
    /// The number behind what has come without a gap, and behind the last; `None` while it is empty.
    progress: Option<Progress>,
    /// The newest timestamp that the mobile may have taken of what is not here, or not any more.
    floor: Option<u32>,
    /// The number behind what has been sent.
    sent_until: Option<SeqNumber>,
    /// Payload bytes of the longest segment that the host has sent.
    longest: u32,
}

/// The next segment that is to be sent.
pub(super) struct Next {
    pub(super) packet: Packet,
    /// See [`Cache::owe_repetition`].
    pub(super) owes_repetition: bool,
    /// It is sent for the first time, and has waited for its share of the link.
    is_share: bool,
}

impl Next {
    pub(super) const fn reason(&self) -> SendReason {
        match self.is_share {
            true => SendReason::Share,
            false => SendReason::Kept,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    received: SeqNumber,
    highest: SeqNumber,
}

impl Cache {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) const fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether something was sent, and is not to be sent again.
    pub(super) fn has_sent(&self) -> bool {
        self.waiting < self.segments.len()
    }

    /// The number behind the last segment.
    pub(super) fn end(&self) -> Option<SeqNumber> {
        self.progress.map(|progress| progress.highest)
    }

    /// Whether the byte at `number` is here.
    pub(super) fn has(&self, number: SeqNumber) -> bool {
        let holds = |kept: &Kept| kept.seq.at_or_before(number) && kept.end.after(number);
        // Those that are asked for are at the front.
        self.segments.iter().any(holds)
    }

    /// Whether something is here, and the byte at `number` is missing before it.
    pub(super) fn begins_after(&self, number: SeqNumber) -> bool {
        self.segments
            .front()
            .is_some_and(|front| front.seq.after(number))
    }

    /// The number behind what has come without a gap, where the mobile has everything before `acked`.
    pub(super) fn received(&self, acked: SeqNumber) -> SeqNumber {
        self.progress
            .map_or(acked, |progress| progress.received.max(acked))
    }

    /// Whether everything from `seq` to `end` is here.
    pub(super) fn has_all(&self, seq: SeqNumber, end: SeqNumber) -> bool {
        if self
            .progress
            .is_none_or(|progress| end.after(progress.highest))
        {
            return false;
        }
        covered(&self.segments, seq).at_or_after(end)
    }

    /// Keeps `packet`, sent at `sent_at` or to be sent; says whether there was room.
    pub(super) fn keep(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        sent_at: Option<Instant>,
    ) -> bool {
        let Some(tcp) = packet.tcp() else {
            return false;
        };
        let charge = Kept::charge(packet);
        if self.charged + charge > cx.limits.held_per_flow.0 || !cx.budget.take(charge) {
            cx.counters.not_kept += 1;
            return false;
        }
        self.charged += charge;
        self.longest = self.longest.max(packet.header().payload_len);
        self.waiting += usize::from(sent_at.is_none());
        let (seq, end) = (tcp.seq, tcp.seq + packet.sequence_len());
        let behind = self
            .segments
            .iter()
            .rposition(|kept| kept.seq.at_or_before(seq));
        let kept = Kept {
            packet: packet.clone(),
            seq,
            end,
            stamp: stamp_of(packet),
            sent_at,
            is_own: false,
            owes_repetition: false,
            awaits_share: sent_at.is_none()
                && cx.allotment.is_some()
                && cx.link.state == LinkState::Up,
        };
        if sent_at.is_some() {
            self.note_sent(end);
        }
        self.segments.insert(behind.map_or(0, |at| at + 1), kept);
        let acked = cx.flow.near.acked;
        let mut progress = self.progress.unwrap_or(Progress {
            received: acked,
            highest: end,
        });
        progress.highest = progress.highest.max(end);
        progress.received = progress.received.max(acked);
        if seq.at_or_before(progress.received) {
            progress.received = progress.received.max(end);
            if progress.highest.after(progress.received) {
                progress.received = covered(&self.segments, progress.received);
            }
        }
        self.progress = Some(progress);
        true
    }

    /// The mobile has everything before `acked`.
    pub(super) fn acknowledge(&mut self, acked: SeqNumber, budget: &mut Budget) {
        while let Some(front) = self.segments.front()
            && front.end.at_or_before(acked)
        {
            self.drop_front(budget);
        }
        // Segments that overlap may end in another order than they begin.
        if self
            .segments
            .front()
            .is_some_and(|front| front.seq.before(acked))
        {
            self.drop_overlapped(acked, budget);
        }
        if self.segments.is_empty() {
            self.progress = None;
        }
    }

    fn drop_overlapped(&mut self, acked: SeqNumber, budget: &mut Budget) {
        let Self {
            segments,
            waiting,
            charged,
            floor,
            ..
        } = self;
        segments.retain(|kept| {
            let stays = kept.end.after(acked);
            if !stays {
                *floor = newest(*floor, kept.stamp);
                let charge = Kept::charge(&kept.packet);
                *waiting -= usize::from(kept.sent_at.is_none());
                *charged -= charge;
                budget.give_back(charge);
            }
            stays
        });
    }

    fn drop_front(&mut self, budget: &mut Budget) {
        if let Some(front) = self.segments.pop_front() {
            self.floor = newest(self.floor, front.stamp);
            let charge = Kept::charge(&front.packet);
            self.waiting -= usize::from(front.sent_at.is_none());
            self.charged -= charge;
            budget.give_back(charge);
        }
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        budget.give_back(self.charged);
        *self = Self::default();
    }

    pub(super) fn send_all_again(&mut self) {
        for kept in &mut self.segments {
            kept.sent_at = None;
        }
        self.waiting = self.segments.len();
    }

    /// Sends the segment with the byte at `number` again.
    pub(super) fn send_front_again(&mut self, number: SeqNumber) {
        self.send_again_if(|kept| kept.seq.at_or_before(number) && kept.end.after(number));
    }

    /// Sends the segment with the byte at `number` again if it was sent longer than `age` ago.
    pub(super) fn send_front_again_if_older(
        &mut self,
        number: SeqNumber,
        now: Instant,
        age: Duration,
    ) {
        self.send_again_if_older((number, number + 1), now, age);
    }

    /// Sends what overlaps `span` again, if it was sent longer than `age` ago.
    pub(super) fn send_again_if_older(
        &mut self,
        span: (SeqNumber, SeqNumber),
        now: Instant,
        age: Duration,
    ) {
        self.send_again_if(|kept| {
            let is_old = kept.sent_at.is_some_and(|at| now.since(at) > age);
            is_old && kept.overlaps(span)
        });
    }

    /// Whether a part of `span` is about to be sent, or was sent from here in the last `age`.
    pub(super) fn is_in_hand(
        &self,
        span: (SeqNumber, SeqNumber),
        now: Instant,
        age: Duration,
    ) -> bool {
        self.segments.iter().any(|kept| {
            let is_new = |at: Instant| kept.is_own && now.since(at) < age;
            kept.overlaps(span) && kept.sent_at.is_none_or(is_new)
        })
    }

    /// Its host repeats all of `span`, in `packet`: what goes out from here bears no older timestamp.
    ///
    /// The mobile may take the repetition, and then drops whatever is older (PAWS, RFC 7323, section 5).
    pub(super) fn renew(&mut self, span: (SeqNumber, SeqNumber), packet: &Packet) {
        let stamp = stamp_of(packet);
        for kept in self.segments.iter_mut().filter(|kept| kept.overlaps(span)) {
            kept.stamp = newest(kept.stamp, stamp);
        }
    }

    /// `packet` goes to the mobile and is not kept.
    pub(super) fn note_unkept(&mut self, packet: &Packet) {
        self.floor = newest(self.floor, stamp_of(packet));
    }

    /// Its host sends `span` again.
    pub(super) fn note_passed(&mut self, span: (SeqNumber, SeqNumber), now: Instant) {
        for kept in &mut self.segments {
            if kept.overlaps(span) && kept.sent_at.is_some() {
                kept.sent_at = Some(now);
                kept.is_own = false;
                kept.owes_repetition = false;
            }
        }
    }

    /// The host of `span` has repeated it, which was taken. Says when the first of it was sent.
    pub(super) fn owe_repetition(&mut self, span: (SeqNumber, SeqNumber)) -> Option<Instant> {
        let mut sent_at = None;
        for kept in &mut self.segments {
            if kept.overlaps(span) {
                kept.owes_repetition = true;
                sent_at = sent_at.or(kept.sent_at);
            }
        }
        sent_at
    }

    /// Sends again what was sent before `time` and [owes a repetition](Self::owe_repetition). Says when the
    /// first was sent that still owes one.
    pub(super) fn send_repetitions(&mut self, time: Instant) -> Option<Instant> {
        let mut next = None;
        for kept in &mut self.segments {
            let Some(at) = kept.sent_at.filter(|_| kept.owes_repetition) else {
                continue;
            };
            if at <= time {
                kept.sent_at = None;
                kept.owes_repetition = false;
                self.waiting += 1;
            } else {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
            }
        }
        next
    }

    /// Sends everything again that was sent before `time`.
    pub(super) fn send_older_again(&mut self, time: Instant) {
        self.send_again_if(|kept| kept.sent_at.is_some_and(|at| at < time));
    }

    /// The link has dropped this segment.
    pub(super) fn lose(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp() else {
            return;
        };
        let (seq, end) = (tcp.seq, tcp.seq + packet.sequence_len());
        self.send_again_if(|kept| kept.seq == seq && kept.end == end);
    }

    fn send_again_if(&mut self, is_meant: impl Fn(&Kept) -> bool) {
        for kept in &mut self.segments {
            if kept.sent_at.is_some() && is_meant(kept) {
                kept.sent_at = None;
                self.waiting += 1;
            }
        }
    }

    fn note_sent(&mut self, end: SeqNumber) {
        self.sent_until = Some(self.sent_until.map_or(end, |until| until.max(end)));
    }

    /// The number behind what has been sent, where the mobile has everything before `acked`.
    pub(super) fn sent_until(&self, acked: SeqNumber) -> SeqNumber {
        self.sent_until.map_or(acked, |until| until.max(acked))
    }

    /// Takes the next segment that is to be sent, together with those behind it that fit into one with it.
    pub(super) fn next_waiting(&mut self, now: Instant, budget: &mut Budget) -> Option<Next> {
        if self.waiting == 0 {
            return None;
        }
        let at = self.segments.iter().position(|kept| kept.sent_at.is_none());
        let at = at?;
        while self.join_at(at, budget) {}
        let passed = self.segments.iter().take(at + 1);
        let floor = passed.fold(self.floor, |floor, kept| newest(floor, kept.stamp));
        let kept = self.segments.get_mut(at)?;
        kept.sent_at = Some(now);
        kept.is_own = true;
        self.waiting -= 1;
        let end = kept.end;
        let next = Next {
            packet: renewed(kept, floor),
            owes_repetition: kept.owes_repetition,
            is_share: core::mem::take(&mut kept.awaits_share),
        };
        self.note_sent(end);
        Some(next)
    }

    /// Joins the waiting segment at `at` with the one behind it, if that waits, too, and both are no longer than the
    /// longest segment that their host has sent; says whether it did.
    ///
    /// The published supervisor host has a TCP of its own towards the mobile, which sends full segments whatever
    /// came in (section 5.2).
    fn join_at(&mut self, at: usize, budget: &mut Budget) -> bool {
        let (Some(first), Some(second)) = (self.segments.get(at), self.segments.get(at + 1)) else {
            return false;
        };
        let payload = |kept: &Kept| kept.packet.header().payload_len;
        if second.sent_at.is_some() || payload(first) + payload(second) > self.longest {
            return false;
        }
        let Some(packet) = first.packet.joined_with(&second.packet) else {
            return false;
        };
        let saved = (Kept::charge(&first.packet) + Kept::charge(&second.packet))
            .saturating_sub(Kept::charge(&packet));
        let Some(second) = self.segments.remove(at + 1) else {
            return false;
        };
        self.waiting -= 1;
        self.charged -= saved;
        budget.give_back(saved);
        if let Some(first) = self.segments.get_mut(at) {
            first.packet = packet;
            first.end = second.end;
            first.stamp = newest(first.stamp, second.stamp);
            first.owes_repetition |= second.owes_repetition;
            first.awaits_share &= second.awaits_share;
        }
        true
    }

    pub(super) fn oldest(&self) -> Option<Packet> {
        let front = self.segments.front()?;
        Some(renewed(front, newest(self.floor, front.stamp)))
    }
}

/// The number behind what the segments hold without a gap from `from` on.
fn covered(segments: &VecDeque<Kept>, from: SeqNumber) -> SeqNumber {
    let mut end = from;
    for kept in segments {
        if kept.seq.after(end) {
            break;
        }
        end = end.max(kept.end);
    }
    end
}

fn newest(floor: Option<u32>, stamp: Option<u32>) -> Option<u32> {
    stamp.map_or(floor, |stamp| Some(newer_stamp(floor, stamp)))
}

fn stamp_of(packet: &Packet) -> Option<u32> {
    Some(packet.tcp()?.options.timestamps?.value)
}

/// The segment with a timestamp that is not older than that of what comes before it: a sender that is
/// thawed sends a part of it again, and the mobile drops what is older than that (PAWS, RFC 7323,
/// section 5).
fn renewed(kept: &Kept, floor: Option<u32>) -> Packet {
    let packet = kept.packet.clone();
    let own = packet.tcp().and_then(|tcp| tcp.options.timestamps);
    let (Some(own), Some(value)) = (own, floor) else {
        return packet;
    };
    if value == own.value {
        return packet;
    }
    let mut edit = packet.edit();
    match edit.set_timestamps(Timestamps { value, ..own }) {
        Ok(_) => edit.finish(),
        // Its headers are protected.
        Err(_) => kept.packet.clone(),
    }
}
