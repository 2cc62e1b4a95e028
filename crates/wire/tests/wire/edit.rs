//! Edits: what they change, that checksums follow, and when they refuse.

use crate::common::{any, both_families, hex, ip, judge, parse};
use bytes::Bytes;
use outlast_wire::edit::{Edit, EditError};
use outlast_wire::tcp::{
    Experimental, SackBlock, TcpOption, TcpOptions, Timestamps, UserTimeout, kind,
};
use outlast_wire::{
    IcmpNotice, IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, Transport,
    UdpHeader,
};
use proptest::prelude::*;
use std::net::IpAddr;

const STAMPS: Timestamps = Timestamps {
    value: 10,
    echo: 20,
};

fn tcp() -> TcpHeader {
    TcpHeader {
        source_port: 40_000,
        destination_port: 443,
        seq: SeqNumber(1_000_000),
        ack: SeqNumber(77),
        flags: TcpFlags::ACK,
        window: 512,
        urgent: 0,
        options: TcpOptions {
            timestamps: Some(STAMPS),
            ..TcpOptions::default()
        },
    }
}

/// The packet after `edit`, which must be the same as parsed anew, its checksums right.
#[track_caller]
fn edited(packet: Packet, edit: impl FnOnce(&mut Edit) -> Result<(), EditError>) -> Packet {
    let mut editing = packet.edit();
    edit(&mut editing).expect("the edit can be made");
    let packet = editing.finish();
    let bytes = packet.to_bytes();
    judge(&bytes);
    if packet.bytes().is_some() {
        assert_eq!(parse(&bytes), packet);
    } else {
        assert_eq!(parse(&bytes).header(), packet.header());
    }
    packet
}

#[test]
fn every_field_of_a_segment() {
    for ip in both_families() {
        let other = both_families().map(|ip| ip.destination).into_iter();
        let other = other
            .rev()
            .find(|address| address.is_ipv4() == ip.source.is_ipv4());
        let other = other.expect("one of each family");
        let stamps = Timestamps {
            value: u32::MAX,
            echo: 0,
        };
        let segments = [
            Packet::tcp_segment(ip, tcp(), b"an odd payload!"),
            Packet::modelled_tcp(ip, tcp(), ModelledPayload::default(), 15),
        ];
        for segment in segments {
            let packet = edited(segment, |edit| {
                edit.set_seq(SeqNumber(u32::MAX))?
                    .set_ack(SeqNumber(0x1234_5678))?
                    .set_flags(TcpFlags::ACK | TcpFlags::PSH)?
                    .set_window(0)?
                    .set_source_port(1)?
                    .set_destination_port(0xffff)?
                    .set_source(other)?
                    .set_destination(ip.source)?
                    .set_timestamps(stamps)?
                    .decrement_hop_limit()?;
                Ok(())
            });
            let expected = TcpHeader {
                source_port: 1,
                destination_port: 0xffff,
                seq: SeqNumber(u32::MAX),
                ack: SeqNumber(0x1234_5678),
                flags: TcpFlags::ACK | TcpFlags::PSH,
                window: 0,
                urgent: 0,
                options: TcpOptions {
                    timestamps: Some(stamps),
                    ..TcpOptions::default()
                },
            };
            assert_eq!(packet.tcp(), Some(&expected));
            let expected = IpHeader {
                source: other,
                destination: ip.source,
                hop_limit: 63,
                ..ip
            };
            assert_eq!(packet.header().ip, expected);
        }
    }
}

#[test]
fn bytes_are_edited_in_place_unless_shared() {
    let packet = Packet::tcp_segment(both_families()[0], tcp(), &[7; 1400]);
    let place = |packet: &Packet| packet.bytes().expect("captured").as_ptr();
    let before = place(&packet);
    let mut edit = packet.edit();
    edit.set_window(1).expect("TCP");
    let packet = edit.finish();
    assert_eq!(place(&packet), before);

    let kept = packet.clone();
    let mut edit = packet.edit();
    edit.set_window(2).expect("TCP");
    let packet = edit.finish();
    assert_ne!(place(&packet), before);
    assert_eq!(
        kept.tcp().expect("TCP").window,
        1,
        "who else holds the packet sees no edit"
    );
    assert_eq!(packet.tcp().expect("TCP").window, 2);
}

