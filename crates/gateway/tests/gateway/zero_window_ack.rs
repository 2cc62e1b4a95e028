//! Zero-window acknowledgements against the thesis on TCP over Mobile IP, section 5.4.

use crate::path::{MSS, Path, Sent};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_wire::{Packet, TcpFlags};

fn path() -> Path {
    Path::established(PathMechanismKind::ZeroWindowAck)
}

/// What the sender hears from the gateway: what is acknowledged, and the window.
fn heard(path: &mut Path) -> Vec<(u32, u16)> {
    let mut heard = Vec::new();
    while let Some(transmit) = path.gateway.poll_transmit() {
        assert_eq!(
            (transmit.direction, transmit.reason),
            (Direction::FromLink, SendReason::WindowClosed)
        );
        let tcp = transmit.packet.tcp().expect("a segment");
        assert_eq!(tcp.flags, TcpFlags::ACK);
        assert!(transmit.packet.checksums_ok());
        let ack = tcp.ack.distance_from(path.near_number(0)).unsigned_abs();
        heard.push((ack, tcp.window));
    }
    heard
}

/// Figure 5.3: everything that is outstanding was lost, the oldest of it is kept.
fn frozen() -> Path {
    let mut path = path();
    for n in 0..9 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(5);
    path.down();
    path.after_ms(2_000);
    assert_eq!(heard(&mut path), [(MSS, 0)]);
    path
}

#[test]
fn figure_5_3_the_oldest_segment_is_acknowledged_once_with_window_zero_and_delivered_at_the_return()
{
    let mut path = frozen();
    path.after_ms(60_000);
    assert_eq!(heard(&mut path), []);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    path.after_ms(40);
    path.far_ack(MSS);
    assert_eq!(path.resumed_after(), Some(Duration::from_millis(40)));
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.after_ms(60_000);
    assert_eq!(path.sent(), [], "the connection is the hosts' own again");
}

#[test]
fn it_is_told_at_a_round_trip_after_the_links_end() {
    let mut path = path();
    path.data(0, MSS);
    path.after_ms(5);
    path.down();
    path.after_ms(39);
    assert_eq!(heard(&mut path), []);
    path.after_ms(1);
    assert_eq!(heard(&mut path), [(MSS, 0)]);
}

/// Whoever sends while the link is known to be down has the whole round trip before him.
#[test]
fn what_is_sent_while_the_mobile_is_away_is_acknowledged_a_round_trip_later() {
    let mut path = path();
    path.down();
    path.after_ms(5);
    path.data(0, MSS);
    path.after_ms(39);
    assert_eq!(heard(&mut path), []);
    path.after_ms(1);
    assert_eq!(heard(&mut path), [(MSS, 0)]);
}

/// Figure 5.4 forwards the cache when the mobility update arrives, whatever the timer says.
#[test]
fn figure_5_4_a_hand_off_shorter_than_a_round_trip_ends_with_the_kept_segment() {
    let mut path = path();
    for n in 0..9 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.after_ms(10);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    // Its acknowledgement is a round trip away, and the sender's timeout may come before.
    path.after_ms(30);
    assert_eq!(heard(&mut path), [(MSS, 0)]);
    path.after_ms(10);
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), [], "once is enough");
    assert_eq!(path.gateway.held(), ByteCount(0));
}

/// What it would draw is an acknowledgement that starts the sender's timer anew.
#[test]
fn a_kept_segment_that_is_not_the_oldest_is_forwarded_when_it_is() {
    let late = || {
        let mut path = path();
        path.data(0, MSS);
        path.data(MSS, MSS);
        path.after_ms(20);
        path.far_ack(MSS);
        // The first one was kept, and this one is kept now.
        path.data(2 * MSS, MSS);
        path.down();
        path.after_ms(10);
        path.up();
        path
    };
    let mut path = late();
    assert_eq!(path.sent(), [], "the second one is missing");
    path.after_ms(5);
    path.far_ack(2 * MSS);
    assert_eq!(path.sent(), [Sent::Data(2 * MSS, MSS, 20)]);
    let mut path = late();
    path.down();
    path.far_ack(2 * MSS);
    assert_eq!(path.sent(), [], "the mobile has left again");
}

#[test]
fn a_hand_off_that_nobody_tells_of_is_seen_by_the_missing_acknowledgement() {
    let mut path = path();
    path.data(0, MSS);
    let freezes = |path: &Path| path.gateway.counters().freezes;
    path.after_ms(239);
    assert_eq!(freezes(&path), 0, "a delayed acknowledgement may come yet");
    path.after_ms(100);
    assert_eq!(freezes(&path), 1);
    assert_eq!(heard(&mut path)[0], (MSS, 0));
}

#[test]
fn an_acknowledgement_that_is_late_while_the_link_is_up_is_no_resume() {
    let mut path = path();
    path.after_ms(5_000);
    path.data(0, MSS);
    path.after_ms(400);
    assert_eq!(path.gateway.counters().freezes, 1);
    path.far_ack(MSS);
    assert_eq!(path.resumed_after(), None, "the link was not away");
    assert_eq!(path.gateway.counters().resumes, 0);
    assert_eq!(path.gateway.held(), ByteCount(0), "thawed");
}

