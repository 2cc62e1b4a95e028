//! ICMP and ICMPv6 errors: made, read, and not sent where they must not be.

use crate::common::{both_families, hex, ip, judge, parse};
use bytes::Bytes;
use outlast_wire::{
    IcmpError, IcmpExtension, IcmpNotice, IcmpRefusal, IpHeader, Packet, QuotedPacket, SeqNumber,
    TcpFlags, TcpHeader, Transport,
};
use std::net::IpAddr;

const NOTICES: [(IcmpNotice, [u8; 2], [u8; 2]); 6] = [
    (IcmpNotice::NetworkUnreachable, [3, 0], [1, 0]),
    (IcmpNotice::HostUnreachable, [3, 1], [1, 3]),
    (IcmpNotice::PortUnreachable, [3, 3], [1, 4]),
    (IcmpNotice::Prohibited, [3, 13], [1, 1]),
    (IcmpNotice::TooBig { mtu: 1400 }, [3, 4], [2, 0]),
    (IcmpNotice::HopLimitExceeded, [11, 0], [3, 0]),
];

fn segment(ip: IpHeader, payload: &[u8]) -> Packet {
    let tcp = TcpHeader {
        source_port: 40_000,
        destination_port: 443,
        seq: SeqNumber(0xdead_beef),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip, tcp, payload)
}

fn router(ip: &IpHeader) -> IpAddr {
    let address = if ip.source.is_ipv4() {
        "192.0.2.254"
    } else {
        "2001:db8::fe"
    };
    address.parse().expect("an address")
}

