//! When a frame has left the near end.

use crate::trace::{DeliveryTrace, OPPORTUNITY};
use alloc::sync::Arc;
use outlast_base::time::{Duration, Instant, saturating_nanos};
use outlast_base::units::{BitRate, ByteCount};

/// The part of a pipe that takes time per byte. It serves one frame at a time, in order.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    pace: Pace,
    /// When it has finished all it was given.
    free_at: Instant,
    /// Length of the latest frame and how many ns it takes, if it is the rate that says so: most are
    /// of one length.
    latest: (ByteCount, u64),
}

#[derive(Clone, Debug)]
enum Pace {
    Unlimited,
    Rate(BitRate),
    Opportunities {
        trace: Arc<DeliveryTrace>,
        /// When the trace began.
        origin: Instant,
        /// The opportunity in use.
        current: u64,
        /// What it can still take.
        left: u64,
    },
}

impl Transmitter {
    pub(crate) fn new(rate: Option<BitRate>) -> Self {
        let pace = rate.map_or(Pace::Unlimited, Pace::Rate);
        Self {
            pace,
            free_at: Instant::ZERO,
            latest: (ByteCount(0), 0),
        }
    }

    /// From `origin` on, the transmitter sends when `trace` lets it. What it was given before
    /// keeps its times.
    pub(crate) fn follow(&mut self, trace: Arc<DeliveryTrace>, origin: Instant) {
        let busy = self.free_at.since(origin);
        let current = if busy.is_zero() { 0 } else { trace.until(busy) };
        let left = OPPORTUNITY.as_u64();
        self.pace = Pace::Opportunities {
            trace,
            origin,
            current,
            left,
        };
    }

    /// From now on the transmitter sends at `rate`, once it has finished at `free_at` what it sends.
    /// A transmitter that follows a trace goes on with the trace.
    pub(crate) fn change_rate(&mut self, rate: BitRate, free_at: Instant) {
        if matches!(self.pace, Pace::Opportunities { .. }) {
            return;
        }
        self.pace = Pace::Rate(rate);
        self.free_at = free_at;
        self.latest = (ByteCount(0), 0);
    }

    /// Whether a frame taken at `now` would have to wait.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.free_at > now
    }

    /// Takes a frame of `len` at `now`; tells when its turn comes and when its last bit is out.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, len: ByteCount) -> (Instant, Instant) {
        let begin = self.free_at.max(now);
        self.free_at = match &mut self.pace {
            Pace::Unlimited => begin,
            Pace::Rate(rate) => {
                if self.latest.0 != len {
                    self.latest = (len, saturating_nanos(rate.time_for(len)));
                }
                begin.after_nanos(self.latest.1)
            }
            Pace::Opportunities {
                trace,
                origin,
                current,
                left,
            } => {
                // An opportunity that nobody was there to use is gone. What a frame left over of
                // the one that it ended in goes to the next, if that was waiting by then.
                let gone = trace.until(now.since(*origin));
                if *current < gone {
                    (*current, *left) = (gone, OPPORTUNITY.as_u64());
                }
                *origin + use_opportunities(trace, current, left, len)
            }
        };
        (begin, self.free_at)
    }

    /// Forgets what is not yet sent at `now`.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.free_at = self.free_at.min(now);
        if let Pace::Opportunities {
            trace,
            origin,
            current,
            left,
        } = &mut self.pace
        {
            (*current, *left) = (trace.until(now.since(*origin)), OPPORTUNITY.as_u64());
        }
    }
}

/// Spends opportunities on `len` bytes; tells when the last of them is used.
#[inline(never)]
fn use_opportunities(
    trace: &DeliveryTrace,
    current: &mut u64,
    left: &mut u64,
    len: ByteCount,
) -> Duration {
    let mut rest = len.as_u64();
    while rest > *left {
        rest -= *left;
        *current += 1;
        *left = OPPORTUNITY.as_u64();
    }
    *left -= rest;
    trace.time(*current)
}
