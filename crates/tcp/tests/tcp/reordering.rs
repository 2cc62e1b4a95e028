//! What RACK (RFC 8985), PRR (RFC 6937) and the scoreboard (RFC 6675, RFC 2018) make of segments
//! that come late, twice or not at all, segment by segment.

use crate::common::script::{Script, ack, data, script_config};
use outlast_tcp::profile::{Congestion, LINUX_2_4, LINUX_6};

/// Ten segments sent at 100 ms over a path of 40 ms, with Reno.
fn ten() -> Script {
    let mut config = script_config(&LINUX_6);
    config.congestion = Some(Congestion::Reno);
    let mut s = Script::connected(config, 40);
    s.write(40, 1);
    recv!(s, 40, data(0, 1));
    send!(s, 80, ack(1));
    s.write(100, 10_000);
    for n in 0..10 {
        recv!(s, 100, data(at(n), 1_000));
    }
    s
}

const fn at(n: i64) -> i64 {
    1 + n * 1_000
}

fn seq(packet: &outlast_wire::Packet) -> i64 {
    i64::from(packet.tcp().expect("TCP").seq.0) - 1
}

#[test]
fn an_answer_too_soon_is_of_the_first_transmission() {
    //= RFC 8985, section 6.2, step 2
    let mut s = ten();
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(4))]));
    recv!(s, 140, data(at(0), 1_000));
    // 5 ms after it was sent again, its first transmission's answer. Taken for the second one's, all
    // that was sent before 140 ms would be late now.
    send!(s, 145, ack(at(4)));
    recv_nothing!(s, 145);
    assert_eq!(s.end.counters().retransmitted_segments, 1);
}

#[test]
fn what_was_seen_to_be_reordered_is_waited_for() {
    //= RFC 8985, section 6.2, step 3
    //= RFC 8985, section 6.2, step 4
    let mut s = ten();
    // The fourth came before the second: no loss, whatever comes in between.
    send!(s, 140, ack(at(0)).sack(&[(at(3), at(4))]));
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(2)), (at(3), at(4))]));
    send!(s, 141, ack(at(0)).sack(&[(at(1), at(8))]));
    recv_nothing!(s, 152);
    // A quarter of the least round trip after it was due, which is 41 ms after it was sent, and 2 ms.
    let (ms, again) = s.next(154).expect("a retransmission");
    assert_eq!((ms, seq(&again)), (153, at(0)));
}

#[test]
fn without_reordering_three_are_enough_and_fewer_are_not_in_recovery() {
    //= RFC 8985, section 6.2, step 4
    let mut s = ten();
    send!(s, 140, ack(at(0)).sack(&[(at(4), at(7))]));
    // Four are lost, and the window has room for two of them.
    recv!(s, 140, data(at(0), 1_000));
    recv!(s, 140, data(at(1), 1_000));
    recv_nothing!(s, 140);
    assert_eq!(s.end.trace().in_flight, 10 - 3 - 4 + 2);
}

#[test]
fn needless_retransmissions_widen_the_reordering_window() {
    //= RFC 8985, section 6.2, step 4
    let waited = |dsack: bool| {
        let mut s = ten();
        send!(s, 140, ack(at(0)).sack(&[(at(3), at(4))]));
        send!(s, 140, ack(at(0)).sack(&[(at(1), at(2)), (at(3), at(4))]));
        let (ms, again) = s.next(153).expect("a retransmission");
        assert_eq!((ms, seq(&again)), (152, at(0)));
        while s.next(153).is_some() {}
        // The first copies arrive after all, the second ones too.
        send!(s, 155, ack(at(10)));
        if dsack {
            send!(s, 190, ack(at(10)).sack(&[(at(0), at(1))]));
        } else {
            s.go_to(190);
        }
        for round in 0..2 {
            let ms = 200 + round * 100;
            s.write(ms, 3_000);
            while s.next(ms).is_some() {}
            if round == 0 {
                send!(s, ms + 40, ack(at(13)));
            }
        }
        send!(s, 340, ack(at(13)).sack(&[(at(14), at(15))]));
        s.next_sent().expect("a retransmission").0
    };
    let (narrow, wide) = (waited(false), waited(true));
    assert!(narrow >= 350 && wide >= narrow + 10, "{narrow} {wide}");
}

