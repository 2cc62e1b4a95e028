//! Round-trip time and delivery rate across the link, measured on passing segments.

use core::num::NonZeroU64;
use outlast_base::time::{Duration, Instant, saturating_nanos};
use outlast_wire::SeqNumber;

/// Round-trip time from this end of the link to the far host and back, as one flow shows it.
///
/// One segment is timed at once and a retransmitted one never (Karn), so a sample costs nothing
/// per packet beyond a comparison. Smoothing is that of RFC 6298, section 2. Each sample is one of
/// the delivery rate, too: what was acknowledged while the segment was under way
/// (draft-cheng-iccrg-delivery-rate-estimation, section 3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkRtt {
    timed: Option<Timed>,
    /// In nanoseconds.
    smoothed: Option<NonZeroU64>,
    /// In nanoseconds.
    variation: u64,
    delivery: Option<Delivery>,
}

/// A segment that awaits its acknowledgement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timed {
    /// The number behind the segment.
    pub end: SeqNumber,
    /// When it was sent.
    pub sent_at: Instant,
    /// What the far host had acknowledged by then.
    pub acked: SeqNumber,
}

/// What one round trip has delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// Bytes that were acknowledged while a segment and its acknowledgement were under way, as a rate.
    pub bytes_per_second: NonZeroU64,
    /// When the acknowledgement came.
    pub at: Instant,
}

impl LinkRtt {
    /// Assumed before the first sample: the upper end of what access links show.
    pub const INITIAL: Duration = Duration::from_millis(200);
    /// No answer is waited for longer, whatever was measured: an acknowledgement that came late once
    /// may have been that of an outage (RFC 6298, section 2.5, bounds a timeout by no less).
    pub const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

    /// What whoever tracked the flow before has measured.
    #[must_use]
    pub const fn of_measurements(
        timed: Option<Timed>,
        smoothed: Option<Duration>,
        variation: Duration,
        delivery: Option<Delivery>,
    ) -> Self {
        Self {
            timed,
            smoothed: match smoothed {
                Some(smoothed) => Some(at_least_one(saturating_nanos(smoothed))),
                None => None,
            },
            variation: saturating_nanos(variation),
            delivery,
        }
    }

    /// What the newest timed round trip has delivered.
    #[must_use]
    pub const fn delivery(&self) -> Option<Delivery> {
        self.delivery
    }

    /// The smoothed round-trip time, or [`Self::INITIAL`]; at most [`Self::LONGEST_PATIENCE`].
    #[must_use]
    pub fn smoothed(&self) -> Duration {
        self.measured()
            .map_or(Self::INITIAL, |one| one.min(Self::LONGEST_PATIENCE))
    }

    /// The smoothed round-trip time, once there was a sample.
    #[must_use]
    pub const fn measured(&self) -> Option<Duration> {
        match self.smoothed {
            Some(nanos) => Some(Duration::from_nanos(nanos.get())),
            None => None,
        }
    }

    /// A time within which an answer should have come: smoothed plus four variations, at most
    /// [`Self::LONGEST_PATIENCE`].
    #[must_use]
    pub fn patience(&self) -> Duration {
        let variation = Duration::from_nanos(self.variation.saturating_mul(4));
        (self.smoothed() + variation).min(Self::LONGEST_PATIENCE)
    }

    /// New data up to `end` went towards the link; the far host had acknowledged `acked`.
    pub(crate) fn sent(&mut self, now: Instant, end: SeqNumber, acked: SeqNumber) {
        if self.timed.is_none() {
            self.timed = Some(Timed {
                end,
                sent_at: now,
                acked,
            });
        }
    }

    /// The timed segment may have been sent twice, or the link was down: no sample from it.
    pub(crate) fn discard(&mut self) {
        self.timed = None;
    }

    /// Forgets the timed segment if it is the one before `end`, which has not gone yet.
    pub(crate) fn discard_timed(&mut self, end: SeqNumber) {
        self.timed = self.timed.filter(|timed| timed.end != end);
    }

    /// The far host has acknowledged everything before `ack`.
    pub(crate) fn acknowledged(&mut self, now: Instant, ack: SeqNumber) {
        let Some(timed) = self.timed else {
            return;
        };
        if ack.before(timed.end) {
            return;
        }
        self.timed = None;
        let sample = now.nanos_since(timed.sent_at);
        let bytes = ack.distance_from(timed.acked).max(0).unsigned_abs();
        let rate = u64::from(bytes) * 1_000_000_000 / sample.max(1);
        let delivery = NonZeroU64::new(rate).map(|bytes_per_second| Delivery {
            bytes_per_second,
            at: now,
        });
        self.delivery = delivery.or(self.delivery);
        match self.smoothed {
            None => {
                self.smoothed = Some(at_least_one(sample));
                self.variation = sample / 2;
            }
            Some(smoothed) => {
                let smoothed = smoothed.get();
                self.variation = (3 * self.variation + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some(at_least_one((7 * smoothed + sample) / 8));
            }
        }
    }
}

const fn at_least_one(nanos: u64) -> NonZeroU64 {
    match NonZeroU64::new(nanos) {
        Some(nanos) => nanos,
        None => NonZeroU64::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_is_timed_until_its_acknowledgement() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10), SeqNumber(0));
        rtt.sent(Instant::from_millis(130), SeqNumber(20), SeqNumber(0));
        rtt.acknowledged(Instant::from_millis(140), SeqNumber(9));
        assert_eq!(rtt.smoothed(), LinkRtt::INITIAL);
        rtt.acknowledged(Instant::from_millis(150), SeqNumber(20));
        assert_eq!(rtt.smoothed(), Duration::from_millis(50));
    }

    #[test]
    fn patience_ends_however_late_an_acknowledgement_came() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10), SeqNumber(0));
        rtt.acknowledged(Instant::from_millis(98_100), SeqNumber(10));
        assert_eq!(rtt.measured(), Some(Duration::from_secs(98)));
        assert_eq!(rtt.patience(), LinkRtt::LONGEST_PATIENCE);
    }

    #[test]
    fn a_round_trip_shows_what_it_has_delivered() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(900), SeqNumber(400));
        rtt.acknowledged(Instant::from_millis(120), SeqNumber(800));
        rtt.acknowledged(Instant::from_millis(150), SeqNumber(1_400));
        let delivery = rtt.delivery().expect("a sample");
        assert_eq!(delivery.bytes_per_second.get(), 20_000);
        assert_eq!(delivery.at, Instant::from_millis(150));
    }

    #[test]
    fn a_discarded_segment_gives_no_sample() {
        let mut rtt = LinkRtt::default();
        rtt.sent(Instant::from_millis(100), SeqNumber(10), SeqNumber(0));
        rtt.discard();
        rtt.acknowledged(Instant::from_millis(9_000), SeqNumber(10));
        assert_eq!(rtt.smoothed(), LinkRtt::INITIAL);
    }
}
