//! Connections that are older than a gateway that starts amid an outage: it hears the near host alone.

use crate::path::{LITTLE, MSS, Path, Sent};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::gateway::GatewayConfig;
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);
/// Bytes of the connection that crossed before the gateway began.
const BEFORE: u32 = 50_000;

fn hold() -> Path {
    Path::new(PathMechanismKind::Hold)
}

fn listening() -> Path {
    let config = GatewayConfig {
        mechanism: PathMechanismKind::Hold,
        silence: Some(SilenceConfig::default()),
        ..GatewayConfig::default()
    };
    Path::with_config(config, BitRate::from_bits_per_second(10_000_000))
}

#[test]
fn the_newest_retransmission_goes_out_when_the_link_is_back() {
    let mut path = hold();
    path.down();
    for _ in 0..3 {
        assert_eq!(path.data(BEFORE, MSS), TAKEN);
        path.after_ms(1_000);
    }
    path.up();
    assert_eq!(
        path.sent_with_reasons(),
        [(Sent::Data(BEFORE, MSS, 2_000), SendReason::Kept)]
    );
    path.after_ms(40);
    path.far_ack(BEFORE + MSS);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
    // The answer has made it a connection like any other.
    path.after_ms(1_000);
    assert_eq!(path.data(BEFORE + MSS, MSS), None);
    path.far_ack(BEFORE + 2 * MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    path.down();
    assert_eq!(path.data(BEFORE + 2 * MSS, MSS), TAKEN);
    assert!(path.gateway.held() > LITTLE);
}

#[test]
fn no_more_goes_out_than_the_host_has_sent() {
    let mut path = hold();
    path.down();
    for _ in 0..2 {
        path.data(BEFORE, MSS);
        path.after_ms(1_000);
    }
    for _ in 0..3 {
        path.up();
        path.after_ms(60_000);
        path.down();
        path.after_ms(1_000);
    }
    assert_eq!(path.sent().len(), 2);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn a_reset_goes_out_with_what_its_host_has_sent_before() {
    let mut path = hold();
    path.down();
    assert_eq!(path.near_ack(3_000), None);
    assert_eq!(path.data(BEFORE, MSS), TAKEN);
    assert_eq!(path.rst(BEFORE + MSS), TAKEN);
    path.up();
    path.after_ms(60_000);
    // Nobody knows whether the host has sent the reset: its data goes out before it.
    assert!(matches!(
        path.sent()[..],
        [Sent::Data(BEFORE, ..), Sent::Control(_)] | [Sent::Control(_), Sent::Data(BEFORE, ..)]
    ));
}

/// The far host has what is kept, and more that was sent before the gateway began.
#[test]
fn an_answer_to_more_than_was_heard_is_one() {
    let mut path = hold();
    path.down();
    assert_eq!(path.data(BEFORE, MSS), TAKEN);
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.sent().len(), 1);
    path.after_ms(40);
    path.far_ack(BEFORE + 40 * MSS);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn one_sided_connections_have_a_cap_of_their_own() {
    let limits = Limits {
        held_in_all: ByteCount(16 * 10_500),
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
    path.open();
    path.down();
    for port in 1..=20 {
        path.use_port(port);
        assert_eq!(path.data(BEFORE, MSS), TAKEN);
    }
    assert!(path.gateway.held_other() <= ByteCount(10_500));
    assert_eq!(path.gateway.counters().others_evicted, 11);
    // A connection that was heard has lost nothing by it.
    path.use_port(5_000);
    assert_eq!(path.data(0, MSS), TAKEN);
    path.up();
    path.after_ms(1);
    let mut ports = path.sent_ports();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(
        ports,
        [vec![12, 13, 14, 15, 16, 17, 18, 19, 20], vec![5_000]].concat()
    );
}

#[test]
fn where_nobody_answers_the_far_host_is_asked() {
    let mut path = listening();
    assert_eq!(path.data(BEFORE, MSS), None, "the link is said to be up");
    path.after_ms(900);
    assert_eq!(path.sent(), []);
    path.after_ms(200);
    path.after_ms(1_000);
    let probes = path.sent();
    assert!(probes.len() > 10, "{probes:?}");
    assert!(
        probes.iter().all(|sent| *sent == Sent::Ack(0)),
        "{probes:?}"
    );
    // The link is back, and the far host answers a probe: it lacks that very segment.
    path.far_ack(BEFORE);
    path.after_ms(1);
    let sent = path.sent_with_reasons();
    assert!(
        sent.contains(&(Sent::Data(BEFORE, MSS, 0), SendReason::Kept)),
        "{sent:?}"
    );
    path.far_ack(BEFORE + MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.counters().silences, 0);
}

#[test]
fn who_is_heard_behind_the_same_link_spares_the_question() {
    let mut path = listening();
    path.open();
    path.use_port(6_000);
    assert_eq!(path.data(BEFORE, MSS), None);
    path.use_port(5_000);
    path.after_ms(300);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn an_unanswered_connection_is_asked_for_no_longer_than_its_host_would_wait() {
    let mut path = listening();
    path.data(BEFORE, MSS);
    path.after_ms(600_000);
    let probes = path.sent().len();
    assert!((500..1_000).contains(&probes), "{probes} probes");
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn one_that_is_answered_is_asked_nothing() {
    let mut path = listening();
    for n in 0..20 {
        path.data(BEFORE + n * MSS, MSS);
        path.after_ms(100);
        path.far_ack(BEFORE + (n + 1) * MSS);
        path.after_ms(100);
    }
    assert_eq!(path.gateway.counters().silences, 0);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn no_data_is_made_up_for_one_whose_far_host_answers_nothing() {
    let mut path = listening();
    path.down();
    path.data(BEFORE, MSS);
    path.up();
    path.after_ms(300_000);
    let sent = path.sent();
    let data = sent.iter().filter(|sent| matches!(sent, Sent::Data(..)));
    assert_eq!(data.count(), 1, "its host has sent one");
}

/// A gateway that meets a connection amid an outage whose far host had the repeated segment all along, and
/// `more` behind it.
fn stale(more: u32) -> Path {
    let mut path = hold();
    path.after_ms(10_000);
    path.down();
    path.data(BEFORE, MSS);
    path.after_ms(4_000);
    path.data(BEFORE, MSS);
    path.after_ms(500);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(BEFORE, MSS, 14_000)]);
    path.after_ms(40);
    path.far_ack_echoing(BEFORE + MSS + more, 9_900);
    path
}

#[test]
fn an_answer_with_an_echo_from_before_the_outage_waits_for_a_fresh_timestamp() {
    for more in [0, 20 * MSS] {
        let mut path = stale(more);
        assert_eq!(path.taken(), [TakeReason::AnswersProbe]);
        assert_eq!(path.sent(), [Sent::WakesNear(BEFORE); 8]);
        path.after_ms(1);
        assert_eq!(path.data(BEFORE, MSS), Some(TakeReason::BehindKept));
        let fresh = [Sent::Ack(0), Sent::Data(BEFORE, MSS, 14_541)];
        assert_eq!(path.sent(), fresh, "the timestamp goes before the data");
        path.after_ms(40);
        path.far_ack_echoing(BEFORE + MSS + more, 14_541);
        assert_eq!(path.taken(), [], "the near host gets the answer");
        assert_eq!(path.gateway.held_other(), ByteCount(0));
        path.after_ms(60_000);
        assert_eq!(path.sent(), []);
    }
}

#[test]
fn the_kept_copy_goes_out_again_if_the_near_host_repeats_nothing() {
    let mut path = stale(20 * MSS);
    assert_eq!(path.sent(), [Sent::WakesNear(BEFORE); 8]);
    path.after_ms(199);
    assert_eq!(path.sent(), []);
    path.after_ms(1);
    assert_eq!(path.sent(), [Sent::Data(BEFORE, MSS, 14_000)]);
    path.after_ms(40);
    path.far_ack_echoing(BEFORE + 21 * MSS, 9_900);
    assert_eq!(
        path.taken(),
        [TakeReason::AnswersProbe],
        "one answer is withheld"
    );
}

#[test]
fn an_answer_that_echoes_the_copy_or_shows_a_hole_is_not_withheld() {
    for is_hole in [false, true] {
        let mut path = hold();
        path.after_ms(10_000);
        path.down();
        path.data(BEFORE, MSS);
        path.after_ms(500);
        path.up();
        path.sent();
        path.after_ms(40);
        match is_hole {
            false => path.far_ack_echoing(BEFORE + 2 * MSS, 10_000),
            true => path.far_sack(BEFORE + 2 * MSS, &[(BEFORE + 3 * MSS, BEFORE + 4 * MSS)]),
        }
        assert_eq!(path.taken(), []);
        path.after_ms(60_000);
        assert_eq!(path.sent(), []);
    }
}
