//! Strangers who forge or record what they send: what it costs, what it changes, whom it reaches.

use crate::network::HOME_AGENT;
use crate::network_v6 as v6;
use crate::peers::{CO_LOCATED, WISH, accept, co_located, mobile_node, signed};
use crate::security::{
    ARRIVAL, FOREIGN, MOBILE, SECOND, ask_foreign, ask_home, datagram, foreign, home_config,
    replies, request, sign,
};
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Arrival, ForeignAgent, HomeAgent, HomeAgentConfig, LinkAddress, LinkId, MobileNode, Transmit,
    UdpTunnelOffer, Verdict, Via,
};
use outlast_wire::mobile_ip::{
    Lifetime, OuterHeader, RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags,
    TunnelData, UdpTunnelReply, encapsulate,
};
use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader, Transport, UdpHeader};
use std::net::Ipv4Addr;

const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
/// From elsewhere than the visitors' link.
const BACKBONE: Arrival = Arrival {
    link: LinkId(1),
    from: LinkAddress([0; 6]),
};

fn packets(transmits: impl Iterator<Item = Transmit>) -> Vec<(Packet, Via)> {
    transmits
        .filter_map(|transmit| match transmit {
            Transmit::Packet { packet, via } => Some((packet, via)),
            Transmit::Arp(_) => None,
        })
        .collect()
}

/// Gives `payload` to the home agent from `source`, and counts bytes of UDP payload that it answers with.
fn answered_bytes(home: &mut HomeAgent, now: Instant, source: Ipv4Addr, payload: &[u8]) -> usize {
    let packet = datagram(source, HOME_AGENT, 64, payload);
    let _ = home.handle_packet(now, ARRIVAL, packet);
    let sent = packets(core::iter::from_fn(|| home.poll_transmit()));
    let lengths = sent
        .iter()
        .map(|(packet, _)| packet.payload().map_or(0, <[u8]>::len));
    lengths.sum()
}

/// 20,000 replays of a recorded request in ten seconds, as from one victim and as from a thousand.
#[test]
fn replays_are_answered_within_limits_and_told_of_a_few_times() {
    let recorded = sign(request().emit(), 256);
    for (sources, most) in [(1, 11 * 10), (1_000, 100 + 10 * 100)] {
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        let (reply, _) = ask_home(&mut home, Instant::ZERO, &recorded).expect("an answer");
        assert_eq!(reply.code, ReplyCode::ACCEPTED);
        while home.poll_event().is_some() {}
        let (mut answers, mut reports) = (0, 0);
        for number in 0..20_000_u32 {
            let now = Instant::ZERO + Duration::from_micros(500) * number;
            let source = Ipv4Addr::from_bits(0xcb00_7100 + number % sources);
            let bytes = answered_bytes(&mut home, now, source, &recorded);
            assert!(bytes <= recorded.len(), "no more than the question");
            answers += usize::from(bytes > 0);
            while home.poll_event().is_some() {
                reports += 1;
            }
        }
        assert!((10..=most).contains(&answers), "{answers} from {sources}");
        assert!((20..=30).contains(&reports), "{reports} lines of log");
        let counters = home.counters();
        assert_eq!(counters.refused_for_identification, 20_000);
        assert_eq!(counters.unanswered, 20_000 - answers as u64);
    }
}

/// Somebody else's flood takes no answer from a mobile node whose clock is wrong.
#[test]
fn a_flood_from_one_address_leaves_answers_for_others() {
    let recorded = sign(request().emit(), 256);
    let mut home = HomeAgent::new(Instant::ZERO, home_config());
    let _ = ask_home(&mut home, Instant::ZERO, &recorded).expect("an answer");
    let attacker = Ipv4Addr::new(203, 0, 113, 9);
    for number in 0..1_000_u32 {
        let now = Instant::ZERO + Duration::from_millis(1) * number;
        answered_bytes(&mut home, now, attacker, &recorded);
    }
    let late = Instant::ZERO + Duration::from_millis(999);
    let honest = answered_bytes(&mut home, late, FOREIGN, &recorded);
    assert!(honest > 0);
}

