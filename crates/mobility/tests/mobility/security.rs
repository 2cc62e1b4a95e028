//! Known messages, and what a stranger's, a recorded or a late one gets for an answer.
#![allow(
    unreachable_pub,
    reason = "other files of these tests use the messages"
)]

use crate::network::{HOME_AGENT, Network, Setup, foreign_address, home_address};
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Advertising, Algorithm, Arrival, ForeignAgent, ForeignAgentConfig, ForeignLimits, HomeAgent,
    HomeAgentConfig, HomeEvent, HomeLimits, LinkAddress, LinkId, NtpClock, ReverseTunnels,
    SecurityAssociation, Transmit,
};
use outlast_wire::mobile_ip::{
    Lifetime, MessageBuilder, RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags,
    SecuredPair,
};
use outlast_wire::{IpHeader, Packet, UdpHeader};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
pub const FOREIGN: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub const ARRIVAL: Arrival = Arrival {
    link: LinkId(0),
    from: LinkAddress([4; 6]),
};

/// Written by another implementation: key 00 01 .. 0f, authenticators by Python's `hmac`.
const REQUEST: &str =
    "0102012c0a0100050a0100010a020001e8000000123456782014000001006b9ed6c908aaa1f71e46ed2c0a1ff7a5";
const REPLY: &str =
    "038500000a0100050a0100010000000000000001201400000100100dbc19d0dd432d8248c738596b8b23";

pub fn key() -> SecurityAssociation {
    let key: Vec<u8> = (0..16).collect();
    SecurityAssociation::new(256, Algorithm::HmacMd5, &key).expect("a free index")
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let digits = digits.map(|pair| core::str::from_utf8(pair).expect("ASCII"));
    digits
        .map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"))
        .collect()
}

pub fn home_config() -> HomeAgentConfig {
    HomeAgentConfig {
        address: HOME_AGENT,
        link: LinkId(0),
        mobiles: BTreeMap::from([(MOBILE, vec![key()])]),
        foreign_agents: BTreeMap::new(),
        longest_lifetime: Lifetime(600),
        replay_tolerance: SECOND * 7,
        reverse_tunnels: ReverseTunnels::Offered,
        udp_tunnels: None,
        advertising: None,
        limits: HomeLimits::default(),
        clock: NtpClock::new(Instant::ZERO, 0xe800_0000_0000_0000),
        seed: 1,
    }
}

pub fn datagram(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, payload: &[u8]) -> Packet {
    let ip = IpHeader {
        hop_limit: ttl,
        ..IpHeader::new(source.into(), destination.into())
    };
    let udp = UdpHeader {
        source_port: 434,
        destination_port: 434,
    };
    Packet::udp_datagram(ip, udp, payload)
}

/// The reply of the home agent, and its bytes.
pub fn ask_home(
    home: &mut HomeAgent,
    now: Instant,
    payload: &[u8],
) -> Option<(RegistrationReply, Vec<u8>)> {
    let _ = home.handle_packet(now, ARRIVAL, datagram(FOREIGN, HOME_AGENT, 64, payload));
    replies(core::iter::from_fn(|| home.poll_transmit())).pop()
}

pub fn replies(transmits: impl Iterator<Item = Transmit>) -> Vec<(RegistrationReply, Vec<u8>)> {
    transmits
        .filter_map(|transmit| match transmit {
            Transmit::Packet { packet, .. } => {
                let payload = packet.payload()?.to_vec();
                let (reply, _) = RegistrationReply::parse(&payload).ok()?;
                Some((reply, payload))
            }
            Transmit::Arp(_) => None,
        })
        .collect()
}

pub fn request() -> RegistrationRequest {
    RegistrationRequest {
        flags: RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        care_of_address: FOREIGN,
        identification: 0xe800_0000_1234_5678,
    }
}

