//! `outlast run --role host`: an upload over a link without carrier resumes when it is back.
//!
//! Where this machine lacks what that needs, a test says so and ends.

mod answers;
mod ending;
mod errors;
mod fast;
mod flapping;
mod idle;
mod lacking;
mod neighbours;
mod new_path;
mod operating;
mod probing;
mod reconnection;
mod requests;
mod short_queue;
mod silence;
mod slower_path;

use crate::path::skip;
use crate::path::wiring::ip;
use crate::support::{Place, again};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::AsFd;
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Longer than anything takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// With timeouts of 0.2 s the sender repeats 0.2, 0.6, 1.4, 3.0 and 6.2 s after the loss: the link comes
/// back long after one repetition and long before the next.
const OUTAGE: Duration = Duration::from_millis(4_500);

/// The round trip is less than a millisecond.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Two hosts and a cable.
struct Hosts {
    mobile: Namespace,
    fixed: Namespace,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a paced sender, and an outage, wait for a time and nothing else"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}

impl Hosts {
    fn new() -> Option<Self> {
        let new = || {
            let namespace = Namespace::new();
            namespace.inspect_err(|error| skip(error)).ok()
        };
        let (mobile, fixed) = (new()?, new()?);
        let cable = || {
            let mut routes = RouteSocket::open().expect("netlink");
            let other = Some(mobile.as_fd());
            routes.add_veth("link0", "link0", other).expect("a cable");
        };
        fixed.run(cable).expect("enter");
        let ends = [
            (&mobile, "10.1.0.7", "02:00:00:00:00:07"),
            (&fixed, "10.1.0.1", "02:00:00:00:00:01"),
        ];
        for ((namespace, address, hardware), (_, peer, far)) in
            [(ends[0], ends[1]), (ends[1], ends[0])]
        {
            ip(namespace, "link set lo up");
            ip(namespace, &format!("address add {address}/24 dev link0"));
            ip(namespace, &format!("link set link0 address {hardware} up"));
            // Nobody asks for neighbours, as on links of phones and of modems: where the kernel asks in
            // vain it takes the back-off back by itself.
            let known = format!("neigh add {peer} lladdr {far} dev link0 nud permanent");
            ip(namespace, &known);
            let reno = || outlast_linux::sysctl::write("net.ipv4.tcp_congestion_control", "reno");
            namespace.run(reno).expect("enter").expect("reno is there");
        }
        Some(Self { mobile, fixed })
    }

    /// From the link's return until the fixed host has new bytes of an upload.
    fn resume(&self) -> Duration {
        let cut = || ip(&self.fixed, "link set link0 down");
        self.resume_after(cut, || ip(&self.fixed, "link set link0 up"))
    }

    /// From the end of an outage until the fixed host has new bytes of an upload.
    fn resume_after(&self, cut: impl FnOnce(), mend: impl FnOnce()) -> Duration {
        resume_between(&self.mobile, &self.fixed, cut, mend)
    }
}

/// From the end of an outage until `receiver`, which is 10.1.0.1, has new bytes of a transfer.
fn resume_between(
    sender: &Namespace,
    receiver: &Namespace,
    cut: impl FnOnce(),
    mend: impl FnOnce(),
) -> Duration {
    resume_of("reno", sender, receiver, cut, mend)
}

/// From the end of an outage until `receiver`, which is 10.1.0.1, has new bytes of a transfer whose sender uses
/// `congestion`.
fn resume_of(
    congestion: &str,
    sender: &Namespace,
    receiver: &Namespace,
    cut: impl FnOnce(),
    mend: impl FnOnce(),
) -> Duration {
    let listen = || TcpListener::bind("10.1.0.1:0").expect("a port");
    let listener = receiver.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| send(congestion, sender, to, &is_over));
        let (mut stream, _) = listener.accept().expect("the sender comes");
        read_for(&mut stream, Duration::from_secs(1));
        cut();
        // What is in the socket's buffer has come before.
        read_for(&mut stream, OUTAGE);
        mend();
        let back = clock::now();
        let timeout = Some(PATIENCE);
        stream.set_read_timeout(timeout).expect("a socket");
        let count = again(|| stream.read(&mut [0; 1024])).expect("it goes on");
        let resumed = clock::now().since(back);
        assert_ne!(count, 0, "the transfer has ended");
        is_over.store(true, Ordering::Relaxed);
        drop(stream);
        resumed
    })
}