#[test]
fn ports_and_addresses_of_udp() {
    for ip in both_families() {
        let udp = UdpHeader {
            source_port: 1,
            destination_port: 2,
        };
        let packet = edited(Packet::udp_datagram(ip, udp, b"odd"), |edit| {
            edit.set_source_port(3)?
                .set_destination_port(4)?
                .set_source(ip.destination)?;
            Ok(())
        });
        let expected = UdpHeader {
            source_port: 3,
            destination_port: 4,
        };
        assert_eq!(packet.header().transport, Transport::Udp(expected));
    }
}

#[test]
fn udp_without_checksum_stays_without() {
    let udp = UdpHeader {
        source_port: 1,
        destination_port: 2,
    };
    let mut bytes = Packet::udp_datagram(both_families()[0], udp, b"x")
        .to_bytes()
        .to_vec();
    bytes[26..28].fill(0);
    let mut edit = parse(&bytes.into()).edit();
    edit.set_source_port(3).expect("UDP").fill_checksums();
    assert_eq!(edit.finish().to_bytes()[26..28], [0, 0]);
}

#[test]
fn udp_checksum_never_becomes_zero() {
    let udp = UdpHeader {
        source_port: 1,
        destination_port: 0,
    };
    // The sum is 0xffff but for the source port, see `build.rs`.
    let payload = (0xffff_u16 - 37).to_be_bytes();
    let packet = Packet::udp_datagram(ip("0.0.0.0", "0.0.0.0"), udp, &payload);
    let packet = edited(packet, |edit| edit.set_source_port(0).map(|_| ()));
    assert_eq!(packet.to_bytes()[26..28], [0xff, 0xff]);
}

#[test]
fn addresses_of_icmp_errors() {
    for ip in both_families() {
        let about = Packet::tcp_segment(ip, tcp(), b"");
        let notice = IcmpNotice::HostUnreachable;
        let error = Packet::icmp_error(ip.destination, notice, &about).expect("may be sent");
        let quoted = error.payload().expect("captured").to_vec();
        let packet = edited(error, |edit| {
            edit.set_destination(ip.destination).map(|_| ())
        });
        assert_eq!(packet.payload(), Some(&quoted[..]));
    }
}

