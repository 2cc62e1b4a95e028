//! A host that lists no address of its peer, is killed, and speaks first once it runs again.

use super::{Daemon, Hosts, connect, start};
use crate::path::wait;
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

/// Time within which the restarted host's own connection carries data.
const LIMIT: Duration = Duration::from_secs(2);

/// Time without a packet after which no peer is asked for a sign of life.
const IDLE: Duration = Duration::from_secs(3);

/// Has the fixed host connect to the mobile one's tag, and read what the listener there says.
fn fetch(hosts: &Hosts, listener: &TcpListener, tag: IpAddr) -> io::Result<Duration> {
    let to = SocketAddr::new(tag, listener.local_addr()?.port());
    let begun: Instant = clock::now();
    let mut stream = hosts
        .fixed
        .run(|| TcpStream::connect_timeout(&to, LIMIT))
        .expect("enter")?;
    listener.accept()?.0.write_all(b"here")?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut said = [0; 4];
    stream.read_exact(&mut said)?;
    assert_eq!(&said, b"here");
    Ok(clock::now() - begun)
}

#[test]
fn a_server_that_lists_no_address_and_is_killed_calls_its_idle_client() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_mobile, fixed, tag) = start(&place, &hosts);
    let mobile = place.run(["hip", "tag", "mobile.key"]).out;
    let mobile: IpAddr = mobile.trim().parse().expect("a tag is an address");
    let listen = |host: &outlast_linux::namespace::Namespace| {
        let listener = host.run(|| TcpListener::bind("[::]:0")).expect("enter");
        listener.expect("a port")
    };
    let (server, client) = (listen(&hosts.fixed), listen(&hosts.mobile));
    let port = server.local_addr().expect("bound").port();
    drop(connect(&hosts.mobile, tag, port));
    drop(server.accept().expect("it has connected"));
    // Nobody has anything left to say, nor waits for an answer.
    wait(IDLE);
    let known = place.path().join("fixed.peers");

    // The control: nothing is known of the former process, and the client is idle.
    let kept = std::fs::read_to_string(&known).expect("a file of ours");
    drop(fixed);
    std::fs::remove_file(&known).expect("a file of ours");
    let fixed = Daemon::start(&place, &hosts.fixed, "fixed.toml");
    let without = fetch(&hosts, &client, mobile);
    assert!(without.is_err(), "{without:?}: this test shows nothing");

    drop(fixed);
    std::fs::write(&known, kept).expect("a file of ours");
    let _fixed = Daemon::start(&place, &hosts.fixed, "fixed.toml");
    let took = fetch(&hosts, &client, mobile).expect("it is called");
    assert!(took < LIMIT, "{took:?}");
}