#[test]
fn no_forged_request_gets_a_longer_answer() {
    // An authenticator of no bytes, and of few.
    for length in [0, 1, 8, 15, 16] {
        let pair = outlast_wire::mobile_ip::SecuredPair::MobileHome;
        let forged = request()
            .emit()
            .authenticate(pair, 256, length, |_| [1; 16]);
        let forged = forged.finish();
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        let bytes = answered_bytes(&mut home, Instant::ZERO, FOREIGN, &forged);
        assert!(bytes <= forged.len(), "{bytes} for {}", forged.len());
        assert_eq!(bytes > 0, length >= 15, "{length}");
    }
}

/// One packet in a group's name would be answered to all of its members.
#[test]
fn a_group_is_not_answered() {
    for source in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
        let mut wrong = sign(request().emit(), 256);
        wrong[3] ^= 1;
        let mut home = HomeAgent::new(Instant::ZERO, home_config());
        let bytes = answered_bytes(&mut home, Instant::ZERO, source, &wrong);
        assert_eq!((bytes, home.counters().malformed), (0, 1));
        assert!(answered_bytes(&mut home, Instant::ZERO, FOREIGN, &wrong) > 0);
    }
}

/// A TCP segment with DF, as Linux sends it.
fn segment(source: Ipv4Addr, destination: Ipv4Addr, identification: u16, length: usize) -> Packet {
    let ip = IpHeader {
        identification,
        ..IpHeader::new(source.into(), destination.into())
    };
    Packet::tcp_segment(ip, TcpHeader::default(), &vec![1; length])
}

fn in_ip(source: Ipv4Addr, inner: Packet) -> Packet {
    let outer = OuterHeader {
        source,
        destination: CO_LOCATED,
        ttl: 64,
        identification: 1,
    };
    encapsulate(inner, outer).expect("it fits")
}

fn in_udp(source: Ipv4Addr, inner: &Packet) -> Packet {
    let data = TunnelData {
        next_header: 4,
        packet: &inner.to_bytes(),
    };
    datagram(source, CO_LOCATED, 64, &data.emit())
}

fn answer(code: u8) -> UdpTunnelReply {
    UdpTunnelReply {
        code,
        is_forced: false,
        keep_alive_s: 110,
    }
}

fn registered(code: u8) -> MobileNode {
    let (mut node, request) = mobile_node();
    accept(&mut node, &request, answer(code));
    while node.poll_transmit().is_some() {}
    node
}

/// A mobile node may be the router of a private network; what comes out of a tunnel for that is dropped.
#[test]
fn a_mobile_node_takes_only_what_is_for_its_home_address_out_of_its_tunnel() {
    let private = |host| Ipv4Addr::new(192, 168, 77, host);
    for code in [UdpTunnelReply::NO, UdpTunnelReply::YES] {
        let surround = |inner: Packet| match code {
            UdpTunnelReply::YES => in_udp(HOME_AGENT, &inner),
            _ => in_ip(HOME_AGENT, inner),
        };
        let mut node = registered(code);
        let groups = [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1), CO_LOCATED];
        let others: Vec<_> = (1..=20).map(private).chain(groups).collect();
        for other in &others {
            let inner = segment(CORRESPONDENT, *other, 1, 10);
            let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &surround(inner));
            assert!(node.poll_transmit().is_none(), "{other}");
        }
        assert_eq!(node.counters().dropped_unfit, others.len() as u64);
        let own = segment(CORRESPONDENT, MOBILE, 1, 10);
        let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &surround(own.clone()));
        let delivered = packets(core::iter::from_fn(|| node.poll_transmit()));
        assert!(matches!(&delivered[..], [(_, Via::Local)]), "{delivered:?}");
        // RFC 3519, section 4.7: one form at a time, and from the home agent alone.
        let other_form = match code {
            UdpTunnelReply::YES => in_ip(HOME_AGENT, own.clone()),
            _ => in_udp(HOME_AGENT, &own),
        };
        let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &other_form);
        for stranger in [in_ip(ROUTER, own.clone()), in_udp(ROUTER, &own)] {
            let verdict = node.handle_packet(Instant::ZERO, ARRIVAL, &stranger);
            assert_eq!(verdict, Verdict::Pass);
        }
        assert!(node.poll_transmit().is_none());
    }
}

