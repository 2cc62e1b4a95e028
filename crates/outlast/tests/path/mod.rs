//! A fixed host, a gateway and a mobile host in network namespaces of their own; between gateway
//! and mobile a switch whose ports go up and down.

use crate::support::{Place, Said};
use outlast_core::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, Route, RouteSocket};
use outlast_linux::socket::TcpInfo;
use outlast_linux::{process, sysctl};
use rustix::fd::AsFd;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The gateway's interface towards the mobile host, and the mobile host's own.
pub(crate) const LINK: &str = "link0";

/// The four places. They are gone when it is dropped.
pub(crate) struct Path {
    pub(crate) fixed: Namespace,
    pub(crate) gateway: Namespace,
    /// What is between gateway and mobile host.
    air: Namespace,
    pub(crate) mobile: Namespace,
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
const OUTER: Addresses = Addresses {
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

#[expect(clippy::print_stderr, reason = "a skipped test names what is missing")]
pub(crate) fn skip(what: &str) {
    eprintln!("skipped: {}", what.trim());
}

#[expect(
    clippy::disallowed_methods,
    reason = "an outage lasts, and a paced sender waits, for a time and nothing else"
)]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
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
        let namespace = || Namespace::new().inspect_err(|error| skip(&error.to_string()));
        let path = Self {
            fixed: namespace().ok()?,
            gateway: namespace().ok()?,
            air: namespace().ok()?,
            mobile: namespace().ok()?,
        };
        let inside = |namespace: &Namespace, work: &(dyn Fn(&mut RouteSocket) + Sync)| {
            let work = || work(&mut RouteSocket::open().expect("netlink"));
            namespace.run(work).expect("enter");
        };
        inside(&path.gateway, &|route| {
            route
                .add_veth("fixed0", "eth0", Some(path.fixed.as_fd()))
                .expect("veth");
            route
                .add_veth(LINK, "gateway", Some(path.air.as_fd()))
                .expect("veth");
            sysctl::write("net.ipv4.ip_forward", "1").expect("sysctl");
            sysctl::write("net.ipv6.conf.all.forwarding", "1").expect("sysctl");
            ask_again_soon();
        });
        inside(&path.mobile, &|route| {
            route
                .add_veth(LINK, "mobile", Some(path.air.as_fd()))
                .expect("veth");
            ask_again_soon();
        });
        inside(&path.air, &|route| {
            route.add_bridge("air").expect("bridge");
            let bridge = route.interface("air").expect("made");
            switch_on(route, "air");
            for port in ["gateway", "mobile"] {
                let index = route.interface(port).expect("made");
                route.attach(index, bridge).expect("port");
                switch_on(route, port);
            }
        });
        inside(&path.gateway, &|route| {
            equip(route, "fixed0", INNER, None);
            equip(route, LINK, OUTER, None);
        });
        inside(&path.fixed, &|route| {
            equip(route, "eth0", FIXED, Some(INNER));
        });
        inside(&path.mobile, &|route| {
            equip(route, LINK, MOBILE, Some(OUTER));
        });
        Some(path)
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

    fn switch(&self, ports: &[&str], up: bool) -> Instant {
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            for port in ports {
                set(&mut route, port, up);
            }
        };
        self.air.run(work).expect("enter");
        clock::now()
    }
}

fn set(route: &mut RouteSocket, name: &str, up: bool) {
    let index = route.interface(name).expect("made");
    let settings = InterfaceSettings {
        up: Some(up),
        ..InterfaceSettings::default()
    };
    route.configure(index, &settings).expect("configure");
}

fn switch_on(route: &mut RouteSocket, name: &str) {
    set(route, name, true);
}

/// Gives an interface its addresses, switches it on, and sends all else to `router`.
fn equip(route: &mut RouteSocket, name: &str, own: Addresses, router: Option<Addresses>) {
    let interface = route.interface(name).expect("made");
    for (version, length) in [(Version::V4, 24), (Version::V6, 64)] {
        let address = own.of(version);
        let prefix = Prefix { address, length };
        route.add_address(interface, prefix).expect("address");
    }
    switch_on(route, name);
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

/// A daemon in a namespace.
pub(crate) struct Daemon {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) introduction: String,
    control: PathBuf,
}

impl Daemon {
    /// `outlast run` with `mechanism` on the link, once packets go through it; `None`, with the
    /// reason, where this machine lacks something.
    pub(crate) fn start(place: &Place, namespace: &Namespace, mechanism: &str) -> Option<Self> {
        let control = place
            .path()
            .join(format!("{}.sock", namespace.id().expect("a namespace").0));
        let mut command = command(place, namespace, &control);
        command.args(["--mechanism", mechanism]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("outlast was built");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut introduction = String::new();
        stderr.read_line(&mut introduction).expect("text");
        if !introduction.contains(LINK) {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).expect("text");
            let code = child.wait().expect("it ends").code();
            assert_eq!(code, Some(3), "{introduction}{rest}");
            skip(&introduction);
            return None;
        }
        Some(Self {
            child,
            stderr,
            introduction,
            control,
        })
    }

