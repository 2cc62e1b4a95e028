//! How many actions a second: a token bucket.
//!
//! One token is one action on one connection. The bucket starts full, so that the connections of
//! a laptop restart at once; thousands of connections of a server spread over the time that the
//! rate gives (Schütz and others 2005, section 3.3.2: "a burst of retransmissions").

use outlast_base::time::{Duration, Instant};

/// Allows so many actions a second, and so many at once.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Time for one token.
    interval: Duration,
    burst: u32,
    tokens: u32,
    /// When the tokens were last counted; with `tokens` short of `burst`.
    since: Instant,
}

impl Budget {
    /// A full bucket of `burst` tokens, which `per_second` refill. Zero counts as one.
    #[must_use]
    pub fn new(now: Instant, per_second: u32, burst: u32) -> Self {
        let burst = burst.max(1);
        Self {
            interval: Duration::from_secs(1) / per_second.max(1),
            burst,
            tokens: burst,
            since: now,
        }
    }

    /// Another rate and another size from now on; there are no more tokens than before.
    pub fn set_rate(&mut self, now: Instant, per_second: u32, burst: u32) {
        self.refill(now);
        let tokens = self.tokens;
        *self = Self::new(now, per_second, burst);
        self.tokens = tokens.min(self.burst);
    }

    /// Takes a token; false if there is none.
    #[must_use]
    pub fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }

    /// When the next token comes, while the bucket is empty.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        (self.tokens == 0).then(|| self.since + self.interval)
    }

    fn refill(&mut self, now: Instant) {
        if self.tokens >= self.burst {
            self.since = now;
            return;
        }
        let nanos = self.interval.as_nanos().max(1);
        let came = now.since(self.since).as_nanos() / nanos;
        let missing = self.burst - self.tokens;
        if came >= u128::from(missing) {
            self.tokens = self.burst;
            self.since = now;
            return;
        }
        // Less than `missing`, so it fits.
        let came = u32::try_from(came).unwrap_or(missing);
        self.tokens += came;
        self.since += self.interval * came;
    }
}
