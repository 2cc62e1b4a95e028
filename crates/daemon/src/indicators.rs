//! The state of the link and of its peers, as indicators report it.
//!
//! The link is down while any indicator says so. A pure machine. In: changes of the network, the
//! word of `outlast notify`, and the peers from which packets come. Out: indications for the
//! [`Gateway`](outlast_gateway::gateway::Gateway), and the peers to ask for. The gateway itself
//! damps links that flap, and detects silence.

mod peers;
mod routes;
mod stations;

use super::config::Watched;
use outlast_base::time::Instant;
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState, Neighbour};
use outlast_linux::monitor::{Change, Standing, Way};
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use peers::{Peers, Question};
use routes::{RouteChange, Routes};
pub(super) use stations::Stations;
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

/// What the gateway calls the interface.
pub(super) const INTERFACE: InterfaceId = InterfaceId(0);

/// The state of one interface's link, as far as the host can know it.
#[derive(Debug)]
pub(super) struct Indicators {
    name: String,
    watched: Watched,
    index: Option<InterfaceIndex>,
    is_running: bool,
    mtu: u32,
    stations: Stations,
    port_of: Option<InterfaceIndex>,
    /// Each with the length of its network's prefix.
    addresses: BTreeSet<(IpAddr, u8)>,
    had_address: bool,
    routes: Routes,
    is_notified_down: bool,
    state: LinkState,
    peers: Peers,
    indications: VecDeque<Indication>,
}

/// News of a link for the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Indication {
    /// A link has changed.
    Changed(LinkEvent),
    /// A link was down and is up again; no indicator had reported it down.
    Returned(LinkId, Indicator),
    /// The way to a destination is another, or is used again, by this link. Whoever went there may have lost what was in
    /// flight.
    Moved(LinkId, Prefix),
    /// Somebody answers for the address of a peer: who did so before, or another one.
    Neighbour(LinkId, Neighbour),
}

impl Indicators {
    /// Nothing is known of the interface `name` yet; `peers` may be down at once.
    pub(super) fn new(name: &str, watched: Watched, peers: usize) -> Self {
        Self {
            name: name.into(),
            watched,
            index: None,
            is_running: false,
            mtu: 0,
            stations: Stations::default(),
            port_of: None,
            addresses: BTreeSet::new(),
            had_address: false,
            routes: Routes::default(),
            is_notified_down: false,
            state: LinkState::Up,
            peers: Peers::new(peers),
            indications: VecDeque::new(),
        }
    }

    /// Other indicators count from now on.
    pub(super) fn set_watched(&mut self, now: Instant, watched: Watched) {
        self.watched = watched;
        // An indicator that no longer counts takes back what it has said of peers.
        for (indicator, counts) in [
            (Indicator::Neighbour, watched.neighbour),
            (Indicator::Route, watched.route),
        ] {
            if !counts {
                for peer in self.peers.said_by(indicator) {
                    self.find(now, peer, indicator);
                }
            }
        }
        self.judge_link(now, Indicator::Carrier);
    }

    /// The interface's number, if it is there.
    pub(super) const fn index(&self) -> Option<InterfaceIndex> {
        self.index
    }

    /// Longest IP packet in bytes.
    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Ethernet addresses on the link.
    pub(super) const fn stations(&self) -> &Stations {
        &self.stations
    }

    /// The bridge, bond or switch that takes every packet that comes, if there is one.
    pub(super) const fn port_of(&self) -> Option<InterfaceIndex> {
        self.port_of
    }

    pub(super) const fn state(&self) -> LinkState {
        self.state
    }

    /// So many peers may be down at once from now on.
    pub(super) const fn set_most_peers(&mut self, peers: usize) {
        self.peers.set_most(peers);
    }

    /// How often a peer that is down was ignored, past the cap.
    pub(super) const fn refused(&self) -> u64 {
        self.peers.refused()
    }

    /// Peers that are down: since when, and who says so.
    pub(super) fn absent(&self) -> impl Iterator<Item = (IpAddr, Instant, Indicator)> {
        self.peers.absent()
    }

