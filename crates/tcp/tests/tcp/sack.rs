//! Selective acknowledgement on both sides, RACK, loss probes, PRR and undoing, segment by
//! segment.

use crate::common::script::{Script, ack, data, script_config};
use outlast_base::time::Duration;
use outlast_tcp::profile::{Congestion, LINUX_2_4, LINUX_6};
use outlast_tcp::{Config, Endpoint, Reason};

fn reno() -> Config {
    let mut config = script_config(&LINUX_6);
    config.congestion = Some(Congestion::Reno);
    config
}

/// Ten segments sent at 100 ms.
fn ten(config: Config) -> Script {
    let mut s = Script::connected(config, 40);
    // A first exchange, so that later acknowledgements bring no new SND.WL1.
    s.write(40, 1);
    recv!(s, 40, data(0, 1));
    send!(s, 80, ack(1));
    s.write(100, 10_000);
    for n in 0..10 {
        recv!(s, 100, data(1 + n * 1_000, 1_000));
    }
    recv_nothing!(s, 100);
    s
}

const fn at(n: i64) -> i64 {
    1 + n * 1_000
}

#[test]
fn three_segments_above_mean_a_loss() {
    //= RFC 8985, section 6.2, step 4
    //= RFC 6675, section 5
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(2))]));
    send!(s, 141, ack(at(0)).sack(&[(at(1), at(3))]));
    recv_nothing!(s, 141);
    send!(s, 142, ack(at(0)).sack(&[(at(1), at(4))]));
    recv!(s, 142, data(at(0), 1_000));
    assert_eq!(s.end.counters().fast_recoveries, 1);
}

#[test]
fn fewer_wait_for_the_reordering_window() {
    //= RFC 8985, section 6.2, step 5
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(2))]));
    // A quarter of the least round trip from when the segment was due, 10 ms, and 2 ms. Linux 6.18,
    // whose ticks are 4 ms, waits for 11.7 ms at a round trip of 20 ms.
    let (ms, again) = s.next_sent().expect("a retransmission");
    assert_eq!(ms, 152);
    assert_eq!(i64::from(again.tcp().expect("TCP").seq.0) - 1, at(0));
}

#[test]
fn linux_2_4_counts_only() {
    //= RFC 6675, section 4 (IsLost)
    let mut config = script_config(&LINUX_2_4);
    config.congestion = None;
    let mut s = Script::connected(config, 40);
    s.write(40, 100_000);
    let mut una = 0;
    for ms in [80, 120, 160] {
        while s.next(ms).is_some() {}
        for _ in 0..s.end.trace().in_flight {
            una += 1_000;
            send!(s, ms, ack(una));
        }
    }
    while s.next(160).is_some() {}
    send!(s, 200, ack(una).sack(&[(una + 1_000, una + 2_000)]));
    send!(s, 200, ack(una).sack(&[(una + 1_000, una + 3_000)]));
    while let Some((_, packet)) = s.next(300) {
        assert!(
            packet.tcp().expect("TCP").seq.0 > una as u32 + 1,
            "new data only"
        );
    }
    send!(s, 300, ack(una).sack(&[(una + 1_000, una + 4_000)]));
    recv!(s, 300, data(una, 1_000));
}

#[test]
fn a_pure_duplicate_says_nothing_where_there_is_sack() {
    //= RFC 6675, section 2 (duplicate acknowledgement)
    let mut s = ten(reno());
    for ms in 140..150 {
        send!(s, ms, ack(at(0)));
    }
    assert_eq!(s.end.counters().retransmitted_segments, 0);
    assert!(!s.end.is_recovering());
}

#[test]
fn blocks_beyond_what_was_sent_are_not_believed() {
    //= RFC 6675, section 5
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(14))]));
    send!(s, 141, ack(at(0)).sack(&[(at(4), at(2))]));
    recv_nothing!(s, 160);
    assert_eq!(s.end.trace().in_flight, 10);
}

#[test]
fn a_lost_retransmission_is_found() {
    //= RFC 8985, section 6.2, step 5
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(4))]));
    recv!(s, 140, data(at(0), 1_000));
    while s.next(140).is_some() {}
    s.write(150, 5_000);
    send!(s, 150, ack(at(0)).sack(&[(at(1), at(8))]));
    let (_, fresh) = s.next(150).expect("PRR lets new data out");
    let seq = i64::from(fresh.tcp().expect("TCP").seq.0) - 1;
    assert_eq!(seq, at(10));
    while s.next(189).is_some() {}
    // What was sent after the retransmission has arrived, the retransmission has not.
    send!(s, 190, ack(at(0)).sack(&[(at(10), at(11)), (at(1), at(8))]));
    recv!(s, 190, data(at(0), 1_000));
}

