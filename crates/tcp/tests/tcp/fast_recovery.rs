//! Fast retransmit and fast recovery without SACK, segment by segment.

use crate::common::script::{Script, ack, data, script_config};
use outlast_tcp::Config;
use outlast_tcp::profile::{
    BSD_4_3_TAHOE, Cited, Congestion, FREEBSD_2_2, Growth, LINUX_6, Profile, Recovery,
};

/// Ten segments outstanding after slow start without losses.
fn ten_outstanding(config: Config) -> Script {
    let mut s = Script::connected(config, 40);
    s.write(40, 100_000);
    let mut acked = 0;
    let mut ms = 40;
    loop {
        while s.next(ms).is_some() {}
        if acked > 0 && s.end.trace().cwnd >= 10 {
            break;
        }
        ms += 40;
        for _ in 0..s.end.trace().in_flight {
            acked += 1_000;
            send!(s, ms, ack(acked));
        }
    }
    s.go_to(ms);
    s
}

fn acked(s: &Script) -> i64 {
    i64::from(s.end.trace().snd_una.0) - 1
}

fn without_sack(profile: &'static Profile) -> Config {
    let mut config = script_config(profile);
    config.sack = Some(false);
    config.congestion = Some(Congestion::Reno);
    config
}

#[test]
fn two_duplicates_are_not_enough() {
    //= RFC 5681, section 3.2
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let una = acked(&s);
    let ms = crate::common::ms(s.now) + 40;
    send!(s, ms, ack(una));
    send!(s, ms, ack(una));
    assert_eq!(s.end.counters().fast_recoveries, 0);
    while let Some((_, packet)) = s.next(ms) {
        let seq = i64::from(packet.tcp().expect("TCP").seq.0) - 1;
        assert!(
            seq >= una + 10_000,
            "limited transmit (RFC 3042) sends new data only"
        );
    }
}

#[test]
fn linux_without_sack_repairs_one_hole_a_round_trip() {
    //= RFC 6582, section 3.2, step 2
    //= RFC 6582, section 3.2, step 3
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let una = acked(&s);
    let window = s.end.trace().cwnd;
    let ms = crate::common::ms(s.now) + 40;
    for _ in 0..3 {
        send!(s, ms, ack(una));
    }
    assert_eq!(s.end.counters().fast_recoveries, 1);
    let again: Vec<_> = std::iter::from_fn(|| s.next(ms))
        .map(|(_, packet)| i64::from(packet.tcp().expect("TCP").seq.0) - 1)
        .filter(|seq| *seq == una)
        .collect();
    assert_eq!(again, [una]);
    assert_eq!(s.end.trace().ssthresh, Some(window / 2));
    // The next hole is told by a partial acknowledgement; PRR has let out what else it may.
    for _ in 0..9 {
        send!(s, ms, ack(una));
    }
    while s.next(ms).is_some() {}
    send!(s, ms + 40, ack(una + 4_000));
    recv!(s, ms + 40, data(una + 4_000, 1_000));
    // All that was outstanding then: recovery is over when something above is acknowledged.
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    send!(s, ms + 80, ack(high));
    while s.next(ms + 80).is_some() {}
    send!(s, ms + 120, ack(high + 1_000));
    assert!(!s.end.is_recovering());
    assert_eq!(s.end.counters().timeouts, 0);
}

#[test]
fn tahoe_retransmits_one_segment_and_starts_slowly() {
    // Cáceres and Iftode 1995, section IV; Jacobson 1988.
    let mut s = ten_outstanding(without_sack(&BSD_4_3_TAHOE));
    let una = acked(&s);
    let window = s.end.trace().cwnd;
    let ms = crate::common::ms(s.now) + 40;
    for _ in 0..3 {
        send!(s, ms, ack(una));
    }
    recv!(s, ms, data(una, 1_000));
    assert_eq!(s.end.trace().cwnd, 1);
    assert_eq!(s.end.trace().ssthresh, Some(window / 2));
    send!(s, ms, ack(una));
    recv_nothing!(s, ms);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    send!(s, ms + 40, ack(high));
    recv!(s, ms + 40, data(high, 1_000));
    recv!(s, ms + 40, data(high + 1_000, 1_000));
    recv_nothing!(s, ms + 40);
}

