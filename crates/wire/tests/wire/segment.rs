//! Super-segments and the packets that they are cut into.

use crate::common::{any, both_families, judge, parse};
use bytes::Bytes;
use outlast_wire::segment::SegmentError;
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{
    IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, Transport, UdpHeader,
    pattern,
};
use proptest::prelude::*;

fn tcp() -> TcpHeader {
    TcpHeader {
        source_port: 40_000,
        destination_port: 443,
        seq: SeqNumber(u32::MAX - 2000),
        ack: SeqNumber(77),
        flags: TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN | TcpFlags::CWR | TcpFlags::ECE,
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

fn numbered(length: usize) -> Vec<u8> {
    let mut payload = vec![0; length];
    pattern::fill(1, 0, &mut payload);
    payload
}

#[test]
fn headers_of_the_segments() {
    for ip in both_families() {
        let ip = IpHeader {
            identification: if ip.source.is_ipv4() { 0xffff } else { 0 },
            ..ip
        };
        let payload = numbered(4000);
        let whole = Packet::tcp_segment(ip, tcp(), &payload);
        let segments: Vec<Packet> = whole.segment_to_mtu(1500).expect("TCP").collect();
        let size = if ip.source.is_ipv4() { 1448 } else { 1428 };
        let [first, second, last] = &segments[..] else {
            panic!("{}", segments.len())
        };
        for (at, segment) in segments.iter().enumerate() {
            let bytes = segment.to_bytes();
            judge(&bytes);
            assert_eq!(&parse(&bytes), segment);
            assert_eq!(segment.payload(), payload.chunks(size).nth(at));
            let read = segment.tcp().expect("TCP");
            assert_eq!(read.seq, tcp().seq + (at * size) as u32);
            assert_eq!(read.options, tcp().options);
            if ip.source.is_ipv4() {
                let id = segment.header().ip.identification;
                assert_eq!(id, 0xffff_u16.wrapping_add(at as u16));
            }
        }
        assert_eq!((first.total_len(), second.total_len()), (1500, 1500));
        let flags = |segment: &Packet| segment.tcp().expect("TCP").flags;
        assert_eq!(flags(first), TcpFlags::ACK | TcpFlags::ECE | TcpFlags::CWR);
        assert_eq!(flags(second), TcpFlags::ACK | TcpFlags::ECE);
        assert_eq!(
            flags(last),
            TcpFlags::ACK | TcpFlags::ECE | TcpFlags::PSH | TcpFlags::FIN
        );
        let sequence_len: u32 = segments.iter().map(Packet::sequence_len).sum();
        assert_eq!(sequence_len, whole.sequence_len());
    }
}

#[test]
fn what_fits_comes_back_as_it_is() {
    for ip in both_families() {
        let udp = UdpHeader {
            source_port: 1,
            destination_port: 2,
        };
        for packet in [
            Packet::tcp_segment(ip, tcp(), b"x"),
            Packet::tcp_segment(ip, tcp(), b""),
            Packet::udp_datagram(ip, udp, b"x"),
        ] {
            for mtu in [packet.total_len(), u32::MAX] {
                let mut segments = packet.segment_to_mtu(mtu).expect("it fits");
                assert_eq!(segments.len(), 1);
                assert_eq!(segments.next(), Some(packet.clone()));
                assert_eq!(segments.next(), None);
            }
        }
    }
}

#[test]
fn big_tcp_loses_its_jumbo_payload_option() {
    for ip in both_families() {
        let payload = numbered(200_000);
        let whole = Packet::tcp_segment(ip, tcp(), &payload);
        let mut together = Vec::new();
        for segment in whole.segment_to_mtu(9000).expect("TCP") {
            let bytes = segment.to_bytes();
            judge(&bytes);
            assert_eq!(parse(&bytes), segment);
            assert!(ip.source.is_ipv4() || bytes[6] == 6, "TCP follows at once");
            together.extend_from_slice(segment.payload().expect("captured"));
        }
        assert_eq!(together, payload);
    }
}

#[test]
fn jumbo_payload_option_among_others_becomes_padding() {
    let whole = Packet::tcp_segment(both_families()[1], tcp(), &numbered(70_000)).to_bytes();
    let mut bytes = whole.to_vec();
    // Router alert (RFC 2711) and padding behind the jumbo payload option.
    let others = [5, 2, 0, 0, 1, 2, 0, 0];
    bytes[41] = 1;
    let length = u32::from_be_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]) + 8;
    bytes[44..48].copy_from_slice(&length.to_be_bytes());
    bytes.splice(48..48, others);
    for segment in parse(&bytes.into()).segment_to_mtu(1500).expect("TCP") {
        let bytes = segment.to_bytes();
        judge(&bytes);
        assert_eq!(parse(&bytes), segment);
        assert_eq!(bytes[40..48], [6, 1, 1, 4, 0, 0, 0, 0]);
        assert_eq!(bytes[48..56], others);
    }
}