/// Signed as by a mobile node with `key()`: the vectors show that it is.
pub fn sign(message: MessageBuilder, spi: u32) -> Vec<u8> {
    use hmac::{Hmac, KeyInit, Mac};
    let key: Vec<u8> = (0..16).collect();
    let message = message.authenticate(SecuredPair::MobileHome, spi, 16, |covered| {
        let mac = Hmac::<md5::Md5>::new_from_slice(&key).expect("any key");
        mac.chain_update(covered).finalize().into_bytes()
    });
    message.finish()
}

#[test]
fn known_messages_are_verified_and_made() {
    assert_eq!(sign(request().emit(), 256), hex(REQUEST));
    let mut home = HomeAgent::new(Instant::ZERO, home_config());
    let (reply, _) = ask_home(&mut home, Instant::ZERO, &hex(REQUEST)).expect("an answer");
    assert_eq!(
        (reply.code, reply.lifetime),
        (ReplyCode::ACCEPTED, Lifetime(300))
    );
    // A clock at zero, and a request whose low half is 1: the answer is the known one.
    let clock = NtpClock::new(Instant::ZERO, 0);
    let mut late = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            clock,
            ..home_config()
        },
    );
    let other = RegistrationRequest {
        identification: 0xe800_0000_0000_0001,
        ..request()
    };
    let (_, bytes) = ask_home(&mut late, Instant::ZERO, &sign(other.emit(), 256)).expect("one");
    assert_eq!(bytes, hex(REPLY));
}

#[test]
fn a_modern_hash_has_its_own_index() {
    let modern =
        SecurityAssociation::new(1_000, Algorithm::HmacSha256, b"a longer key than sixteen")
            .expect("free");
    let mut network =
        Network::new(Setup::default()).with_mobile(|config| config.home = modern.clone());
    network.place(0, &[1]);
    network.run(SECOND * 3);
    assert!(!network.reaches(0), "the home agent does not know it");
    let mut config = home_config();
    config.mobiles.insert(MOBILE, vec![key(), modern]);
    let mut home = HomeAgent::new(Instant::ZERO, config);
    let (reply, _) = ask_home(&mut home, Instant::ZERO, &hex(REQUEST)).expect("an answer");
    assert_eq!(reply.code, ReplyCode::ACCEPTED, "the old one goes on");
    for reserved in [0, 255] {
        assert!(SecurityAssociation::new(reserved, Algorithm::HmacMd5, b"").is_err());
    }
}

#[test]
fn a_modern_hash_registers() {
    let modern =
        SecurityAssociation::new(1_000, Algorithm::HmacSha256, b"a longer key than sixteen")
            .expect("free");
    let mut network = Network::new(Setup::default())
        .with_mobile(|config| config.home = modern.clone())
        .with_home(|config| {
            config.mobiles.insert(home_address(0), vec![modern.clone()]);
        });
    network.place(0, &[1]);
    network.run(SECOND * 3);
    assert!(network.reaches(0));
}

