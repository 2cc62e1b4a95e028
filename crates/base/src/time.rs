//! The time that drivers tell the state machines.

use core::fmt;
use core::num::NonZeroU64;
use core::ops::{Add, AddAssign, Sub};
pub use core::time::Duration;

/// A point in time, in nanoseconds since an origin that the driver chooses.
///
/// Real drivers count from their start on the monotonic clock, simulated ones from zero. The
/// range is 584 years; arithmetic saturates at both ends, so that a far deadline never wraps. An `Option` of it takes no
/// more memory: deadlines and times of things that have not happened are most of what a connection remembers.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(
    /// Nanoseconds since the origin, and one.
    NonZeroU64,
);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// Later than every deadline.
    pub const FAR_FUTURE: Self = Self(NonZeroU64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The instant `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the origin.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "2^53 ns are 104 days; beyond, a microsecond is lost"
    )]
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// Nanoseconds since `earlier`; zero if `earlier` is later.
    ///
    /// A [`Duration`] keeps seconds apart, which costs a division for each difference and a
    /// multiplication for each sum.
    #[inline]
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// The instant `nanos` nanoseconds later.
    #[inline]
    #[must_use]
    pub const fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

/// Nanoseconds of `duration`, saturating at 584 years.
#[must_use]
#[inline]
pub const fn saturating_nanos(duration: Duration) -> u64 {
    let nanos = duration.as_secs().saturating_mul(1_000_000_000);
    nanos.saturating_add(duration.subsec_nanos() as u64)
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.after_nanos(saturating_nanos(duration))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, duration: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(saturating_nanos(duration)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.as_nanos()).finish()
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        write!(
            f,
            "{}.{:06} s",
            nanos / 1_000_000_000,
            nanos % 1_000_000_000 / 1_000
        )
    }
}
