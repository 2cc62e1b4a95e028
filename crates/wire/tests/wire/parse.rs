//! What is read from packets: those of a running kernel, and malformed ones.

use crate::common::{hex, parse};
use bytes::Bytes;
use outlast_wire::tcp::{TcpOption, TcpOptions, Timestamps};
use outlast_wire::{Packet, ParseError, Part, SeqNumber, TcpFlags, TcpHeader, Transport};

/// From Linux on the loopback device: SYN, SYN-ACK, ACK and data; the checksums are left to the
/// device, which has nothing to do.
const SYN_V4: &str =
    "4500003cc46e40004006784b7f0000017f000001cf8ccc37dab3716000000000a002ffd7fe300000
    0204ffd70402080a804cc08b000000000103030a";
const DATA_V4: &str =
    "45000042c4704000400678437f0000017f000001cf8ccc37dab371618e904fc480180040fe360000
    0101080a804cc08bc4424e2a68656c6c6f2c206f75746c617374";
const DATA_V6: &str =
    "600dfb5a002e06400000000000000000000000000000000100000000000000000000000000000001
    e1c8a30ffa5d4f5975f85a9b80180040003600000101080a3d1dcec4f7f3b36b68656c6c6f2c206f75746c617374";

#[test]
fn syn_of_linux() {
    let packet = parse(&hex(SYN_V4));
    let header = packet.header();
    assert_eq!(header.ip.source.to_string(), "127.0.0.1");
    assert_eq!(
        (header.ip.hop_limit, header.ip.identification),
        (64, 0xc46e)
    );
    assert_eq!((header.total_len, header.payload_len), (60, 0));
    assert_eq!(packet.sequence_len(), 1);
    let expected = TcpHeader {
        source_port: 53132,
        destination_port: 52279,
        seq: SeqNumber(0xdab3_7160),
        ack: SeqNumber(0),
        flags: TcpFlags::SYN,
        window: 0xffd7,
        urgent: 0,
        options: TcpOptions {
            mss: Some(65495),
            window_scale: Some(10),
            sack_permitted: true,
            timestamps: Some(Timestamps {
                value: 0x804c_c08b,
                echo: 0,
            }),
            ..TcpOptions::default()
        },
    };
    assert_eq!(packet.tcp(), Some(&expected));
}

#[test]
fn data_of_linux_in_both_families() {
    for bytes in [hex(DATA_V4), hex(DATA_V6)] {
        let packet = parse(&bytes);
        assert_eq!(packet.payload(), Some(&b"hello, outlast"[..]));
        assert_eq!(packet.bytes(), Some(&bytes));
        assert_eq!(packet.sequence_len(), 14);
        let tcp = packet.tcp().expect("TCP");
        assert_eq!(tcp.flags, TcpFlags::PSH | TcpFlags::ACK);
        assert!(tcp.options.timestamps.is_some());
        // Only the pseudo-header's sum is in the field: no error, but no right checksum.
        assert!(!packet.checksums_ok());
    }
}

#[test]
fn what_follows_the_packet_is_cut_off() {
    let whole = hex(SYN_V4);
    let padded: Bytes = [&whole[..], &[0; 6]].concat().into();
    assert_eq!(parse(&padded), parse(&whole));
}

#[test]
fn every_cut_is_an_error() {
    for bytes in [hex(SYN_V4), hex(DATA_V6)] {
        for length in 0..bytes.len() {
            let error = Packet::parse(bytes.slice(..length)).expect_err("something is missing");
            assert!(
                matches!(error, ParseError::Truncated { .. }),
                "{length}: {error}"
            );
        }
    }
}

#[test]
fn ipv4_header_checksum_is_verified() {
    let mut bytes = hex(SYN_V4).to_vec();
    bytes[8] -= 1;
    assert_eq!(Packet::parse(bytes.into()), Err(ParseError::Ipv4Checksum));
}

