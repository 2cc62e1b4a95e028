//! Peers that others wrote from the RFCs: extensions and fields that Outlast itself never sends.
#![allow(
    unreachable_pub,
    reason = "other files of these tests use the messages"
)]

use crate::network::HOME_AGENT;
use crate::security::{
    ARRIVAL, FOREIGN, MOBILE, SECOND, ask_foreign, ask_home, datagram, foreign, foreign_with,
    home_config, key, request, sign,
};
use outlast_base::time::Instant;
use outlast_mobility::{
    Algorithm, CoLocation, HomeAgent, HomeAgentConfig, LinkId, MobileNode, MobileNodeConfig,
    NodeTimeout, NtpClock, SecurityAssociation, Transmit, UdpTunnelOffer,
};
use outlast_wire::mobile_ip::{
    Extension, Lifetime, MessageBuilder, RegistrationReply, RegistrationRequest, ReplyCode,
    RequestFlags, SecuredPair, TunnelData, UdpTunnelReply, UdpTunnelRequest,
};
use outlast_wire::{Packet, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

pub const CO_LOCATED: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 7);

/// An authenticator by `key` for any pair.
pub fn by(pair: SecuredPair, message: MessageBuilder, spi: u32, key: &[u8]) -> MessageBuilder {
    use hmac::{Hmac, KeyInit, Mac};
    message.authenticate(pair, spi, 16, |covered| {
        let mac = Hmac::<md5::Md5>::new_from_slice(key).expect("any key");
        mac.chain_update(covered).finalize().into_bytes()
    })
}

pub fn known_key() -> Vec<u8> {
    (0..16).collect()
}

/// Appends a right mobile-home authenticator.
pub fn signed(message: MessageBuilder) -> MessageBuilder {
    by(SecuredPair::MobileHome, message, 256, &known_key())
}

/// True for a reply that the mobile node would believe.
fn is_signed(bytes: &[u8]) -> bool {
    let (_, extensions) = RegistrationReply::parse(bytes).expect("a reply");
    let one = extensions.only_authentication(SecuredPair::MobileHome);
    let one = one.expect("RFC 5944, section 3.8.3.3: one in every reply");
    let again = RegistrationReply::parse(bytes).expect("a reply").0.emit();
    by(SecuredPair::MobileHome, again, one.spi, &known_key())
        .finish()
        .ends_with(one.authenticator)
}

/// RFC 5944, section 3.8.2.1, case a: without an association or an authenticator nobody is answered.
#[test]
fn a_stranger_is_not_answered() {
    let stranger = RegistrationRequest {
        home_address: Ipv4Addr::new(10, 1, 0, 6),
        ..request()
    };
    for bytes in [sign(stranger.emit(), 256), request().emit().finish()] {
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        assert!(ask_home(&mut home, Instant::ZERO, &bytes).is_none());
        let counters = home.counters();
        assert_eq!((counters.refused, counters.unanswered), (1, 1));
        assert_eq!(counters.refused_for_authentication, 1);
        assert!(home.poll_event().is_some(), "it is logged");
    }
}

/// RFC 5944, sections 3.8.2.1 and 3.8.3.3.
#[test]
fn code_131_is_signed_by_an_association_that_the_mobile_node_has() {
    let mut wrong = sign(request().emit(), 256);
    *wrong.last_mut().expect("an authenticator") ^= 1;
    let unknown_index = sign(request().emit(), 999);
    for bytes in [wrong, unknown_index] {
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        let (reply, bytes) = ask_home(&mut home, Instant::ZERO, &bytes).expect("an answer");
        assert_eq!(reply.code, ReplyCode::HOME_MOBILE_AUTHENTICATION);
        assert!(is_signed(&bytes));
    }
}

