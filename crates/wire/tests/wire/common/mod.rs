//! What the tests of this crate share.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part"
)]

pub mod any;
pub mod exercise;

use bytes::Bytes;

use outlast_wire::{IpHeader, Packet};
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};

/// The property tests of `file`; the cases that once failed are kept beside the crate.
pub fn config(file: &str) -> ProptestConfig {
    let path = format!(
        "{}/proptest-regressions/{file}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    let persistence = FileFailurePersistence::Direct(path.leak());
    ProptestConfig {
        failure_persistence: Some(Box::new(persistence)),
        ..Default::default()
    }
}

/// Bytes from hexadecimal digits; white space is skipped.
#[track_caller]
pub fn hex(digits: &str) -> Bytes {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[track_caller]
pub fn parse(bytes: &Bytes) -> Packet {
    Packet::parse(bytes.clone()).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"))
}

pub fn ip(source: &str, destination: &str) -> IpHeader {
    IpHeader::new(
        source.parse().expect("an address"),
        destination.parse().expect("an address"),
    )
}

/// Two packets, one of each family, for what must hold for both.
pub fn both_families() -> [IpHeader; 2] {
    [
        ip("192.0.2.1", "198.51.100.2"),
        ip("2001:db8::1", "2001:db8:1::2"),
    ]
}

/// Asserts that the checksums of `bytes` are what `etherparse`, the independent judge, computes.
#[track_caller]
pub fn judge(bytes: &[u8]) {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let sliced = SlicedPacket::from_ip(bytes).expect("etherparse reads it");
    let transport = sliced.transport.as_ref().expect("a transport header");
    let (found, expected) = match sliced.net.as_ref().expect("an IP packet") {
        NetSlice::Ipv4(slice) => {
            let header = slice.header().to_header();
            assert_eq!(
                header.header_checksum,
                header.calc_header_checksum(),
                "IPv4 header"
            );
            let (source, destination) = (header.source, header.destination);
            match transport {
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.calc_checksum_ipv4(source, destination))
                }
                TransportSlice::Udp(udp) => (
                    udp.checksum(),
                    udp.to_header()
                        .calc_checksum_ipv4_raw(source, destination, udp.payload()),
                ),
                TransportSlice::Icmpv4(icmp) => {
                    // Not by its typed header, which drops the length of RFC 4884.
                    let sum = etherparse::checksum::Sum16BitWords::new().add_slice(icmp.slice());
                    assert_eq!(sum.ones_complement(), 0, "ICMP");
                    return;
                }
                other => panic!("{other:?} in IPv4"),
            }
        }
        NetSlice::Ipv6(slice) => {
            let header = slice.header().to_header();
            let (source, destination) = (header.source, header.destination);
            match transport {
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.calc_checksum_ipv6(source, destination))
                }
                TransportSlice::Udp(udp) => (
                    udp.checksum(),
                    udp.to_header()
                        .calc_checksum_ipv6_raw(source, destination, udp.payload()),
                ),
                TransportSlice::Icmpv6(icmp) => {
                    assert!(icmp.is_checksum_valid(source, destination), "ICMPv6");
                    return;
                }
                other => panic!("{other:?} in IPv6"),
            }
        }
        NetSlice::Arp(_) => panic!("ARP"),
    };
    assert_eq!(
        found,
        expected.expect("a packet of ordinary size"),
        "transport"
    );
}