#[test]
fn reno_inflates_and_deflates() {
    //= RFC 5681, section 3.2, step 2
    //= RFC 5681, section 3.2, step 3
    //= RFC 5681, section 3.2, step 4
    //= RFC 5681, section 3.2, step 6
    let mut s = ten_outstanding(without_sack(&FREEBSD_2_2));
    let una = acked(&s);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    let window = s.end.trace().cwnd;
    let ms = crate::common::ms(s.now) + 40;
    for _ in 0..3 {
        send!(s, ms, ack(una));
    }
    recv!(s, ms, data(una, 1_000));
    assert_eq!(s.end.trace().ssthresh, Some(window / 2));
    assert_eq!(s.end.trace().cwnd, window / 2 + 3);
    // Each further duplicate is a segment that has left the network.
    for _ in 0..window - 3 {
        send!(s, ms + 1, ack(una));
    }
    let sent = std::iter::from_fn(|| s.next(ms + 1)).count();
    assert!(sent > 0, "new data while recovering");
    send!(s, ms + 40, ack(high));
    assert_eq!(s.end.trace().cwnd, window / 2);
    assert!(!s.end.is_recovering());
}

/// FreeBSD with NewReno, as it came with version 4.
fn new_reno() -> &'static Profile {
    let mut profile = FREEBSD_2_2.clone();
    profile.recovery = Cited {
        value: Recovery::NewReno,
        source: profile.recovery.source,
    };
    Box::leak(Box::new(profile))
}

#[test]
fn new_reno_stays_in_recovery_on_partial_acknowledgements() {
    //= RFC 6582, section 3.2, step 3
    let mut s = ten_outstanding(without_sack(new_reno()));
    let una = acked(&s);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    let ms = crate::common::ms(s.now) + 40;
    for _ in 0..3 {
        send!(s, ms, ack(una));
    }
    recv!(s, ms, data(una, 1_000));
    while s.next(ms).is_some() {}
    send!(s, ms + 40, ack(una + 3_000));
    recv!(s, ms + 40, data(una + 3_000, 1_000));
    assert!(s.end.is_recovering());
    while s.next(ms + 40).is_some() {}
    send!(s, ms + 80, ack(high));
    assert!(!s.end.is_recovering());
}

#[test]
fn new_reno_ignores_duplicates_of_what_it_sent_again() {
    //= RFC 6582, section 3.2, step 2
    //= RFC 6582, section 3.2, step 4
    let mut s = ten_outstanding(without_sack(new_reno()));
    let una = acked(&s);
    // A timeout, after which everything is sent again.
    let (at, _) = s.next_sent().expect("a retransmission");
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    send!(s, at + 40, ack(una + 1_000));
    while s.next(at + 40).is_some() {}
    for _ in 0..4 {
        send!(s, at + 41, ack(una + 1_000));
    }
    assert_eq!(s.end.counters().fast_recoveries, 0, "all below {high}");
}

#[test]
fn bsd_goes_back_to_the_oldest_after_a_timeout() {
    // TCP/IP Illustrated, volume 2, section 25.11
    let mut s = ten_outstanding(without_sack(&FREEBSD_2_2));
    let una = acked(&s);
    let (at, first) = s.next_sent().expect("a retransmission");
    assert_eq!(i64::from(first.tcp().expect("TCP").seq.0) - 1, una);
    assert_eq!(s.end.trace().cwnd, 1);
    send!(s, at + 40, ack(una + 1_000));
    recv!(s, at + 40, data(una + 1_000, 1_000));
    recv!(s, at + 40, data(una + 2_000, 1_000));
    recv_nothing!(s, at + 40);
}

#[test]
fn each_timeout_of_a_segment_lowers_the_threshold_of_bsd() {
    // Cáceres and Iftode 1995, section III.D.
    let mut s = ten_outstanding(without_sack(&FREEBSD_2_2));
    let first = s.end.trace().cwnd / 2;
    let _ = s.next_sent().expect("a retransmission");
    assert_eq!(s.end.trace().ssthresh, Some(first));
    let _ = s.next_sent().expect("another");
    assert_eq!(s.end.trace().ssthresh, Some(2));
}

#[test]
fn slow_start_adds_a_segment_for_each_that_is_acknowledged() {
    //= RFC 5681, section 3.1, equation 2
    for profile in Profile::ALL {
        let mut s = Script::connected(without_sack(profile), 40);
        s.write(40, 1_000_000);
        while s.next(40).is_some() {}
        let initial = s.end.trace().cwnd;
        assert_eq!(initial, *profile.initial_window, "{}", profile.name);
        let mut acked = 0;
        for round in 1..4 {
            let ms = 40 + round * 40;
            for _ in 0..s.end.trace().in_flight {
                acked += 1_000;
                send!(s, ms, ack(acked));
            }
            while s.next(ms).is_some() {}
            let cwnd = s.end.trace().cwnd;
            assert_eq!(cwnd, initial << round, "{}", profile.name);
        }
    }
}

