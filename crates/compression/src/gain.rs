//! How much faster the link is than its rate, as it carries fewer bytes.

use crate::codec::LARGEST_RATIO;
use outlast_base::units::BitRate;

/// The weight of the newest packet is one part in so many.
const MEMORY: u64 = 64;
/// Changes of the rate by less than one part in so many are not told.
const STEP: u64 = 16;
/// The gain that is believed at most.
const MOST: u64 = LARGEST_RATIO as u64;

/// Bytes before and after compression, of the last packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain {
    rate: Option<BitRate>,
    before: u64,
    after: u64,
    told: u64,
}

impl Gain {
    pub(crate) const fn new(rate: Option<BitRate>) -> Self {
        Self {
            rate,
            before: 0,
            after: 0,
            told: 0,
        }
    }

    /// A packet of `before` bytes crosses as `after` bytes.
    pub(crate) const fn note(&mut self, before: u32, after: u32) {
        // In 256ths of a byte, so that what is small does not round to nothing.
        self.before = self.before - self.before / MEMORY + ((before as u64) << 8);
        self.after = self.after - self.after / MEMORY + ((after as u64) << 8);
    }

    pub(crate) fn poll_rate(&mut self) -> Option<BitRate> {
        let rate = self.rate?.bits_per_second();
        let gain = |of: u64| of.saturating_mul(self.before) / self.after.max(1);
        let now = gain(rate).clamp(rate, rate.saturating_mul(MOST));
        let told = if self.told == 0 { rate } else { self.told };
        if self.after == 0 || now.abs_diff(told) < told / STEP {
            return None;
        }
        self.told = now;
        BitRate::from_bits_per_second(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_carries_half_of_the_bytes_is_twice_as_fast() {
        let rate = BitRate::from_bits_per_second(32_000);
        let mut gain = Gain::new(rate);
        gain.note(1_500, 1_500);
        assert_eq!(gain.poll_rate(), None);
        let mut last = None;
        for _ in 0..1_000 {
            gain.note(1_500, 750);
            last = gain.poll_rate().or(last);
        }
        let last = last.expect("it has changed").bits_per_second();
        assert!((60_000..=64_000).contains(&last), "{last}");
        // What does not compress any more, and small packets, slow the link to its rate and no further.
        let mut last = None;
        for _ in 0..1_000 {
            gain.note(40, 40);
            last = gain.poll_rate().or(last);
        }
        let last = last.expect("it has changed").bits_per_second();
        assert!((32_000..=34_500).contains(&last), "{last}");
    }
}
