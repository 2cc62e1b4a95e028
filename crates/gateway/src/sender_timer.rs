//! The retransmission timer of a sender whose link went away, as a model: when it would have sent again.
//!
//! The model is Linux's timer with its constants (RFC 6298, section 5; `TCP_RTO_MIN`, `TCP_RTO_MAX`): data was in flight when
//! the link went, the timer was started then, and each timeout doubles the next. It needs the outage's length and the round
//! trip. It leaves out tail loss probes, what the application sends meanwhile, and stacks with other constants: an estimate
//! for people, which says "about", and nothing that a mechanism may decide by.

use crate::tracking::LinkRtt;
use outlast_base::time::Duration;

/// The least variation that Linux adds to the round trip.
const SHORTEST_VARIATION: Duration = Duration::from_millis(200);
/// The longest pause between two transmissions.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Time from link-up until an acknowledgement of new bytes, had the sender waited for its own timer.
///
/// The link was `away` so long, and the sender's `round_trip` was this before, if it was measured.
#[must_use]
pub fn wait_after(away: Duration, round_trip: Option<Duration>) -> Duration {
    let round_trip = round_trip.unwrap_or(LinkRtt::INITIAL);
    let mut timeout = (round_trip + SHORTEST_VARIATION).min(LONGEST_TIMEOUT);
    let mut sent_at = timeout;
    while sent_at < away {
        timeout = (timeout * 2).min(LONGEST_TIMEOUT);
        sent_at += timeout;
    }
    sent_at - away + round_trip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_backs_off_through_the_outage() {
        let millis = Duration::from_millis;
        // Timeouts of 250, 500, 1000 … ms: sent at 0.25, 0.75, 1.75, 3.75, 7.75 s.
        for (away, wait) in [
            (0, 300),
            (250, 50),
            (251, 549),
            (5_000, 2_800),
            (7_750, 50),
            (7_751, 8_049),
        ] {
            assert_eq!(
                wait_after(millis(away), Some(millis(50))),
                millis(wait),
                "{away} ms"
            );
        }
    }

    #[test]
    fn no_pause_is_longer_than_two_minutes() {
        for hours in [1, 24, 24 * 365] {
            let away = Duration::from_secs(hours * 3_600);
            let wait = wait_after(away, None);
            assert!(wait <= LONGEST_TIMEOUT + LinkRtt::INITIAL, "{wait:?}");
        }
    }
}