#[test]
fn the_window_comes_down_in_proportion() {
    //= RFC 6937, section 3
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(4))]));
    recv!(s, 140, data(at(0), 1_000));
    assert_eq!(s.end.trace().ssthresh, Some(5));
    // Six are in flight of ten, and the one sent again: one more than the target.
    assert_eq!(s.end.trace().in_flight, 7);
    s.write(141, 50_000);
    // One segment may leave for every second that arrives.
    let mut sent = 0;
    for n in 4..10 {
        send!(s, 141 + n, ack(at(0)).sack(&[(at(1), at(n as i64 + 1))]));
        sent += std::iter::from_fn(|| s.next(141 + n)).count();
    }
    assert!((3..=4).contains(&sent), "{sent}");
    send!(s, 190, ack(at(10)));
    assert!(!s.end.is_recovering());
    assert_eq!(s.end.trace().cwnd, 5);
}

#[test]
fn a_tail_is_probed_after_two_round_trips() {
    //= RFC 8985, section 7.2
    //= RFC 8985, section 7.3
    let mut s = ten(reno());
    send!(s, 140, ack(at(8)));
    // Two round trips of 40 ms from the last progress, and 2 ms; more are outstanding than one.
    // Linux 6.18, whose ticks are 4 ms, probes 44.8 ms after two segments at a round trip of 20 ms.
    let (ms, probe) = s.next_sent().expect("a probe");
    assert_eq!(ms, 222);
    assert_eq!(i64::from(probe.tcp().expect("TCP").seq.0) - 1, at(9));
    assert_eq!(s.end.counters().loss_probes, 1);
    assert_eq!(s.end.counters().timeouts, 0);
    // One probe only; then a whole timeout.
    let (ms, again) = s.next_sent().expect("a timeout");
    assert_eq!(ms, 462);
    assert_eq!(i64::from(again.tcp().expect("TCP").seq.0) - 1, at(8));
}

#[test]
fn a_probe_that_repairs_tells_congestion_control() {
    //= RFC 8985, section 7.4.2
    let mut s = ten(reno());
    send!(s, 140, ack(at(9)));
    // One segment might be acknowledged late, but the timeout of 240 ms comes first.
    recv!(s, 380, data(at(9), 1_000));
    send!(s, 420, ack(at(10)));
    s.write(500, 1_000);
    recv!(s, 500, data(at(10), 1_000));
    send!(s, 540, ack(at(11)));
    assert!(s.end.trace().ssthresh.is_some());
}

#[test]
fn a_probe_that_came_twice_does_not() {
    //= RFC 8985, section 7.4.2
    let mut s = ten(reno());
    send!(s, 140, ack(at(9)));
    // One segment might be acknowledged late, but the timeout of 240 ms comes first.
    recv!(s, 380, data(at(9), 1_000));
    send!(s, 420, ack(at(10)).sack(&[(at(9), at(10))]));
    s.write(500, 1_000);
    recv!(s, 500, data(at(10), 1_000));
    send!(s, 540, ack(at(11)));
    assert_eq!(s.end.trace().ssthresh, None);
}

#[test]
fn a_probe_prefers_new_data() {
    //= RFC 8985, section 7.3
    let mut config = reno();
    config.nagle = true;
    let mut s = ten(config);
    s.app(101, |end, now| end.send(now, 3_000));
    recv_nothing!(s, 101);
    // The window is full: the probe goes beyond it.
    let (_, probe) = s.next_sent().expect("a probe");
    assert_eq!(i64::from(probe.tcp().expect("TCP").seq.0) - 1, at(10));
}

#[test]
fn a_timeout_spares_what_was_sent_just_now() {
    //= RFC 8985, section 6.3
    let mut s = ten(reno());
    send!(s, 140, ack(at(2)));
    s.app(200, |end, now| end.send(now, 100));
    while s.next(200).is_some() {}
    let (_, probe) = s.next_sent().expect("a probe");
    let _ = probe;
    let (timeout, head) = s.next_sent().expect("a timeout");
    assert_eq!(i64::from(head.tcp().expect("TCP").seq.0) - 1, at(2));
    assert!(timeout >= 440);
}

#[test]
fn a_spurious_timeout_is_recognised_by_what_was_sent_once() {
    //= RFC 5682, section 3.1, step 1
    //= RFC 5682, section 3.1, step 2b
    //= RFC 5682, section 3.1, step 3b
    let mut s = ten(reno());
    s.go_to(500);
    while s.next(500).is_some() {}
    assert_eq!(s.end.counters().timeouts, 1);
    let lowered = s.end.trace();
    assert_eq!(lowered.ssthresh, Some(5));
    // The first transmission of the head arrives late: step 2b sends new data.
    s.write(500, 5_000);
    send!(s, 510, ack(at(1)));
    let (_, fresh) = s.next(510).expect("new data");
    assert_eq!(i64::from(fresh.tcp().expect("TCP").seq.0) - 1, at(10));
    while s.next(510).is_some() {}
    // And so do the others, which were never sent again.
    send!(s, 511, ack(at(3)));
    assert!(!s.end.is_recovering());
    assert_eq!(s.end.counters().undone, 1);
    assert!(s.end.trace().cwnd >= 10);
    let left = s.end.counters().retransmitted_segments;
    assert!(left <= 2, "the probe and the head only: {left}");
}

