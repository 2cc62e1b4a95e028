//! What else may happen on the path.

use super::wiring::inside;
use super::{Daemon, LINK, MOBILE, Path, Transfer, Version, keeps_something};
use outlast_base::time::Instant;
use outlast_linux::monitor::{Change, RouteMonitor};
use outlast_linux::netlink::{Prefix, Route, RouteSocket};
use outlast_linux::{clock, sysctl};
use rustix::event::{PollFd, PollFlags, poll};
use std::net::{IpAddr, Ipv4Addr};

impl Path {
    /// Cuts the link amid `transfer` for so long that it would by itself go on late, and mends it: it
    /// goes on at once, and arrives whole.
    pub(crate) fn cut_amid(&self, daemon: &Daemon, mut transfer: Transfer) {
        self.cut();
        daemon.status_when("something that is held", keeps_something);
        let by_itself = transfer.wait_for_long_timeout();
        let up = self.mend();
        transfer.assert_resumes_before(by_itself, up);
        transfer.finish();
    }

    /// Loses everything between the two ends of the link. Both keep their carrier.
    pub(crate) fn black_hole(&self) {
        inside(&self.air, |route| {
            let index = route.interface("mobile").expect("made");
            route.detach(index).expect("it is a port");
        });
    }

    /// Loses nothing any more; since when.
    pub(crate) fn fill_hole(&self) -> Instant {
        inside(&self.air, |route| {
            let [index, air] = ["mobile", "air"].map(|name| route.interface(name).expect("made"));
            route.attach(index, air).expect("a bridge");
        });
        clock::now()
    }

    /// Takes the carrier from both ends of the link and gives it back, so often. Each change has been
    /// told in the gateway before the next one: on a busy machine the kernel would tell of the last
    /// one only.
    pub(crate) fn flap(&self, times: u32) {
        let monitor = self.gateway.run(RouteMonitor::open).expect("enter");
        let mut monitor = monitor.expect("netlink");
        for _ in 0..times {
            self.cut();
            wait_for_carrier(&mut monitor, false);
            self.mend();
            wait_for_carrier(&mut monitor, true);
        }
    }

    /// The mobile host's default route of IPv4 is by way of `router` now, and no longer by any
    /// other; since when.
    pub(crate) fn route_by(&self, router: &str) -> Instant {
        inside(&self.mobile, |route| {
            let way = default_by(route, router);
            route.replace_route(&way).expect("route");
        });
        clock::now()
    }

    /// The gateway reaches so many addresses, of which no two are side by side, by way of `router`.
    pub(crate) fn route_many_by(&self, router: IpAddr, many: u32) {
        inside(&self.gateway, |route| {
            let interface = route.interface(LINK).expect("made");
            for number in 0..many {
                let address = Ipv4Addr::from_bits(0x0a00_0000 + 2 * number);
                let way = Route {
                    destination: Prefix::of_host(address.into()),
                    interface,
                    gateway: Some(router),
                    congestion_control: None,
                };
                route.add_route(&way).expect("route");
            }
        });
    }

    /// The mobile host has no default route of IPv4, which was by way of `router`.
    pub(crate) fn unroute(&self, router: &str) {
        inside(&self.mobile, |route| {
            let way = default_by(route, router);
            route.remove_route(&way).expect("it is there");
        });
    }

    /// For the mobile host `router` has an Ethernet address that nobody has: what is sent to it is
    /// lost without a word.
    pub(crate) fn pin_nobody(&self, router: &str) {
        inside(&self.mobile, |route| {
            let (index, nobody) = (route.interface(LINK).expect("made"), [2, 0, 0, 0, 0, 9]);
            let address = router.parse().expect("literal");
            route.pin_neighbour(index, address, nobody).expect("pin");
        });
    }