/// RFC 5944, section 3.8.2.1, case a: all authentications that are there are carried out.
#[test]
fn a_second_authenticator_that_is_wrong_is_refused() {
    let wrong = b"another's key";
    let twice = |first: &[u8], second: &[u8]| {
        let message = by(SecuredPair::MobileHome, request().emit(), 256, first);
        by(SecuredPair::MobileHome, message, 256, second).finish()
    };
    let right = known_key();
    let cases = [
        (twice(&right, wrong), ReplyCode::HOME_MOBILE_AUTHENTICATION),
        (twice(wrong, &right), ReplyCode::HOME_MOBILE_AUTHENTICATION),
        (twice(&right, &right), ReplyCode::ACCEPTED),
    ];
    for (bytes, code) in cases {
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        let (reply, _) = ask_home(&mut home, Instant::ZERO, &bytes).expect("an answer");
        assert_eq!(reply.code, code);
        // A foreign agent hides neither from the home agent (section 3.7.2.2).
        let mut agent = foreign();
        assert_eq!(ask_foreign(&mut agent, 255, &bytes), None, "relayed");
    }
}

/// RFC 5944, section 3.8.2.1, cases c and d.
#[test]
fn a_foreign_agents_authenticator_has_to_be_the_only_one_and_of_an_association() {
    let by_agent = |message| by(SecuredPair::ForeignHome, message, 300, b"the agents' key");
    let plain = || signed(request().emit());
    let ask = |agents, bytes: &[u8]| {
        let mut home = HomeAgent::new(
            Instant::ZERO,
            HomeAgentConfig {
                foreign_agents: agents,
                ..home_config()
            },
        );
        ask_home(&mut home, Instant::ZERO, bytes).map(|(reply, _)| reply.code)
    };
    let known = || {
        let association = SecurityAssociation::new(300, Algorithm::HmacMd5, b"the agents' key");
        BTreeMap::from([(FOREIGN, association.expect("a free index"))])
    };
    let once = by_agent(plain()).finish();
    let twice = by_agent(by_agent(plain())).finish();
    let wrong = by(SecuredPair::ForeignHome, plain(), 300, b"another's").finish();
    assert_eq!(ask(known(), &once), Some(ReplyCode::ACCEPTED));
    let refused = Some(ReplyCode::HOME_FOREIGN_AUTHENTICATION);
    for bytes in [&twice, &wrong, &plain().finish()] {
        assert_eq!(ask(known(), bytes), refused);
    }
    // Without an association it is discarded.
    assert_eq!(ask(BTreeMap::new(), &once), None);
    // Nobody has proved anything: not the mobile node, nor the agent.
    let mut forged = wrong;
    forged[3] ^= 1;
    assert_eq!(ask(known(), &forged), None);
    // The mobile node's fault, relayed by an agent that is known: code 131 is a must.
    let faulty = by(SecuredPair::MobileHome, request().emit(), 256, b"another's");
    let faulty = by_agent(faulty).finish();
    assert_eq!(
        ask(known(), &faulty),
        Some(ReplyCode::HOME_MOBILE_AUTHENTICATION)
    );
}

/// RFC 5944, section 3.7.2.1.
#[test]
fn a_foreign_agent_accepts_exactly_one_authenticator_for_itself() {
    let association = SecurityAssociation::new(300, Algorithm::HmacMd5, b"the visitor's");
    let association = association.expect("a free index");
    let to_agent = |message| by(SecuredPair::MobileForeign, message, 300, b"the visitor's");
    let ask = |message: MessageBuilder| {
        let mut agent = foreign_with(|config| {
            config.mobiles.insert(MOBILE, association.clone());
        });
        ask_foreign(&mut agent, 255, &message.finish()).map(|reply| reply.code)
    };
    assert_eq!(ask(to_agent(signed(request().emit()))), None, "relayed");
    let refused = Some(ReplyCode::FOREIGN_MOBILE_AUTHENTICATION);
    let twice = to_agent(to_agent(signed(request().emit())));
    assert_eq!(ask(twice), refused);
    let wrong = by(
        SecuredPair::MobileForeign,
        to_agent(signed(request().emit())),
        300,
        b"another's",
    );
    assert_eq!(ask(wrong), refused);
    let in_front = signed(to_agent(request().emit()));
    assert_eq!(ask(in_front), refused);
}

/// RFC 5944, section 3.7.2: the home agent's address is none of the agent's own, of whichever interface.
#[test]
fn a_foreign_agent_relays_nothing_to_itself() {
    let other = Ipv4Addr::new(203, 0, 113, 77);
    for home_agent in [FOREIGN, other, Ipv4Addr::LOCALHOST] {
        let asked = RegistrationRequest {
            home_agent,
            ..request()
        };
        let mut agent = foreign();
        agent.set_own_addresses(BTreeSet::from([other]));
        let reply = ask_foreign(&mut agent, 255, &sign(asked.emit(), 256)).expect("an answer");
        assert_eq!(reply.code, ReplyCode::FOREIGN_INVALID_HOME_AGENT);
        assert_eq!(agent.pending(), 0);
    }
}

