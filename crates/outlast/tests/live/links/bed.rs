//! Two routers and a host behind each, and between the routers a switch where the link is cut.
//!
//! Each router reaches the other one by an interface named [`LINK`]; a test says of which kind.

use crate::path::wiring::{inside, switch};
use crate::path::{LINK, skip, until};
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::{process, sysctl};
use rustix::fd::AsFd;
use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

/// The interface of each router's that leads to the switch. It carries [`LINK`], or is it.
pub(super) const UNDERLAY: &str = "under0";
/// The routers' addresses for each other: the near one's, and the far one's.
pub(super) const ROUTERS: [&str; 2] = ["198.51.100.1", "198.51.100.2"];
/// Their addresses of interfaces that carry a tunnel.
pub(super) const UNDERLAYS: [&str; 2] = ["10.3.1.1", "10.3.1.2"];
/// Their Ethernet addresses where they have been introduced.
pub(super) const HARDWARE: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
/// The beginnings of their hosts' addresses. The router is the first in its network, the host the second.
pub(super) const NETWORKS: [&str; 2] = ["192.0.2", "203.0.113"];
/// The switch's ports.
pub(super) const PORTS: [&str; 2] = ["near", "far"];
const SWITCH: &str = "switch";
/// Delay and rate of each port, towards its router.
const CALM: &str = "delay 20ms rate 10mbit limit 100";

/// A way for the link to go away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outage {
    /// The near router's interface loses its carrier; the far router's does not.
    Carrier,
    /// Frames are lost, and no interface shows it.
    Silence,
}

impl Outage {
    pub(super) const BOTH: [Self; 2] = [Self::Carrier, Self::Silence];
}

/// Commands that give both routers [`LINK`], for `ip -batch`.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    near: String,
    far: String,
    /// Delay, rate and faults of each of the switch's ports, as `tc` has them.
    air: &'static str,
    /// The interface that leads to the switch: [`LINK`] itself where there is nothing below it.
    port: &'static str,
    /// The interface that leads to the other router: [`LINK`] itself where there is nothing above it.
    way: &'static str,
    /// The interface with Ethernet addresses, and the routers' addresses on it.
    ethernet: (&'static str, [&'static str; 2]),
    /// The routers know each other's Ethernet addresses for good. One that asks for the other in vain refuses packets,
    /// whereupon the senders' kernels take back their back-offs: that hides a stall.
    are_introduced: bool,
}

impl Kind {
    /// A cable.
    pub(super) fn cable() -> Self {
        Self {
            near: String::new(),
            far: String::new(),
            air: CALM,
            port: LINK,
            way: LINK,
            ethernet: (LINK, ROUTERS),
            are_introduced: true,
        }
    }

    /// Changes the queueing discipline of the switch's ports.
    pub(super) fn with_air(self, air: &'static str) -> Self {
        Self { air, ..self }
    }

    /// Lets the routers resolve each other's addresses.
    pub(super) fn among_strangers(self) -> Self {
        Self {
            are_introduced: false,
            ..self
        }
    }

    /// A device on top of the cable, made by the same commands at both ends.
    pub(super) fn device(commands: &str) -> Self {
        Self {
            near: commands.to_owned(),
            far: commands.to_owned(),
            port: UNDERLAY,
            ..Self::cable()
        }
    }

    /// A tunnel through the cable. In `commands`, `HERE` is the router's own address and `THERE` the other one's.
    pub(super) fn tunnel(commands: &str) -> Self {
        Self::through(UNDERLAY, LINK, commands)
    }

    /// The tunnel `way` through a cable that is [`LINK`]. In `commands`, as above.
    pub(super) fn tunnel_above(way: &'static str, commands: &str) -> Self {
        Self::through(LINK, way, commands)
    }

    /// The tunnel `way` through the cable `port`.
    fn through(port: &'static str, way: &'static str, commands: &str) -> Self {
        let end = |here: &str, there: &str| {
            let tunnel = commands.replace("THERE", there).replace("HERE", here);
            format!("address add {here}/24 dev {port}\n{tunnel}")
        };
        let [near, far] = UNDERLAYS;
        Self {
            near: end(near, far),
            far: end(far, near),
            port,
            way,
            ethernet: (port, UNDERLAYS),
            ..Self::cable()
        }
    }

    /// Commands that give a router, 0 or 1, all that it needs to reach the other one and its hosts.
    fn commands(&self, end: usize) -> String {
        let other = 1 - end;
        let (port, way) = (self.port, self.way);
        let made = [&self.near, &self.far][end];
        let mut commands = format!("link set {port} up\n{made}");
        if self.are_introduced {
            let (interface, addresses) = self.ethernet;
            let known = format!(
                "link set {interface} address {}\n\
                 neigh replace {} lladdr {} dev {interface} nud permanent\n",
                HARDWARE[end], addresses[other], HARDWARE[other]
            );
            commands.push_str(&known);
        }
        commands.push_str(&settle(way, &format!("{}/24", ROUTERS[end])));
        let route = format!(
            "route add {}.0/24 via {} dev {way}\n",
            NETWORKS[other], ROUTERS[other]
        );
        commands + &route
    }
}

/// Hosts, routers and the switch. They are gone when it is dropped.
pub(super) struct Bed {
    pub(super) near_host: Namespace,
    pub(super) near_router: Namespace,
    pub(super) air: Namespace,
    pub(super) far_router: Namespace,
    pub(super) far_host: Namespace,
    kind: Kind,
}

