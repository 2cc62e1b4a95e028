//! Connections of the kernel's that have stalled: one pass, and kicks at the rate limit. Ten thousand of
//! them with `--release`; where nothing is optimized, fewer.
//!
//! Where this machine does not allow it, the test says so and ends.

#![expect(
    clippy::disallowed_methods,
    reason = "an outage lasts, and nothing tells when a timeout has backed off"
)]

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::{Connection, EndpointControl};
use outlast_host::{Host, HostConfig, Mechanism};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
use outlast_linux::priority::favour_current_thread;
use outlast_linux::stack::TcpStack;
use rustix::fd::AsFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

const CONNECTIONS: usize = if cfg!(debug_assertions) {
    1_000
} else {
    10_000
};
/// The far ends are left in the queues of so many listening sockets, where they cost no descriptors.
const LISTENERS: usize = 100;
/// And a few more.
const DESCRIPTORS: u64 = (CONNECTIONS + LISTENERS) as u64 + 500;
const LINK: &str = "link0";

/// An outage lasts until each connection has had so many timeouts, and for [`REST`]. With a first timeout of 0.2 s the
/// next one comes 3.2 s after the last: what comes between is the agent's work.
const TIMEOUTS: u32 = 4;
/// More than the first timeout: a kernel whose back-off is taken back waits for that from its newest retransmission.
const REST: Duration = Duration::from_millis(400);
const LOOK: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(1);
/// On a machine that has much else to do the best of a few outages counts.
const OUTAGES: u32 = 3;

fn set_up(namespace: &Namespace, is_up: bool) {
    let configure = || {
        let mut routes = RouteSocket::open().expect("netlink");
        let interface = routes.interface(LINK).expect("made");
        let settings = InterfaceSettings {
            up: Some(is_up),
            ..InterfaceSettings::default()
        };
        routes.configure(interface, &settings).expect("ours");
    };
    namespace.run(configure).expect("enter");
}

fn give_address(namespace: &Namespace, address: &str) {
    let configure = || {
        let mut routes = RouteSocket::open().expect("netlink");
        for (name, address, length) in [("lo", None, 0), (LINK, Some(address), 24)] {
            let interface = routes.interface(name).expect("it is there");
            if let Some(address) = address {
                let address = address.parse().expect("literal");
                let prefix = Prefix { address, length };
                routes.add_address(interface, prefix).expect("an address");
            }
            let settings = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            routes.configure(interface, &settings).expect("ours");
        }
    };
    namespace.run(configure).expect("enter");
}

/// Has this end of the cable send without asking for neighbours: both ends have one hardware address. A kernel that has
/// asked in vain asks again only after a second, and keeps few packets till then; that is another matter.
fn ask_for_nobody(namespace: &Namespace) {
    let mut command = Command::new("ip");
    command.args(["link", "set", "dev", LINK]);
    command.args(["address", "02:00:00:00:00:01", "arp", "off"]);
    let status = namespace.run(|| command.status()).expect("enter");
    assert!(status.expect("iproute2 is installed").success());
}

fn outstanding(stack: &mut TcpStack) -> usize {
    let mut found = Vec::new();
    stack.connections(&mut found).expect("a pass");
    found
        .iter()
        .filter(|one| Connection::is_outstanding(one))
        .count()
}

/// Whether each connection's timer has backed off as far as [`TIMEOUTS`] say.
fn have_backed_off(stack: &mut TcpStack) -> bool {
    let mut found = Vec::new();
    stack.connections(&mut found).expect("a pass");
    let stalled = found.iter().filter(|one| Connection::is_outstanding(one));
    let far = stalled.filter(|one| one.timeouts >= TIMEOUTS).count();
    far >= CONNECTIONS
}

/// What one outage of all connections came to.
#[derive(Debug)]
struct Measured {
    /// From link-up until the last connection was woken.
    kicks: Duration,
    /// Of that, waiting for a processor that other processes had.
    waited: Duration,
    woken: u64,
    left: usize,
}

impl Measured {
    /// Whether all are woken in time on a machine that has nothing else to do.
    fn is_in_time(&self) -> bool {
        self.kicks < LIMIT + self.waited
    }
}

