//! What a gateway costs per passing packet while the link is up, against one that does nothing
//! (`none`, the baseline in the same run), and how often it allocates.
//!
//! `cargo bench -p outlast-core`

use divan::{AllocProfiler, Bencher};
use outlast_core::gateway::{Gateway, GatewayConfig};
use outlast_core::link::{Direction, InterfaceId, LinkConfig, LinkId};
use outlast_core::mechanisms::path::{Level, PathMechanismKind, Verdict};
use outlast_core::time::Instant;
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::Ipv4Addr;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const LINK: LinkId = LinkId::whole(InterfaceId(0));
const MSS: u32 = 1_448;
/// Segments on their way when an acknowledgement comes back.
const WINDOW: u32 = 64;

fn main() {
    divan::main();
}

fn mechanisms() -> [PathMechanismKind; 3] {
    [
        PathMechanismKind::None,
        PathMechanismKind::SmartLink(Level::Three),
        PathMechanismKind::Hold,
    ]
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
