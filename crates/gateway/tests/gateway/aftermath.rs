//! `hold`: nothing that a sender hears after an outage makes a round trip of the outage.

use crate::path::{MSS, Path};
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

/// A sender with one segment on its way, whose clock goes at 1,000 Hz, repeats it in an outage of 20 s at 0.3, 0.9, 2.1, 4.5
/// and 9.3 s. The link is back, and 40 ms later the far host answers; returns the echoes that the near host hears.
fn echoes(echo: u32) -> (u32, Vec<(u32, SendReason)>) {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.down();
    for pause in [300, 600, 1_200, 2_400, 4_800] {
        path.after_ms(pause);
        path.data(0, MSS);
    }
    path.after_ms(20_000 - 9_300);
    path.up();
    let back = path.clock();
    path.sent();
    path.after_ms(40);
    path.far_ack_echoing(MSS, echo);
    (back, path.heard_echoes())
}

#[test]
fn an_echo_from_before_the_return_is_made_fresh() {
    // That of the last repetition, 10.7 s before the return: a timeout of more than 20 s.
    let (back, heard) = echoes(9_300);
    assert_eq!(heard, [(back, SendReason::Fresh)]);
    // That of the first transmission.
    let (back, heard) = echoes(1);
    assert_eq!(heard, [(back, SendReason::Fresh)]);
}

#[test]
fn an_echo_of_the_return_or_later_passes() {
    let (back, heard) = echoes(20_000);
    assert!(back <= 20_000 && heard.is_empty(), "{back}: {heard:?}");
}

/// An acknowledgement of data from after the return cannot echo an older timestamp.
#[test]
fn echoes_are_left_alone_once_all_of_before_has_arrived() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.down();
    path.after_ms(300);
    path.data(0, MSS);
    path.after_ms(2_000);
    path.up();
    path.after_ms(40);
    path.far_ack_echoing(MSS, 300);
    path.heard_echoes();
    path.far_ack_echoing(MSS, 300);
    assert_eq!(path.heard_echoes(), []);
}

/// The last that had crossed before the silence was an acknowledgement: it comes now, in the answer to a probe.
#[test]
fn an_answer_that_shows_the_return_is_made_fresh() {
    let mut path = Path::listening(PathMechanismKind::Hold, SilenceConfig::default()).settled();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.data(MSS, MSS);
    let sent_at = path.clock();
    for pause in [300, 600, 1_200, 2_400, 4_800] {
        path.after_ms(pause);
        path.data(MSS, MSS);
    }
    path.after_ms(10_000);
    path.heard_echoes();
    path.far_ack_echoing(2 * MSS, sent_at);
    assert_eq!(path.heard_echoes(), [(path.clock(), SendReason::Fresh)]);
}

/// The link is back for 50 ms. What the far host has said meanwhile is no round trip of the next outage.
#[test]
fn an_answer_that_waits_over_another_outage_has_a_later_echo() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.after_ms(20_000);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.down();
    for n in 1..4 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(300);
    path.data(MSS, MSS);
    path.after_ms(4_000);
    path.up();
    path.after_ms(40);
    path.sent();
    path.far_ack_echoing(2 * MSS, 1);
    assert_eq!(path.taken(), [TakeReason::Gathered]);
    path.after_ms(10);
    path.down();
    path.dropped(2 * MSS, MSS);
    path.after_ms(5_000);
    assert_eq!(path.heard_echoes(), [], "the rest has not had its turn");
    path.data(MSS, MSS);
    let heard = path.heard_echoes();
    let [(echo, SendReason::Gathered)] = heard[..] else {
        panic!("{heard:?}");
    };
    let round_trip = path.clock() - echo;
    assert!((40..60).contains(&round_trip), "{round_trip} ms");
}
