//! `hold`: the far host's answers to what was kept go to the near host together.

use crate::path::{MSS, Path, Sent};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

/// Segments that the sender had on their way when the link went.
const KEPT: u32 = 10;

/// The link is back after four seconds, and all that was kept has gone out; a round trip takes 40 ms.
fn back_again(path: Path) -> Path {
    let mut path = path.settled().back_again(KEPT, 4_000);
    path.sent();
    path
}

fn hold() -> Path {
    back_again(Path::new(PathMechanismKind::Hold))
}

#[test]
fn a_sender_takes_one_round_trip_from_an_outage() {
    let mut path = hold();
    for n in 2..=KEPT + 1 {
        path.far_ack(n * MSS);
    }
    // Only the last of the answers reaches the sender.
    let gathered = vec![TakeReason::Gathered; KEPT as usize - 1];
    assert_eq!(path.taken(), gathered);
    path.after_ms(1_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn an_answer_waits_for_a_quarter_of_a_round_trip() {
    let mut path = hold();
    path.far_ack(2 * MSS);
    path.after_ms(5);
    path.far_ack(3 * MSS);
    path.after_ms(4);
    assert_eq!(path.sent(), []);
    path.after_ms(2);
    let newest = (Sent::Rereceived(3 * MSS), SendReason::Gathered);
    assert_eq!(path.sent_with_reasons(), [newest]);
}

#[test]
fn what_shows_a_hole_passes_at_once() {
    let mut path = hold();
    path.far_ack(2 * MSS);
    path.taken();
    path.far_sack(2 * MSS, &[(4 * MSS, 5 * MSS)]);
    assert_eq!(path.taken(), []);
    path.after_ms(20);
    let heard_again = Sent::Rereceived(2 * MSS);
    assert!(!path.sent().contains(&heard_again), "SACK says it, too");
}

#[test]
fn an_answer_is_not_lost_with_the_link() {
    let mut path = hold();
    path.far_ack(2 * MSS);
    path.down();
    path.after_ms(1);
    assert_eq!(path.sent(), [Sent::Rereceived(2 * MSS)]);
}

#[test]
fn answers_to_new_data_pass() {
    let mut path = hold();
    path.far_ack((KEPT + 1) * MSS);
    path.data((KEPT + 1) * MSS, MSS);
    path.data((KEPT + 2) * MSS, MSS);
    path.taken();
    path.after_ms(40);
    path.far_ack((KEPT + 2) * MSS);
    assert_eq!(path.taken(), []);
}
