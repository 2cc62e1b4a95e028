//! The bytes of one host that a capture shows, and acknowledgements of others.
//!
//! A receiver acknowledges what it has. If the capture does not have it, then the capture has a hole:
//! its program lost packets, or they took another way. Of what happened meanwhile it says nothing.

use alloc::vec::Vec;
use outlast_wire::SeqNumber;

/// Stretches behind a hole that are remembered; with more, the first hole counts as seen.
const MOST: usize = 16;

/// The sequence numbers that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// All before it was seen, from the first packet on.
    next: Option<SeqNumber>,
    /// Stretches behind, in order, with holes between.
    beyond: Vec<(SeqNumber, SeqNumber)>,
    /// Holes before it may have been forgotten.
    unsure_before: Option<SeqNumber>,
    /// Data that was last acknowledged unseen: it may have been captured out of order.
    owed: Option<(SeqNumber, SeqNumber)>,
}

impl Seen {
    /// Notes a packet with the numbers from `seq` to `end`; true if it was acknowledged unseen, and is
    /// captured late.
    #[inline]
    pub(crate) fn add(&mut self, seq: SeqNumber, end: SeqNumber) -> bool {
        let Some(next) = self.next else {
            // A probe of one who keeps the connection alive is before what is expected.
            self.next = Some(if seq == end { seq + 1 } else { end });
            return false;
        };
        let is_late = |(from, until): &mut (SeqNumber, SeqNumber)| {
            seq != end && seq.at_or_before(*from) && end.at_or_after(*until)
        };
        if seq.at_or_before(next) {
            if end.after(next) {
                self.advance(end);
            }
        } else if seq != end {
            self.insert(seq, end);
        }
        self.owed.take_if(is_late).is_some()
    }

    /// True if the byte at `seq` was not seen.
    pub(crate) fn lacks(&self, seq: SeqNumber) -> bool {
        let is_behind = self.next.is_none_or(|next| seq.at_or_after(next));
        let mut stretches = self.beyond.iter();
        let is_in =
            |(from, until): &(SeqNumber, SeqNumber)| seq.at_or_after(*from) && seq.before(*until);
        is_behind && !stretches.any(is_in)
    }

    /// True if a hole at `seq` may have been forgotten.
    pub(crate) fn may_lack(&self, seq: SeqNumber) -> bool {
        self.unsure_before.is_some_and(|unsure| seq.before(unsure))
    }

    /// Notes that all before `ack` has arrived; true if the capture lacks some of it.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) -> bool {
        let Some(next) = self.next.filter(|next| ack.after(*next)) else {
            return false;
        };
        self.advance(ack);
        self.owed = Some((next, ack));
        true
    }

    fn advance(&mut self, to: SeqNumber) {
        let mut next = to;
        while let Some(&(from, until)) = self.beyond.first()
            && from.at_or_before(next)
        {
            next = next.max(until);
            self.beyond.remove(0);
        }
        self.next = Some(next);
    }

    fn insert(&mut self, seq: SeqNumber, end: SeqNumber) {
        let at = self.beyond.partition_point(|(_, until)| until.before(seq));
        let (mut seq, mut end) = (seq, end);
        while let Some(&(from, until)) = self.beyond.get(at)
            && from.at_or_before(end)
        {
            seq = if from.before(seq) { from } else { seq };
            end = end.max(until);
            self.beyond.remove(at);
        }
        self.beyond.insert(at, (seq, end));
        if self.beyond.len() > MOST {
            let (from, until) = self.beyond.remove(0);
            self.unsure_before = Some(from);
            self.advance(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(stretches: &[(u32, u32)]) -> Seen {
        let mut seen = Seen::default();
        for &(seq, end) in stretches {
            seen.add(SeqNumber(seq), SeqNumber(end));
        }
        seen
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_seen_is_told_once() {
        let mut hole = seen(&[(0, 10), (20, 30), (40, 50)]);
        assert!(!hole.acknowledge(SeqNumber(10)));
        assert!(hole.acknowledge(SeqNumber(15)));
        assert!(hole.acknowledge(SeqNumber(30)));
        assert!(!hole.acknowledge(SeqNumber(30)));
        assert!(hole.acknowledge(SeqNumber(50)));
        let mut filled = seen(&[(0, 10), (20, 30), (40, 50), (30, 40), (5, 20)]);
        assert!(!filled.acknowledge(SeqNumber(50)));
        assert!(filled.acknowledge(SeqNumber(51)));
    }

    #[test]
    fn what_is_captured_late_was_seen_after_all() {
        let mut early = seen(&[(0, 10)]);
        assert!(early.lacks(SeqNumber(10)) && !early.lacks(SeqNumber(9)));
        assert!(early.acknowledge(SeqNumber(20)));
        assert!(early.add(SeqNumber(10), SeqNumber(20)));
        assert!(!early.add(SeqNumber(10), SeqNumber(20)));
        early.add(SeqNumber(30), SeqNumber(40));
        let lacks = [25, 30, 39, 40].map(|seq| early.lacks(SeqNumber(seq)));
        assert_eq!(lacks, [true, false, false, true]);
    }

    #[test]
    fn nothing_is_lacking_before_the_first_packet() {
        assert!(!Seen::default().acknowledge(SeqNumber(7)));
        let mut probe = seen(&[(9, 9)]);
        assert!(!probe.acknowledge(SeqNumber(10)));
    }

    #[test]
    fn memory_does_not_grow() {
        let mut seen = Seen::default();
        for number in 0..1_000 {
            seen.add(SeqNumber(number * 20), SeqNumber(number * 20 + 10));
        }
        assert!(seen.beyond.len() <= MOST);
        assert!(!seen.lacks(SeqNumber(10)) && seen.may_lack(SeqNumber(10)));
        assert!(!seen.acknowledge(SeqNumber(900)));
    }
}
