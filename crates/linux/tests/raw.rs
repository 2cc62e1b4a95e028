//! Packets with a header of their own, between two hosts on a wire.

use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
use outlast_linux::raw::{RawSender, Sent};
use outlast_skip::skip;
use outlast_wire::{IpHeader, Packet, UdpHeader};
use rustix::fd::AsFd;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

/// Two hosts, `192.0.2.1` and `192.0.2.2` (and their IPv6 likes), on `link0`.
fn hosts() -> Option<[Namespace; 2]> {
    let namespace = || Namespace::new().inspect_err(|error| skip(error)).ok();
    let (one, two) = (namespace()?, namespace()?);
    let wire = || {
        let mut route = RouteSocket::open().expect("netlink");
        let made = route.add_veth("link0", "link0", Some(two.as_fd()));
        made.expect("veth");
    };
    one.run(wire).expect("enter");
    for (host, number) in [(&one, 1), (&two, 2)] {
        let equip = || {
            let mut route = RouteSocket::open().expect("netlink");
            let link = route.interface("link0").expect("made");
            for (network, length) in [("192.0.2.", 24), ("2001:db8::", 64)] {
                let address = format!("{network}{number}").parse().expect("an address");
                let prefix = Prefix { address, length };
                route.add_address(link, prefix).expect("address");
            }
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            route.configure(link, &up).expect("up");
        };
        host.run(equip).expect("enter");
    }
    // Each end is ready once the other one is up.
    for (host, number) in [(&one, 1), (&two, 2)] {
        let settle = || {
            let mut route = RouteSocket::open().expect("netlink");
            for network in ["192.0.2.", "2001:db8::"] {
                let address = format!("{network}{number}").parse().expect("an address");
                route.await_address(address).expect("in use");
            }
        };
        host.run(settle).expect("enter");
    }
    Some([one, two])
}

fn datagram(source: &str, destination: IpAddr, port: u16, payload: &[u8]) -> Packet {
    let ip = IpHeader {
        source: source.parse().expect("literal"),
        destination,
        hop_limit: 9,
        traffic_class: 0,
        identification: 77,
    };
    let udp = UdpHeader {
        source_port: 5,
        destination_port: port,
    };
    Packet::udp_datagram(ip, udp, payload)
}

/// Sends until something arrives, once a second.
fn until_heard(receiver: &UdpSocket, buffer: &mut [u8], send: impl Fn()) -> (usize, SocketAddr) {
    let often = Some(Duration::from_secs(1));
    receiver.set_read_timeout(often).expect("not zero");
    for _ in 0..30 {
        send();
        match receiver.recv_from(buffer) {
            Ok(heard) => return heard,
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
                "{error}"
            ),
        }
    }
    panic!("nothing arrives");
}

#[test]
fn a_packet_arrives_whoever_it_is_from() {
    let Some([one, two]) = hosts() else { return };
    let sender = one.run(|| RawSender::open(7, Some("link0")));
    let sender = sender.expect("enter").expect("privileged");
    // The receiver must have a way back to the source, as a host behind a gateway has.
    for (to, foreign) in [("192.0.2.2", "192.0.2.77"), ("2001:db8::2", "2001:db8::77")] {
        let any = SocketAddr::new(to.parse().expect("literal"), 0);
        let receiver = two.run(|| UdpSocket::bind(any).expect("bind"));
        let receiver = receiver.expect("enter");
        let to = receiver.local_addr().expect("bound");
        let packet = datagram(foreign, to.ip(), to.port(), b"hello");
        let mut buffer = [0; 16];
        // A kernel whose own link-local address is not in use yet looks for no neighbour, and drops the packet in the end.
        let (length, from) = until_heard(&receiver, &mut buffer, || {
            let sent = sender.send(to.ip(), &packet.to_bytes());
            assert_eq!(sent.expect("a packet"), Sent::Accepted);
        });
        assert_eq!(&buffer[..length], b"hello");
        assert_eq!(from.ip(), foreign.parse::<IpAddr>().expect("literal"));
    }
}

#[test]
fn what_cannot_be_sent_is_told() {
    let Some([one, _two]) = hosts() else { return };
    let sender = one.run(|| RawSender::open(7, Some("link0")));
    let sender = sender.expect("enter").expect("privileged");
    let near = "192.0.2.2".parse().expect("literal");
    let long = datagram("192.0.2.77", near, 9, &[0; 2000]).to_bytes();
    assert_eq!(sender.send(near, &long).expect("a packet"), Sent::TooLong);
    let away = one.run(|| RawSender::open(7, None)).expect("enter");
    let away = away.expect("privileged");
    let far = "203.0.113.1".parse().expect("literal");
    let lost = datagram("192.0.2.77", far, 9, b"x").to_bytes();
    assert_eq!(away.send(far, &lost).expect("a packet"), Sent::Unreachable);
    assert!(sender.send(near, b"no packet").is_err());
}

