//! `hold`: a sender that was filling holes when the link went.

use crate::path::{MSS, Path, Sent};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};

fn hold() -> Path {
    Path::established(PathMechanismKind::Hold)
}

/// The first bytes of the segments, in units of [`MSS`].
fn segments(sent: &[Sent]) -> Vec<u32> {
    let data = sent.iter().filter_map(|sent| match sent {
        Sent::Data(first, ..) => Some(*first / MSS),
        _ => None,
    });
    data.collect()
}

/// A sender that was filling holes when the link went. The far host has echoed a newer timestamp than
/// the first copies of the holes bear, so that only their sender has copies that it takes; `kept`
/// segments behind them are kept. With `at_the_hole`, it has repeated the first of the holes, too, and
/// what is behind them was certainly lost.
fn in_recovery(kept: u32, at_the_hole: bool) -> Path {
    let mut path = hold();
    for n in 0..4 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(200);
    path.data(0, MSS);
    for n in 4..4 + kept {
        path.after_ms(1);
        path.data(n * MSS, MSS);
    }
    path.after_ms(200 - u64::from(kept));
    if at_the_hole {
        path.far_ack_echoing(MSS, 200);
        path.data(MSS, MSS);
    }
    path.down();
    for n in (4..4 + kept).filter(|_| at_the_hole) {
        let packet = path.data_packet(n * MSS, MSS);
        path.drop_packet(&packet);
    }
    path.after_ms(1_000);
    path.up();
    path
}

#[test]
fn what_the_far_host_lacks_is_not_kept_waiting_by_much_that_is_older() {
    let mut path = in_recovery(60, false);
    path.after_ms(30);
    assert_eq!(segments(&path.sent()), [0]);
    path.after_ms(10);
    path.far_ack_echoing(MSS, 200);
    path.after_ms(10);
    assert_eq!(segments(&path.sent()), [4, 5, 6, 7]);
    // Its sender hears that it is awake, and repeats what the far host lacks: that goes at once.
    assert_eq!(path.data(MSS, MSS), None);
    assert_eq!(path.data(2 * MSS, MSS), None);
    path.far_ack_echoing(3 * MSS, 1_450);
    path.after_ms(40);
    assert_eq!(path.sent(), []);
}

/// What is kept waits in line already, when its sender repeats what goes before it.
#[test]
fn a_hole_that_is_filled_late_is_not_kept_waiting_either() {
    let mut path = in_recovery(60, true);
    path.sent();
    // It takes the older ones still, and lacks one that has no valid copy.
    path.far_ack_echoing(2 * MSS, 200);
    path.after_ms(1);
    path.data(2 * MSS, MSS);
    path.after_ms(10);
    let sent = segments(&path.sent());
    assert!(!sent.is_empty() && sent.len() <= 5, "{sent:?}");
}

#[test]
fn a_fresh_copy_of_what_the_far_host_lacks_has_only_a_few_before_it() {
    let mut path = in_recovery(60, true);
    path.after_ms(30);
    assert_eq!(segments(&path.sent()), [4, 5, 6, 7, 1]);
    // The far host had it already, and takes the older ones still.
    path.after_ms(10);
    path.far_ack_echoing(4 * MSS, 200);
    path.after_ms(4);
    assert_eq!(segments(&path.sent())[..4], [8, 9, 10, 11]);

    let mut path = in_recovery(60, true);
    path.after_ms(40);
    path.far_ack_echoing(2 * MSS, 400);
    path.after_ms(4);
    // It would reject them.
    assert_eq!(segments(&path.sent()), [4, 5, 6, 7, 1]);
}

/// What its sender waits for, after a timeout: one duplicate.
fn duplicates(path: &mut Path) -> Vec<(Sent, SendReason)> {
    let mut sent = path.sent_with_reasons();
    sent.retain(|(sent, reason)| {
        matches!(sent, Sent::Rereceived(_)) && *reason == SendReason::Duplicate
    });
    sent
}