#[test]
fn impossible_header_lengths_and_versions() {
    let mut bytes = hex(DATA_V6).to_vec();
    bytes[52] = 0x40;
    let error = Packet::parse(bytes.into()).expect_err("16 bytes are no TCP header");
    assert_eq!(
        error,
        ParseError::HeaderLength {
            part: Part::Tcp,
            length: 16
        }
    );
    assert_eq!(
        error.to_string(),
        "TCP declares an impossible length of 16 bytes"
    );

    let mut bytes = hex(SYN_V4).to_vec();
    bytes[0] = 0x44;
    let error = Packet::parse(bytes.into()).expect_err("16 bytes are no IPv4 header");
    assert_eq!(
        error,
        ParseError::HeaderLength {
            part: Part::Ipv4,
            length: 16
        }
    );

    assert_eq!(
        Packet::parse(Bytes::from_static(&[0x50; 40])),
        Err(ParseError::Version(5))
    );
}

/// `DATA_V6` with extension headers in front of TCP.
fn with_extensions(first: u8, extensions: &[u8]) -> Bytes {
    let mut bytes = hex(DATA_V6).to_vec();
    bytes[6] = first;
    bytes.splice(40..40, extensions.iter().copied());
    let length = u16::try_from(bytes.len() - 40).expect("a short packet");
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes.into()
}

const HOP_BY_HOP_PADDED: [u8; 8] = [6, 0, 1, 4, 0, 0, 0, 0];
const ROUTING_DONE: [u8; 8] = [6, 0, 4, 0, 0, 0, 0, 0];
const AUTHENTICATION: [u8; 16] = [6, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0];

#[test]
fn tcp_is_found_behind_ipv6_extension_headers() {
    let chain = [
        60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 6, 0, 4, 0, 0, 0, 0, 0,
    ];
    let whole_in_a_fragment = [6, 0, 0, 0, 0, 0, 0, 1];
    for (first, extensions) in [
        (0, &HOP_BY_HOP_PADDED[..]),
        (60, &HOP_BY_HOP_PADDED[..]),
        (43, &ROUTING_DONE[..]),
        (44, &whole_in_a_fragment[..]),
        (51, &AUTHENTICATION[..]),
        (0, &chain[..]),
    ] {
        let packet = parse(&with_extensions(first, extensions));
        assert_eq!(packet.tcp(), parse(&hex(DATA_V6)).tcp(), "{first}");
        assert_eq!(packet.payload(), Some(&b"hello, outlast"[..]), "{first}");
        assert_eq!(
            packet.total_len() as usize,
            86 + extensions.len(),
            "{first}"
        );
    }
}

#[test]
fn what_is_not_looked_into_is_other() {
    let first_fragment = [6, 0, 0, 1, 0, 0, 0, 1];
    let later_fragment = [6, 0, 5, 0xa8, 0, 0, 0, 1];
    let routing_to_go = [6, 0, 4, 1, 0, 0, 0, 0];
    for (first, extensions, protocol, fragment) in [
        (44, &first_fragment[..], 6, true),
        (44, &later_fragment[..], 6, true),
        (43, &routing_to_go[..], 43, false),
        (50, &[0; 8][..], 50, false),
        (59, &[][..], 59, false),
        (139, &[][..], 139, false),
    ] {
        let packet = parse(&with_extensions(first, extensions));
        assert_eq!(
            packet.header().transport,
            Transport::Other { protocol, fragment },
            "{first}"
        );
        assert_eq!(packet.sequence_len(), 0);
        assert!(packet.checksums_ok());
    }
}

