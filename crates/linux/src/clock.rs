//! The clock: the only place that reads one.

use outlast_base::time::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The present on the monotonic clock (`CLOCK_MONOTONIC`, which does not count suspension).
///
/// The origin is the machine's start, the same for every process and for
/// [`Timer`](crate::timer::Timer).
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// What must be added to an [`Instant`] of [`now`] to get the time since the Unix epoch.
///
/// Wall-clock time may be set at any moment; take the offset once per capture file.
#[must_use]
pub fn unix_offset() -> Duration {
    let (unix, monotonic) = (
        clock_gettime(ClockId::Realtime),
        clock_gettime(ClockId::Monotonic),
    );
    Duration::from_nanos(nanos(unix).saturating_sub(nanos(monotonic)))
}

/// How long the machine was suspended since its start, in all: what `CLOCK_BOOTTIME` is ahead of
/// [`now`]. It is exact to the time between two readings.
#[must_use]
pub fn suspended() -> Duration {
    // In this order a pause between the readings is no suspension.
    let boot = nanos(clock_gettime(ClockId::Boottime));
    let monotonic = nanos(clock_gettime(ClockId::Monotonic));
    Duration::from_nanos(boot.saturating_sub(monotonic))
}

/// Measures how long a piece of work takes. It tells no time of day or of events.
#[derive(Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// The work begins.
    #[must_use]
    pub fn start() -> Self {
        Self(now())
    }

    /// How long the work has taken so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        now().since(self.0)
    }
}

/// CPU time that all threads of this process have used.
#[must_use]
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

/// CPU time that the calling thread has used.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// Nanoseconds of `time`; zero for times before the clock's origin.
fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_runs_is_not_suspended() {
        let before = suspended();
        let after = suspended();
        let grown = after.saturating_sub(before);
        assert!(grown < Duration::from_millis(1), "{before:?} {after:?}");
    }

    #[test]
    fn time_never_goes_back_and_the_offset_leads_to_this_century() {
        let (earlier, later) = (now(), now());
        assert!(later >= earlier);
        let unix = unix_offset() + Duration::from_nanos(later.as_nanos());
        assert!(
            unix > Duration::from_secs(946_684_800),
            "before the year 2000: {unix:?}"
        );
    }
}
