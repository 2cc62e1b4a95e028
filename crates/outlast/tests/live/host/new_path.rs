//! An outage that is shorter than the retransmission timeout, after which packets take a slower path: what leaves at once
//! with the window of the former path, and with the initial one.

use super::{AT_ONCE, Agent, PATIENCE, ip};
use crate::path::skip;
use crate::path::wiring::{inside, switch};
use crate::support::{Place, again};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{Prefix, Route, RouteSocket};
use outlast_linux::stack::TcpStack;
use outlast_linux::sysctl;
use rustix::fd::AsFd;
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(super) const SERVER: &str = "10.9.0.1";
/// The fast path's queue of 0.16 s empties first. Then nothing comes for 50 ms and more, which the agent takes for a stall.
/// No timer of the sender's ends before: its tail loss probe comes two round trips after the last acknowledgement.
const OUTAGE: Duration = Duration::from_millis(240);
/// What 4 Mbit/s take for twice as much as the queue of the slow path has room for.
const FIRST: Duration = Duration::from_millis(300);

const LATER: Duration = Duration::from_secs(3);

/// A mobile host, two routers on its link, and a server behind both of them.
struct Paths {
    mobile: Namespace,
    switch: Namespace,
    server: Namespace,
    slow: Namespace,
    /// It has to be there.
    _fast: Namespace,
}

/// What was seen after a change of the path.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Packets that the slow router dropped in the first round trips.
    dropped: u64,
    /// From the change of the path until the server had new bytes.
    resumed: Duration,
    /// Bytes that the server had [`LATER`] after it had new ones.
    received: usize,
}

fn tc(namespace: &Namespace, line: &str) -> String {
    let run = || {
        let done = Command::new("tc").args(line.split(' ')).output();
        let done = done.expect("iproute2 is installed");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "tc {line}: {said}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    namespace.run(run).expect("enter")
}

fn cable(here: &Namespace, name: &str, there: &Namespace, other: &str) {
    let lay = || {
        let mut routes = RouteSocket::open().expect("netlink");
        let end = Some(there.as_fd());
        routes.add_veth(name, other, end).expect("a cable");
    };
    here.run(lay).expect("enter");
    // A queue counts packets: none stands for several.
    for (namespace, name) in [(here, name), (there, other)] {
        ip(namespace, &format!("link set {name} gso_max_segs 1 up"));
    }
}

pub(super) fn write(namespace: &Namespace, name: &str, value: &str) {
    let write = || sysctl::write(name, value);
    namespace.run(write).expect("enter").expect("a sysctl");
}

impl Paths {
    fn new() -> Option<Self> {
        let new = || {
            let namespace = Namespace::new();
            namespace.inspect_err(|error| skip(error)).ok()
        };
        let (mobile, switch, server) = (new()?, new()?, new()?);
        let (fast, slow) = (new()?, new()?);
        ip(&switch, "link add name bridge0 type bridge");
        ip(&switch, "link set bridge0 up");
        for namespace in [&mobile, &server, &fast, &slow] {
            ip(namespace, "link set lo up");
            for which in ["all", "default"] {
                write(namespace, &format!("net.ipv4.conf.{which}.rp_filter"), "0");
            }
        }
        cable(&switch, "near0", &mobile, "link0");
        ip(&switch, "link set near0 master bridge0");
        ip(&mobile, "address add 10.1.0.1/24 dev link0");
        ip(&server, &format!("address add {SERVER}/32 dev lo"));
        let routers = [(&fast, 1, "10mbit", 200_000), (&slow, 2, "4mbit", 75_000)];
        for (router, number, rate, limit) in routers {
            let port = format!("port{number}");
            cable(&switch, &port, router, "link0");
            ip(&switch, &format!("link set {port} master bridge0"));
            cable(&server, &format!("link{number}"), router, "link1");
            ip(
                router,
                &format!("address add 10.1.0.{}/24 dev link0", 250 + number),
            );
            ip(router, &format!("address add 10.2.{number}.1/24 dev link1"));
            ip(
                &server,
                &format!("address add 10.2.{number}.2/24 dev link{number}"),
            );
            ip(router, &format!("route add {SERVER} via 10.2.{number}.2"));
            write(router, "net.ipv4.ip_forward", "1");
            let queue =
                format!("qdisc add dev link1 root tbf rate {rate} burst 3000 limit {limit}");
            tc(router, &queue);
        }
        // Acknowledgements come back by the slow router, which is there all the time.
        ip(&server, "route add 10.1.0.0/24 via 10.2.2.1");
        ip(&mobile, &format!("route add {SERVER} via 10.1.0.251"));

        Some(Self {
            mobile,
            switch,
            server,
            slow,
            _fast: fast,
        })
    }

    fn dropped(&self) -> u64 {
        let said = tc(&self.slow, "-s qdisc show dev link1");
        let rest = said.split("dropped ").nth(1).expect("a count");
        let count = rest.split(',').next().and_then(|count| count.parse().ok());
        count.expect("a number")
    }

    /// An upload goes by the fast router, which is away for a moment, and then by the slow one.
    fn change(&self) -> Seen {
        let listen = || TcpListener::bind((SERVER, 0)).expect("a port");
        let listener = self.server.run(listen).expect("enter");
        let to = listener.local_addr().expect("bound");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let connect = || TcpStream::connect(to).expect("the server listens");
                let mut stream = self.mobile.run(connect).expect("enter");
                sockopt::set_tcp_congestion(&stream, "cubic").expect("it is there");
                loop {
                    // The server may be gone.
                    let is_sent = stream.write_all(&[7; 65_536]).is_ok();
                    if !is_sent || is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let (mut stream, _) = listener.accept().expect("the sender comes");
            read_for(&mut stream, Duration::from_secs(2));
            let before = self.dropped();
            cut_fast_router(&self.switch);
            read_for(&mut stream, OUTAGE);
            let changed = take_slow_router(&self.mobile);
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            let count = again(|| stream.read(&mut [0; 1024])).expect("it goes on");
            let resumed = clock::now().since(changed);
            assert_ne!(count, 0, "the transfer has ended");
            let first = read_for(&mut stream, FIRST);
            let dropped = self.dropped() - before;
            let received = first + read_for(&mut stream, LATER - FIRST);
            is_over.store(true, Ordering::Relaxed);
            drop(stream);
            Seen {
                dropped,
                resumed,
                received,
            }
        })
    }
}

