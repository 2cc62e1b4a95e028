//! Packets of IPv4 as IPv6 and back.

use crate::common::any;
use bytes::Bytes;
use outlast_wire::translation::{DualAddress, TranslationError, to_v4, to_v6};
use outlast_wire::{IcmpNotice, IpHeader, Packet, UdpHeader};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HOSTS: [DualAddress; 2] = [
    DualAddress {
        v4: Ipv4Addr::new(198, 18, 0, 1),
        v6: Ipv6Addr::new(0x2001, 0x22, 1, 2, 3, 4, 5, 6),
    },
    DualAddress {
        v4: Ipv4Addr::new(198, 19, 7, 77),
        v6: Ipv6Addr::new(0x2001, 0x21, 0xffff, 0, 0xabcd, 9, 0x8000, 1),
    },
];

fn reversed() -> [DualAddress; 2] {
    let [a, b] = HOSTS;
    [b, a]
}

fn header(hosts: [DualAddress; 2]) -> IpHeader {
    let [from, to] = hosts;
    IpHeader {
        hop_limit: 64,
        ..IpHeader::new(from.v4.into(), to.v4.into())
    }
}

fn parsed(bytes: &[u8]) -> Packet {
    Packet::parse(Bytes::copy_from_slice(bytes)).expect("a packet")
}

fn datagram(hosts: [DualAddress; 2], payload: &[u8]) -> Packet {
    let udp = UdpHeader {
        source_port: 5000,
        destination_port: 53,
    };
    Packet::udp_datagram(header(hosts), udp, payload)
}

/// ICMP's checksum over a whole message (RFC 1071), which is zero when it is right.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let words = bytes.chunks(2).map(|word| {
        let low = word.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([word[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum over an ICMPv6 message with its pseudo-header (RFC 8200, section 8.1).
fn sum_v6(packet: &[u8]) -> u16 {
    let length = (packet.len() as u32 - 40).to_be_bytes();
    sum(&[&packet[8..40], &length, &[0, 0, 0, 58], &packet[40..]])
}

fn echo(kind: u8, payload: &[u8]) -> Packet {
    let mut message = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 7];
    message.extend_from_slice(payload);
    let checksum = sum(&[&message]).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    Packet::of_protocol(header(HOSTS), 1, &message)
}

proptest! {
    #[test]
    fn segments_and_datagrams_come_back_as_they_were(
        tcp in any::tcp_header(),
        ports in any::<(u16, u16)>(),
        is_tcp in any::<bool>(),
        payload in any::payload(),
    ) {
        let udp = UdpHeader { source_port: ports.0, destination_port: ports.1 };
        let packet = if is_tcp {
            Packet::tcp_segment(header(HOSTS), tcp, &payload)
        } else {
            Packet::udp_datagram(header(HOSTS), udp, &payload)
        };
        let bytes = packet.to_bytes();
        let other = to_v6(&bytes, HOSTS).expect("it has a form");
        let seen = parsed(&other);
        prop_assert!(seen.checksums_ok());
        crate::common::judge(&other);
        prop_assert_eq!(seen.header().ip.source, IpAddr::from(HOSTS[0].v6));
        prop_assert_eq!(seen.header().ip.destination, IpAddr::from(HOSTS[1].v6));
        prop_assert_eq!(&seen.header().transport, &packet.header().transport);
        let back = to_v4(&other, HOSTS).expect("it has a form");
        prop_assert_eq!(&back[20..], &bytes[20..]);
        prop_assert!(parsed(&back).checksums_ok());
    }

    #[test]
    fn a_wrong_checksum_stays_wrong(at in 20_usize..60, bit in 0_u32..8) {
        let mut bytes = datagram(HOSTS, &[7; 40]).to_bytes().to_vec();
        // The length is not to be altered: what is cut short has no form.
        prop_assume!(!(24..26).contains(&at));
        bytes[at] ^= 1 << bit;
        let other = to_v6(&bytes, HOSTS).expect("it has a form");
        prop_assert!(!parsed(&other).checksums_ok());
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), first in 0_u8..4) {
        let mut bytes = bytes;
        if let Some(byte) = bytes.first_mut() {
            *byte = [0x45, 0x46, 0x60, *byte][usize::from(first)];
        }
        for (at, address) in [(12, HOSTS[0].v4.octets()), (16, HOSTS[1].v4.octets())] {
            if first < 2 && let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&address);
            }
        }
        for (at, address) in [(8, HOSTS[0].v6.octets()), (24, HOSTS[1].v6.octets())] {
            if first == 2 && let Some(place) = bytes.get_mut(at..at + 16) {
                place.copy_from_slice(&address);
            }
        }
        let _ = (to_v6(&bytes, HOSTS), to_v4(&bytes, HOSTS));
    }

    #[test]
    fn an_altered_packet_never_panics(
        packet in prop_oneof![any::tcp_header().prop_map(|tcp| Packet::tcp_segment(header(HOSTS), tcp, b"data")),
            Just(echo(8, b"data")),
            Just(Packet::icmp_error(HOSTS[0].v4.into(), IcmpNotice::PortUnreachable,
                &datagram(reversed(), b"question")).expect("an error"))],
        changes in proptest::collection::vec(any::<(u8, u8)>(), 0..6),
        length in any::<u8>(),
    ) {
        let mut bytes = packet.to_bytes().to_vec();
        for (at, value) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(usize::from(length).max(20));
        if let Ok(other) = to_v6(&bytes, HOSTS) {
            let _ = to_v4(&other, HOSTS);
        }
    }
}

