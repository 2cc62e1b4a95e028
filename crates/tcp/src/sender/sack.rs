//! SACK blocks mark the scoreboard.
//!
//! RFC 2018, section 5; RFC 2883 and RFC 3708 (duplicates); RFC 6675, section 5 (which blocks are
//! believed). The marks and counters follow Linux (`tcp_sacktag_write_queue`).

use super::Phase;
use super::acknowledge::Ack;
use super::queue::{Marks, Segment};
use crate::endpoint::Endpoint;
use arrayvec::ArrayVec;
use core::mem;
use outlast_base::time::Instant;
use outlast_wire::tcp::SackBlock;
use outlast_wire::{SeqNumber, TcpHeader};

/// Most reordering that is believed, in segments.
const MAX_REORDERING: u32 = 300;

impl Endpoint {
    pub(crate) fn take_sacks(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        prior_una: SeqNumber,
        state: &mut Ack,
    ) {
        let blocks = &header.options.sack;
        if self.snd.queue.counts.sacked == 0 {
            self.snd.highest_sack = self.snd.snd_una;
            self.snd.queue.marked.forget();
        }
        let duplicate = self.find_duplicate(header, prior_una, state);
        if self.snd.queue.is_empty() {
            return;
        }
        let mut valid: ArrayVec<(SackBlock, bool), 4> = ArrayVec::new();
        for (n, block) in blocks.iter().enumerate() {
            let is_duplicate = n == 0 && duplicate;
            if self.is_credible(block, is_duplicate) && block.right.after(prior_una) {
                valid.push((*block, is_duplicate));
            }
        }
        let mut lowest = self.snd.snd_nxt;
        let before = mem::take(&mut self.snd.queue.marked);
        for (block, is_duplicate) in valid {
            if is_duplicate {
                self.mark_block(now, block, block.left, true, &mut lowest, state);
            } else {
                let from = before.end_within(block);
                self.mark_block(now, block, from, false, &mut lowest, state);
                self.snd.queue.marked.push(block);
            }
        }
        if self.snd.phase != Phase::Loss || self.snd.undo_marker.is_some() {
            self.note_reordering(lowest);
        }
    }

    /// Whether the first block tells of a duplicate.
    //= RFC 2883, section 4
    fn find_duplicate(
        &mut self,
        header: &TcpHeader,
        prior_una: SeqNumber,
        state: &mut Ack,
    ) -> bool {
        let blocks = &header.options.sack;
        let Some(first) = blocks.first() else {
            return false;
        };
        let below = first.left.before(header.ack);
        let within = blocks.get(1).is_some_and(|second| {
            first.right.at_or_before(second.right) && first.left.at_or_after(second.left)
        });
        if !below && !within {
            return false;
        }
        let segments = self.count_duplicate(first, state);
        if segments == 0 {
            return false;
        }
        //= RFC 2883, section 5
        if let (Some(marker), Some(left)) = (self.snd.undo_marker, self.snd.undo_retransmissions)
            && left > 0
            && !first.right.after(prior_una)
            && first.right.after(marker)
        {
            //= RFC 3708, section 2
            self.snd.undo_retransmissions = Some(left.saturating_sub(segments));
        }
        true
    }

    /// Segments that the duplicate is of; none if it cannot be of ours.
    fn count_duplicate(&mut self, block: &SackBlock, state: &mut Ack) -> u32 {
        let len = block.right.distance_from(block.left);
        if len <= 0 || len.unsigned_abs() > self.snd.max_window {
            return 0;
        }
        let segments = len.unsigned_abs().div_ceil(self.snd.mss.max(1));
        if segments == 1 && self.snd.tlp_high_seq == Some(block.right) {
            state.dsack_of_probe = true;
        }
        self.snd.dsacks += segments;
        if self.snd.dsacks > self.snd.retransmissions {
            // The network duplicates.
            return 0;
        }
        if self.snd.reordering_seen && !state.dsack_of_probe {
            self.snd.rack.dsack_seen = true;
        }
        state.dsack = true;
        self.snd.delivered = self.snd.delivered.wrapping_add(segments);
        segments
    }

    //= RFC 6675, section 5: a block beyond what is outstanding is not believed
    fn is_credible(&self, block: &SackBlock, is_duplicate: bool) -> bool {
        if block.right.after(self.snd.snd_nxt) || !block.left.before(block.right) {
            return false;
        }
        if block.left.after(self.snd.snd_una) {
            return true;
        }
        let Some(marker) = self.snd.undo_marker.filter(|_| is_duplicate) else {
            return false;
        };
        if block.right.after(self.snd.snd_una) {
            return false;
        }
        block.left.at_or_after(marker)
            || (block.right.after(marker)
                && block.left.at_or_after(block.right - self.snd.max_window))
    }