#[test]
fn partial_checksum_is_filled_in() {
    // From Linux on the loopback device: only the pseudo-header is summed up.
    let bytes = hex("600dfb5a002e06400000000000000000000000000000000100000000000000000000000000000001
        e1c8a30ffa5d4f5975f85a9b80180040003600000101080a3d1dcec4f7f3b36b68656c6c6f2c206f75746c617374");
    let packet = parse(&bytes);
    assert!(!packet.checksums_ok());
    let packet = edited(packet, |edit| {
        edit.set_window(1)?.fill_checksums();
        Ok(())
    });
    assert!(packet.checksums_ok());
}

/// The packet as it is on its way to a network card that completes its checksum.
fn unfilled(packet: &Packet) -> Packet {
    let (at, protocol) = match packet.header().transport {
        Transport::Tcp(_) => (16, 6),
        _ => (6, 17),
    };
    let mut bytes = packet.to_bytes().to_vec();
    let ip = packet.header().ip;
    let transport_at = match packet.header().transport {
        Transport::Udp(_) => bytes.len() - packet.payload().expect("bytes").len() - 8,
        _ if ip.source.is_ipv4() => usize::from(bytes[0] & 15) * 4,
        _ => 40,
    };
    let length = (bytes.len() - transport_at) as u16;
    let mut sum = etherparse::checksum::Sum16BitWords::new();
    let sum = match (ip.source, ip.destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum.add_4bytes(a.octets()).add_4bytes(b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => sum.add_16bytes(a.octets()).add_16bytes(b.octets()),
        _ => unreachable!("of one family"),
    };
    let sum = sum
        .add_2bytes([0, protocol])
        .add_2bytes(length.to_be_bytes());
    let field = !sum.ones_complement();
    bytes[transport_at + at..][..2].copy_from_slice(&field.to_be().to_be_bytes());
    parse(&bytes.into())
}

#[test]
fn a_checksum_that_was_left_to_a_network_card_is_completed_and_no_other_one_changes() {
    let [v4, _] = both_families();
    let whole = Packet::tcp_segment(v4, tcp(), b"payload");
    let left = unfilled(&whole);
    assert!(left.has_partial_checksum() && !left.checksums_ok());
    assert_eq!(left.clone().with_completed_checksum(), whole);
    // Damage stays, in the checksum and in the IP header.
    let damaged = |packet: &Packet, at: usize| {
        let mut bytes = packet.to_bytes().to_vec();
        bytes[at] ^= 0x10;
        Packet::parse(bytes.into())
    };
    for (packet, at) in [(&whole, 36), (&whole, 50), (&left, 36)] {
        let damaged = damaged(packet, at).expect("a packet");
        assert_eq!(damaged.clone().with_completed_checksum(), damaged, "{at}");
    }
    // A UDP datagram without a checksum has none afterwards, and a fragment waits for no network card.
    let datagram = UdpHeader {
        source_port: 5,
        destination_port: 6,
    };
    let datagram = Packet::udp_datagram(v4, datagram, b"payload");
    let mut bytes = datagram.to_bytes().to_vec();
    bytes[26..28].fill(0);
    let without = parse(&bytes.into());
    assert_eq!(without.clone().with_completed_checksum(), without);
    let fragment = edited_fragment(&left);
    assert_eq!(fragment.clone().with_completed_checksum(), fragment);
}

/// A packet as the first fragment of a longer one.
fn edited_fragment(packet: &Packet) -> Packet {
    let mut bytes = packet.to_bytes().to_vec();
    bytes[6] = 0x20;
    bytes[10..12].fill(0);
    let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes[..20]);
    bytes[10..12].copy_from_slice(&sum.ones_complement().to_be().to_be_bytes());
    parse(&bytes.into())
}

#[test]
fn what_cannot_be_edited() {
    let [v4, v6] = both_families();
    let segment = Packet::tcp_segment(v4, tcp(), b"");
    let mut edit = segment.clone().edit();
    assert_eq!(edit.set_source(v6.source).err(), Some(EditError::Family));
    assert_eq!(
        edit.clear_option(kind::MSS).err(),
        Some(EditError::NoOption(kind::MSS))
    );
    assert_eq!(
        edit.clear_option(kind::NOP).err(),
        Some(EditError::NoOption(kind::NOP))
    );
    assert_eq!(
        edit.finish(),
        segment,
        "a refused edit leaves the packet as it was"
    );

    let bare = TcpHeader {
        options: TcpOptions::default(),
        ..tcp()
    };
    let mut edit = Packet::tcp_segment(v4, bare, b"").edit();
    let refused = edit.set_timestamps(STAMPS).err();
    assert_eq!(refused, Some(EditError::NoOption(kind::TIMESTAMPS)));

    let udp = UdpHeader {
        source_port: 1,
        destination_port: 2,
    };
    let mut edit = Packet::udp_datagram(v4, udp, b"").edit();
    assert_eq!(edit.set_window(1).err(), Some(EditError::NotTcp));
    assert_eq!(
        edit.set_option(&TcpOption::SackPermitted).err(),
        Some(EditError::NotTcp)
    );

    let mut bytes = Packet::tcp_segment(v6, tcp(), b"").to_bytes().to_vec();
    bytes[6] = 132;
    let mut edit = parse(&bytes.into()).edit();
    assert_eq!(
        edit.set_source(v6.destination).err(),
        Some(EditError::Opaque)
    );
    assert_eq!(edit.set_source_port(1).err(), Some(EditError::NoPorts));
    edit.decrement_hop_limit().expect("no checksum covers it");
}

#[test]
fn hop_limit_runs_out() {
    for ip in both_families() {
        for hop_limit in [0, 1] {
            let mut edit = Packet::tcp_segment(IpHeader { hop_limit, ..ip }, tcp(), b"").edit();
            assert_eq!(edit.decrement_hop_limit().err(), Some(EditError::HopLimit));
        }
    }
}

#[test]
fn authenticated_packet_only_loses_hops() {
    let plain = Packet::tcp_segment(both_families()[1], tcp(), b"").to_bytes();
    let mut bytes = plain.to_vec();
    bytes[6] = 51;
    bytes[5] += 16;
    bytes.splice(40..40, [6, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    let packet = parse(&bytes.into());
    let mut edit = packet.clone().edit();
    for refused in [
        edit.set_window(1).err(),
        edit.set_source_port(1).err(),
        edit.set_source(packet.header().ip.destination).err(),
        edit.set_option(&TcpOption::SackPermitted).err(),
        edit.clear_option(kind::TIMESTAMPS).err(),
    ] {
        assert_eq!(refused, Some(EditError::Authenticated));
    }
    edit.decrement_hop_limit().expect("not covered");
    assert_eq!(edit.finish().header().ip.hop_limit, 63);
}

/// A segment with just these options.
fn with_options(area: &str) -> Packet {
    let area = hex(area);
    let bare = TcpHeader {
        options: TcpOptions::default(),
        ..tcp()
    };
    let mut bytes = Packet::tcp_segment(both_families()[1], bare, b"payload")
        .to_bytes()
        .to_vec();
    bytes[5] += area.len() as u8;
    bytes[52] = ((20 + area.len()) as u8 / 4) << 4;
    bytes.splice(60..60, area);
    let mut edit = parse(&Bytes::from(bytes)).edit();
    edit.fill_checksums();
    edit.finish()
}

fn area(packet: &Packet) -> Bytes {
    let bytes = packet.to_bytes();
    bytes.slice(60..bytes.len() - packet.header().payload_len as usize)
}

#[test]
fn option_is_replaced_added_or_cleared() {
    let timeout = UserTimeout {
        minutes: false,
        value: 0x0102,
    };
    let timeout = TcpOption::UserTimeout(timeout);
    let mark = |data: &[u8]| {
        let data = data.iter().copied().collect();
        TcpOption::Experimental(Experimental { kind: 253, data })
    };
    for (before, option, after) in [
        // In place, also at an odd offset; of two the last.
        (
            "0204ffff 01010101",
            TcpOption::Mss(1200),
            "020404b0 01010101",
        ),
        (
            "01 0204ffff 010101",
            TcpOption::Mss(1200),
            "01 020404b0 010101",
        ),
        (
            "02040001 02040002",
            TcpOption::Mss(1200),
            "02040001 020404b0",
        ),
        // Behind the others, instead of the padding.
        ("", timeout.clone(), "1c040102"),
        (
            "0204ffff 01030307",
            timeout.clone(),
            "0204ffff 01030307 1c040102",
        ),
        ("0303070101010101", timeout.clone(), "030307 1c040102 01"),
        ("030307 00 ffffffff", timeout.clone(), "030307 1c040102 01"),
        // One of another length leaves its place.
        (
            "fd04aabb 01010101",
            mark(&[0xaa, 0xbb, 1]),
            "01010101 fd05aabb01 010101",
        ),
        // Another experiment stays.
        ("fd04aaaa", mark(&[0xbb, 0xbb]), "fd04aaaa fd04bbbb"),
        // A malformed one does not stay.
        (
            "0203ff 0303 07 0101",
            TcpOption::Mss(1200),
            "010101 030307 020404b0 0101",
        ),
    ] {
        let packet = edited(with_options(before), |edit| {
            edit.set_option(&option).map(|_| ())
        });
        assert_eq!(area(&packet), hex(after), "{before} {option:?}");
        assert_eq!(packet.payload(), Some(&b"payload"[..]));
    }
    for (before, kind, after) in [
        ("0204ffff 0303 07 01", kind::MSS, "01010101 0303 07 01"),
        (
            "0402 080a0000000100000002",
            kind::SACK_PERMITTED,
            "0101 080a0000000100000002",
        ),
        ("02040001 02040002", kind::MSS, "01010101 01010101"),
        ("01 0203ff", kind::MSS, "01010101"),
        ("fd04aaaa fe04bbbb", kind::EXPERIMENT_1, "01010101 fe04bbbb"),
        ("1e04aaaa", 30, "01010101"),
    ] {
        let packet = edited(with_options(before), |edit| {
            edit.clear_option(kind).map(|_| ())
        });
        assert_eq!(area(&packet), hex(after), "{before} {kind}");
    }
}

#[test]
fn padding_makes_room() {
    let padded = "01010101 01010101 01010101 01010101 01010101 01010101 01010101 01010101 01 0204ffff 010101";
    let timeout = TcpOption::UserTimeout(UserTimeout {
        minutes: false,
        value: 1,
    });
    let packet = edited(with_options(padded), |edit| {
        edit.set_option(&timeout).map(|_| ())
    });
    assert_eq!(area(&packet), hex("0204ffff 1c040001"));
}

#[test]
fn option_that_does_not_fit() {
    let block = SackBlock {
        left: SeqNumber(1),
        right: SeqNumber(2),
    };
    let sack = TcpOption::Sack([block; 4].into_iter().collect());
    let stamped = |packet: Packet| packet.edit().set_option(&sack).err();
    let [ip, _] = both_families();
    let at = ModelledPayload::default();
    assert_eq!(
        stamped(Packet::tcp_segment(ip, tcp(), b"")),
        Some(EditError::NoRoom)
    );
    assert_eq!(
        stamped(Packet::modelled_tcp(ip, tcp(), at, 9)),
        Some(EditError::NoRoom)
    );

    for (option, error) in [
        (
            TcpOption::Sack([].into_iter().collect()),
            EditError::OptionValue,
        ),
        (
            TcpOption::UserTimeout(UserTimeout {
                minutes: true,
                value: 0,
            }),
            EditError::OptionValue,
        ),
    ] {
        let mut edit = Packet::tcp_segment(ip, tcp(), b"").edit();
        assert_eq!(edit.set_option(&option).err(), Some(error));
    }
}

#[test]
fn option_list_that_cannot_be_read_does_not_grow() {
    for area in ["0204ffff 0800 0402", "01010108", "0101 08ff"] {
        let mut edit = with_options(area).edit();
        let refused = edit.set_option(&TcpOption::WindowScale(1)).err();
        assert_eq!(refused, Some(EditError::MalformedOptions), "{area}");
    }
}

#[test]
fn longest_packets_do_not_grow_but_super_segments_do() {
    for ip in both_families() {
        let headers = if ip.source.is_ipv4() { 20 + 32 } else { 32 };
        let longest = Packet::tcp_segment(ip, tcp(), &vec![7; 65_535 - headers]);
        let refused = longest.edit().set_option(&TcpOption::WindowScale(1)).err();
        assert_eq!(refused, Some(EditError::TooLong));

        let packet = Packet::tcp_segment(ip, tcp(), &vec![7; 100_000]);
        let before = packet.total_len();
        let mut edit = packet.edit();
        edit.set_option(&TcpOption::WindowScale(1))
            .expect("there is room");
        let packet = edit.finish();
        assert_eq!(packet.total_len(), before + 4);
        assert!(packet.checksums_ok());
        assert_eq!(parse(&packet.to_bytes()), packet);
    }
}

#[test]
fn modelled_segment_keeps_exact_lengths() {
    let [_, ip] = both_families();
    let packet = Packet::modelled_tcp(ip, tcp(), ModelledPayload::default(), 100);
    let packet = edited(packet, |edit| {
        edit.clear_option(kind::TIMESTAMPS)?
            .set_option(&TcpOption::Mss(9))?;
        Ok(())
    });
    assert_eq!(packet.total_len(), 40 + 24 + 100);

    let mark = |id: u8| {
        let data = [id; 4].into_iter().collect();
        TcpOption::Experimental(Experimental { kind: 254, data })
    };
    let mut edit = packet.edit();
    edit.set_option(&mark(1)).expect("the first");
    assert_eq!(edit.set_option(&mark(2)).err(), Some(EditError::NoRoom));
    assert_eq!(edit.clear_option(253).err(), Some(EditError::NoOption(253)));
    edit.clear_option(254).expect("it is there");
}

/// One arbitrary edit.
#[derive(Clone, Debug)]
enum Change {
    Seq(u32),
    Ack(u32),
    Flags(u8),
    Window(u16),
    Ports(u16, u16),
    Addresses(IpAddr, IpAddr),
    Hop,
    Stamps(u32, u32),
    Set(TcpOption),
    Clear(u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u32>().prop_map(Change::Seq),
        any::<u32>().prop_map(Change::Ack),
        any::<u8>().prop_map(Change::Flags),
        any::<u16>().prop_map(Change::Window),
        any::<(u16, u16)>().prop_map(|(a, b)| Change::Ports(a, b)),
        any::addresses().prop_map(|(a, b)| Change::Addresses(a, b)),
        Just(Change::Hop),
        any::<(u32, u32)>().prop_map(|(a, b)| Change::Stamps(a, b)),
        any::tcp_option().prop_map(Change::Set),
        prop_oneof![0..9_u8, Just(28), 253..=254_u8].prop_map(Change::Clear),
    ]
}

fn apply(edit: &mut Edit, change: &Change) -> Result<(), EditError> {
    match *change {
        Change::Seq(seq) => edit.set_seq(SeqNumber(seq)),
        Change::Ack(ack) => edit.set_ack(SeqNumber(ack)),
        Change::Flags(flags) => edit.set_flags(TcpFlags(flags)),
        Change::Window(window) => edit.set_window(window),
        Change::Ports(source, destination) => edit
            .set_source_port(source)
            .and_then(|edit| edit.set_destination_port(destination)),
        Change::Addresses(source, destination) => edit
            .set_source(source)
            .and_then(|edit| edit.set_destination(destination)),
        Change::Hop => edit.decrement_hop_limit(),
        Change::Stamps(value, echo) => edit.set_timestamps(Timestamps { value, echo }),
        Change::Set(ref option) => edit.set_option(option),
        Change::Clear(kind) => edit.clear_option(kind),
    }
    .map(|_| ())
}

proptest! {
    #![proptest_config(crate::common::config("edit"))]

    /// Whatever is edited: the headers say what the bytes say, and the checksums are what a
    /// computation over everything gives.
    #[test]
    fn checksums_follow_any_edits(
        packet in any::packet(),
        changes in proptest::collection::vec(change(), 1..8),
    ) {
        let payload = packet.payload().map(<[u8]>::to_vec);
        let mut edit = packet.edit();
        for change in &changes {
            // A refusal is an answer too: it must leave the packet in order.
            let _: Result<(), EditError> = apply(&mut edit, change);
        }
        let packet = edit.finish();
        let bytes = packet.to_bytes();
        judge(&bytes);
        prop_assert!(packet.checksums_ok());
        prop_assert_eq!(&parse(&bytes), &packet);
        prop_assert_eq!(packet.payload().map(<[u8]>::to_vec), payload);
        let mut again = packet.clone().edit();
        again.fill_checksums();
        prop_assert_eq!(again.finish(), packet);
    }

    /// A packet whose checksum is right is never changed, and one whose checksum was left to a network card becomes
    /// the packet that it was.
    #[test]
    fn checksums_that_were_left_are_completed(
        packet in prop_oneof![any::tcp_segment(), any::udp_datagram()],
    ) {
        prop_assert_eq!(&packet.clone().with_completed_checksum(), &packet);
        let left = unfilled(&packet);
        prop_assert!(left.has_partial_checksum());
        prop_assert_eq!(left.with_completed_checksum(), packet);
    }

    /// A wrong checksum stays wrong.
    #[test]
    fn edits_hide_no_damage(
        packet in any::tcp_segment(),
        changes in proptest::collection::vec(change(), 1..8),
        damage in 1_u8..,
    ) {
        let mut bytes = packet.to_bytes().to_vec();
        let last = bytes.len() - 1;
        prop_assume!(packet.header().payload_len > 0);
        bytes[last] ^= damage;
        let mut edit = parse(&bytes.into()).edit();
        for change in &changes {
            let _: Result<(), EditError> = apply(&mut edit, change);
        }
        prop_assert!(!edit.finish().checksums_ok());
    }

    /// A modelled segment says the same as one with bytes after the same edits; only options that
    /// leave their place empty may tell them apart.
    #[test]
    fn modelled_segments_are_edited_alike(
        packet in any::modelled_segment(),
        changes in proptest::collection::vec(change(), 1..8),
    ) {
        let changes = changes.iter().filter(|c| !matches!(c, Change::Set(_) | Change::Clear(_)));
        let mut captured = parse(&packet.to_bytes()).edit();
        let mut modelled = packet.edit();
        for change in changes {
            prop_assert_eq!(apply(&mut captured, change), apply(&mut modelled, change));
        }
        let (captured, modelled) = (captured.finish(), modelled.finish());
        prop_assert_eq!(captured.header(), modelled.header());
        prop_assert_eq!(captured.to_bytes(), modelled.to_bytes());
    }

    /// After an option was set, it reads as it was set.
    #[test]
    fn option_that_was_set_is_read(packet in any::tcp_segment(), option in any::tcp_option()) {
        let mut edit = packet.edit();
        if edit.set_option(&option).is_ok() {
            let packet = edit.finish();
            let options = &packet.tcp().expect("TCP").options;
            match option {
                TcpOption::Mss(mss) => prop_assert_eq!(options.mss, Some(mss)),
                TcpOption::WindowScale(shift) => prop_assert_eq!(options.window_scale, Some(shift)),
                TcpOption::SackPermitted => prop_assert!(options.sack_permitted),
                TcpOption::Sack(blocks) => prop_assert_eq!(&options.sack, &blocks),
                TcpOption::Timestamps(stamps) => prop_assert_eq!(options.timestamps, Some(stamps)),
                TcpOption::UserTimeout(timeout) => {
                    prop_assert_eq!(options.user_timeout, Some(timeout));
                }
                TcpOption::Experimental(_) => prop_assert!(options.experimental.is_some()),
            }
        }
    }
}
