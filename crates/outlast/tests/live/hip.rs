//! `outlast run --role hip` between two hosts, one of which changes its address and its family.
//!
//! Where this machine lacks what that needs, a test says so and ends.

mod crowd;
mod flood;
mod local_scope;
mod moving;
mod operating;
mod restarting;

use crate::operating::heard;
use crate::support::{Place, again, report};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::{AsFd, OwnedFd};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longer than anything takes on a machine that has much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// No data for so long after a move: the connection is over for all practical purposes.
const STALLED: Duration = Duration::from_secs(4);

/// The fixed host's addresses.
const FIXED: [&str; 2] = ["10.9.0.2", "fd09::2"];

/// Where the mobile host goes, one after the other: networks of IPv4 and of IPv6.
const PLACES: [(&str, &str); 5] = [
    ("10.2.0.7/24", "10.2.0.1"),
    ("fd01::7/64", "fd01::1"),
    ("fd02::7/64", "fd02::1"),
    ("10.3.0.7/24", "10.3.0.1"),
    ("10.1.0.8/24", "10.1.0.1"),
];

/// Two hosts with a router between them, which has five networks at the mobile host's side.
struct Hosts {
    mobile: Namespace,
    router: Namespace,
    fixed: Namespace,
}

/// Runs `ip` with each line in a namespace.
pub(crate) fn ip(namespace: &Namespace, lines: &[&str]) {
    let run = || {
        for line in lines {
            let done = Command::new("ip").args(line.split(' ')).output();
            let done = done.expect("iproute2 is installed");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "ip {line}: {said}");
        }
    };
    namespace.run(run).expect("enter");
}

#[expect(clippy::print_stderr, reason = "a skipped test names what is missing")]
pub(crate) fn skip(what: &str) {
    eprintln!("skipped: {what}");
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
            fixed: new()?,
        };
        let cable = |from: &str, to: &str, other: &Namespace| {
            let other: OwnedFd = other.as_fd().try_clone_to_owned().expect("a descriptor");
            let make = || {
                let mut routes = RouteSocket::open().expect("netlink");
                routes
                    .add_veth(from, to, Some(other.as_fd()))
                    .expect("a cable");
            };
            hosts.router.run(make).expect("enter");
        };
        cable("left", "link0", &hosts.mobile);
        cable("right", "link0", &hosts.fixed);
        let forward = || {
            outlast_linux::sysctl::write("net.ipv4.ip_forward", "1").expect("a router");
            outlast_linux::sysctl::write("net.ipv6.conf.all.forwarding", "1").expect("a router");
        };
        hosts.router.run(forward).expect("enter");
        for network in 1..=3 {
            ip(
                &hosts.router,
                &[
                    &format!("address add 10.{network}.0.1/24 dev left"),
                    &format!("address add fd0{network}::1/64 dev left nodad"),
                ],
            );
        }
        ip(
            &hosts.router,
            &[
                "address add 10.9.0.1/24 dev right",
                "address add fd09::1/64 dev right nodad",
                "link set left up",
                "link set right up",
            ],
        );
        ip(
            &hosts.fixed,
            &[
                "link set lo up",
                "link set link0 up",
                "address add 10.9.0.2/24 dev link0",
                "address add fd09::2/64 dev link0 nodad",
                "route add default via 10.9.0.1",
                "route add default via fd09::1",
            ],
        );
        ip(&hosts.mobile, &["link set lo up", "link set link0 up"]);
        hosts.place(("10.1.0.7/24", "10.1.0.1"));
        Some(hosts)
    }

    /// Gives the mobile host another address, and no other.
    fn place(&self, (address, router): (&str, &str)) {
        let family = if address.contains(':') {
            "nodad"
        } else {
            "scope global"
        };
        ip(
            &self.mobile,
            &[
                "address flush dev link0 scope global",
                &format!("address add {address} dev link0 {family}"),
                &format!("route replace default via {router}"),
            ],
        );
    }
}

/// `outlast run --role hip` in a namespace.
struct Daemon(Child);

impl Daemon {
    fn start(place: &Place, host: &Namespace, config: &str) -> Self {
        Self::start_as(place, host, "hip", config)
    }