    /// Marks the segments in `block` that begin at `from` or behind it.
    fn mark_block(
        &mut self,
        now: Instant,
        block: SackBlock,
        from: SeqNumber,
        is_duplicate: bool,
        lowest: &mut SeqNumber,
        state: &mut Ack,
    ) {
        let mut index = self.snd.queue.search(from);
        // A block that begins within a segment says nothing of that segment.
        while let Some(segment) = self.snd.queue.at(index) {
            if segment.seq.at_or_after(block.right) {
                break;
            }
            let inside =
                segment.seq.at_or_after(block.left) && segment.end().at_or_before(block.right);
            // Most of a long block is known already.
            let known = segment.marks.has(Marks::SACKED) && !is_duplicate;
            if inside && !known {
                let segment = *segment;
                self.mark_segment(now, index, &segment, is_duplicate, lowest, state);
            }
            index += 1;
        }
    }

    fn mark_segment(
        &mut self,
        now: Instant,
        index: usize,
        segment: &Segment,
        is_duplicate: bool,
        lowest: &mut SeqNumber,
        state: &mut Ack,
    ) {
        let mut marks = segment.marks;
        if is_duplicate && marks.is_retransmission() {
            if let (Some(marker), Some(left)) =
                (self.snd.undo_marker, self.snd.undo_retransmissions)
                && left > 0
                && segment.end().after(marker)
            {
                self.snd.undo_retransmissions = Some(left - 1);
            }
            if marks.has(Marks::SACKED) {
                *lowest = lowest.min(segment.seq);
            }
        }
        if !segment.end().after(self.snd.snd_una) {
            return;
        }
        let newly = !marks.has(Marks::SACKED);
        if newly {
            self.advance_rack(now, segment);
            marks = self.mark_sacked(segment, lowest, state);
        }
        if is_duplicate && marks.has(Marks::RETRANSMITTED) {
            marks = marks.without(Marks::RETRANSMITTED);
            self.snd.queue.counts.retransmitted -= 1;
        }
        if newly {
            self.sample_rate(segment, state);
            self.snd.queue.unlist(index);
            self.snd.highest_sack = self.snd.highest_sack.max(segment.end());
        }
        if let Some(stored) = self.snd.queue.at_mut(index) {
            if newly {
                // Judged by once.
                stored.delivered_at = Instant::ZERO;
            }
            stored.marks = marks.listed_as(stored.marks);
        }
    }

    /// Counts a segment as SACKed; returns its new marks.
    fn mark_sacked(&mut self, segment: &Segment, lowest: &mut SeqNumber, state: &mut Ack) -> Marks {
        let mut marks = segment.marks;
        let lost = marks.has(Marks::LOST);
        if marks.has(Marks::RETRANSMITTED) {
            // If it was not thought lost, its retransmission is still under way.
            if lost {
                marks = marks.without(Marks::RETRANSMITTED);
                self.snd.queue.counts.retransmitted -= 1;
            }
        } else if !marks.is_retransmission() {
            if segment.seq.before(self.snd.highest_sack) {
                *lowest = lowest.min(segment.seq);
            }
            state.original_arrived |= !segment.end().after(self.snd.high_seq);
            state.first_sacked_at.get_or_insert(segment.sent_at);
            state.last_sacked_at = Some(segment.sent_at);
        }
        if lost {
            marks = marks.without(Marks::LOST);
            self.snd.queue.counts.lost -= 1;
        }
        state.newly_sacked = true;
        self.snd.queue.counts.sacked += 1;
        self.snd.delivered = self.snd.delivered.wrapping_add(1);
        marks.with(Marks::SACKED)
    }

    /// Data from `lowest` on came later than data sent after it.
    //= RFC 8985, section 6.2, step 3
    pub(crate) fn note_reordering(&mut self, lowest: SeqNumber) {
        let mss = self.snd.mss.max(1);
        let highest = match self.snd.queue.counts.sacked {
            0 => self.snd.snd_una,
            _ => self.snd.highest_sack,
        };
        let distance = highest.distance_from(lowest);
        if distance <= 0 {
            return;
        }
        let distance = distance.unsigned_abs();
        if distance > self.snd.reordering * mss {
            self.snd.reordering = distance.div_ceil(mss).min(MAX_REORDERING);
        }
        self.snd.reordering_seen = true;
    }
}
