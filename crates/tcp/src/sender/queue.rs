//! What has been sent and not yet acknowledged: the retransmission queue and its scoreboard.
//!
//! RFC 6675, section 2 (the scoreboard) and RFC 8985, section 5.2 (per-segment state), with the
//! marks of Linux: SACKed, lost, retransmission in flight, ever retransmitted. Segments stand in
//! a ring in sequence order; a list through them keeps the order of their latest transmission,
//! which is what RACK walks. As long as the two orders are the same, which is while nothing is
//! lost, there is no list to keep.

use super::marked::Marked;
pub(crate) use super::marks::Marks;
use alloc::collections::VecDeque;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;

/// A segment in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) seq: SeqNumber,
    /// Sequence numbers that it occupies.
    pub(crate) len: u32,
    /// Its latest transmission.
    pub(crate) sent_at: Instant,
    /// When the delivery count below was true; zero once it has been used.
    pub(crate) delivered_at: Instant,
    /// When the first segment of that stretch was sent.
    pub(crate) first_sent_at: Instant,
    /// Segments delivered when it was sent.
    pub(crate) delivered: u32,
    pub(crate) marks: Marks,
    previous: u32,
    next: u32,
}

impl Segment {
    pub(crate) fn end(&self) -> SeqNumber {
        self.seq + self.len
    }
}

/// Segments at the front of the queue that were sent once each, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) count: u32,
    /// When the first of them was sent.
    pub(crate) first_sent_at: Instant,
    pub(crate) last: Segment,
}

/// No segment.
const NONE: u32 = u32::MAX;

/// Ids count modulo 2^31, so that none is [`NONE`].
const ID_MASK: u32 = u32::MAX >> 1;

/// Names a segment for as long as it is queued.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SegmentId(u32);

/// Segments that are counted, in the words of RFC 6675 and Linux.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// SACKed, or without SACK: duplicates counted.
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retransmitted: u32,
}

/// The retransmission queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    segments: VecDeque<Segment>,
    /// Id of the first segment.
    front: u32,
    /// The list is kept. Otherwise every segment stands in it, in sequence order.
    is_linked: bool,
    /// Id of the last segment when the list was last anything but appended to: the segments behind
    /// it are in order.
    linked_until: u32,
    oldest: Option<u32>,
    newest: Option<u32>,
    pub(crate) counts: Counts,
    pub(crate) marked: Marked,
}

