//! `hold` and `auto`: which senders wait for a timeout after their link is back, and what wakes them.

mod path;

use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use path::{MSS, Path, Sent};

const BOTH: [PathMechanismKind; 2] = [PathMechanismKind::Hold, PathMechanismKind::Auto];

/// A connection that has said something, away for so long.
fn away(mechanism: PathMechanismKind, ms: u64) -> Path {
    let mut path = Path::established(mechanism);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(1_000);
    path.down();
    path.after_ms(ms);
    path.up();
    path
}

fn why(path: &Path) -> &'static str {
    let report = path.gateway.flow_reports().next().expect("one connection");
    report.account.why
}

/// The far host answers a question, and has sent `len` bytes that are lost.
fn answers(path: &mut Path, len: u32) {
    path.far_ack_after(len, MSS);
}

#[test]
fn a_far_host_whose_data_is_lost_is_asked_and_woken() {
    for mechanism in BOTH {
        let mut path = away(mechanism, 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.after_ms(40);
        answers(&mut path, 64);
        // Timeouts at 0.2, 0.6, 1.4, 3.0, 6.2 and 12.6 s have doubled its timer six times.
        assert_eq!(path.sent_with_questions(), [Sent::WakesFar(0); 6]);
        assert!(why(&path).contains("ICMP"), "{}", why(&path));
        path.after_ms(40);
        path.far_data(0, 64);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [], "it is awake");
        assert!(!why(&path).contains("ICMP"), "{}", why(&path));
    }
}

#[test]
fn a_far_host_that_lacks_nothing_is_asked_once_and_left_alone() {
    for mechanism in BOTH {
        let mut path = away(mechanism, 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.after_ms(40);
        answers(&mut path, 0);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

#[test]
fn nobody_is_asked_after_a_short_outage() {
    for mechanism in BOTH {
        let mut path = away(mechanism, 900);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

#[test]
fn a_far_host_that_does_not_answer_is_asked_three_times() {
    let mut path = away(PathMechanismKind::Hold, 15_000);
    path.after_ms(60_000);
    assert_eq!(path.sent_with_questions(), [Sent::Question; 3]);
}

#[test]
fn a_sender_that_does_not_wake_is_told_three_times() {
    let mut path = away(PathMechanismKind::Hold, 1_000);
    answers(&mut path, 64);
    path.after_ms(60_000);
    let mut sent = path.sent_with_questions();
    assert_eq!(sent.remove(0), Sent::Question);
    assert_eq!(sent, [Sent::WakesFar(0); 6]);
}

/// An ICMP error draws no answer, so that a peer which does not answer at first would not be found.
#[test]
fn a_silent_peer_is_probed_with_data_before_it_is_told_again() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_data(0, 64);
    path.far_data(128, 64);
    path.far_ack(MSS);
    path.after_ms(1_000);
    path.down();
    for n in 1..5 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(15_000);
    path.up();
    path.after_ms(100);
    let at_first = path.sent_with_questions();
    let told = at_first.iter().filter(|sent| **sent == Sent::WakesFar(0));
    assert_eq!(told.count(), 6, "{at_first:?}");
    path.after_ms(5_000);
    let probes = path.sent_with_questions();
    let is_wake = |sent: &Sent| *sent == Sent::WakesFar(0);
    let in_a_row = probes.windows(2).filter(|two| two.iter().all(is_wake));
    assert_eq!(in_a_row.count(), 0, "{probes:?}");
}

/// The acknowledgement of what was kept says as much as the answer to a question.
#[test]
fn nobody_is_asked_where_data_goes_out() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    path.data(0, MSS);
    path.after_ms(15_000);
    path.up();
    path.after_ms(20);
    path.far_ack_after(64, MSS);
    let sent = path.sent_with_questions();
    assert!(matches!(sent[0], Sent::Data(0, MSS, _)), "{sent:?}");
    assert_eq!(sent[1..], [Sent::WakesFar(0); 6]);
}

/// What has arrived and is not acknowledged yet is not lost.
#[test]
fn a_far_host_that_is_heard_is_awake() {
    let mut path = away(PathMechanismKind::Hold, 15_000);
    assert_eq!(path.sent_with_questions(), [Sent::Question]);
    path.far_data(0, 64);
    answers(&mut path, 64);
    path.after_ms(60_000);
    assert_eq!(path.sent_with_questions(), []);
}

/// Nothing could be kept: only the near host has what it has sent.
#[test]
fn a_near_host_of_which_nothing_is_kept_is_woken() {
    let limits = Limits {
        held_in_all: ByteCount(10),
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
    path.open();
    path.after_ms(1_000);
    path.data(0, MSS);
    path.down();
    path.after_ms(15_000);
    path.up();
    let mut sent = path.sent_with_questions();
    sent.retain(|sent| *sent != Sent::Question);
    assert_eq!(sent, [Sent::WakesNear(0); 6]);
    path.data(0, MSS);
    path.after_ms(20);
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent_with_questions(), []);
}

#[test]
fn the_next_outage_ends_it() {
    let mut path = away(PathMechanismKind::Hold, 15_000);
    answers(&mut path, 64);
    assert!(path.sent_with_questions().len() > 1);
    path.down();
    path.after_ms(60_000);
    assert_eq!(path.sent_with_questions(), []);
}
