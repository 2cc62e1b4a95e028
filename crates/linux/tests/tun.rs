//! Two namespaces whose only connection is a TUN device each and the test that carries packets.

mod tun_host;

use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, NetlinkError, Prefix, Route, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::socket::congestion_control as congestion_control_of;
use outlast_linux::tun::{MAX_PACKET, Tun, Written};
use outlast_skip::skip;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use tun_host::{V4, V6};

struct Host {
    namespace: Namespace,
    tun: Tun,
}

/// Host 0 or 1; `None`, with the reason, where this machine does not allow it.
fn host(number: usize) -> Option<Host> {
    let namespace = Namespace::new().inspect_err(|error| skip(error)).ok()?;
    let tun = namespace.run(|| Tun::create("link0")).expect("enter");
    let tun = tun.inspect_err(|error| skip(error)).ok()?;
    tun_host::set_up(&namespace, number);
    Some(Host { namespace, tun })
}

impl Host {
    fn socket(&self, address: &str) -> UdpSocket {
        let address: IpAddr = address.parse().expect("literal");
        let bind = || UdpSocket::bind(SocketAddr::from((address, 7000))).expect("bind");
        self.namespace.run(bind).expect("enter")
    }

    /// Waits for the next packet that the host sends.
    fn packet(&self) -> Vec<u8> {
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(&self.tun, Token(0), Interest::Readable)
            .expect("add");
        let mut buffer = vec![0; MAX_PACKET];
        loop {
            if let Some(packet) = self.tun.read(&mut buffer).expect("read") {
                return packet.to_vec();
            }
            assert_eq!(poller.wait().expect("wait").count(), 1);
        }
    }
}

#[test]
fn packets_arrive_whole_on_ipv4_and_ipv6_and_nothing_else_is_sent() {
    let (Some(one), Some(two)) = (host(0), host(1)) else {
        return;
    };
    for (addresses, headers) in [(V4, 20 + 8), (V6, 40 + 8)] {
        let (from, to) = (one.socket(addresses[0]), two.socket(addresses[1]));
        from.send_to(b"hello", to.local_addr().expect("bound"))
            .expect("send");
        // The first packet of all: no router solicitation, no group report before it.
        let packet = one.packet();
        assert_eq!(packet.len(), headers + 5);
        assert_eq!(two.tun.write(&packet).expect("write"), Written::Delivered);
        let mut received = [0; 16];
        let (length, sender) = to.recv_from(&mut received).expect("receive");
        assert_eq!(
            (&received[..length], sender),
            (&b"hello"[..], from.local_addr().expect("bound"))
        );
    }
    let mut buffer = [0; MAX_PACKET];
    assert_eq!(one.tun.read(&mut buffer).expect("read"), None);
    assert_eq!(two.tun.read(&mut buffer).expect("read"), None);
}

#[test]
fn a_host_that_is_down_takes_no_packet_and_sends_none() {
    let Some(host) = host(0) else { return };
    let down = || {
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface("link0").expect("made");
        let down = InterfaceSettings {
            up: Some(false),
            ..InterfaceSettings::default()
        };
        route.configure(link, &down).expect("configure");
    };
    host.namespace.run(down).expect("enter");
    assert_eq!(host.tun.write(&[0x45; 20]).expect("write"), Written::Down);
}

#[test]
fn statistics_count_packets_and_what_found_the_queue_full() {
    let Some(host) = host(0) else { return };
    let socket = host.socket(V4[0]);
    let count = || {
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface("link0").expect("made");
        let short = InterfaceSettings {
            queue_len: Some(2),
            ..InterfaceSettings::default()
        };
        route.configure(link, &short).expect("configure");
        for _ in 0..5 {
            // Nobody reads: the device's queue takes two, the rest is dropped.
            socket.send_to(b"x", "192.0.2.2:9").expect("send");
        }
        route.statistics(link).expect("statistics")
    };
    let statistics = host.namespace.run(count).expect("enter");
    assert_eq!(statistics.sent_dropped, 3);
    assert_eq!(statistics.received_packets, 0);
}

#[test]
fn a_route_decides_the_congestion_control_of_connections_over_it() {
    let Some(host) = host(0) else { return };
    let connect = || {
        let mut route = RouteSocket::open().expect("netlink");
        let interface = route.interface("link0").expect("made");
        for (address, name) in [(V4[1], "reno"), (V6[1], "reno"), ("192.0.2.3", "cubic")] {
            let destination = Prefix::of_host(address.parse().expect("literal"));
            let congestion_control = Some(name);
            let gateway = None;
            route
                .add_route(&Route {
                    destination,
                    interface,
                    gateway,
                    congestion_control,
                })
                .expect("route");
            let domain = if address.contains(':') {
                Domain::IPV6
            } else {
                Domain::IPV4
            };
            let socket = Socket::new(domain, Type::STREAM.nonblocking(), None).expect("socket");
            let address = SocketAddr::new(destination.address, 9);
            // The SYN is on its way when the call returns; nobody answers.
            let error = socket
                .connect(&address.into())
                .expect_err("not connected yet");
            assert_eq!(error.raw_os_error(), Some(Errno::INPROGRESS.raw_os_error()));
            assert_eq!(congestion_control_of(&socket).expect("readable"), name);
        }
    };
    host.namespace.run(connect).expect("enter");
}

#[test]
fn refusals_say_what_was_asked_for() {
    let Some(host) = host(0) else { return };
    let provoke = || {
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface("link0").expect("made");
        let address = V4[0].parse().expect("literal");
        let twice = route.add_address(
            link,
            Prefix {
                address,
                length: 24,
            },
        );
        (route.interface("absent0"), twice)
    };
    let (absent, twice) = host.namespace.run(provoke).expect("enter");
    assert_eq!(
        absent.expect_err("no such").to_string(),
        "cannot find the interface absent0"
    );
    let NetlinkError::Refused { request, source } = twice.expect_err("there already") else {
        panic!("refused by the kernel");
    };
    assert_eq!(request, "add the address 192.0.2.1/24 to interface 2");
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn unusable_names_are_refused() {
    let Some(host) = host(0) else { return };
    let create = || ["", "a-name-too-long-for-linux", "nul\0"].map(Tun::create);
    for outcome in host.namespace.run(create).expect("enter") {
        assert!(outcome.is_err());
    }
}
