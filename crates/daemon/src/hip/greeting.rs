//! Has routers know where this host's new addresses are.
//!
//! A router that has looked for an address before the host had it asks again only a second later, and holds back or
//! drops what comes for the address meanwhile. A question of the host's own, in the name of the address, tells the
//! router at once (RFC 826; RFC 4861, section 7.2.3). The kernel asks only if it does not know the router.

use outlast_linux::monitor::Change;
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::solicitation::{ArpParty, ArpSolicitor, Solicitor};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

/// Addresses that are made known to a router each, at most.
const MOST_GREETINGS: usize = 32;

/// An address of this host, and a router on the same link.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Greeting {
    interface: u32,
    own: IpAddr,
    router: IpAddr,
}

/// Asks routers for themselves, in the name of each new address.
pub(super) struct Greeter {
    /// `None` where the kernel cannot.
    arp: Option<ArpSolicitor>,
    /// What was sent and is still so.
    greeted: BTreeSet<Greeting>,
}

impl Greeter {
    /// One for the network namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            arp: ArpSolicitor::open(0)?,
            greeted: BTreeSet::new(),
        })
    }

    /// Asks the routers that have not heard of these addresses of this host, of all that `surroundings` shows.
    pub(super) fn greet(&mut self, surroundings: &[Change], own: &[IpAddr]) {
        let hardware: BTreeMap<u32, (&str, [u8; 6])> = surroundings
            .iter()
            .filter_map(|change| match change {
                Change::Interface {
                    index,
                    name,
                    hardware: Some(hardware),
                    ..
                } => Some((index.0, (name.as_str(), *hardware))),
                _ => None,
            })
            .collect();
        let due = due(surroundings, own);
        for greeting in due.difference(&self.greeted) {
            let Some(&(name, hardware)) = hardware.get(&greeting.interface) else {
                continue;
            };
            if let Err(error) = self.ask(greeting, name, hardware) {
                // Nothing is lost but time.
                tracing::debug!(?greeting, "cannot ask for a router: {error}");
            }
        }
        self.greeted = due;
    }

    fn ask(&self, greeting: &Greeting, name: &str, hardware: [u8; 6]) -> io::Result<bool> {
        let index = InterfaceIndex(greeting.interface);
        match (greeting.own, greeting.router, &self.arp) {
            (IpAddr::V4(address), IpAddr::V4(router), Some(arp)) => {
                arp.ask(index, ArpParty { address, hardware }, router)
            }
            (IpAddr::V6(own), IpAddr::V6(router), _) => {
                Solicitor::new(name, index, hardware, 0).ask(own, router)
            }
            _ => Ok(false),
        }
    }
}

/// Each address of this host with each router of its family on its link.
fn due(surroundings: &[Change], own: &[IpAddr]) -> BTreeSet<Greeting> {
    let addresses = surroundings.iter().filter_map(|change| match change {
        Change::Address {
            interface,
            address,
            is_present: true,
        } if own.contains(&address.address) => Some((interface.0, address.address)),
        _ => None,
    });
    let routers: BTreeSet<(u32, IpAddr)> = surroundings
        .iter()
        .filter_map(|change| match change {
            Change::Route {
                interface,
                way,
                is_present: true,
                ..
            } => Some((interface.0, way.gateway?)),
            _ => None,
        })
        .collect();
    let greetings = addresses.flat_map(|(interface, own)| {
        let routers = routers.iter();
        let near = routers
            .filter(move |(at, router)| *at == interface && router.is_ipv4() == own.is_ipv4());
        near.map(move |&(_, router)| Greeting {
            interface,
            own,
            router,
        })
    });
    greetings.take(MOST_GREETINGS).collect()
}
