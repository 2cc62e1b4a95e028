//! Captures of either format piece by piece, and packets that were cut short.

use outlast_wire::capture::{CaptureError, Decoder, Step};
use outlast_wire::frame::{NotIp, ips_in_frame};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::{
    Direction, ETHERNET, Encoder, EnhancedPacket, Reader, Section, ip_in_frame,
};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::time::Duration;

/// Time, interface, original length, direction, data.
type Read = (Duration, u32, u32, Direction, Vec<u8>);

/// What a driver reads that gets `chunk` bytes at a time.
fn read(file: &[u8], chunk: usize) -> (Vec<Read>, Option<CaptureError>) {
    let mut decoder = Decoder::default();
    let (mut at, mut until) = (0, 0);
    let mut packets = Vec::new();
    loop {
        match decoder.decode(&file[at..until]) {
            Ok(Step::Packet { consumed, packet }) => {
                at += consumed;
                let direction = packet.direction;
                let data = packet.data.to_vec();
                packets.push((
                    packet.time,
                    packet.interface,
                    packet.original_len,
                    direction,
                    data,
                ));
            }
            Ok(Step::Passed { consumed }) => {
                let end = at.saturating_add(usize::try_from(consumed).expect("64 bits"));
                if end > file.len() {
                    let offset = at as u64;
                    return (packets, Some(CaptureError::Truncated { offset }));
                }
                at = end;
                until = until.max(at);
            }
            Ok(Step::Need { bytes }) => {
                assert!(bytes > until - at, "more than there is");
                if until == file.len() {
                    return (packets, decoder.end(until - at).err());
                }
                until = (until + chunk).min(file.len());
            }
            Err(error) => return (packets, Some(error)),
        }
    }
}

/// A pcap file in this byte order and resolution.
fn pcap(big_endian: bool, nanos: bool, packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let magic: u32 = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let word = |value: u32| match big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let versions = if big_endian {
        [0, 2, 0, 4]
    } else {
        [2, 0, 4, 0]
    };
    let mut file = [word(magic), versions].concat();
    for field in [0, 0, 65_535, 101] {
        file.extend(word(field));
    }
    for (seconds, fraction, data, original_len) in packets {
        let captured_len = u32::try_from(data.len()).expect("short");
        for field in [*seconds, *fraction, captured_len, *original_len] {
            file.extend(word(field));
        }
        file.extend(*data);
    }
    file
}

#[test]
fn pcap_is_read_in_either_byte_order_and_resolution() {
    for (big_endian, nanos) in [(true, true), (true, false), (false, true), (false, false)] {
        let packets: [(u32, u32, &[u8], u32); 2] =
            [(7, 250_000, b"packet", 6), (8, 1, b"cut", 1_500)];
        let file = pcap(big_endian, nanos, &packets);
        let unit = if nanos { 1 } else { 1_000 };
        let at = |seconds: u64, fraction: u64| {
            Duration::from_secs(seconds) + Duration::from_nanos(fraction * unit)
        };
        let unknown = Direction::Unknown;
        let expected = vec![
            (at(7, 250_000), 0, 6, unknown, b"packet".to_vec()),
            (at(8, 1), 0, 1_500, unknown, b"cut".to_vec()),
        ];
        for chunk in [1, 7, 1_000] {
            assert_eq!(read(&file, chunk), (expected.clone(), None));
        }
        let (packets, error) = read(&file[..file.len() - 1], 5);
        assert_eq!(packets, expected[..1]);
        let offset = file.len() as u64 - 19;
        assert_eq!(error, Some(CaptureError::Truncated { offset }));
    }
}

#[test]
fn what_is_no_capture_is_refused_by_name() {
    let error = |file: &[u8]| read(file, 100).1.expect("it is refused");
    assert_eq!(error(b""), CaptureError::Empty);
    assert_eq!(error(b"text, no capture"), CaptureError::Format(*b"text"));
    assert_eq!(error(&[0x1f, 0x8b, 8, 0, 0]), CaptureError::Compressed);
    assert_eq!(error(b"\xa1\xb2"), CaptureError::Truncated { offset: 0 });
    let mut file = pcap(true, false, &[(1, 1, b"x", 1)]);
    file[32..36].copy_from_slice(&u32::MAX.to_be_bytes());
    let length = u32::MAX;
    assert_eq!(error(&file), CaptureError::Length { offset: 24, length });
}

