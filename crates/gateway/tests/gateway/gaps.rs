//! `hold`: segments that the gateway has not seen, as the kernel had no neighbour for them when the carrier went.

use crate::path::{MSS, Path, Sent};
use outlast_gateway::mechanisms::path::{HoldRule, HoldRules, PathMechanismKind};

/// The first segment that was not seen, of two.
const UNSEEN: u32 = 5;
/// What the sender has sent after them, into the outage.
const PROBE: u32 = UNSEEN + 2;

/// The link is back after five seconds; a round trip takes 40 ms.
fn back_again(rules: HoldRules) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.gateway.set_rules(rules);
    for n in 1..UNSEEN {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.data(PROBE * MSS, MSS);
    path.after_ms(5_000);
    path.up();
    path.after_ms(20);
    path
}

/// Which segments have gone out.
fn segments(path: &mut Path) -> Vec<u32> {
    let segment = |sent: Sent| match sent {
        Sent::Data(first, ..) => Some(first / MSS),
        _ => None,
    };
    path.sent().into_iter().filter_map(segment).collect()
}

#[test]
fn what_is_behind_a_gap_waits_until_the_gap_is_reached() {
    let mut path = back_again(HoldRules::default());
    assert_eq!(segments(&mut path), [1]);
    path.after_ms(20);
    path.far_ack(2 * MSS);
    path.after_ms(20);
    assert_eq!(segments(&mut path), [2, 3, 4]);
    path.after_ms(20);
    path.far_ack(4 * MSS);
    path.after_ms(10);
    assert_eq!(segments(&mut path), []);
    path.far_ack(UNSEEN * MSS);
    path.after_ms(10);
    // Now its sender hears of the hole, and has nothing else to hear of.
    assert_eq!(segments(&mut path), [PROBE]);
}

#[test]
fn without_that_it_comes_first() {
    let mut path = back_again(HoldRules::default().without(HoldRule::GapInOrder));
    assert_eq!(segments(&mut path), [1, PROBE]);
}

#[test]
fn what_is_behind_a_gap_that_its_sender_fills_goes_out() {
    let mut path = back_again(HoldRules::default());
    assert_eq!(segments(&mut path), [1]);
    path.data(UNSEEN * MSS, 2 * MSS);
    path.after_ms(1);
    assert!(segments(&mut path).contains(&PROBE));
}

#[test]
fn what_is_behind_a_gap_does_not_wait_for_good() {
    let mut path = back_again(HoldRules::default());
    path.after_ms(400);
    assert!(segments(&mut path).contains(&PROBE));
}

/// The sender's newest segments were sent when the carrier went, and were not seen; it sends the next new data when the
/// link is back.
fn goes_on(rules: HoldRules) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.gateway.set_rules(rules);
    for n in 1..UNSEEN {
        path.data(n * MSS, MSS);
    }
    path.down();
    // It repeats the first, and nothing shows what it has sent last.
    path.after_ms(1_000);
    path.data(MSS, MSS);
    path.after_ms(4_000);
    path.up();
    path.after_ms(20);
    assert_eq!(segments(&mut path), [1]);
    path.far_ack(2 * MSS);
    path.data(PROBE * MSS, MSS);
    path
}

#[test]
fn new_data_behind_a_gap_waits_until_the_gap_is_reached() {
    let mut path = goes_on(HoldRules::default());
    path.after_ms(20);
    assert_eq!(segments(&mut path), [2, 3, 4]);
    path.data((PROBE + 1) * MSS, MSS);
    path.far_ack(4 * MSS);
    path.after_ms(10);
    assert_eq!(segments(&mut path), []);
    path.far_ack(UNSEEN * MSS);
    path.after_ms(10);
    assert_eq!(segments(&mut path), [PROBE, PROBE + 1]);
    // Nothing is in line any more.
    path.far_sack(UNSEEN * MSS, &[(PROBE * MSS, (PROBE + 2) * MSS)]);
    path.after_ms(500);
    assert_eq!(path.data((PROBE + 2) * MSS, MSS), None);
}

#[test]
fn without_that_new_data_goes_on() {
    let mut path = goes_on(HoldRules::default().without(HoldRule::GapInOrder));
    path.after_ms(20);
    assert!(segments(&mut path).contains(&PROBE));
}

#[test]
fn new_data_behind_a_gap_does_not_wait_for_good() {
    let mut path = goes_on(HoldRules::default());
    path.after_ms(400);
    assert!(segments(&mut path).contains(&PROBE));
}

#[test]
fn a_gap_that_is_filled_holds_up_nothing() {
    let mut path = goes_on(HoldRules::default());
    path.after_ms(20);
    assert_eq!(segments(&mut path), [2, 3, 4]);
    // It was only overtaken on its way.
    path.data(UNSEEN * MSS, MSS);
    path.after_ms(1);
    assert!(segments(&mut path).contains(&PROBE));
}

#[test]
fn new_data_behind_a_gap_is_not_taken_for_sent_when_the_link_goes_again() {
    let mut path = goes_on(HoldRules::default());
    path.after_ms(20);
    assert_eq!(segments(&mut path), [2, 3, 4]);
    path.down();
    // Its sender fills the gap, and nothing is behind one any more.
    path.data(UNSEEN * MSS, 2 * MSS);
    path.after_ms(1_000);
    path.up();
    path.after_ms(1);
    // The oldest timestamp goes first of what is lost.
    assert_eq!(segments(&mut path), [2, PROBE, UNSEEN]);
}
