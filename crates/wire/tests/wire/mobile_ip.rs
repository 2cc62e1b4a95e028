//! Mobile IP messages: known vectors, what was written is what is read, and nothing panics.

use core::net::{IpAddr, Ipv4Addr};
use outlast_wire::mobile_ip::{
    AgentAdvertisement, AgentFlags, EncapsulationError, Extension, Lifetime, MessageBuilder,
    MessageError, OuterHeader, Preference, QuotedContent, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags, RouterAddress, SecuredPair, TunnelData, TunnelQuote, UdpTunnelReply,
    UdpTunnelRequest, decapsulate, encapsulate, relay_error, solicitation, solicitation_is_valid,
};
use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader, Transport};
use proptest::collection::vec;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    crate::common::hex(text).to_vec()
}

/// Written by another implementation, authenticators by Python's `hmac`; read by tshark.
const REQUEST: &str = "0102012c 0a010005 0a010001 0a020001 e800000012345678 20 14 00000100 \
                       6b9ed6c908aaa1f71e46ed2c0a1ff7a5";
const REPLY: &str = "03850000 0a010005 0a010001 0000000000000001 20 14 00000100 \
                     100dbc19d0dd432d8248c738596b8b23";
const ADVERTISEMENT: &str = "0910 14a6 01 02 0003 0a020001 00000000 \
                             10 0a 0007 012c 9100 0a020001 13 01 18 00";

#[test]
fn a_known_request_is_read_and_written() {
    let bytes = hex(REQUEST);
    let (request, extensions) = RegistrationRequest::parse(&bytes).expect("a request");
    let expected = RegistrationRequest {
        flags: RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home_address: Ipv4Addr::new(10, 1, 0, 5),
        home_agent: Ipv4Addr::new(10, 1, 0, 1),
        care_of_address: Ipv4Addr::new(10, 2, 0, 1),
        identification: 0xe800_0000_1234_5678,
    };
    assert_eq!(request, expected);
    let one = extensions
        .only_authentication(SecuredPair::MobileHome)
        .expect("it is authenticated");
    assert_eq!((one.spi, one.covered), (256, &bytes[..30]));
    assert_eq!(one.authenticator, &bytes[30..]);
    assert_eq!(extensions.up_to_home_authentication(), Some(&bytes[..]));
    let written = request
        .emit()
        .authenticate(SecuredPair::MobileHome, 256, 16, |_| &bytes[30..]);
    assert_eq!(written.finish(), bytes);
}

#[test]
fn a_known_reply_is_read_and_written() {
    let bytes = hex(REPLY);
    let (reply, _) = RegistrationReply::parse(&bytes).expect("a reply");
    assert_eq!(reply.code, ReplyCode::HOME_IDENTIFICATION);
    assert_eq!(reply.identification, 1);
    let written = reply
        .emit()
        .authenticate(SecuredPair::MobileHome, 256, 16, |_| &bytes[26..]);
    assert_eq!(written.finish(), bytes);
}

#[test]
fn a_known_advertisement_is_read_and_written() {
    let bytes = hex(ADVERTISEMENT);
    let advertisement = AgentAdvertisement::parse(&bytes).expect("an advertisement");
    let expected = AgentAdvertisement {
        is_for_mobiles_only: true,
        lifetime_s: 3,
        routers: vec![RouterAddress {
            address: Ipv4Addr::new(10, 2, 0, 1),
            preference: Preference(0),
        }],
        sequence: 7,
        registration_lifetime: Lifetime(300),
        flags: AgentFlags::REGISTRATION_REQUIRED
            | AgentFlags::FOREIGN_AGENT
            | AgentFlags::REVERSE_TUNNEL,
        care_of_addresses: vec![Ipv4Addr::new(10, 2, 0, 1)],
        prefix_lengths: vec![24],
    };
    assert_eq!(advertisement, expected);
    assert_eq!(advertisement.emit(), bytes);
}

#[test]
fn damage_is_noticed() {
    let bytes = hex(ADVERTISEMENT);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(AgentAdvertisement::parse(&damaged).is_err(), "byte {at}");
    }
    let mut solicits = solicitation();
    assert!(solicitation_is_valid(&solicits));
    solicits[5] ^= 1;
    assert!(!solicitation_is_valid(&solicits));
}