#[test]
fn a_real_timeout_sends_everything_again() {
    //= RFC 5682, section 3.1, step 2a
    let mut s = ten(reno());
    s.go_to(500);
    while s.next(500).is_some() {}
    // Nothing new to send, so the conventional way.
    send!(s, 540, ack(at(1)));
    recv!(s, 540, data(at(1), 1_000));
    recv!(s, 540, data(at(2), 1_000));
    send!(s, 580, ack(at(3)));
    let again = std::iter::from_fn(|| s.next(580)).count();
    assert!(again >= 3, "{again}");
    assert_eq!(s.end.counters().undone, 0);
}

#[test]
fn timestamps_show_a_spurious_recovery() {
    //= RFC 3522, section 3.2
    //= RFC 4015, section 3.2
    //= RFC 4015, section 3.4
    let mut config = reno();
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    s.write(40, 1);
    recv!(s, 40, data(0, 1));
    send!(s, 80, ack(1).stamps(10, 40));
    s.write(100, 9_880);
    while s.next(100).is_some() {}
    let mss = 988;
    let edge = |n: i64| 1 + n * mss;
    send!(s, 140, ack(1).stamps(11, 100).sack(&[(edge(1), edge(4))]));
    recv!(s, 140, data(1, mss as u32));
    assert_eq!(s.end.trace().ssthresh, Some(5));
    // The answer echoes the first transmission, not the one at 140 ms.
    send!(s, 150, ack(edge(10)).stamps(12, 100));
    assert_eq!(s.end.counters().undone, 1);
    assert!(!s.end.is_recovering());
    assert!(s.end.trace().cwnd >= 10);
}

#[test]
fn duplicates_reported_by_the_peer_undo() {
    //= RFC 3708, section 2
    //= RFC 2883, section 5
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(4))]));
    recv!(s, 140, data(at(0), 1_000));
    send!(s, 150, ack(at(10)));
    assert!(s.end.trace().cwnd < 7);
    send!(s, 190, ack(at(10)).sack(&[(at(0), at(1))]));
    assert_eq!(s.end.counters().undone, 1);
    assert!(s.end.trace().cwnd >= 10, "{}", s.end.trace().cwnd);
}

#[test]
fn duplicates_of_what_was_never_sent_again_are_the_networks() {
    //= RFC 3708, section 3
    let mut s = ten(reno());
    send!(s, 140, ack(at(10)));
    send!(s, 150, ack(at(10)).sack(&[(at(0), at(1))]));
    assert_eq!(s.end.counters().undone, 0);
}

#[test]
fn what_comes_out_of_order_is_told_at_once() {
    //= RFC 2018, section 4
    //= RFC 5681, section 4.2
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    send!(s, 50, data(1_000, 1_000).ack(0));
    recv!(s, 50, ack(0).sack(&[(1_000, 2_000)]));
    send!(s, 51, data(3_000, 1_000).ack(0));
    recv!(s, 51, ack(0).sack(&[(3_000, 4_000), (1_000, 2_000)]));
    send!(s, 52, data(0, 1_000).ack(0));
    recv!(s, 52, ack(2_000).sack(&[(3_000, 4_000)]));
    send!(s, 53, data(2_000, 1_000).ack(0));
    recv!(s, 53, ack(4_000).sack(&[]));
    assert_eq!(s.end.received(), 4_000);
}

#[test]
fn what_comes_twice_is_told() {
    //= RFC 2883, section 4.1.1
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    send!(s, 50, data(0, 1_000).ack(0));
    while s.next(50).is_some() {}
    send!(s, 60, data(0, 1_000).ack(0));
    recv!(s, 60, ack(1_000).sack(&[(0, 1_000)]));
    //= RFC 2883, section 4.1.3
    send!(s, 70, data(2_000, 1_000).ack(0));
    recv!(s, 70, ack(1_000).sack(&[(2_000, 3_000)]));
    send!(s, 71, data(2_000, 1_000).ack(0));
    recv!(s, 71, ack(1_000).sack(&[(2_000, 3_000), (2_000, 3_000)]));
}

