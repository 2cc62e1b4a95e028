//! The wall clock that registrations are stamped with (RFC 5944, section 5.7.1).

use outlast_base::time::{Duration, Instant};

/// A wall clock in NTP's format, set by its owner and running with the machine's time.
///
/// The format is seconds since 1900 in the high 32 bits and a binary fraction in the low ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NtpClock {
    set_at: Instant,
    ntp: u64,
}

impl NtpClock {
    /// The clock says `ntp` at `set_at`.
    #[must_use]
    pub const fn new(set_at: Instant, ntp: u64) -> Self {
        Self { set_at, ntp }
    }

    /// What the clock says at `now`; wraps in 2036, as NTP does.
    #[must_use]
    pub fn at(&self, now: Instant) -> u64 {
        let since = match now >= self.set_at {
            true => fixed_point(now.since(self.set_at)),
            false => fixed_point(self.set_at.since(now)).wrapping_neg(),
        };
        self.ntp.wrapping_add(since)
    }

    /// Sets the clock to `ntp` at `now`.
    pub const fn set(&mut self, now: Instant, ntp: u64) {
        *self = Self::new(now, ntp);
    }
}

/// Timestamps of requests, each greater than the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    clock: NtpClock,
    last: Option<u64>,
}

impl Stamps {
    pub(crate) const fn new(clock: NtpClock) -> Self {
        Self { clock, last: None }
    }

    /// A number that no request had before: the time, if that goes forward.
    pub(crate) fn next(&mut self, now: Instant) -> u64 {
        let clock = self.clock.at(now);
        let last = self.last.filter(|last| !is_after(clock, *last));
        let next = last.map_or(clock, |last| last.wrapping_add(1));
        self.last = Some(next);
        next
    }

    /// The home agent's clock says `seconds`; what was said before counts no more (RFC 5944,
    /// section 5.7.1).
    pub(crate) const fn resynchronise(&mut self, now: Instant, seconds: u64) {
        self.clock.set(now, seconds << 32);
        self.last = None;
    }
}

/// Whether `stamp` is at most `tolerance` away from `clock`, across the wrap of 2036.
pub(crate) fn is_near(stamp: u64, clock: u64, tolerance: Duration) -> bool {
    let difference = (stamp.wrapping_sub(clock) as i64).unsigned_abs();
    difference <= fixed_point(tolerance)
}

/// Whether `stamp` comes after `earlier`, across the wrap of 2036.
pub(crate) const fn is_after(stamp: u64, earlier: u64) -> bool {
    (stamp.wrapping_sub(earlier) as i64) > 0
}

/// `duration` with 32 binary places, modulo 2^32 seconds.
fn fixed_point(duration: Duration) -> u64 {
    let fraction = (u64::from(duration.subsec_nanos()) << 32) / 1_000_000_000;
    (duration.as_secs() << 32) | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_with_time() {
        let clock = NtpClock::new(Instant::from_millis(1_000), 5 << 32);
        assert_eq!(clock.at(Instant::from_millis(2_500)), (6 << 32) + (1 << 31));
        assert_eq!(clock.at(Instant::from_millis(500)), (5 << 32) - (1 << 31));
    }

    #[test]
    fn nearness_holds_across_the_wrap() {
        let second = Duration::from_secs(1);
        assert!(is_near(5, u64::MAX, second));
        assert!(is_near(7 << 32, 8 << 32, second));
        assert!(!is_near((7 << 32) - 1, 8 << 32, second));
        assert!(is_after(3, u64::MAX) && !is_after(3, 3) && !is_after(u64::MAX, 3));
    }
}