/// A foreign agent with a visitor whose home agent is at `HOME_AGENT`.
fn visited() -> ForeignAgent {
    let mut agent = foreign();
    let asked = request();
    assert_eq!(ask_foreign(&mut agent, 255, &sign(asked.emit(), 256)), None);
    let reply = RegistrationReply {
        code: ReplyCode::ACCEPTED,
        lifetime: Lifetime(300),
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        identification: asked.identification,
    };
    let bytes = signed(reply.emit()).finish();
    let packet = datagram(HOME_AGENT, FOREIGN, 64, &bytes);
    let _ = agent.handle_packet(Instant::ZERO, BACKBONE, packet);
    assert_eq!(agent.visitors(), 1);
    while agent.poll_transmit().is_some() {}
    agent
}

/// RFC 5944, section 4.2.3: a tunnel comes from the home agent's address.
#[test]
fn a_foreign_agent_delivers_what_the_visitors_home_agent_sends_and_nobody_else() {
    for (end, is_delivered) in [(ROUTER, false), (HOME_AGENT, true)] {
        let mut agent = visited();
        let outer = OuterHeader {
            source: end,
            destination: FOREIGN,
            ttl: 64,
            identification: 1,
        };
        let inner = segment(CORRESPONDENT, MOBILE, 1, 10);
        let packet = encapsulate(inner, outer).expect("it fits");
        let _ = agent.handle_packet(Instant::ZERO, BACKBONE, packet);
        assert_eq!(agent.poll_transmit().is_some(), is_delivered);
        assert_eq!(agent.counters().dropped_strangers, u64::from(!is_delivered));
    }
}

/// An ICMP error of a router about `packet`.
fn too_big(mtu: u32, packet: &Packet) -> Packet {
    let error = Packet::icmp_error(ROUTER.into(), IcmpNotice::TooBig { mtu }, packet);
    error.expect("an error")
}

/// A home agent to which the mobile node is bound, perhaps by a tunnel in UDP.
fn bound(has_udp: bool) -> HomeAgent {
    let mut home = HomeAgent::new(
        Instant::ZERO,
        HomeAgentConfig {
            udp_tunnels: Some(UdpTunnelOffer::default()),
            ..home_config()
        },
    );
    let asked = match has_udp {
        true => co_located(CO_LOCATED, RequestFlags::REVERSE_TUNNEL),
        false => request(),
    };
    let message = match has_udp {
        true => asked.emit().udp_tunnel_request(WISH),
        false => asked.emit(),
    };
    let _ = ask_home(&mut home, Instant::ZERO, &sign(message, 256)).expect("an answer");
    home
}

/// A segment for the mobile node; what the home agent sends about it.
fn tunnelled(home: &mut HomeAgent, now: Instant, length: usize) -> Packet {
    let inner = segment(CORRESPONDENT, MOBILE, 7, length);
    let _ = home.handle_packet(now, BACKBONE, inner);
    let mut sent = packets(core::iter::from_fn(|| home.poll_transmit()));
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.remove(0).0
}

/// The MTU that an error tells, if the packet is one.
fn told(packet: &Packet) -> Option<u32> {
    match &packet.header().transport {
        Transport::IcmpError(about) => about.mtu,
        _ => None,
    }
}

/// The sum that goes into a checksum's field, which holds zeros.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum = bytes.chunks(2).fold(0_u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]))
    });
    let sum = (sum & 0xffff) + (sum >> 16);
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

/// The packet of these bytes, whose header gets its checksum.
fn with_header_checksum(mut bytes: Vec<u8>) -> Packet {
    bytes[10..12].fill(0);
    let sum = checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&sum);
    Packet::parse(bytes.into()).expect("a packet")
}

/// The outer packet with another identification, or for a datagram another checksum.
fn guessed(outer: &Packet, number: u16) -> Packet {
    let mut bytes = outer.to_bytes().to_vec();
    let at = match outer.header().transport {
        Transport::Udp(_) => 26,
        _ => 4,
    };
    let right = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    bytes[at..at + 2].copy_from_slice(&right.wrapping_add(number).to_be_bytes());
    with_header_checksum(bytes)
}

