//! `outlast run` as a home agent, a foreign agent or a mobile node: a mobile host that changes its network.
//!
//! Where this machine lacks what that needs, a test says so and ends.

mod agents;
mod gateways;
mod kernel_traffic;
mod kernel_tunnels;
mod mixed_tunnels;
mod v6;

use crate::hip::{PATIENCE, Sender, connect, ip, pace, read, skip};
use crate::support::Place;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 5);
const CORRESPONDENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 8, 0, 2));

/// Networks that the mobile host comes to; the third is behind an address translator.
const PLACES: [(&str, &str); 3] = [
    ("10.1.0.7/24", "10.1.0.1"),
    ("10.2.0.7/24", "10.2.0.1"),
    ("10.3.0.7/24", "10.3.0.1"),
];
const TRANSLATED: usize = 2;

/// Mobile host, home agent and correspondent around a router.
struct Hosts {
    mobile: Namespace,
    router: Namespace,
    agent: Namespace,
    correspondent: Namespace,
}

impl Hosts {
    fn new() -> Option<Self> {
        let new = || {
            Namespace::new()
                .inspect_err(|error| skip(&error.to_string()))
                .ok()
        };
        let hosts = Self {
            mobile: new()?,
            router: new()?,
            agent: new()?,
            correspondent: new()?,
        };
        let cable = |from: &str, other: &Namespace| {
            let other: OwnedFd = other.as_fd().try_clone_to_owned().expect("a descriptor");
            let make = || {
                let mut routes = RouteSocket::open().expect("netlink");
                routes
                    .add_veth(from, "link0", Some(other.as_fd()))
                    .expect("a cable");
            };
            hosts.router.run(make).expect("enter");
        };
        cable("mobile0", &hosts.mobile);
        cable("agent0", &hosts.agent);
        cable("corr0", &hosts.correspondent);
        for host in [&hosts.router, &hosts.agent] {
            let forward = || {
                outlast_linux::sysctl::write("net.ipv4.ip_forward", "1").expect("a router");
            };
            host.run(forward).expect("enter");
        }
        ip(
            &hosts.router,
            &[
                "address add 10.1.0.1/24 dev mobile0",
                "address add 10.2.0.1/24 dev mobile0",
                "address add 10.3.0.1/24 dev mobile0",
                "address add 10.9.0.1/24 dev agent0",
                "address add 10.8.0.1/24 dev corr0",
                "link set mobile0 up",
                "link set agent0 up",
                "link set corr0 up",
                "route add 10.50.0.0/24 via 10.9.0.2",
            ],
        );
        for (host, address, router) in [
            (&hosts.agent, "10.9.0.2/24", "10.9.0.1"),
            (&hosts.correspondent, "10.8.0.2/24", "10.8.0.1"),
        ] {
            ip(
                host,
                &[
                    "link set lo up",
                    "link set link0 up",
                    &format!("address add {address} dev link0"),
                    &format!("route add default via {router}"),
                ],
            );
        }
        ip(&hosts.mobile, &["link set lo up", "link set link0 up"]);
        hosts.place(PLACES[0]);
        Some(hosts)
    }

    /// Has the router show its own address to the home agent in the third network's place; whether it
    /// can.
    fn translate(&self) -> bool {
        masquerade(&self.router, "10.3.0.0/24", "agent0")
    }

    /// Gives the mobile host another address, and no other.
    fn place(&self, (address, router): (&str, &str)) {
        ip(
            &self.mobile,
            &[
                "address flush dev link0 scope global",
                &format!("address add {address} dev link0 scope global"),
                &format!("route replace default via {router}"),
            ],
        );
    }
}

/// Has a router show its own address for those of `network` at `interface`; whether it can.
fn masquerade(router: &Namespace, network: &str, interface: &str) -> bool {
    let rules = [
        "add table ip nat",
        "add chain ip nat out { type nat hook postrouting priority srcnat; }",
        &format!("add rule ip nat out ip saddr {network} oifname {interface} masquerade"),
    ];
    let run = || {
        rules.iter().all(|rule| {
            let done = Command::new("nft").arg(rule).output();
            done.is_ok_and(|done| done.status.success())
        })
    };
    router.run(run).expect("enter")
}