#[test]
fn probes_are_answered_while_the_mobile_is_away() {
    let mut path = frozen();
    for _ in 0..3 {
        path.after_ms(5_000);
        // BSD: one byte beyond the window. Linux: none, and an old number.
        path.data(9 * MSS, 1);
        assert_eq!(heard(&mut path), [(MSS, 0)]);
        let mut probe = path.near_ack_packet(0).edit();
        let _ = probe.set_seq(path.near_number(MSS) - 1);
        path.near_sends(&probe.finish());
        assert_eq!(heard(&mut path), [(MSS, 0)]);
    }
    assert_eq!(path.gateway.counters().freezes, 1);
}

#[test]
fn the_kept_segment_is_sent_until_the_mobile_acknowledges_it() {
    let mut path = frozen();
    path.up();
    // Each pause is twice as long as the one before.
    for (ms, deliveries) in [(0, 1), (200, 1), (200, 1), (600, 1), (1_000, 1), (2_000, 1)] {
        path.after_ms(ms);
        path.far_ack(0);
        assert_eq!(path.sent(), vec![Sent::Data(0, MSS, 0); deliveries]);
    }
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_connection_whose_mobile_never_acknowledges_is_reset_at_both_ends() {
    let mut path = frozen();
    path.up();
    path.after_ms(400_000);
    let reset = TcpFlags::RST | TcpFlags::ACK;
    let mut resets = Vec::new();
    let mut deliveries = 0;
    while let Some(transmit) = path.gateway.poll_transmit() {
        let tcp = transmit.packet.tcp().expect("a segment");
        if transmit.reason == SendReason::Reset {
            assert_eq!(tcp.flags, reset);
            resets.push((transmit.direction, tcp.seq));
        } else {
            deliveries += 1;
        }
    }
    let mobile_expects = (Direction::ToLink, path.near_number(0));
    let sender_expects = (Direction::FromLink, path.far_number(0));
    assert_eq!(resets, [sender_expects, mobile_expects]);
    assert_eq!(deliveries, 16);
    assert_eq!(path.gateway.counters().resets, 1);
    assert_eq!(path.gateway.held(), ByteCount(0));
}

#[test]
fn figure_5_2_a_window_whose_acknowledgements_have_all_gone_by_is_frozen_all_the_same() {
    let mut path = path();
    for n in 0..9 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    path.far_ack(9 * MSS);
    for n in 9..18 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.after_ms(2_000);
    assert_eq!(heard(&mut path), [(10 * MSS, 0)]);
}

#[test]
fn figure_5_5_a_hand_off_within_a_burst_leaves_nothing_to_acknowledge() {
    let mut path = path();
    for n in 11..14 {
        path.data((n - 11) * MSS, MSS);
    }
    path.after_ms(20);
    path.far_ack(MSS);
    path.data(3 * MSS, MSS);
    path.down();
    path.after_ms(2_000);
    assert_eq!(heard(&mut path), [], "segment 14 is cached, 12 is missing");
    // The sender's timeout brings segment 12: now there is something.
    path.data(MSS, MSS);
    path.after_ms(2_000);
    assert_eq!(heard(&mut path), [(2 * MSS, 0)]);
}

#[test]
fn an_acknowledgement_in_time_leaves_the_sender_alone() {
    let mut path = path();
    for n in 0..100 {
        path.data(n * MSS, MSS);
        path.after_ms(40);
        path.far_ack((n + 1) * MSS);
    }
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert_eq!(path.gateway.held(), ByteCount(0));
}

#[test]
fn the_last_segment_is_not_acknowledged_for_the_mobile() {
    let mut path = path();
    let mut fin = path.data_packet(0, MSS).edit();
    let _ = fin.set_flags(TcpFlags::FIN | TcpFlags::ACK);
    let fin: Packet = fin.finish();
    path.near_sends(&fin);
    path.down();
    path.after_ms(10_000);
    assert_eq!(
        heard(&mut path),
        [],
        "a connection that closes is the hosts' affair"
    );
}

#[test]
fn a_reset_ends_it() {
    let mut path = frozen();
    path.rst(9 * MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    // What was acknowledged is lost: both hosts hear it.
    let reset = Sent::Control(TcpFlags::RST | TcpFlags::ACK);
    assert_eq!(path.sent(), [reset, reset]);
    path.up();
    assert_eq!(path.sent(), []);
}

/// Whoever has seen a segment may send it again, long after its acknowledgement.
#[test]
fn what_the_far_host_has_is_neither_kept_nor_acknowledged_again() {
    let mut path = path();
    path.data(0, MSS);
    path.far_ack(MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.data(0, MSS);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.down();
    path.data(0, MSS);
    path.after_ms(60_000);
    assert_eq!(path.gateway.counters().freezes, 0);
    assert_eq!(heard(&mut path), []);
}
