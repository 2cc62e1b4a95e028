//! Whether plain loss explains that packets remain unanswered.
//!
//! Packets that are lost one by one, each with the probability that the connection shows, hardly
//! ever come to a long run. A run is evidence of an outage if fewer than three in a thousand
//! such connections would show it.

/// A connection without a single loss may yet have lost this share of its packets.
const LEAST_LOSS: f64 = 0.01;
/// What a connection shows of its loss is taken so many times: answers are lost, too.
const CAUTION: f64 = 3.0;
/// So many packets are taken to have gone before the first.
const YOUNG: u64 = 20;
/// No connection lives with more; one that repeats all that it had sent shows it nonetheless.
const MOST_LOSS: f64 = 0.4;
/// A run that so many connections would show by chance is evidence.
const BY_CHANCE: f64 = 0.003;

/// Whether `run` packets in a row are more than chance would lose of `sent`, when so many `losses` were
/// seen.
pub(crate) fn is_more_than_loss(run: u32, sent: u64, losses: u64) -> bool {
    // As if one loss had been seen before the first packet: little is known of a young connection.
    let seen = (losses + 1) as f64 / (sent + YOUNG) as f64;
    let loss = (CAUTION * seen).clamp(LEAST_LOSS, MOST_LOSS);
    let mut expected = (sent + YOUNG) as f64;
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
        assert!(is_more_than_loss(7, 1_000, 50));
        assert!(!is_more_than_loss(0, 0, 0));
    }
}
