//! HIP between the two hosts.

use crate::scenario::{IpVersion, Scenario};
use outlast_base::time::Duration;

/// Both hosts speak HIP, and the mobile has another address each time that it comes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hip {
    /// Data goes to an address that is not verified yet, as much as came from the peer.
    pub credit: bool,
    /// How long after its link is back the mobile has its new address.
    pub address_delay: Duration,
    /// Packets that wait at each host while it has no path to the other.
    pub waiting: usize,
}

impl Hip {
    /// What is between the packets of a link and those of the connections inside, in bytes: that of
    /// `outlast run --role hip`, which fits both families outside.
    pub const ROOM: u32 = 60;

    /// Bytes that ESP adds to a full segment between the hosts' tags: the packet on a link is so much
    /// longer than the one inside, whose header of IPv6 is not sent.
    pub(crate) fn added(mtu_inside: u32, outside: IpVersion) -> u32 {
        /// Number of the association and of the packet; what AES-GCM draws for each packet; its check value.
        const ESP: u32 = 8 + 8 + 16;
        /// Length of the padding, and what is inside.
        const TRAILER: u32 = 2;
        let outer = match outside {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        let inside = mtu_inside.saturating_sub(40);
        let sealed = (inside + TRAILER).next_multiple_of(4);
        (outer + ESP + sealed).saturating_sub(mtu_inside)
    }
}

impl Scenario {
    /// The network protocol of the connections: with HIP they are between tags, which are addresses of
    /// IPv6, whatever the hosts' own addresses are.
    #[must_use]
    pub fn ip_inside(&self) -> IpVersion {
        match self.hip {
            Some(_) => IpVersion::V6,
            None => self.stack.ip,
        }
    }

    /// The largest IP packet of the connections, in bytes.
    #[must_use]
    pub fn mtu_inside(&self) -> u32 {
        let room = self.hip.map_or(0, |_| Hip::ROOM);
        self.link.mtu.saturating_sub(room)
    }

    /// How long HIP's base exchange takes at least, before the first segment.
    pub(crate) fn base_exchange(&self) -> Duration {
        let round_trip: Duration = self.delays().into_iter().sum();
        self.hip.map_or(Duration::ZERO, |_| 2 * round_trip)
    }
}
