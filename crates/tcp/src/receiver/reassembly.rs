//! Segments that came out of order, and what is told of them.
//!
//! RFC 2018, section 4 (which blocks, in which order) and RFC 2883 (duplicates).

use crate::profile::DuplicateReach;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use outlast_wire::SeqNumber;
use outlast_wire::tcp::SackBlock;

/// Blocks that are remembered.
const BLOCKS: usize = 4;
/// Blocks that are likely to reach the peer when acknowledgements are sparse.
const BLOCKS_EXPECTED: usize = 2;

/// Stretches beyond RCV.NXT, apart and in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    stretches: Vec<(SeqNumber, SeqNumber)>,
    bytes: u32,
    /// The most recently changed first.
    //= RFC 2018, section 4
    recent: ArrayVec<SackBlock, BLOCKS>,
    duplicate: Option<SackBlock>,
    tell_early: bool,
}

/// `known` and `other`, if they touch; otherwise `known`, as one block cannot tell of both.
fn extended(
    known: Option<(SeqNumber, SeqNumber)>,
    other: (SeqNumber, SeqNumber),
) -> (SeqNumber, SeqNumber) {
    match known {
        None => other,
        Some((left, right)) if !other.0.after(right) && !left.after(other.1) => {
            (left.min(other.0), right.max(other.1))
        }
        Some(known) => known,
    }
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds `left..right`, which begins behind `rcv_nxt`. Returns what of it was there already, up to
    /// the first gap.
    pub(crate) fn insert(
        &mut self,
        left: SeqNumber,
        right: SeqNumber,
        rcv_nxt: SeqNumber,
    ) -> Option<(SeqNumber, SeqNumber)> {
        let key = |seq: SeqNumber| seq.0.wrapping_sub(rcv_nxt.0);
        let first = self
            .stretches
            .partition_point(|&(_, end)| key(end) < key(left));
        let mut last = first;
        let (mut from, mut to) = (left, right);
        let mut overlap: Option<(SeqNumber, SeqNumber)> = None;
        while let Some(&(start, end)) = self.stretches.get(last) {
            if key(start) > key(right) {
                break;
            }
            let (common_left, common_right) = (start.max(left), end.min(right));
            if common_left.before(common_right) {
                overlap = Some(extended(overlap, (common_left, common_right)));
            }
            from = from.min(start);
            to = to.max(end);
            self.bytes -= end.distance_from(start).unsigned_abs();
            last += 1;
        }
        self.bytes += to.distance_from(from).unsigned_abs();
        if first < last {
            self.stretches[first] = (from, to);
            self.stretches.drain(first + 1..last);
        } else {
            self.stretches.insert(first, (from, to));
        }
        self.remember(left, right);
        overlap
    }

    /// Puts the block that now holds `left..right` first.
    fn remember(&mut self, left: SeqNumber, right: SeqNumber) {
        let touches = |block: &SackBlock| !left.after(block.right) && !block.left.after(right);
        let mut block = SackBlock { left, right };
        match self.recent.iter().position(touches) {
            Some(at) => self.tell_early |= at >= BLOCKS_EXPECTED,
            None => self.tell_early |= self.recent.len() >= BLOCKS_EXPECTED,
        }
        // Growing, it may come to touch others.
        while let Some(at) = self
            .recent
            .iter()
            .position(|other| !block.left.after(other.right) && !other.left.after(block.right))
        {
            let other = self.recent.remove(at);
            block.left = block.left.min(other.left);
            block.right = block.right.max(other.right);
        }
        if self.recent.is_full() {
            self.recent.pop();
        }
        self.recent.insert(0, block);
    }

    /// Takes out what has become in order at `rcv_nxt`. Returns the new RCV.NXT and what had
    /// come twice, as far as `reach` says.
    pub(crate) fn join(
        &mut self,
        rcv_nxt: SeqNumber,
        reach: DuplicateReach,
    ) -> (SeqNumber, Option<(SeqNumber, SeqNumber)>) {
        let mut next = rcv_nxt;
        let mut overlap: Option<(SeqNumber, SeqNumber)> = None;
        let mut joined = 0;
        for &(start, end) in &self.stretches {
            if start.after(next) {
                break;
            }
            if start.before(rcv_nxt) {
                overlap = Some(match reach {
                    DuplicateReach::FirstStretch => extended(overlap, (start, end.min(rcv_nxt))),
                    DuplicateReach::ToTheEnd => overlap.unwrap_or((start, rcv_nxt)),
                });
            }
            next = next.max(end);
            self.bytes -= end.distance_from(start).unsigned_abs();
            joined += 1;
        }
        self.stretches.drain(..joined);
        if self.stretches.is_empty() {
            self.recent.clear();
        } else {
            self.recent.retain(|block| block.left.after(next));
        }
        (next, overlap)
    }

    /// Extends the duplicate to be told by one that came along with it, if they touch.
    pub(crate) fn extend_duplicate(&mut self, left: SeqNumber, right: SeqNumber) {
        let known = self.duplicate.map(|known| (known.left, known.right));
        let (left, right) = extended(known, (left, right));
        self.duplicate = Some(SackBlock { left, right });
    }

    //= RFC 2883, section 4
    pub(crate) fn note_duplicate(&mut self, left: SeqNumber, right: SeqNumber) {
        self.duplicate = Some(match self.duplicate {
            Some(known) if !left.after(known.right) && !known.left.after(right) => SackBlock {
                left: known.left.min(left),
                right: known.right.max(right),
            },
            _ => SackBlock { left, right },
        });
    }

    /// Whether there are more blocks than sparse acknowledgements could tell of.
    pub(crate) fn take_early(&mut self) -> bool {
        core::mem::take(&mut self.tell_early)
    }

    pub(crate) fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.recent.is_empty()
    }

    /// The blocks to tell, a duplicate first, which is told once.
    pub(crate) fn take_blocks(&mut self, most: usize) -> ArrayVec<SackBlock, 4> {
        let duplicate = self.duplicate.take();
        duplicate
            .into_iter()
            .chain(self.recent.iter().copied())
            .take(most.min(4))
            .collect()
    }

    /// Right edge of the highest block.
    pub(crate) fn highest(&self) -> Option<SeqNumber> {
        self.stretches.last().map(|&(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DuplicateReach::FirstStretch;

    fn seq(n: u32) -> SeqNumber {
        SeqNumber(n)
    }

    fn blocks(reassembly: &mut Reassembly) -> Vec<(u32, u32)> {
        let blocks = reassembly.take_blocks(4);
        blocks.iter().map(|b| (b.left.0, b.right.0)).collect()
    }

    #[test]
    fn the_most_recent_block_leads() {
        //= RFC 2018, section 4
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.insert(seq(200), seq(300), seq(0)), None);
        assert_eq!(reassembly.insert(seq(400), seq(500), seq(0)), None);
        assert_eq!(blocks(&mut reassembly), [(400, 500), (200, 300)]);
        assert_eq!(reassembly.insert(seq(300), seq(350), seq(0)), None);
        assert_eq!(blocks(&mut reassembly), [(200, 350), (400, 500)]);
        assert_eq!(reassembly.bytes(), 250);
        assert_eq!(reassembly.join(seq(200), FirstStretch), (seq(350), None));
        assert_eq!(blocks(&mut reassembly), [(400, 500)]);
    }

    #[test]
    fn a_filled_hole_merges_blocks() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(seq(200), seq(300), seq(0));
        reassembly.insert(seq(400), seq(500), seq(0));
        reassembly.insert(seq(300), seq(400), seq(0));
        assert_eq!(blocks(&mut reassembly), [(200, 500)]);
        assert_eq!(reassembly.bytes(), 300);
    }

    #[test]
    fn what_came_twice_is_told_once_and_first() {
        //= RFC 2883, section 4
        let mut reassembly = Reassembly::default();
        reassembly.insert(seq(200), seq(300), seq(0));
        let twice = reassembly.insert(seq(250), seq(350), seq(0));
        assert_eq!(twice, Some((seq(250), seq(300))));
        reassembly.note_duplicate(seq(250), seq(300));
        assert_eq!(blocks(&mut reassembly), [(250, 300), (200, 350)]);
        assert_eq!(blocks(&mut reassembly), [(200, 350)]);
    }

    #[test]
    fn numbers_may_wrap() {
        let mut reassembly = Reassembly::default();
        let rcv_nxt = seq(u32::MAX - 100);
        reassembly.insert(seq(50), seq(60), rcv_nxt);
        reassembly.insert(seq(u32::MAX - 50), seq(10), rcv_nxt);
        assert_eq!(reassembly.bytes(), 10 + 61);
        assert_eq!(reassembly.join(seq(u32::MAX - 50), FirstStretch).0, seq(10));
        assert_eq!(reassembly.highest(), Some(seq(60)));
    }
}