#[test]
fn sections_count_their_interfaces_anew_and_long_blocks_are_skipped() {
    let section = |name: &str, time| {
        let mut encoder = Encoder::new(&Section::of_application("test"));
        let interface = encoder.interface(name);
        encoder.packet(&EnhancedPacket {
            direction: Direction::Inbound,
            ..EnhancedPacket::new(interface, time, name.as_bytes())
        });
        encoder.take()
    };
    let mut file = section("first", Duration::from_secs(1));
    // A block of a kind that nobody knows, longer than any packet.
    let length = 1_000_000_u32;
    file.extend(0x0bad_u32.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(vec![0; length as usize - 12]);
    file.extend(length.to_le_bytes());
    file.extend(section("second", Duration::from_secs(2)));
    let (packets, error) = read(&file, 4_096);
    assert_eq!(error, None);
    let interfaces: Vec<u32> = packets.iter().map(|packet| packet.1).collect();
    assert_eq!(interfaces, [0, 1]);
    assert!(packets.iter().all(|packet| packet.3 == Direction::Inbound));
}

fn segment() -> Vec<u8> {
    let ip = IpHeader::new([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
    let mut tcp = TcpHeader {
        source_port: 40_000,
        destination_port: 80,
        seq: SeqNumber(7),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    tcp.options.sack_permitted = true;
    Packet::tcp_segment(ip, tcp, &[1; 1_000])
        .to_bytes()
        .to_vec()
}

#[test]
fn a_cut_packet_shows_what_its_headers_say() {
    let whole = segment();
    let of = |bytes: &[u8]| Outline::of(bytes, whole.len()).expect("addresses are there");
    for length in [whole.len(), 100, 44, 40] {
        let outline = of(&whole[..length]);
        let (tcp, payload_len) = outline.tcp().expect("its header is there");
        assert_eq!((tcp.seq, payload_len), (SeqNumber(7), 1_000));
        assert_eq!(tcp.options.sack_permitted, length >= 44);
    }
    assert_eq!(of(&whole[..30]).tcp(), None);
    assert_eq!(Outline::of(&whole[..10], whole.len()), None);
    assert_eq!(Outline::of(&[], 0), None);
}

#[test]
fn tunnels_in_the_clear_are_looked_into() {
    let inner = segment();
    let outer = |protocol: u8, between: &[u8]| {
        let ip = IpHeader::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let bytes = Packet::tcp_segment(ip, TcpHeader::default(), &[]).to_bytes();
        let mut packet = bytes[..20].to_vec();
        packet[9] = protocol;
        let length = u16::try_from(20 + between.len() + inner.len()).expect("short");
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.extend(between);
        packet.extend(&inner);
        packet
    };
    let ethernet = [&[0_u8; 12][..], &[0x08, 0x00]].concat();
    let bridged = [&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9][..], &ethernet].concat();
    for packet in [
        outer(4, &[]),
        outer(47, &[0, 0, 8, 0]),
        outer(47, &[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]),
        outer(47, &bridged),
    ] {
        for length in [packet.len(), packet.len() - 900] {
            let outline = Outline::of(&packet[..length], packet.len()).expect("a packet");
            let (tcp, payload_len) = outline.tcp().expect("a segment");
            assert_eq!((tcp.source_port, payload_len), (40_000, 1_000));
            assert_eq!(outline.source, std::net::IpAddr::from([192, 0, 2, 1]));
        }
    }
}

#[test]
fn two_vlan_tags_are_skipped() {
    let ip = segment();
    let tags = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0x00];
    let frame = [&[0_u8; 12][..], &tags, &ip].concat();
    assert_eq!(ip_in_frame(ETHERNET, &frame), Some(&ip[..]));
    let old = [0x91, 0, 0, 1, 0x08, 0x00];
    let frame = [&[0_u8; 12][..], &old, &ip].concat();
    assert_eq!(ip_in_frame(ETHERNET, &frame), Some(&ip[..]));
}

/// An aggregate of 802.11 with a frame for each of `contents`, which follow an LLC header.
fn aggregate(contents: &[(u16, &[u8])]) -> Vec<u8> {
    // Data with quality of service, whose bit says that it is an aggregate.
    let header = [&[0x88, 2, 0, 0][..], &[2; 18], &[0x10, 0, 0x80, 0]].concat();
    let mut frames = Vec::new();
    for (kind, content) in contents {
        frames.resize(frames.len().next_multiple_of(4), 0);
        frames.extend([4; 12]);
        frames.extend((content.len() as u16 + 8).to_be_bytes());
        frames.extend([0xaa, 0xaa, 3, 0, 0, 0]);
        frames.extend(kind.to_be_bytes());
        frames.extend(*content);
    }
    [header, frames].concat()
}

#[test]
fn every_packet_of_an_aggregate_is_read() {
    const IEEE802_11: u16 = 105;
    let ip = segment();
    let frame = aggregate(&[(0x800, &ip), (0x888e, &[2, 3, 0]), (0x800, &ip)]);
    let read = |frame: &[u8], original_len| -> Vec<_> {
        let packets = ips_in_frame(IEEE802_11, frame, original_len);
        let lengths = packets.map(|ip| ip.map(|ip| (ip.bytes.len(), ip.original_len)));
        lengths.collect()
    };
    let whole = Ok((ip.len(), ip.len()));
    let all = read(&frame, frame.len());
    assert_eq!(all, [whole, Err(NotIp::Other), whole]);
    // Cut short in the last one, and behind it a checksum.
    let cut = read(&frame[..frame.len() - 9], frame.len());
    assert_eq!(cut[2], Ok((ip.len() - 9, ip.len())));
    let checked = [&frame[..], &[1, 2, 3, 4]].concat();
    assert_eq!(read(&checked, checked.len()), all);
    // The control: a single packet, whose length was longer than what was captured.
    let mut single = aggregate(&[(0x800, &ip)]);
    single.drain(26..40);
    single[24] = 0;
    assert_eq!(
        read(&single, single.len() + 50),
        [Ok((ip.len(), ip.len() + 50))]
    );
    assert_eq!(read(&frame[..30], frame.len()), []);
}

/// Records with eight bytes more, as Linux distributions had about the year 2000.
#[test]
fn a_modified_pcap_is_read() {
    for big_endian in [false, true] {
        let word = |value: u32| match big_endian {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        };
        let plain = pcap(big_endian, false, &[(7, 9, b"packet", 60)]);
        let (mut file, record) = (plain[..24].to_vec(), &plain[24..40]);
        file[..4].copy_from_slice(&word(0xa1b2_cd34));
        for (kind, direction) in [(0, Direction::Inbound), (4, Direction::Outbound)] {
            let before = file.len();
            file.extend(record);
            file.extend(word(3));
            file.extend([8, 0, kind, 0]);
            file.extend(b"packet");
            let (packets, error) = read(&file, 1);
            assert_eq!(error, None);
            let time = Duration::new(7, 9_000);
            let expected = (time, 3, 60, direction, b"packet".to_vec());
            assert_eq!(packets.last(), Some(&expected));
            let (_, error) = read(&file[..before + 20], 7);
            let offset = before as u64;
            assert_eq!(error, Some(CaptureError::Truncated { offset }));
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces(
        start in prop::sample::select(vec![
            &b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00"[..],
            b"\x34\xcd\xb2\xa1\x02\x00\x04\x00",
            b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00",
            b"",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        chunk in 1_usize..50,
    ) {
        let file = [start, &rest].concat();
        prop_assert_eq!(read(&file, chunk), read(&file, usize::MAX / 2));
    }

    #[test]
    fn both_readers_of_pcapng_agree(
        // The last block is longer than what is cut off.
        sizes in prop::collection::vec(8_usize..300, 1..10),
        cut in 0_usize..40,
    ) {
        let mut encoder = Encoder::new(&Section::of_application("test"));
        let interface = encoder.interface("link");
        for (size, second) in sizes.iter().zip(1..) {
            let data = vec![7; *size];
            let time = Duration::from_secs(second);
            encoder.packet(&EnhancedPacket::new(interface, time, &data));
        }
        let file = encoder.take();
        let file = &file[..file.len() - cut];
        let blocks = Reader::new(file).map_while(Result::ok);
        let expected = blocks.filter_map(|block| match block {
            outlast_wire::pcapng::Block::Packet(packet) => Some((packet.time, packet.data.to_vec())),
            _ => None,
        });
        let expected: Vec<_> = expected.collect();
        let (packets, error) = read(file, 64);
        let packets: Vec<_> = packets.into_iter().map(|packet| (packet.0, packet.4)).collect();
        prop_assert_eq!(packets, expected);
        prop_assert_eq!(error.is_some(), cut > 0);
    }
}