#[test]
fn a_sender_that_alone_can_fill_the_hole_hears_of_it_twice() {
    let mut path = in_recovery(60, false);
    path.after_ms(40);
    assert_eq!(duplicates(&mut path), []);
    path.far_ack_echoing(MSS, 200);
    path.after_ms(1);
    let duplicate = (Sent::Rereceived(MSS), SendReason::Duplicate);
    assert_eq!(duplicates(&mut path), [duplicate]);
    // It is awake from now on.
    path.far_ack_echoing(2 * MSS, 200);
    path.after_ms(1);
    path.far_ack_echoing(2 * MSS, 200);
    path.after_ms(1_000);
    assert_eq!(duplicates(&mut path), []);
}

#[test]
fn nothing_is_said_twice_of_what_is_kept() {
    let mut path = hold();
    for n in 0..6 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.after_ms(1_000);
    path.data(0, MSS);
    path.up();
    path.after_ms(40);
    path.far_ack(2 * MSS);
    path.after_ms(1_000);
    assert_eq!(duplicates(&mut path), []);
}

#[test]
fn nothing_is_said_twice_when_everything_has_arrived() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    path.after_ms(1_000);
    path.data(0, MSS);
    path.up();
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(1_000);
    assert_eq!(duplicates(&mut path), []);
}

/// What was certainly lost has gone out already, and draws them.
#[test]
fn nothing_is_said_twice_while_duplicates_are_on_their_way() {
    let mut path = in_recovery(60, true);
    path.after_ms(40);
    path.far_ack_echoing(2 * MSS, 400);
    path.after_ms(1_000);
    assert_eq!(duplicates(&mut path), []);
}

/// What the far host says with data of its own would not count as a duplicate (RFC 5681, section 2).
#[test]
fn what_comes_with_data_is_not_said_twice() {
    let mut path = in_recovery(60, false);
    path.after_ms(40);
    path.far_data_echoing(MSS, 200, MSS);
    path.after_ms(1_000);
    assert_eq!(duplicates(&mut path), []);
}

/// A window of `kept` segments that were certainly lost, and are re-sent at link-up.
fn resent(kept: u32) -> Path {
    let mut path = hold();
    path.down();
    for n in 0..kept {
        path.data(n * MSS, MSS);
    }
    path.after_ms(1_000);
    path.up();
    path.after_ms(40);
    assert_eq!(segments(&path.sent()), (0..kept).collect::<Vec<_>>());
    path
}

#[test]
fn what_a_full_queue_dropped_of_the_window_goes_out_again_at_once() {
    let mut path = resent(30);
    path.far_ack(10 * MSS);
    // One that has overtaken the hole may be a matter of order, three are not.
    path.far_sack(10 * MSS, &[(20 * MSS, 21 * MSS)]);
    path.far_sack(10 * MSS, &[(20 * MSS, 22 * MSS)]);
    path.after_ms(1);
    assert_eq!(segments(&path.sent()), (10..19).collect::<Vec<_>>());
    path.far_sack(10 * MSS, &[(20 * MSS, 30 * MSS)]);
    path.after_ms(20);
    assert_eq!(segments(&path.sent()), [19]);
    // Nothing has overtaken those yet.
    path.far_sack(10 * MSS, &[(20 * MSS, 30 * MSS)]);
    path.after_ms(10);
    assert_eq!(segments(&path.sent()), []);
    // The first four of them are lost once more.
    path.after_ms(10);
    path.far_sack(10 * MSS, &[(14 * MSS, 30 * MSS)]);
    path.after_ms(10);
    assert_eq!(segments(&path.sent()), [10, 11, 12, 13]);
    path.after_ms(30);
    path.far_ack(30 * MSS);
    path.after_ms(2_000);
    assert_eq!(segments(&path.sent()), []);
}

#[test]
fn what_came_after_link_up_is_left_to_its_sender() {
    let mut path = resent(4);
    for n in 4..20 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    path.sent();
    path.far_sack(4 * MSS, &[(10 * MSS, 20 * MSS)]);
    path.after_ms(10);
    assert_eq!(segments(&path.sent()), []);
}