#[test]
fn segments_are_never_longer_than_ip_can_say() {
    for (ip, longest) in both_families().into_iter().zip([65_535, 65_575]) {
        let whole = Packet::tcp_segment(ip, tcp(), &numbered(100_000));
        let lengths: Vec<u32> = whole
            .segment_to_mtu(90_000)
            .expect("TCP")
            .map(|s| s.total_len())
            .collect();
        assert_eq!(lengths.len(), 2);
        assert_eq!(lengths[0], longest);
        let by_size = whole
            .segment_by(u16::MAX)
            .expect("TCP")
            .map(|s| s.total_len());
        assert_eq!(by_size.max(), Some(longest));
    }
}

#[test]
fn partial_checksum_of_the_whole_does_not_matter() {
    let whole = Packet::tcp_segment(both_families()[0], tcp(), &numbered(5000));
    let mut bytes = whole.to_bytes().to_vec();
    bytes[36..38].copy_from_slice(&[0xfe, 0x28]);
    for segment in parse(&bytes.into()).segment_to_mtu(1500).expect("TCP") {
        judge(&segment.to_bytes());
    }
}

#[test]
fn modelled_segments_are_those_with_the_generated_payload() {
    for ip in both_families() {
        let payload = ModelledPayload {
            stream: 4,
            offset: u64::MAX - 1000,
        };
        let whole = Packet::modelled_tcp(ip, tcp(), payload, 100_000);
        let captured = parse(&whole.to_bytes());
        let modelled = whole.segment_to_mtu(1500).expect("TCP");
        let captured = captured.segment_to_mtu(1500).expect("TCP");
        assert_eq!(modelled.len(), captured.len());
        for (modelled, captured) in modelled.zip(captured) {
            assert_eq!(modelled.header(), captured.header());
            assert_eq!(modelled.to_bytes(), captured.to_bytes());
        }
    }
}

#[test]
fn datagrams_of_a_given_size() {
    for ip in both_families() {
        let udp = UdpHeader {
            source_port: 1,
            destination_port: 2,
        };
        let payload = numbered(3000);
        let whole = Packet::udp_datagram(ip, udp, &payload);
        let segments: Vec<Packet> = whole.segment_by(1200).expect("UDP").collect();
        assert_eq!(segments.len(), 3);
        for (at, segment) in segments.iter().enumerate() {
            let bytes = segment.to_bytes();
            judge(&bytes);
            assert_eq!(&parse(&bytes), segment);
            assert_eq!(segment.payload(), payload.chunks(1200).nth(at));
            assert_eq!(segment.header().transport, Transport::Udp(udp));
        }
        assert_eq!(
            whole.segment_to_mtu(1500).err(),
            Some(SegmentError::Protocol)
        );
    }
}

#[test]
fn datagrams_without_checksum_stay_without() {
    let udp = UdpHeader {
        source_port: 1,
        destination_port: 2,
    };
    let whole = Packet::udp_datagram(both_families()[0], udp, &numbered(3000)).to_bytes();
    let mut bytes = whole.to_vec();
    bytes[26..28].fill(0);
    for segment in parse(&bytes.into()).segment_by(1000).expect("UDP") {
        assert_eq!(segment.to_bytes()[26..28], [0, 0]);
    }
}