#[test]
fn each_fault_of_a_request_has_its_code_at_the_home_agent() {
    let good = request();
    let flags = |flags| RegistrationRequest { flags, ..good };
    let now = Instant::ZERO;
    let mut forged = hex(REQUEST);
    forged[3] ^= 1;
    let elsewhere = RegistrationRequest {
        home_agent: Ipv4Addr::new(10, 1, 0, 9),
        ..good
    };
    let nowhere = RegistrationRequest {
        care_of_address: Ipv4Addr::BROADCAST,
        ..good
    };
    let early = RegistrationRequest {
        identification: good.identification + (10 << 32),
        ..good
    };
    let late = RegistrationRequest {
        identification: good.identification - (10 << 32),
        ..good
    };
    let cases = [
        (forged, ReplyCode::HOME_MOBILE_AUTHENTICATION),
        (
            sign(good.emit(), 257),
            ReplyCode::HOME_MOBILE_AUTHENTICATION,
        ),
        (sign(elsewhere.emit(), 256), ReplyCode::HOME_UNKNOWN_AGENT),
        (sign(nowhere.emit(), 256), ReplyCode::HOME_POORLY_FORMED),
        (sign(early.emit(), 256), ReplyCode::HOME_IDENTIFICATION),
        (sign(late.emit(), 256), ReplyCode::HOME_IDENTIFICATION),
        (
            sign(flags(RequestFlags(1)).emit(), 256),
            ReplyCode::HOME_POORLY_FORMED,
        ),
        (
            sign(flags(RequestFlags::GRE).emit(), 256),
            ReplyCode::HOME_ENCAPSULATION,
        ),
        (
            sign(flags(RequestFlags::MINIMAL_ENCAPSULATION).emit(), 256),
            ReplyCode::HOME_ENCAPSULATION,
        ),
        (sign(good.emit(), 256), ReplyCode::ACCEPTED),
    ];
    for (bytes, code) in cases {
        let mut home = HomeAgent::new(now, home_config());
        let (reply, _) = ask_home(&mut home, now, &bytes).expect("an answer");
        assert_eq!(reply.code, code, "{bytes:02x?}");
        assert_eq!(home.away(), usize::from(code.is_accepted()));
    }
    for (offer, has, code) in [
        (
            ReverseTunnels::Refused,
            true,
            ReplyCode::HOME_REVERSE_TUNNEL,
        ),
        (
            ReverseTunnels::Demanded,
            false,
            ReplyCode::HOME_REVERSE_TUNNEL_MANDATORY,
        ),
    ] {
        let mut home = HomeAgent::new(
            now,
            HomeAgentConfig {
                reverse_tunnels: offer,
                ..home_config()
            },
        );
        let asked = if has {
            good
        } else {
            flags(RequestFlags::default())
        };
        let (reply, _) = ask_home(&mut home, now, &sign(asked.emit(), 256)).expect("an answer");
        assert_eq!(reply.code, code);
    }
    let foreign_agents = BTreeMap::from([(FOREIGN, key())]);
    let mut home = HomeAgent::new(
        now,
        HomeAgentConfig {
            foreign_agents,
            ..home_config()
        },
    );
    let (reply, _) = ask_home(&mut home, now, &hex(REQUEST)).expect("an answer");
    assert_eq!(reply.code, ReplyCode::HOME_FOREIGN_AUTHENTICATION);
}

#[test]
fn too_many_bindings_are_refused() {
    let limits = HomeLimits {
        bindings_per_mobile: 2,
        ..HomeLimits::default()
    };
    let mut home = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            limits,
            ..home_config()
        },
    );
    for (number, code) in [(1, 0), (2, 0), (3, 135), (2, 0)] {
        let asked = RegistrationRequest {
            flags: RequestFlags::SIMULTANEOUS_BINDINGS,
            care_of_address: Ipv4Addr::new(10, 9, 0, number),
            identification: request().identification + home.counters().accepted + 1,
            ..request()
        };
        let (reply, _) = ask_home(&mut home, Instant::ZERO, &sign(asked.emit(), 256)).expect("one");
        assert_eq!(reply.code, ReplyCode(code), "binding {number}");
    }
}

#[test]
fn a_recorded_request_is_refused_at_once_and_later() {
    let mut network = Network::new(Setup::default());
    network.place(0, &[1]);
    network.run(SECOND * 5);
    let recorded: Vec<_> = network.recorded.clone();
    assert!(!recorded.is_empty());
    network.place(0, &[2]);
    network.run(SECOND * 5);
    let at_two: Vec<_> = network.home.care_of_addresses(home_address(0)).collect();
    assert_eq!(at_two, [foreign_address(2)]);
    for wait in [0, 1, 60] {
        network.run(SECOND * wait);
        network.home_events.clear();
        for packet in &recorded {
            network.replay(packet.clone());
        }
        let refusals = network.home_events.iter().filter(|(_, event)| {
            matches!(
                event,
                HomeEvent::Refused {
                    code: ReplyCode::HOME_IDENTIFICATION,
                    ..
                }
            )
        });
        assert_eq!(refusals.count(), recorded.len(), "after {wait} s");
        let where_it_is: Vec<_> = network.home.care_of_addresses(home_address(0)).collect();
        assert_eq!(where_it_is, at_two);
        assert!(network.reaches(0));
    }
}

