//! What the host's routes say of the link: who is reached through which router, and whether the
//! way through the interface is still there.
//!
//! | what happens | what it says |
//! |---|---|
//! | the last route by way of a router is gone, and no other one through the interface leads there | the router is down |
//! | there is such a route again | it is up |
//! | another router on the link takes its place at once | it was away and is back: what is sent again goes by the new one |
//! | the interface had routes and has none; or it had a default route without a router, and has none | the whole link is down |
//! | a default route elsewhere was preferred, and is no longer | the way was away and is back |
//!
//! A default route elsewhere that is preferred takes nothing down: a packet that crosses the
//! interface all the same was sent there by a rule or by its socket, and is to pass.

use outlast_linux::monitor::Way;
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Routers that are remembered although no route leads to them.
const GONE: usize = 256;

/// The routes that concern one interface.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// Of all tables: rules may choose any.
    own: Table,
    /// Default routes of the main table through other interfaces.
    elsewhere: Vec<(InterfaceIndex, Way)>,
    routers: BTreeMap<IpAddr, Router>,
    had_ways: bool,
    had_default_on_link: bool,
    /// Whether a default route elsewhere is preferred, of IPv4 and IPv6.
    is_second: [bool; 2],
}

/// What a change says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RouteChange {
    /// No way leads through this router any more.
    Lost(IpAddr),
    /// One does again.
    Found(IpAddr),
    /// No way leads through this router any more, as another one takes its place.
    Replaced(IpAddr),
    /// The way to this destination is another, or is used again: through this router, or to whoever is on the link.
    Moved(Option<IpAddr>, Prefix),
}

#[derive(Clone, Copy, Debug)]
struct Router {
    /// The widest destination that was reached by way of it.
    destination: Prefix,
    is_there: bool,
}

/// Routes by what they lead to, those of the main table and of the smallest metric first.
#[derive(Debug, Default)]
struct Table {
    /// The longest prefix first.
    by_length: BTreeMap<Reverse<u8>, BTreeMap<IpAddr, Vec<Way>>>,
}

impl Table {
    fn insert(&mut self, way: Way) {
        let length = Reverse(way.destination.length);
        let networks = self.by_length.entry(length).or_default();
        let ways = networks.entry(way.destination.address).or_default();
        if !ways.contains(&way) {
            ways.push(way);
            ways.sort_by_key(|way| (way.table != Way::MAIN, way.metric));
        }
    }

    fn remove(&mut self, destination: Prefix, is_gone: impl Fn(&Way) -> bool) {
        let length = Reverse(destination.length);
        let Some(networks) = self.by_length.get_mut(&length) else {
            return;
        };
        if let Some(ways) = networks.get_mut(&destination.address) {
            ways.retain(|way| !is_gone(way));
            if ways.is_empty() {
                networks.remove(&destination.address);
            }
        }
        if networks.is_empty() {
            self.by_length.remove(&length);
        }
    }

    fn all(&self) -> impl Iterator<Item = &Way> {
        self.by_length.values().flat_map(BTreeMap::values).flatten()
    }

    /// The first way of the longest prefix that contains `address` and is no longer than `longest`.
    fn way_to(&self, address: IpAddr, longest: u8) -> Option<&Way> {
        let wide = self.by_length.range(Reverse(longest)..);
        let mut ways = wide.filter_map(|(length, networks)| {
            let prefix = Prefix {
                address,
                length: length.0,
            };
            networks.get(&prefix.network()?)?.first()
        });
        ways.next()
    }
}

impl Routes {
    /// The way to `far`.
    pub(super) fn way_to(&self, far: IpAddr) -> Option<&Way> {
        self.own.way_to(far, u8::MAX)
    }

    /// Where the interface's routes lead, the longest prefix first.
    pub(super) fn ways(&self) -> Vec<Way> {
        self.own.all().copied().collect()
    }

    /// How many ways that is.
    pub(super) fn count_ways(&self) -> usize {
        self.own.all().count()
    }

    /// Whether there is no way through the interface any more, or no default route where one led
    /// to whoever is on the link.
    pub(super) fn is_lacking(&self) -> bool {
        let has_any = self.all().next().is_some();
        let has_default = self.all().any(|way| way.destination.length == 0);
        self.had_ways && !has_any || self.had_default_on_link && !has_default
    }

    /// Everything is told anew: forgets the routes, but neither the routers nor what there was.
    pub(super) fn clear(&mut self) {
        self.own = Table::default();
        self.elsewhere.clear();
    }

    /// The interface was switched off, or is gone: the kernel has removed its routes.
    pub(super) fn switch_off(&mut self) {
        self.own = Table::default();
    }

