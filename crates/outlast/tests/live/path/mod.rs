//! A fixed host, a gateway and a mobile host in network namespaces of their own; between gateway
//! and mobile a switch whose ports go up and down.

pub(crate) mod at_once;
pub(crate) mod copier;
mod daemon;
pub(crate) mod metrics;
pub(crate) mod told;
mod transfer;
mod trouble;
pub(crate) mod tunnel;
pub(crate) mod wire;
pub(crate) mod wiring;

use aya::programs::{SchedClassifier, TcAttachType};
pub(crate) use daemon::{Daemon, Over, try_with};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{Prefix, Route, RouteSocket};
use outlast_linux::sysctl;
pub(crate) use outlast_skip::skip;
use rustix::fd::AsFd;
use serde_json::Value;
use std::net::IpAddr;
use std::process::Command;
pub(crate) use transfer::{Gate, Transfer, acknowledged, connected, connected_at, is_acknowledged};
use wiring::{inside, ip, switch};

/// The gateway's interface towards the mobile host, and the mobile host's own.
pub(crate) const LINK: &str = "link0";

/// The four places. They are gone when it is dropped.
pub(crate) struct Path {
    pub(crate) fixed: Namespace,
    pub(crate) gateway: Namespace,
    /// What is between gateway and mobile host.
    air: Namespace,
    pub(crate) mobile: Namespace,
    /// The queues of both ends of the link.
    queues: u32,
}

/// Addresses of one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    v4: &'static str,
    v6: &'static str,
}

pub(crate) const FIXED: Addresses = Addresses {
    v4: "192.0.2.2",
    v6: "2001:db8:1::2",
};
const INNER: Addresses = Addresses {
    v4: "192.0.2.1",
    v6: "2001:db8:1::1",
};
pub(crate) const OUTER: Addresses = Addresses {
    v4: "198.51.100.1",
    v6: "2001:db8:2::1",
};
pub(crate) const MOBILE: Addresses = Addresses {
    v4: "198.51.100.2",
    v6: "2001:db8:2::2",
};

/// Which version of IP a test uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Addresses {
    pub(crate) fn of(self, version: Version) -> IpAddr {
        let text = match version {
            Version::V4 => self.v4,
            Version::V6 => self.v6,
        };
        text.parse().expect("literal")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an outage lasts, and a paced sender waits, for a time and nothing else"
)]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// By far longer than anything takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often something is looked at of which nobody tells.
pub(crate) const OFTEN: Duration = Duration::from_millis(50);

/// Whether something of a connection that the daemon's status lists is acknowledged in the mobile's
/// name.
pub(crate) fn is_ahead(status: &Value) -> bool {
    let flows = status["flow_list"].as_array().expect("it was asked for");
    flows.iter().any(|flow| flow["acknowledged_ahead"] == true)
}

/// Whether a daemon's status says that something of a connection is kept.
pub(crate) fn keeps_something(status: &Value) -> bool {
    status["held_bytes"].as_u64() > Some(0)
}

/// Looks until there is something to be seen, which must come.
#[track_caller]
pub(crate) fn seen<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    seen_within_patience(look).unwrap_or_else(|waited| panic!("{what}: not after {waited:?}"))
}

/// Looks until there is something to be seen; how long that was in vain.
fn seen_within_patience<T>(mut look: impl FnMut() -> Option<T>) -> Result<T, Duration> {
    let began = clock::now();
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        let waited = clock::now().since(began);
        if waited >= PATIENCE {
            return Err(waited);
        }
        wait(OFTEN);
    }
}

/// Waits until it is so, as it must come to be.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    seen(what, || is_so().then_some(()));
}

/// A question for a neighbour may be lost while the other end is not quite up yet, and is asked
/// again after a second. That second would be the kernel's, not the gateway's: here it is a tenth,
/// and the kernel asks as long as it would have.
fn ask_again_soon() {
    for protocol in ["ipv4", "ipv6"] {
        for (what, value) in [("retrans_time_ms", "100"), ("mcast_solicit", "30")] {
            let name = format!("net.{protocol}.neigh.{LINK}.{what}");
            sysctl::write(&name, value).expect("sysctl");
        }
    }
}

