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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::await_change;
    use outlast_linux::monitor::{self, RouteMonitor, Standing};
    use outlast_linux::namespace::Namespace;
    use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
    use outlast_linux::sysctl;
    use rustix::fd::AsFd;
    use std::net::UdpSocket;
    use std::process::Command;

    const OWN: [&str; 2] = ["192.0.2.7", "2001:db8:2::7"];
    const ROUTER: [&str; 2] = ["192.0.2.1", "2001:db8:2::1"];

    /// Switches `name` on, which looks for no twins and asks for neighbours once a minute.
    fn switch_on(name: &str) {
        let write = |name: String, value| sysctl::write(&name, value).expect("sysctl");
        write(format!("net.ipv6.conf.{name}.accept_dad"), "0");
        for family in ["ipv4", "ipv6"] {
            let key = format!("net.{family}.neigh.{name}.retrans_time_ms");
            write(key, "60000");
        }
        let mut routes = RouteSocket::open().expect("netlink");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        let index = routes.interface(name).expect("made");
        routes.configure(index, &up).expect("up");
    }

    fn give(name: &str, addresses: [&str; 2]) {
        let mut routes = RouteSocket::open().expect("netlink");
        let index = routes.interface(name).expect("made");
        for (address, length) in addresses.into_iter().zip([24, 64]) {
            let address = address.parse().expect("literal");
            let prefix = Prefix { address, length };
            routes.add_address(index, prefix).expect("address");
        }
    }

    /// The kernel of this thread's namespace takes packets for these addresses.
    fn await_taken(addresses: &[IpAddr]) {
        let mut heard = RouteMonitor::open().expect("netlink");
        for &address in addresses {
            if !monitor::takes(address).expect("netlink") {
                await_change(
                    &mut heard,
                    |change| matches!(change, Change::Local { address: it, is_present: true } if *it == address),
                );
            }
        }
    }

    /// A router that has looked for an address in vain would look again a minute later.
    #[test]
    fn a_router_that_has_asked_in_vain_learns_of_an_address_at_once() {
        let (Ok(near), Ok(far)) = (Namespace::new(), Namespace::new()) else {
            return outlast_skip::skip("no namespace");
        };
        let own: Vec<IpAddr> = OWN.map(|text| text.parse().expect("literal")).into();
        let there = || {
            let mut routes = RouteSocket::open().expect("netlink");
            let made = routes.add_veth("near0", "far0", Some(far.as_fd()));
            made.expect("veth");
            switch_on("near0");
        };
        near.run(there).expect("enter");
        let asked = far.run(|| {
            switch_on("far0");
            give("far0", ROUTER);
            let heard = RouteMonitor::open().expect("netlink");
            await_taken(&ROUTER.map(|text| text.parse().expect("literal")));
            for &address in &own {
                let socket = UdpSocket::bind(match address {
                    IpAddr::V4(_) => "0.0.0.0:0",
                    IpAddr::V6(_) => "[::]:0",
                });
                let sent = socket.expect("a socket").send_to(b"?", (address, 9));
                assert_eq!(sent.expect("it waits for the neighbour"), 1);
            }
            heard
        });
        let mut heard = asked.expect("enter");
        let greet = || {
            give("near0", OWN);
            for router in ROUTER {
                let mut ip = Command::new("ip");
                ip.args(["route", "add", "default", "via", router, "dev", "near0"]);
                assert!(ip.status().expect("it runs").success());
            }
            await_taken(&own);
            let surroundings = monitor::snapshot().expect("netlink");
            Greeter::open().expect("sockets").greet(&surroundings, &own);
        };
        let began = outlast_linux::clock::now();
        near.run(greet).expect("enter");
        let mut missing: BTreeSet<IpAddr> = own.iter().copied().collect();
        await_change(&mut heard, |change| {
            if let Change::Neighbour {
                address,
                standing: Standing::Present,
                ..
            } = change
            {
                missing.remove(address);
            }
            missing.is_empty()
        });
        let took = outlast_linux::clock::now().since(began);
        assert!(took.as_secs() < 30, "{took:?}");
    }
}
