//! `hold`: which acknowledgements would only mislead a sender, and are kept from it.

use crate::path::{MSS, Path, Sent};
use outlast_gateway::mechanisms::path::PathMechanismKind;

/// The far host lacks its acknowledgements of what is behind a hole.
fn before_a_hole(away_ms: u64) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.far_data(0, MSS);
    path.near_ack(MSS);
    path.far_data(2 * MSS, MSS);
    path.near_sack(MSS, (2 * MSS, 3 * MSS));
    path.far_data(3 * MSS, MSS);
    path.down();
    path.near_sack(MSS, (2 * MSS, 4 * MSS));
    path.after_ms(away_ms);
    path.up();
    path
}

/// What the gateway sends but for what makes the far host repeat the hole.
fn sent(path: &mut Path) -> Vec<Sent> {
    path.told()
}

/// It repeats the hole by itself, the sooner the less it hears of what is behind. That its last acknowledgement may be lost,
/// is another matter.
#[test]
fn a_sender_that_timed_out_over_a_hole_is_not_told_what_is_behind_it() {
    let mut path = before_a_hole(2_000);
    path.after_ms(600_000);
    assert_eq!(sent(&mut path), [Sent::Untimed(MSS)]);
}

/// Its timer has backed off over both outages, and the link was up for too short a time for it.
#[test]
fn a_sender_that_was_not_told_is_told_after_another_outage() {
    let mut path = before_a_hole(2_000);
    path.after_ms(500);
    path.down();
    path.after_ms(500);
    assert_eq!(sent(&mut path), [Sent::Untimed(MSS)]);
    path.up();
    assert_eq!(sent(&mut path), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

#[test]
fn a_sender_that_has_not_timed_out_is_told_what_is_behind_the_hole() {
    let mut path = before_a_hole(100);
    assert_eq!(path.sent(), [Sent::Ack(MSS)]);
}

#[test]
fn a_sender_is_told_of_a_hole_that_it_has_not_heard_of() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.far_data(0, MSS);
    path.near_ack(MSS);
    path.far_data(MSS, MSS);
    path.far_data(3 * MSS, MSS);
    path.down();
    path.near_sack(2 * MSS, (3 * MSS, 4 * MSS));
    path.after_ms(2_000);
    path.up();
    assert_eq!(
        sent(&mut path),
        [Sent::Untimed(2 * MSS), Sent::Ack(2 * MSS)]
    );
}
