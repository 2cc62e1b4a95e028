//! Applications that speak IPv4 alone, through moves and to applications that speak IPv6 alone.

use super::{Daemon, FIXED, Hosts, PLACES, Sender, connect, read, start, table};
use crate::support::Place;
use outlast_linux::namespace::Namespace;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;

/// The LSI of the mobile host's only peer, by the lines for its file of hosts.
fn lsi(place: &Place, tag: IpAddr) -> IpAddr {
    let peer =
        format!("[[hip.peers]]\ntag = \"{tag}\"\nname = \"server\"\naddresses = {FIXED:?}\n");
    place.file("mobile.toml", &format!("{}{peer}", table(place, "mobile")));
    let said = place.run(["hip", "hosts", "--config", "mobile.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines: Vec<_> = said
        .out
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let [(first, "server"), (second, "server")] = lines[..] else {
        panic!("{}", said.out);
    };
    assert_eq!(first, tag.to_string());
    second.parse().expect("an address of IPv4")
}

/// A download that goes on through moves to networks of both families.
fn download_through_moves(hosts: &Hosts, to: IpAddr, listens: &str) {
    hosts.place(("10.1.0.7/24", "10.1.0.1"));
    let sender = Sender::start_at(&hosts.fixed, listens);
    let mut stream = connect(&hosts.mobile, to, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "{to}, {listens}");
    for new in &PLACES[..2] {
        hosts.place(*new);
        let goes_on = read(&mut stream, &mut at, 200_000);
        assert!(goes_on, "{to}, {listens}, at {new:?}");
    }
    sender.is_over.store(true, Ordering::Relaxed);
    while read(&mut stream, &mut at, 1 << 20) {}
    sender.thread.join().expect("the sender ends");
}

/// A datagram to a server and back; longer than any packet, so that it comes in fragments.
fn datagrams(hosts: &Hosts, to: IpAddr, listens: &str) {
    let bind = |host: &Namespace, at: &str| {
        let bound = host.run(|| UdpSocket::bind(at)).expect("enter");
        let socket = bound.expect("a port");
        let patience = super::PATIENCE.into();
        socket.set_read_timeout(Some(patience)).expect("a socket");
        socket
    };
    let server = bind(&hosts.fixed, listens);
    let port = server.local_addr().expect("bound").port();
    let client = bind(
        &hosts.mobile,
        if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" },
    );
    client.connect(SocketAddr::new(to, port)).expect("a route");
    let mut buffer = [0; 8192];
    for length in [5, 5000] {
        let sent: Vec<u8> = (0..length).map(|at: usize| (at % 251) as u8).collect();
        client.send(&sent).expect("a route");
        let (count, from) = server.recv_from(&mut buffer).expect("it arrives");
        assert_eq!(buffer[..count], sent, "{to}, {listens}");
        server.send_to(&buffer[..count], from).expect("a route");
        let count = client.recv(&mut buffer).expect("it comes back");
        assert_eq!(buffer[..count], sent, "{to}, {listens}");
    }
}

#[test]
fn ipv4_alone_reaches_a_host_that_moves_and_either_family_at_its_peer() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_mobile, _fixed, tag): (Daemon, Daemon, IpAddr) = start(&place, &hosts);
    let lsi = lsi(&place, tag);
    for to in [lsi, tag] {
        for listens in ["0.0.0.0:0", "[::]:0"] {
            download_through_moves(&hosts, to, listens);
            datagrams(&hosts, to, listens);
        }
    }
    let said = place.run(["status", "--control", "mobile.sock"]);
    assert!(said.out.contains(&format!("lsi {lsi}")), "{said:?}");
}

/// The control: the address leads nowhere if no daemon stands behind it.
#[test]
fn without_the_daemon_the_address_leads_nowhere() {
    let Some(hosts) = Hosts::new() else { return };
    let lsi = SocketAddr::from(([198, 18, 0, 77], 80));
    let patience = std::time::Duration::from_millis(300);
    let tried = hosts
        .mobile
        .run(|| TcpStream::connect_timeout(&lsi, patience));
    assert!(
        tried.expect("enter").is_err(),
        "{lsi} is taken: this test shows nothing"
    );
}
