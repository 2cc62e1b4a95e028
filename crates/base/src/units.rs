//! Quantities that carry their unit in the type.

use core::fmt;
use core::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// The number as `u64`.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 && n % 1_000_000 == 0 => {
                write_scaled(f, n, 1_000_000_000, "GB")
            }
            n if n >= 1_000_000 && n % 1_000 == 0 => write_scaled(f, n, 1_000_000, "MB"),
            n if n >= 1_000 && n % 10 == 0 => write_scaled(f, n, 1_000, "kB"),
            n => write!(f, "{n} B"),
        }
    }
}

/// A byte's bits, each as long as a second, in nanoseconds.
const BIT_NANOS: u64 = 8 * 1_000_000_000;

/// A rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BitRate(core::num::NonZeroU64);

impl BitRate {
    /// The highest rate.
    pub const MAX: Self = Self(core::num::NonZeroU64::MAX);

    /// A rate of `bits` per second; `None` for zero, which would never deliver anything.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        match core::num::NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// How long `bytes` occupy a link of this rate, rounded up to a nanosecond.
    #[must_use]
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        if let Some(bit_nanos) = bytes.0.checked_mul(BIT_NANOS) {
            return Duration::from_nanos(bit_nanos.div_ceil(self.0.get()));
        }
        let bit_nanos = u128::from(bytes.0) * u128::from(BIT_NANOS);
        let nanos = bit_nanos.div_ceil(u128::from(self.0.get()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long `bytes` occupy a link of this rate, rounded down to a nanosecond.
    #[must_use]
    pub fn full_time_for(self, bytes: ByteCount) -> Duration {
        if let Some(bit_nanos) = bytes.0.checked_mul(BIT_NANOS) {
            return Duration::from_nanos(bit_nanos / self.0.get());
        }
        let nanos = u128::from(bytes.0) * u128::from(BIT_NANOS) / u128::from(self.0.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes pass in `duration`.
    #[must_use]
    pub fn bytes_in(self, duration: Duration) -> ByteCount {
        let bits = u128::from(self.0.get()) * duration.as_nanos() / 1_000_000_000;
        ByteCount(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get() {
            n if n >= 1_000_000_000 && n % 1_000_000 == 0 => {
                write_scaled(f, n, 1_000_000_000, "Gbit/s")
            }
            n if n >= 1_000_000 && n % 1_000 == 0 => write_scaled(f, n, 1_000_000, "Mbit/s"),
            n if n >= 1_000 && n % 10 == 0 => write_scaled(f, n, 1_000, "kbit/s"),
            n => write!(f, "{n} bit/s"),
        }
    }
}

/// Writes `n / scale` with as many decimals as it needs (at most three) and `unit`.
fn write_scaled(f: &mut fmt::Formatter<'_>, n: u64, scale: u64, unit: &str) -> fmt::Result {
    let (whole, thousandths) = (n / scale, n % scale * 1_000 / scale);
    match thousandths {
        0 => write!(f, "{whole} {unit}"),
        t if t % 100 == 0 => write!(f, "{whole}.{} {unit}", t / 100),
        t if t % 10 == 0 => write!(f, "{whole}.{:02} {unit}", t / 10),
        t => write!(f, "{whole}.{t:03} {unit}"),
    }
}
