//! TCP sequence numbers (RFC 9293, section 3.4): 32 bits that wrap.

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Comparison is modulo 2^32, right for numbers less than 2^31 apart.
///
/// There is no `Ord`: the order is not transitive over the whole circle.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Signed distance from `earlier` to `self`, in -2^31..2^31.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// Whether `self` comes before `other`.
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether `self` comes after `other`.
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Whether `self` is `other` or comes after it.
    #[must_use]
    pub const fn at_or_after(self, other: Self) -> bool {
        self.distance_from(other) >= 0
    }

    /// Whether `self` is `other` or comes before it.
    #[must_use]
    pub const fn at_or_before(self, other: Self) -> bool {
        self.distance_from(other) <= 0
    }

    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }

    /// The earlier of the two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }

    /// How `self` stands to `other`.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        self.distance_from(other).cmp(&0)
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