/// One forged error lowered a correspondent's MTU to 552 for ten minutes. Now it has to quote what was sent
/// (RFC 1191, section 4; RFC 5927, section 7.2), and none goes below 576.
#[test]
fn a_forged_too_big_changes_nothing_and_a_true_one_is_believed() {
    for has_udp in [false, true] {
        let now = Instant::ZERO;
        let mut home = bound(has_udp);
        let outer = tunnelled(&mut home, now, 1_300);
        let reply = |home: &mut HomeAgent, error: Packet| {
            let _ = home.handle_packet(now, BACKBONE, error);
            packets(core::iter::from_fn(|| home.poll_transmit()))
        };
        // Wrong by one, and by much.
        for number in [1, 0xffff, 0x8000] {
            let forged = too_big(68, &guessed(&outer, number));
            assert!(reply(&mut home, forged).is_empty());
        }
        assert_eq!(told(&tunnelled(&mut home, now, 1_300)), None);
        // It would have been carried.
        let longer = too_big(outer.total_len(), &outer);
        assert!(reply(&mut home, longer).is_empty());
        assert_eq!(told(&tunnelled(&mut home, now, 1_300)), None);
        assert!(home.counters().dropped_errors >= 4);
        // The control: a router's, and one that says too little.
        let overhead = if has_udp { 32 } else { 20 };
        for (mtu, believed) in [(1_000, 1_000), (68, 576), (0, 576)] {
            let relayed = reply(&mut home, too_big(mtu, &outer));
            let relayed: Vec<_> = relayed
                .iter()
                .filter_map(|(packet, _)| told(packet))
                .collect();
            let expected = if has_udp { vec![] } else { vec![believed - 20] };
            assert_eq!(relayed, expected);
            let answer = told(&tunnelled(&mut home, now, 1_300));
            assert_eq!(answer, Some(believed - overhead), "udp: {has_udp}");
        }
    }
}

/// Of 65,536 numbers one is right. Who tries them is not read any more for a while.
#[test]
fn whoever_guesses_what_was_sent_has_few_tries() {
    let mut home = bound(false);
    let outer = tunnelled(&mut home, Instant::ZERO, 1_300);
    for number in 1..=8 {
        let forged = too_big(1_000, &guessed(&outer, number));
        let _ = home.handle_packet(Instant::ZERO, BACKBONE, forged);
    }
    let right = too_big(1_000, &outer);
    let _ = home.handle_packet(Instant::ZERO, BACKBONE, right.clone());
    assert_eq!(told(&tunnelled(&mut home, Instant::ZERO, 1_300)), None);
    let later = Instant::ZERO + SECOND * 2;
    let _ = home.handle_packet(later, BACKBONE, right);
    assert!(home.poll_transmit().is_some(), "relayed");
    assert_eq!(told(&tunnelled(&mut home, later, 1_300)), Some(980));
}

/// Routers may quote eight bytes behind the header alone (RFC 792).
#[test]
fn a_short_quotation_is_enough() {
    let mut home = bound(false);
    let outer = tunnelled(&mut home, Instant::ZERO, 1_300);
    let short = |outer: &Packet| {
        let mut message = vec![3, 4, 0, 0, 0, 0, 3, 232];
        message.extend_from_slice(&outer.to_bytes()[..28]);
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum);
        let ip = IpHeader::new(ROUTER.into(), HOME_AGENT.into());
        let packet = Packet::of_protocol(ip, 1, &message);
        Packet::parse(packet.to_bytes()).expect("a packet")
    };
    let _ = home.handle_packet(Instant::ZERO, BACKBONE, short(&guessed(&outer, 9)));
    assert_eq!(told(&tunnelled(&mut home, Instant::ZERO, 1_300)), None);
    let _ = home.handle_packet(Instant::ZERO, BACKBONE, short(&outer));
    let answer = told(&tunnelled(&mut home, Instant::ZERO, 1_300));
    assert_eq!(answer, Some(980));
}

/// At a mobile node the host's own programs would be told.
#[test]
fn a_mobile_node_believes_errors_about_its_own_packets_alone() {
    let mut node = registered(UdpTunnelReply::NO);
    let send = |node: &mut MobileNode| {
        let _ = node.handle_outgoing(Instant::ZERO, segment(MOBILE, CORRESPONDENT, 3, 1_300));
        packets(core::iter::from_fn(|| node.poll_transmit()))
            .remove(0)
            .0
    };
    let outer = send(&mut node);
    for (number, mtu) in [(1, None), (0, Some(980))] {
        let error = too_big(1_000, &guessed(&outer, number));
        let _ = node.handle_packet(Instant::ZERO, ARRIVAL, &error);
        while node.poll_transmit().is_some() {}
        assert_eq!(told(&send(&mut node)), mtu);
    }
}