pub const WISH: UdpTunnelRequest = UdpTunnelRequest {
    is_forced: false,
    is_via_required_agent: false,
    encapsulation: 4,
};

/// A request of a mobile node with an address of its own.
pub fn co_located(care_of_address: Ipv4Addr, flags: RequestFlags) -> RegistrationRequest {
    RegistrationRequest {
        flags: RequestFlags::DECAPSULATES | flags,
        care_of_address,
        ..request()
    }
}

/// The code of the reply, and the answer about the tunnel in UDP.
fn ask_for_udp(
    offer: Option<UdpTunnelOffer>,
    request: RegistrationRequest,
    wish: UdpTunnelRequest,
) -> (u8, Option<UdpTunnelReply>) {
    let bytes = sign(request.emit().udp_tunnel_request(wish), 256);
    ask_with(offer, BTreeMap::new(), &bytes)
}

fn ask_with(
    udp_tunnels: Option<UdpTunnelOffer>,
    foreign_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    bytes: &[u8],
) -> (u8, Option<UdpTunnelReply>) {
    let mut home = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            udp_tunnels,
            foreign_agents,
            ..home_config()
        },
    );
    let (reply, bytes) = ask_home(&mut home, Instant::ZERO, bytes).expect("an answer");
    let (_, mut extensions) = RegistrationReply::parse(&bytes).expect("a reply");
    let answer = extensions.find_map(|extension| match extension {
        Extension::UdpTunnelReply(answer) => Some(answer),
        _ => None,
    });
    (reply.code.0, answer)
}

/// RFC 3519, section 4.6.1, case by case; the requests come from `FOREIGN`.
#[test]
fn each_fault_of_a_question_for_a_tunnel_in_udp_has_its_code() {
    let offer = Some(UdpTunnelOffer::default());
    let none = RequestFlags::default();
    let translated = co_located(CO_LOCATED, none);
    let straight = co_located(FOREIGN, none);
    let assent = |is_forced| {
        Some(UdpTunnelReply {
            code: 0,
            is_forced,
            keep_alive_s: 110,
        })
    };
    let forced = UdpTunnelRequest {
        is_forced: true,
        ..WISH
    };
    let of = |encapsulation| UdpTunnelRequest {
        encapsulation,
        ..WISH
    };
    assert_eq!(ask_for_udp(offer, translated, WISH), (0, assent(false)));
    // Not needed: declined, and accepted (section 4.6).
    let (code, declined) = ask_for_udp(offer, straight, WISH);
    assert_eq!((code, declined.map(|one| one.code)), (0, Some(64)));
    // Forced (section 3.1.1).
    assert_eq!(ask_for_udp(offer, straight, forced), (0, assent(true)));
    let unwilling = offer.map(|offer| UdpTunnelOffer {
        accepts_forced: false,
        ..offer
    });
    assert_eq!(ask_for_udp(unwilling, straight, forced), (129, None));
    // A translator is seen, and there are no tunnels in UDP.
    assert_eq!(ask_for_udp(None, translated, WISH), (129, None));
    // Nobody is there who would decapsulate.
    let without_d = RegistrationRequest {
        flags: none,
        ..translated
    };
    assert_eq!(ask_for_udp(offer, without_d, WISH), (134, None));
    // Encapsulations (section 3.1.4): 0 leaves it to the flags, another number goes before them.
    assert_eq!(ask_for_udp(offer, translated, of(47)), (142, None));
    assert_eq!(ask_for_udp(offer, translated, of(55)), (142, None));
    assert_eq!(ask_for_udp(offer, translated, of(0)), (0, assent(false)));
    let with_gre = co_located(CO_LOCATED, RequestFlags::GRE);
    assert_eq!(ask_for_udp(offer, with_gre, of(0)), (142, None));
    assert_eq!(ask_for_udp(offer, with_gre, WISH), (0, assent(false)));
    let straight_gre = co_located(FOREIGN, RequestFlags::GRE);
    assert_eq!(ask_for_udp(offer, straight_gre, WISH), (139, None));
    // Through an agent that demands it: the tunnel's other end is not the request's source (section 4.11).
    let via_agent = UdpTunnelRequest {
        is_via_required_agent: true,
        ..WISH
    };
    assert_eq!(ask_for_udp(offer, translated, via_agent), (129, None));
    // A form that is not known is skipped (section 3.1.3).
    let later = sign(straight.emit().extension(144, &[0, 0, 0, 4, 0, 1]), 256);
    assert_eq!(ask_with(offer, BTreeMap::new(), &later), (0, None));
    // A deregistration asks for no tunnel.
    let leaving = RegistrationRequest {
        lifetime: Lifetime::DEREGISTRATION,
        ..translated
    };
    let (code, declined) = ask_for_udp(offer, leaving, WISH);
    assert_eq!((code, declined.map(|one| one.code)), (0, Some(64)));
}

