//! What a gateway costs per passing packet while the link is up, against one that does nothing
//! (`none`, the baseline in the same run), and how often it allocates.
//!
//! `cargo bench -p outlast-gateway`

use divan::{AllocProfiler, Bencher};
use outlast_base::time::Instant;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig, LinkId};
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind, Verdict};
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::Ipv4Addr;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
const MSS: u32 = 1_448;
/// Segments on their way when an acknowledgement comes back.
const WINDOW: u32 = 64;

fn main() {
    divan::main();
}

fn mechanisms() -> [PathMechanismKind; 4] {
    [
        PathMechanismKind::None,
        PathMechanismKind::SmartLink(Level::Three),
        PathMechanismKind::Hold,
        PathMechanismKind::Auto,
    ]
}

/// Data and acknowledgements of one connection after the other among `connections`.
///
/// One connection is the baseline; the rest is the cost of the table of flows.
#[divan::bench(args = [1, 1_000, 200_000])]
fn data_and_acknowledgement_among(bencher: Bencher<'_, '_>, connections: u32) {
    let mut crowd = Crowd::new(connections);
    bencher
        .counter(divan::counter::ItemsCount::new(2u32))
        .bench_local(|| crowd.exchange());
}

/// What so many connections take: the allocations are those of the gateway with all of them.
#[divan::bench(args = [1_000, 200_000], sample_count = 3, sample_size = 1)]
fn open_connections(bencher: Bencher<'_, '_>, connections: u32) {
    bencher
        .counter(divan::counter::ItemsCount::new(connections))
        .bench_local(|| Crowd::new(connections));
}

/// Connections that take turns.
struct Crowd {
    gateway: Gateway,
    connections: u32,
    turn: u32,
    round: u32,
    now: Instant,
}

impl Crowd {
    fn new(connections: u32) -> Self {
        let config = GatewayConfig {
            mechanism: PathMechanismKind::Hold,
            ..GatewayConfig::default()
        };
        let mut gateway = Gateway::new(config);
        gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
        let mut crowd = Self {
            gateway,
            connections,
            turn: 0,
            round: 0,
            now: Instant::ZERO,
        };
        for _ in 0..connections {
            crowd.exchange();
        }
        crowd
    }

    /// A segment and its acknowledgement; then it is the next one's turn.
    fn exchange(&mut self) {
        // A step that has no divisor in common with the numbers above: no order that a cache likes.
        self.turn = (self.turn + 104_729) % self.connections;
        self.round = self.round.wrapping_add(u32::from(self.turn == 0));
        self.now += std::time::Duration::from_micros(1);
        let [_, _, high, low] = (self.turn / 50_000 + 1).to_be_bytes();
        let port = 10_000 + u16::try_from(self.turn % 50_000).expect("below 50,000");
        let (near, far) = ([10, 1, high, low], [10, 2, 0, 1]);
        let seq = self.round.wrapping_mul(MSS);
        let data = between((near, port), (far, 443), (seq, 7), MSS);
        let ack = between((far, 443), (near, port), (7, seq.wrapping_add(MSS)), 0);
        for (direction, packet) in [(Direction::ToLink, data), (Direction::FromLink, ack)] {
            let verdict = self
                .gateway
                .handle_packet(self.now, LINK, direction, &packet);
            assert_eq!(verdict, Verdict::Pass);
        }
    }
}

fn between(
    (source, from): ([u8; 4], u16),
    (destination, to): ([u8; 4], u16),
    (seq, ack): (u32, u32),
    len: u32,
) -> Packet {
    let ip = IpHeader {
        source: Ipv4Addr::from(source).into(),
        destination: Ipv4Addr::from(destination).into(),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from,
        destination_port: to,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    Packet::modelled_tcp(ip, header, ModelledPayload::default(), len)
}

/// One data segment towards the link and one acknowledgement back.
#[divan::bench(args = mechanisms())]
fn data_and_acknowledgement(bencher: Bencher<'_, '_>, mechanism: &PathMechanismKind) {
    let mut transfer = Transfer::new(*mechanism);
    for _ in 0..WINDOW {
        transfer.data();
    }
    bencher
        .counter(divan::counter::ItemsCount::new(2u32))
        .bench_local(|| {
            transfer.data();
            transfer.acknowledge();
        });
}

struct Transfer {
    gateway: Gateway,
    data: Packet,
    ack: Packet,
    sent: u32,
    acked: u32,
    now: Instant,
}

impl Transfer {
    fn new(mechanism: PathMechanismKind) -> Self {
        let config = GatewayConfig {
            mechanism,
            ..GatewayConfig::default()
        };
        let mut gateway = Gateway::new(config);
        gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
        let data = segment(1, 2, 5_001, 80, MSS);
        let ack = segment(2, 1, 80, 5_001, 0);
        Self {
            gateway,
            data,
            ack,
            sent: 0,
            acked: 0,
            now: Instant::ZERO,
        }
    }

    fn data(&mut self) {
        let packet = with_numbers(&self.data, SeqNumber(self.sent), SeqNumber(7));
        self.sent = self.sent.wrapping_add(MSS);
        self.cross(Direction::ToLink, &packet);
    }

    fn acknowledge(&mut self) {
        self.acked = self.acked.wrapping_add(MSS);
        let packet = with_numbers(&self.ack, SeqNumber(7), SeqNumber(self.acked));
        self.cross(Direction::FromLink, &packet);
    }

    fn cross(&mut self, direction: Direction, packet: &Packet) {
        self.now += std::time::Duration::from_micros(100);
        let verdict = self
            .gateway
            .handle_packet(self.now, LINK, direction, packet);
        assert_eq!(verdict, Verdict::Pass);
        assert!(self.gateway.poll_transmit().is_none());
    }
}

fn with_numbers(packet: &Packet, seq: SeqNumber, ack: SeqNumber) -> Packet {
    let tcp = packet.tcp().expect("a segment");
    let header = TcpHeader {
        seq,
        ack,
        ..tcp.clone()
    };
    let payload_len = packet.header().payload_len;
    Packet::modelled_tcp(
        packet.header().ip,
        header,
        ModelledPayload::default(),
        payload_len,
    )
}

fn segment(source: u8, destination: u8, from: u16, to: u16, len: u32) -> Packet {
    let address = |last| Ipv4Addr::new(10, 0, 0, last).into();
    let ip = IpHeader {
        source: address(source),
        destination: address(destination),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from,
        destination_port: to,
        flags: TcpFlags::ACK,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    Packet::modelled_tcp(ip, header, ModelledPayload::default(), len)
}
