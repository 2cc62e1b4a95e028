//! Names of connections.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// A TCP connection, by its addresses.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FlowId {
    /// Who sent the first packet that was seen.
    pub source: SocketAddr,
    /// To whom.
    pub destination: SocketAddr,
}

impl FlowId {
    /// The connection as its other host names it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }

    /// Names the connection alike from both directions: the lower source first.
    pub(crate) fn unordered(self) -> Self {
        self.min(self.reversed())
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.source, self.destination)
    }
}

/// The network that `address` most likely shares with its neighbours: /24 or /64.
pub(crate) fn subnet(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::from([a, b, c, 0])
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}