#[test]
fn an_echo_is_an_echo_of_the_other_family() {
    for (v4, v6) in [(8, 128), (0, 129)] {
        let packet = echo(v4, b"is anybody there").to_bytes();
        let other = to_v6(&packet, HOSTS).expect("it has a form");
        assert_eq!((other[6], other[40]), (58, v6));
        assert_eq!(sum_v6(&other), 0);
        assert_eq!(other[44..], packet[24..], "number, sequence and data");
        let back = to_v4(&other, HOSTS).expect("it has a form");
        assert_eq!(back[20..], packet[20..]);
    }
}

/// Type and code of IPv4's errors, what becomes of them, and what becomes of that.
const ERRORS: [(IcmpNotice, [u8; 2], [u8; 2]); 6] = [
    (IcmpNotice::NetworkUnreachable, [1, 0], [3, 1]),
    (IcmpNotice::HostUnreachable, [1, 0], [3, 1]),
    (IcmpNotice::PortUnreachable, [1, 4], [3, 3]),
    (IcmpNotice::Prohibited, [1, 1], [3, 10]),
    (IcmpNotice::TooBig { mtu: 1280 }, [2, 0], [3, 4]),
    (IcmpNotice::HopLimitExceeded, [3, 0], [11, 0]),
];

#[test]
fn an_error_quotes_the_packet_as_its_sender_knows_it() {
    for (notice, v6, v4) in ERRORS {
        let about = datagram(reversed(), b"a question");
        let router = HOSTS[0].v4.into();
        let error = Packet::icmp_error(router, notice, &about).expect("an error");
        let other = to_v6(&error.to_bytes(), HOSTS).expect("it has a form");
        assert_eq!(other[40..42], v6, "{notice:?}");
        assert_eq!(sum_v6(&other), 0, "{notice:?}");
        let quoted = to_v6(&about.to_bytes(), reversed()).expect("it has a form");
        assert_eq!(other[48..], quoted, "{notice:?}");
        let back = to_v4(&other, HOSTS).expect("it has a form");
        assert_eq!(back[20..22], v4, "{notice:?}");
        assert_eq!(sum(&[&back[20..]]), 0, "{notice:?}");
        assert_eq!(back[48..], about.to_bytes()[20..], "{notice:?}");
        if let IcmpNotice::TooBig { mtu } = notice {
            assert_eq!(other[44..48], (mtu + 20).to_be_bytes());
            assert_eq!(back[24..28], mtu.to_be_bytes());
        }
    }
}

