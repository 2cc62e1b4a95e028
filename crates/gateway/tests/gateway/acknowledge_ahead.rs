//! `acknowledge-ahead`: what is kept is acknowledged, and what is acknowledged is delivered.

use crate::path::{LITTLE, MSS, Path, Sent};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_gateway::tracking::{FlowKey, TcpFlow};
use outlast_wire::TcpFlags;

fn path() -> Path {
    Path::established(PathMechanismKind::AcknowledgeAhead)
}

/// What the sender hears from the gateway: why, what is acknowledged, and whether the window is
/// open. What goes onto the link is left out.
fn heard(path: &mut Path) -> Vec<(SendReason, u32, bool)> {
    let mut heard = Vec::new();
    while let Some(transmit) = path.gateway.poll_transmit() {
        if transmit.direction == Direction::FromLink {
            let tcp = transmit.packet.tcp().expect("a segment");
            assert_eq!(tcp.flags, TcpFlags::ACK);
            let ack = tcp.ack.distance_from(path.near_number(0)).unsigned_abs();
            heard.push((transmit.reason, ack, tcp.window > 0));
        }
    }
    heard
}

const CLOSED: SendReason = SendReason::WindowClosed;
const OPENED: SendReason = SendReason::WindowOpened;

/// Ten segments outstanding, all acknowledged by the gateway.
fn frozen() -> Path {
    let mut path = path();
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, 10 * MSS, false)]);
    path
}

/// The bytes of everything that goes onto the link within a minute, each first byte once.
fn delivered(path: &mut Path) -> Vec<u32> {
    path.after_ms(60_000);
    let mut firsts: Vec<u32> = path
        .sent()
        .iter()
        .filter_map(|sent| match sent {
            Sent::Data(first, ..) => Some(*first),
            _ => None,
        })
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    firsts
}

