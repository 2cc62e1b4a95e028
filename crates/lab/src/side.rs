//! The two hosts.

use outlast_link::Way;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One of the two hosts, and the end of the link at which it is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Side {
    /// The host that does not move; servers run here.
    Fixed,
    /// The host behind the disconnecting link; clients run here.
    Mobile,
}

impl Side {
    /// Both, the fixed host first.
    pub const BOTH: [Self; 2] = [Self::Fixed, Self::Mobile];

    /// The other one.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Fixed => Self::Mobile,
            Self::Mobile => Self::Fixed,
        }
    }

    /// The way of the link that leads away from here.
    #[must_use]
    pub const fn outward(self) -> Way {
        match self {
            Self::Fixed => Way::ToMobile,
            Self::Mobile => Way::ToFixed,
        }
    }

    /// The side to which `way` leads.
    #[must_use]
    pub const fn reached_by(way: Way) -> Self {
        match way {
            Way::ToMobile => Self::Mobile,
            Way::ToFixed => Self::Fixed,
        }
    }

    /// The host's IPv4 address, of a network reserved for documentation (RFC 5737): it cannot
    /// be mistaken for one of the user's.
    #[must_use]
    pub const fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, self.number())
    }

    /// The host's IPv6 address, of a network reserved for documentation (RFC 3849).
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, self.number() as u16)
    }

    /// Both addresses with the lengths of their prefixes.
    pub(crate) fn prefixes(self) -> [(IpAddr, u8); 2] {
        [(self.ipv4().into(), 24), (self.ipv6().into(), 64)]
    }

    const fn number(self) -> u8 {
        match self {
            Self::Fixed => 1,
            Self::Mobile => 2,
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Fixed => 0,
            Self::Mobile => 1,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Mobile => "mobile",
        })
    }
}