/// A hundred forged requests a second, for a registered mobile node and for others; ten are answered.
#[test]
fn a_flood_harms_nobody_who_is_registered() {
    let mut network = Network::new(Setup {
        lifetime: 30,
        limits: HomeLimits {
            refusals_per_second: 10,
            ..HomeLimits::default()
        },
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(SECOND * 5);
    for second in 0..40_u32 {
        for number in 0..100_u32 {
            let asked = RegistrationRequest {
                home_address: Ipv4Addr::from_bits(0x0a01_0100 + number % 50),
                care_of_address: Ipv4Addr::new(203, 0, 113, 9),
                identification: crate::network::NTP + (u64::from(second) << 32) + u64::from(number),
                ..request()
            };
            network.replay(datagram(
                Ipv4Addr::new(203, 0, 113, 9),
                HOME_AGENT,
                64,
                &sign(asked.emit(), 256),
            ));
        }
        network.run(SECOND);
    }
    assert!(network.reaches(0), "renewed while the flood lasted");
    let counters = network.home.counters();
    assert_eq!(counters.refused_for_authentication, 4_000);
    assert!(counters.unanswered >= 4_000 - 42 * 10, "{counters:?}");
    assert_eq!(network.home.away(), 1);
}

pub fn foreign() -> ForeignAgent {
    foreign_with(|_| {})
}

pub fn foreign_with(change: impl FnOnce(&mut ForeignAgentConfig)) -> ForeignAgent {
    let mut config = ForeignAgentConfig {
        care_of_address: FOREIGN,
        link: LinkId(0),
        advertising: Advertising {
            address: FOREIGN,
            ..Advertising::default()
        },
        longest_lifetime: Lifetime(300),
        demands_registration: false,
        reverse_tunnels: ReverseTunnels::Offered,
        mobiles: BTreeMap::new(),
        home_agents: BTreeMap::new(),
        request_timeout: SECOND * 7,
        limits: ForeignLimits {
            visitors: 10,
            pending: 8,
            pending_per_node: 4,
            ..ForeignLimits::default()
        },
        seed: 1,
    };
    change(&mut config);
    ForeignAgent::new(Instant::ZERO, config)
}

pub fn ask_foreign(
    foreign: &mut ForeignAgent,
    ttl: u8,
    payload: &[u8],
) -> Option<RegistrationReply> {
    let _ = foreign.handle_packet(
        Instant::ZERO,
        ARRIVAL,
        datagram(MOBILE, FOREIGN, ttl, payload),
    );
    replies(core::iter::from_fn(|| foreign.poll_transmit()))
        .pop()
        .map(|(reply, _)| reply)
}

#[test]
fn each_fault_of_a_request_has_its_code_at_the_foreign_agent() {
    let good = request();
    let flags = |flags| RegistrationRequest { flags, ..good };
    let long = RegistrationRequest {
        lifetime: Lifetime(301),
        ..good
    };
    let own = RegistrationRequest {
        home_agent: FOREIGN,
        ..good
    };
    let other = RegistrationRequest {
        care_of_address: Ipv4Addr::new(10, 9, 0, 1),
        ..good
    };
    let cases = [
        (255, good.emit().finish(), 70),
        (255, sign(flags(RequestFlags(4)).emit(), 256), 70),
        (255, sign(own.emit(), 256), 194),
        (255, sign(long.emit(), 256), 69),
        (255, sign(flags(RequestFlags::GRE).emit(), 256), 72),
        (255, sign(other.emit(), 256), 77),
        (254, sign(good.emit(), 256), 76),
        (255, sign(good.emit().encapsulating_delivery(), 256), 79),
    ];
    for (ttl, bytes, code) in cases {
        let reply = ask_foreign(&mut foreign(), ttl, &bytes).expect("an answer");
        assert_eq!(reply.code, ReplyCode(code));
        let longest = if code == 69 {
            Lifetime(300)
        } else {
            Lifetime(0)
        };
        assert_eq!(reply.lifetime, longest);
    }
    for (offer, has, code) in [
        (ReverseTunnels::Refused, true, 74),
        (ReverseTunnels::Demanded, false, 75),
    ] {
        let mut agent = foreign_with(|config| config.reverse_tunnels = offer);
        let asked = if has {
            good
        } else {
            flags(RequestFlags::default())
        };
        let reply = ask_foreign(&mut agent, 255, &sign(asked.emit(), 256)).expect("an answer");
        assert_eq!(reply.code, ReplyCode(code));
    }
    let mut agent = foreign_with(|config| {
        config.mobiles.insert(MOBILE, key());
    });
    let reply = ask_foreign(&mut agent, 255, &hex(REQUEST)).expect("an answer");
    assert_eq!(reply.code, ReplyCode::FOREIGN_MOBILE_AUTHENTICATION);
}

#[test]
fn a_home_agent_that_does_not_answer_is_told_of_after_seven_seconds() {
    let mut agent = foreign();
    assert_eq!(ask_foreign(&mut agent, 255, &hex(REQUEST)), None, "relayed");
    agent.handle_timeout(Instant::from_millis(6_999));
    assert_eq!(agent.pending(), 1);
    agent.handle_timeout(Instant::from_millis(7_000));
    let told = replies(core::iter::from_fn(|| agent.poll_transmit()));
    assert_eq!(told[0].0.code, ReplyCode::FOREIGN_TIMEOUT);
    assert_eq!(agent.pending(), 0);
}

#[test]
fn an_unreachable_home_agent_is_told_of_at_once() {
    use outlast_wire::IcmpNotice;
    for (notice, code) in [
        (IcmpNotice::NetworkUnreachable, 80),
        (IcmpNotice::HostUnreachable, 81),
        (IcmpNotice::PortUnreachable, 82),
        (IcmpNotice::Prohibited, 88),
    ] {
        let mut agent = foreign();
        assert_eq!(ask_foreign(&mut agent, 255, &hex(REQUEST)), None, "relayed");
        let relayed = datagram(FOREIGN, HOME_AGENT, 64, &hex(REQUEST));
        let router = Ipv4Addr::new(10, 9, 0, 1).into();
        let error = Packet::icmp_error(router, notice, &relayed).expect("an error");
        let backbone = Arrival {
            link: LinkId(1),
            ..ARRIVAL
        };
        let _ = agent.handle_packet(Instant::ZERO, backbone, error);
        let told = replies(core::iter::from_fn(|| agent.poll_transmit()));
        assert_eq!(told[0].0.code, ReplyCode(code));
    }
}

#[test]
fn strangers_do_not_take_the_room_of_visitors() {
    let mut agent = foreign();
    // One node fills what one node may, many nodes what strangers may.
    for number in 0..100_u8 {
        let asked = RegistrationRequest {
            home_address: Ipv4Addr::new(10, 8, 0, number),
            ..request()
        };
        let from = LinkAddress([number / 10; 6]);
        let packet = datagram(asked.home_address, FOREIGN, 255, &sign(asked.emit(), 256));
        let _ = agent.handle_packet(Instant::ZERO, Arrival { from, ..ARRIVAL }, packet);
        let expected = usize::from((number + 1).min(4)).max(usize::from(number > 10) * 5);
        assert!(
            agent.pending() >= expected.min(6),
            "{} after {number}",
            agent.pending()
        );
        assert!(agent.pending() <= 6);
    }
    let told = replies(core::iter::from_fn(|| agent.poll_transmit()));
    let refused =
        |(reply, _): &(RegistrationReply, Vec<u8>)| reply.code == ReplyCode::FOREIGN_RESOURCES;
    let answered = told.iter().filter(|told| refused(told)).count() as u64;
    let counters = agent.counters();
    assert_eq!(counters.refused, 94);
    assert_eq!(answered + counters.unanswered, 94);
    // Four a second to one node (RFC 5944, section 3.7.2).
    assert!((20..=40).contains(&answered), "{answered}");
}