#[test]
fn a_way_that_ends_in_a_black_hole_is_none() {
    let Some([one, _two]) = hosts() else { return };
    for (from, to, length) in [
        ("192.0.2.77", "203.0.113.1", 24),
        ("2001:db8::77", "2001:db8:9::1", 64),
    ] {
        let to: IpAddr = to.parse().expect("literal");
        let lose = || {
            let mut route = RouteSocket::open().expect("netlink");
            let destination = Prefix {
                address: match to {
                    IpAddr::V4(_) => "203.0.113.0".parse().expect("literal"),
                    IpAddr::V6(_) => "2001:db8:9::".parse().expect("literal"),
                },
                length,
            };
            route.add_black_hole(destination).expect("a route");
        };
        one.run(lose).expect("enter");
        for interface in [None, Some("link0")] {
            let sender = one.run(|| RawSender::open(7, interface)).expect("enter");
            let sender = sender.expect("privileged");
            let packet = datagram(from, to, 9, b"x").to_bytes();
            let sent = sender.send(to, &packet).expect("no reason to give up");
            if interface.is_none() {
                assert_eq!(sent, Sent::Unreachable, "{to}");
            }
        }
    }
}

/// Gives the kernel of a namespace a command of `ip`; `false`, with the reason, where it lacks something.
fn ip(namespace: &Namespace, line: &str) -> bool {
    let run = || Command::new("ip").args(line.split(' ')).output();
    match namespace.run(run).expect("enter") {
        Ok(done) if done.status.success() => true,
        Ok(done) => {
            skip(format!(
                "ip {line}: {}",
                String::from_utf8_lossy(&done.stderr)
            ));
            false
        }
        Err(error) => {
            skip(format!("ip: {error}"));
            false
        }
    }
}

/// A source that is no address of the sender's host, and the other host, of both versions.
const FOREIGN: [[&str; 2]; 2] = [["192.0.2.77", "192.0.2.2"], ["2001:db8::77", "2001:db8::2"]];

/// A port for which there is a policy, and one for which there is none.
const PORTS: [u16; 2] = [7_001, 7_002];

fn sent(sender: &RawSender, [from, to]: [&str; 2], port: u16) -> Sent {
    let to = to.parse().expect("literal");
    let packet = datagram(from, to, port, b"x").to_bytes();
    sender.send(to, &packet).expect("a packet")
}

#[test]
fn a_policy_of_ipsec_holds_for_packets_with_its_source_protocol_and_port() {
    let Some([one, _two]) = hosts() else { return };
    for interface in [None, Some("link0")] {
        let sender = one.run(|| RawSender::open(7, interface)).expect("enter");
        let sender = sender.expect("privileged");
        for [from, to] in FOREIGN {
            let [blocked, open] = PORTS;
            assert_eq!(sent(&sender, [from, to], blocked), Sent::Accepted);
            let which = format!("dir out src {from} dst {to} proto udp dport {blocked}");
            if !ip(&one, &format!("xfrm policy add {which} action block")) {
                return;
            }
            assert_eq!(sent(&sender, [from, to], blocked), Sent::Forbidden, "{to}");
            assert_eq!(sent(&sender, [from, to], open), Sent::Accepted, "{to}");
            assert!(ip(&one, &format!("xfrm policy delete {which}")));
        }
    }
}

/// A firewall may give such a mark to others' packets; the sender's bear another.
#[test]
fn a_packet_that_a_policy_for_marked_ones_is_meant_for_is_not_sent() {
    let Some([one, _two]) = hosts() else { return };
    let sender = one.run(|| RawSender::open(7, None)).expect("enter");
    let sender = sender.expect("privileged");
    for [from, to] in FOREIGN {
        let which = format!("dir out src {from} dst {to}");
        for (mark, expected) in [("5", Sent::Unprotected), ("7", Sent::Forbidden)] {
            let policy = format!("xfrm policy add {which} mark {mark} mask 0xff action block");
            if !ip(&one, &policy) {
                return;
            }
            assert_eq!(sent(&sender, [from, to], 9), expected, "{policy}");
            let gone = format!("xfrm policy delete {which} mark {mark} mask 0xff");
            assert!(ip(&one, &gone));
            assert_eq!(sent(&sender, [from, to], 9), Sent::Accepted, "{to}");
        }
        let exempt = format!("xfrm policy add {which} mark 5 mask 0xff action allow");
        assert!(ip(&one, &exempt));
        assert_eq!(sent(&sender, [from, to], 9), Sent::Accepted, "{exempt}");
    }
}

#[test]
fn a_rule_for_a_source_holds() {
    let Some([one, _two]) = hosts() else { return };
    let sender = one.run(|| RawSender::open(7, None)).expect("enter");
    let sender = sender.expect("privileged");
    for (version, [from, to]) in ["-4", "-6"].into_iter().zip(FOREIGN) {
        assert_eq!(sent(&sender, [from, to], 9), Sent::Accepted, "{to}");
        if !ip(&one, &format!("{version} rule add from {from} unreachable")) {
            return;
        }
        assert_eq!(sent(&sender, [from, to], 9), Sent::Unreachable, "{to}");
    }
}