#[test]
fn all_that_is_outstanding_is_acknowledged_and_delivered() {
    let mut path = frozen();
    path.after_ms(30_000);
    path.up();
    // What its SYN-ACK offered, which is never scaled, less what is acknowledged.
    let offered = (65_535 - 10 * 1_000) >> 7;
    let opened = path.gateway.poll_transmit().expect("the window opens");
    assert_eq!(
        (opened.direction, opened.reason),
        (Direction::FromLink, OPENED)
    );
    assert_eq!(opened.packet.tcp().expect("a segment").window, offered);
    let firsts: Vec<u32> = (0..10).map(|n| n * MSS).collect();
    assert_eq!(delivered(&mut path), firsts);
    path.far_ack(10 * MSS);
    assert!(path.gateway.held() <= LITTLE);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn who_knows_nothing_of_the_connection_does_not_make_it_forgotten() {
    let mut path = frozen();
    let segment = path.data_packet(0, MSS);
    let key = FlowKey::of_tcp(segment.header(), Direction::ToLink).expect("TCP");
    path.gateway
        .adopt(path.now(), path.link, key, TcpFlow::new());
    path.up();
    let firsts: Vec<u32> = (0..10).map(|n| n * MSS).collect();
    assert_eq!(delivered(&mut path), firsts);
}

#[test]
fn what_is_still_under_way_to_the_gateway_is_acknowledged_too() {
    let mut path = frozen();
    path.data(10 * MSS, MSS);
    path.data(11 * MSS, MSS);
    let acks = [(CLOSED, 11 * MSS, false), (CLOSED, 12 * MSS, false)];
    assert_eq!(heard(&mut path), acks);
    assert_eq!(path.gateway.counters().freezes, 1);
}

#[test]
fn behind_a_gap_nothing_is_acknowledged() {
    let mut path = path();
    path.data(0, MSS);
    path.down();
    path.data(2 * MSS, MSS);
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
    path.data(MSS, MSS);
    assert_eq!(heard(&mut path), [(CLOSED, 3 * MSS, false)]);
}

#[test]
fn a_probe_is_answered_and_its_byte_is_not_kept() {
    let mut path = frozen();
    let held = path.gateway.held();
    for _ in 0..3 {
        path.after_ms(5_000);
        path.data(10 * MSS, 1);
        assert_eq!(heard(&mut path), [(CLOSED, 10 * MSS, false)]);
    }
    assert_eq!(path.gateway.held(), held);
}

#[test]
fn a_part_that_the_far_host_acknowledges_opens_the_window_further() {
    let mut path = frozen();
    path.up();
    assert_eq!(heard(&mut path)[0], (OPENED, 10 * MSS, true));
    path.after_ms(50);
    path.far_ack(4 * MSS);
    assert_eq!(heard(&mut path), [(OPENED, 10 * MSS, true)]);
    path.far_ack(10 * MSS);
    assert_eq!(heard(&mut path), [], "the far host speaks for itself");
}

#[test]
fn a_fin_is_never_acknowledged_for_the_far_host() {
    let mut path = path();
    path.data(0, MSS);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
    let mut fin = path.data_packet(MSS, MSS).edit();
    let _ = fin.set_flags(TcpFlags::FIN | TcpFlags::ACK);
    path.near_sends(&fin.finish());
    assert_eq!(heard(&mut path), []);
    path.up();
    assert_eq!(delivered(&mut path), [0, MSS], "it is held like everything");
}

#[test]
fn what_does_not_fit_is_not_acknowledged_and_costs_nothing_that_is() {
    let limits = Limits {
        held_per_flow: ByteCount(6_000),
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::AcknowledgeAhead, limits);
    path.open();
    path.after_ms(1_000);
    path.down();
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    let acked = heard(&mut path).last().expect("something fits").1;
    assert!((MSS..10 * MSS).contains(&acked), "{acked}");
    path.up();
    let expected: Vec<u32> = (0..acked / MSS).map(|n| n * MSS).collect();
    assert_eq!(delivered(&mut path), expected);
}

#[test]
fn a_timestamp_that_the_far_host_would_reject_is_renewed() {
    let mut path = frozen();
    path.up();
    path.after_ms(100);
    while path.gateway.poll_transmit().is_some() {}
    // A newer segment has arrived, and its timestamp is what counts from now on.
    path.data(10 * MSS, MSS);
    path.far_ack_echoing(2 * MSS, 110);
    path.down();
    path.up();
    path.after_ms(1_000);
    let stale = path
        .sent()
        .into_iter()
        .filter(|sent| matches!(sent, Sent::Data(_, _, stamp) if *stamp < 110))
        .count();
    assert_eq!(stale, 0);
}

#[test]
fn a_reset_ends_it() {
    let mut path = frozen();
    path.rst(10 * MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    path.after_ms(60_000);
    let data = path
        .sent()
        .into_iter()
        .filter(|sent| matches!(sent, Sent::Data(..)));
    assert_eq!(data.count(), 0);
}

#[test]
fn what_does_not_fit_beside_what_is_acknowledged_is_counted() {
    let limits = Limits {
        held_per_flow: ByteCount(12_000),
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::AcknowledgeAhead, limits);
    path.open();
    path.after_ms(1_000);
    path.down();
    let not_taken = |path: &mut Path, n| path.data(n * MSS, MSS).is_none();
    let lost = (0..20).filter(|n| not_taken(&mut path, *n)).count() as u64;
    assert!(lost > 0);
    let counters = path.gateway.counters();
    assert_eq!((counters.not_kept, counters.fallbacks), (lost, 0));
}

#[test]
fn a_table_of_nothing_but_frozen_connections_refuses_others_and_says_so() {
    let limits = Limits {
        flows: 2,
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::AcknowledgeAhead, limits);
    for port in [6_000, 6_001] {
        path.use_port(port);
        path.open();
        path.data(0, MSS);
        path.down();
        path.up();
    }
    let counters = path.gateway.counters();
    assert_eq!((counters.freezes, counters.flows_refused), (2, 0));
    path.use_port(7_000);
    assert_eq!(path.syn(), None, "it passes");
    let counters = path.gateway.counters();
    assert_eq!((counters.flows_refused, counters.flows_displaced), (1, 0));
    // Those that were there are delivered.
    path.after_ms(60_000);
    let sent = path.sent_ports();
    assert!(sent.contains(&6_000) && sent.contains(&6_001), "{sent:?}");
}

#[test]
fn nothing_is_acknowledged_on_a_guess_of_what_the_far_host_has() {
    let mut path = Path::new(PathMechanismKind::AcknowledgeAhead);
    // The first that is seen of an older connection. The far host lacks what came before it.
    path.data(9 * MSS, MSS);
    path.after_ms(10);
    path.far_ack(0);
    path.down();
    path.data(9 * MSS, MSS);
    path.after_ms(5_000);
    // It is held, and no more.
    let said = heard(&mut path);
    assert!(said.iter().all(|(_, ack, _)| *ack == 0), "{said:?}");
    path.up();
    path.after_ms(1_000);
    path.far_ack(10 * MSS);
    let _ = heard(&mut path);
    // What the far host has acknowledged here itself is no guess.
    path.data(10 * MSS, MSS);
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, 11 * MSS, false)]);
}

#[test]
fn a_window_whose_scale_nobody_knows_is_the_far_hosts_to_open() {
    let mut path = Path::new(PathMechanismKind::AcknowledgeAhead);
    path.data(0, MSS);
    path.after_ms(10);
    path.far_ack(MSS);
    path.data(MSS, MSS);
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, 2 * MSS, false)]);
    path.up();
    // To say more than it has would have the sender overrun it.
    assert_eq!(heard(&mut path), [(OPENED, 2 * MSS, false)]);
    path.far_ack(2 * MSS);
    assert!(path.gateway.held() <= LITTLE);
}