/// A role in a namespace, and its log.
struct Daemon {
    child: Child,
    log: std::path::PathBuf,
}

impl Daemon {
    fn start(place: &Place, host: &Namespace, role: &str) -> Self {
        Self::start_with(place, host, role, &format!("{role}.toml"))
    }

    fn start_with(place: &Place, host: &Namespace, role: &str, config: &str) -> Self {
        let arguments = ["run", "--role", role, "--config", config];
        let log = std::path::Path::new(config).with_extension("log");
        Self::spawn(
            place,
            host,
            &arguments,
            log.to_str().expect("a name of ours"),
        )
    }

    /// Runs the command in `host`; its log is at `log` in `place`.
    fn spawn(place: &Place, host: &Namespace, arguments: &[&str], log: &str) -> Self {
        let log = place.path().join(log);
        let start = || {
            let mut command = place.command(arguments);
            command.stderr(std::fs::File::create(&log).expect("a file in a directory of ours"));
            command
                .stdout(Stdio::null())
                .spawn()
                .expect("outlast was built")
        };
        let child = host.run(start).expect("enter");
        Self { child, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("it was made")
    }

    /// Waits until the log has `count` lines with `words`.
    fn await_lines(&self, words: &str, count: usize) {
        let begun = clock::now();
        while self.said().matches(words).count() < count {
            let said = self.said();
            assert!(
                clock::now() - begun < PATIENCE,
                "{words:?} is not said: {said}"
            );
            pace();
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The child is ours and not waited for: its number is its own still.
        self.child.kill().expect("it runs, or was not waited for");
        self.child.wait().expect("it ends");
    }
}

/// The keys by which a daemon is operated through sockets in its place.
fn sockets(place: &Place, name: &str) -> String {
    let at = place.path().join(name);
    let at = at.display();
    format!("control = \"{at}.sock\"\nmetrics = \"unix:{at}.metrics\"\n")
}

/// Makes keys and configurations.
fn configure(place: &Place, agents_key: &str, mobiles_key: &str, algorithm: &str) {
    for name in [agents_key, mobiles_key] {
        if !place.path().join(name).exists() {
            let said = place.run([
                "mobile-ip",
                "key",
                name,
                "--spi",
                "4096",
                "--algorithm",
                algorithm,
            ]);
            assert_eq!((said.code, &*said.out), (Some(0), "4096\n"), "{}", said.err);
        }
    }
    place.file(
        "home-agent.toml",
        &format!(
            "[home_agent]\naddress = \"10.9.0.2\"\n{}\n\
             [[home_agent.mobiles]]\nhome_address = \"{HOME_ADDRESS}\"\nkey = \"{agents_key}\"\n",
            sockets(place, "home-agent")
        ),
    );
    place.file(
        "mobile-node.toml",
        &format!(
            "[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\nhome_agent = \"10.9.0.2\"\n\
             key = \"{mobiles_key}\"\n{}",
            sockets(place, "mobile-node")
        ),
    );
}

fn start(place: &Place, hosts: &Hosts) -> (Daemon, Daemon) {
    let agent = Daemon::start(place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let mobile = Daemon::start(place, &hosts.mobile, "mobile-node");
    (agent, mobile)
}

/// Connects from the mobile host's address of the moment, past its home address.
fn connect_from(mobile: &Namespace, own: Ipv4Addr, port: u16) -> TcpStream {
    let open = || -> std::io::Result<TcpStream> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(own.into(), 0).into())?;
        socket.connect(&SocketAddr::new(CORRESPONDENT, port).into())?;
        Ok(socket.into())
    };
    mobile.run(open).expect("enter").expect("it is reached")
}

#[test]
fn a_mobile_host_keeps_its_connections_and_its_address() {
    let Some(hosts) = Hosts::new() else { return };
    let has_translator = hosts.translate();
    if !has_translator {
        skip("there is no nft, or no address translation");
    }
    let place = Place::new();
    configure(&place, "key", "key", "hmac-sha-256");
    let (agent, mobile) = start(&place, &hosts);
    mobile.await_lines(" registered", 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let own = stream.local_addr().expect("connected").ip();
    assert_eq!(own, HOME_ADDRESS, "applications use the home address");
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    let mut moves = 1;
    for number in [1, 0, TRANSLATED, 1] {
        if number == TRANSLATED && !has_translator {
            continue;
        }
        hosts.place(PLACES[number]);
        let moved = clock::now();
        moves += 1;
        let goes_on = read(&mut stream, &mut at, 200_000);
        let took = clock::now() - moved;
        assert!(
            goes_on,
            "in network {number}, {took:?} after the move: {}",
            mobile.said()
        );
        mobile.await_lines(" registered", moves);
    }
    let in_udp = mobile.said().matches("in_udp=true").count();
    assert_eq!(in_udp, usize::from(has_translator), "{}", mobile.said());
    // Control: what is bound to the network's own address ends with it.
    let control = Sender::start(&hosts.correspondent);
    let mut bound = connect_from(&hosts.mobile, Ipv4Addr::new(10, 2, 0, 7), control.port);
    let mut bound_at = 0;
    assert!(read(&mut bound, &mut bound_at, 200_000), "before the move");
    hosts.place(PLACES[0]);
    assert!(read(&mut stream, &mut at, 200_000), "the last move");
    assert!(
        !read(&mut bound, &mut bound_at, 400_000),
        "the connection goes on without Mobile IP: this test shows nothing"
    );
    control.is_over.store(true, Ordering::Relaxed);
    sender.is_over.store(true, Ordering::Relaxed);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("to its end");
    sender.thread.join().expect("the sender ends");
    mobile.signal(Signal::TERM);
    agent.await_lines("mobile node has left", 1);
}

#[test]
fn the_home_agents_host_is_reached_and_so_is_a_link_of_a_small_mtu() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key", "hmac-sha-256");
    let (_agent, mobile) = start(&place, &hosts);
    mobile.await_lines(" registered", 1);
    let agent_address = Ipv4Addr::new(10, 9, 0, 2).into();
    let sender = Sender::start(&hosts.agent);
    let mut stream = connect(&hosts.mobile, agent_address, sender.port);
    assert_eq!(
        stream.local_addr().expect("connected").ip(),
        HOME_ADDRESS,
        "through the tunnel"
    );
    assert!(read(&mut stream, &mut 0, 100_000), "of the home agent");
    sender.is_over.store(true, Ordering::Relaxed);
    // The tunnel's entry learns of it at the mobile host, and from the router at the home agent.
    ip(&hosts.mobile, &["link set link0 mtu 1300"]);
    ip(&hosts.router, &["link set mobile0 mtu 1300"]);
    for (from, to, address) in [
        (&hosts.mobile, &hosts.correspondent, HOME_ADDRESS.into()),
        (&hosts.correspondent, &hosts.mobile, CORRESPONDENT),
    ] {
        let sender = Sender::start(from);
        let mut stream = connect(to, address, sender.port);
        assert!(read(&mut stream, &mut 0, 100_000), "from {address}");
        sender.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_wrong_key_is_refused_and_said() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "other", "hmac-md5");
    let (agent, mobile) = start(&place, &hosts);
    agent.await_lines("131 (", 1);
    mobile.await_lines("the same key", 1);
    assert!(!mobile.said().contains(" registered"), "{}", mobile.said());
    // The right key, and no restart.
    configure(&place, "other", "other", "hmac-md5");
    agent.signal(Signal::HUP);
    mobile.await_lines(" registered", 1);
    let said = place.run([
        "run",
        "--role",
        "mobile-node",
        "--config",
        "mobile-node.toml",
        "--check-config",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}
