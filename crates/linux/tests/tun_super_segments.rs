//! Two namespaces whose only connection is a TUN device each that carries super-segments, and the test.

mod tun_host;

use outlast_linux::namespace::Namespace;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::tun::{FromHost, SuperSegmentTun, TcpLayout, Written};
use outlast_linux::waker::Waker;
use outlast_skip::skip;
use outlast_wire::Packet;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use tun_host::{V4, V6};

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
    tun_host::set_up(&namespace, number);
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