    /// What another one for the same interface says.
    pub(crate) fn second(&self, place: &Place, namespace: &Namespace) -> Said {
        let mut command = command(place, namespace, &self.control);
        Said::of(command.output().expect("outlast was built"))
    }

    /// What `outlast status --json` says.
    pub(crate) fn status(&self, place: &Place) -> Value {
        let said = self.ask(place, &["status", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        serde_json::from_str(&said.out).expect("one JSON document")
    }

    /// Runs a subcommand that talks to this daemon.
    pub(crate) fn ask(&self, place: &Place, arguments: &[&str]) -> Said {
        let mut command = place.command(arguments);
        command.arg("--control").arg(&self.control);
        Said::of(command.output().expect("outlast was built"))
    }

    /// Ends it as the kernel ends what runs amok.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it still runs");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end; what it said since its introduction.
    pub(crate) fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it still runs");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {said}");
        assert!(!self.control.exists(), "the socket is left behind");
        said
    }
}

impl Drop for Daemon {
    /// A test that fails leaves nobody behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

/// `outlast run` on the link, to be run in `namespace`.
fn command(place: &Place, namespace: &Namespace, control: &std::path::Path) -> Command {
    let mut command = place.command(["run", "--interface", LINK]);
    command.arg("--control").arg(control);
    let network = namespace.as_fd().try_clone_to_owned().expect("descriptor");
    process::place(&mut command, None, network);
    command
}

/// A paced transfer between two hosts.
pub(crate) struct Transfer {
    reads: mpsc::Receiver<Arrival>,
    /// The sending socket.
    out: TcpStream,
    sender: JoinHandle<()>,
    receiver: JoinHandle<Vec<u8>>,
    length: usize,
    got: usize,
}

/// Bytes that the receiving application got.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    bytes: usize,
}

/// Bytes that the sending application writes at a time, and how often.
const CHUNK: usize = 32 << 10;
const PACE: Duration = Duration::from_millis(10);

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 251 + n) as u8).collect()
}

impl Transfer {
    /// From `from` to `to`, `length` bytes at about 3 MB/s.
    pub(crate) fn start(from: &Namespace, to: &Namespace, address: IpAddr, length: usize) -> Self {
        let any = SocketAddr::new(address, 0);
        let listener = to.run(|| TcpListener::bind(any).expect("bind"));
        let listener = listener.expect("enter");
        let server = listener.local_addr().expect("bound");
        let out = from
            .run(|| TcpStream::connect(server).expect("connect"))
            .expect("enter");
        let mut writer = out.try_clone().expect("descriptor");
        let (mut input, _) = listener.accept().expect("accept");
        let sender = std::thread::spawn(move || {
            for chunk in content(length).chunks(CHUNK) {
                writer.write_all(chunk).expect("write");
                wait(PACE);
            }
            writer.shutdown(Shutdown::Write).expect("still open");
        });
        let (arrivals, reads) = mpsc::channel();
        let receiver = std::thread::spawn(move || {
            let mut all = Vec::new();
            let mut buffer = vec![0; 1 << 20];
            loop {
                let bytes = input.read(&mut buffer).expect("read");
                all.extend(&buffer[..bytes]);
                let at = clock::now();
                // Nobody counts any more once the test waits for the end.
                let _ = arrivals.send(Arrival { at, bytes });
                if bytes == 0 {
                    return all;
                }
            }
        });
        Self {
            reads,
            out,
            sender,
            receiver,
            length,
            got: 0,
        }
    }

    /// Waits until the receiver has `bytes`.
    pub(crate) fn wait_for(&mut self, bytes: usize) {
        while self.got < bytes {
            let arrival = self.reads.recv().expect("it goes on");
            assert!(arrival.bytes > 0, "it ended with {} bytes", self.got);
            self.got += arrival.bytes;
        }
    }

    /// Waits until the sender has doubled its timeout so often.
    pub(crate) fn wait_for_backoff(&self, doublings: u8) {
        while TcpInfo::of(&self.out).expect("a TCP socket").backoff() < doublings {
            wait(PACE);
        }
    }

    /// The time from `up` until the receiver got something new.
    pub(crate) fn resumed_after(&mut self, up: Instant) -> Duration {
        loop {
            let arrival = self.reads.recv().expect("it goes on");
            self.got += arrival.bytes;
            if arrival.at >= up && arrival.bytes > 0 {
                return arrival.at.since(up);
            }
        }
    }

    /// Waits for its end; everything must have arrived as it was sent.
    pub(crate) fn finish(self) {
        self.sender.join().expect("everything was written");
        let all = self.receiver.join().expect("everything was read");
        assert_eq!(all.len(), self.length);
        assert!(
            all == content(self.length),
            "what arrived is not what was sent"
        );
    }
}