    fn start_as(place: &Place, host: &Namespace, role: &str, config: &str) -> Self {
        let told = place.path().join(format!("{config}.notify"));
        let manager = UnixDatagram::bind(&told).expect("ours");
        manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let start = || {
            let mut command = place.command(["run", "--role", role, "--config", config]);
            let log = std::fs::File::create(place.path().join(format!("{config}.log")));
            command.stderr(log.expect("a file in a directory of ours"));
            command
                .env("NOTIFY_SOCKET", &told)
                .stdout(Stdio::null())
                .spawn()
                .expect("outlast was built")
        };
        let daemon = Self(host.run(start).expect("enter"));
        // Before that, what is sent to a tag or an LSI goes wherever the default route leads.
        heard(&manager, "READY=1");
        std::fs::remove_file(told).expect("ours");
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The child is ours and not waited for: its number is its own still.
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// The table of a host, which is operated through sockets in its place.
fn table(place: &Place, name: &str) -> String {
    let at = place.path().join(name);
    let at = at.display();
    format!(
        "[hip]\nkey = \"{name}.key\"\ncontrol = \"{at}.sock\"\nmetrics = \"unix:{at}.metrics\"\n"
    )
}

/// Two hosts with identities and daemons; the fixed host's tag.
fn start(place: &Place, hosts: &Hosts) -> (Daemon, Daemon, IpAddr) {
    let key = |name: &str| {
        let said = place.run(["hip", "key", name]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let again = place.run(["hip", "tag", name]);
        assert_eq!(again.out, said.out);
        said.out.trim().to_owned()
    };
    let (mobile, fixed) = (key("mobile.key"), key("fixed.key"));
    let peer = format!("[[hip.peers]]\ntag = \"{fixed}\"\naddresses = {FIXED:?}\n");
    place.file("mobile.toml", &format!("{}{peer}", table(place, "mobile")));
    let peer = format!("[[hip.peers]]\ntag = \"{mobile}\"\n");
    place.file("fixed.toml", &format!("{}{peer}", table(place, "fixed")));
    let daemons = (
        Daemon::start(place, &hosts.mobile, "mobile.toml"),
        Daemon::start(place, &hosts.fixed, "fixed.toml"),
    );
    (
        daemons.0,
        daemons.1,
        fixed.parse().expect("a tag is an address"),
    )
}

/// Bytes that the fixed host sends, paced, until it is told to end.
pub(crate) struct Sender {
    pub(crate) is_over: Arc<AtomicBool>,
    pub(crate) thread: std::thread::JoinHandle<()>,
    pub(crate) port: u16,
}

/// The byte at a place of the stream.
fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

impl Sender {
    pub(crate) fn start(fixed: &Namespace) -> Self {
        Self::start_at(fixed, "[::]:0")
    }

    fn start_at(fixed: &Namespace, listens: &str) -> Self {
        let listener = fixed
            .run(|| TcpListener::bind(listens))
            .expect("enter")
            .expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (mut out, _) = listener.accept().expect("somebody comes");
            // BBR's pacing remembers how little came in the outages before. Where BBR is the kernel's default,
            // the socket stays paced, by its smoothed round trip.
            outlast_linux::socket::set_congestion_control(&out, "cubic").expect("Linux has it");
            let mut at = 0;
            while !ended.load(Ordering::Relaxed) {
                let bytes: Vec<u8> = (at..at + 4096).map(pattern).collect();
                at += bytes.len();
                if out.write_all(&bytes).is_err() {
                    return;
                }
                pace();
            }
            // Nobody listens any more where the connection was lost.
            let _ = out.shutdown(Shutdown::Write);
        });
        Self {
            is_over,
            thread,
            port,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a paced sender waits for a time and nothing else"
)]
pub(crate) fn pace() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Connects as soon as the other side lets it.
pub(crate) fn connect(mobile: &Namespace, to: IpAddr, port: u16) -> TcpStream {
    let begun = clock::now();
    loop {
        if let Ok(stream) = mobile
            .run(|| TcpStream::connect((to, port)))
            .expect("enter")
        {
            return stream;
        }
        assert!(clock::now() - begun < PATIENCE, "nobody answers at {to}");
        pace();
    }
}

/// Reads for as long as data comes at once, up to `length` bytes; whether so many came.
pub(crate) fn read(stream: &mut TcpStream, at: &mut usize, length: usize) -> bool {
    read_within(STALLED, stream, at, length)
}

/// Reads up to `length` bytes, for as long as none of them keeps others waiting for longer than `patience`; whether so
/// many came.
pub(crate) fn read_within(
    patience: Duration,
    stream: &mut TcpStream,
    at: &mut usize,
    length: usize,
) -> bool {
    stream.set_read_timeout(Some(patience)).expect("a socket");
    let mut buffer = [0; 16_384];
    let goal = *at + length;
    while *at < goal {
        match again(|| stream.read(&mut buffer)) {
            Ok(count) if count > 0 => {
                let expected = (*at..).map(pattern);
                assert!(
                    buffer[..count].iter().copied().eq(expected.take(count)),
                    "at {at}"
                );
                *at += count;
            }
            ended => {
                report(&format!("after {at} bytes: {ended:?}"));
                return false;
            }
        }
    }
    true
}

#[test]
fn a_transfer_goes_on_through_every_move() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_mobile, _fixed, tag) = start(&place, &hosts);
    let sender = Sender::start(&hosts.fixed);
    let mut stream = connect(&hosts.mobile, tag, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    for new in PLACES {
        hosts.place(new);
        let moved: Instant = clock::now();
        let goes_on = read(&mut stream, &mut at, 200_000);
        let log = std::fs::read_to_string(place.path().join("mobile.toml.log"));
        assert!(
            goes_on,
            "at {new:?}, {:?} after the move: {log:?}",
            clock::now() - moved
        );
    }
    sender.is_over.store(true, Ordering::Relaxed);
    while read(&mut stream, &mut at, 1 << 20) {}
    sender.thread.join().expect("the sender ends");
}

#[test]
fn without_hip_the_first_move_ends_it() {
    let Some(hosts) = Hosts::new() else { return };
    let sender = Sender::start(&hosts.fixed);
    let fixed = FIXED[0].parse().expect("literal");
    let mut stream = connect(&hosts.mobile, fixed, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before the move");
    hosts.place(PLACES[0]);
    // What had arrived before the move is read first.
    let more = read(&mut stream, &mut at, 400_000);
    assert!(
        !more,
        "the connection goes on without HIP: this test shows nothing"
    );
    sender.is_over.store(true, Ordering::Relaxed);
}
