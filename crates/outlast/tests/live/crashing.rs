//! `outlast run` beside a client that crashes while the link is away, and connects again from the same
//! port: what was kept of the former connection is nobody's, and the new one is kept like any other.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, FIXED, MOBILE, Over, Path, Transfer, Version, keeps_something, until};
use crate::support::Place;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpRepair;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use rustix::net::connect_unspec;
use serde_json::Value;
use socket2::{Domain, SockRef, Socket, Type};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const BYTES: usize = 4_000_000;
/// Bytes that the client's host is sent during the outage.
const HELD: usize = 50_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// Which host the client is on.
#[derive(Clone, Copy, Debug)]
enum Client {
    /// The gateway keeps what it sends.
    Fixed,
    /// The gateway keeps what it is sent.
    Mobile,
}

/// A connection to `server` from a port that may just have had one.
fn connect(client: &Namespace, from: SocketAddr, server: SocketAddr) -> TcpStream {
    let connect = || {
        let socket = Socket::new(Domain::for_address(from), Type::STREAM, None).expect("socket");
        socket.set_reuse_address(true).expect("a socket");
        socket.bind(&from.into()).expect("the port is free");
        socket.connect(&server.into()).expect("somebody listens");
        TcpStream::from(socket)
    };
    client.run(connect).expect("enter")
}

/// How a host goes down: it says nothing, and knows nothing of the connection afterwards.
fn crash(end: TcpStream) {
    // The kernel forgets the connection as if it were to be restored elsewhere.
    setsockopt(&end, TcpRepair, &1).expect("the superuser's");
    // Programs that other tests start may share the socket for a moment, so that closing it would not end it.
    connect_unspec(&end).expect("a socket that disconnects");
}

/// Whether a socket has said a SYN, and waits.
fn is_trying(namespace: &Namespace, from: SocketAddr) -> bool {
    const SYN_SENT: &str = "02";
    let table = match from {
        SocketAddr::V4(_) => "/proc/thread-self/net/tcp",
        SocketAddr::V6(_) => "/proc/thread-self/net/tcp6",
    };
    let sockets = || fs::read_to_string(table).expect("the kernel tells");
    let sockets = namespace.run(sockets).expect("enter");
    let port = format!(":{:04X}", from.port());
    sockets.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_its = words.next().is_some_and(|local| local.ends_with(&port));
        is_its && words.nth(1) == Some(SYN_SENT)
    })
}

fn connects_again(client: Client, over: Over, version: Version) -> Option<()> {
    let place = Place::new();
    let path = Path::new()?;
    let daemon = Daemon::start_over(over, &place, &path.gateway, "hold")?;
    let (own, others, addresses) = match client {
        Client::Fixed => (&path.fixed, &path.mobile, [FIXED, MOBILE]),
        Client::Mobile => (&path.mobile, &path.fixed, [MOBILE, FIXED]),
    };
    let [any, server] = addresses.map(|one| SocketAddr::new(one.of(version), 0));
    let listener = others.run(|| TcpListener::bind(server).expect("bind"));
    let listener = listener.expect("enter");
    let server = listener.local_addr().expect("bound");
    let former = connect(own, any, server);
    let (mut left, from) = listener.accept().expect("accept");
    // Both hosts are heard.
    for (one, other) in [(&former, &left), (&left, &former)] {
        let (mut one, mut other) = (one, other);
        one.write_all(b"here").expect("room");
        other.read_exact(&mut [0; 4]).expect("it comes");
    }
    path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    daemon.status_when("the outage", is_down);
    let mut fixed_end = match client {
        Client::Fixed => &former,
        Client::Mobile => &left,
    };
    // Linux 6.12 gives a new connection room for 46 kB.
    let room = SockRef::from(fixed_end).set_send_buffer_size(2 * HELD);
    room.expect("a socket");
    fixed_end.write_all(&[7; HELD]).expect("room");
    daemon.status_when("something that is held", keeps_something);
    crash(former);
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| connect(own, from, server));
        until("a client that tries again", || is_trying(own, from));
        if matches!(client, Client::Fixed) {
            let is_kept = |status: &Value| status["held_other_bytes"].as_u64() > Some(0);
            daemon.status_when("a SYN that waits", is_kept);
        }
        path.mend();
        again.join().expect("no panic")
    });
    let (accepted, whence) = listener.accept().expect("accept");
    assert_eq!(whence, from, "the same port");
    // Whoever was left hears that nobody is there any more.
    left.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut rest = Vec::new();
    let ended = left.read_to_end(&mut rest).expect_err("no orderly end");
    assert_eq!(ended.kind(), ErrorKind::ConnectionReset, "{client:?}");
    let (out, input) = match client {
        Client::Fixed => (again, accepted),
        Client::Mobile => (accepted, again),
    };
    let mut transfer = Transfer::over(out, input, BYTES);
    transfer.wait_for(BYTES / 4);
    path.cut_amid(&daemon, transfer);
    daemon.stop();
    Some(())
}

fn connects_again_by_either_path(client: Client) {
    for (over, version) in [
        (Over::Ebpf, Version::V4),
        (Over::Ebpf, Version::V6),
        (Over::Nfqueue, Version::V4),
    ] {
        // What this machine lacks was said.
        let _ = connects_again(client, over, version);
    }
}

#[test]
fn a_client_that_crashes_during_an_outage_connects_again_from_the_same_port() {
    connects_again_by_either_path(Client::Fixed);
}

#[test]
fn a_mobile_client_that_crashes_during_an_outage_connects_again_from_the_same_port() {
    connects_again_by_either_path(Client::Mobile);
}