/// RFC 3519, sections 4.5 and 4.6.1: a foreign agent behind a translator asks behind the mobile node's
/// authenticator, and is answered behind the home agent's.
#[test]
fn a_foreign_agent_behind_a_translator_gets_a_tunnel_in_udp_if_it_is_known() {
    let association = SecurityAssociation::new(300, Algorithm::HmacMd5, b"the agents' key");
    let known = BTreeMap::from([(FOREIGN, association.expect("a free index"))]);
    let offer = Some(UdpTunnelOffer::default());
    let behind = |flags| {
        let asked = RegistrationRequest {
            flags,
            care_of_address: CO_LOCATED,
            ..request()
        };
        signed(asked.emit()).udp_tunnel_request(WISH)
    };
    let by_agent = |message| by(SecuredPair::ForeignHome, message, 300, b"the agents' key");
    let none = RequestFlags::default();
    let bytes = by_agent(behind(none)).finish();
    let (code, answer) = ask_with(offer, known.clone(), &bytes);
    assert_eq!((code, answer.map(|one| one.code)), (0, Some(0)));
    let mut home = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            udp_tunnels: offer,
            foreign_agents: known.clone(),
            ..home_config()
        },
    );
    let (_, reply) = ask_home(&mut home, Instant::ZERO, &bytes).expect("an answer");
    let (_, extensions) = RegistrationReply::parse(&reply).expect("a reply");
    let mut of_agent = extensions.behind_home_authentication();
    assert!(matches!(
        of_agent.next(),
        Some(Extension::UdpTunnelReply(_))
    ));
    // D is the mobile node's, which would not be what decapsulates.
    let with_d = by_agent(behind(RequestFlags::DECAPSULATES)).finish();
    assert_eq!(ask_with(offer, known, &with_d).0, 134);
    // Anybody on the way could append it, and turn the tunnel to himself.
    let by_nobody = behind(none).finish();
    assert_eq!(ask_with(offer, BTreeMap::new(), &by_nobody).0, 129);
}

/// A mobile node at an address of its own, and its request.
pub fn mobile_node() -> (MobileNode, RegistrationRequest) {
    let config = MobileNodeConfig {
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        home: key(),
        foreign: None,
        detection: outlast_mobility::Detection::Lazy,
        lifetime: Lifetime(300),
        reverse_tunnel: true,
        simultaneous_bindings: false,
        udp_tunnel: true,
        clock: NtpClock::new(Instant::ZERO, 0xe800_0000_0000_0000),
        seed: 1,
    };
    let mut node = MobileNode::new(Instant::ZERO, config);
    let at = CoLocation {
        address: CO_LOCATED,
        link: LinkId(0),
    };
    node.handle_care_of_address(Instant::ZERO, Some(at));
    let sent = core::iter::from_fn(|| node.poll_transmit());
    let request = sent.filter_map(|one| match one {
        Transmit::Packet { packet, .. } => {
            let payload = packet.payload()?.to_vec();
            Some(RegistrationRequest::parse(&payload).ok()?.0)
        }
        Transmit::Arp(_) => None,
    });
    let request = request.last().expect("it asks");
    (node, request)
}

