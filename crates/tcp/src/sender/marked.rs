//! Which stretches of the queue are SACKed from end to end.
//!
//! A receiver repeats its blocks, each a little longer than before. What the previous segment's blocks
//! have marked is not looked at again; Linux does the same (`recv_sack_cache`).

use arrayvec::ArrayVec;
use outlast_wire::SeqNumber;
use outlast_wire::tcp::SackBlock;

/// The blocks of the latest segment that had any, duplicates left out: every segment that lies in
/// one of them is marked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked(ArrayVec<SackBlock, 4>);

impl Marked {
    /// From where on segments in `block` may not be marked yet.
    pub(crate) fn end_within(&self, block: SackBlock) -> SeqNumber {
        let known = self.0.iter().find(|known| known.left == block.left);
        known.map_or(block.left, |known| known.right.min(block.right))
    }

    /// All in `block` is marked.
    pub(crate) fn push(&mut self, block: SackBlock) {
        // A header holds four.
        let _ = self.0.try_push(block);
    }

    /// Marks are gone, or segments were cut.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock {
            left: SeqNumber(left),
            right: SeqNumber(right),
        }
    }

    #[test]
    fn a_block_that_grew_is_looked_at_where_it_grew() {
        let mut marked = Marked::default();
        marked.push(block(100, 300));
        assert_eq!(marked.end_within(block(100, 400)), SeqNumber(300));
        assert_eq!(marked.end_within(block(100, 200)), SeqNumber(200));
        assert_eq!(marked.end_within(block(150, 400)), SeqNumber(150));
        marked.forget();
        assert_eq!(marked.end_within(block(100, 400)), SeqNumber(100));
    }
}