/// A fragment's place counts, too: fragments of one packet have outer numbers of their own.
#[test]
fn fragments_of_one_packet_differ_outside() {
    let mut home = bound(false);
    let ids = [0_u8, 100, 200].map(|place| {
        let mut bytes = segment(CORRESPONDENT, MOBILE, 7, 800).to_bytes().to_vec();
        bytes[6..8].copy_from_slice(&[0x20, place]);
        let inner = with_header_checksum(bytes);
        let _ = home.handle_packet(Instant::ZERO, BACKBONE, inner);
        let sent = packets(core::iter::from_fn(|| home.poll_transmit()));
        sent[0].0.header().ip.identification
    });
    assert!(
        ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2],
        "{ids:?}"
    );
}

/// A forged "unreachable" refuses no visitor's request: it has to quote what was relayed.
#[test]
fn a_forged_unreachable_refuses_nobody() {
    let mut agent = foreign();
    let bytes = sign(request().emit(), 256);
    let packet = datagram(MOBILE, FOREIGN, 255, &bytes);
    let _ = agent.handle_packet(Instant::ZERO, ARRIVAL, packet);
    let relayed = packets(core::iter::from_fn(|| agent.poll_transmit()))
        .remove(0)
        .0;
    let unreachable = |packet: &Packet| {
        let error = Packet::icmp_error(ROUTER.into(), IcmpNotice::HostUnreachable, packet);
        error.expect("an error")
    };
    let _ = agent.handle_packet(Instant::ZERO, BACKBONE, unreachable(&guessed(&relayed, 1)));
    assert!(agent.poll_transmit().is_none());
    assert_eq!(agent.pending(), 1);
    let _ = agent.handle_packet(Instant::ZERO, BACKBONE, unreachable(&relayed));
    let told = replies(core::iter::from_fn(|| agent.poll_transmit()));
    assert_eq!(told[0].0.code, ReplyCode::FOREIGN_HOME_AGENT_UNREACHABLE);
}

/// RFC 5944, section 3.7.2, demands a refusal a second to one mobile node, and no more.
#[test]
fn a_foreign_agent_refuses_few_of_many_requests_and_tells_of_few() {
    let mut agent = foreign();
    let bad = RegistrationRequest {
        flags: RequestFlags(4),
        ..request()
    };
    let bytes = sign(bad.emit(), 256);
    let (mut answers, mut reports) = (0, 0);
    for number in 0..10_000_u32 {
        let now = Instant::ZERO + Duration::from_millis(1) * number;
        let from = LinkAddress([0, 0, 0, 0, 0, (number % 2) as u8]);
        let packet = datagram(MOBILE, FOREIGN, 255, &bytes);
        let _ = agent.handle_packet(now, Arrival { from, ..ARRIVAL }, packet);
        answers += replies(core::iter::from_fn(|| agent.poll_transmit())).len();
        while agent.poll_event().is_some() {
            reports += 1;
        }
    }
    assert!((40..=88).contains(&answers), "{answers}");
    assert!((20..=30).contains(&reports), "{reports}");
    assert_eq!(agent.counters().refused, 10_000);
}

/// The home agent's refusal of `asked`, at the foreign agent.
fn refusal(asked: &RegistrationRequest) -> Packet {
    let reply = RegistrationReply {
        code: ReplyCode::HOME_IDENTIFICATION,
        lifetime: Lifetime(0),
        home_address: asked.home_address,
        home_agent: HOME_AGENT,
        identification: asked.identification,
    };
    datagram(HOME_AGENT, FOREIGN, 64, &signed(reply.emit()).finish())
}

/// Requests that a foreign agent relays of one every `between` from `node_of(number)`, for ten seconds.
///
/// The home agent refuses each at once, or answers nothing.
fn relayed_in_ten_seconds(
    between: Duration,
    is_answered: bool,
    mut ask: impl FnMut(u32) -> (LinkAddress, RegistrationRequest),
) -> usize {
    let mut agent = foreign();
    let mut relayed = 0;
    for number in 0.. {
        let now = Instant::ZERO + between * number;
        if now >= Instant::ZERO + SECOND * 10 {
            break;
        }
        let (from, asked) = ask(number);
        let packet = datagram(MOBILE, FOREIGN, 255, &sign(asked.emit(), 256));
        agent.handle_timeout(now);
        let _ = agent.handle_packet(now, Arrival { from, ..ARRIVAL }, packet);
        let sent = packets(core::iter::from_fn(|| agent.poll_transmit()));
        let to_home = sent
            .iter()
            .filter(|(packet, _)| packet.header().ip.destination == HOME_AGENT)
            .count();
        relayed += to_home;
        if is_answered && to_home > 0 {
            let _ = agent.handle_packet(now, BACKBONE, refusal(&asked));
            while agent.poll_transmit().is_some() {}
        }
        while agent.poll_event().is_some() {}
    }
    assert_eq!(agent.counters().relayed, relayed as u64);
    relayed
}

