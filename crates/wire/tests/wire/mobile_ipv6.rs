//! Mobile IPv6: what was written is what is read, headers come and go without a trace, nothing panics.

use core::net::Ipv6Addr;
use outlast_wire::mobile_ipv6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingErrorStatus, BindingUpdate, Message,
    MessageBuilder, MessageError, MobilityOption, ROUTING_OVERHEAD, Status, TUNNEL_OVERHEAD, Test,
    TunnelError, UpdateFlags, UpdateLifetime, add_home_address, add_routing_header, decapsulate,
    encapsulate, home_address_of, mobility_packet, relay_error, take_home_address,
    take_routing_header,
};
use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader, Transport};
use proptest::collection::vec;
use proptest::prelude::*;

const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);

/// By hand from RFC 6275, figures in sections 6.1.7, 6.2.3 and 6.2.5; the checksum was confirmed by
/// `the_checksum_is_that_of_the_pseudo_header`.
#[test]
fn a_binding_update_has_the_layout_of_the_rfc() {
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: 0x1234,
        flags: UpdateFlags::ACKNOWLEDGE | UpdateFlags::HOME_REGISTRATION,
        lifetime: UpdateLifetime(75),
    });
    let bytes = update
        .emit()
        .alternate_care_of_address(CARE_OF)
        .timestamp(0x0102_0304_0506_0708)
        .authenticate(256, 12, |_| [0xaa; 12])
        .finish(HOME, FAR);
    let rest = "1234 c000 004b 0100 0310 20010db8000200000000000000000009 \
                0100 0a08 0102030405060708 00 09 11 01 00000100";
    let expected = crate::common::hex(rest);
    assert_eq!(&bytes[..4], [59, 7, 5, 0]);
    assert_eq!(&bytes[6..6 + expected.len()], &expected[..]);
    assert_eq!(&bytes[6 + expected.len()..][..12], [0xaa; 12]);
    assert_eq!(bytes.len(), 64);
}

/// The one's complement sum, added up anew.
#[test]
fn the_checksum_is_that_of_the_pseudo_header() {
    let bytes = Message::HomeTestInit {
        cookie: 0x0102_0304,
    }
    .emit()
    .finish(HOME, FAR);
    let pseudo = [
        HOME.octets().as_slice(),
        &FAR.octets(),
        &(bytes.len() as u32).to_be_bytes(),
        &[0, 0, 0, 135],
        &bytes,
    ]
    .concat();
    let words = pseudo
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    assert_eq!(sum, 0xffff);
}

#[test]
fn damage_is_noticed() {
    let bytes = Message::HomeTestInit { cookie: 7 }.emit().finish(HOME, FAR);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Message::parse(HOME, FAR, &damaged).is_err(), "byte {at}");
    }
    let other = Message::parse(CARE_OF, FAR, &bytes).map(|(message, _)| message);
    assert_eq!(other, Err(MessageError::Checksum));
}

#[test]
fn an_authenticator_covers_all_before_it_but_the_checksum() {
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: 1,
        flags: UpdateFlags::default(),
        lifetime: UpdateLifetime(2),
    });
    let mut written = Vec::new();
    let bytes = update
        .emit()
        .nonce_indices(3, 4)
        .authorize(|covered| {
            written = covered.parts().concat();
            [5; 12]
        })
        .finish(HOME, FAR);
    let (_, options) = Message::parse(HOME, FAR, &bytes).expect("it was written");
    let one = options.authorization().expect("it is there");
    assert_eq!(one.covered.parts().concat(), written);
    let mut expected = bytes[..bytes.len() - 12].to_vec();
    expected[4..6].fill(0);
    assert_eq!(written, expected);
    assert_eq!((one.spi, one.authenticator), (None, &[5; 12][..]));
    assert_eq!(options.nonce_indices(), Some((3, 4)));
}

fn test() -> impl Strategy<Value = Test> {
    any::<(u16, u64, u64)>().prop_map(|(nonce_index, cookie, keygen_token)| Test {
        nonce_index,
        cookie,
        keygen_token,
    })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        Just(Message::BindingRefreshRequest),
        any::<u64>().prop_map(|cookie| Message::HomeTestInit { cookie }),
        any::<u64>().prop_map(|cookie| Message::CareOfTestInit { cookie }),
        test().prop_map(Message::HomeTest),
        test().prop_map(Message::CareOfTest),
        any::<(u16, u16, u16)>().prop_map(|(sequence, flags, lifetime)| {
            Message::BindingUpdate(BindingUpdate {
                sequence,
                flags: UpdateFlags(flags),
                lifetime: UpdateLifetime(lifetime),
            })
        }),
        any::<(u8, u8, u16, u16)>().prop_map(|(status, flags, sequence, lifetime)| {
            Message::BindingAcknowledgement(BindingAcknowledgement {
                status: Status(status),
                flags: AcknowledgementFlags(flags),
                sequence,
                lifetime: UpdateLifetime(lifetime),
            })
        }),
        any::<(u8, Ipv6Addr)>().prop_map(|(status, home_address)| Message::BindingError {
            status: BindingErrorStatus(status),
            home_address,
        }),
    ]
}

