//! The two hosts.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use outlast_link::Way;

/// One of the two hosts, and the end of the link at which it is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Side {
    /// The host that does not move; servers run here.
    Fixed,
    /// The host behind the disconnecting link; clients run here.
    Mobile,
}

/// The network protocol under TCP.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Side {
    /// Both, the fixed host first.
    pub const BOTH: [Self; 2] = [Self::Fixed, Self::Mobile];

    /// The other side.
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

    /// The place of this side in arrays that have one entry for each: as in [`Self::BOTH`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The host's IPv4 address, of a network reserved for documentation (RFC 5737): it cannot be
    /// mistaken for one of the user's.
    #[must_use]
    pub const fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, self.number())
    }

    /// The host's IPv6 address, of a network reserved for documentation (RFC 3849).
    #[must_use]
    pub const fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, self.number() as u16)
    }

    /// The host's address under `version`.
    #[must_use]
    pub const fn address(self, version: IpVersion) -> IpAddr {
        match version {
            IpVersion::V4 => IpAddr::V4(self.ipv4()),
            IpVersion::V6 => IpAddr::V6(self.ipv6()),
        }
    }

    const fn number(self) -> u8 {
        self as u8 + 1
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