/// The fast router gets and sends nothing more. A process that does that would begin so late on a busy machine that the
/// sender has a timeout.
pub(super) fn cut_fast_router(at: &Namespace) {
    inside(at, |routes| switch(routes, "port1", false));
}

/// The mobile host's packets to the server go by way of the slow router; since when.
pub(super) fn take_slow_router(mobile: &Namespace) -> Instant {
    inside(mobile, |routes| {
        let slow = Route {
            destination: Prefix {
                address: SERVER.parse().expect("literal"),
                length: 32,
            },
            interface: routes.interface("link0").expect("made"),
            gateway: Some("10.1.0.252".parse().expect("literal")),
            congestion_control: None,
        };
        routes.replace_route(&slow).expect("a route");
    });
    clock::now()
}

/// Reads what comes in that time; how much that is.
pub(super) fn read_for(stream: &mut TcpStream, time: Duration) -> usize {
    let end = clock::now() + time;
    let mut buffer = vec![0; 262_144];
    let mut received = 0;
    loop {
        let left = end.since(clock::now());
        if left.is_zero() {
            return received;
        }
        stream.set_read_timeout(Some(left)).expect("a socket");
        // An error is that the time is over, as the clock says.
        match stream.read(&mut buffer) {
            Ok(0) => panic!("the transfer has ended"),
            count => received += count.unwrap_or(0),
        }
    }
}

/// With the agent and without forced slow start, with both, and without an agent.
fn seen() -> Option<[Seen; 3]> {
    let [off, on, none] = [Paths::new()?, Paths::new()?, Paths::new()?];
    let place = Place::new();
    place.file("host.toml", "[host]\nslow_start_on_new_path = false\n");
    let places = [place, Place::new()];
    let agents = [
        Agent::start(&places[0], &off.mobile, &["--config", "host.toml"]),
        Agent::start(&places[1], &on.mobile, &[]),
    ];
    let seen = [&off, &on, &none].map(Paths::change);
    let told = super::operating::status(&places[1]);
    assert_eq!(told["counters"]["errors"], 0, "{told:#}");
    let told = super::operating::status(&places[0]);
    assert_eq!(told["counters"]["forced_slow_starts"], 0, "{told:#}");
    drop(agents);
    Some(seen)
}

#[test]
fn on_a_new_path_no_more_leaves_at_once_than_the_initial_window() {
    let control = TcpStack::open(0).map_err(|error| error.lack());
    if let Err(lack) = control.and_then(|stack| stack.slow_start_control().map(drop)) {
        return skip(lack.what);
    }
    let mut tried = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake.
    for _ in 0..3 {
        let Some(seen) = seen() else {
            return;
        };
        println!(
            "slow start not forced {:?}, forced {:?}, no agent {:?}",
            seen[0], seen[1], seen[2]
        );
        let [off, on, _] = seen;
        let is_at_once = on.resumed <= AT_ONCE * 2;
        let is_no_slower = on.received * 10 >= off.received * 9;
        let is_gentle = off.dropped >= 10 && on.dropped * 2 <= off.dropped;
        if is_gentle && is_at_once && is_no_slower {
            return;
        }
        tried.push(seen);
    }
    panic!("without forced slow start, with it, and without the agent: {tried:?}");
}
