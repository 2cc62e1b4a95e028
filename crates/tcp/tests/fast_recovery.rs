//! Fast retransmit and fast recovery without SACK, segment by segment.

mod common;

use common::script::{Script, ack, data, script_config};
use outlast_tcp::Config;
use outlast_tcp::profile::{
    BSD_4_3_TAHOE, Cited, Congestion, FREEBSD_2_2, LINUX_6, Profile, Recovery,
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
    let ms = common::ms(s.now) + 40;
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
    //= RFC 6582, section 3.2
    let mut s = ten_outstanding(without_sack(&LINUX_6));
    let una = acked(&s);
    let window = s.end.trace().cwnd;
    let ms = common::ms(s.now) + 40;
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
    // Paper 002, section IV; Jacobson 1988.
    let mut s = ten_outstanding(without_sack(&BSD_4_3_TAHOE));
    let una = acked(&s);
    let window = s.end.trace().cwnd;
    let ms = common::ms(s.now) + 40;
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
    //= RFC 5681, section 3.2, steps 2 to 6
    let mut s = ten_outstanding(without_sack(&FREEBSD_2_2));
    let una = acked(&s);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    let window = s.end.trace().cwnd;
    let ms = common::ms(s.now) + 40;
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
    let ms = common::ms(s.now) + 40;
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
    // Paper 002, section III.E.
    let mut s = ten_outstanding(without_sack(&FREEBSD_2_2));
    let first = s.end.trace().cwnd / 2;
    let _ = s.next_sent().expect("a retransmission");
    assert_eq!(s.end.trace().ssthresh, Some(first));
    let _ = s.next_sent().expect("another");
    assert_eq!(s.end.trace().ssthresh, Some(2));
}
