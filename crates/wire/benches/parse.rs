//! Time per packet of parsing, with `etherparse` slicing the same bytes as the baseline: it finds
//! the headers but reads neither fields nor options, so parsing may cost more, but not much.
//!
//! `cargo bench -p outlast-wire`

use bytes::Bytes;
use divan::{AllocProfiler, Bencher, black_box};
use etherparse::SlicedPacket;
use outlast_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use outlast_wire::{
    IcmpNotice, IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader,
    pattern,
};
use std::fmt;
use std::net::IpAddr;

/// Parsing a TCP segment must not allocate.
#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A packet as it is seen most.
#[derive(Clone, Copy)]
enum Sample {
    AckV4,
    AckV6,
    SackV4,
    SynV4,
    DataV4,
    DataV6,
    UdpV4,
    IcmpV4,
}

const ALL: [Sample; 8] = [
    Sample::AckV4,
    Sample::AckV6,
    Sample::SackV4,
    Sample::SynV4,
    Sample::DataV4,
    Sample::DataV6,
    Sample::UdpV4,
    Sample::IcmpV4,
];

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AckV4 => "ACK, IPv4, timestamps",
            Self::AckV6 => "ACK, IPv6, timestamps",
            Self::SackV4 => "ACK, IPv4, three SACK blocks",
            Self::SynV4 => "SYN, IPv4, all options",
            Self::DataV4 => "1500 bytes, IPv4",
            Self::DataV6 => "1500 bytes, IPv6",
            Self::UdpV4 => "UDP, IPv4, 1200 bytes",
            Self::IcmpV4 => "ICMP error, IPv4",
        })
    }
}

impl Sample {
    fn packet(self) -> Packet {
        let ip = match self {
            Self::AckV6 | Self::DataV6 => ip("2001:db8::1", "2001:db8:1::2"),
            _ => ip("192.0.2.1", "198.51.100.2"),
        };
        let mut payload = vec![0; 1448];
        pattern::fill(0, 0, &mut payload);
        match self {
            Self::AckV4 | Self::AckV6 => Packet::tcp_segment(ip, tcp(), &[]),
            Self::SackV4 => {
                let mut tcp = tcp();
                let block = |at: u32| SackBlock {
                    left: SeqNumber(at),
                    right: SeqNumber(at + 1448),
                };
                tcp.options.sack = [10_000, 20_000, 30_000].map(block).into_iter().collect();
                Packet::tcp_segment(ip, tcp, &[])
            }
            Self::SynV4 => {
                let mut tcp = tcp();
                tcp.flags = TcpFlags::SYN;
                tcp.options.mss = Some(1460);
                tcp.options.window_scale = Some(7);
                tcp.options.sack_permitted = true;
                Packet::tcp_segment(ip, tcp, &[])
            }
            Self::DataV4 => Packet::tcp_segment(ip, tcp(), &payload),
            Self::DataV6 => Packet::tcp_segment(ip, tcp(), &payload[..1428]),
            Self::UdpV4 => {
                let udp = UdpHeader {
                    source_port: 5000,
                    destination_port: 443,
                };
                Packet::udp_datagram(ip, udp, &payload[..1200])
            }
            Self::IcmpV4 => {
                let about = Packet::tcp_segment(ip, tcp(), &payload);
                let router = ip.destination;
                Packet::icmp_error(router, IcmpNotice::HostUnreachable, &about)
                    .expect("an error may be sent about a segment")
            }
        }
    }

    fn bytes(self) -> Bytes {
        self.packet().to_bytes()
    }
}

fn ip(source: &str, destination: &str) -> IpHeader {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    IpHeader::new(address(source), address(destination))
}

fn tcp() -> TcpHeader {
    TcpHeader {
        source_port: 40_000,
        destination_port: 443,
        seq: SeqNumber(1_000_000),
        ack: SeqNumber(2_000_000),
        flags: TcpFlags::ACK,
        window: 512,
        urgent: 0,
        options: TcpOptions {
            timestamps: Some(Timestamps {
                value: 10,
                echo: 20,
            }),
            ..TcpOptions::default()
        },
    }
}

#[divan::bench(args = ALL)]
fn parse(bencher: Bencher<'_, '_>, sample: Sample) {
    let bytes = sample.bytes();
    bencher
        .with_inputs(|| bytes.clone())
        .bench_values(Packet::parse);
}

#[divan::bench(args = ALL)]
fn baseline_etherparse_slice(bencher: Bencher<'_, '_>, sample: Sample) {
    let bytes = sample.bytes();
    bencher.bench(|| SlicedPacket::from_ip(black_box(&bytes)).is_ok());
}

/// The headers sliced by etherparse, and the fields and options read as by `parse`.
#[divan::bench(args = [Sample::AckV4, Sample::AckV6, Sample::SackV4, Sample::SynV4])]
fn baseline_etherparse_slice_and_options(bencher: Bencher<'_, '_>, sample: Sample) {
    let bytes = sample.bytes();
    bencher.bench(|| {
        let sliced = SlicedPacket::from_ip(black_box(&bytes)).ok()?;
        let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else {
            return None;
        };
        let header = tcp.to_header();
        let options = header.options_iterator().filter(Result::is_ok).count();
        Some((header, options))
    });
}

#[divan::bench(args = [Sample::AckV4, Sample::DataV4])]
fn checksums_ok(bencher: Bencher<'_, '_>, sample: Sample) {
    let packet = sample.packet();
    bencher.bench(|| black_box(&packet).checksums_ok());
}

#[divan::bench(args = [Sample::AckV4, Sample::DataV4])]
fn build(bencher: Bencher<'_, '_>, sample: Sample) {
    let packet = sample.packet();
    let payload = packet.payload().unwrap_or_default();
    bencher.bench(|| Packet::tcp_segment(packet.header().ip, tcp(), black_box(payload)));
}

#[divan::bench]
fn build_modelled(bencher: Bencher<'_, '_>) {
    let ip = ip("192.0.2.1", "198.51.100.2");
    let payload = ModelledPayload::default();
    bencher
        .with_inputs(tcp)
        .bench_values(|tcp| Packet::modelled_tcp(black_box(ip), tcp, payload, 1448));
}

#[divan::bench(args = [Sample::DataV4])]
fn clone(bencher: Bencher<'_, '_>, sample: Sample) {
    let packet = sample.packet();
    bencher.bench(|| black_box(&packet).clone());
}

/// The window of a packet that nobody else holds: no copy.
#[divan::bench(args = [Sample::AckV4, Sample::DataV4])]
fn edit_window(bencher: Bencher<'_, '_>, sample: Sample) {
    bencher
        .with_inputs(|| Packet::parse(sample.bytes()).expect("a packet"))
        .bench_values(|packet| {
            let mut edit = packet.edit();
            edit.set_window(black_box(0)).expect("TCP");
            edit.finish()
        });
}

#[divan::bench]
fn segment_64_kilobytes(bencher: Bencher<'_, '_>) {
    let mut payload = vec![0; 64_000];
    pattern::fill(0, 0, &mut payload);
    let packet = Packet::tcp_segment(ip("192.0.2.1", "198.51.100.2"), tcp(), &payload);
    bencher
        .counter(divan::counter::BytesCount::new(packet.total_len()))
        .bench(|| {
            let segments = black_box(&packet).segment_to_mtu(1500).expect("TCP");
            segments.map(|segment| segment.total_len()).sum::<u32>()
        });
}