#[test]
fn avoidance_adds_a_segment_for_each_window() {
    //= RFC 5681, section 3.1, equation 3
    for profile in Profile::ALL {
        let mut s = ten_outstanding(without_sack(profile));
        let mut ms = crate::common::ms(s.now) + 40;
        s.write(ms, 100_000_000);
        // A loss sets the threshold.
        let mut una = acked(&s);
        for _ in 0..3 {
            send!(s, ms, ack(una));
        }
        while s.next(ms).is_some() {}
        let mut rounds = Vec::new();
        for _ in 0..40 {
            ms += 40;
            let outstanding = i64::from(s.end.trace().snd_nxt.0) - 1;
            while una < outstanding {
                una = (una + 1_000).min(outstanding);
                send!(s, ms, ack(una));
            }
            while s.next(ms).is_some() {}
            let trace = s.end.trace();
            if !s.end.is_recovering() && Some(trace.cwnd) > trace.ssthresh {
                rounds.push(trace.cwnd);
            }
        }
        let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
        let rounds = rounds.len() as u32 - 1;
        // BSD adds an eighth of a segment for each acknowledgement besides.
        let eighth = matches!(*profile.growth, Growth::PerAck { extra_eighth: true });
        if eighth {
            assert!(last - first > rounds, "{}: {first} to {last}", profile.name);
        } else {
            let grown = last - first;
            assert!(
                grown <= rounds && grown + rounds / 4 + 1 >= rounds,
                "{}: {first} to {last} in {rounds}",
                profile.name
            );
        }
    }
}

#[test]
fn a_duplicate_lets_a_new_segment_out() {
    //= RFC 3042, section 2
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let (una, ms) = (acked(&s), crate::common::ms(s.now) + 40);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    let cwnd = s.end.trace().cwnd;
    for n in 0..2 {
        let ms = ms + 2 * n;
        send!(s, ms, ack(una));
        recv!(
            s,
            ms,
            data(high + i64::try_from(n).expect("small") * 1_000, 1_000)
        );
    }
    assert_eq!(s.end.trace().cwnd, cwnd);
}

#[test]
fn linux_waits_with_half_a_buffer_where_the_next_acknowledgement_is_near() {
    // tcp_tso_should_defer: two duplicates within a millisecond let out one segment each, but the
    // second one waits for the other half of its buffer.
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let (una, ms) = (acked(&s), crate::common::ms(s.now) + 40);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    send!(s, ms, ack(una));
    recv!(s, ms, data(high, 1_000));
    send!(s, ms, ack(una));
    recv_nothing!(s, ms);
    // It does not wait where nothing was sent within a millisecond.
    send!(s, ms + 2, ack(una + 1_000));
    recv!(s, ms + 2, data(high + 1_000, 1_000));
}

#[test]
fn an_old_acknowledgement_is_no_duplicate() {
    //= RFC 5681, section 2
    for profile in [&LINUX_6, &FREEBSD_2_2] {
        let mut s = ten_outstanding(without_sack(profile));
        let (una, ms) = (acked(&s), crate::common::ms(s.now) + 40);
        for _ in 0..5 {
            // Data, another window, an older number: none of them is one.
            send!(s, ms, data(0, 10).ack(una));
            send!(s, ms, ack(una).window(50_000));
            send!(s, ms, ack(una).window(60_000));
            send!(s, ms, ack(una - 1_000));
        }
        assert_eq!(s.end.counters().fast_recoveries, 0, "{}", profile.name);
    }
}

#[test]
fn linux_without_sack_is_not_fooled_by_its_own_copies() {
    //= RFC 6582, section 6
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let (una, ms) = (acked(&s), crate::common::ms(s.now) + 40);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    for _ in 0..3 {
        send!(s, ms, ack(una));
    }
    while s.next(ms).is_some() {}
    assert_eq!(s.end.counters().fast_recoveries, 1);
    let recovery_ends = s.end.trace().snd_nxt.0;
    // All that was outstanding, to the byte: it may be that the copies are still to be answered.
    send!(s, ms + 40, ack(high));
    while s.next(ms + 40).is_some() {}
    let edge = i64::from(recovery_ends) - 1;
    send!(s, ms + 41, ack(edge.max(high)));
    while s.next(ms + 41).is_some() {}
    for _ in 0..5 {
        send!(s, ms + 42, ack(edge.max(high)));
    }
    assert_eq!(s.end.counters().fast_recoveries, 1);
}
