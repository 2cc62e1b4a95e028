//! Capture files: the encoder against independent readers, the reader against malformed files.

use crate::common::{any, both_families, hex};
use outlast_wire::pcapng::{
    self, Block, Direction, Encoder, EnhancedPacket, Interface, InterfaceId, ReadError, Reader,
    Section,
};
use outlast_wire::{Packet, TcpFlags, TcpHeader};
use pcap_parser::traits::PcapNGPacketBlock;
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const TIME: Duration = Duration::new(1_700_000_000, 123_456_789);

fn packets() -> [Packet; 2] {
    let tcp = TcpHeader {
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    both_families().map(|ip| Packet::tcp_segment(ip, tcp.clone(), b"odd"))
}

/// Two interfaces and two packets, one with everything that a packet may have.
fn capture() -> Vec<u8> {
    let mut encoder = Encoder::new(&Section {
        hardware: Some("none".into()),
        os: Some("simulated".into()),
        application: Some("outlast".into()),
        comment: Some("bus tunnel".into()),
    });
    let [v4, v6] = packets().map(|packet| packet.to_bytes());
    let mobile = encoder.interface("mobile");
    encoder.packet(&EnhancedPacket::new(mobile, Duration::ZERO, &v4));
    let fixed = encoder.interface("fixed");
    encoder.packet(&EnhancedPacket {
        direction: Direction::Outbound,
        comment: Some("re-sent at link-up".into()),
        ..EnhancedPacket::new(fixed, TIME, &v6)
    });
    encoder.take()
}

fn read(file: &[u8]) -> Vec<Block<'_>> {
    Reader::new(file)
        .collect::<Result<_, _>>()
        .expect("a good file")
}

#[test]
fn reader_gives_back_what_was_written() {
    let file = capture();
    let [v4, v6] = packets().map(|packet| packet.to_bytes());
    let expected = [
        Block::Section(Section {
            hardware: Some("none".into()),
            os: Some("simulated".into()),
            application: Some("outlast".into()),
            comment: Some("bus tunnel".into()),
        }),
        Block::Interface(Interface {
            id: InterfaceId(0),
            link_type: pcapng::RAW,
            name: Some("mobile".into()),
        }),
        Block::Packet(EnhancedPacket::new(InterfaceId(0), Duration::ZERO, &v4)),
        Block::Interface(Interface {
            id: InterfaceId(1),
            link_type: pcapng::RAW,
            name: Some("fixed".into()),
        }),
        Block::Packet(EnhancedPacket {
            direction: Direction::Outbound,
            comment: Some("re-sent at link-up".into()),
            ..EnhancedPacket::new(InterfaceId(1), TIME, &v6)
        }),
    ];
    assert_eq!(read(&file), expected);
}

