//! What the indicators say of the link and of the peers behind it.
//!
//! The link is down while any of them says so. A pure machine: it hears changes of the network,
//! what `outlast notify` says, and which peers packets come from; it tells events for the
//! [`Gateway`](outlast_core::gateway::Gateway), and which neighbours to ask for.

use super::config::Watched;
use outlast_core::link::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_core::time::{Duration, Instant};
use outlast_linux::monitor::{Change, Standing, Way};
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// What the gateway calls the interface.
pub(super) const INTERFACE: InterfaceId = InterfaceId(0);

/// Peers that are asked for at once, at most.
const ASKED: usize = 1024;
/// The longest pause between two questions for a peer that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// After this long nobody asks for a peer any more, and what is sent to it takes its chance.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The state of one interface's link, as far as the host can know it.
#[derive(Debug)]
pub(super) struct Indicators {
    name: String,
    watched: Watched,
    index: Option<InterfaceIndex>,
    is_running: bool,
    mtu: u32,
    addresses: BTreeSet<IpAddr>,
    had_address: bool,
    /// The longest prefix first.
    ways: Vec<Way>,
    is_notified_down: bool,
    state: LinkState,
    /// Peers that are down.
    absent: BTreeMap<IpAddr, Absent>,
    events: VecDeque<LinkEvent>,
}

/// A peer that is down.
#[derive(Clone, Copy, Debug)]
struct Absent {
    since: Instant,
    /// When the kernel is to ask for it again; `None` if somebody is to say that it is back.
    ask_at: Option<Instant>,
}

impl Indicators {
    /// Nothing is known of the interface `name` yet.
    pub(super) fn new(name: &str, watched: Watched) -> Self {
        Self {
            name: name.into(),
            watched,
            index: None,
            is_running: false,
            mtu: 0,
            addresses: BTreeSet::new(),
            had_address: false,
            ways: Vec::new(),
            is_notified_down: false,
            state: LinkState::Up,
            absent: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// The interface's number, if it is there.
    pub(super) const fn index(&self) -> Option<InterfaceIndex> {
        self.index
    }

    /// Longest IP packet in bytes.
    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    pub(super) const fn state(&self) -> LinkState {
        self.state
    }

    /// Peers that are down, and since when.
    pub(super) fn absent(&self) -> impl Iterator<Item = (IpAddr, Instant)> {
        self.absent
            .iter()
            .map(|(peer, absent)| (*peer, absent.since))
    }

    /// The link that leads to `far`: an address on the link itself is a peer, any other one is
    /// reached by way of one.
    pub(super) fn link_to(&self, far: IpAddr) -> LinkId {
        let way = self.ways.iter().find(|way| contains(way.destination, far));
        LinkId {
            interface: INTERFACE,
            peer: way.map(|way| way.gateway.unwrap_or(far)),
        }
    }

    /// Everything is told anew: forgets what was so.
    pub(super) fn handle_snapshot(&mut self, now: Instant, all: Vec<Change>) {
        self.index = None;
        self.is_running = false;
        self.addresses.clear();
        self.ways.clear();
        for change in all {
            self.take_in(now, change);
        }
        self.settle(Indicator::Carrier);
    }

    /// Something has changed.
    pub(super) fn handle_change(&mut self, now: Instant, change: Change) {
        let indicator = match &change {
            Change::Address { .. } => Indicator::Address,
            _ => Indicator::Carrier,
        };
        self.take_in(now, change);
        self.settle(indicator);
    }

    /// Somebody who knows says so: `outlast notify`.
    pub(super) fn handle_notice(&mut self, now: Instant, peer: Option<IpAddr>, state: LinkState) {
        let Some(peer) = peer else {
            let was_up = self.state == LinkState::Up;
            self.is_notified_down = state == LinkState::Down;
            if was_up && state == LinkState::Up {
                // It was away without anybody noticing.
                self.tell(None, LinkState::Down, Indicator::Notify);
                self.tell(None, LinkState::Up, Indicator::Notify);
            }
            self.settle(Indicator::Notify);
            return;
        };
        match state {
            LinkState::Down => self.lose(now, peer, None, Indicator::Notify),
            LinkState::Up if self.absent.contains_key(&peer) => {
                self.find(peer, Indicator::Notify);
            }
            LinkState::Up => {
                self.tell(Some(peer), LinkState::Down, Indicator::Notify);
                self.tell(Some(peer), LinkState::Up, Indicator::Notify);
            }
        }
    }

    /// A packet came from the link.
    pub(super) fn handle_arrival(&mut self, link: LinkId) {
        if let Some(peer) = link.peer
            && self.absent.get(&peer).is_some_and(|a| a.ask_at.is_some())
        {
            self.find(peer, Indicator::FirstPacket);
        }
    }

    /// The next event for the gateway.
    #[must_use]
    pub(super) fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// A peer to ask for, if the time has come.
    #[must_use]
    pub(super) fn poll_question(&mut self, now: Instant) -> Option<IpAddr> {
        if self.state == LinkState::Down {
            return None;
        }
        let is_due = |absent: &Absent| absent.ask_at.is_some_and(|at| at <= now);
        let (peer, absent) = self.absent.iter_mut().find(|(_, absent)| is_due(absent))?;
        let peer = *peer;
        if now.since(absent.since) >= FORGOTTEN_AFTER {
            self.find(peer, Indicator::Neighbour);
            return None;
        }
        let pause = now.since(absent.since) / 10;
        let pause = pause.clamp(Duration::from_secs(1), LONGEST_PAUSE);
        absent.ask_at = Some(now + pause);
        Some(peer)
    }

    /// When to call [`Self::poll_question`].
    #[must_use]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.state == LinkState::Down {
            return None;
        }
        self.absent
            .values()
            .filter_map(|absent| absent.ask_at)
            .min()
    }

