//! Applications that speak IPv4 alone, through moves and to applications that speak IPv6 alone.

use super::{Daemon, FIXED, Hosts, PATIENCE, PLACES, Sender, connect, pace, read, start, table};
use crate::support::{Place, again};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
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

/// A download that goes on through moves.
fn download_through_moves(hosts: &Hosts, to: IpAddr, listens: &str, places: &[(&str, &str)]) {
    hosts.place(("10.1.0.7/24", "10.1.0.1"));
    let sender = Sender::start_at(&hosts.fixed, listens);
    let mut stream = connect(&hosts.mobile, to, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "{to}, {listens}");
    for new in places {
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
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
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
        let (count, from) = again(|| server.recv_from(&mut buffer)).expect("it arrives");
        assert_eq!(buffer[..count], sent, "{to}, {listens}");
        server.send_to(&buffer[..count], from).expect("a route");
        let count = again(|| client.recv(&mut buffer)).expect("it comes back");
        assert_eq!(buffer[..count], sent, "{to}, {listens}");
    }
}

/// Waits until the daemon has made the route to LSIs, which says how long packets may be.
fn await_route(hosts: &Hosts) {
    let show = || {
        Command::new("ip")
            .args(["route", "show", "198.18.0.0/15"])
            .output()
    };
    let begun = clock::now();
    loop {
        let shown = hosts.mobile.run(show).expect("enter");
        let shown = shown.expect("iproute2 is installed").stdout;
        let route = String::from_utf8_lossy(&shown);
        if route.contains("dev hip0") && route.contains("mtu 1412") {
            return;
        }
        assert!(clock::now() - begun < PATIENCE, "{route}");
        pace();
    }
}

/// An LSI that stands for nobody is refused at once, and not only after a while.
fn nobody_is_unreachable(hosts: &Hosts) {
    let nobody = SocketAddr::from(([198, 19, 255, 254], 80));
    let tried = hosts
        .mobile
        .run(|| TcpStream::connect_timeout(&nobody, PATIENCE));
    let error = tried.expect("enter").expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::HostUnreachable, "{error}");
}

#[test]
fn ipv4_alone_reaches_a_host_that_moves_and_either_family_at_its_peer() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_mobile, _fixed, tag): (Daemon, Daemon, IpAddr) = start(&place, &hosts);
    let lsi = lsi(&place, tag);
    await_route(&hosts);
    nobody_is_unreachable(&hosts);
    for to in [lsi, tag] {
        for listens in ["0.0.0.0:0", "[::]:0"] {
            // To another network, and to IPv6.
            download_through_moves(&hosts, to, listens, &PLACES[..2]);
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

/// A peer of which only the address is known, if it lets itself be found that way.
#[test]
fn a_host_without_a_known_tag_is_reached_if_it_answers_everybody() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let tag_of = |name: &str| {
        let said = place.run(["hip", "key", &format!("{name}.key")]);
        said.out.trim().to_owned()
    };
    let (mobile, fixed) = (tag_of("mobile"), tag_of("fixed"));
    let known = "name = \"server\"\nopportunistic = true\naddresses = [\"10.9.0.2\"]";
    let peer = format!("{}[[hip.peers]]\n{known}\n", table(&place, "mobile"));
    place.file("mobile.toml", &peer);
    let said = place.run(["hip", "hosts", "--config", "mobile.toml"]);
    let lsi: IpAddr = match said.out.trim().split_once('\t') {
        Some((lsi, "server")) => lsi.parse().expect("an address"),
        _ => panic!("{said:?}"),
    };
    let _mobile = Daemon::start(&place, &hosts.mobile, "mobile.toml");
    let peer = format!("[[hip.peers]]\ntag = \"{mobile}\"\n");
    // The control: a host that is not to answer is not found.
    place.file("fixed.toml", &format!("{}{peer}", table(&place, "fixed")));
    let silent = Daemon::start(&place, &hosts.fixed, "fixed.toml");
    let listener = hosts.fixed.run(|| TcpListener::bind("[::]:0"));
    let listener = listener.expect("enter").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let patience = std::time::Duration::from_secs(2);
    let to = SocketAddr::new(lsi, port);
    let tried = hosts
        .mobile
        .run(|| TcpStream::connect_timeout(&to, patience));
    assert!(
        tried.expect("enter").is_err(),
        "it answers though it is not to"
    );
    drop((silent, listener));
    let answers = format!("{}opportunistic = true\n{peer}", table(&place, "fixed"));
    place.file("fixed.toml", &answers);
    let _fixed = Daemon::start(&place, &hosts.fixed, "fixed.toml");
    // No address of IPv6 is known of the other host.
    download_through_moves(&hosts, lsi, "[::]:0", &PLACES[..1]);
    let said = place.run(["status", "--control", "mobile.sock"]);
    assert!(
        said.out.contains(&format!("{fixed} established")),
        "{said:?}"
    );
    // Its tag has taken the address's place, and kept the name.
    let named = format!("server, lsi {lsi}");
    assert!(said.out.contains(&named), "{said:?}");
}