#[test]
fn unknown_extensions_are_skipped_or_refuse_the_message() {
    let request = known_request();
    let skippable = request.emit().extension(200, b"abc").finish();
    let (_, extensions) = RegistrationRequest::parse(&skippable).expect("skippable");
    assert_eq!(
        extensions.collect::<Vec<_>>(),
        [Extension::Skipped {
            kind: 200,
            data: b"abc"
        }]
    );
    let other = request.emit().extension(40, b"abc").finish();
    assert_eq!(
        RegistrationRequest::parse(&other).map(|(request, _)| request),
        Err(MessageError::UnknownExtension(40))
    );
}

#[test]
fn what_is_for_the_foreign_agent_is_not_relayed() {
    let request = known_request();
    let for_home = request
        .emit()
        .authenticate(SecuredPair::MobileHome, 256, 16, |_| [7; 16]);
    let end = for_home.clone().finish();
    let whole = for_home
        .encapsulating_delivery()
        .authenticate(SecuredPair::MobileForeign, 300, 16, |_| [8; 16])
        .finish();
    let (_, extensions) = RegistrationRequest::parse(&whole).expect("a request");
    assert_eq!(extensions.up_to_home_authentication(), Some(&end[..]));
    let behind: Vec<_> = extensions.behind_home_authentication().collect();
    assert!(matches!(
        behind[..],
        [
            Extension::EncapsulatingDelivery,
            Extension::Authentication(_)
        ]
    ));
}

/// RFC 5944, section 3.7.2.2: what no authentication for the home agent follows is removed.
#[test]
fn all_that_a_home_agent_authenticates_is_relayed() {
    let request = known_request();
    let home = SecuredPair::MobileHome;
    let twice = request
        .emit()
        .authenticate(home, 256, 16, |_| [7; 16])
        .authenticate(home, 257, 16, |_| [8; 16]);
    let end = twice.clone().finish();
    let whole = twice.encapsulating_delivery().finish();
    let (_, extensions) = RegistrationRequest::parse(&whole).expect("a request");
    assert_eq!(extensions.up_to_home_authentication(), Some(&end[..]));
    assert_eq!(extensions.behind_home_authentication().count(), 1);
    assert_eq!(extensions.covered_by_home_authentication().count(), 2);
    assert_eq!(extensions.authentications(home).count(), 2);
    assert_eq!(extensions.only_authentication(home), None);
    let plain = request.emit().finish();
    let (_, extensions) = RegistrationRequest::parse(&plain).expect("a request");
    assert_eq!(extensions.covered_by_home_authentication().count(), 0);
    assert_eq!(extensions.only_authentication(home), None);
}

/// RFC 3519, sections 3.1.3 and 3.2.1.
#[test]
fn a_later_form_of_the_udp_tunnel_request_is_skipped() {
    for data in [[0, 0, 0, 4, 0, 1], [1, 0, 0, 4, 0, 0]] {
        let bytes = known_request().emit().extension(144, &data).finish();
        let (_, mut extensions) = RegistrationRequest::parse(&bytes).expect("skippable");
        let skipped = Extension::Skipped {
            kind: 144,
            data: &data,
        };
        assert_eq!(extensions.next(), Some(skipped));
    }
    for (code, is_assent) in [(0, true), (63, true), (64, false), (255, false)] {
        let reply = UdpTunnelReply {
            code,
            ..udp_reply(0)
        };
        assert_eq!(reply.is_assent(), is_assent, "code {code}");
    }
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    any::<u16>().prop_map(Lifetime)
}

fn request() -> impl Strategy<Value = RegistrationRequest> {
    let addresses = any::<(Ipv4Addr, Ipv4Addr, Ipv4Addr)>();
    (any::<u8>(), lifetime(), addresses, any::<u64>()).prop_map(
        |(flags, lifetime, (home_address, home_agent, care_of_address), identification)| {
            RegistrationRequest {
                flags: RequestFlags(flags),
                lifetime,
                home_address,
                home_agent,
                care_of_address,
                identification,
            }
        },
    )
}

fn reply() -> impl Strategy<Value = RegistrationReply> {
    let addresses = any::<(Ipv4Addr, Ipv4Addr)>();
    (any::<u8>(), lifetime(), addresses, any::<u64>()).prop_map(
        |(code, lifetime, (home_address, home_agent), identification)| RegistrationReply {
            code: ReplyCode(code),
            lifetime,
            home_address,
            home_agent,
            identification,
        },
    )
}

