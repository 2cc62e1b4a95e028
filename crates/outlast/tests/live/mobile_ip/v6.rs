//! Mobile IPv6: a mobile host that changes its network keeps its address and its connection.

use super::gateways::name_gateway;
use super::{Daemon, sockets};
use crate::hip::{Sender, connect, ip, pace, read, skip};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::Signal;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;

const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfd50, 0, 0, 0, 0, 0, 0, 5);
const CORRESPONDENT: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd08, 0, 0, 0, 0, 0, 0, 2));
/// Networks that the mobile host comes to.
const PLACES: [(&str, &str); 2] = [("fd01::7/64", "fd01::1"), ("fd02::7/64", "fd02::1")];

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
                outlast_linux::sysctl::write("net.ipv6.conf.all.forwarding", "1")
                    .expect("a router");
            };
            host.run(forward).expect("enter");
        }
        ip(
            &hosts.router,
            &[
                "address add fd01::1/64 dev mobile0 nodad",
                "address add fd02::1/64 dev mobile0 nodad",
                "address add fd09::1/64 dev agent0 nodad",
                "address add fd08::1/64 dev corr0 nodad",
                "link set mobile0 up",
                "link set agent0 up",
                "link set corr0 up",
                "route add fd50::/64 via fd09::2",
            ],
        );
        for (host, address, router) in [
            (&hosts.agent, "fd09::2/64", "fd09::1"),
            (&hosts.correspondent, "fd08::2/64", "fd08::1"),
        ] {
            ip(
                host,
                &[
                    "link set lo up",
                    "link set link0 up",
                    &format!("address add {address} dev link0 nodad"),
                    &format!("route add default via {router}"),
                ],
            );
        }
        ip(&hosts.mobile, &["link set lo up", "link set link0 up"]);
        hosts.place(PLACES[0]);
        Some(hosts)
    }

    /// Gives the mobile host another address, and no other.
    fn place(&self, (address, router): (&str, &str)) {
        ip(
            &self.mobile,
            &[
                "-6 address flush dev link0 scope global",
                &format!("address add {address} dev link0 nodad"),
                &format!("-6 route replace default via {router} dev link0"),
            ],
        );
    }
}

fn configure(place: &Place, agents_key: &str, mobiles_key: &str) {
    for name in [agents_key, mobiles_key] {
        if !place.path().join(name).exists() {
            let said = place.run(["mobile-ip", "key", name, "--spi", "4096"]);
            assert_eq!(said.code, Some(0), "{}", said.err);
        }
    }
    place.file(
        "home-agent.toml",
        &format!(
            "[home_agent]\naddress = \"fd09::2\"\n{}\n\
             [[home_agent.mobiles]]\nhome_address = \"{HOME_ADDRESS}\"\nkey = \"{agents_key}\"\n",
            sockets(place, "home-agent")
        ),
    );
    place.file(
        "mobile-node.toml",
        &format!(
            "[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\nhome_agent = \"fd09::2\"\n\
             key = \"{mobiles_key}\"\n{}",
            sockets(place, "mobile-node")
        ),
    );
}

/// Connects from the mobile host's address of the moment, past its home address.
fn connect_from(mobile: &Namespace, own: Ipv6Addr, port: u16) -> TcpStream {
    let open = || -> std::io::Result<TcpStream> {
        let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(own.into(), 0).into())?;
        socket.connect(&SocketAddr::new(CORRESPONDENT, port).into())?;
        Ok(socket.into())
    };
    mobile.run(open).expect("enter").expect("it is reached")
}

#[test]
fn a_mobile_host_keeps_its_ipv6_address_and_its_connection() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key");
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    mobile.await_lines(" registered", 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let own = stream.local_addr().expect("connected").ip();
    assert_eq!(own, HOME_ADDRESS, "applications use the home address");
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    for (moves, number) in [(2, 1), (3, 0)] {
        hosts.place(PLACES[number]);
        let moved = clock::now();
        let goes_on = read(&mut stream, &mut at, 200_000);
        let took = clock::now() - moved;
        assert!(
            goes_on,
            "in network {number}, {took:?} after the move: {}{}",
            mobile.said(),
            agent.said()
        );
        mobile.await_lines(" registered", moves);
    }
    // Control: what is bound to the network's own address ends with it.
    let control = Sender::start(&hosts.correspondent);
    let first = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 7);
    let mut bound = connect_from(&hosts.mobile, first, control.port);
    let mut bound_at = 0;
    assert!(read(&mut bound, &mut bound_at, 200_000), "before the move");
    hosts.place(PLACES[1]);
    assert!(read(&mut stream, &mut at, 200_000), "the last move");
    assert!(
        !read(&mut bound, &mut bound_at, 400_000),
        "the connection goes on without Mobile IP: this test shows nothing"
    );
    control.is_over.store(true, Ordering::Relaxed);
    sender.is_over.store(true, Ordering::Relaxed);
    mobile.signal(Signal::TERM);
    agent.await_lines("mobile node has left", 1);
}