#[test]
fn nothing_that_was_selectively_acknowledged_is_sent_again() {
    //= RFC 6675, section 5.1
    //= RFC 2018, section 5
    //= RFC 6675, section 4
    for profile in [&LINUX_6, &LINUX_2_4] {
        let mut config = script_config(profile);
        config.congestion = Some(Congestion::Reno);
        let mut s = Script::connected(config, 40);
        s.write(40, 40_000);
        let mut acked = 0;
        let mut ms = 40;
        while s.end.trace().in_flight < 6 {
            while s.next(ms).is_some() {}
            ms += 40;
            let trace = s.end.trace();
            acked += i64::from(trace.snd_nxt.distance_from(trace.snd_una));
            send!(s, ms, ack(acked));
            assert!(ms < 1_000);
        }
        while s.next(ms).is_some() {}
        let known = [
            (acked + 1_000, acked + 2_000),
            (acked + 3_000, acked + 4_000),
        ];
        send!(s, ms + 40, ack(acked).sack(&known));
        // Through fast recovery and two timeouts.
        while s.end.counters().timeouts < 2 {
            let (_, packet) = s.next_sent().expect("it goes on");
            let from = seq(&packet);
            let is_known = known
                .iter()
                .any(|&(left, right)| left <= from && from < right);
            assert!(
                !is_known,
                "{}: {from} is known to have arrived",
                profile.name
            );
        }
    }
}

#[test]
fn what_is_in_flight_is_what_is_neither_known_to_have_arrived_nor_to_be_lost() {
    //= RFC 6675, section 4
    let mut s = ten();
    assert_eq!(s.end.trace().in_flight, 10);
    send!(s, 140, ack(at(0)).sack(&[(at(2), at(4))]));
    assert_eq!(s.end.trace().in_flight, 8);
    send!(s, 141, ack(at(2)).sack(&[(at(2), at(4))]));
    assert_eq!(s.end.trace().in_flight, 6);
    // Two lost, one of them sent again at once: in flight it is again.
    let mut s = ten();
    send!(s, 140, ack(at(0)).sack(&[(at(2), at(6))]));
    recv!(s, 140, data(at(0), 1_000));
    assert_eq!(s.end.trace().in_flight, 10 - 4 - 2 + 1);
}

#[test]
fn lost_segments_come_before_new_ones() {
    //= RFC 6675, section 4
    let mut s = ten();
    s.write(101, 20_000);
    recv_nothing!(s, 139);
    send!(s, 140, ack(at(0)).sack(&[(at(2), at(6))]));
    let mut sent = Vec::new();
    for n in 6..10 {
        while let Some((_, packet)) = s.next(140) {
            sent.push(seq(&packet));
        }
        send!(s, 140, ack(at(0)).sack(&[(at(2), at(n + 1))]));
    }
    while let Some((_, packet)) = s.next(140) {
        sent.push(seq(&packet));
    }
    assert_eq!(sent[..2], [at(0), at(1)]);
    assert!(sent[2..].iter().all(|&seq| seq >= at(10)), "{sent:?}");
}

#[test]
fn after_heavy_loss_as_much_is_sent_as_has_arrived() {
    //= RFC 6937, section 3, reduction bound
    let mut s = ten();
    // Seven of ten are lost: one in flight at most, far below the threshold of five.
    send!(s, 140, ack(at(0)).sack(&[(at(7), at(10))]));
    assert_eq!(s.end.trace().ssthresh, Some(5));
    let first: Vec<_> = std::iter::from_fn(|| s.next(140)).collect();
    assert_eq!(first.len(), 3, "three have arrived");
    // Each that arrives lets one more out, and with the window advancing two.
    send!(s, 180, ack(at(1)).sack(&[(at(7), at(10))]));
    let second = std::iter::from_fn(|| s.next(180)).count();
    assert_eq!(second, 2);
}

#[test]
fn a_renege_is_survived() {
    //= RFC 2018, section 8
    let mut s = ten();
    send!(s, 140, ack(at(0)).sack(&[(at(1), at(10))]));
    while s.next(140).is_some() {}
    // The receiver has thrown everything away that it told of, and takes it again in order.
    let mut have = 0;
    let mut ms = 140;
    while have < 10 {
        let (when, packet) = s.next_sent().expect("it is sent again");
        ms = ms.max(when);
        if seq(&packet) == at(have) {
            have += 1;
        }
        send!(s, ms + 5, ack(at(have)));
        ms += 5;
        assert!(ms < 60_000, "{have} of ten");
    }
    assert_eq!(s.end.acknowledged(), 10_001);
}

