//! How often something may be sent: a few at once after a rest, then at a rate.

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
