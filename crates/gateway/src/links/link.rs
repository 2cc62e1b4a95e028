//! Links, their state, and the indicators that tell it.
//!
//! A link is an interface and, where several peers share one, a peer: one mobile's outage says
//! nothing of another's. A flow's link is down while its interface is, or an indicator has said so
//! of its peer.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_base::units::BitRate;

/// An interface with a disconnecting link behind it, by the number the driver gave it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InterfaceId(pub u32);

/// A disconnecting link: an interface, or one peer behind it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId {
    /// The interface.
    pub interface: InterfaceId,
    /// The next hop or mobile, where several share the interface.
    pub peer: Option<IpAddr>,
}

impl LinkId {
    /// The link that is all there is behind `interface`.
    #[must_use]
    pub const fn of_interface(interface: InterfaceId) -> Self {
        Self {
            interface,
            peer: None,
        }
    }

    /// True if what is said of this link is said of `link`: it is the same, or that of a peer behind this interface.
    #[must_use]
    pub fn covers(self, link: Self) -> bool {
        self == link || self == Self::of_interface(link.interface)
    }
}

/// Which way a packet crosses the gateway.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// About to enter the disconnecting link. What the gateway puts there is *re-sent*.
    ToLink,
    /// Received from the disconnecting link. What the gateway puts there is *re-received*.
    FromLink,
}

/// Whether packets get through.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LinkState {
    /// Packets get through.
    Up,
    /// Packets do not get through.
    Down,
}

/// What reports the state of a link.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Indicator {
    /// Nobody has spoken yet.
    Assumed,
    /// The interface has or lacks carrier.
    Carrier,
    /// An address came or went.
    Address,
    /// A route came or went.
    Route,
    /// The neighbour became reachable or failed.
    Neighbour,
    /// An operator or a hook: `outlast notify`.
    Notify,
    /// A completed Mobile IP or HIP update.
    MobilityUpdate,
    /// Data is outstanding and nothing came from the link.
    Silence,
    /// A packet arrived after silence.
    FirstPacket,
    /// The machine itself was suspended, and goes on.
    Suspension,
}

/// A change of a link's state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkEvent {
    /// The link.
    pub link: LinkId,
    /// Its state from now on.
    pub state: LinkState,
    /// Who says so.
    pub indicator: Indicator,
}

/// What is known of a link beforehand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkConfig {
    /// The rate towards the link. Without it the gateway goes by what it sees acknowledged.
    pub rate: Option<BitRate>,
}

/// State of a link and when it began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StateSince {
    /// The state.
    pub state: LinkState,
    /// Since when.
    pub since: Instant,
    /// Who said so.
    pub by: Indicator,
}

/// The state of every interface, and the peers that are down.
#[derive(Debug, Default)]
pub(crate) struct LinkTable {
    interfaces: Vec<Interface>,
}

#[derive(Debug)]
struct Interface {
    id: InterfaceId,
    state: StateSince,
    /// Peers that are down; all others are in the interface's state.
    peers: BTreeMap<IpAddr, StateSince>,
}

/// What [`LinkTable::apply`] found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Applied {
    /// The state is another now.
    Changed,
    /// It was so already.
    Unchanged,
    /// No such interface, or no room for another peer.
    Refused,
}

impl LinkTable {
    pub(crate) fn add(&mut self, now: Instant, id: InterfaceId) {
        if self.find(id).is_none() {
            let state = StateSince {
                state: LinkState::Up,
                since: now,
                by: Indicator::Assumed,
            };
            self.interfaces.push(Interface {
                id,
                state,
                peers: BTreeMap::new(),
            });
        }
    }

    /// The state of `link`; `None` for an interface that was never added.
    pub(crate) fn state(&self, link: LinkId) -> Option<StateSince> {
        let interface = self.find(link.interface)?;
        let down = link.peer.and_then(|peer| interface.peers.get(&peer));
        Some(*down.unwrap_or(&interface.state))
    }

