//! The round-trip time from the gateway across the link and back, measured on passing segments.

use crate::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// Round-trip time from this end of the link to the far host and back, as one flow shows it.
///
/// One segment is timed at once and a retransmitted one never (Karn), so a sample costs nothing
/// per packet beyond a comparison. Smoothing is that of RFC 6298, section 2.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkRtt {
    timed: Option<(SeqNumber, Instant)>,
    smoothed: Option<Duration>,
    variation: Duration,
}

impl LinkRtt {
    /// Assumed before the first sample: the upper end of what access links show.
    pub const INITIAL: Duration = Duration::from_millis(200);
    /// No answer is waited for longer, whatever was measured: an acknowledgement that came late once
    /// may have been that of an outage (RFC 6298, section 2.5, bounds a timeout by no less).
    pub const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

    /// What whoever tracked the flow before has measured: `timed` is the number behind the segment
    /// that awaits its acknowledgement, and when it was sent.
    #[must_use]
    pub const fn of_measurements(
        timed: Option<(SeqNumber, Instant)>,
        smoothed: Option<Duration>,
        variation: Duration,
    ) -> Self {
        Self {
            timed,
            smoothed,
            variation,
        }
    }

    /// The smoothed round-trip time, or [`Self::INITIAL`]; at most [`Self::LONGEST_PATIENCE`].
    #[must_use]
    pub fn smoothed(&self) -> Duration {
        self.smoothed
            .map_or(Self::INITIAL, |one| one.min(Self::LONGEST_PATIENCE))
    }

    /// The smoothed round-trip time, once there was a sample.
    #[must_use]
    pub const fn measured(&self) -> Option<Duration> {
        self.smoothed
    }

    /// A time within which an answer should have come: smoothed plus four variations, at most
    /// [`Self::LONGEST_PATIENCE`].
    #[must_use]
    pub fn patience(&self) -> Duration {
        (self.smoothed() + 4 * self.variation).min(Self::LONGEST_PATIENCE)
    }

    /// New data up to `end` went towards the link.
    pub(crate) fn sent(&mut self, now: Instant, end: SeqNumber) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    /// The timed segment may have been sent twice, or the link was down: no sample from it.
    pub(crate) fn discard(&mut self) {
        self.timed = None;
    }

    /// The far host has acknowledged everything before `ack`.
    pub(crate) fn acknowledged(&mut self, now: Instant, ack: SeqNumber) {
        let Some((end, sent_at)) = self.timed else {
            return;
        };
        if ack.before(end) {
            return;
        }
        self.timed = None;
        let sample = now.since(sent_at);
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some((7 * smoothed + sample) / 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_is_timed_until_its_acknowledgement() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10));
        rtt.sent(Instant::from_millis(130), SeqNumber(20));
        rtt.acknowledged(Instant::from_millis(140), SeqNumber(9));
        assert_eq!(rtt.smoothed(), LinkRtt::INITIAL);
        rtt.acknowledged(Instant::from_millis(150), SeqNumber(20));
        assert_eq!(rtt.smoothed(), Duration::from_millis(50));
    }

    #[test]
    fn patience_ends_however_late_an_acknowledgement_came() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10));
        rtt.acknowledged(Instant::from_millis(98_100), SeqNumber(10));
        assert_eq!(rtt.measured(), Some(Duration::from_secs(98)));
        assert_eq!(rtt.patience(), LinkRtt::LONGEST_PATIENCE);
    }

    #[test]
    fn a_discarded_segment_gives_no_sample() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10));
        rtt.discard();
        rtt.acknowledged(Instant::from_millis(9_000), SeqNumber(10));
        assert_eq!(rtt.smoothed(), LinkRtt::INITIAL);
    }
}