/// 10,000 requests in ten seconds were 10,000 packets to a home agent that the sender chooses. RFC 5944, section
/// 3.6.3: a mobile node repeats a request after a second at the earliest.
#[test]
fn a_foreign_agent_relays_few_of_a_flood_and_all_that_a_mobile_node_repeats() {
    let of_node = |number| LinkAddress([0, 0, 0, 0, 0, number]);
    let copy = |_| (of_node(0), request());
    let copy_of_anybody = |number| (of_node(number as u8), request());
    let new = |number| {
        let identification = request().identification + u64::from(number);
        let asked = RegistrationRequest {
            identification,
            ..request()
        };
        (of_node(0), asked)
    };
    let (flood, honest) = (Duration::from_millis(1), SECOND);
    for is_answered in [false, true] {
        assert_eq!(relayed_in_ten_seconds(flood, is_answered, copy), 20);
        assert_eq!(
            relayed_in_ten_seconds(flood, is_answered, copy_of_anybody),
            20
        );
        assert_eq!(relayed_in_ten_seconds(honest, is_answered, copy), 10);
    }
    // Four places, each for seven seconds or half a second.
    assert_eq!(relayed_in_ten_seconds(flood, false, new), 8);
    assert_eq!(relayed_in_ten_seconds(flood, true, new), 80);
    // Strangers have six places in all.
    let of_anybody = |number: u32| (of_node((number % 250) as u8), new(number).1);
    assert_eq!(relayed_in_ten_seconds(flood, true, of_anybody), 120);
    assert_eq!(relayed_in_ten_seconds(honest, true, new), 10);
}

/// A copy of a visitor's request, from elsewhere or for another home agent, takes neither its answer nor its place.
#[test]
fn a_copy_of_a_request_does_not_take_its_answer() {
    let stranger = Arrival {
        from: LinkAddress([9; 6]),
        ..ARRIVAL
    };
    let elsewhere = RegistrationRequest {
        home_agent: ROUTER,
        ..request()
    };
    for (arrival, asked) in [(stranger, request()), (ARRIVAL, elsewhere)] {
        for has_copy in [false, true] {
            let mut agent = foreign();
            assert_eq!(
                ask_foreign(&mut agent, 255, &sign(request().emit(), 256)),
                None
            );
            let now = Instant::ZERO + SECOND;
            if has_copy {
                let packet = datagram(MOBILE, FOREIGN, 255, &sign(asked.emit(), 256));
                let _ = agent.handle_packet(now, arrival, packet);
                assert!(agent.poll_transmit().is_none(), "{asked:?}");
            }
            let _ = agent.handle_packet(now, BACKBONE, refusal(&request()));
            let told = packets(core::iter::from_fn(|| agent.poll_transmit()));
            let expected = Via::Neighbour(LinkId(0), ARRIVAL.from);
            assert!(
                matches!(&told[..], [(_, via)] if *via == expected),
                "{told:?}"
            );
            assert_eq!(agent.counters().repeated, u64::from(has_copy));
        }
    }
}

/// As in Mobile IPv4: 1,000 replays of one update, 1,000 forged ones.
#[test]
fn replays_of_updates_are_answered_within_limits_and_told_of_a_few_times() {
    let mut network = v6::Network::new(v6::Setup::default());
    network.place(0, Some(1));
    network.run(v6::ms(100));
    let update = network.posted.iter().map(|(_, packet)| packet);
    let mut update =
        update.filter(|packet| outlast_wire::mobile_ipv6::home_address_of(packet).is_some());
    let recorded = update.next().cloned().expect("an update");
    network.home_events.clear();
    let before = network.posted.len();
    for _ in 0..1_000 {
        network.replay(recorded.clone());
    }
    let answers = &network.posted[before..];
    assert!((1..=10).contains(&answers.len()), "{}", answers.len());
    for (_, packet) in answers {
        assert!(packet.total_len() <= recorded.total_len());
    }
    assert!((1..=20).contains(&network.home_events.len()));
    assert_eq!(network.home.counters().refused_for_identification, 1_000);
}