#[test]
fn many_out_of_order_share_acknowledgements() {
    // tcp_comp_sack_delay_ns: a twentieth of the round trip, at most 1 ms.
    let mut config = script_config(&LINUX_6);
    // A window that opens is told at once.
    config.receive_buffer = Some(40 * 1_460);
    let mut s = Script::connected(config, 40);
    for n in 1..=3 {
        send!(s, 50, data(n * 1_000, 1_000).ack(0));
        recv!(s, 50, ack(0));
    }
    for n in 4..=9 {
        send!(s, 50, data(n * 1_000, 1_000).ack(0));
    }
    recv_nothing!(s, 50);
    recv!(s, 51, ack(0).sack(&[(1_000, 10_000)]));
}

#[test]
fn reneging_is_noticed() {
    //= RFC 2018, section 8
    let mut s = ten(reno());
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(4))]));
    while s.next(140).is_some() {}
    // The hole is filled, but what was told to be there is not acknowledged.
    send!(s, 180, ack(at(1)));
    let (_, again) = s.next_sent().expect("a retransmission");
    assert_eq!(i64::from(again.tcp().expect("TCP").seq.0) - 1, at(1));
    assert!(
        crate::common::ms(s.now) <= 210,
        "soon: {}",
        crate::common::ms(s.now)
    );
}

#[test]
fn a_mechanism_may_start_fast_recovery() {
    // Cáceres and Iftode 1995, section IV.
    let mut s = ten(reno());
    s.app(110, Endpoint::fast_retransmit_now);
    recv!(s, 110, data(at(0), 1_000));
    assert_eq!(s.end.trace().ssthresh, Some(5));
    assert_eq!(s.end.counters().timeouts, 0);
}

#[test]
fn a_mechanism_may_send_duplicates() {
    // Cáceres and Iftode 1995, section IV: three identical acknowledgements.
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    s.app(50, |end, now| end.send_duplicate_acks(now, 3));
    for _ in 0..3 {
        recv!(s, 50, ack(0).seq(0).flags("A"));
    }
    recv_nothing!(s, 50 + Script::wait(Duration::from_secs(1)));
}

#[test]
fn a_duplicate_after_a_timeout_means_that_it_was_right() {
    //= RFC 5682, section 3.1, step 3a
    let mut s = ten(reno());
    s.go_to(500);
    while s.next(500).is_some() {}
    assert_eq!(s.end.counters().timeouts, 1);
    s.write(500, 5_000);
    send!(s, 540, ack(at(1)));
    // Step 2b: new data. It arrives, and so nothing of what was sent before it did.
    recv!(s, 540, data(at(10), 1_000));
    while s.next(540).is_some() {}
    send!(s, 580, ack(at(1)).sack(&[(at(10), at(11))]));
    recv!(s, 580, data(at(1), 1_000));
    assert!(s.end.is_recovering());
    assert_eq!(s.end.counters().undone, 0);
}

#[test]
fn the_least_round_trip_makes_the_reordering_window() {
    //= RFC 8985, section 6.2, step 1
    let waited = |least: u64| {
        let mut s = Script::connected(reno(), 40);
        s.write(40, 1);
        recv!(s, 40, data(0, 1));
        // The least of all round trips, though the latest ones are longer.
        send!(s, 40 + least, ack(1));
        for n in 0..3 {
            let ms = 200 + n * 100;
            s.write(ms, 1);
            while s.next(ms).is_some() {}
            send!(s, ms + 60, ack(2 + n as i64));
        }
        s.write(600, 10_000);
        while s.next(600).is_some() {}
        send!(s, 660, ack(4).sack(&[(1_004, 2_004)]));
        s.next_sent().expect("a retransmission").0 - 660
    };
    assert_eq!(
        (waited(40), waited(8)),
        (10 + 2, 2 + 2),
        "a quarter and 2 ms"
    );
}

#[test]
fn one_timer_serves_reordering_probes_and_timeouts() {
    //= RFC 8985, section 8
    let reason = |s: &Script| s.end.poll_timeout().map(|(_, reason)| reason);
    let mut s = ten(reno());
    assert_eq!(reason(&s), Some(Reason::LossProbe), "the timeout is later");
    // One may be lost: its time comes before that of a probe.
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(2))]));
    assert_eq!(reason(&s), Some(Reason::Reordering));
    let _ = s.next_sent().expect("a retransmission");
    // In recovery nothing is probed.
    assert_eq!(reason(&s), Some(Reason::Retransmission));
    send!(s, 190, ack(at(10)));
    assert_eq!(reason(&s), None, "nothing is outstanding");
    s.write(200, 2_000);
    while s.next(200).is_some() {}
    assert_eq!(reason(&s), Some(Reason::LossProbe));
    let _ = s.next_sent().expect("a probe");
    // One probe only.
    assert_eq!(reason(&s), Some(Reason::Retransmission));
}