#[test]
fn independent_reader_sees_the_same() {
    let file = capture();
    let mut rest = &file[..];
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let (behind, block) = pcap_parser::parse_block_le(rest).expect("a good block");
        rest = behind;
        match block {
            pcap_parser::Block::SectionHeader(section) => {
                let text = |text: Option<Result<&str, _>>| {
                    text.expect("it is there")
                        .map_err(|_| "not a text")
                        .expect("UTF-8")
                        .to_owned()
                };
                seen.push(text(section.shb_userappl()));
                seen.push(text(section.shb_hardware()));
                seen.push(text(section.shb_os()));
            }
            pcap_parser::Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, pcap_parser::Linktype::RAW);
                assert_eq!(interface.ts_resolution(), Some(1_000_000_000));
                assert_eq!(interface.snaplen as usize, pcapng::MAX_CAPTURED_LEN);
                let name = interface
                    .if_name()
                    .expect("a name")
                    .map_err(|_| "")
                    .expect("UTF-8");
                seen.push(name.to_owned());
            }
            pcap_parser::Block::EnhancedPacket(packet) => {
                let (seconds, nanos) = packet.decode_ts(0, 1_000_000_000);
                seen.push(format!("{}: {seconds}.{nanos:09}", packet.if_id));
                let data = packet.packet_data();
                assert_eq!(packet.origlen as usize, data.len());
                for option in &packet.options {
                    let value = option
                        .as_bytes()
                        .map_err(|_| "")
                        .expect("as long as it says");
                    if option.code.0 != 0 {
                        seen.push(format!(
                            "{}: {}",
                            option.code.0,
                            String::from_utf8_lossy(value)
                        ));
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        seen,
        [
            "outlast",
            "none",
            "simulated",
            "mobile",
            "0: 0.000000000",
            "fixed",
            "1: 1700000000.123456789",
            "2: \u{2}\0\0\0",
            "1: re-sent at link-up",
        ]
    );
}

#[test]
fn wireshark_sees_the_same() {
    let tshark = Command::new("tshark")
        .args([
            "-r",
            "-",
            "-o",
            "tcp.check_checksum:TRUE",
            "-T",
            "fields",
            "-E",
            "separator=|",
        ])
        .args([
            "-e",
            "frame.len",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.interface_name",
        ])
        .args([
            "-e",
            "frame.comment",
            "-e",
            "tcp.checksum.status",
            "-e",
            "_ws.malformed",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut tshark = match tshark {
        Ok(tshark) => tshark,
        Err(error) => {
            outlast_skip::skip(format!("tshark cannot be run ({error})"));
            return;
        }
    };
    let mut input = tshark.stdin.take().expect("it is piped");
    input.write_all(&capture()).expect("tshark reads");
    drop(input);
    let output = tshark.wait_with_output().expect("tshark ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "43|0.000000000|mobile||1|\n63|1700000000.123456789|fixed|re-sent at link-up|1|\n"
    );
}

#[test]
fn encoder_hands_over_what_is_new() {
    let mut encoder = Encoder::new(&Section::default());
    let mut pieces = vec![encoder.take()];
    let id = encoder.interface("one");
    pieces.push(encoder.take());
    assert_eq!(encoder.pending_len(), 0);
    encoder.packet(&EnhancedPacket::new(id, TIME, b"x"));
    assert_eq!(encoder.pending_len(), 40);
    pieces.push(encoder.take());
    let file = pieces.concat();
    assert!(matches!(
        read(&file)[..],
        [Block::Section(_), Block::Interface(_), Block::Packet(_)]
    ));
}

#[test]
fn what_is_too_long_is_cut() {
    let mut encoder = Encoder::new(&Section::default());
    let id = encoder.interface("one");
    let data = vec![7; pcapng::MAX_CAPTURED_LEN + 1];
    // The last whole character ends at 65534.
    let comment = format!("{}\u{20ac}", "x".repeat(65_534));
    encoder.packet(&EnhancedPacket {
        comment: Some(comment.into()),
        ..EnhancedPacket::new(id, Duration::MAX, &data)
    });
    let file = encoder.take();
    let Block::Packet(packet) = &read(&file)[2] else {
        panic!("the packet comes third")
    };
    assert_eq!(packet.data.len(), pcapng::MAX_CAPTURED_LEN);
    assert_eq!(packet.original_len as usize, data.len());
    assert_eq!(packet.time, Duration::from_nanos(u64::MAX));
    assert_eq!(
        packet.comment.as_ref().map(|comment| comment.len()),
        Some(65_534)
    );
}

/// A file of another machine: big-endian, microseconds, Ethernet, a block that is not known.
const BIG_ENDIAN: &str = "
    0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c
    00000005 00000010 00000000 00000010
    00000001 00000014 0001 0000 00000000 00000014
    00000006 00000024 00000000 00000000 000f4241 00000004 00000009 aabbccdd 00000024";

#[test]
fn files_of_other_machines() {
    let file = hex(BIG_ENDIAN);
    let mut reader = Reader::new(&file);
    let blocks: Vec<_> = reader
        .by_ref()
        .map(|block| block.expect("a good file"))
        .collect();
    assert_eq!(reader.skipped(), 1);
    let packet = EnhancedPacket {
        original_len: 9,
        ..EnhancedPacket::new(
            InterfaceId(0),
            Duration::from_micros(1_000_001),
            &[0xaa, 0xbb, 0xcc, 0xdd],
        )
    };
    let interface = Interface {
        id: InterfaceId(0),
        link_type: pcapng::ETHERNET,
        name: None,
    };
    assert_eq!(
        blocks,
        [
            Block::Section(Section::default()),
            Block::Interface(interface),
            Block::Packet(packet)
        ]
    );
}

/// `BIG_ENDIAN` with options in its interface description.
fn with_interface_options(options: &str) -> Vec<u8> {
    let options = hex(options);
    let length = format!("{:08x}", 0x14 + options.len());
    let block = format!("00000001 {length} 0001 0000 00000000 {options:x} {length}");
    hex(&BIG_ENDIAN.replace("00000001 00000014 0001 0000 00000000 00000014", &block)).to_vec()
}

#[test]
fn clocks_of_other_interfaces() {
    for (options, nanos) in [
        // 2^-20 s, seconds, and finer than can be.
        ("0009 0001 94000000", 953_675_270),
        ("0009 0001 00000000", 1_000_001_000_000_000),
        ("0009 0001 7f000000", 0),
        ("0009 0001 ff000000", 0),
        // Ten seconds later, and a second before the epoch.
        ("000e 0008 000000000000000a", 11_000_001_000),
        ("000e 0008 fffffffffffffffe", 0),
        // Not of the right length: as if it were not there.
        ("0009 0002 94000000", 1_000_001_000),
        ("0009 ffff 94000000", 1_000_001_000),
    ] {
        let file = with_interface_options(options);
        let blocks = read(&file);
        let Some(Block::Packet(packet)) = blocks.last() else {
            panic!("{blocks:?}")
        };
        assert_eq!(packet.time, Duration::from_nanos(nanos), "{options}");
    }
}

#[test]
fn a_new_section_counts_interfaces_anew() {
    let mut file = capture();
    file.extend_from_slice(&hex(BIG_ENDIAN));
    let packets = read(&file)
        .into_iter()
        .filter(|block| matches!(block, Block::Packet(_)));
    assert_eq!(packets.count(), 3);
    let header_only = &hex(BIG_ENDIAN)[..28];
    let lonely = [&capture()[..], header_only, &hex(BIG_ENDIAN)[64..]].concat();
    let error = Reader::new(&lonely).find_map(Result::err);
    let offset = lonely.len() - 36;
    assert_eq!(
        error,
        Some(ReadError::Interface {
            offset,
            interface: 0
        })
    );
}

/// `BIG_ENDIAN` with a byte replaced.
fn with_byte(at: usize, byte: u8) -> Vec<u8> {
    let mut file = hex(BIG_ENDIAN).to_vec();
    file[at] = byte;
    file
}

#[test]
fn malformed_files_are_errors_with_a_place() {
    for (file, expected) in [
        (vec![], ReadError::NotPcapng),
        (with_byte(0, 0), ReadError::NotPcapng),
        (with_byte(8, 0), ReadError::NotPcapng),
        (
            with_byte(13, 2),
            ReadError::Version {
                offset: 0,
                version: 2,
            },
        ),
        (
            with_byte(35, 0x11),
            ReadError::BlockLength {
                offset: 28,
                length: 0x11,
            },
        ),
        (
            with_byte(35, 0x08),
            ReadError::BlockLength {
                offset: 28,
                length: 8,
            },
        ),
        (
            with_byte(43, 0x14),
            ReadError::BlockLength {
                offset: 28,
                length: 16,
            },
        ),
        (with_byte(32, 1), ReadError::Truncated { offset: 28 }),
        (
            with_byte(75, 1),
            ReadError::Interface {
                offset: 64,
                interface: 1,
            },
        ),
        (with_byte(87, 5), ReadError::BlockContent { offset: 64 }),
        (with_byte(84, 0xff), ReadError::BlockContent { offset: 64 }),
    ] {
        let mut reader = Reader::new(&file);
        let error = reader.find_map(Result::err);
        assert_eq!(error, Some(expected));
        assert_eq!(reader.next(), None, "an error is the last answer");
    }
}

#[test]
fn every_cut_keeps_what_came_before() {
    let file = capture();
    let whole = read(&file);
    for length in 1..file.len() {
        let blocks: Vec<_> = Reader::new(&file[..length]).collect();
        let good = blocks.iter().filter_map(|block| block.as_ref().ok());
        assert!(
            good.eq(whole
                .iter()
                .take(blocks.iter().filter(|b| b.is_ok()).count()))
        );
        if let Some(Err(error)) = blocks.last() {
            let told = matches!(error, ReadError::Truncated { .. } | ReadError::NotPcapng);
            assert!(told, "{length}: {error}");
        }
    }
}

#[test]
fn ip_packets_in_frames() {
    let packet = hex("45000014000000004006000000000000 00000000");
    let interface = |link_type| Interface {
        id: InterfaceId(0),
        link_type,
        name: None,
    };
    for (link_type, header) in [
        (101, ""),
        (228, ""),
        (1, "ffffffffffff 020000000001 0800"),
        (1, "ffffffffffff 020000000001 86dd"),
        (1, "ffffffffffff 020000000001 8100 0001 0800"),
        (1, "ffffffffffff 020000000001 88a8 0001 8100 0002 0800"),
        (113, "0000 0001 0006 0200000000010000 0800"),
        (276, "0800 0000 00000001 0001 00 06 0200000000010000"),
        (0, "02000000"),
        (108, "00000002"),
    ] {
        let frame = [hex(header), packet.clone()].concat();
        let found = pcapng::ip_packet(&interface(link_type), &frame);
        assert_eq!(found, Some(&packet[..]), "{link_type} {header}");
    }
    for (link_type, frame) in [
        (1, "ffffffffffff 020000000001 0806 0001"),
        (1, "ffffffffffff 020000000001"),
        (1, "ffffffffffff 020000000001 8100 00"),
        (276, "0800"),
        (0, "02000000"),
        (105, "0800"),
    ] {
        assert_eq!(
            pcapng::ip_packet(&interface(link_type), &hex(frame)),
            None,
            "{frame}"
        );
    }
}

proptest! {
    #![proptest_config(crate::common::config("pcapng"))]

    #[test]
    fn any_capture_is_read_back(
        name in ".*",
        packets in proptest::collection::vec((any::packet(), any::<u64>(), ".*", 0..3_u8), 0..5),
    ) {
        let mut encoder = Encoder::new(&Section::of_application(&name));
        let id = encoder.interface(&name);
        let bytes: Vec<_> = packets.iter().map(|(packet, ..)| packet.to_bytes()).collect();
        let packets = packets.iter().zip(&bytes).map(|((_, time, comment, direction), bytes)| {
            EnhancedPacket {
                direction: match direction {
                    0 => Direction::Unknown,
                    1 => Direction::Inbound,
                    _ => Direction::Outbound,
                },
                comment: Some(comment.as_str().into()),
                ..EnhancedPacket::new(id, Duration::from_nanos(*time), bytes)
            }
        });
        let packets: Vec<_> = packets.collect();
        for packet in &packets {
            encoder.packet(packet);
        }
        let file = encoder.take();
        let found: Vec<_> = read(&file).into_iter().skip(2).collect();
        let expected: Vec<_> = packets.into_iter().map(Block::Packet).collect();
        prop_assert_eq!(found, expected);
    }

    /// Arbitrary damage to a good file, so that the reader gets far enough.
    #[test]
    fn damaged_files_never_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        for mut file in [capture(), hex(BIG_ENDIAN).to_vec()] {
            for (at, byte) in &damage {
                let at = at.index(file.len());
                file[at] = *byte;
            }
            let blocks = Reader::new(&file).count();
            prop_assert!(blocks <= file.len() / 12 + 1);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        link_type in prop_oneof![Just(0_u16), Just(1), Just(108), Just(113), Just(276), any::<u16>()],
    ) {
        prop_assert!(Reader::new(&bytes).count() <= bytes.len() / 12 + 1);
        let interface = Interface { id: InterfaceId(0), link_type, name: None };
        if let Some(packet) = pcapng::ip_packet(&interface, &bytes) {
            prop_assert!(bytes.ends_with(packet));
        }
    }
}