impl Path {
    /// The whole path, all links up; `None`, with the reason, where this machine does not allow
    /// it.
    pub(crate) fn new() -> Option<Self> {
        Self::with_queues(1)
    }

    /// The whole path, with `queues` queues at both ends of the link.
    pub(crate) fn with_queues(queues: u32) -> Option<Self> {
        let namespace = || Namespace::new().inspect_err(|error| skip(error));
        let path = Self {
            fixed: namespace().ok()?,
            gateway: namespace().ok()?,
            air: namespace().ok()?,
            mobile: namespace().ok()?,
            queues,
        };
        inside(&path.gateway, |route| {
            route
                .add_veth("fixed0", "eth0", Some(path.fixed.as_fd()))
                .expect("veth");
            sysctl::write("net.ipv4.ip_forward", "1").expect("sysctl");
            sysctl::write("net.ipv6.conf.all.forwarding", "1").expect("sysctl");
            equip(route, "fixed0", INNER, None);
        });
        inside(&path.fixed, |route| {
            equip(route, "eth0", FIXED, Some(INNER));
        });
        path.join();
        Some(path)
    }

    /// Makes the link, and what is between its ends.
    fn join(&self) {
        for (namespace, port) in [(&self.gateway, "gateway"), (&self.mobile, "mobile")] {
            inside(namespace, |route| {
                route
                    .add_veth_with_queues(LINK, port, Some(self.air.as_fd()), self.queues)
                    .expect("veth");
                ask_again_soon();
            });
        }
        inside(&self.air, |route| {
            route.add_bridge("air").expect("bridge");
            let bridge = route.interface("air").expect("made");
            switch(route, "air", true);
            for port in ["gateway", "mobile"] {
                let index = route.interface(port).expect("made");
                route.attach(index, bridge).expect("port");
                switch(route, port, true);
            }
        });
        inside(&self.gateway, |route| equip(route, LINK, OUTER, None));
        inside(&self.mobile, |route| {
            equip(route, LINK, MOBILE, Some(OUTER));
        });
    }

    /// Takes the link away, and both hosts' interfaces with it.
    pub(crate) fn remove_link(&mut self) {
        self.air = Namespace::new().expect("as before");
        for namespace in [&self.gateway, &self.mobile] {
            let is_there = || {
                RouteSocket::open()
                    .expect("netlink")
                    .interface(LINK)
                    .is_ok()
            };
            while namespace.run(is_there).expect("enter") {
                wait(Duration::from_millis(10));
            }
        }
    }

    /// Makes it anew; when it was there.
    pub(crate) fn restore_link(&self) -> Instant {
        self.join();
        clock::now()
    }

    /// Another host on the link, with the mobile host's addresses, while that has no carrier.
    pub(crate) fn stranger(&self) -> Namespace {
        let stranger = Namespace::new().expect("as before");
        inside(&stranger, |route| {
            route
                .add_veth(LINK, "stranger", Some(self.air.as_fd()))
                .expect("veth");
            equip(route, LINK, MOBILE, Some(OUTER));
        });
        inside(&self.air, |route| {
            let bridge = route.interface("air").expect("made");
            let port = route.interface("stranger").expect("made");
            route.attach(port, bridge).expect("port");
            switch(route, "stranger", true);
        });
        stranger
    }

    /// Takes the carrier from both ends of the link.
    pub(crate) fn cut(&self) {
        self.switch(&["gateway", "mobile"], false);
    }

    /// Gives the carrier back to both ends; when they had it.
    pub(crate) fn mend(&self) -> Instant {
        self.switch(&["mobile", "gateway"], true)
    }

    /// Takes the carrier from the mobile host alone: the gateway's end notices nothing.
    pub(crate) fn lose_mobile(&self) {
        self.switch(&["mobile"], false);
    }

    /// Gives it back.
    pub(crate) fn find_mobile(&self) -> Instant {
        self.switch(&["mobile"], true)
    }

    /// Takes the carrier from the gateway's end alone: the mobile host notices nothing.
    pub(crate) fn lose_gateway(&self) {
        self.switch(&["gateway"], false);
    }

    /// Gives it back.
    pub(crate) fn find_gateway(&self) -> Instant {
        self.switch(&["gateway"], true)
    }

