//! Which addresses an agent serves.

use core::net::IpAddr;

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prefix {
    /// One of them.
    pub address: IpAddr,
    /// How many bits are the same; more than the address has are all of it.
    pub length: u8,
}

impl Prefix {
    /// Whether `other` is one of them.
    ///
    /// ```
    /// use outlast_agents::Prefix;
    ///
    /// let pool = Prefix { address: [198, 51, 100, 0].into(), length: 24 };
    /// assert!(pool.contains([198, 51, 100, 7].into()));
    /// assert!(!pool.contains([198, 51, 101, 7].into()));
    /// ```
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        let (differs, width) = match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits() ^ b.to_bits()) << 96, 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits(), 128),
            _ => return false,
        };
        differs.leading_zeros().min(width) >= u32::from(self.length).min(width)
    }
}