#[test]
fn urgent_pointer_counts_from_each_segment() {
    let header = TcpHeader {
        flags: TcpFlags::ACK | TcpFlags::URG,
        urgent: 1500,
        ..tcp()
    };
    let whole = Packet::tcp_segment(both_families()[0], header, &numbered(4000));
    let found: Vec<(bool, u16)> = whole
        .segment_by(1000)
        .expect("TCP")
        .map(|segment| {
            let tcp = segment.tcp().expect("TCP").clone();
            (tcp.has(TcpFlags::URG), tcp.urgent)
        })
        .collect();
    assert_eq!(found, [(true, 1500), (true, 500), (false, 0), (false, 0)]);
}

#[test]
fn what_cannot_be_cut() {
    let [ip, v6] = both_families();
    for flag in [TcpFlags::SYN, TcpFlags::RST] {
        let packet = Packet::tcp_segment(
            ip,
            TcpHeader {
                flags: flag,
                ..tcp()
            },
            &[0; 2000],
        );
        assert_eq!(
            packet.segment_to_mtu(1500).err(),
            Some(SegmentError::Control)
        );
    }
    let packet = Packet::tcp_segment(ip, tcp(), &[0; 2000]);
    let refused = Some(SegmentError::NoRoom { headers: 52 });
    for mtu in [0, 51, 52] {
        assert_eq!(packet.segment_to_mtu(mtu).err(), refused);
    }
    assert_eq!(packet.segment_by(0).err(), refused);
    assert_eq!(packet.segment_to_mtu(53).expect("a byte each").len(), 2000);

    let plain = Packet::tcp_segment(v6, tcp(), &[0; 2000]).to_bytes();
    let with_header = |kind: u8, header: &[u8]| {
        let mut bytes = plain.to_vec();
        bytes[6] = kind;
        let length = bytes.len() as u16 - 40 + header.len() as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes.splice(40..40, header.iter().copied());
        parse(&Bytes::from(bytes))
    };
    let authenticated = with_header(51, &[6, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(
        authenticated.segment_to_mtu(1500).err(),
        Some(SegmentError::Authenticated)
    );
    let fragment = with_header(44, &[6, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(
        fragment.segment_to_mtu(1500).err(),
        Some(SegmentError::Protocol)
    );
    assert_eq!(
        fragment.segment_by(1500).err(),
        Some(SegmentError::Protocol)
    );
}

proptest! {
    #![proptest_config(crate::common::config("segment"))]

    /// Whatever is cut: each piece is a right packet that fits, and together they carry the same
    /// bytes at the same sequence numbers.
    #[test]
    fn segments_together_are_the_whole(packet in any::tcp_segment(), mtu in 20_u32..3000) {
        let Ok(segments) = packet.segment_to_mtu(mtu) else { return Ok(()) };
        let count = segments.len();
        let segments: Vec<Packet> = segments.collect();
        prop_assert_eq!(segments.len(), count);
        let whole = packet.tcp().expect("TCP");
        let mut next = whole.seq;
        let mut together = Vec::new();
        let mut flags = 0;
        for segment in &segments {
            let bytes = segment.to_bytes();
            judge(&bytes);
            prop_assert_eq!(&parse(&bytes), segment);
            prop_assert!(segment.total_len() <= mtu);
            let tcp = segment.tcp().expect("TCP");
            prop_assert_eq!(tcp.seq, next);
            next += segment.header().payload_len;
            together.extend_from_slice(segment.payload().expect("captured"));
            flags |= tcp.flags.0;
        }
        prop_assert_eq!(Some(&together[..]), packet.payload());
        prop_assert_eq!(flags, whole.flags.0);
    }

    #[test]
    fn datagrams_together_are_the_whole(packet in any::udp_datagram(), size in 1_u16..3000) {
        let mut together = Vec::new();
        for segment in packet.segment_by(size).expect("UDP") {
            let bytes = segment.to_bytes();
            judge(&bytes);
            prop_assert_eq!(&parse(&bytes), &segment);
            prop_assert!(segment.header().payload_len <= size.into());
            together.extend_from_slice(segment.payload().expect("captured"));
        }
        prop_assert_eq!(Some(&together[..]), packet.payload());
    }
}
