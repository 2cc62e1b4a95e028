//! Packets that are made: as those of a running kernel, and right in every checksum.

use crate::common::{both_families, hex, ip, judge, parse};
use outlast_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use outlast_wire::{
    ModelledPayload, Packet, PlainTcp, SeqNumber, TcpFlags, TcpHeader, Transport, UdpHeader,
    pattern,
};

fn tcp() -> TcpHeader {
    TcpHeader {
        source_port: 40_000,
        destination_port: 443,
        seq: SeqNumber(u32::MAX - 3),
        ack: SeqNumber(77),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        window: 512,
        urgent: 0,
        options: TcpOptions {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..TcpOptions::default()
        },
    }
}

/// SYN and data of a Linux kernel, see `parse.rs`; their checksum field is not filled in.
#[test]
fn same_bytes_as_linux() {
    for digits in [
        "4500003cc46e40004006784b7f0000017f000001cf8ccc37dab3716000000000a002ffd7fe300000
         0204ffd70402080a804cc08b000000000103030a",
        "45000042c4704000400678437f0000017f000001cf8ccc37dab371618e904fc480180040fe360000
         0101080a804cc08bc4424e2a68656c6c6f2c206f75746c617374",
    ] {
        let bytes = hex(digits);
        let packet = parse(&bytes);
        let tcp = packet.tcp().expect("TCP").clone();
        let payload = packet.payload().expect("bytes");
        let built = Packet::tcp_segment(packet.header().ip, tcp, payload);
        assert_eq!(built.header(), packet.header());
        let mut built = built.to_bytes().to_vec();
        judge(&built);
        built[36..38].copy_from_slice(&bytes[36..38]);
        assert_eq!(built, bytes);
    }
}

#[test]
fn segments_and_datagrams_are_right_in_both_families() {
    for ip in both_families() {
        for payload in [&b""[..], b"x", b"an even number.", &[0xff; 1400]] {
            let segment = Packet::tcp_segment(ip, tcp(), payload);
            let datagram = Packet::udp_datagram(
                ip,
                UdpHeader {
                    source_port: 5353,
                    destination_port: 53,
                },
                payload,
            );
            for packet in [segment, datagram] {
                judge(&packet.to_bytes());
                assert!(packet.checksums_ok());
                assert_eq!(parse(&packet.to_bytes()), packet);
                assert_eq!(packet.payload(), Some(payload));
            }
        }
    }
}

#[test]
fn udp_checksum_is_never_zero() {
    let ip = ip("0.0.0.0", "0.0.0.0");
    let udp = UdpHeader {
        source_port: 0,
        destination_port: 0,
    };
    // Protocol 17 and twice the length of 10 sum up to 37: the payload makes it 0xffff.
    let packet = Packet::udp_datagram(ip, udp, &(0xffff_u16 - 37).to_be_bytes());
    assert_eq!(packet.to_bytes()[26..28], [0xff, 0xff]);
    judge(&packet.to_bytes());
}

#[test]
fn modelled_segment_is_the_segment_with_the_generated_payload() {
    for ip in both_families() {
        let at = ModelledPayload {
            stream: 9,
            offset: 123_456,
        };
        let modelled = Packet::modelled_tcp(ip, tcp(), at, 1448);
        let mut payload = [0; 1448];
        pattern::fill(9, 123_456, &mut payload);
        let captured = Packet::tcp_segment(ip, tcp(), &payload);
        assert_eq!(modelled.header(), captured.header());
        assert_eq!(modelled.to_bytes(), captured.to_bytes());
        assert_eq!(modelled.modelled(), Some(at));
        assert_eq!((modelled.bytes(), modelled.payload()), (None, None));
        assert_eq!(modelled.total_len() as usize, captured.to_bytes().len());
    }
}