    /// How often the mobile host has asked for a neighbour of IPv6.
    pub(crate) fn questions_of_mobile(&self) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/snmp6").expect("/proc");
        let counters = self.mobile.run(read).expect("enter");
        let mut lines = counters.lines().map(str::split_whitespace);
        let asked = lines.find_map(|mut words| {
            (words.next() == Some("Icmp6OutNeighborSolicits")).then(|| words.next())
        });
        let asked = asked.flatten().expect("a counter of its own");
        asked.parse().expect("a number")
    }

    /// The gateway's kernel gives the mobile host up, and does not ask for it by itself; the mobile
    /// host has no reason to doubt the gateway for the next five minutes.
    pub(crate) fn give_up_mobile(&self, version: Version) {
        const LONG: &str = "600000";
        let protocol = protocol_of(version);
        let trusts = || {
            let name = format!("net.{protocol}.neigh.{LINK}.base_reachable_time_ms");
            sysctl::write(&name, LONG).expect("sysctl");
        };
        self.mobile.run(trusts).expect("enter");
        let asks_nobody = || {
            for what in ["mcast_solicit", "ucast_solicit"] {
                let name = format!("net.{protocol}.neigh.{LINK}.{what}");
                sysctl::write(&name, "0").expect("sysctl");
            }
        };
        self.gateway.run(asks_nobody).expect("enter");
        inside(&self.gateway, |route| {
            let index = route.interface(LINK).expect("made");
            let mobile = MOBILE.of(version);
            route.probe_neighbour_now(index, mobile).expect("it is up");
            let known = route.neighbour_hardware(index, mobile).expect("netlink");
            assert_eq!(known, None, "the gateway still knows where {mobile} is");
        });
    }

    /// The gateway's kernel asks for neighbours again.
    pub(crate) fn ask_again(&self) {
        let asks = || {
            for version in [Version::V4, Version::V6] {
                for what in ["mcast_solicit", "ucast_solicit"] {
                    let name = format!("net.{}.neigh.{LINK}.{what}", protocol_of(version));
                    sysctl::write(&name, "30").expect("sysctl");
                }
            }
        };
        self.gateway.run(asks).expect("enter");
    }

    /// Makes the gateway's kernel itself ask for neighbours as seldom as kernels do.
    pub(crate) fn ask_as_usual(&self) {
        self.ask_every("1000", "3");
    }

    /// Makes the gateway's kernel itself ask for a neighbour once, and again only in ten minutes.
    pub(crate) fn ask_once(&self) {
        self.ask_every("600000", "30");
    }

    fn ask_every(&self, milliseconds: &str, times: &str) {
        let work = || {
            for version in [Version::V4, Version::V6] {
                for (what, value) in [("retrans_time_ms", milliseconds), ("mcast_solicit", times)] {
                    let name = format!("net.{}.neigh.{LINK}.{what}", protocol_of(version));
                    sysctl::write(&name, value).expect("sysctl");
                }
            }
        };
        self.gateway.run(work).expect("enter");
    }
}

const fn protocol_of(version: Version) -> &'static str {
    match version {
        Version::V4 => "ipv4",
        Version::V6 => "ipv6",
    }
}

/// Waits until the kernel tells that the link has carrier, or has none.
fn wait_for_carrier(monitor: &mut RouteMonitor, has: bool) {
    loop {
        match monitor.receive().expect("a sound descriptor") {
            Some(Change::Interface {
                name, is_running, ..
            }) if name == LINK && is_running == has => return,
            Some(_) => {}
            None => {
                let mut descriptors = [PollFd::new(monitor, PollFlags::IN)];
                poll(&mut descriptors, None).expect("poll");
            }
        }
    }
}

fn default_by(route: &mut RouteSocket, router: &str) -> Route<'static> {
    Route {
        destination: Prefix {
            address: "0.0.0.0".parse().expect("literal"),
            length: 0,
        },
        interface: route.interface(LINK).expect("made"),
        gateway: Some(router.parse().expect("literal")),
        congestion_control: None,
    }
}