/// Two small segments, and one of full size that repeats both and goes on, as some hosts retransmit.
#[test]
fn a_segment_that_repeats_smaller_ones_and_goes_on_is_acknowledged_and_delivered() {
    let mut path = path();
    path.data(0, 100);
    path.data(100, 100);
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, 200, false)]);
    path.after_ms(300);
    path.data(0, MSS);
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
    path.up();
    assert_eq!(heard(&mut path), [(OPENED, MSS, true)]);
    // It hears something newer than what is kept, from before; its sender will not repeat that.
    path.after_ms(5);
    path.data(MSS, MSS);
    path.far_ack_echoing(0, 315);
    path.after_ms(60_000);
    let sent = path.sent();
    let first = |sent: &Sent| matches!(sent, Sent::Data(0, MSS, stamp) if *stamp >= 315);
    assert!(sent.iter().any(first), "{sent:?}");
}

/// RFC 7323, section 2.2: neither host scales its window if one of them does not offer to.
#[test]
fn a_window_that_may_not_be_scaled_is_the_far_hosts_to_open() {
    let mut path = Path::new(PathMechanismKind::AcknowledgeAhead);
    path.open_unscaled();
    path.after_ms(1_000);
    path.far_ack(0);
    path.data(0, MSS);
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
    path.up();
    let opened = heard(&mut path);
    assert_eq!(opened, [(OPENED, MSS, false)]);
}

/// The acknowledgement crosses its repetition, which goes on.
#[test]
fn what_was_acknowledged_stays_so_if_a_longer_segment_takes_its_place() {
    let mut path = path();
    path.data(0, 200);
    path.after_ms(10);
    path.down();
    assert_eq!(heard(&mut path), [(CLOSED, 200, false)]);
    path.up();
    path.after_ms(5);
    path.data(0, MSS);
    path.after_ms(500);
    while path.gateway.poll_transmit().is_some() {}
    // The far host has heard something newer, and lacks it still.
    path.data(MSS, MSS);
    path.far_ack_echoing(0, 515);
    path.after_ms(60_000);
    let sent = path.sent();
    let first = |sent: &Sent| matches!(sent, Sent::Data(0, MSS, stamp) if *stamp >= 515);
    assert!(sent.iter().any(first), "{sent:?}");
}

/// A connection that is frozen, whose link comes and goes again; others go before what it is told.
fn told_late() -> Path {
    let rate = BitRate::from_bits_per_second(64_000);
    let kind = PathMechanismKind::AcknowledgeAhead;
    let mut path = Path::with_rate(kind, Limits::default(), rate);
    for port in 6_000..6_009 {
        path.use_port(port);
        path.open();
    }
    path.after_ms(1_000);
    path.data(0, MSS);
    path.down();
    for port in 6_000..6_008 {
        path.use_port(port);
        path.far_data(0, 100);
        path.near_ack(100);
    }
    path.after_ms(1_000);
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
    path.up();
    path.down();
    path
}

#[test]
fn no_window_opens_while_the_link_is_down() {
    let mut path = told_late();
    path.after_ms(60_000);
    assert_eq!(heard(&mut path), [(CLOSED, MSS, false)]);
}

#[test]
fn what_is_acknowledged_elsewhere_before_its_turn_closes_no_window_either() {
    let mut path = told_late();
    path.use_port(6_008);
    acknowledged_elsewhere(&mut path, MSS);
    path.after_ms(60_000);
    assert_eq!(heard(&mut path), []);
}

#[test]
fn a_window_that_was_opened_closes_when_the_link_goes_again() {
    let mut path = frozen();
    path.up();
    assert_eq!(heard(&mut path), [(OPENED, 10 * MSS, true)]);
    path.after_ms(5);
    path.down();
    path.after_ms(1_000);
    assert_eq!(heard(&mut path), [(CLOSED, 10 * MSS, false)]);
}

#[test]
fn what_the_far_host_has_acknowledged_elsewhere_closes_no_window() {
    let mut path = frozen();
    path.up();
    assert_eq!(heard(&mut path), [(OPENED, 10 * MSS, true)]);
    acknowledged_elsewhere(&mut path, 10 * MSS);
    path.down();
    assert_eq!(heard(&mut path), []);
}

/// Who tracks the connection elsewhere tells that the far host has everything before `end`.
fn acknowledged_elsewhere(path: &mut Path, end: u32) {
    let segment = path.data_packet(end - MSS, MSS);
    let answer = path.far_packet_acking(end, &[]);
    let mut elsewhere = TcpFlow::new();
    for (direction, packet) in [
        (Direction::ToLink, &segment),
        (Direction::FromLink, &answer),
    ] {
        let tcp = packet.tcp().expect("a segment");
        let len = packet.header().payload_len;
        let seen = elsewhere.observe(path.now(), direction, tcp, len);
        assert!(seen.is_ok(), "{seen:?}");
    }
    let key = FlowKey::of_tcp(segment.header(), Direction::ToLink).expect("TCP");
    path.gateway.adopt(path.now(), path.link, key, elsewhere);
}