/// IPv6's least MTU: the outer header leaves less to the tunnel, and nobody is told of less.
#[test]
fn a_tunnel_over_a_link_of_the_least_mtu_carries_packets_in_fragments() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key");
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    mobile.await_lines(" registered", 1);
    // The tunnel's entry learns of it at the mobile host, and from the router at the home agent.
    ip(&hosts.mobile, &["link set link0 mtu 1280"]);
    ip(&hosts.router, &["link set mobile0 mtu 1280"]);
    for (from, to, address) in [
        (&hosts.mobile, &hosts.correspondent, HOME_ADDRESS.into()),
        (&hosts.correspondent, &hosts.mobile, CORRESPONDENT),
    ] {
        let sender = Sender::start(from);
        let mut stream = connect(to, address, sender.port);
        let goes_on = read(&mut stream, &mut 0, 400_000);
        assert!(goes_on, "from {address}: {}{}", mobile.said(), agent.said());
        sender.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn programs_reach_a_mobile_host_past_its_home_agent() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key");
    let text = std::fs::read_to_string(place.path().join("mobile-node.toml")).expect("ours");
    place.file(
        "mobile-node.toml",
        &format!("{text}route_optimization = true\n"),
    );
    place.file(
        "correspondent.toml",
        &format!("[correspondent]\n{}", sockets(&place, "correspondent")),
    );
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let peer = Daemon::start(&place, &hosts.correspondent, "correspondent");
    peer.await_lines("correspondent begins", 1);
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    mobile.await_lines(" registered", 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let own = stream.local_addr().expect("connected").ip();
    assert_eq!(own, HOME_ADDRESS, "applications use the home address");
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    peer.await_lines("packets go past the home agent", 1);
    // Control: the router is no correspondent.
    let plain = Sender::start(&hosts.router);
    let router = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1).into();
    let mut control = connect(&hosts.mobile, router, plain.port);
    let mut control_at = 0;
    assert!(read(&mut control, &mut control_at, 200_000), "no move");
    hosts.place(PLACES[1]);
    assert!(read(&mut stream, &mut at, 200_000), "after the move");
    peer.await_lines("packets go past the home agent", 2);
    assert!(read(&mut control, &mut control_at, 200_000), "the move");
    drop(agent);
    assert!(
        read(&mut stream, &mut at, 400_000),
        "without the home agent: {}{}",
        mobile.said(),
        peer.said()
    );
    assert!(
        !read(&mut control, &mut control_at, 400_000),
        "packets go past the home agent by themselves: this test shows nothing"
    );
    sender.is_over.store(true, Ordering::Relaxed);
    plain.is_over.store(true, Ordering::Relaxed);
}

/// Reads what has come by now.
fn drain(stream: &mut TcpStream, at: &mut usize) {
    stream.set_nonblocking(true).expect("a socket");
    let mut buffer = [0; 16_384];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        *at += count;
    }
    stream.set_nonblocking(false).expect("a socket");
}

/// What a paced sender's smoothed round trip keeps of an outage of four seconds is an eighth, half a second,
/// if it takes one sample from it. It spreads two windows over that at first, and over less with each
/// acknowledgement. With a sample for each segment, 100 kB took 1.1 to 2.2 s.
const PACED: Duration = Duration::from_secs(1);

/// How long after its new registration a mobile host that was nowhere for four seconds reads the first new
/// byte, and 100 kB, with or without `hold` at the home agent's device.
fn stall(has_hold: bool) -> Option<[Duration; 2]> {
    let hosts = Hosts::new()?;
    let place = Place::new();
    configure(&place, "key", "key");
    let control = place.path().join("hold.sock");
    if has_hold {
        name_gateway(&place, "home-agent", "home_agent", &control);
    }
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let _gateway = has_hold.then(|| {
        let arguments = ["run", "--interface", "mobiles0", "--mechanism", "hold"];
        let control = ["--control", control.to_str().expect("a name of ours")];
        let arguments = [&arguments[..], &control].concat();
        let gateway = Daemon::spawn(&place, &hosts.agent, &arguments, "hold.log");
        gateway.await_lines("Control socket", 1);
        gateway
    });
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    mobile.await_lines(" registered", 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before the move");
    ip(&hosts.mobile, &["-6 address flush dev link0 scope global"]);
    let left = clock::now();
    while clock::now() - left < Duration::from_secs(4) {
        pace();
    }
    drain(&mut stream, &mut at);
    hosts.place(PLACES[1]);
    mobile.await_lines(" registered", 2);
    let registered = clock::now();
    assert!(read(&mut stream, &mut at, 1), "{}", mobile.said());
    let first = clock::now() - registered;
    assert!(read(&mut stream, &mut at, 100_000), "{}", mobile.said());
    let most = clock::now() - registered;
    sender.is_over.store(true, Ordering::Relaxed);
    Some([first, most])
}

#[test]
fn hold_at_the_home_agent_acts_on_an_ipv6_registration() {
    let (Some(with), Some(without)) = (stall(true), stall(false)) else {
        return;
    };
    println!("after the registration: {with:?} with hold, {without:?} without");
    assert!(with[0] < Duration::from_millis(300), "{with:?}");
    assert!(with[1] < PACED, "{with:?}");
    assert!(
        without[0] > PACED && without[0] > with[0] * 2,
        "{without:?} without hold: this test shows nothing"
    );
}

#[test]
fn a_wrong_key_is_refused_and_what_ipv6_has_not_is_said() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "other");
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    agent.await_lines("146 (", 1);
    mobile.await_lines("the same key", 1);
    assert!(!mobile.said().contains(" registered"), "{}", mobile.said());
    let text = std::fs::read_to_string(place.path().join("mobile-node.toml")).expect("ours");
    place.file(
        "mobile-node.toml",
        &text.replace("[mobile_node]", "[mobile_node]\nudp_tunnel = true"),
    );
    let check = [
        "run",
        "--role",
        "mobile-node",
        "--config",
        "mobile-node.toml",
    ];
    let said = place.run(check.into_iter().chain(["--check-config"]));
    said.refuses(2, &["udp_tunnel"]);
}
