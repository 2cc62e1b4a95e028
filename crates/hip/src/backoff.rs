//! Repetitions with exponential back-off, which an indicator cuts short.

use crate::config::Retransmission;
use outlast_base::time::{Duration, Instant};

/// When a packet is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    interval: Duration,
    /// When it is sent next.
    pub(crate) due: Instant,
    /// How often it was sent.
    pub(crate) attempts: u32,
}

impl Backoff {
    /// For a packet that is sent now.
    pub(crate) fn new(now: Instant, times: &Retransmission) -> Self {
        Self {
            interval: times.initial,
            due: now + times.initial,
            attempts: 1,
        }
    }

    /// Notes that the packet is sent again now.
    pub(crate) fn again(&mut self, now: Instant, times: &Retransmission) {
        self.interval = (self.interval * 2).min(times.longest);
        self.due = now + self.interval;
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Makes the packet due at once, as if it had never been sent.
    pub(crate) fn hurry(&mut self, now: Instant, times: &Retransmission) {
        // The next repetition doubles the interval.
        self.interval = times.initial / 2;
        self.due = now;
        self.attempts = 0;
    }
}
