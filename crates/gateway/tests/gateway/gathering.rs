//! `hold`: the far host's answers to what was kept go to the near host together.

use crate::path::{MSS, Path, Sent};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

/// Segments that the sender had on their way when the link went.
const KEPT: u32 = 10;

/// A link that was away for four seconds is back, and all that was kept has gone out; a round trip takes 40 ms. The sender
/// `has_repeated` the oldest segment meanwhile.
fn back_again(has_repeated: bool) -> Path {
    let mut path = Path::new(PathMechanismKind::Hold).settled();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.down();
    for n in 1..=KEPT {
        path.data(n * MSS, MSS);
    }
    path.after_ms(300);
    if has_repeated {
        path.data(MSS, MSS);
    }
    path.after_ms(3_700);
    path.up();
    path.after_ms(40);
    path.sent();
    path
}

#[test]
fn a_sender_that_has_repeated_something_hears_one_answer_to_all() {
    let mut path = back_again(true);
    for n in 2..=KEPT {
        path.far_ack(n * MSS);
        path.after_ms(30);
    }
    assert_eq!(path.taken(), vec![TakeReason::Gathered; KEPT as usize - 1]);
    path.far_ack((KEPT + 1) * MSS);
    assert_eq!(path.taken(), [], "the last of them passes");
    path.after_ms(3_000);
    assert_eq!(path.sent(), []);
}

/// A sender without pacing sends at once what one answer to many segments allows, which may be more than the link's queue holds.
#[test]
fn what_one_answer_to_all_allows_goes_at_the_links_pace() {
    let mut path = back_again(true);
    for n in 2..=KEPT {
        path.far_ack(n * MSS);
        path.after_ms(30);
    }
    path.far_ack((KEPT + 1) * MSS);
    path.taken();
    let window = |path: &mut Path, first: u32| {
        let all = (first..first + KEPT).map(|n| path.data(n * MSS, MSS));
        all.collect::<Vec<_>>()
    };
    let taken = window(&mut path, KEPT + 1);
    assert_eq!(taken, [Some(TakeReason::BehindKept); KEPT as usize]);
    path.after_ms(1_000);
    assert_eq!(path.sent().len(), KEPT as usize);
    path.far_ack((2 * KEPT + 1) * MSS);
    // Each answer to these comes as it is.
    assert_eq!(window(&mut path, 2 * KEPT + 1), [None; KEPT as usize]);
}

/// It has nothing that was sent twice, so that one answer would be such a round trip, too.
#[test]
fn a_sender_that_has_repeated_nothing_hears_each_answer() {
    let mut path = back_again(false);
    for n in 2..=KEPT + 1 {
        path.far_ack(n * MSS);
    }
    assert_eq!(path.taken(), []);
}

#[test]
fn an_answer_waits_for_a_round_trip_without_news() {
    let mut path = back_again(true);
    path.far_ack(2 * MSS);
    path.after_ms(30);
    path.far_ack(3 * MSS);
    path.after_ms(30);
    let heard = |path: &mut Path| {
        let sent = path.sent_with_reasons().into_iter();
        let heard = sent.filter(|(sent, _)| matches!(sent, Sent::Rereceived(_)));
        heard.collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut path), []);
    path.after_ms(200);
    let newest = (Sent::Rereceived(3 * MSS), SendReason::Gathered);
    assert_eq!(heard(&mut path), [newest]);
}

/// After a silence nobody knows what has arrived: the rest goes out after a round trip, and only then answers to it can come.
#[test]
fn an_answer_waits_until_the_rest_has_gone_out() {
    let mut path = Path::listening(PathMechanismKind::Hold, SilenceConfig::default()).settled();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    for n in 1..=KEPT {
        path.data(n * MSS, MSS);
    }
    path.after_ms(300);
    path.data(MSS, MSS);
    path.after_ms(4_000);
    path.sent();
    path.far_ack(2 * MSS);
    path.taken();
    let mut sent = Vec::new();
    let is_last = |one: &Sent| matches!(one, Sent::Data(first, ..) if *first == KEPT * MSS);
    while !sent.iter().any(is_last) {
        path.after_ms(5);
        sent.extend(path.sent());
        let now = path.now().since(Instant::ZERO);
        assert!(now < Duration::from_secs(10), "{sent:?}");
    }
    let heard = |sent: &[Sent]| sent.iter().any(|one| matches!(one, Sent::Rereceived(_)));
    assert!(!heard(&sent), "{sent:?}");
    path.far_ack(5 * MSS);
    assert_eq!(path.taken(), [TakeReason::Gathered]);
}

/// The gateway fills the hole: to its sender, what came out of order would be as late as the rest.
#[test]
fn what_shows_a_hole_waits_while_the_gateway_fills_it() {
    let mut path = back_again(true);
    path.far_ack(2 * MSS);
    path.far_sack(2 * MSS, &[(4 * MSS, 5 * MSS)]);
    assert_eq!(path.taken(), [TakeReason::Gathered; 2]);
    path.far_ack((KEPT + 1) * MSS);
    assert_eq!(path.taken(), []);
}

#[test]
fn what_shows_a_hole_passes_where_nobody_waits_for_more() {
    let mut path = back_again(false);
    path.far_ack(2 * MSS);
    path.far_sack(2 * MSS, &[(4 * MSS, 5 * MSS)]);
    assert_eq!(path.taken(), []);
}

#[test]
fn an_answer_waits_while_the_link_is_away_again() {
    let mut path = back_again(true);
    path.far_ack(2 * MSS);
    path.down();
    path.after_ms(10);
    path.far_ack(3 * MSS);
    assert_eq!(path.taken(), [TakeReason::Gathered; 2]);
    path.after_ms(1_000);
    path.up();
    path.after_ms(40);
    path.far_ack((KEPT + 1) * MSS);
    assert_eq!(path.taken(), [], "the last of them passes");
}

#[test]
fn answers_to_new_data_pass() {
    let mut path = back_again(true);
    path.far_ack((KEPT + 1) * MSS);
    path.data((KEPT + 1) * MSS, MSS);
    path.data((KEPT + 2) * MSS, MSS);
    path.taken();
    path.after_ms(40);
    path.far_ack((KEPT + 2) * MSS);
    assert_eq!(path.taken(), []);
}

/// Its timer may have been short: it repeats a segment whose answer waits.
#[test]
fn a_sender_that_repeats_what_has_arrived_hears_so() {
    let mut path = back_again(true);
    path.far_ack(2 * MSS);
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::JustResent));
    let heard = (Sent::Rereceived(2 * MSS), SendReason::Gathered);
    assert_eq!(path.sent_with_reasons(), [heard]);
}