/// Sends a little every five milliseconds until it is over, or the other side has enough.
fn send(congestion: &str, sender: &Namespace, to: SocketAddr, is_over: &AtomicBool) {
    let connect = || TcpStream::connect(to).expect("the receiver listens");
    let mut stream = sender.run(connect).expect("enter");
    sockopt::set_tcp_congestion(&stream, congestion).expect("it is there");
    while !is_over.load(Ordering::Relaxed) && stream.write_all(&[7; 4096]).is_ok() {
        pause(Duration::from_millis(5));
    }
}

/// Reads what comes in that time.
fn read_for(stream: &mut TcpStream, time: Duration) {
    let end = clock::now() + time;
    let mut buffer = [0; 16_384];
    loop {
        let left = end.since(clock::now());
        if left.is_zero() {
            return;
        }
        let timeout = Some(left);
        stream.set_read_timeout(timeout).expect("a socket");
        // An error is that the time is over, as the clock says.
        if let Ok(0) = stream.read(&mut buffer) {
            panic!("the transfer has ended");
        }
    }
}

/// `outlast run --role host` in a namespace.
struct Agent {
    child: Child,
    log: std::path::PathBuf,
}

impl Agent {
    fn start(place: &Place, host: &Namespace, arguments: &[&str]) -> Self {
        let log = place.path().join("agent.log");
        let file = std::fs::File::create(&log).expect("a file in a directory of ours");
        let start = || {
            let mut command = place.command(["run", "--role", "host"]);
            command.args(["--control", "host.sock"]).args(arguments);
            command.stderr(file).stdout(Stdio::null());
            command.spawn().expect("outlast was built")
        };
        let child = host.run(start).expect("enter");
        let mut agent = Self { child, log };
        agent.wait_for("the host agent begins");
        agent
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("its log")
    }

    fn wait_for(&mut self, words: &str) {
        let begun: Instant = clock::now();
        while !self.said().contains(words) {
            let ended = self.child.try_wait().expect("it is our child");
            let is_late = clock::now().since(begun) > PATIENCE;
            assert!(ended.is_none() && !is_late, "{}", self.said());
            pause(Duration::from_millis(10));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The child is ours and not waited for: its number is its own still.
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

/// When uploads over the same outage resume, with the agent and without, and what the agent says.
fn resumes() -> Option<([Duration; 2], String)> {
    let (helped, alone) = (Hosts::new()?, Hosts::new()?);
    let place = Place::new();
    let mut agent = Agent::start(&place, &helped.mobile, &[]);
    let resumed = thread::scope(|scope| {
        let both = [&helped, &alone].map(|hosts| scope.spawn(|| hosts.resume()));
        both.map(|resumed| resumed.join().expect("it is measured"))
    });
    agent.wait_for("stalled=1");
    Some((resumed, agent.said()))
}

#[test]
fn an_upload_resumes_at_once_when_the_carrier_is_back() {
    let mut late = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake.
    for _ in 0..3 {
        let Some(([with, without], said)) = resumes() else {
            return;
        };
        // Otherwise this shows nothing.
        assert!(without > AT_ONCE * 4, "{without:?} without the agent");
        if with <= AT_ONCE {
            return;
        }
        late.push((with, said));
    }
    panic!("{late:?}");
}

#[test]
fn a_configuration_is_checked() {
    let place = Place::new();
    let check = ["run", "--role", "host", "--check-config"];
    let said = place.run(check);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("interfaces    all"), "{}", said.out);
    place.file("host.toml", "[host]\nburst = 0\n");
    let said = place.run(check.into_iter().chain(["--config", "host.toml"]));
    said.refuses(2, &["burst = 0", "at least 1"]);
    let said = place.run(check.into_iter().chain(["--interface", "eth0"]));
    said.refuses(2, &["--interface", "gateways"]);
}
