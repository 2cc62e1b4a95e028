//! `hold`: a hole that the far host shows after an outage, and that its sender does not fill.
//!
//! Linux may take a segment for under way that it has held for lost: it then waits for a timeout that it has
//! learnt from the outage, and sends new data meanwhile.

use crate::path::{MSS, Path, Sent};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::{HoldRule, HoldRules, PathMechanismKind};

/// Segments that the sender had on their way when the link went.
const KEPT: u32 = 10;
/// The first new one after the outage, which is lost.
const HOLE: u32 = KEPT + 1;
/// No sender's timer is awaited for so long by a far host whose answers take 40 ms.
const SOON: Duration = Duration::from_millis(500);

/// All that was kept over an outage of five seconds has arrived; a round trip takes 40 ms. Then the sender goes on.
fn back_again(rules: HoldRules) -> Path {
    let mut path = Path::new(PathMechanismKind::Hold).settled();
    path.gateway.set_rules(rules);
    let mut path = path.back_again(KEPT, 5_000);
    path.far_ack(HOLE * MSS);
    path.data(HOLE * MSS, MSS);
    path.after_ms(40);
    path.sent();
    path
}

/// The sender sends `segments` behind the hole, one in 40 ms, which arrive.
fn goes_on(path: &mut Path, segments: u32) {
    for n in HOLE + 1..=HOLE + segments {
        path.data(n * MSS, MSS);
        path.after_ms(40);
        path.far_sack(HOLE * MSS, &[((HOLE + 1) * MSS, (n + 1) * MSS)]);
    }
}

/// What the gateway has sent of the hole.
fn fillings(path: &mut Path) -> usize {
    let is_it = |sent: &&Sent| matches!(sent, Sent::Data(first, ..) if *first == HOLE * MSS);
    path.sent().iter().filter(is_it).count()
}

#[test]
fn a_hole_that_is_shown_and_not_filled_is_filled() {
    let mut path = back_again(HoldRules::default());
    goes_on(&mut path, 1);
    let shown = path.now();
    while fillings(&mut path) == 0 {
        path.after_ms(1);
        assert!(path.now().since(shown) < SOON);
    }
    // Its sender has had time to do so.
    assert!(path.now().since(shown) > Duration::from_millis(200));
    path.far_ack((HOLE + 2) * MSS);
    path.after_ms(10_000);
    assert_eq!(fillings(&mut path), 0);
}

#[test]
fn new_data_does_not_put_that_off() {
    let mut path = back_again(HoldRules::default());
    goes_on(&mut path, 12);
    assert_eq!(fillings(&mut path), 1);
}

#[test]
fn without_that_it_stays() {
    let mut path = back_again(HoldRules::default().without(HoldRule::FillShownHoles));
    goes_on(&mut path, 15);
    path.after_ms(5_000);
    assert_eq!(fillings(&mut path), 0);
}

#[test]
fn all_holes_are_filled_at_once() {
    let mut path = back_again(HoldRules::default());
    for n in HOLE + 1..HOLE + 9 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    path.sent();
    // It has the third behind the hole, and the fifth to the seventh; the eighth may be on its way.
    let blocks = [(HOLE + 3, HOLE + 4), (HOLE + 5, HOLE + 8)];
    let blocks = blocks.map(|(from, until)| (from * MSS, until * MSS));
    path.far_sack(HOLE * MSS, &blocks);
    path.after_ms(500);
    let sent: Vec<u32> = path.sent().iter().filter_map(segment).collect();
    assert_eq!(sent, [HOLE, HOLE + 1, HOLE + 2, HOLE + 4]);
}

/// Which segment this is.
fn segment(sent: &Sent) -> Option<u32> {
    match sent {
        Sent::Data(first, ..) => Some(*first / MSS),
        _ => None,
    }
}

#[test]
fn what_comes_out_of_order_is_no_hole() {
    let mut path = back_again(HoldRules::default());
    goes_on(&mut path, 5);
    path.far_ack((HOLE + 6) * MSS);
    path.after_ms(5_000);
    assert_eq!(fillings(&mut path), 0);
}

#[test]
fn a_sender_that_repeats_something_fills_its_holes_itself() {
    let mut path = back_again(HoldRules::default());
    goes_on(&mut path, 3);
    path.after_ms(100);
    path.data(HOLE * MSS, MSS);
    path.after_ms(5_000);
    assert_eq!(fillings(&mut path), 0);
}

#[test]
fn a_connection_that_was_not_cut_is_left_to_its_sender() {
    let mut path = Path::new(PathMechanismKind::Hold).settled();
    for n in 0..HOLE {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    path.far_ack(HOLE * MSS);
    path.data(HOLE * MSS, MSS);
    goes_on(&mut path, 15);
    path.after_ms(5_000);
    assert_eq!(fillings(&mut path), 0);
}
