//! Round-trip estimation and the limits of the retransmission timeout (RFC 6298), segment by
//! segment.

use crate::common::script::{Script, ack, data, script_config};
use core::time::Duration;
use outlast_tcp::TimerModel;
use outlast_tcp::profile::{BSD_4_3_TAHOE, FREEBSD_2_2, LINUX_2_4, LINUX_6, Profile, SUNOS_5_6};

fn micros(s: &Script) -> u128 {
    s.end.trace().rto.as_micros()
}

#[test]
fn the_first_sample_makes_a_timeout_of_three_round_trips() {
    //= RFC 6298, section 2.2
    for (profile, rto_us) in [
        (&LINUX_6, 1_200_000),
        (&LINUX_2_4, 1_200_000),
        // And a thirty-second of the round trip.
        (&SUNOS_5_6, 1_212_500),
    ] {
        let s = Script::connected(script_config(profile), 400);
        assert_eq!(s.end.trace().srtt, Duration::from_millis(400));
        assert_eq!(micros(&s), rto_us, "{}", profile.name);
    }
}

#[test]
fn later_samples_count_an_eighth_and_a_quarter() {
    //= RFC 6298, section 2.3
    let mut s = Script::connected(script_config(&SUNOS_5_6), 400);
    s.write(1_000, 100);
    recv!(s, 1_000, data(0, 100));
    send!(s, 1_500, ack(100));
    // 7/8 * 400 + 1/8 * 500 and 3/4 * 200 + 1/4 * 100.
    assert_eq!(s.end.trace().srtt, Duration::from_micros(412_500));
    assert_eq!(micros(&s), 412_500 + 412_500 / 32 + 4 * 175_000);
}

/// A hundred exchanges of one segment over a path of `rtt` ms.
fn settled(profile: &'static Profile, rtt: u64) -> Script {
    let mut s = Script::connected(script_config(profile), rtt);
    let (mut ms, mut acked) = (1_000, 0);
    for _ in 0..100 {
        s.write(ms, 100);
        while s.next(ms).is_some() {}
        acked += 100;
        ms += rtt;
        send!(s, ms, ack(acked));
        ms += 1_000;
    }
    s.go_to(ms);
    s
}

#[test]
fn no_timeout_is_shorter_than_the_minimum() {
    //= RFC 6298, section 2.4
    // A second there; the profiles say what each stack takes.
    for profile in Profile::ALL {
        let mut s = settled(profile, 1);
        assert!(s.end.trace().rto >= *profile.min_rto, "{}", profile.name);
        let (at, acked) = (crate::common::ms(s.now), 10_000);
        s.write(at, 100);
        while s.next(at).is_some() {}
        // A loss probe may come first.
        while s.end.counters().timeouts == 0 {
            let _ = s.next_sent().expect("a timeout");
        }
        let took = Duration::from_millis(crate::common::ms(s.now) - at);
        // A timer that counts heartbeats takes the one under way for a whole one.
        let least = match *profile.timer {
            TimerModel::Heartbeat { slow, .. } => *profile.min_rto - slow,
            _ => *profile.min_rto,
        };
        assert!(took >= least, "{}: {took:?}", profile.name);
        assert!(i64::from(s.end.trace().snd_una.0) > acked);
    }
}

#[test]
fn tahoe_waits_two_beats_and_then_four() {
    // Cáceres and Iftode 1995, section IV.B and figures 5 and 6: on a short path the timeout is its least value
    // of 1 s, and the second one comes 2 s after the first.
    let mut s = settled(&BSD_4_3_TAHOE, 80);
    assert_eq!(s.end.trace().rto, Duration::from_secs(1));
    let at = crate::common::ms(s.now);
    s.write(at, 100);
    while s.next(at).is_some() {}
    let (first, _) = s.next(at + 1_000).expect("a timeout");
    let (second, _) = s.next(at + 10_000).expect("another");
    assert_eq!(second - first, 2_000);
}