/// A "too big" about a tunnel of IPv6 quotes a packet that can have been sent (RFC 8201, section 4).
#[test]
fn a_forged_too_big_about_a_tunnel_of_ipv6_changes_nothing() {
    use outlast_wire::mobile_ipv6::encapsulate;
    let mut network = v6::Network::new(v6::Setup::default());
    network.place(0, Some(1));
    network.run(v6::ms(100));
    let agent = network.home_config.address;
    let end = v6::care_of_address(0, 1);
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    let inner = |to: std::net::Ipv6Addr| {
        let ip = IpHeader::new(v6::correspondent_address(0).into(), to.into());
        Packet::udp_datagram(ip, udp, &[1; 1_350])
    };
    let error = |outer: &Packet, mtu| {
        let router = v6::correspondent_address(9).into();
        Packet::icmp_error(router, IcmpNotice::TooBig { mtu }, outer).expect("an error")
    };
    let home = v6::home_address(0);
    let fits = |inner, source, destination| encapsulate(inner, source, destination).expect("fits");
    let stranger = v6::home_address(1);
    let forged = [
        error(&fits(inner(stranger), agent, end), 1_280),
        error(&fits(inner(home), v6::correspondent_address(3), end), 1_280),
        error(&fits(inner(home), agent, v6::care_of_address(0, 2)), 1_280),
        error(&fits(inner(home), agent, end), 9_000),
    ];
    let mut turned = |packet: Packet| {
        let before = network.home.counters().turned_round;
        network.replay(packet);
        network.replay(inner(home));
        network.home.counters().turned_round - before
    };
    for packet in forged {
        assert_eq!(turned(packet), 0);
    }
    // The control: a router's error is passed on, and the next packet answered.
    assert_eq!(turned(error(&fits(inner(home), agent, end), 1_300)), 2);
}

/// As in Mobile IPv4: a mobile node may be the router of a private network, and a packet for that does not leave its
/// tunnel (RFC 6275, section 11.3.3).
#[test]
fn a_mobile_node_of_ipv6_takes_only_what_is_for_its_home_address_out_of_its_tunnel() {
    use outlast_wire::mobile_ipv6::encapsulate;
    use std::net::Ipv6Addr;
    let mut network = v6::Network::new(v6::Setup::default());
    network.place(0, Some(1));
    network.run(v6::ms(100));
    let (agent, end) = (network.home_config.address, v6::care_of_address(0, 1));
    let now = network.now;
    let node = &mut network.mobiles[0].node;
    assert!(node.is_registered());
    let sender = v6::correspondent_address(0);
    let wrapped = |inner, by: Ipv6Addr| encapsulate(inner, by, end).expect("it fits");
    let private = |host| Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, host);
    let groups = [
        Ipv6Addr::LOCALHOST,
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        end,
        v6::home_address(1),
    ];
    let others: Vec<_> = (1..=20).map(private).chain(groups).collect();
    let mut dropped = 0;
    for other in &others {
        let inner = v6::probe(sender, *other);
        // An error about a packet of somebody else's, too.
        let error = Packet::icmp_error(
            sender.into(),
            IcmpNotice::TooBig { mtu: 1_300 },
            &v6::probe(*other, sender),
        );
        // There is none about a group's packet, or about one of this host alone.
        for inner in core::iter::once(inner).chain(error) {
            dropped += 1;
            let verdict = node.handle_packet(now, &wrapped(inner, agent));
            assert_eq!(verdict, Verdict::Taken, "{other}");
            assert!(node.poll_transmit().is_none(), "{other}");
        }
    }
    assert_eq!(node.counters().dropped_unfit, dropped);
    assert!(dropped > others.len() as u64);
    let own = v6::probe(sender, v6::home_address(0));
    for stranger in [sender, private(1)] {
        let verdict = node.handle_packet(now, &wrapped(own.clone(), stranger));
        assert_eq!(verdict, Verdict::Pass, "{stranger}");
        assert!(node.poll_transmit().is_none(), "{stranger}");
    }
    // The control: its own arrives.
    let _ = node.handle_packet(now, &wrapped(own, agent));
    let delivered = packets(core::iter::from_fn(|| node.poll_transmit()));
    assert!(matches!(&delivered[..], [(_, Via::Local)]), "{delivered:?}");
}