/// How long the calling thread has waited for a processor that others had.
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_whitespace().nth(1);
    Duration::from_nanos(waited.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// Wakes everything that has stalled, and waits until it is done.
fn wake(stack: &mut TcpStack, link: LinkId) -> Measured {
    let config = HostConfig {
        wakes_peer: false,
        forces_slow_start: false,
        ..HostConfig::new(Mechanism::RetransmissionTrigger)
    };
    let began: Instant = clock::now();
    let waited_before = waited();
    let mut waited_until = waited_before;
    let mut host = Host::new(began, config);
    let event = LinkEvent {
        link,
        state: LinkState::Up,
        indicator: Indicator::Notify,
    };
    host.handle_link(began, event, stack);
    stack.flush().expect("raw packets");
    let mut kicks = Duration::ZERO;
    while let Some((at, _)) = host.poll_timeout() {
        std::thread::sleep(at.since(clock::now()));
        let before = host.counters().retransmissions;
        host.handle_timeout(clock::now(), stack);
        stack.flush().expect("raw packets");
        if host.counters().retransmissions > before {
            kicks = clock::now().since(began);
            waited_until = waited();
        }
        assert!(
            clock::now().since(began) < LIMIT * 30,
            "{:?}",
            host.counters()
        );
    }
    Measured {
        kicks,
        waited: waited_until - waited_before,
        woken: host.counters().retransmissions,
        left: outstanding(stack),
    }
}

#[test]
fn stalled_connections_are_woken_within_a_second_and_the_rate() {
    let had = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: had.current.map(|current| current.max(DESCRIPTORS)),
        maximum: had.maximum.map(|most| most.max(DESCRIPTORS)),
    };
    if setrlimit(Resource::Nofile, wanted).is_err() {
        return outlast_skip::skip("so many descriptors are not allowed");
    }
    let (near, far) = match (Namespace::new(), Namespace::new()) {
        (Ok(near), Ok(far)) => (near, far),
        (Err(error), _) | (_, Err(error)) => return outlast_skip::skip(error),
    };
    let cable = || {
        let mut routes = RouteSocket::open().expect("netlink");
        routes
            .add_veth(LINK, LINK, Some(near.as_fd()))
            .expect("a cable");
        routes.interface(LINK).expect("made")
    };
    far.run(cable).expect("enter");
    for end in [&near, &far] {
        ask_for_nobody(end);
    }
    give_address(&near, "10.1.0.7");
    give_address(&far, "10.1.0.1");
    let mut stack = match near.run(|| TcpStack::open(0)).expect("enter") {
        Ok(stack) => stack,
        Err(error) => return outlast_skip::skip(error),
    };
    let listen = || TcpListener::bind("10.1.0.1:0").expect("a port");
    let listen_all = || -> Vec<TcpListener> { (0..LISTENERS).map(|_| listen()).collect() };
    let listeners = far.run(listen_all).expect("enter");
    let to = listeners.iter().map(|one| one.local_addr().expect("bound"));
    let to: Vec<SocketAddr> = to.collect();
    let measured = near.run(|| {
        // As the daemon does.
        favour_current_thread();
        let mut routes = RouteSocket::open().expect("netlink");
        let link = LinkId::of_interface(InterfaceId(routes.interface(LINK).expect("made").0));
        let connect = |n: usize| TcpStream::connect(to[n % LISTENERS]).expect("it listens");
        let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
        let mut stall = |stack: &mut TcpStack| {
            set_up(&far, false);
            for stream in &mut streams {
                stream.write_all(b"x").expect("room");
            }
            while !have_backed_off(stack) {
                std::thread::sleep(LOOK);
            }
            std::thread::sleep(REST);
            set_up(&far, true);
        };
        // Left to themselves they would wait for longer.
        stall(&mut stack);
        std::thread::sleep(LIMIT);
        let asleep = outstanding(&mut stack);
        assert!(asleep > CONNECTIONS / 2, "{asleep} without the agent");
        wake(&mut stack, link);
        let mut all = Vec::new();
        for _ in 0..OUTAGES {
            stall(&mut stack);
            let one = wake(&mut stack, link);
            eprintln!("{one:?}");
            let is_good = one.is_in_time();
            all.push(one);
            if is_good {
                break;
            }
        }
        all
    });
    let measured = measured.expect("enter");
    let limits = HostConfig::new(Mechanism::RetransmissionTrigger).limits;
    let beyond = CONNECTIONS as u32 - limits.burst;
    let least = Duration::from_secs(1) * beyond / limits.per_second;
    for one in &measured {
        assert!(one.woken >= CONNECTIONS as u64, "{one:?}");
        assert_eq!(one.left, 0, "{one:?}");
        assert!(one.kicks >= least, "faster than the rate: {one:?}");
    }
    assert!(measured.iter().any(Measured::is_in_time), "{measured:?}");
}

/// As many as containers with an agent each, whose processes have the same number.
#[test]
fn many_agents_of_one_process_number_have_a_congestion_control_each() {
    let mut all = Vec::new();
    for _ in 0..18 {
        match TcpStack::open(0) {
            Ok(stack) => all.push(stack),
            Err(error) => return outlast_skip::skip(error),
        }
    }
    let names: Vec<_> = all.iter().map(TcpStack::slow_start_control).collect();
    match &names[0] {
        // A kernel before 6.4.
        Err(lack) => outlast_skip::skip(&lack.what),
        Ok(_) => assert!(names.iter().all(Result::is_ok), "{names:?}"),
    }
}