#[test]
fn overlapping_arrivals_are_told_once() {
    //= RFC 2883, section 4.2
    //= RFC 2883, section 4
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    send!(s, 50, data(1_000, 1_000).ack(0));
    recv!(s, 50, ack(0).sack(&[(1_000, 2_000)]));
    send!(s, 51, data(1_500, 1_000).ack(0));
    recv!(s, 51, ack(0).sack(&[(1_500, 2_000), (1_000, 2_500)]));
    send!(s, 52, data(3_000, 500).ack(0));
    recv!(s, 52, ack(0).sack(&[(3_000, 3_500), (1_000, 2_500)]));
}

#[test]
fn what_a_gap_parts_is_no_duplicate() {
    //= RFC 2883, section 4
    //= RFC 2883, section 4.2
    // Two blocks stand apart, and a large segment covers both. One block tells of one duplicate: Linux
    // 6.18 tells of the first, and the gap that came only now is not in it.
    let apart = |profile| {
        let mut config = script_config(profile);
        config.mtu = 9_000;
        let mut s = Script::connected(config, 40);
        send!(s, 50, data(1_000, 500).ack(0));
        recv!(s, 50, ack(0).sack(&[(1_000, 1_500)]));
        send!(s, 51, data(2_000, 500).ack(0));
        recv!(s, 51, ack(0).sack(&[(2_000, 2_500), (1_000, 1_500)]));
        s
    };
    // Out of order: over both; from within the first into the second; from where the first begins.
    for (seq, len, told) in [
        (500, 2_500, [(1_000, 1_500), (500, 3_000)]),
        (1_200, 1_000, [(1_200, 1_500), (1_000, 2_500)]),
        (1_000, 1_500, [(1_000, 1_500), (1_000, 2_500)]),
    ] {
        let mut s = apart(&LINUX_6);
        send!(s, 60, data(seq, len).ack(0));
        recv!(s, 60, ack(0).sack(&told));
    }
    // In order: over both, and into the second.
    for (len, acknowledged) in [(2_500, 2_500), (2_200, 2_500)] {
        let mut s = apart(&LINUX_6);
        send!(s, 60, data(0, len).ack(0));
        recv!(s, 60, ack(acknowledged).sack(&[(1_000, 1_500)]));
    }
    // Within the second, it is the second.
    let mut s = apart(&LINUX_6);
    send!(s, 60, data(2_100, 200).ack(0));
    let told = [(2_100, 2_300), (2_000, 2_500), (1_000, 1_500)];
    recv!(s, 60, ack(0).sack(&told));
    // Up to Linux 6.15 all from the first block to the segment's end was told in order.
    let mut s = apart(&LINUX_2_4);
    send!(s, 60, data(0, 2_500).ack(0));
    recv!(s, 60, ack(2_500).sack(&[(1_000, 2_500)]));
}

#[test]
fn a_segment_partly_old_tells_of_its_old_part() {
    //= RFC 2883, section 4.2
    // Linux 6.18: what the segment repeats of the stream comes before what it repeats of blocks.
    let mut config = script_config(&LINUX_6);
    config.mtu = 9_000;
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 500).ack(0));
    recv!(s, 50, ack(500));
    send!(s, 55, data(1_000, 500).ack(0));
    send!(s, 55, data(2_000, 500).ack(0));
    while s.next(55).is_some() {}
    send!(s, 60, data(200, 2_800).ack(0));
    recv!(s, 60, ack(3_000).sack(&[(200, 500)]));
}

#[test]
fn no_more_blocks_than_there_is_room_for() {
    //= RFC 2018, section 3
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let mut config = script_config(&LINUX_6);
        config.timestamps = Some(timestamps);
        let mut s = Script::connected(config, 40);
        for n in 1..8 {
            let segment = data(n * 1_000, 100).ack(0);
            send!(
                s,
                50,
                if timestamps {
                    segment.stamps(2, 40)
                } else {
                    segment
                }
            );
        }
        let mut last = 0;
        while let Some((_, packet)) = s.next(60) {
            last = packet.tcp().expect("TCP").options.sack.len();
        }
        assert_eq!(last, most);
    }
}