    fn take_in(&mut self, now: Instant, change: Change) {
        match change {
            Change::Interface {
                index,
                name,
                is_running,
                mtu,
            } if name == self.name => {
                self.index = Some(index);
                self.is_running = is_running;
                self.mtu = mtu;
            }
            Change::InterfaceGone { index } if self.index == Some(index) => {
                self.index = None;
                self.is_running = false;
                self.addresses.clear();
                self.ways.clear();
            }
            Change::Address {
                interface,
                address,
                is_present,
            } if self.index == Some(interface) => {
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
            } if self.index == Some(interface) => {
                self.ways.retain(|known| *known != way);
                if is_present {
                    self.ways.push(way);
                    self.ways
                        .sort_by_key(|way| std::cmp::Reverse(way.destination.length));
                }
            }
            Change::Neighbour {
                interface,
                address,
                standing,
            } if self.index == Some(interface) && self.watched.neighbour => match standing {
                Standing::Present => self.find(address, Indicator::Neighbour),
                // Without carrier nobody answers, which says nothing of anybody.
                Standing::Failed if self.state == LinkState::Up => {
                    self.lose(now, address, Some(now), Indicator::Neighbour);
                }
                Standing::Failed | Standing::Unknown => {}
            },
            _ => {}
        }
    }

    /// Tells the state of the whole link if it is another now.
    fn settle(&mut self, indicator: Indicator) {
        let lacks_carrier = self.watched.carrier && !self.is_running;
        let lacks_address = self.watched.address && self.had_address && self.addresses.is_empty();
        let state = if lacks_carrier || lacks_address || self.is_notified_down {
            LinkState::Down
        } else {
            LinkState::Up
        };
        if state == self.state {
            return;
        }
        self.state = state;
        if state == LinkState::Up {
            // Whoever did not answer before may have come back with the link.
            let asked = self
                .absent
                .iter()
                .filter(|(_, absent)| absent.ask_at.is_some());
            let asked: Vec<_> = asked.map(|(peer, _)| *peer).collect();
            for peer in asked {
                self.find(peer, indicator);
            }
        }
        self.tell(None, state, indicator);
    }

    fn lose(&mut self, now: Instant, peer: IpAddr, ask_at: Option<Instant>, by: Indicator) {
        let is_known = self.absent.contains_key(&peer);
        if is_known && by != Indicator::Notify || self.absent.len() >= ASKED {
            return;
        }
        self.absent.insert(peer, Absent { since: now, ask_at });
        if !is_known {
            self.tell(Some(peer), LinkState::Down, by);
        }
    }

    fn find(&mut self, peer: IpAddr, by: Indicator) {
        let Some(absent) = self.absent.get(&peer) else {
            return;
        };
        // Who was said to be away is back when somebody says so.
        if absent.ask_at.is_some() || by == Indicator::Notify {
            self.absent.remove(&peer);
            self.tell(Some(peer), LinkState::Up, by);
        }
    }

    fn tell(&mut self, peer: Option<IpAddr>, state: LinkState, indicator: Indicator) {
        let link = LinkId {
            interface: INTERFACE,
            peer,
        };
        self.events.push_back(LinkEvent {
            link,
            state,
            indicator,
        });
    }
}

fn contains(prefix: Prefix, address: IpAddr) -> bool {
    let differs = match (prefix.address, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differs.leading_zeros() >= u32::from(prefix.length)
}

#[cfg(test)]
mod tests;