    /// Takes a change in; at most `max_peers` peers of an interface are down.
    pub(crate) fn apply(&mut self, now: Instant, event: LinkEvent, max_peers: usize) -> Applied {
        let link = event.link;
        let Some(interface) = self.interfaces.iter_mut().find(|i| i.id == link.interface) else {
            return Applied::Refused;
        };
        let next = StateSince {
            state: event.state,
            since: now,
            by: event.indicator,
        };
        let Some(peer) = link.peer else {
            if interface.state.state == next.state {
                return Applied::Unchanged;
            }
            interface.state = next;
            return Applied::Changed;
        };
        // Only who is down is remembered: others come and go, and their number is unbounded.
        let is_known = interface.peers.contains_key(&peer);
        match (next.state, is_known) {
            (LinkState::Up, true) => {
                interface.peers.remove(&peer);
                Applied::Changed
            }
            (LinkState::Down, true) | (LinkState::Up, false) => Applied::Unchanged,
            (LinkState::Down, false) if interface.peers.len() >= max_peers => Applied::Refused,
            (LinkState::Down, false) => {
                interface.peers.insert(peer, next);
                Applied::Changed
            }
        }
    }

    fn find(&self, id: InterfaceId) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const WLAN: InterfaceId = InterfaceId(3);

    fn peer(last: u8) -> LinkId {
        LinkId {
            interface: WLAN,
            peer: Some(Ipv4Addr::new(10, 0, 0, last).into()),
        }
    }

    fn event(link: LinkId, state: LinkState) -> LinkEvent {
        LinkEvent {
            link,
            state,
            indicator: Indicator::Notify,
        }
    }

    fn table() -> LinkTable {
        let mut table = LinkTable::default();
        table.add(Instant::ZERO, WLAN);
        table
    }

    #[test]
    fn one_peers_outage_says_nothing_of_another() {
        let mut table = table();
        let now = Instant::from_millis(5);
        assert_eq!(
            table.apply(now, event(peer(1), LinkState::Down), 8),
            Applied::Changed
        );
        assert_eq!(table.state(peer(1)).map(|s| s.state), Some(LinkState::Down));
        assert_eq!(table.state(peer(2)).map(|s| s.state), Some(LinkState::Up));
        assert_eq!(
            table.state(LinkId::of_interface(WLAN)).map(|s| s.state),
            Some(LinkState::Up)
        );
    }

    #[test]
    fn an_interface_without_carrier_has_no_peers() {
        let mut table = table();
        let now = Instant::from_millis(5);
        table.apply(now, event(peer(1), LinkState::Down), 8);
        table.apply(now, event(peer(1), LinkState::Up), 8);
        table.apply(now, event(LinkId::of_interface(WLAN), LinkState::Down), 8);
        assert_eq!(table.state(peer(1)).map(|s| s.state), Some(LinkState::Down));
    }

    #[test]
    fn peers_are_capped() {
        let mut table = table();
        for last in 0..8 {
            table.apply(Instant::ZERO, event(peer(last), LinkState::Down), 8);
        }
        let ninth = table.apply(Instant::ZERO, event(peer(9), LinkState::Down), 8);
        assert_eq!(ninth, Applied::Refused);
    }

    #[test]
    fn a_peer_that_is_back_leaves_room_for_another() {
        let mut table = table();
        let now = Instant::ZERO;
        for last in 0..100 {
            for state in [LinkState::Down, LinkState::Up] {
                let applied = table.apply(now, event(peer(last), state), 1);
                assert_eq!(applied, Applied::Changed);
            }
        }
    }

    #[test]
    fn a_peer_that_failed_with_its_interface_stays_down() {
        let mut table = table();
        let now = Instant::ZERO;
        table.apply(now, event(LinkId::of_interface(WLAN), LinkState::Down), 8);
        table.apply(now, event(peer(1), LinkState::Down), 8);
        table.apply(now, event(LinkId::of_interface(WLAN), LinkState::Up), 8);
        assert_eq!(table.state(peer(1)).map(|s| s.state), Some(LinkState::Down));
        assert_eq!(table.state(peer(2)).map(|s| s.state), Some(LinkState::Up));
    }

    #[test]
    fn an_unknown_interface_is_refused() {
        let link = LinkId::of_interface(InterfaceId(9));
        let applied = table().apply(Instant::ZERO, event(link, LinkState::Down), 8);
        assert_eq!(applied, Applied::Refused);
    }
}
