//! Retransmission caching against the rules of the thesis on TCP over Mobile IP, section 5.3.1.

use crate::path::{MSS, Path, Sent};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};

/// A connection with ten segments on the link when it goes down.
fn lost_burst() -> Path {
    let mut path = Path::established(PathMechanismKind::RetransmissionCache);
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(10);
    path.down();
    path
}

#[test]
fn the_retransmission_of_a_timeout_is_forwarded_at_the_mobiles_return() {
    let mut path = lost_burst();
    path.after_ms(240);
    assert_eq!(path.data(0, MSS), None, "the segment passes all the same");
    path.after_ms(1_000);
    assert_eq!(path.sent(), [], "the mobile is not there yet");
    path.up();
    let forwarded = (Sent::Data(0, MSS, 250), SendReason::CachedRetransmission);
    assert_eq!(path.sent_with_reasons(), [forwarded]);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.down();
    path.up();
    assert_eq!(path.sent(), [], "it is forwarded once");
}

#[test]
fn before_the_first_timeout_there_is_nothing_to_forward() {
    let mut path = lost_burst();
    path.after_ms(100);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn of_consecutive_timeouts_the_newest_copy_is_kept() {
    let mut path = lost_burst();
    for _ in 0..3 {
        path.after_ms(400);
        path.data(0, MSS);
    }
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 1_210)]);
}

#[test]
fn a_higher_segment_says_that_the_connection_runs() {
    let mut path = lost_burst();
    path.after_ms(240);
    path.data(0, MSS);
    path.data(10 * MSS, MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    assert_eq!(path.sent(), []);
}

#[test]
fn what_the_mobile_has_acknowledged_is_not_forwarded() {
    let mut path = lost_burst();
    path.after_ms(240);
    path.data(0, MSS);
    path.far_ack(MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    assert_eq!(path.sent(), []);
}

#[test]
fn a_retransmission_while_the_mobile_is_there_is_kept_for_its_leaving() {
    let mut path = Path::established(PathMechanismKind::RetransmissionCache);
    for n in 0..3 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(300);
    path.data(0, MSS);
    path.after_ms(5);
    path.down();
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 300)]);
}

#[test]
fn nothing_is_kept_for_a_segment_out_of_the_window() {
    let mut path = lost_burst();
    path.data(900 * MSS * 100, MSS);
    path.up();
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held(), ByteCount(0));
    assert_eq!(path.gateway.counters().odd_segments, 1);
}

/// By the time of its turn it has arrived, and what is kept then has passed already.
#[test]
fn a_segment_that_arrived_before_its_turn_leaves_the_turn_to_nobody() {
    let rate = BitRate::from_bits_per_second(64_000);
    let mut path = Path::with_rate(
        PathMechanismKind::RetransmissionCache,
        Limits::default(),
        rate,
    );
    for port in [6_000, 7_000] {
        path.use_port(port);
        path.open();
    }
    path.after_ms(1_000);
    path.down();
    for port in [6_000, 7_000] {
        path.use_port(port);
        path.data(0, MSS);
        path.data(MSS, 10);
        path.after_ms(300);
        path.data(0, MSS);
    }
    path.up();
    assert_eq!(path.sent_ports(), [6_000], "at the link's pace");
    path.far_ack(MSS);
    path.data(MSS, 10);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}
