//! How much the receiving application reads after the link is back.

use super::trial::{BYTES, DELAY, RATE_MBIT_PER_S};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_scenario::Framing;

/// How long it is watched after link-up, at most.
const FIRST_SECONDS: Duration = Duration::from_secs(5);

/// What was read since link-up, look by look.
#[derive(Clone, Debug)]
pub(super) struct Uptake {
    up: Instant,
    before: u64,
    half_second: Option<Instant>,
    /// The last look in the first seconds, or their end, and what had been read by then.
    last: (Instant, u64),
    /// All of the payload had been read by the last look.
    is_whole: bool,
}

impl Uptake {
    /// The link came back at `up`, when `before` bytes had been read.
    pub(super) fn new(up: Instant, before: u64) -> Self {
        Self {
            up,
            before,
            half_second: None,
            last: (up, before),
            is_whole: false,
        }
    }

    /// `read` bytes had been read at `now`.
    pub(super) fn note(&mut self, now: Instant, read: u64) {
        let enough = rate().bytes_in(Duration::from_millis(500)).as_u64();
        if read >= self.before + enough && self.half_second.is_none() {
            self.half_second = Some(now);
        }
        self.is_whole |= read >= BYTES;
        self.last = match now.since(self.up) <= FIRST_SECONDS {
            true => (now, read),
            false => (self.up + FIRST_SECONDS, self.last.1),
        };
    }

    /// Whether nothing more is to be seen after `now`.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let has_both = now.since(self.up) > FIRST_SECONDS && self.half_second.is_some();
        self.is_whole || has_both
    }

    /// From link-up until as much had been read as the link carries in half a second, in seconds.
    pub(super) fn half_second_s(&self) -> Option<f64> {
        let at = self.half_second?;
        Some(at.since(self.up).as_secs_f64())
    }

    /// The share of the link that was used in the first five seconds, or up to the last look before the
    /// program ended, the propagation delay left out.
    pub(super) fn share(&self, framing: Framing) -> Option<f64> {
        let (last, read) = self.last;
        let time = last.since(self.up).saturating_sub(DELAY);
        let carried = rate().bytes_in(time).as_u64();
        let wire = framing.wire_bytes(ByteCount(read - self.before)).as_u64();
        (carried > 0).then(|| wire as f64 / carried as f64)
    }
}

fn rate() -> BitRate {
    BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
        .expect("a constant above zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_scenario::IpVersion;

    #[test]
    fn five_seconds_count_and_no_more() {
        let at = Instant::from_millis;
        let mut uptake = Uptake::new(at(10_000), 1_000_000);
        uptake.note(at(10_100), 1_100_000);
        assert_eq!(uptake.half_second_s(), None);
        uptake.note(at(10_600), 1_625_000);
        assert_eq!(uptake.half_second_s(), Some(0.6));
        uptake.note(at(15_000), 4_000_000);
        uptake.note(at(15_001), 5_900_000);
        assert!(uptake.is_over(at(15_001)));
        let mut late = Uptake::new(at(0), 0);
        late.note(at(6_000), 0);
        assert!(
            !late.is_over(at(6_000)),
            "half a second's worth is still to come"
        );
        let framing = Framing {
            mtu: 1_500,
            ip: IpVersion::V4,
            timestamps: true,
            added: 0,
        };
        let share = uptake.share(framing).expect("time has passed");
        // Three megabytes in 4.98 s of 10 Mbit/s.
        assert!((0.498..0.5).contains(&share), "{share}");
        assert_eq!(late.share(framing), Some(0.0));
    }
}