impl Queue {
    pub(crate) fn len(&self) -> u32 {
        // A queue of 2^32 segments does not fit in the sequence space.
        self.segments.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments that are thought to be in the network.
    //= RFC 6675, section 4 (SetPipe)
    pub(crate) fn in_flight(&self) -> u32 {
        let left = self.counts.sacked + self.counts.lost;
        (self.len() + self.counts.retransmitted).saturating_sub(left)
    }

    pub(crate) fn front(&self) -> Option<&Segment> {
        self.segments.front()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut Segment> {
        self.segments.front_mut()
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Segment> {
        self.segments.get(index)
    }

    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Segment> {
        self.segments.get_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.segments.iter_mut()
    }

    pub(crate) fn id(&self, index: usize) -> SegmentId {
        SegmentId(self.front.wrapping_add(index as u32) & ID_MASK)
    }

    /// Index of a segment, if it is still queued.
    pub(crate) fn index(&self, id: SegmentId) -> Option<usize> {
        let index = (id.0.wrapping_sub(self.front) & ID_MASK) as usize;
        (index < self.segments.len()).then_some(index)
    }

    /// Index of the segment that holds `seq`, or of the first one after it.
    pub(crate) fn search(&self, seq: SeqNumber) -> usize {
        self.segments
            .partition_point(|segment| segment.end().at_or_before(seq))
    }

    /// Appends a segment that has just been sent.
    #[inline]
    pub(crate) fn push(&mut self, segment: NewSegment) {
        let NewSegment {
            seq,
            len,
            sent_at,
            delivered,
            delivered_at,
            first_sent_at,
            marks,
        } = segment;
        self.segments.push_back(Segment {
            seq,
            len,
            sent_at,
            delivered_at,
            first_sent_at,
            delivered,
            marks: if self.is_linked {
                marks
            } else {
                marks.with(Marks::LISTED)
            },
            previous: NONE,
            next: NONE,
        });
        if self.is_linked {
            let index = self.segments.len() - 1;
            self.append(index);
        }
    }

    /// Makes the list, where there is none, for a change of it.
    fn link(&mut self) {
        let len = self.segments.len();
        self.linked_until = self.id(len.saturating_sub(1)).0;
        if self.is_linked {
            return;
        }
        self.is_linked = true;
        let id = |index: usize| self.front.wrapping_add(index as u32) & ID_MASK;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            segment.previous = index.checked_sub(1).map_or(NONE, id);
            segment.next = if index + 1 < len { id(index + 1) } else { NONE };
        }
        self.oldest = (len > 0).then(|| id(0));
        self.newest = len.checked_sub(1).map(id);
    }

    /// Takes the first segment out; the counters are the caller's business.
    pub(crate) fn pop_front(&mut self) -> Option<Segment> {
        if self.is_linked {
            self.take_out(0);
            self.is_linked = self.front != self.linked_until && self.segments.len() > 1;
        }
        let segment = self.segments.pop_front()?;
        self.front = self.front.wrapping_add(1) & ID_MASK;
        Some(segment)
    }

    /// The first segments up to `ack`, if it is the end of one, and nothing is known of any queued
    /// segment but that it was sent, nor was one of these sent twice.
    #[inline]
    pub(crate) fn plain_run(&self, ack: SeqNumber) -> Option<Run> {
        let Counts {
            sacked: 0,
            lost: 0,
            retransmitted: 0,
        } = self.counts
        else {
            return None;
        };
        if self.is_linked {
            return None;
        }
        for (count, index) in (1..).zip(0..self.segments.len()) {
            let segment = &self.segments[index];
            if !segment.marks.is_plain() {
                return None;
            }
            let left = ack.distance_from(segment.end());
            if left <= 0 {
                let first = self.segments.front()?;
                let run = Run {
                    count,
                    first_sent_at: first.sent_at,
                    last: *segment,
                };
                return (left == 0).then_some(run);
            }
        }
        None
    }

    /// Takes out a [run](Self::plain_run) of `count` segments.
    #[inline]
    pub(crate) fn drop_run(&mut self, count: u32) {
        for _ in 0..count {
            self.segments.pop_front();
        }
        self.front = self.front.wrapping_add(count) & ID_MASK;
    }

    /// Cuts the first `bytes` of the first segment off.
    pub(crate) fn trim_front(&mut self, bytes: u32) {
        if let Some(first) = self.segments.front_mut() {
            first.seq += bytes;
            first.len = first.len.saturating_sub(bytes);
        }
    }

    /// Splits the segment at `index` after `bytes`; both parts keep its marks.
    pub(crate) fn split(&mut self, index: usize, bytes: u32) {
        let Some(segment) = self.segments.get_mut(index) else {
            return;
        };
        if bytes == 0 || bytes >= segment.len {
            return;
        }
        self.marked.forget();
        let mut tail = *segment;
        tail.seq += bytes;
        tail.len -= bytes;
        segment.len = bytes;
        segment.marks = segment.marks.without(Marks::FIN).without(Marks::PUSHED);
        tail.marks = tail.marks.without(Marks::SYN).without(Marks::JOINED);
        if !self.is_linked {
            self.segments.insert(index + 1, tail);
            self.count_again();
            return;
        }
        let listed = tail.marks.has(Marks::LISTED);
        // Ids behind it move up by one: the list is renumbered with them.
        let moved = self.id(index + 1).0;
        let behind = self.segments.len() as u32 - (index as u32 + 1);
        let shift = |id: u32| {
            let is_behind = id != NONE && (id.wrapping_sub(moved) & ID_MASK) < behind;
            if is_behind {
                id.wrapping_add(1) & ID_MASK
            } else {
                id
            }
        };
        for segment in &mut self.segments {
            segment.previous = shift(segment.previous);
            segment.next = shift(segment.next);
        }
        self.oldest = self.oldest.map(shift);
        self.newest = self.newest.map(shift);
        tail.marks = tail.marks.without(Marks::LISTED);
        self.segments.insert(index + 1, tail);
        self.link();
        if listed {
            self.list_after(index, index + 1);
        }
        self.count_again();
    }

    /// Cuts the queue anew into segments of `most` bytes, all of them lost.
    ///
    /// A stack that keeps bytes, and no record of the segments that it has sent, goes back to the first of them and
    /// cuts full segments from there on.
    pub(crate) fn cut_anew(&mut self, most: u32) {
        let most = most.max(1);
        let begins = self.segments.front().map(|first| first.seq);
        let Some((begins, last)) = begins.zip(self.segments.back().copied()) else {
            return;
        };
        let fin = u32::from(last.marks.has(Marks::FIN));
        let mut left = last.end().distance_from(begins).unsigned_abs() - fin;
        let lost = self.segments.iter().fold(Marks::LOST, |marks, segment| {
            match segment.marks.is_retransmission() {
                true => marks.with(Marks::EVER_RETRANSMITTED),
                false => marks,
            }
        });
        let mut before = core::mem::take(self);
        self.front = before.front;
        let mut seq = begins;
        while self.segments.is_empty() || left > 0 {
            let len = left.min(most);
            left -= len;
            let is_last = left == 0;
            let end = seq + len + if is_last { fin } else { 0 };
            while before
                .segments
                .front()
                .is_some_and(|first| first.end().before(end))
            {
                before.segments.pop_front();
            }
            let Some(of) = before.segments.front() else {
                break;
            };
            let sent_at = self.segments.back().map_or(of.sent_at, |back| back.sent_at);
            let marks = match is_last {
                true if fin > 0 => lost.with(Marks::FIN),
                _ => lost,
            };
            self.push(NewSegment {
                seq,
                len: end.distance_from(seq).unsigned_abs(),
                sent_at: of.sent_at.max(sent_at),
                delivered: of.delivered,
                delivered_at: of.delivered_at,
                first_sent_at: of.first_sent_at,
                marks,
            });
            seq = end;
        }
        self.counts.lost = self.len();
    }

    /// The segment at `index` is in one buffer with the one before it.
    pub(crate) fn join(&mut self, index: usize) {
        if let Some(segment) = self.segments.get_mut(index) {
            segment.marks = segment.marks.with(Marks::JOINED);
        }
    }

    /// The segment at `index` begins a buffer of its own.
    pub(crate) fn part(&mut self, index: usize) {
        if let Some(segment) = self.segments.get_mut(index) {
            segment.marks = segment.marks.without(Marks::JOINED);
        }
    }

    fn list_after(&mut self, before: usize, index: usize) {
        let id = self.id(index).0;
        let before_id = self.id(before).0;
        let next = self.segments[before].next;
        self.segments[before].next = id;
        let segment = &mut self.segments[index];
        segment.previous = before_id;
        segment.next = next;
        segment.marks = segment.marks.with(Marks::LISTED);
        match self.index(SegmentId(next)).filter(|_| next != NONE) {
            Some(next) => self.segments[next].previous = id,
            None => self.newest = Some(id),
        }
    }

    fn count_again(&mut self) {
        let count = |mark| self.iter().filter(|s| s.marks.has(mark)).count() as u32;
        self.counts = Counts {
            sacked: count(Marks::SACKED).max(self.counts.sacked),
            lost: count(Marks::LOST),
            retransmitted: count(Marks::RETRANSMITTED),
        };
    }

    /// Puts a segment at the end of the list of transmissions.
    pub(crate) fn list_last(&mut self, index: usize) {
        if !self.is_linked && index + 1 == self.segments.len() {
            return;
        }
        self.unlist(index);
        self.append(index);
    }

    fn append(&mut self, index: usize) {
        let id = self.id(index).0;
        match self.newest {
            Some(newest) => {
                let last = self.index(SegmentId(newest));
                if let Some(last) = last.and_then(|last| self.segments.get_mut(last)) {
                    last.next = id;
                }
            }
            None => self.oldest = Some(id),
        }
        let previous = self.newest.unwrap_or(NONE);
        self.newest = Some(id);
        if let Some(segment) = self.segments.get_mut(index) {
            segment.previous = previous;
            segment.next = NONE;
            segment.marks = segment.marks.with(Marks::LISTED);
        }
    }

    /// Takes a segment out of the list of transmissions.
    pub(crate) fn unlist(&mut self, index: usize) {
        self.link();
        self.take_out(index);
    }

    fn take_out(&mut self, index: usize) {
        let Some(segment) = self.segments.get_mut(index) else {
            return;
        };
        if !segment.marks.has(Marks::LISTED) {
            return;
        }
        segment.marks = segment.marks.without(Marks::LISTED);
        let (previous, next) = (segment.previous, segment.next);
        match self.index(SegmentId(previous)).filter(|_| previous != NONE) {
            Some(at) => self.segments[at].next = next,
            None => self.oldest = (next != NONE).then_some(next),
        }
        match self.index(SegmentId(next)).filter(|_| next != NONE) {
            Some(at) => self.segments[at].previous = previous,
            None => self.newest = (previous != NONE).then_some(previous),
        }
    }

    /// Index of the segment whose latest transmission is the oldest.
    pub(crate) fn oldest(&self) -> Option<usize> {
        if !self.is_linked {
            return (!self.is_empty()).then_some(0);
        }
        self.oldest.and_then(|id| self.index(SegmentId(id)))
    }

    /// Index of the segment that was transmitted after the one at `index`.
    pub(crate) fn sent_after(&self, index: usize) -> Option<usize> {
        if !self.is_linked {
            return (index + 1 < self.segments.len()).then_some(index + 1);
        }
        let next = self.segments.get(index)?.next;
        (next != NONE)
            .then(|| self.index(SegmentId(next)))
            .flatten()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.is_linked = false;
        self.oldest = None;
        self.newest = None;
        self.counts = Counts::default();
        self.marked.forget();
    }

    /// Whether the counters and the list agree with the marks.
    #[cfg(test)]
    pub(crate) fn check(&self, with_sack: bool) {
        let count = |mark| self.iter().filter(|s| s.marks.has(mark)).count() as u32;
        assert_eq!(self.counts.lost, count(Marks::LOST), "lost");
        assert_eq!(
            self.counts.retransmitted,
            count(Marks::RETRANSMITTED),
            "retransmitted"
        );
        if with_sack {
            assert_eq!(self.counts.sacked, count(Marks::SACKED), "sacked");
        }
        let mut listed = 0;
        let mut at = self.oldest();
        let mut before = Instant::ZERO;
        while let Some(index) = at {
            listed += 1;
            assert!(
                self.segments[index].sent_at >= before,
                "in order of transmission"
            );
            before = self.segments[index].sent_at;
            at = self.sent_after(index);
        }
        assert_eq!(listed, count(Marks::LISTED), "listed");
    }
}

/// A segment to be appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSegment {
    pub(crate) seq: SeqNumber,
    pub(crate) len: u32,
    pub(crate) sent_at: Instant,
    pub(crate) delivered: u32,
    pub(crate) delivered_at: Instant,
    pub(crate) first_sent_at: Instant,
    pub(crate) marks: Marks,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn queue(segments: u32) -> Queue {
        let mut queue = Queue::default();
        for n in 0..segments {
            queue.push(NewSegment {
                seq: SeqNumber(n * 100),
                len: 100,
                sent_at: Instant::from_millis(u64::from(n)),
                delivered: 0,
                delivered_at: Instant::ZERO,
                first_sent_at: Instant::ZERO,
                marks: Marks::default(),
            });
        }
        queue
    }

    fn order(queue: &Queue) -> Vec<u32> {
        let mut at = queue.oldest();
        core::iter::from_fn(|| {
            let index = at?;
            at = queue.sent_after(index);
            queue.at(index).map(|segment| segment.seq.0)
        })
        .collect()
    }

    #[test]
    fn what_was_sent_in_pieces_is_cut_anew() {
        let mut queue = queue(5);
        queue.trim_front(99);
        queue.split(2, 1);
        let fin = queue.at_mut(5).expect("the last");
        fin.marks = fin.marks.with(Marks::FIN);
        queue.cut_anew(150);
        let cut: Vec<_> = queue.iter().map(|one| (one.seq.0, one.len)).collect();
        assert_eq!(cut, [(99, 150), (249, 150), (399, 101)]);
        assert!(queue.iter().all(|one| one.marks.has(Marks::LOST)));
        let has_fin = |one: &Segment| one.marks.has(Marks::FIN);
        let with_fin: Vec<_> = queue.iter().map(has_fin).collect();
        assert_eq!(with_fin, [false, false, true]);
        queue.check(true);
        queue.list_last(0);
        assert_eq!(order(&queue), [249, 399, 99]);
        let mut empty = Queue::default();
        empty.cut_anew(150);
        assert!(empty.is_empty());
    }

    #[test]
    fn a_retransmission_goes_to_the_end_of_the_order() {
        let mut queue = queue(4);
        queue.list_last(1);
        assert_eq!(order(&queue), [0, 200, 300, 100]);
        queue.unlist(2);
        queue.pop_front();
        assert_eq!(order(&queue), [300, 100]);
        assert_eq!(queue.search(SeqNumber(250)), 1);
    }

    #[test]
    fn there_is_no_list_once_the_order_is_that_of_the_sequence_again() {
        let mut queue = queue(3);
        assert!(!queue.is_linked);
        queue.list_last(0);
        queue.push(NewSegment {
            seq: SeqNumber(300),
            len: 100,
            sent_at: Instant::from_millis(9),
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            marks: Marks::default(),
        });
        assert_eq!(order(&queue), [100, 200, 0, 300]);
        queue.pop_front();
        queue.pop_front();
        assert_eq!(order(&queue), [200, 300]);
        assert!(queue.is_linked);
        queue.pop_front();
        assert!(!queue.is_linked);
        assert_eq!(order(&queue), [300]);
        queue.check(true);
    }

    #[test]
    fn a_split_keeps_order_and_marks() {
        let mut queue = queue(3);
        queue.front_mut().expect("three").sent_at = Instant::from_millis(9);
        queue.list_last(0);
        queue.split(1, 40);
        assert_eq!(order(&queue), [100, 140, 200, 0]);
        queue.check(true);
    }

    #[test]
    fn numbers_may_run_out() {
        let mut queue = queue(0);
        queue.front = ID_MASK - 2;
        for n in 0..10_u32 {
            queue.push(NewSegment {
                seq: SeqNumber(n),
                len: 1,
                sent_at: Instant::from_millis(u64::from(n)),
                delivered: 0,
                delivered_at: Instant::ZERO,
                first_sent_at: Instant::ZERO,
                marks: Marks::default(),
            });
            if n >= 1 {
                queue.pop_front();
                queue.check(true);
            }
        }
        assert_eq!(order(&queue), [9]);
    }
}