fn advertisement() -> impl Strategy<Value = AgentAdvertisement> {
    let router = any::<(Ipv4Addr, i32)>().prop_map(|(address, preference)| RouterAddress {
        address,
        preference: Preference(preference),
    });
    (
        any::<(bool, u16, u16, u16, bool, u8)>(),
        vec(router, 0..5),
        vec(any::<Ipv4Addr>(), 1..5),
    )
        .prop_map(
            |((mobiles, lifetime_s, sequence, flags, told, length), routers, care_of)| {
                AgentAdvertisement {
                    is_for_mobiles_only: mobiles,
                    lifetime_s,
                    prefix_lengths: vec![length; if told { routers.len() } else { 0 }],
                    routers,
                    sequence,
                    registration_lifetime: Lifetime(flags),
                    flags: AgentFlags(flags) | AgentFlags::FOREIGN_AGENT,
                    care_of_addresses: care_of,
                }
            },
        )
}

/// An extension to write: its kind here, and numbers for its fields.
fn append(message: MessageBuilder, (kind, bits, data): &(u8, u16, Vec<u8>)) -> MessageBuilder {
    let pair = match bits % 3 {
        0 => SecuredPair::MobileHome,
        1 => SecuredPair::MobileForeign,
        _ => SecuredPair::ForeignHome,
    };
    match kind % 5 {
        0 => message.encapsulating_delivery(),
        1 => message.udp_tunnel_request(udp_request(*bits)),
        2 => message.udp_tunnel_reply(udp_reply(*bits)),
        3 => message.authenticate(pair, u32::from(*bits), data.len(), |_| data),
        _ => message.extension(200, data),
    }
}

fn udp_request(bits: u16) -> UdpTunnelRequest {
    UdpTunnelRequest {
        is_forced: bits & 1 == 1,
        is_via_required_agent: bits & 2 == 2,
        encapsulation: (bits >> 8) as u8,
    }
}

fn udp_reply(bits: u16) -> UdpTunnelReply {
    UdpTunnelReply {
        code: bits as u8,
        is_forced: bits & 0x100 != 0,
        keep_alive_s: bits,
    }
}

/// Whether `extension` says what `append` was told to write.
fn is_written(extension: Extension<'_>, (kind, bits, data): &(u8, u16, Vec<u8>)) -> bool {
    match (kind % 5, extension) {
        (0, Extension::EncapsulatingDelivery) => true,
        (1, Extension::UdpTunnelRequest(one)) => one == udp_request(*bits),
        (2, Extension::UdpTunnelReply(one)) => one == udp_reply(*bits),
        (3, Extension::Authentication(one)) => {
            one.spi == u32::from(*bits) && one.authenticator == data
        }
        (_, Extension::Skipped { kind: 200, data: d }) => d == data,
        _ => false,
    }
}

fn extensions() -> impl Strategy<Value = Vec<(u8, u16, Vec<u8>)>> {
    vec((any::<u8>(), any::<u16>(), vec(any::<u8>(), 0..40)), 0..6)
}