    /// A route is there now. `is_own`: through the interface.
    pub(super) fn add(
        &mut self,
        interface: InterfaceIndex,
        is_own: bool,
        way: Way,
        replaces: bool,
    ) {
        if replaces {
            let is_same = move |other: &Way| {
                (other.destination, other.table, other.metric)
                    == (way.destination, way.table, way.metric)
            };
            self.own.remove(way.destination, is_same);
            self.elsewhere.retain(|(_, other)| !is_same(other));
        }
        if is_own {
            self.own.insert(way);
        } else if is_main_default(&way) {
            self.elsewhere.retain(|known| *known != (interface, way));
            self.elsewhere.push((interface, way));
        }
    }

    /// A route is there no more.
    pub(super) fn remove(&mut self, interface: InterfaceIndex, is_own: bool, way: Way) {
        if is_own {
            let is_gone = move |other: &Way| *other == way;
            self.own.remove(way.destination, is_gone);
        } else {
            self.elsewhere.retain(|known| *known != (interface, way));
        }
    }

    /// What is otherwise than when it was asked last.
    pub(super) fn poll_changes(&mut self) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        let mut present = BTreeMap::<IpAddr, Prefix>::new();
        let mut had_default_on_link = self.had_default_on_link;
        let mut has_any = false;
        for way in self.all() {
            has_any = true;
            let Some(gateway) = way.gateway else {
                had_default_on_link |= way.destination.length == 0;
                continue;
            };
            let widest = present.entry(gateway).or_insert(way.destination);
            if way.destination.length < widest.length {
                *widest = way.destination;
            }
        }
        self.had_ways |= has_any;
        self.had_default_on_link = had_default_on_link;
        for (gateway, destination) in &present {
            let router = self.routers.entry(*gateway).or_insert(Router {
                destination: *destination,
                is_there: true,
            });
            router.destination = *destination;
            if !std::mem::replace(&mut router.is_there, true) {
                changes.push(RouteChange::Found(*gateway));
            }
        }
        let absent = self
            .routers
            .iter()
            .filter(|(at, _)| !present.contains_key(at));
        let absent: Vec<_> = absent.map(|(at, router)| (*at, *router)).collect();
        let mut gone = 0;
        for (gateway, router) in absent {
            let to = router.destination;
            let instead = self.own.way_to(to.address, to.length).copied();
            gone += 1;
            let change = match (router.is_there, instead) {
                (true, Some(_)) => Some(RouteChange::Replaced(gateway)),
                (true, None) => Some(RouteChange::Lost(gateway)),
                (false, Some(_)) => Some(RouteChange::Found(gateway)),
                // So many routers have gone that this one is not waited for any more.
                (false, None) if gone > GONE => Some(RouteChange::Found(gateway)),
                (false, None) => None,
            };
            changes.extend(change);
            // Those who went by way of it go by this one now.
            changes.extend(instead.map(|way| RouteChange::Moved(way.gateway, to)));
            match change {
                Some(RouteChange::Lost(_)) => {
                    let router = self.routers.get_mut(&gateway);
                    router.expect("it was listed").is_there = false;
                }
                Some(_) => {
                    self.routers.remove(&gateway);
                }
                None => {}
            }
        }
        changes.extend(self.compare_defaults());
        changes
    }

    /// A default route elsewhere that is not preferred any more.
    fn compare_defaults(&mut self) -> Vec<RouteChange> {
        let mut changes = Vec::new();
        for (family, any) in ["0.0.0.0", "::"].into_iter().enumerate() {
            let any = any.parse().expect("a literal address");
            let own = self.own.way_to(any, 0).filter(|way| is_main_default(way));
            let better = self.elsewhere.iter().any(|(_, way)| {
                way.destination.address == any && own.is_some_and(|own| way.metric < own.metric)
            });
            let was_second = std::mem::replace(&mut self.is_second[family], better);
            if was_second && !better {
                changes.extend(own.map(|own| RouteChange::Moved(own.gateway, own.destination)));
            }
        }
        changes
    }

    fn all(&self) -> impl Iterator<Item = &Way> {
        let is_beyond = |way: &&Way| !is_of_the_link(way.destination.address);
        self.own.all().filter(is_beyond)
    }
}

fn is_main_default(way: &Way) -> bool {
    way.table == Way::MAIN && way.destination.length == 0
}

/// Every interface has such routes, whatever it leads to.
fn is_of_the_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_link_local(),
        IpAddr::V6(address) => address.is_multicast() || address.is_unicast_link_local(),
    }
}