    /// Has the mobile host know the gateway's hardware address for good: a kernel that asks for it in vain takes the
    /// back-offs of its connections back by itself.
    pub(crate) fn introduce_gateway(&self) {
        const HARDWARE: &str = "02:00:00:00:00:01";
        ip(
            &self.gateway,
            &format!("link set {LINK} address {HARDWARE}"),
        );
        let router = OUTER.of(Version::V4);
        let known = format!("neigh replace {router} lladdr {HARDWARE} dev {LINK} nud permanent");
        ip(&self.mobile, &known);
    }

    /// Makes the gateway ask for silent neighbours after a second or two instead of half a minute.
    pub(crate) fn doubt_neighbours_soon(&self) {
        let work = || {
            for (name, value) in [
                ("base_reachable_time_ms", "1000"),
                ("delay_first_probe_time", "1"),
            ] {
                let name = format!("net.ipv4.neigh.{LINK}.{name}");
                sysctl::write(&name, value).expect("sysctl");
            }
        };
        self.gateway.run(work).expect("enter");
    }

    /// The processes on the gateway, by number and name.
    pub(crate) fn inhabitants(&self) -> Vec<String> {
        let place = format!("net:[{}]", self.gateway.id().expect("a namespace").0);
        let all = std::fs::read_dir("/proc").expect("procfs");
        let processes = all.filter_map(|entry| Some(entry.ok()?.path()));
        let here = processes.filter(|process| {
            // One that has ended meanwhile is nowhere.
            std::fs::read_link(process.join("ns/net")).is_ok_and(|net| net == *place)
        });
        here.map(|process| {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            format!("{}: {}", process.display(), name.trim())
        })
        .collect()
    }

    /// Waits until no process is on the gateway.
    #[track_caller]
    pub(crate) fn until_deserted(&self) {
        let began = clock::now();
        loop {
            let inhabitants = self.inhabitants();
            if inhabitants.is_empty() {
                return;
            }
            let waited = clock::now().since(began);
            assert!(waited < PATIENCE, "after {waited:?}: {inhabitants:?}");
            wait(OFTEN);
        }
    }

    /// How many eBPF programs traffic control has at the gateway's end of the link.
    pub(crate) fn programs(&self) -> usize {
        self.programs_at(LINK)
    }

    /// How many it has at another interface of the gateway's.
    pub(crate) fn programs_at(&self, interface: &str) -> usize {
        let count = || {
            [TcAttachType::Ingress, TcAttachType::Egress]
                .map(|way| match SchedClassifier::query_tcx(interface, way) {
                    Ok((_, programs)) => programs.len(),
                    // Before Linux 6.6 programs are filters.
                    Err(_) => filters(interface, way),
                })
                .iter()
                .sum()
        };
        self.gateway.run(count).expect("enter")
    }

    fn switch(&self, ports: &[&str], up: bool) -> Instant {
        inside(&self.air, |route| {
            for port in ports {
                switch(route, port, up);
            }
        });
        clock::now()
    }
}

/// Filters of traffic control at an interface of the calling thread's namespace.
fn filters(interface: &str, way: TcAttachType) -> usize {
    let side = match way {
        TcAttachType::Ingress => "ingress",
        _ => "egress",
    };
    let list = Command::new("tc")
        .args(["filter", "show", "dev", interface, side])
        .output()
        .expect("tc");
    let list = String::from_utf8_lossy(&list.stdout);
    list.matches(" handle ").count()
}

/// Gives an interface its addresses, switches it on, and sends all else to `router`.
fn equip(route: &mut RouteSocket, name: &str, own: Addresses, router: Option<Addresses>) {
    let interface = route.interface(name).expect("made");
    for (version, length) in [(Version::V4, 24), (Version::V6, 64)] {
        let address = own.of(version);
        let prefix = Prefix { address, length };
        route.add_address(interface, prefix).expect("address");
    }
    switch(route, name, true);
    for version in [Version::V4, Version::V6] {
        let Some(router) = router else { continue };
        let gateway = router.of(version);
        let address = match version {
            Version::V4 => "0.0.0.0",
            Version::V6 => "::",
        };
        let destination = Prefix {
            address: address.parse().expect("literal"),
            length: 0,
        };
        let way = Route {
            destination,
            interface,
            gateway: Some(gateway),
            congestion_control: None,
        };
        route.add_route(&way).expect("route");
    }
}