/// An option to write: its kind here, and numbers for its fields.
type Written = (u8, u16, Vec<u8>);

fn address(bits: u16) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(bits) << 64 | 1)
}

fn append(message: MessageBuilder, (kind, bits, data): &Written) -> MessageBuilder {
    match kind % 6 {
        0 => message.alternate_care_of_address(address(*bits)),
        1 => message.nonce_indices(*bits, !bits),
        2 => message.refresh_advice(*bits),
        3 => message.timestamp(u64::from(*bits) << 40),
        4 => message.authenticate(u32::from(*bits), data.len(), |_| data),
        _ => message.option(200, data),
    }
}

fn is_written(option: &MobilityOption<'_>, (kind, bits, data): &Written) -> bool {
    match (kind % 6, option) {
        (0, MobilityOption::AlternateCareOfAddress(one)) => *one == address(*bits),
        (1, MobilityOption::NonceIndices { home, care_of }) => (*home, *care_of) == (*bits, !bits),
        (2, MobilityOption::RefreshAdvice(one)) => one == bits,
        (3, MobilityOption::Timestamp(one)) => *one == u64::from(*bits) << 40,
        (4, MobilityOption::Authentication(one)) => {
            one.spi == Some(u32::from(*bits)) && one.authenticator == data
        }
        (_, MobilityOption::Skipped { kind: 200, data: d }) => d == data,
        _ => false,
    }
}

fn options() -> impl Strategy<Value = Vec<Written>> {
    vec((any::<u8>(), any::<u16>(), vec(any::<u8>(), 0..40)), 0..8)
}

/// A packet with a TCP segment between two hosts.
fn segment(source: Ipv6Addr, destination: Ipv6Addr, payload: &[u8]) -> Packet {
    let ip = IpHeader::new(source.into(), destination.into());
    Packet::tcp_segment(ip, TcpHeader::default(), payload)
}