proptest! {
    #![proptest_config(crate::common::config("mobile_ip"))]

    #[test]
    fn requests(request in request(), list in extensions()) {
        let bytes = list.iter().fold(request.emit(), append).finish();
        let (parsed, extensions) = RegistrationRequest::parse(&bytes).expect("it was written");
        prop_assert_eq!(parsed, request);
        let read: Vec<_> = extensions.collect();
        prop_assert_eq!(read.len(), list.len());
        for (extension, written) in read.into_iter().zip(&list) {
            prop_assert!(is_written(extension, written), "{:?} {:?}", extension, written);
        }
    }

    #[test]
    fn replies(reply in reply(), list in extensions()) {
        let bytes = list.iter().fold(reply.emit(), append).finish();
        let (parsed, extensions) = RegistrationReply::parse(&bytes).expect("it was written");
        prop_assert_eq!(parsed, reply);
        prop_assert_eq!(extensions.count(), list.len());
    }

    #[test]
    fn advertisements(advertisement in advertisement()) {
        let bytes = advertisement.emit();
        prop_assert_eq!(AgentAdvertisement::parse(&bytes), Ok(advertisement));
    }

    #[test]
    fn data_in_udp(next_header: u8, packet in vec(any::<u8>(), 0..100)) {
        let data = TunnelData { next_header, packet: &packet };
        let bytes = data.emit();
        prop_assert_eq!(TunnelData::parse(&bytes), Ok(data));
    }

    #[test]
    fn random_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200), kind in 0..11_u8) {
        exercise(&bytes);
        // Most random bytes fail at the type.
        let mut typed = bytes;
        if let Some(first) = typed.first_mut() {
            *first = kind;
        }
        exercise(&typed);
    }

    #[test]
    fn cut_messages_are_read_or_refused(request in request(), list in extensions(), cut: u16) {
        let bytes = list.iter().fold(request.emit(), append).finish();
        exercise(&bytes[..usize::from(cut) % (bytes.len() + 1)]);
    }

    #[test]
    fn what_goes_into_a_tunnel_comes_out(payload in vec(any::<u8>(), 0..200), ttl: u8, tos: u8) {
        let ip = IpHeader { hop_limit: ttl, traffic_class: tos, ..ip() };
        let inner = Packet::tcp_segment(ip, TcpHeader::default(), &payload);
        let outer = encapsulate(inner.clone(), outer());
        if ttl < 2 {
            prop_assert_eq!(outer, Err(EncapsulationError::Ttl));
            return Ok(());
        }
        let outer = outer.expect("it fits");
        prop_assert!(Packet::parse(outer.to_bytes()).is_ok());
        prop_assert_eq!(outer.header().ip.traffic_class, tos & 0xfc);
        prop_assert_eq!(outer.total_len(), inner.total_len() + 20);
        let out = decapsulate(&outer).expect("it was put in");
        prop_assert_eq!(out.header().ip.hop_limit, ttl - 1);
        prop_assert_eq!(out.header().ip.traffic_class, tos);
        prop_assert!(out.checksums_ok());
        prop_assert_eq!(out.payload(), Some(&payload[..]));
    }

    #[test]
    fn packets_with_anything_inside(bytes in vec(any::<u8>(), 0..100)) {
        let inner = Packet::tcp_segment(ip(), TcpHeader::default(), b"");
        let mut packet = encapsulate(inner, outer()).expect("it fits").to_bytes()[..20].to_vec();
        packet.extend_from_slice(&bytes);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[10..12].copy_from_slice(&[0, 0]);
        let sum: u32 = packet[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let outer = Packet::parse(packet.into()).expect("an outer packet");
        let _ = decapsulate(&outer);
    }
}

/// Reads bytes as everything, and all that is read to its end.
fn exercise(bytes: &[u8]) {
    if let Ok((_, extensions)) = RegistrationRequest::parse(bytes) {
        let _ = extensions.behind_home_authentication().count();
        let _ = extensions.count();
    }
    if let Ok((reply, extensions)) = RegistrationReply::parse(bytes) {
        let _ = (reply.code.to_string(), extensions.count());
    }
    if let Ok(advertisement) = AgentAdvertisement::parse(bytes) {
        let again = AgentAdvertisement::parse(&advertisement.emit());
        assert_eq!(again, Ok(advertisement));
    }
    let _ = (TunnelData::parse(bytes), solicitation_is_valid(bytes));
}

fn ip() -> IpHeader {
    IpHeader::new([192, 0, 2, 1].into(), [10, 1, 0, 5].into())
}

fn outer() -> OuterHeader {
    OuterHeader {
        source: Ipv4Addr::new(10, 1, 0, 1),
        destination: Ipv4Addr::new(10, 2, 0, 1),
        ttl: 64,
        identification: 9,
    }
}

/// Of a kernel that carries the tunnel, and leaves the checksum to a network card.
#[test]
fn what_leaves_a_tunnel_has_its_checksum() {
    let inner = Packet::tcp_segment(ip(), TcpHeader::default(), b"payload");
    let mut bytes = encapsulate(inner, outer())
        .expect("it fits")
        .to_bytes()
        .to_vec();
    // The sum over the addresses, TCP's number and the length.
    let sum = 0xc000 + 0x0201 + 0x0a01 + 0x0005 + 6 + 27_u16;
    bytes[56..58].copy_from_slice(&sum.to_be_bytes());
    let left = Packet::parse(bytes.into()).expect("a packet");
    let out = decapsulate(&left).expect("it was put in");
    assert!(out.checksums_ok());
    assert_eq!(out.payload(), Some(&b"payload"[..]));
}

