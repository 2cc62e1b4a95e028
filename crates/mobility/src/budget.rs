//! Rates of what is sent: a few at once after a rest, then so many a second.

use core::net::{Ipv4Addr, Ipv6Addr};
use outlast_base::time::{Duration, Instant};

/// What may be sent now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    burst: u32,
    between: Duration,
    left: u32,
    filled_at: Instant,
}

impl Budget {
    /// A full one: `burst` at once, and one more in each `between`.
    pub(crate) const fn new(now: Instant, burst: u32, between: Duration) -> Self {
        Self {
            burst,
            between,
            left: burst,
            filled_at: now,
        }
    }

    fn fill(&mut self, now: Instant) {
        let more = now.since(self.filled_at).as_nanos() / self.between.as_nanos().max(1);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(more).min(self.burst);
        self.filled_at = match self.left == self.burst {
            true => now,
            false => self.filled_at + self.between * more,
        };
    }

    /// True if there is none to take.
    pub(crate) fn is_empty(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left == 0
    }

    /// Takes one, or tells when there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        if self.left == 0 {
            return Err(self.filled_at + self.between);
        }
        self.left -= 1;
        Ok(())
    }
}

/// Sources are counted in so many places; those of one place share what one source may have.
const PLACES: usize = 256;

/// Answers that anybody can ask for, with forged or recorded messages: bounded in all and for one source.
///
/// The sources are counted in a table of fixed size, in places that nobody outside can foresee. A table of
/// sources by name would grow with forged ones.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    in_all: Budget,
    per_source: u16,
    counted_since: Instant,
    counts: [u16; PLACES],
    seed: u64,
}

/// The receiver of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker(u64);

impl Asker {
    pub(crate) const fn v4(address: Ipv4Addr) -> Self {
        Self(address.to_bits() as u64)
    }

    pub(crate) const fn v6(address: Ipv6Addr) -> Self {
        let bits = address.to_bits();
        // The whole address: mobile nodes of one home network share the first half.
        let high = ((bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(high ^ bits as u64)
    }

    pub(crate) const fn node([a, b, c, d, e, f]: [u8; 6]) -> Self {
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

impl Answers {
    /// At most `per_second` answers in all, and `per_source` a second to one source; at least one each.
    pub(crate) fn new(now: Instant, per_second: u32, per_source: u32, seed: u64) -> Self {
        let per_second = per_second.max(1);
        Self {
            in_all: Budget::new(now, per_second, Duration::from_secs(1) / per_second),
            per_source: u16::try_from(per_source.max(1)).unwrap_or(u16::MAX),
            counted_since: now,
            counts: [0; PLACES],
            seed,
        }
    }

    /// Takes an answer to `asker`. Returns false if there is none left.
    pub(crate) fn take(&mut self, now: Instant, asker: Asker) -> bool {
        if now.since(self.counted_since) >= Duration::from_secs(1) {
            self.counted_since = now;
            self.counts.fill(0);
        }
        let mixed = (asker.0 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32) ^ self.seed).wrapping_mul(0xd6e8_feb8_6659_fd93);
        // The highest bits are mixed best; there are fewer places than 2^8 + 1.
        let count = &mut self.counts[(mixed >> 56) as usize % PLACES];
        if *count >= self.per_source || self.in_all.take(now).is_err() {
            return false;
        }
        *count += 1;
        true
    }
}
