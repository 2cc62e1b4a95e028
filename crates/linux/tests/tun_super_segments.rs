//! Two namespaces whose only connection is a TUN device each that carries super-segments, and the test.

use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::sysctl;
use outlast_linux::tun::{FromHost, SuperSegmentTun, TcpLayout, Written};
use outlast_linux::waker::Waker;
use outlast_skip::skip;
use outlast_wire::Packet;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};

const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
const BYTES: usize = 4 << 20;

struct Host {
    namespace: Namespace,
    tun: SuperSegmentTun,
}

/// Host 0 or 1; `None`, with the reason, where this machine does not allow it.
fn host(number: usize) -> Option<Host> {
    let namespace = Namespace::new().inspect_err(|error| skip(error)).ok()?;
    let create = || SuperSegmentTun::create("link0");
    let tun = namespace.run(create).expect("enter");
    let tun = tun.inspect_err(|error| skip(error)).ok()?;
    let set_up = || {
        sysctl::write("net.ipv6.conf.link0.addr_gen_mode", "1").expect("sysctl");
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface("link0").expect("made above");
        let settings = InterfaceSettings {
            up: Some(true),
            multicast: Some(false),
            mtu: Some(1400),
            queue_len: Some(2000),
        };
        route.configure(link, &settings).expect("configure");
        for (address, length) in [(V4[number], 24), (V6[number], 64)] {
            let address = address.parse().expect("literal");
            route
                .add_address(link, Prefix { address, length })
                .expect("address");
            route.await_address(address).expect("in use");
        }
    };
    namespace.run(set_up).expect("enter");
    Some(Host { namespace, tun })
}

/// Hands what one host sends to the other; whether it was a super-segment.
fn hand_over(read: FromHost<'_>, to: &SuperSegmentTun) -> bool {
    let packet = Packet::parse(read.bytes.to_vec().into()).expect("a packet");
    let written = match (read.segment_size, packet.tcp()) {
        (Some(segment_size), Some(_)) => {
            let payload_at = packet.total_len() - packet.header().payload_len;
            let transport_at = match packet.header().ip.source {
                IpAddr::V4(_) => 20,
                IpAddr::V6(_) => 40,
            };
            let layout = TcpLayout {
                transport_at,
                payload_at: u16::try_from(payload_at).expect("short headers"),
                segment_size,
            };
            to.write_super_segment(read.bytes, layout)
        }
        _ if read.lacks_checksum => to.write(&packet.with_checksum().to_bytes()),
        _ => to.write(read.bytes),
    };
    assert_eq!(written.expect("write"), Written::Delivered);
    read.segment_size.is_some()
}

#[test]
fn a_transfer_in_super_segments_arrives_whole() {
    let (Some(one), Some(two)) = (host(0), host(1)) else {
        return;
    };
    for address in [V4[1], V6[1]] {
        let address: IpAddr = address.parse().expect("literal");
        let listen = || TcpListener::bind((address, 0)).expect("a port");
        let listener = two.namespace.run(listen).expect("enter");
        let to = listener.local_addr().expect("bound");
        let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let end = Waker::new().expect("a descriptor");
        let (received, super_segments) = std::thread::scope(|scope| {
            let one = &one;
            let sent = &sent;
            scope.spawn(move || {
                let connect = || TcpStream::connect(to).expect("it listens");
                let mut stream = one.namespace.run(connect).expect("enter");
                stream.write_all(sent).expect("it reads");
            });
            let receiver = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("somebody comes");
                let mut received = Vec::new();
                stream.read_to_end(&mut received).expect("to its end");
                end.wake();
                received
            });
            let mut poller = Poller::new().expect("epoll");
            for (source, token) in [(&one.tun, Token(0)), (&two.tun, Token(1))] {
                poller.add(source, token, Interest::Readable).expect("add");
            }
            poller.add(&end, Token(2), Interest::Readable).expect("add");
            let mut buffer = vec![0; SuperSegmentTun::BUFFER];
            let mut super_segments = 0;
            loop {
                let is_over = poller
                    .wait()
                    .expect("wait")
                    .any(|one| one.token == Token(2));
                for (from, to) in [(&one.tun, &two.tun), (&two.tun, &one.tun)] {
                    while let Some(read) = from.read(&mut buffer).expect("read") {
                        super_segments += usize::from(hand_over(read, to));
                    }
                }
                if is_over {
                    break;
                }
            }
            let received = receiver.join().expect("it ends");
            (received, super_segments)
        });
        assert!(received == sent, "{} bytes", received.len());
        assert!(super_segments > 10, "{super_segments}");
    }
}
