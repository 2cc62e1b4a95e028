//! At which pace what waits goes out, and that it does.

use crate::path::{LINK, MSS, Path, Sent};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::LinkId;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind, TakeReason};
use std::net::Ipv4Addr;

fn rate_unknown() -> Path {
    Path::with_rate(PathMechanismKind::Hold, Limits::default(), None)
}

#[test]
fn datagrams_go_out_although_nothing_is_ever_acknowledged() {
    let mut path = rate_unknown();
    path.down();
    for _ in 0..50 {
        path.datagram(1_172);
    }
    path.up();
    let at_once = path.sent().len();
    assert!(
        (10..=14).contains(&at_once),
        "{at_once} packets of 1,200 bytes"
    );
    path.after_ms(1_000);
    let later = path.sent().len();
    assert!((15..=25).contains(&later), "{later} until they are too old");
    let too_old = path.gateway.counters().others_evicted;
    assert_eq!(at_once + later + usize::try_from(too_old).expect("few"), 50);
}

#[test]
fn a_flow_whose_first_burst_is_lost_is_kicked_and_not_cut_off() {
    let mut path = rate_unknown();
    path.open();
    path.down();
    for n in 0..40 {
        path.data(n * MSS, MSS);
    }
    path.up();
    assert!(path.sent().len() < 20);
    // Nothing of it arrives, and nothing is ever acknowledged.
    path.after_ms(10_000);
    assert!(path.sent().len() >= 20);
    // While something waits, what the sender tries itself brings it forward.
    path.data(40 * MSS, MSS);
    path.after_ms(200);
    assert!(
        path.sent().contains(&Sent::Data(40 * MSS, MSS, 11_040)) || path.data(0, MSS).is_none()
    );
}

#[test]
fn acknowledgements_that_nobody_acknowledges_leave_something_for_a_kick() {
    let mut path = rate_unknown();
    path.open();
    for n in 0..1_000 {
        path.far_data(n * 10, 10);
        path.near_ack(n * 10 + 10);
    }
    path.after_ms(1_000);
    path.down();
    path.data(0, MSS);
    path.up();
    assert_eq!(path.sent().len(), 1);
    for _ in 0..200 {
        path.near_ack(10_000);
    }
    path.sent();
    path.after_ms(2_000);
    assert!(path.sent().contains(&Sent::Data(0, MSS, 1_040)));
}

#[test]
fn what_is_re_received_is_spread_as_well() {
    const FLOWS: u16 = 2_000;
    let mechanism = PathMechanismKind::SmartLink(Level::Two);
    let mut path = Path::new(mechanism);
    for port in 0..FLOWS {
        path.use_port(10_000 + port);
        path.open();
        path.data(0, MSS);
        path.far_ack(MSS);
    }
    path.down();
    for port in 0..FLOWS {
        path.use_port(10_000 + port);
        path.data(MSS, MSS);
    }
    path.up();
    // Eight packets of 1,500 bytes ahead are 300 of 40.
    let at_once = path.sent().len();
    assert!(at_once <= 301, "{at_once} packets at once");
    path.after_ms(1_000);
    assert_eq!(at_once + path.sent().len(), 5 * usize::from(FLOWS));
}

/// So many connections whose link was down with one segment each, and is up again.
fn crowd(path: &mut Path, ports: std::ops::Range<u16>) {
    for port in ports.clone() {
        path.use_port(port);
        path.open();
    }
    path.after_ms(1_000);
    path.sent();
    path.down();
    for port in ports {
        path.use_port(port);
        path.data(0, MSS);
    }
    path.up();
}

#[test]
fn new_data_waits_behind_what_was_kept_of_others() {
    const IDLE: u16 = 9_000;
    let mut path = Path::new(PathMechanismKind::Hold);
    path.use_port(IDLE);
    path.open();
    crowd(&mut path, 10_000..10_040);
    let at_once = path.sent().len();
    assert!(at_once < 20, "{at_once} at once");
    path.use_port(IDLE);
    assert_eq!(path.data(0, MSS), Some(TakeReason::BehindKept));
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::BehindKept));
    // Repeated meanwhile, it waits on, and its fresh timestamp does not come before the older one.
    path.after_ms(5);
    assert_eq!(path.data(0, MSS), Some(TakeReason::BehindKept));
    path.after_ms(50);
    let sent = path.sent();
    assert_eq!(at_once + sent.len(), 40 + 2);
    let [.., first, second] = sent[..] else {
        panic!("{sent:?}");
    };
    assert!(matches!(first, Sent::Data(MSS, ..)), "{first:?}");
    assert!(matches!(second, Sent::Data(0, ..)), "{second:?}");
    // It went out but now: a repetition is of no use. What follows has nobody before it.
    path.after_ms(5);
    assert_eq!(path.data(0, MSS), Some(TakeReason::JustResent));
    let sent = path.sent().len();
    assert_eq!(path.data(2 * MSS, MSS), Some(TakeReason::BehindKept));
    assert_eq!((sent, path.sent().len()), (0, 1), "it goes at once");
    // Its sender is the one to find out whether it has arrived.
    path.far_ack(3 * MSS);
    path.after_ms(10);
    assert!(path.sent().len() <= 40, "only the others are kicked");
}

#[test]
fn who_was_never_away_waits_for_nobody() {
    let mut path = Path::new(PathMechanismKind::Hold);
    let peer = |last| LinkId {
        peer: Some(Ipv4Addr::new(10, 0, 0, last).into()),
        ..LINK
    };
    path.link = peer(2);
    path.use_port(9_000);
    path.open();
    path.link = peer(1);
    crowd(&mut path, 10_000..10_040);
    assert!(path.sent().len() < 20);
    path.link = peer(2);
    path.use_port(9_000);
    assert_eq!(path.data(0, MSS), None);
}

#[test]
fn a_link_that_says_nothing_yet_gets_little_at_first() {
    let mut path = Path::new(PathMechanismKind::Hold);
    crowd(&mut path, 10_000..10_200);
    path.after_ms(90);
    assert_eq!(path.sent().len(), 64);
    path.use_port(10_000);
    path.far_ack(MSS);
    path.after_ms(40);
    assert!(path.sent().len() > 40);
}

/// The acknowledgements of the last window were lost with the link: the first one afterwards opens all
/// of it to the sender, which sends as much at once.
#[test]
fn what_the_first_answer_opens_goes_at_the_links_pace() {
    const WINDOW: u32 = 60;
    let mut path = Path::established(PathMechanismKind::Hold);
    for n in 0..WINDOW {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.after_ms(200);
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(40);
    path.sent();
    path.far_ack(WINDOW * MSS);
    let mut passed = 0;
    for n in WINDOW..2 * WINDOW {
        passed += usize::from(path.data(n * MSS, MSS).is_none());
    }
    let at_once = passed + path.sent().len();
    assert!((8..=20).contains(&at_once), "{at_once} at once");
    // 10 Mbit/s, a quarter faster: 0.67 ms each.
    path.after_ms(40);
    assert_eq!(at_once + path.sent().len(), WINDOW as usize);
    // From then on the sender goes by its acknowledgements.
    path.far_ack(2 * WINDOW * MSS);
    path.after_ms(200);
    assert_eq!(path.data(2 * WINDOW * MSS, MSS), None);
}
