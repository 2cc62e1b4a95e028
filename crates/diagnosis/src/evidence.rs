//! Whether plain loss explains that packets remain unanswered.
//!
//! Packets that are lost one by one, each with the probability that the connection shows, hardly
//! ever come to a long run. A run is evidence of an outage if fewer than one in a hundred such
//! connections would show it.

/// A connection without a single loss may yet have lost this share of its packets.
const LEAST_LOSS: f64 = 0.01;
/// What a connection shows of its loss is taken so many times: answers are lost, too.
const CAUTION: f64 = 2.0;
/// No connection lives with more; one that repeats all that it had sent shows it nonetheless.
const MOST_LOSS: f64 = 0.4;
/// A run that so many connections would show by chance is evidence.
const BY_CHANCE: f64 = 0.01;

/// Whether `run` packets in a row are more than chance would lose of `sent`, when `resent` of them
/// were sent again.
pub(crate) fn is_more_than_loss(run: u32, sent: u64, resent: u64) -> bool {
    let sent = sent.max(1) as f64;
    let loss = (CAUTION * resent as f64 / sent).clamp(LEAST_LOSS, MOST_LOSS);
    let mut expected = sent.max(50.0);
    for _ in 0..run {
        expected *= loss;
        if expected < BY_CHANCE {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossy_connection_needs_a_longer_run() {
        assert!(!is_more_than_loss(1, 10, 0));
        assert!(is_more_than_loss(3, 1_000, 0));
        assert!(!is_more_than_loss(3, 1_000, 50));
        assert!(is_more_than_loss(6, 1_000, 50));
        assert!(!is_more_than_loss(0, 0, 0));
    }
}