#[test]
fn dont_fragment_is_copied_outward() {
    for flag in [0x40, 0] {
        let inner = Packet::tcp_segment(ip(), TcpHeader::default(), b"x");
        let mut bytes = inner.to_bytes().to_vec();
        // The header's checksum knows of DF.
        let sum = u16::from_be_bytes([bytes[10], bytes[11]]);
        let without = sum.checked_add(0x4000).unwrap_or(sum.wrapping_add(0x4001));
        if flag == 0 {
            bytes[6] = 0;
            bytes[10..12].copy_from_slice(&without.to_be_bytes());
        }
        let inner = Packet::parse(bytes.into()).expect("a packet");
        let outer = encapsulate(inner, outer()).expect("it fits").to_bytes();
        assert_eq!(outer[6], flag);
    }
}

#[test]
fn a_tunnel_does_not_swallow_its_own_packets() {
    let own = IpHeader::new([10, 1, 0, 1].into(), [10, 1, 0, 5].into());
    let packet = Packet::tcp_segment(own, TcpHeader::default(), b"");
    // What a program at the encapsulator says is no tunnel.
    assert!(encapsulate(packet, outer()).is_ok());
    let other = Packet::tcp_segment(ip(), TcpHeader::default(), b"");
    let once = encapsulate(other, outer()).expect("it fits");
    assert_eq!(encapsulate(once, outer()), Err(EncapsulationError::Loop));
    let port = outlast_wire::UdpHeader {
        source_port: 434,
        destination_port: 4000,
    };
    let in_udp = Packet::udp_datagram(own, port, b"data");
    assert_eq!(encapsulate(in_udp, outer()), Err(EncapsulationError::Loop));
    let six = IpHeader::new([0_u16; 8].into(), [1_u16; 8].into());
    let packet = Packet::tcp_segment(six, TcpHeader::default(), b"");
    assert_eq!(
        encapsulate(packet, outer()),
        Err(EncapsulationError::Family)
    );
    let plain = Packet::tcp_segment(ip(), TcpHeader::default(), b"");
    assert_eq!(
        decapsulate(&plain),
        Err(EncapsulationError::NotEncapsulated)
    );
}

#[test]
fn too_big_is_turned_round() {
    let segment = Packet::tcp_segment(ip(), TcpHeader::default(), &[7; 1400]);
    let in_tunnel = encapsulate(segment, outer()).expect("it fits");
    let router = [10, 9, 0, 1].into();
    let error = Packet::icmp_error(router, IcmpNotice::TooBig { mtu: 1400 }, &in_tunnel);
    let error = error.expect("an error");
    let own = Ipv4Addr::new(10, 1, 0, 1);
    let relayed = relay_error(&error, own, 0).expect("enough is quoted");
    crate::common::judge(&relayed.to_bytes());
    assert_eq!(relayed.header().ip.destination, ip().source);
    let Transport::IcmpError(about) = &relayed.header().transport else {
        panic!("{relayed:?}");
    };
    assert_eq!(about.mtu, Some(1380));
    let quoted = about.quoted.expect("the inner packet");
    assert_eq!(quoted.destination, ip().destination);
    assert_eq!(quoted.ports, Some((0, 0)));
    // Nobody is told less than the least.
    let relayed = relay_error(&error, own, 1450).expect("enough is quoted");
    let Transport::IcmpError(about) = &relayed.header().transport else {
        panic!("{relayed:?}");
    };
    assert_eq!(about.mtu, Some(1430));
    let quote = TunnelQuote::of(&error).expect("a tunnel's packet");
    assert_eq!(quote.source, outer().source);
    assert_eq!(quote.destination, outer().destination);
    assert_eq!(u32::from(quote.total_len), in_tunnel.total_len());
    let QuotedContent::Packet { offset, ends } = quote.content else {
        panic!("{quote:?}");
    };
    let id = ip().identification;
    assert_eq!(offset, outer().identification.wrapping_sub(id));
    let (source, destination) = ends.expect("the inner header");
    assert_eq!(IpAddr::V4(source), ip().source);
    assert_eq!(IpAddr::V4(destination), ip().destination);
}

fn known_request() -> RegistrationRequest {
    let bytes = hex(REQUEST);
    RegistrationRequest::parse(&bytes).expect("a request").0
}
