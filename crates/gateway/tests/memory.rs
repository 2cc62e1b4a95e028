//! What a connection costs in memory, and that many cost no more each than few.

mod counting;

use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState,
};
use outlast_gateway::mechanisms::path::{
    Level, PathMechanismKind, SendReason, TakeReason, Verdict,
};
use outlast_gateway::tracking::Phase;
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
/// What an operator may reckon with: at most so much for a connection that is open and idle.
const MOST: usize = 512;

/// How a connection is numbered and addressed.
#[derive(Clone, Copy, Debug)]
enum Family {
    V4,
    V6,
}

/// Opens connection `number` and sends a request and an answer over it.
fn converse(gateway: &mut Gateway, now: Instant, family: Family, number: u32) {
    let (near, far) = (TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK);
    let ack = TcpFlags::ACK;
    let segments = [
        (Direction::ToLink, near, 0, 0, 0),
        (Direction::FromLink, far, 0, 1, 0),
        (Direction::ToLink, ack, 1, 1, 0),
        (Direction::ToLink, ack, 1, 1, 100),
        (Direction::FromLink, ack, 1, 101, 0),
        (Direction::FromLink, ack, 1, 101, 1_000),
        (Direction::ToLink, ack, 101, 1_001, 0),
    ];
    for (direction, flags, seq, ack, len) in segments {
        let packet = segment(family, number, direction, flags, (seq, ack), len);
        let verdict = gateway.handle_packet(now, LINK, direction, &packet);
        // A supervisor host passes acknowledgements on with other numbers.
        let is_supervised = verdict == Verdict::Taken(TakeReason::Supervised);
        assert!(is_supervised || verdict == Verdict::Pass, "{verdict:?}");
        while let Some(transmit) = gateway.poll_transmit() {
            assert_eq!(transmit.reason, SendReason::Supervised, "{packet:?}");
        }
    }
    assert!(gateway.poll_transmit().is_none());
}