#[test]
fn more_than_an_ip_packet_holds_is_a_super_segment() {
    let [v4, v6] = both_families();
    for (ip, headers) in [(v4, 20 + 32), (v6, 40 + 8 + 32)] {
        let at = ModelledPayload::default();
        let packet = Packet::modelled_tcp(ip, tcp(), at, 200_000);
        assert_eq!(packet.total_len(), headers + 200_000);
        let bytes = packet.to_bytes();
        let parsed = parse(&bytes);
        assert_eq!(parsed.header(), packet.header());
        assert!(parsed.checksums_ok());
    }
}

#[test]
fn header_says_what_was_written() {
    let mixed = outlast_wire::IpHeader {
        destination: "2001:db8::2".parse().expect("an address"),
        identification: 7,
        ..ip("192.0.2.1", "192.0.2.2")
    };
    let packet = Packet::tcp_segment(mixed, tcp(), b"");
    assert_eq!(packet.header().ip.source.to_string(), "::ffff:192.0.2.1");
    assert_eq!(parse(&packet.to_bytes()), packet);

    let options = TcpOptions {
        malformed: true,
        ..TcpOptions::default()
    };
    let packet = Packet::tcp_segment(mixed, TcpHeader { options, ..tcp() }, b"");
    let Transport::Tcp(tcp) = &packet.header().transport else {
        panic!("TCP")
    };
    assert_eq!(tcp.options, TcpOptions::default());
}

#[test]
fn payload_longer_than_any_packet_is_cut() {
    let [ip, _] = both_families();
    let packet = Packet::modelled_tcp(ip, tcp(), ModelledPayload::default(), u32::MAX);
    assert_eq!(packet.header().payload_len, u32::MAX - 128);
    assert_eq!(packet.sequence_len(), u32::MAX - 128);
}

/// Packets of every kind, whose place another may take.
fn used() -> Vec<Packet> {
    let ip = both_families()[0];
    let block = SackBlock {
        left: SeqNumber(5),
        right: SeqNumber(9),
    };
    let mut busy = tcp();
    busy.urgent = 7;
    busy.options = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        sack: [block; 2].into_iter().collect(),
        timestamps: None,
        user_timeout: TcpOptions::parse(&[28, 4, 0x01, 0x2c]).user_timeout,
        ..TcpOptions::default()
    };
    let udp = UdpHeader {
        source_port: 5353,
        destination_port: 53,
    };
    vec![
        Packet::default(),
        Packet::tcp_segment(ip, tcp(), b"bytes"),
        Packet::modelled_tcp(ip, busy, ModelledPayload::default(), 3),
        Packet::udp_datagram(ip, udp, b"bytes"),
    ]
}

#[test]
fn a_packet_that_takes_the_place_of_another_is_like_a_new_one() {
    let payload = ModelledPayload {
        stream: 3,
        offset: 1_000,
    };
    let with_and_without = [None, tcp().options.timestamps];
    for (ip, timestamps) in both_families()
        .into_iter()
        .flat_map(|ip| with_and_without.map(|timestamps| (ip, timestamps)))
    {
        for payload_len in [0, 1_448, 65_535, u32::MAX] {
            let mut header = tcp();
            header.options.timestamps = timestamps;
            let mut numbered = ip;
            numbered.identification = 4_711;
            let new = Packet::modelled_tcp(numbered, header.clone(), payload, payload_len);
            let plain = PlainTcp {
                ports: (header.source_port, header.destination_port),
                seq: header.seq,
                ack: header.ack,
                flags: header.flags,
                window: header.window,
                timestamps,
            };
            for mut packet in used() {
                let mut other = packet.clone();
                packet.become_plain_tcp(&ip, 4_711, payload, payload_len, plain);
                assert_eq!(packet, new);
                other.become_modelled_tcp(&numbered, payload, payload_len, |tcp| {
                    *tcp = header.clone();
                });
                assert_eq!(other, new);
                if payload_len <= 65_535 {
                    assert_eq!(packet.to_bytes(), new.to_bytes());
                }
            }
        }
    }
}