proptest! {
    #![proptest_config(crate::common::config("mobile_ipv6"))]

    #[test]
    fn messages(message in message(), list in options()) {
        let bytes = list.iter().fold(message.emit(), append).finish(HOME, FAR);
        prop_assert_eq!(bytes.len() % 8, 0);
        let (parsed, options) = Message::parse(HOME, FAR, &bytes).expect("it was written");
        prop_assert_eq!(parsed, message);
        let read: Vec<_> = options.collect();
        prop_assert_eq!(read.len(), list.len());
        for (option, written) in read.iter().zip(&list) {
            prop_assert!(is_written(option, written), "{:?} {:?}", option, written);
        }
    }

    #[test]
    fn random_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..200), kind in 0..9_u8) {
        let _ = Message::parse(HOME, FAR, &bytes);
        // Most random bytes fail at the length and the checksum.
        bytes.resize(bytes.len().next_multiple_of(8).max(8), 0);
        let units = (bytes.len() / 8 - 1) as u8;
        bytes[..6].copy_from_slice(&[59, units, kind, 0, 0, 0]);
        if let Ok((_, options)) = Message::parse(HOME, FAR, &with_checksum(bytes)) {
            let _ = options.count();
        }
    }

    #[test]
    fn both_headers_come_and_go_without_a_trace(payload in vec(any::<u8>(), 0..300)) {
        let out = segment(HOME, FAR, &payload);
        let sent = add_home_address(&out, CARE_OF).expect("it fits");
        prop_assert_eq!(sent.total_len(), out.total_len() + ROUTING_OVERHEAD);
        prop_assert_eq!(sent.header().ip.source, CARE_OF);
        prop_assert_eq!(home_address_of(&sent), Some(HOME));
        prop_assert_eq!(take_home_address(&sent), Some(out.clone()));
        prop_assert_eq!(take_routing_header(&sent), None);
        let back = segment(FAR, HOME, &payload);
        let sent = add_routing_header(&back, CARE_OF).expect("it fits");
        prop_assert_eq!(sent.header().ip.destination, CARE_OF);
        prop_assert_eq!(take_routing_header(&sent), Some(back.clone()));
        prop_assert_eq!(take_home_address(&sent), None);
        // What bears none of them is left alone.
        prop_assert_eq!(home_address_of(&out), None);
        prop_assert_eq!(take_routing_header(&back), None);
    }

    #[test]
    fn packets_with_any_extension_are_read_or_refused(
        header in vec(any::<u8>(), 24),
        kind in prop_oneof![Just(60_u8), Just(43), Just(41)],
    ) {
        let mut bytes = segment(HOME, FAR, b"payload").to_bytes().to_vec();
        bytes[6] = kind;
        bytes[40] = 6;
        bytes.splice(41..41, header);
        let length = (bytes.len() - 40) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        if let Ok(packet) = Packet::parse(bytes.into()) {
            let _ = (take_home_address(&packet), take_routing_header(&packet));
            let _ = decapsulate(&packet);
        }
    }

    #[test]
    fn what_goes_into_a_tunnel_comes_out(
        payload in vec(any::<u8>(), 0..200),
        hop_limit: u8,
        traffic_class: u8,
    ) {
        let ip = IpHeader { hop_limit, traffic_class, ..IpHeader::new(FAR.into(), HOME.into()) };
        let inner = Packet::tcp_segment(ip, TcpHeader::default(), &payload);
        let outer = encapsulate(inner.clone(), FAR, CARE_OF);
        if hop_limit < 2 {
            prop_assert_eq!(outer, Err(TunnelError::HopLimit));
            return Ok(());
        }
        let outer = outer.expect("it fits");
        prop_assert!(Packet::parse(outer.to_bytes()).is_ok());
        prop_assert_eq!(outer.header().ip.traffic_class, traffic_class & 0xfc);
        prop_assert_eq!(outer.total_len(), inner.total_len() + TUNNEL_OVERHEAD);
        let out = decapsulate(&outer).expect("it was put in");
        prop_assert_eq!(out.header().ip.hop_limit, hop_limit - 1);
        prop_assert_eq!(out.header().ip.traffic_class, traffic_class);
        prop_assert!(out.checksums_ok());
        prop_assert_eq!(out.payload(), Some(&payload[..]));
    }
}

/// A Mobility Header with the checksum that fits it.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let addresses = [HOME.octets(), FAR.octets()].concat();
    let words = addresses.chunks(2).chain(bytes.chunks(2));
    let words = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum = words.sum::<u32>() + bytes.len() as u32 + 135;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[4..6].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    bytes
}

#[test]
fn a_message_with_a_home_address_has_the_checksum_of_its_home_address() {
    let message = Message::HomeTestInit { cookie: 1 }.emit().finish(HOME, FAR);
    let packet = mobility_packet(HOME, FAR, &message);
    let sent = add_home_address(&packet, CARE_OF).expect("it fits");
    let received = Packet::parse(sent.to_bytes()).expect("a packet");
    let restored = take_home_address(&received).expect("it bears one");
    let payload = restored.payload().expect("it has bytes");
    assert!(Message::parse(HOME, FAR, payload).is_ok());
}

#[test]
fn a_tunnel_does_not_swallow_its_own_packets() {
    let inner = segment(FAR, HOME, b"x");
    let once = encapsulate(inner, FAR, CARE_OF).expect("it fits");
    assert_eq!(
        encapsulate(once.clone(), FAR, CARE_OF),
        Err(TunnelError::Loop)
    );
    // Another's tunnel in this one is no loop.
    assert!(encapsulate(once, HOME, CARE_OF).is_ok());
}

#[test]
fn too_big_is_turned_round() {
    let inner = segment(FAR, HOME, &[7; 1360]);
    let in_tunnel = encapsulate(inner, HOME, CARE_OF).expect("it fits");
    let router = CARE_OF.into();
    for (mtu, told) in [(1400, 1360), (1280, 1280)] {
        let error = Packet::icmp_error(router, IcmpNotice::TooBig { mtu }, &in_tunnel);
        let relayed = relay_error(&error.expect("an error"), HOME).expect("enough is quoted");
        crate::common::judge(&relayed.to_bytes());
        assert_eq!(relayed.header().ip.destination, FAR);
        let Transport::IcmpError(about) = &relayed.header().transport else {
            panic!("{relayed:?}");
        };
        assert_eq!(about.mtu, Some(told));
        assert_eq!(about.quoted.expect("the inner packet").destination, HOME);
    }
}