fn segment(
    family: Family,
    number: u32,
    direction: Direction,
    flags: TcpFlags,
    (seq, ack): (u32, u32),
    len: usize,
) -> Packet {
    let host = |outer: u8| -> IpAddr {
        let [a, b, c, d] = (number / 50_000).to_be_bytes();
        match family {
            Family::V4 => Ipv4Addr::new(10, outer, c, d).into(),
            Family::V6 => {
                let part = u16::from;
                Ipv6Addr::new(
                    0xfd00,
                    part(outer),
                    part(a),
                    part(b),
                    part(c),
                    0,
                    0,
                    part(d),
                )
                .into()
            }
        }
    };
    let port = u16::try_from(10_000 + number % 50_000).expect("below 60,000");
    let (near, far) = ((host(1), port), (host(2), 443));
    let (from, to) = match direction {
        Direction::ToLink => (near, far),
        Direction::FromLink => (far, near),
    };
    let ip = IpHeader {
        source: from.0,
        destination: to.0,
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from.1,
        destination_port: to.1,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 60_000,
        options: TcpOptions {
            timestamps: Some(Timestamps { value: 1, echo: 1 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    // As a live driver has it: a packet of bytes.
    Packet::tcp_segment(ip, header, &[0; 1_000][..len])
}

/// Heap bytes of a gateway with so many connections that have conversed and are idle now.
fn in_use(mechanism: PathMechanismKind, family: Family, connections: u32) -> usize {
    let before = counting::in_use();
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism,
        ..GatewayConfig::default()
    });
    gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
    let mut now = Instant::ZERO;
    for number in 0..connections {
        now += Duration::from_micros(500);
        converse(&mut gateway, now, family, number);
        advance(&mut gateway, now);
    }
    let idle = now + Duration::from_secs(60);
    advance(&mut gateway, idle);
    assert_eq!(gateway.flows(), connections as usize);
    usize::try_from(counting::in_use() - before).expect("it is still there")
}

/// Meets every deadline until `now`.
fn advance(gateway: &mut Gateway, now: Instant) {
    while let Some((at, _)) = gateway.poll_timeout()
        && at <= now
    {
        gateway.handle_timeout(at);
        // The driver has what is to be sent.
        while gateway.poll_transmit().is_some() {}
    }
}

#[test]
fn an_idle_connection_takes_at_most_512_bytes_with_every_mechanism() {
    let all = PathMechanismKind::ALL.into_iter();
    for mechanism in all.filter(|mechanism| *mechanism != PathMechanismKind::None) {
        for family in [Family::V4, Family::V6] {
            // Just behind a doubling of the index: its worst case.
            let each = in_use(mechanism, family, 3_600) / 3_600;
            println!("{mechanism}, {family:?}: {each} bytes");
            assert!((100..=MOST).contains(&each), "{mechanism}: {each} bytes");
        }
    }
}

#[test]
fn two_hundred_thousand_connections_take_no_more_each() {
    // The one that keeps something of idle connections, too, and one that does not.
    let level_two = PathMechanismKind::SmartLink(Level::Two);
    for mechanism in [PathMechanismKind::Hold, level_two] {
        let each = in_use(mechanism, Family::V6, 200_000) / 200_000;
        println!("{mechanism}: {each} bytes");
        assert!((100..=MOST).contains(&each), "{mechanism}: {each} bytes");
    }
}

/// A million SYNs with false sources: the connections that are open stay in the table, it stays
/// within its cap, and whoever opens a connection meanwhile is served.
#[test]
fn a_million_false_syns_displace_no_connection_and_keep_nobody_out() {
    const OPEN: u32 = 200_000;
    let before = counting::in_use();
    let config = GatewayConfig {
        mechanism: PathMechanismKind::Hold,
        ..GatewayConfig::default()
    };
    let cap = config.limits.flows;
    let mut gateway = Gateway::new(config);
    gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig::default());
    let mut now = Instant::ZERO;
    for number in 0..OPEN {
        now += Duration::from_micros(500);
        converse(&mut gateway, now, Family::V4, number);
    }
    advance(&mut gateway, now + Duration::from_secs(6));
    now += Duration::from_secs(6);
    let guest = 3_000_000;
    for number in 0..1_000_000 {
        now += Duration::from_nanos(500);
        let numbers = (number, 0);
        let direction = Direction::ToLink;
        let syn = segment(
            Family::V4,
            1_000_000 + number,
            direction,
            TcpFlags::SYN,
            numbers,
            0,
        );
        assert_eq!(
            gateway.handle_packet(now, LINK, direction, &syn),
            Verdict::Pass
        );
        if number % 250_000 == 125_000 {
            converse(&mut gateway, now, Family::V4, guest + number);
        }
    }
    let used = usize::try_from(counting::in_use() - before).expect("it is still there");
    let each = used / cap;
    println!("{each} bytes for each of {cap} places, under the flood");
    assert!(gateway.flows() <= cap, "{} of {cap}", gateway.flows());
    assert!(each <= MOST, "{each} bytes for each place");
    assert!(gateway.counters().flows_displaced >= 900_000);
    let established = gateway
        .flow_reports()
        .filter(|report| report.phase == Phase::Established)
        .count();
    assert_eq!(established, OPEN as usize + 4, "the guests among them");
    // All of them are held: nobody was forgotten who was there.
    let down = LinkEvent {
        link: LINK,
        state: LinkState::Down,
        indicator: Indicator::Carrier,
    };
    gateway.handle_link(now, down);
    let ack = TcpFlags::ACK;
    for number in (0..OPEN)
        .step_by(997)
        .chain([guest + 125_000, guest + 875_000])
    {
        let direction = Direction::ToLink;
        let data = segment(Family::V4, number, direction, ack, (101, 1_001), 100);
        let verdict = gateway.handle_packet(now, LINK, direction, &data);
        assert_eq!(verdict, Verdict::Taken(TakeReason::LinkDown), "{number}");
    }
}
