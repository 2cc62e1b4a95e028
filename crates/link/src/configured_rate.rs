//! What gateways are told of the rate of their link.

use core::fmt;
use outlast_base::units::BitRate;

/// What gateways are told of the rate of their link, as by `rate` in the daemon's configuration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ConfiguredRate {
    /// The link's rate, in the direction that they send.
    #[default]
    Link,
    /// Nothing, as in the daemon's default configuration.
    Unknown,
    /// This rate, whatever the link has.
    Stated(BitRate),
}

impl ConfiguredRate {
    /// What a gateway is told that sends into a link of rate `link`.
    #[must_use]
    pub fn of(self, link: Option<BitRate>) -> Option<BitRate> {
        match self {
            Self::Link => link,
            Self::Unknown => None,
            Self::Stated(rate) => Some(rate),
        }
    }
}

impl fmt::Display for ConfiguredRate {
    /// As in a scenario file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("link"),
            Self::Unknown => f.write_str("unknown"),
            Self::Stated(rate) => rate.fmt(f),
        }
    }
}