/// A long quotation is cut, as the packet that it is of may be longer than an error.
#[test]
fn a_long_quotation_is_cut() {
    let about = to_v6(&datagram(reversed(), &[9; 1300]).to_bytes(), reversed());
    let about = parsed(&about.expect("it has a form"));
    let router = HOSTS[0].v6.into();
    let error = Packet::icmp_error(router, IcmpNotice::PortUnreachable, &about).expect("an error");
    let other = to_v4(&error.to_bytes(), HOSTS).expect("it has a form");
    assert_eq!(other.len(), 576);
    assert_eq!(sum(&[&other[20..]]), 0);
    let quoted = parsed(&other).header().transport.clone();
    let outlast_wire::Transport::IcmpError(error) = quoted else {
        panic!("{quoted:?}");
    };
    let quoted = error.quoted.expect("a quotation");
    assert_eq!(quoted.ports, Some((5000, 53)));
    assert_eq!(quoted.source, IpAddr::from(HOSTS[1].v4));
}

/// A datagram in two fragments, of which the second one begins at byte 24.
fn fragments() -> [Vec<u8>; 2] {
    let whole = datagram(HOSTS, &[5; 40]).to_bytes();
    let fragment = |payload: &[u8], flags: [u8; 2]| {
        let mut bytes = Packet::of_protocol(header(HOSTS), 17, payload)
            .to_bytes()
            .to_vec();
        bytes[4..6].copy_from_slice(&[0xbe, 0xef]);
        bytes[6..8].copy_from_slice(&flags);
        bytes
    };
    [
        fragment(&whole[20..44], [0x20, 0]),
        fragment(&whole[44..], [0, 3]),
    ]
}

#[test]
fn a_fragment_stays_a_fragment() {
    let [first, second] = fragments().map(|bytes| to_v6(&bytes, HOSTS).expect("it has a form"));
    for (fragment, offset) in [(&first, [0, 1]), (&second, [0, 24])] {
        assert_eq!((fragment[6], fragment[40]), (44, 17));
        assert_eq!(fragment[42..44], offset);
        assert_eq!(fragment[44..48], [0, 0, 0xbe, 0xef]);
    }
    // Put together they are what the whole datagram becomes.
    let whole = to_v6(&datagram(HOSTS, &[5; 40]).to_bytes(), HOSTS).expect("it has a form");
    assert_eq!([&first[48..], &second[48..]].concat(), whole[40..]);
    for (fragment, original) in [&first, &second].into_iter().zip(fragments()) {
        let back = to_v4(fragment, HOSTS).expect("it has a form");
        assert_eq!(back[4..8], original[4..8]);
        assert_eq!(back[20..], original[20..]);
    }
}

#[test]
fn a_datagram_without_a_checksum_gets_one() {
    let mut bytes = datagram(HOSTS, b"data").to_bytes().to_vec();
    bytes[26..28].fill(0);
    let other = to_v6(&bytes, HOSTS).expect("it has a form");
    assert!(parsed(&other).checksums_ok());
    assert_ne!(other[46..48], [0, 0]);
    let [mut first, _] = fragments();
    first[26..28].fill(0);
    assert_eq!(to_v6(&first, HOSTS), Err(TranslationError::NoChecksum));
}

#[test]
fn what_has_no_form_says_why() {
    let bytes = datagram(HOSTS, b"data").to_bytes();
    assert_eq!(to_v6(&bytes, reversed()), Err(TranslationError::Address));
    assert_eq!(to_v4(&bytes, HOSTS), Err(TranslationError::Malformed));
    assert_eq!(to_v6(&bytes[..20], HOSTS), Err(TranslationError::Malformed));
    let other = Packet::of_protocol(header(HOSTS), 132, &[0; 40]).to_bytes();
    assert_eq!(to_v6(&other, HOSTS), Err(TranslationError::Protocol(132)));
    let timestamp = echo(13, &[0; 12]).to_bytes();
    let unknown = TranslationError::Message { kind: 13, code: 0 };
    assert_eq!(to_v6(&timestamp, HOSTS), Err(unknown));
    let mut fragment = echo(8, &[0; 12]).to_bytes().to_vec();
    fragment[6] = 0x20;
    assert_eq!(to_v6(&fragment, HOSTS), Err(TranslationError::Fragment));
}