#[test]
fn no_timeout_is_longer_than_the_maximum() {
    //= RFC 6298, section 2.5
    //= RFC 6298, section 5.5
    for profile in Profile::ALL {
        let mut s = settled(profile, 200);
        s.write(crate::common::ms(s.now), 100);
        let mut sent = Vec::new();
        while let Some((at, packet)) = s.next_sent() {
            if packet.header().payload_len > 0 {
                sent.push(at);
            }
        }
        let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let most = profile.max_rto.as_millis() as u64;
        assert!(gaps.iter().all(|&gap| gap <= most), "{}", profile.name);
        assert!(gaps.iter().any(|&gap| gap >= 60_000), "{}", profile.name);
        // From the second on each is twice the one before, until that.
        for pair in gaps[2..].windows(2).filter(|pair| pair[1] < most) {
            let off = pair[1].abs_diff(2 * pair[0]);
            assert!(off <= 2, "{}: {gaps:?}", profile.name);
        }
    }
}

#[test]
fn the_timer_starts_with_the_first_segment_and_not_with_later_ones() {
    //= RFC 6298, section 5.1
    for profile in [&FREEBSD_2_2, &LINUX_2_4] {
        let mut s = settled(profile, 40);
        let at = crate::common::ms(s.now);
        s.app(at, |end, now| end.send(now, 1_000));
        while s.next(at).is_some() {}
        let due = s.end.poll_timeout().expect("it runs").0;
        s.app(at + 100, |end, now| end.send(now, 1_000));
        while s.next(at + 100).is_some() {}
        assert_eq!(s.end.poll_timeout().expect("it runs").0, due);
    }
}

/// A sender with eight segments or more in flight.
fn with_a_window(profile: &'static Profile) -> Script {
    let mut config = script_config(profile);
    config.congestion = Some(outlast_tcp::profile::Congestion::Reno);
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000_000);
    let (mut ms, mut acked) = (100, 0);
    while s.end.trace().in_flight < 8 || acked == 0 {
        while s.next(ms).is_some() {}
        let trace = s.end.trace();
        acked += i64::from(trace.snd_nxt.distance_from(trace.snd_una));
        ms += 40;
        send!(s, ms, ack(acked));
    }
    while s.next(ms).is_some() {}
    s
}

#[test]
fn a_timeout_means_a_window_of_one_and_half_of_what_was_in_flight() {
    //= RFC 5681, section 3.1, equation 4
    //= RFC 5681, section 3.1
    for profile in Profile::ALL {
        let mut s = with_a_window(profile);
        let before = s.end.trace().in_flight;
        while s.end.counters().timeouts == 0 {
            let _ = s.next_sent().expect("a timeout");
        }
        let after = s.end.trace();
        assert_eq!(after.cwnd, 1, "{}", profile.name);
        let half = after.ssthresh.expect("lowered");
        assert!(
            half >= 2 && half <= before.div_ceil(2) + 1,
            "{}: {half} of {before}",
            profile.name
        );
    }
}

#[test]
fn another_timeout_of_the_same_segment_leaves_the_threshold() {
    //= RFC 5681, section 3.1, repeated timeout
    // The BSD stacks lower it each time (Cáceres and Iftode 1995, section III.D).
    for profile in Profile::ALL {
        let mut s = with_a_window(profile);
        let mut thresholds = Vec::new();
        for timeouts in 1..=3 {
            while s.end.counters().timeouts < timeouts {
                let _ = s.next_sent().expect("a timeout");
            }
            thresholds.push(s.end.trace().ssthresh.expect("lowered"));
        }
        let kept = profile.name.starts_with("linux");
        let expected = if kept { thresholds[0] } else { 2 };
        assert!(thresholds[0] >= 4, "{}: {thresholds:?}", profile.name);
        assert_eq!(
            thresholds[1..],
            [expected; 2],
            "{}: {thresholds:?}",
            profile.name
        );
    }
}