impl Bed {
    /// All of it, the link up; `None`, with the reason, where this machine lacks something.
    pub(super) fn new(kind: Kind) -> Option<Self> {
        let bed = Self {
            near_host: namespace()?,
            near_router: namespace()?,
            air: namespace()?,
            far_router: namespace()?,
            far_host: namespace()?,
            kind,
        };
        inside(&bed.air, |route| {
            route.add_bridge(SWITCH).expect("bridge");
            switch(route, SWITCH, true);
        });
        for (end, (router, host)) in bed.routers().into_iter().zip(bed.hosts()).enumerate() {
            let network = NETWORKS[end];
            join(router, "lan0", host, "eth0");
            let settled = settle("eth0", &format!("{network}.2/24"));
            ip(
                host,
                &format!("{settled}route add default via {network}.1\n"),
            )?;
            bed.plug_in(router, PORTS[end], bed.kind.port)?;
            let settled = settle("lan0", &format!("{network}.1/24"));
            ip(router, &(settled + &bed.kind.commands(end)))?;
        }
        Some(bed)
    }

    pub(super) fn hosts(&self) -> [&Namespace; 2] {
        [&self.near_host, &self.far_host]
    }

    pub(super) fn routers(&self) -> [&Namespace; 2] {
        [&self.near_router, &self.far_router]
    }

    /// Joins a router's new interface to the switch by a port.
    pub(super) fn plug_in(&self, router: &Namespace, port: &str, interface: &str) -> Option<()> {
        join(router, interface, &self.air, port);
        inside(&self.air, |route| {
            let [port_index, bridge] =
                [port, SWITCH].map(|name| route.interface(name).expect("made"));
            route.attach(port_index, bridge).expect("port");
            switch(route, port, true);
        });
        let queue = format!("qdisc replace dev {port} root netem {}\n", self.kind.air);
        batch(&self.air, "tc", &queue)
    }

    /// Address of the far host.
    pub(super) fn far_address() -> IpAddr {
        format!("{}.2", NETWORKS[1]).parse().expect("literal")
    }

    /// Takes the link away.
    pub(super) fn cut(&self, how: Outage) {
        self.set(how, false);
    }

    /// Gives it back; when that was.
    pub(super) fn mend(&self, how: Outage) -> Instant {
        self.set(how, true);
        clock::now()
    }

    fn set(&self, how: Outage, up: bool) {
        let device = match how {
            Outage::Carrier => PORTS[0],
            // A bridge that is off passes nothing on, and its ports keep their carriers.
            Outage::Silence => SWITCH,
        };
        inside(&self.air, |route| switch(route, device, up));
    }

    /// Takes the near router's interface away, as that of a modem which is unplugged.
    pub(super) fn unplug(&self) {
        let port = self.kind.port;
        ip(&self.near_router, &format!("link delete {port}\n")).expect("it was there");
        let is_gone = || {
            let mut route = RouteSocket::open().expect("netlink");
            route.interface(PORTS[0]).is_err()
        };
        until("the other end's departure", || {
            self.air.run(is_gone).expect("enter")
        });
    }

    /// Makes it anew, with its address and its route; when it has all of them.
    pub(super) fn plug_in_again(&self) -> Option<Instant> {
        self.plug_in(&self.near_router, PORTS[0], self.kind.port)?;
        ip(&self.near_router, &self.kind.commands(0))?;
        Some(clock::now())
    }
}

/// A namespace with the settings that its test needs; `None`, with the reason, where this machine does not allow one.
pub(super) fn namespace() -> Option<Namespace> {
    let namespace = Namespace::new().inspect_err(|error| skip(error)).ok()?;
    inside(&namespace, |route| {
        for (name, value) in [
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.default.rp_filter", "0"),
            ("net.ipv4.tcp_congestion_control", "cubic"),
            ("net.ipv6.conf.all.disable_ipv6", "1"),
            ("net.ipv6.conf.default.disable_ipv6", "1"),
        ] {
            sysctl::write(name, value).expect("sysctl");
        }
        switch(route, "lo", true);
    });
    Some(namespace)
}

/// Joins two namespaces by a cable between new interfaces.
pub(super) fn join(one: &Namespace, interface: &str, other: &Namespace, its: &str) {
    inside(one, |route| {
        let cable = route.add_veth(interface, its, Some(other.as_fd()));
        cable.expect("veth");
    });
}

/// Commands that give an interface its address and switch it on.
pub(super) fn settle(interface: &str, address: &str) -> String {
    format!("address add {address} dev {interface}\nlink set {interface} up\n")
}

/// Gives `ip` commands, one a line; `None`, with the reason, where this machine lacks something.
pub(super) fn ip(namespace: &Namespace, commands: &str) -> Option<()> {
    batch(namespace, "ip", commands)
}

/// Gives a program of iproute2's commands, one a line.
pub(super) fn batch(namespace: &Namespace, program: &str, commands: &str) -> Option<()> {
    let done = run(namespace, program, &["-batch", "-"], commands);
    if let Err(why) = &done {
        skip(format!("{program}: {why}in\n{commands}"));
    }
    done.ok()
}

/// Runs a program in a namespace, with something to read; its complaint if it fails.
pub(super) fn run(
    namespace: &Namespace,
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<(), String> {
    said(namespace, program, arguments, input).map(drop)
}

/// Runs a program in a namespace; what it says, or its complaint if it fails.
pub(super) fn output(
    namespace: &Namespace,
    program: &str,
    arguments: &[&str],
) -> Result<String, String> {
    said(namespace, program, arguments, "")
}

fn said(
    namespace: &Namespace,
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let network = namespace.as_fd().try_clone_to_owned().expect("descriptor");
    process::place(&mut command, None, network);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(input.as_bytes())
        .map_err(|error| error.to_string())?;
    drop(stdin);
    let done = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}
