//! Several mobiles behind one interface, and flows that move from one link to another.

use crate::path::{LINK, LITTLE, MSS, Path, Sent};
use outlast_base::time::Instant;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use std::net::Ipv4Addr;

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);
const ELSEWHERE: LinkId = LinkId::of_interface(InterfaceId(2));

fn peer(last: u8) -> LinkId {
    LinkId {
        peer: Some(Ipv4Addr::new(192, 0, 2, last).into()),
        ..LINK
    }
}

/// The port that the tests use towards a peer.
fn port(last: u8) -> u16 {
    5_000 + u16::from(last)
}

trait Peers {
    fn turn_to(&mut self, last: u8);
}

impl Peers for Path {
    /// From now on packets go to this peer, and come from it.
    fn turn_to(&mut self, last: u8) {
        self.link = peer(last);
        self.use_port(port(last));
    }
}

/// One connection to each of two peers.
fn two_peers() -> Path {
    let mut path = Path::new(PathMechanismKind::Hold);
    for last in [1, 2] {
        path.turn_to(last);
        path.open();
    }
    path.after_ms(2_000);
    path
}

/// Whether data to each peer is taken because its link is down.
fn held(path: &mut Path, first: u32) -> [bool; 2] {
    [1, 2].map(|last| {
        path.turn_to(last);
        match path.data(first, MSS) {
            // The latter goes out at the link's pace.
            None | Some(TakeReason::BehindKept) => false,
            reason => {
                assert_eq!(reason, TAKEN);
                true
            }
        }
    })
}

#[test]
fn one_peers_outage_says_nothing_of_anothers() {
    let mut path = two_peers();
    path.turn_to(1);
    path.down();
    assert_eq!(held(&mut path, 0), [true, false]);
    path.turn_to(1);
    path.turn_to(2);
    assert_eq!(path.datagram(8), None);
    path.far_ack(MSS);
    path.after_ms(5_000);
    assert_eq!(path.sent(), []);
    path.turn_to(1);
    assert_eq!(path.datagram(7), TAKEN);
    path.up();
    path.after_ms(10);
    let sent = path.sent();
    assert!(sent.contains(&Sent::Datagram(7)), "{sent:?}");
    assert!(
        sent.iter()
            .any(|sent| matches!(sent, Sent::Data(0, MSS, _)))
    );
    assert_eq!(held(&mut path, MSS), [false, false]);
}

#[test]
fn the_flows_of_a_peer_that_is_up_are_not_sent_anything_when_another_is_back() {
    let mut path = two_peers();
    path.turn_to(2);
    path.data(0, MSS);
    path.turn_to(1);
    path.down();
    path.data(0, MSS);
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), [port(1)]);
}

#[test]
fn an_interface_without_carrier_has_no_peers() {
    let mut path = two_peers();
    path.link = LINK;
    path.down();
    assert_eq!(held(&mut path, 0), [true, true]);
    path.after_ms(1_000);
    path.link = LINK;
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), [port(1), port(2)]);
}

#[test]
fn a_peer_that_is_back_before_its_interface_waits_for_it() {
    let mut path = two_peers();
    path.turn_to(1);
    path.down();
    path.link = LINK;
    path.down();
    assert_eq!(held(&mut path, 0), [true, true]);
    path.turn_to(1);
    path.up();
    path.after_ms(1_000);
    assert_eq!(path.sent(), []);
    path.link = LINK;
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), [port(1), port(2)]);
}

#[test]
fn a_peer_that_is_down_stays_so_when_its_interface_is_back() {
    let mut path = two_peers();
    path.link = LINK;
    path.down();
    path.turn_to(1);
    path.down();
    assert_eq!(held(&mut path, 0), [true, true]);
    path.link = LINK;
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), [port(2)]);
    path.turn_to(1);
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), [port(1)]);
}

#[test]
fn an_outage_past_the_cap_of_peers_is_counted_and_passes() {
    let limits = Limits {
        peers: 1,
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
    for last in [1, 2] {
        path.turn_to(last);
        path.open();
    }
    for last in [1, 2] {
        path.turn_to(last);
        path.down();
    }
    assert_eq!(path.gateway.counters().link_events_refused, 1);
    assert_eq!(held(&mut path, 0), [true, false]);
    // One that is back makes room.
    path.turn_to(1);
    path.up();
    path.turn_to(2);
    path.down();
    assert_eq!(path.gateway.counters().link_events_refused, 1);
    assert_eq!(held(&mut path, MSS), [false, true]);
}

#[test]
fn many_returns_of_peers_do_not_exceed_the_links_rate() {
    let mut path = two_peers();
    path.turn_to(1);
    path.down();
    for n in 0..60 {
        path.data(n * MSS, MSS);
    }
    path.up();
    let mut sent = path.sent().len();
    for _ in 0..20 {
        path.turn_to(2);
        path.down();
        path.up();
        path.after_ms(1);
        sent += path.sent().len();
    }
    // 12.5 Mbit/s carry 29 packets of 1,052 bytes in 20 ms; twelve may be ahead of their time.
    assert!((29..=42).contains(&sent), "{sent} packets in 20 ms");
}

/// A connection at an interface that is down, and a second interface.
fn about_to_move(state: LinkState) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.gateway
        .add_link(Instant::ZERO, ELSEWHERE.interface, LinkConfig::default());
    path.link = ELSEWHERE;
    path.change(state);
    path.link = LINK;
    path
}

#[test]
fn a_flow_that_moves_to_a_link_that_is_up_gets_what_was_kept() {
    let mut path = about_to_move(LinkState::Up);
    path.down();
    for n in 0..3 {
        path.data(n * MSS, MSS);
    }
    path.link = ELSEWHERE;
    // The mobile is heard elsewhere.
    path.far_data(0, 10);
    let transmits: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit()).collect();
    assert_eq!(transmits.len(), 3);
    for transmit in transmits {
        assert_eq!(
            (transmit.link, transmit.direction),
            (ELSEWHERE, Direction::ToLink)
        );
    }
    path.far_ack(3 * MSS);
    assert!(path.gateway.held() <= LITTLE);
}

#[test]
fn a_flow_that_moves_to_a_link_that_is_down_is_held_there() {
    let mut path = about_to_move(LinkState::Down);
    path.down();
    for n in 0..40 {
        path.data(n * MSS, MSS);
    }
    path.up();
    assert!(!path.sent().is_empty());
    path.link = ELSEWHERE;
    assert_eq!(path.data(40 * MSS, MSS), TAKEN);
    path.after_ms(60_000);
    path.sent();
    path.after_ms(60_000);
    assert_eq!(
        path.sent(),
        [],
        "the other link does not concern it any more"
    );
    path.up();
    assert!(!path.sent().is_empty());
}
