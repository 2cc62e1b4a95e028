//! Connections that open around an outage: what the gateway sends of their handshakes, and when.

use crate::path::{MSS, Path, Sent};
use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};
use outlast_wire::TcpFlags;

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);
const SYN: Sent = Sent::Control(TcpFlags::SYN);

/// An established connection has shown a round trip of 40 ms; another one opens from now on.
fn opening() -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.use_port(6_000);
    path
}

/// When the gateway sends something within the next `ms`, in milliseconds from now.
fn sends_within(path: &mut Path, ms: u64) -> Vec<u64> {
    let mut times = Vec::new();
    for at in 0..ms {
        times.extend(path.sent().iter().map(|_| at));
        path.after_ms(1);
    }
    times
}

/// The near host's SYN-ACK was taken.
fn answered_while_down() -> Path {
    let mut path = opening();
    path.far_syn();
    path.down();
    assert_eq!(path.syn_ack(), TAKEN);
    path
}

#[test]
fn copies_of_a_syn_are_spread() {
    let mut path = opening();
    path.down();
    for _ in 0..3 {
        assert_eq!(path.syn(), TAKEN);
        path.after_ms(1_000);
    }
    path.up();
    // No sooner than a host answers a second copy, and no more than the host has sent.
    assert_eq!(sends_within(&mut path, 60_000), [0, 500, 1_500]);
}

#[test]
fn a_syn_is_not_sent_again_once_it_is_answered() {
    let answers: [fn(&mut Path); 2] = [Path::far_syn_ack, Path::far_rst];
    for answer in answers {
        let mut path = opening();
        path.down();
        for _ in 0..3 {
            path.syn();
            path.after_ms(1_000);
        }
        path.up();
        path.after_ms(40);
        assert_eq!(path.sent(), [SYN]);
        answer(&mut path);
        path.after_ms(60_000);
        assert_eq!(path.sent(), []);
        assert_eq!(path.gateway.held_other(), ByteCount(0));
    }
}

#[test]
fn a_syn_ack_is_repeated_a_few_times() {
    let mut path = answered_while_down();
    path.up();
    assert_eq!(
        sends_within(&mut path, 60_000),
        [0, 500, 1_500, 3_500, 7_500]
    );
    // It may be lost with every outage, but not be sent for good.
    for _ in 0..10 {
        path.down();
        path.up();
    }
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn a_syn_ack_is_not_sent_again_once_it_is_acknowledged() {
    let mut path = answered_while_down();
    path.up();
    path.after_ms(40);
    let sent = path.sent_with_reasons();
    assert!(matches!(sent[..], [(Sent::Control(_), SendReason::Kept)]));
    path.far_ack(0);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn the_near_host_takes_its_answer_back() {
    let mut path = answered_while_down();
    assert_eq!(path.rst(0), TAKEN);
    path.up();
    path.after_ms(60_000);
    let sent = path.sent();
    let rst = Sent::Control(TcpFlags::RST | TcpFlags::ACK);
    assert_eq!(sent, [rst]);
}

#[test]
fn an_answer_that_was_on_its_way_is_sent_again() {
    let mut path = opening();
    path.far_syn();
    assert_eq!(path.syn_ack(), None);
    path.down();
    path.after_ms(100);
    path.up();
    assert_eq!(sends_within(&mut path, 2_000), [0, 500, 1_500]);
}

/// Its host goes on to repeat it: no copy of the gateway's comes of that.
#[test]
fn a_syn_that_nobody_answers_is_sent_no_more_often_for_its_hosts_repetitions() {
    let mut path = opening();
    path.down();
    assert_eq!(path.syn(), TAKEN);
    path.up();
    path.after_ms(40);
    assert_eq!(path.sent(), [SYN]);
    for _ in 0..5 {
        assert_eq!(path.syn(), None);
        assert_eq!(sends_within(&mut path, 3_000), []);
    }
}

#[test]
fn without_an_outage_a_host_repeats_its_handshakes_itself() {
    let mut path = opening();
    assert_eq!(path.syn(), None);
    path.use_port(6_001);
    path.far_syn();
    assert_eq!(path.syn_ack(), None);
    assert!(path.gateway.held_other() > ByteCount(0), "it is remembered");
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

#[test]
fn the_hosts_own_copy_counts() {
    let mut path = answered_while_down();
    path.up();
    path.after_ms(400);
    assert_eq!(path.sent().len(), 1);
    assert_eq!(path.syn_ack(), None, "the host's own timer");
    assert_eq!(
        sends_within(&mut path, 4_000),
        [500, 1_500, 3_500],
        "counted from there"
    );
}

#[test]
fn nothing_is_known_of_the_round_trip() {
    let mut path = Path::new(PathMechanismKind::Hold);
    path.far_syn();
    path.down();
    assert_eq!(path.syn_ack(), TAKEN);
    path.up();
    // RFC 6298, section 2.1.
    assert_eq!(sends_within(&mut path, 4_000), [0, 1_000, 3_000]);
}

#[test]
fn many_handshakes_go_at_the_links_pace_and_beside_data() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    for n in 0..60 {
        assert_eq!(path.data(n * MSS, MSS), TAKEN);
    }
    for port in 6_000..6_400 {
        path.use_port(port);
        for _ in 0..4 {
            assert_eq!(path.syn(), TAKEN);
        }
    }
    path.up();
    let (mut in_a_ms, mut ports) = (Vec::new(), Vec::new());
    for ms in 0..200 {
        let sent = path.sent_ports();
        in_a_ms.push(sent.len());
        ports.extend(sent);
        path.after_ms(1);
        if ms == 0 {
            // The link is heard.
            path.use_port(5_000);
            path.far_ack(0);
        }
    }
    // A short queue takes what goes out ahead, and then the link sends as fast.
    assert!(in_a_ms[0] <= 30, "{in_a_ms:?}");
    assert!(in_a_ms[1..].iter().all(|count| *count <= 6), "{in_a_ms:?}");
    // Neither waits until the other has gone: one packet of data, and as much of handshakes.
    let in_front = ports[..100].iter().filter(|port| **port == 5_000).count();
    assert!((20..=50).contains(&in_front), "{ports:?}");
    let handshakes = ports.iter().filter(|port| **port != 5_000).count();
    assert_eq!(handshakes, 400, "one of each");
}

#[test]
fn the_oldest_handshake_gives_way() {
    let limits = Limits {
        other_packets: 10,
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
    path.down();
    for port in 6_000..6_020 {
        path.use_port(port);
        assert_eq!(path.syn(), TAKEN);
    }
    assert_eq!(path.gateway.counters().others_evicted, 10);
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent_ports(), Vec::from_iter(6_010..6_020));
}

#[test]
fn a_handshake_that_the_link_had_in_its_queue_goes_out() {
    let mut path = opening();
    let syn = path.syn_packet();
    assert_eq!(path.syn(), None);
    path.down();
    path.drop_packet(&syn);
    path.up();
    assert_eq!(sends_within(&mut path, 10_000), [0]);
    // The same, when the link is back already.
    path.drop_packet(&syn);
    path.after_ms(1);
    assert_eq!(path.sent(), [SYN]);
}
