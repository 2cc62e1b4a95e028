//! Whether the machine was suspended: an outage of all its links at once.
//!
//! While the machine sleeps neither its clock for deadlines nor TCP's timers go on, and no indicator
//! says that anything was away: the carrier may be there before and after.

use outlast_base::time::Duration;

/// A suspension that is shorter is none: a retransmission timeout is not shorter.
const SHORTEST: Duration = Duration::from_millis(200);

/// How long the machine was suspended, as it was last known.
#[derive(Debug)]
pub(super) struct Suspension {
    total: Duration,
}

impl Suspension {
    /// `total`: for how long it was suspended so far, since its start.
    pub(super) const fn new(total: Duration) -> Self {
        Self { total }
    }

    /// It is `total` by now; how long the machine was suspended meanwhile, if it was.
    pub(super) fn note(&mut self, total: Duration) -> Option<Duration> {
        let slept = total.saturating_sub(self.total);
        // Small differences are those between two readings of clocks, and do not add up.
        if slept < SHORTEST {
            return None;
        }
        self.total = total;
        Some(slept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_told_once_and_what_is_none_never() {
        let ms = Duration::from_millis;
        let mut suspension = Suspension::new(ms(5_000));
        assert_eq!(suspension.note(ms(5_000)), None);
        assert_eq!(suspension.note(ms(5_001)), None, "another reading");
        assert_eq!(suspension.note(ms(4_999)), None, "another reading");
        assert_eq!(suspension.note(ms(65_000)), Some(ms(60_000)));
        assert_eq!(suspension.note(ms(65_000)), None, "it was told");
        assert_eq!(suspension.note(ms(66_000)), Some(ms(1_000)));
    }
}
