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
}

impl Seen {
    /// Notes a packet with the numbers from `seq` to `end`.
    #[inline]
    pub(crate) fn add(&mut self, seq: SeqNumber, end: SeqNumber) {
        let Some(next) = self.next else {
            // A probe of one who keeps the connection alive is before what is expected.
            self.next = Some(if seq == end { seq + 1 } else { end });
            return;
        };
        if seq.at_or_before(next) {
            if end.after(next) {
                self.advance(end);
            }
        } else if seq != end {
            self.insert(seq, end);
        }
    }

    /// Notes that all before `ack` has arrived; true if the capture lacks some of it.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) -> bool {
        let is_lacking = self.next.is_some_and(|next| ack.after(next));
        if is_lacking {
            self.advance(ack);
        }
        is_lacking
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
            let (_, until) = self.beyond.remove(0);
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
        assert!(!seen.acknowledge(SeqNumber(900)));
    }
}
