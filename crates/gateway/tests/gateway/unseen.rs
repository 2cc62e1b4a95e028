//! Packets that have crossed without the gateway: its process was stopped, and somebody let them pass; or its queue was full.

use crate::path::{MSS, Path, Sent};
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);

#[test]
fn a_connection_that_may_have_gone_on_is_met_anew() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    let since = path.now();
    path.after_ms(5_000);
    assert_eq!(path.gateway.doubt_since(since), 1);
    // Far beyond what the gateway would have believed before.
    assert_eq!(path.data(60_000_000, MSS), None);
    path.after_ms(40);
    path.far_ack(60_000_000 + MSS);
    path.after_ms(1_000);
    path.down();
    assert_eq!(path.data(60_000_000 + MSS, MSS), TAKEN);
    path.up();
    assert_eq!(path.sent().len(), 1);
}

#[test]
fn what_is_kept_for_a_link_that_was_down_all_the_time_is_still_kept() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    path.after_ms(1_000);
    let since = path.now();
    path.after_ms(5_000);
    assert_eq!(path.gateway.doubt_since(since), 0);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
}

#[test]
fn what_was_acknowledged_ahead_is_not_forgotten() {
    let mut path = Path::established(PathMechanismKind::AcknowledgeAhead);
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    path.after_ms(1_000);
    let since = path.now();
    path.up();
    assert_eq!(path.gateway.doubt_since(since), 1);
    assert_eq!(path.data(60_000_000, MSS), None);
    assert!(path.sent().contains(&Sent::Data(0, MSS, 0)));
    let is_ahead = |report: outlast_gateway::gateway::FlowReport| report.account.acknowledged_ahead;
    assert!(path.gateway.flow_reports().any(is_ahead));
}

#[test]
fn a_connection_that_has_not_gone_on_keeps_what_is_kept() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    let since = path.now();
    assert_eq!(path.data(0, MSS), TAKEN);
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.gateway.doubt_since(since), 1);
    path.after_ms(40);
    path.far_ack(0);
    path.after_ms(1_000);
    let copies = path.sent().len();
    assert!(copies >= 2, "the delivery, and a second try: {copies}");
}

/// A queue to user space that overflows lets packets pass, and nobody is told. What the near host sends then is beyond
/// everything that is expected, where the far host's window is not known; what the far host acknowledges says how far it is.
#[test]
fn a_connection_whose_data_has_crossed_unseen_is_followed_again_once_it_is_acknowledged() {
    for mechanism in [PathMechanismKind::Hold, PathMechanismKind::AcknowledgeAhead] {
        let mut path = Path::new(mechanism);
        path.data(0, MSS);
        path.after_ms(40);
        path.far_ack(MSS);
        let gone_on = 500_000;
        assert_eq!(path.data(gone_on, MSS), None);
        path.after_ms(40);
        path.far_ack(gone_on + MSS);
        path.after_ms(1_000);
        path.down();
        assert_eq!(path.data(gone_on + MSS, MSS), TAKEN, "{mechanism}");
        path.up();
        let sent = path.sent();
        let is_next = |sent: &Sent| matches!(sent, Sent::Data(at, MSS, _) if *at == gone_on + MSS);
        assert!(sent.iter().any(is_next), "{mechanism}: {sent:?}");
    }
}

/// Somebody who knows the far host's number acknowledges what was never sent: until the near host has sent that much, its
/// connection is as it was without a gateway.
#[test]
fn what_a_liar_with_the_right_number_acknowledges_is_not_kept_and_what_follows_is() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(50 * MSS);
    path.down();
    assert_eq!(path.data(MSS, MSS), None);
    assert_eq!(path.data(50 * MSS, MSS), TAKEN);
    path.up();
    let sent = path.sent();
    assert!(
        matches!(sent[..], [Sent::Data(at, MSS, _)] if at == 50 * MSS),
        "{sent:?}"
    );
}
