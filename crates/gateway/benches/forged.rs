//! Costs of forged packets to a gateway, from the packet's bytes on, and of another host's answer for a far host's address.
//! The baselines are a segment that belongs to its connection, and the parsing alone.

use bytes::Bytes;
use divan::{Bencher, black_box};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig, LinkId, Neighbour};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader};
use std::net::{IpAddr, Ipv4Addr};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const LINK: LinkId = LinkId {
    interface: InterfaceId(0),
    peer: Some(IpAddr::V4(FAR)),
};

fn main() {
    divan::main();
}

fn segment(port: u16, (seq, ack): (u32, u32), flags: TcpFlags, payload: &[u8]) -> Packet {
    let header = TcpHeader {
        source_port: 443,
        destination_port: port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(IpHeader::new(FAR.into(), NEAR.into()), header, payload)
}

fn from_near(port: u16, (seq, ack): (u32, u32)) -> Packet {
    let header = TcpHeader {
        source_port: port,
        destination_port: 443,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(IpHeader::new(NEAR.into(), FAR.into()), header, &[])
}

/// A gateway that has seen data on each of so many connections of the far host.
fn gateway(connections: u16) -> (Gateway, Instant) {
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism: PathMechanismKind::Auto,
        ..GatewayConfig::default()
    });
    gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
    let mut now = Instant::ZERO;
    for port in 10_000..10_000 + connections {
        now += Duration::from_micros(10);
        let data = segment(port, (1_000, 500), TcpFlags::ACK, &[7; 1_000]);
        for (direction, packet) in [
            (Direction::FromLink, data),
            (Direction::ToLink, from_near(port, (500, 2_000))),
        ] {
            let _ = gateway.handle_packet(now, LINK, direction, &packet);
        }
    }
    (gateway, now)
}

/// A packet from the link, as it is told apart by what the gateway does with it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The baseline: the next segment of its connection.
    Fitting,
    /// Exact ports, and numbers far from the window.
    OutOfWindow,
    /// A reset with numbers far from the window.
    Reset,
    /// A segment of a connection that the gateway does not know.
    Unknown,
    /// The beginning of a connection, each time of another one.
    Syn,
    Datagram,
    /// An ICMP error about a connection of the near host.
    Error,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Fitting,
        Self::OutOfWindow,
        Self::Reset,
        Self::Unknown,
        Self::Syn,
        Self::Datagram,
        Self::Error,
    ];

    /// Number `count` of these packets.
    fn packet(self, count: u32) -> Bytes {
        let [.., high, low] = count.to_be_bytes();
        let port = u16::from_be_bytes([high, low]);
        let packet = match self {
            Self::Fitting => {
                let seq = 2_000 + count * 1_000;
                segment(10_000, (seq, 500), TcpFlags::ACK, &[7; 1_000])
            }
            Self::OutOfWindow => {
                let numbers = (2_000_000_000, 500);
                segment(10_000, numbers, TcpFlags::ACK, &[7; 1_000])
            }
            Self::Reset => segment(10_000, (2_000_000_000, 0), TcpFlags::RST, &[]),
            Self::Unknown => segment(9, (1_000, 500), TcpFlags::ACK, &[7; 1_000]),
            Self::Syn => segment(port, (count, 0), TcpFlags::SYN, &[]),
            Self::Datagram => {
                let udp = UdpHeader {
                    source_port: 443,
                    destination_port: 9,
                };
                Packet::udp_datagram(IpHeader::new(FAR.into(), NEAR.into()), udp, &[7; 1_000])
            }
            Self::Error => {
                let about = from_near(10_000, (500, 2_000));
                let notice = outlast_wire::IcmpNotice::HostUnreachable;
                Packet::icmp_error(FAR.into(), notice, &about).expect("an error")
            }
        };
        packet.to_bytes()
    }
}

#[divan::bench(args = Kind::ALL)]
fn parsed(bencher: Bencher<'_, '_>, kind: Kind) {
    let bytes = kind.packet(1);
    bencher.bench_local(|| Packet::parse(Bytes::copy_from_slice(black_box(&bytes))));
}

#[divan::bench(args = Kind::ALL)]
fn parsed_and_judged(bencher: Bencher<'_, '_>, kind: Kind) {
    let (mut gateway, mut now) = gateway(1_000);
    let mut count = 0;
    let packets = || {
        count += 1;
        kind.packet(count)
    };
    bencher.with_inputs(packets).bench_local_values(|bytes| {
        now += Duration::from_micros(10);
        let packet = Packet::parse(Bytes::copy_from_slice(&bytes)).expect("a packet");
        let verdict = gateway.handle_packet(now, LINK, Direction::FromLink, &packet);
        while gateway.poll_transmit().is_some() {}
        verdict
    });
}

/// Another host answers for the address of a far host that has so many connections.
#[divan::bench(args = [1, 256, 10_000])]
fn another_hosts_answer(bencher: Bencher<'_, '_>, connections: u16) {
    let (mut gateway, mut now) = gateway(connections);
    let mut sent = 0_u64;
    bencher.bench_local(|| {
        now += Duration::from_millis(1);
        gateway.handle_neighbour(now, LINK, Neighbour::Changed);
        while gateway.poll_transmit().is_some() {
            sent += 1;
        }
    });
    assert!(sent > 0, "it asks");
}

/// The baseline of [`another_hosts_answer`]: the host that has the address answers.
#[divan::bench(args = [1, 256, 10_000])]
fn the_same_hosts_answer(bencher: Bencher<'_, '_>, connections: u16) {
    let (mut gateway, mut now) = gateway(connections);
    bencher.bench_local(|| {
        now += Duration::from_millis(1);
        gateway.handle_neighbour(now, LINK, Neighbour::Same);
    });
}