#[track_caller]
fn error(packet: &Packet) -> &IcmpError {
    match &packet.header().transport {
        Transport::IcmpError(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_quote_the_packet_and_are_read_back() {
    for ip in both_families() {
        let about = segment(ip, &[7; 4000]);
        for (notice, v4, v6) in NOTICES {
            let made = Packet::icmp_error(router(&ip), notice, &about).expect("may be sent");
            let bytes = made.to_bytes();
            judge(&bytes);
            assert!(made.checksums_ok());
            assert_eq!(parse(&bytes), made);
            assert_eq!(bytes.len(), if ip.source.is_ipv4() { 576 } else { 1280 });
            let payload = made.payload().expect("bytes");
            assert_eq!(payload, &about.to_bytes()[..payload.len()]);
            let [kind, code] = if ip.source.is_ipv4() { v4 } else { v6 };
            let expected = IcmpError {
                kind,
                code,
                mtu: matches!(notice, IcmpNotice::TooBig { .. }).then_some(1400),
                quoted: Some(QuotedPacket {
                    source: ip.source,
                    destination: ip.destination,
                    protocol: 6,
                    ports: Some((40_000, 443)),
                    seq: Some(SeqNumber(0xdead_beef)),
                    beginning: Some([0x9c, 0x40, 0x01, 0xbb, 0xde, 0xad, 0xbe, 0xef]),
                }),
            };
            assert_eq!(*error(&made), expected);
        }
    }
}

#[test]
fn extensions_follow_a_padded_quotation_whose_length_is_told() {
    // The object of RFC 5837 and of RFC 4950 alike: header and data in words.
    let object = IcmpExtension {
        class: 1,
        kind: 1,
        data: &[1, 2, 3, 4],
    };
    for ip in both_families() {
        for payload_len in [0, 61, 4000] {
            let about = segment(ip, &vec![7; payload_len]);
            let notice = IcmpNotice::HopLimitExceeded;
            let made =
                Packet::icmp_error_with_extensions(router(&ip), notice, &about, &[object; 2])
                    .expect("may be sent");
            let bytes = made.to_bytes();
            judge(&bytes);
            assert_eq!(parse(&bytes), made);
            let message = &bytes[bytes.len() - made.header().payload_len as usize - 8..];
            let quote_len = match ip.source {
                IpAddr::V4(_) => usize::from(message[5]) * 4,
                IpAddr::V6(_) => usize::from(message[4]) * 8,
            };
            assert!(quote_len >= 128);
            let extensions = &message[8 + quote_len..];
            assert_eq!(
                extensions[4..],
                hex("0008010101020304 0008010101020304")[..]
            );
            assert_eq!(extensions[0], 0x20);
            assert_eq!(
                error(&made).quoted.expect("quoted").seq,
                Some(SeqNumber(0xdead_beef))
            );
        }
    }
}

#[test]
fn extensions_that_do_not_fit_are_refused() {
    let [v4, v6] = both_families();
    let extension = |data| {
        [IcmpExtension {
            class: 1,
            kind: 1,
            data,
        }]
    };
    for (ip, notice, data) in [
        (v4, IcmpNotice::HopLimitExceeded, &[0; 3][..]),
        (v4, IcmpNotice::HopLimitExceeded, &[0; 70_000]),
        (v4, IcmpNotice::HopLimitExceeded, &[0; 424]),
        (v6, IcmpNotice::TooBig { mtu: 1280 }, &[0; 4]),
    ] {
        let about = segment(ip, &[]);
        let refused =
            Packet::icmp_error_with_extensions(router(&ip), notice, &about, &extension(data));
        assert_eq!(refused, Err(IcmpRefusal::Extensions));
    }
}

#[test]
fn quotation_of_eight_transport_bytes() {
    // As RFC 792 demands: IP header and 64 bits.
    let about = segment(ip("192.0.2.1", "198.51.100.2"), b"payload").to_bytes();
    for (length, ports, seq) in [
        (28, Some((40_000, 443)), Some(SeqNumber(0xdead_beef))),
        (27, Some((40_000, 443)), None),
        (23, None, None),
        (20, None, None),
    ] {
        let packet = parse(&icmp_with(&about[..length]));
        let quoted = error(&packet).quoted.expect("the IP header is there");
        assert_eq!((quoted.ports, quoted.seq), (ports, seq), "{length}");
    }
    let packet = parse(&icmp_with(&about[..19]));
    assert_eq!(error(&packet).quoted, None);
}

#[test]
fn later_fragment_has_no_ports() {
    let mut about = segment(ip("192.0.2.1", "198.51.100.2"), b"payload")
        .to_bytes()
        .to_vec();
    about[7] = 1;
    let packet = parse(&icmp_with(&about));
    let quoted = error(&packet).quoted.expect("quoted");
    assert_eq!((quoted.protocol, quoted.ports, quoted.seq), (6, None, None));
}

/// A host-unreachable in an IPv4 packet, with this quotation; its checksum is not filled in.
fn icmp_with(quotation: &[u8]) -> Bytes {
    let host = ip("198.51.100.2", "192.0.2.1");
    let shell = Packet::tcp_segment(host, TcpHeader::default(), b"").to_bytes();
    let mut bytes = shell[..20].to_vec();
    bytes[9] = 1;
    let length = 28 + quotation.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[10..12].fill(0);
    let header = etherparse::Ipv4HeaderSlice::from_slice(&bytes)
        .expect("a header")
        .to_header();
    bytes[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    bytes.extend_from_slice(&[3, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(quotation);
    bytes.into()
}

#[test]
fn messages_that_are_no_errors_are_other() {
    let mut echo = icmp_with(&[]).to_vec();
    echo[20] = 8;
    let packet = parse(&echo.clone().into());
    assert_eq!(
        packet.header().transport,
        Transport::Other {
            protocol: 1,
            fragment: false
        }
    );
    assert!(!packet.checksums_ok());
    echo[22..24].copy_from_slice(&[0xf7, 0xfe]);
    assert!(parse(&echo.into()).checksums_ok());
}

#[test]
fn message_shorter_than_its_header_is_an_error() {
    let bytes = icmp_with(&[]);
    let mut cut = bytes.to_vec();
    cut.truncate(26);
    cut[3] -= 2;
    cut[11] += 2;
    assert!(Packet::parse(cut.into()).is_err());
}

#[test]
fn no_error_where_the_standards_forbid_one() {
    let unreachable =
        |about: &Packet, router| Packet::icmp_error(router, IcmpNotice::HostUnreachable, about);
    let [v4, v6] = both_families();
    let about = segment(v4, b"");
    assert_eq!(unreachable(&about, router(&v6)), Err(IcmpRefusal::Family));
    let made = unreachable(&about, router(&v4)).expect("may be sent");
    assert_eq!(
        unreachable(&made, router(&v4)),
        Err(IcmpRefusal::AboutError)
    );

    for (source, destination, refusal) in [
        ("192.0.2.1", "224.0.0.1", IcmpRefusal::ToMany),
        ("192.0.2.1", "255.255.255.255", IcmpRefusal::ToMany),
        ("0.0.0.0", "192.0.2.2", IcmpRefusal::FromNobody),
        ("255.255.255.255", "192.0.2.2", IcmpRefusal::FromNobody),
        ("2001:db8::1", "ff02::1", IcmpRefusal::ToMany),
        ("::", "2001:db8::2", IcmpRefusal::FromNobody),
    ] {
        let about = segment(ip(source, destination), b"");
        assert_eq!(
            unreachable(&about, router(&about.header().ip)),
            Err(refusal),
            "{source}"
        );
    }
    // Path MTU discovery for multicast.
    let about = segment(ip("2001:db8::1", "ff02::1"), b"");
    Packet::icmp_error(router(&v6), IcmpNotice::TooBig { mtu: 1280 }, &about).expect("allowed");
}

#[test]
fn only_the_first_fragment_draws_an_error() {
    let whole = segment(both_families()[1], &[0; 64]).to_bytes();
    for (offset, expected) in [(1, true), (0x08, false), (0x09, false)] {
        let mut bytes = whole.to_vec();
        bytes[6] = 44;
        bytes[5] += 8;
        bytes.splice(40..40, [6, 0, 0, offset, 0, 0, 0, 9]);
        let fragment = parse(&bytes.into());
        let made = Packet::icmp_error(
            router(&fragment.header().ip),
            IcmpNotice::NetworkUnreachable,
            &fragment,
        );
        assert_eq!(made.is_ok(), expected, "{offset}");
    }
}