    /// The interface's addresses that are valid beyond the link.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.prefixes().map(|prefix| prefix.address)
    }

    /// The interface's addresses that are valid beyond the link, with their networks.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        let prefix = |&(address, length)| Prefix { address, length };
        self.addresses.iter().map(prefix)
    }

    /// Where the interface's routes lead, the longest prefix first.
    pub(super) fn ways(&self) -> Vec<Way> {
        self.routes.ways()
    }

    /// How many routes that is.
    pub(super) fn count_ways(&self) -> usize {
        self.routes.count_ways()
    }

    /// The link that leads to `far`: an address on the link itself is a peer, any other one is
    /// reached by way of one.
    pub(super) fn link_to(&self, far: IpAddr) -> LinkId {
        let way = self.routes.way_to(far);
        LinkId {
            interface: INTERFACE,
            peer: way.map(|way| way.gateway.unwrap_or(far)),
        }
    }

    /// Replaces what is known of the network by a snapshot.
    pub(super) fn handle_snapshot(&mut self, now: Instant, all: Vec<Change>) {
        self.index = None;
        self.port_of = None;
        self.is_running = false;
        self.stations.clear();
        self.addresses.clear();
        self.routes.clear();
        for change in all {
            self.take_in(now, change);
        }
        self.judge_link(now, Indicator::Carrier);
        self.judge_routes(now);
    }

    /// Takes in one change of the network.
    ///
    /// Call [`Self::judge_routes`] after the last of a batch. If [`Self::index`] has changed, call
    /// [`Self::handle_snapshot`]: the kernel does not repeat what the interface had before.
    pub(super) fn handle_change(&mut self, now: Instant, change: Change) {
        let indicator = match &change {
            Change::Address { .. } => Indicator::Address,
            Change::Route { .. } => return self.take_in(now, change),
            Change::Local { .. } => return,
            _ => Indicator::Carrier,
        };
        self.take_in(now, change);
        self.judge_link(now, indicator);
    }

    /// Judges the routes as they are now.
    pub(super) fn judge_routes(&mut self, now: Instant) {
        let changes = self.routes.poll_changes();
        if self.watched.route {
            self.judge_link(now, Indicator::Route);
            for change in changes {
                match change {
                    RouteChange::Lost(router) => self.lose(now, router, Indicator::Route),
                    RouteChange::Found(router) => self.find(now, router, Indicator::Route),
                    RouteChange::Replaced(router) if self.state == LinkState::Up => {
                        self.come_back(Some(router), Indicator::Route);
                    }
                    RouteChange::Moved(router, to) if self.state == LinkState::Up => {
                        let moved = Indication::Moved(link_of(router), to);
                        self.indications.push_back(moved);
                    }
                    RouteChange::Replaced(_) | RouteChange::Moved(..) => {}
                }
            }
        }
    }

    /// Takes in what `outlast notify` says of the link, or of one peer.
    pub(super) fn handle_notice(&mut self, now: Instant, peer: Option<IpAddr>, state: LinkState) {
        const BY: Indicator = Indicator::Notify;
        match (peer, state) {
            (None, _) => {
                let was_up = self.state == LinkState::Up;
                self.is_notified_down = state == LinkState::Down;
                if was_up && state == LinkState::Up {
                    // The link was down, and no indicator had noticed.
                    self.come_back(None, BY);
                }
                self.judge_link(now, BY);
            }
            (Some(peer), LinkState::Down) => self.lose(now, peer, BY),
            (Some(peer), LinkState::Up) if self.peers.is_absent(peer) => {
                self.find(now, peer, BY);
            }
            (Some(peer), LinkState::Up) => self.come_back(Some(peer), BY),
        }
    }

    /// A packet came from the link.
    pub(super) fn handle_arrival(&mut self, now: Instant, link: LinkId) {
        if let Some(peer) = link.peer
            && self.peers.is_only_silent(peer)
        {
            self.find(now, peer, Indicator::FirstPacket);
        }
    }

    /// The next thing for the gateway to hear.
    #[must_use]
    pub(super) fn poll_indication(&mut self) -> Option<Indication> {
        self.indications.pop_front()
    }

    /// A peer to ask for, if the time has come. `is_missed`: whether somebody has a connection
    /// behind a link.
    #[must_use]
    pub(super) fn poll_question(
        &mut self,
        now: Instant,
        is_missed: impl Fn(LinkId) -> bool,
    ) -> Option<IpAddr> {
        if self.state == LinkState::Down {
            return None;
        }
        let is_missed = |peer| is_missed(link_of(Some(peer)));
        match self.peers.poll_question(now, is_missed)? {
            Question::Ask(peer) => Some(peer),
            Question::GiveUp(peer) => {
                self.find(now, peer, Indicator::Neighbour);
                None
            }
        }
    }

    /// When to call [`Self::poll_question`].
    #[must_use]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            LinkState::Down => None,
            LinkState::Up => self.peers.poll_timeout(),
        }
    }

    fn take_in(&mut self, now: Instant, change: Change) {
        match change {
            Change::Interface {
                index,
                name,
                is_up,
                is_running,
                mtu,
                hardware,
                port_of,
                ..
            } if name == self.name => {
                self.stations.set_own(hardware);
                self.index = Some(index);
                self.port_of = port_of;
                self.is_running = is_running;
                self.mtu = mtu;
                if !is_up {
                    self.routes.switch_off();
                }
            }
            // An interface that is renamed counts as gone: rules and sockets go by the name.
            Change::Interface { index, .. } | Change::InterfaceGone { index }
                if self.index == Some(index) =>
            {
                self.lose_interface();
            }
            Change::Address {
                interface,
                address,
                is_present,
            } if self.index == Some(interface) => {
                let address = (address.address, address.length);
                if is_present {
                    self.addresses.insert(address);
                    self.had_address = true;
                } else {
                    self.addresses.remove(&address);
                }
            }
            Change::Route {
                interface,
                way,
                is_present,
                replaces,
            } => {
                let is_own = self.index == Some(interface);
                match is_present {
                    true => self.routes.add(interface, is_own, way, replaces),
                    false => self.routes.remove(interface, is_own, way),
                }
            }
            Change::Neighbour {
                interface,
                address,
                standing,
                hardware,
            } if self.index == Some(interface) => {
                if let Some(neighbour) = self.stations.set(address, hardware) {
                    let link = link_of(Some(address));
                    self.indications
                        .push_back(Indication::Neighbour(link, neighbour));
                }
                if self.watched.neighbour {
                    self.take_in_neighbour(now, address, standing);
                }
            }
            _ => {}
        }
    }

    fn lose_interface(&mut self) {
        self.index = None;
        self.port_of = None;
        self.is_running = false;
        self.stations.clear();
        self.addresses.clear();
        self.routes.switch_off();
    }

    fn take_in_neighbour(&mut self, now: Instant, address: IpAddr, standing: Standing) {
        match standing {
            Standing::Present => self.find(now, address, Indicator::Neighbour),
            // While the whole link is down, no answer says nothing about one peer.
            Standing::Failed if self.state == LinkState::Up => {
                self.lose(now, address, Indicator::Neighbour);
            }
            Standing::Failed | Standing::Unknown => {}
        }
    }

    /// Tells the state of the whole link if it is another now.
    fn judge_link(&mut self, now: Instant, indicator: Indicator) {
        let lacks_carrier = self.watched.carrier && !self.is_running;
        let lacks_address = self.watched.address && self.had_address && self.addresses.is_empty();
        let lacks_route = self.watched.route && self.routes.is_lacking();
        let state = if lacks_carrier || lacks_address || lacks_route || self.is_notified_down {
            LinkState::Down
        } else {
            LinkState::Up
        };
        if state == self.state {
            return;
        }
        self.state = state;
        if state == LinkState::Up {
            // A peer that did not answer before may have come back with the link.
            for peer in self.peers.said_by(Indicator::Neighbour) {
                self.find_by(now, peer, Indicator::Neighbour, indicator);
            }
        }
        self.tell(None, state, indicator);
    }

    fn lose(&mut self, now: Instant, peer: IpAddr, by: Indicator) {
        if self.peers.lose(now, peer, by) {
            self.tell(Some(peer), LinkState::Down, by);
        }
    }

    fn find(&mut self, now: Instant, peer: IpAddr, by: Indicator) {
        self.find_by(now, peer, by, by);
    }

    /// `by` says no longer that a peer is down, because of what `indicator` says.
    fn find_by(&mut self, now: Instant, peer: IpAddr, by: Indicator, indicator: Indicator) {
        if self.peers.find(now, peer, by) {
            self.tell(Some(peer), LinkState::Up, indicator);
        }
    }

    fn tell(&mut self, peer: Option<IpAddr>, state: LinkState, indicator: Indicator) {
        self.indications.push_back(Indication::Changed(LinkEvent {
            link: link_of(peer),
            state,
            indicator,
        }));
    }

    fn come_back(&mut self, peer: Option<IpAddr>, indicator: Indicator) {
        self.indications
            .push_back(Indication::Returned(link_of(peer), indicator));
    }
}

const fn link_of(peer: Option<IpAddr>) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer,
    }
}

#[cfg(test)]
mod tests;
