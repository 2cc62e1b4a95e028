//! What is known of one connection's data towards the link.

use outlast_wire::SeqNumber;

/// Segments by which a flow is judged.
const SAMPLE: u32 = 16;
/// A flow compresses if its packets lose at least one byte in so many.
const LEAST_GAIN: u64 = 20;
/// Segments that go as they are after a flow was given up, at first and at most.
const PAUSE: u32 = 64;
const LONGEST_PAUSE: u32 = 4_096;

/// One connection, one way.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Behind the newest byte that went towards the link.
    highest: Option<SeqNumber>,
    /// Behind the oldest segment that went compressed only, and is not acknowledged.
    pub(crate) unproven: Option<SeqNumber>,
    /// Segments tried, bytes that they had, and bytes that they lost, since the flow was last judged.
    tried: u32,
    bytes: u64,
    saved: u64,
    /// Segments that go as they are before the next try.
    pause: u32,
    last_pause: u32,
}

impl Flow {
    /// Notes that a segment up to `end` goes towards the link; whether it went before.
    pub(crate) fn note_sent(&mut self, end: SeqNumber) -> bool {
        let is_repeated = self
            .highest
            .is_some_and(|highest| end.at_or_before(highest));
        if !is_repeated {
            self.highest = Some(end);
        }
        is_repeated
    }

    /// Whether the next segment is worth a try.
    pub(crate) const fn may_compress(&mut self) -> bool {
        if self.pause == 0 {
            return true;
        }
        self.pause -= 1;
        false
    }

    /// Notes what a try has saved of a packet of `length` bytes. Returns whether the flow is given up for a while.
    pub(crate) fn note_try(&mut self, length: u32, saved: u32) -> bool {
        self.tried += 1;
        self.bytes += u64::from(length);
        self.saved += u64::from(saved);
        if self.tried < SAMPLE {
            return false;
        }
        let is_worth_it = self.saved.saturating_mul(LEAST_GAIN) >= self.bytes;
        (self.tried, self.bytes, self.saved) = (0, 0, 0);
        self.last_pause = match (is_worth_it, self.last_pause) {
            (true, _) => 0,
            (false, 0) => PAUSE,
            (false, last) => (last * 2).min(LONGEST_PAUSE),
        };
        self.pause = self.last_pause;
        !is_worth_it
    }

    /// Notes how a segment up to `end` went.
    pub(crate) fn note_form(&mut self, end: SeqNumber, is_compressed: bool) {
        match (is_compressed, self.unproven) {
            (true, None) => self.unproven = Some(end),
            // Its acknowledgement may now be of the segment as it was.
            (false, Some(unproven)) if end.at_or_after(unproven) => self.unproven = None,
            _ => {}
        }
    }

    /// Notes an acknowledgement; whether it proves that compressed segments are restored.
    pub(crate) fn note_ack(&mut self, ack: SeqNumber) -> bool {
        let is_proof = self.unproven.is_some_and(|end| ack.at_or_after(end));
        if is_proof {
            self.unproven = None;
        }
        is_proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_does_not_compress_is_tried_ever_more_seldom() {
        let mut flow = Flow::default();
        let mut tries = 0;
        for _ in 0..100_000 {
            if flow.may_compress() {
                tries += 1;
                flow.note_try(1_500, 0);
            }
        }
        assert!((16..700).contains(&tries), "{tries}");
        // It begins to compress: what is left of the pause, and then every segment.
        while !flow.may_compress() {}
        for _ in 0..1_000 {
            assert!(!flow.note_try(1_500, 700));
            assert!(flow.may_compress());
        }
    }

    #[test]
    fn only_the_acknowledgement_of_what_went_compressed_alone_is_a_proof() {
        let mut flow = Flow::default();
        flow.note_form(SeqNumber(1_000), true);
        flow.note_form(SeqNumber(2_000), true);
        assert!(!flow.note_ack(SeqNumber(999)));
        assert!(flow.note_ack(SeqNumber(1_000)));
        flow.note_form(SeqNumber(3_000), true);
        flow.note_form(SeqNumber(3_000), false);
        assert!(!flow.note_ack(SeqNumber(3_000)));
    }
}