/// The reply that accepts `request`, unsigned.
fn acceptance(request: &RegistrationRequest) -> RegistrationReply {
    RegistrationReply {
        code: ReplyCode::ACCEPTED,
        lifetime: Lifetime(300),
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        identification: request.identification,
    }
}

pub fn accept(node: &mut MobileNode, request: &RegistrationRequest, answer: UdpTunnelReply) {
    let reply = acceptance(request);
    let bytes = signed(reply.emit().udp_tunnel_reply(answer)).finish();
    let packet = datagram(HOME_AGENT, CO_LOCATED, 64, &bytes);
    let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &packet);
    assert!(node.is_registered());
}

/// RFC 3519, sections 3.2, 3.2.1, 4.9 and 4.10.
#[test]
fn a_mobile_node_understands_every_answer_about_its_tunnel() {
    let reply = |code, keep_alive_s| UdpTunnelReply {
        code,
        is_forced: false,
        keep_alive_s,
    };
    for (answer, seconds) in [
        (reply(0, 60), Some(60)),
        (reply(0, 0), Some(110)),
        (reply(0, 1), Some(10)),
        (reply(63, 60), Some(60)),
        (reply(64, 60), None),
        (reply(255, 60), None),
    ] {
        let (mut node, request) = mobile_node();
        accept(&mut node, &request, answer);
        assert_eq!(node.has_udp_tunnel(), seconds.is_some(), "{answer:?}");
        let next = node.poll_timeout().expect("a renewal");
        match seconds {
            Some(seconds) => {
                let at = Instant::ZERO + SECOND * seconds;
                assert_eq!(next, (at, NodeTimeout::KeepAlive), "{answer:?}");
            }
            None => assert_eq!(next.1, NodeTimeout::Renewal, "{answer:?}"),
        }
    }
}

/// A mobile node whose reply bears a second, wrong authenticator stays unregistered (RFC 5944, section
/// 3.6.2.1).
#[test]
fn a_mobile_node_believes_no_reply_with_a_wrong_authenticator() {
    let (mut node, request) = mobile_node();
    let reply = acceptance(&request);
    let once = signed(reply.emit());
    let twice = by(SecuredPair::MobileHome, once.clone(), 256, b"another's");
    for (message, is_believed) in [(twice, false), (once, true)] {
        let packet = datagram(HOME_AGENT, CO_LOCATED, 64, &message.finish());
        let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &packet);
        assert_eq!(node.is_registered(), is_believed);
    }
}

/// RFC 3519, section 3.1.1, from end to end: the tunnel in UDP carries packets though no translator is there.
#[test]
fn a_forced_tunnel_in_udp_carries_packets_both_ways() {
    let straight = co_located(FOREIGN, RequestFlags::REVERSE_TUNNEL);
    let forced = UdpTunnelRequest {
        is_forced: true,
        ..WISH
    };
    let mut home = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            udp_tunnels: Some(UdpTunnelOffer::default()),
            ..home_config()
        },
    );
    let bytes = sign(straight.emit().udp_tunnel_request(forced), 256);
    let _ = ask_home(&mut home, Instant::ZERO, &bytes).expect("an answer");
    let correspondent = Ipv4Addr::new(192, 0, 2, 1);
    let inner = datagram(correspondent, MOBILE, 64, b"hello");
    let _ = home.handle_packet(Instant::ZERO, ARRIVAL, inner);
    let Some(Transmit::Packet { packet, .. }) = home.poll_transmit() else {
        panic!("it is tunnelled");
    };
    assert!(matches!(packet.header().transport, Transport::Udp(_)));
    assert_eq!(packet.header().ip.destination, IpAddr::V4(FOREIGN));
    let data = TunnelData::parse(packet.payload().expect("bytes")).expect("a tunnel's");
    let out = Packet::parse(data.packet.to_vec().into()).expect("a packet");
    assert_eq!(out.payload(), Some(&b"hello"[..]));
    let back = datagram(MOBILE, correspondent, 64, b"hello, too").to_bytes();
    let data = TunnelData {
        next_header: 4,
        packet: &back,
    };
    let outer = datagram(FOREIGN, HOME_AGENT, 64, &data.emit());
    let _ = home.handle_packet(Instant::ZERO, ARRIVAL, outer);
    assert_eq!(home.counters().reverse_tunnelled, 1);
}