#[test]
fn hop_by_hop_header_comes_first_or_is_unknown() {
    let behind_options = [0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
    let packet = parse(&with_extensions(60, &behind_options));
    assert_eq!(
        packet.header().transport,
        Transport::Other {
            protocol: 0,
            fragment: false
        }
    );
}

#[test]
fn extension_header_that_does_not_end() {
    let error = Packet::parse(with_extensions(0, &[6, 200, 1, 4, 0, 0, 0, 0]));
    assert!(
        matches!(
            error,
            Err(ParseError::Truncated {
                part: Part::Extension,
                needed: 1608,
                ..
            })
        ),
        "{error:?}"
    );
}

/// `SYN_V4` with other bytes in its header, its checksum made right.
fn with_ipv4_bytes(edit: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = hex(SYN_V4).to_vec();
    edit(&mut bytes);
    let header_len = usize::from(bytes[0] & 15) * 4;
    bytes[10..12].fill(0);
    let sum = bytes[..header_len]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .fold(0, |sum, word| (sum + word) % 0xffff);
    bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    bytes.into()
}

#[test]
fn ipv4_options_and_fragments() {
    let with_options = with_ipv4_bytes(|bytes| {
        bytes[0] = 0x46;
        bytes[3] += 4;
        // Router alert (RFC 2113).
        bytes.splice(20..20, [0x94, 4, 0, 0]);
    });
    let packet = parse(&with_options);
    assert_eq!(packet.tcp(), parse(&hex(SYN_V4)).tcp());
    assert_eq!(packet.total_len(), 64);

    for fragment in [[0x20, 0x00], [0x00, 0x01]] {
        let bytes = with_ipv4_bytes(|bytes| bytes[6..8].copy_from_slice(&fragment));
        let transport = &parse(&bytes).header().transport.clone();
        assert_eq!(
            *transport,
            Transport::Other {
                protocol: 6,
                fragment: true
            }
        );
    }
}

#[test]
fn super_segment_with_total_length_zero_ends_with_the_buffer() {
    let v4 = with_ipv4_bytes(|bytes| {
        bytes[2..4].fill(0);
        bytes.extend_from_slice(&[7; 80_000]);
    });
    let packet = parse(&v4);
    assert_eq!(
        (packet.total_len(), packet.header().payload_len),
        (80_060, 80_000)
    );

    let mut v6 = hex(DATA_V6).to_vec();
    v6[4..6].fill(0);
    v6.extend_from_slice(&[7; 80_000]);
    let packet = parse(&v6.into());
    assert_eq!(
        (packet.total_len(), packet.header().payload_len),
        (80_086, 80_014)
    );
}

#[test]
fn jumbo_payload_option_says_how_long_the_packet_is() {
    let length = (8_u32 + 46 + 80_000).to_be_bytes();
    let option = [[6, 0, 0xc2, 4], length].concat();
    let mut bytes = with_extensions(0, &option).to_vec();
    bytes[4..6].fill(0);
    bytes.extend_from_slice(&[7; 80_100]);
    let packet = parse(&bytes.into());
    assert_eq!(
        (packet.total_len(), packet.header().payload_len),
        (80_094, 80_014)
    );
}

/// Found by fuzzing: an edit wrote the packet's length into the TCP ports.
#[test]
fn jumbo_payload_option_ends_within_its_header() {
    let mut bytes = with_extensions(0, &[6, 0, 1, 0, 0xc2, 4, 0, 0]).to_vec();
    bytes[4..6].fill(0);
    let packet = parse(&bytes.into());
    assert_eq!(packet.total_len(), 94);
    let mut edit = packet.clone().edit();
    edit.set_option(&TcpOption::WindowScale(7))
        .expect("there is room");
    let edited = edit.finish();
    assert_eq!(parse(&edited.to_bytes()), edited);
}

#[test]
fn udp_length_rules_over_what_ip_carries() {
    // 12 bytes behind the IP header, of which UDP counts 10.
    let udp = hex("60000000 000c 11 40 00000000000000000000000000000001
        00000000000000000000000000000001 0035 1000 000a 0000 abcd ffff");
    let packet = parse(&udp);
    assert!(matches!(packet.header().transport, Transport::Udp(udp) if udp.source_port == 53));
    assert_eq!(packet.payload(), Some(&[0xab, 0xcd][..]));
    assert!(packet.checksums_ok(), "zero says that there is no checksum");

    let mut bytes = udp.to_vec();
    bytes[45] = 7;
    let error = Packet::parse(bytes.clone().into());
    assert_eq!(
        error,
        Err(ParseError::HeaderLength {
            part: Part::Udp,
            length: 7
        })
    );
    bytes[45] = 13;
    let error = Packet::parse(bytes.into());
    let expected = ParseError::Truncated {
        part: Part::Udp,
        needed: 13,
        available: 12,
    };
    assert_eq!(error, Err(expected));
}
