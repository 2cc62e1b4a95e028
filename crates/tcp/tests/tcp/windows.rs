//! Zero windows, probes, small segments, idle time and the receiver's window, segment by segment.

use crate::common::script::{Script, ack, data, exact, script_config};
use outlast_base::time::Duration;
use outlast_tcp::profile::{
    AIX_4_3, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997, Profile, SUNOS_5_6,
};
use outlast_tcp::{Error, Event};

/// Five segments outstanding at 100 ms, after an exchange that fixed SND.WL1.
fn five(profile: &'static Profile) -> Script {
    let mut config = script_config(profile);
    config.sack = Some(false);
    let mut s = Script::connected(config, 40);
    s.write(40, 20_000);
    let mut acked = 0;
    let mut ms = 40;
    while s.end.trace().cwnd < 5 || acked == 0 {
        while s.next(ms).is_some() {}
        ms += 10;
        for _ in 0..s.end.trace().in_flight {
            acked += 1_000;
            send!(s, ms, ack(acked));
        }
    }
    while s.next(ms).is_some() {}
    s
}

fn una(s: &Script) -> i64 {
    i64::from(s.end.trace().snd_una.0) - 1
}

#[test]
fn linux_ignores_a_premature_zero_window() {
    // Thesis, section 5.4.3: Linux 2.2 disregards them; so does Linux 6.
    for profile in [&LINUX_2_2, &LINUX_6] {
        let mut s = five(profile);
        let (una, ms) = (una(&s), crate::common::ms(s.now) + 10);
        send!(s, ms, ack(una + 1_000).window(0));
        let (at, again) = s.next_sent().expect("a retransmission");
        assert_eq!(again.header().payload_len, 1_000, "{}", profile.name);
        assert!(
            at <= ms + 400,
            "{}: on the retransmission timer, {at}",
            profile.name
        );
        // The congestion window is lost.
        assert_eq!(s.end.trace().cwnd, 1, "{}", profile.name);
    }
}

#[test]
fn aix_and_sunos_obey_a_premature_zero_window() {
    // Thesis, section 5.4.3.
    for profile in [&AIX_4_3, &SUNOS_5_6] {
        let mut s = five(profile);
        let (una, ms) = (una(&s), crate::common::ms(s.now) + 10);
        let before = s.end.trace();
        send!(s, ms, ack(una + 1_000).window(0));
        let mut probes = 0;
        let until = ms + 60_000;
        while let Some((at, probe)) = s.next(until) {
            assert_eq!(
                probe.header().payload_len,
                1,
                "{}: a probe at {at}",
                profile.name
            );
            probes += 1;
        }
        assert!(probes >= 3, "{}: {probes}", profile.name);
        assert_eq!(s.end.counters().timeouts, 0, "{}", profile.name);
        assert!(s.end.trace().cwnd >= before.cwnd, "{}", profile.name);
        // It resumes at once and at the old rate.
        send!(s, until, ack(una + 1_000).window(60_000));
        let sent = std::iter::from_fn(|| s.next(until)).count();
        assert!(sent >= 4, "{}: {sent}", profile.name);
    }
}

#[test]
fn bsd_sends_full_segments_again_from_wherever_its_window_opens() {
    // tcp_output.c of 4.4BSD-Lite: it keeps bytes, and no record of the segments that it has sent.
    for profile in [&NETBSD_1997, &AIX_4_3] {
        let mut s = five(profile);
        let (una, ms) = (una(&s), crate::common::ms(s.now) + 10);
        send!(s, ms, ack(una + 999).window(0));
        send!(s, ms + 10, ack(una + 999).window(60_000));
        let first = s.next(ms + 10).expect("it goes on").1;
        let second = s.next(ms + 10).expect("it goes on").1;
        let lengths = [first, second].map(|segment| segment.header().payload_len);
        assert_eq!(lengths, [1_000; 2], "{}", profile.name);
    }
}

#[test]
fn bsd_disregards_the_window_of_a_duplicate() {
    // Thesis, section 5.4.1; RFC 9293, section 3.10.7.4, fifth check.
    let mut s = five(&AIX_4_3);
    let una = una(&s);
    let ms = crate::common::ms(s.now) + 10;
    send!(s, ms, ack(una).window(0));
    assert!(s.end.trace().snd_wnd > 0);
}

/// All acknowledged, the window closed, and data waiting.
fn closed(profile: &'static Profile) -> Script {
    let mut config = script_config(profile);
    config.sack = Some(false);
    let mut s = Script::connected(config, 40);
    s.write(40, 1_000);
    recv!(s, 40, data(0, 1_000));
    send!(s, 80, ack(1_000).window(0));
    s.write(100, 5_000);
    s
}

#[test]
fn linux_probes_with_an_old_number_and_backs_off() {
    //= RFC 9293, section 3.8.6.1
    let mut s = closed(&LINUX_6);
    for ms in [340, 820, 1_780, 3_700] {
        recv!(s, ms, data(999, 0).flags("A"));
    }
    send!(s, 3_750, ack(1_000).window(60_000));
    recv!(s, 3_750, data(1_000, 1_000));
    assert_eq!(s.end.counters().timeouts, 0);
}

#[test]
fn bsd_probes_with_a_byte() {
    //= RFC 9293, section 3.8.6.1
    let mut s = closed(exact(&AIX_4_3));
    let (at, probe) = s.next_sent().expect("a probe");
    assert_eq!(probe.header().payload_len, 1);
    assert!((5_000..6_000).contains(&(at - 100)), "TCPTV_PERSMIN: {at}");
    // If it is taken, the next one follows it.
    send!(s, at + 40, ack(1_001).window(60_000));
    recv!(s, at + 40, data(1_001, 1_000));
}

#[test]
fn answered_probes_keep_the_connection_for_ever() {
    //= RFC 9293, section 3.8.6.1 (MUST-37)
    let mut s = closed(&LINUX_6);
    for _ in 0..100 {
        let (at, _) = s.next_sent().expect("a probe");
        send!(s, at + 40, ack(1_000).window(0));
    }
    assert_eq!(s.end.poll_event(), None);
    assert!(crate::common::ms(s.now) > 3_600_000);
}

#[test]
fn unanswered_probes_end_it() {
    //= RFC 9293, section 3.8.6.1
    let mut s = closed(&LINUX_6);
    while s.next_sent().is_some() {}
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
    assert_eq!(s.end.counters().window_probes, 15);
}

#[test]
fn the_user_timeout_ends_probing() {
    let mut s = closed(&LINUX_6);
    s.end.set_user_timeout(Some(Duration::from_secs(30)));
    while s.next_sent().is_some() {}
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::UserTimeout)));
}

#[test]
fn linux_waits_for_a_peer_that_shut_its_window_over_data_and_answers() {
    // tcp_rtx_probe0_timed_out
    let mut s = five(&LINUX_6);
    let una = una(&s);
    let ms = crate::common::ms(s.now) + 10;
    send!(s, ms, ack(una + 1_000).window(0));
    for _ in 0..60 {
        let (at, _) = s.next_sent().expect("a retransmission");
        send!(s, at + 10, ack(una + 1_000).window(0));
    }
    assert_eq!(s.end.poll_event(), None);
    assert!(crate::common::ms(s.now) > 3_600_000);
}

#[test]
fn small_segments_wait_for_an_acknowledgement() {
    //= RFC 9293, section 3.7.4
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    s.write(40, 100);
    recv!(s, 40, data(0, 100));
    s.write(50, 100);
    s.write(60, 100);
    recv_nothing!(s, 79);
    send!(s, 80, ack(100));
    recv!(s, 80, data(100, 200));
}

#[test]
fn without_nagle_they_do_not() {
    //= RFC 9293, section 3.7.4
    let mut config = script_config(&LINUX_6);
    config.nagle = false;
    let mut s = Script::connected(config, 40);
    s.write(40, 100);
    recv!(s, 40, data(0, 100));
    s.write(50, 100);
    recv!(s, 50, data(100, 100));
}

#[test]
fn a_small_window_is_not_filled_with_small_segments() {
    //= RFC 9293, section 3.8.6.2.1
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    s.write(40, 1_000);
    recv!(s, 40, data(0, 1_000));
    send!(s, 80, ack(1_000).window(300));
    s.write(100, 5_000);
    recv_nothing!(s, 339);
    // The probe timer sends what fits.
    recv!(s, 340, data(1_000, 300));
}

/// What `profile` sends of 20 segments into a window of `window` bytes.
fn sent_into(profile: &'static Profile, window: u16) -> Vec<u32> {
    let mut config = script_config(profile);
    config.nagle = false;
    let mut s = Script::connected(config, 40);
    s.write(40, 1_000);
    recv!(s, 40, data(0, 1_000));
    send!(s, 80, ack(1_000).window(window));
    s.write(80, 20_000);
    std::iter::from_fn(|| Some(s.next(80)?.1.header().payload_len)).collect()
}

#[test]
fn a_part_that_fits_the_window_goes_along_with_a_full_segment() {
    // tcp_mss_split_point, and tcp_snd_wnd_test for what is less than a segment. A buffer holds two
    // segments here (tcp_tso_autosize), so that the fifth would begin another one.
    assert_eq!(sent_into(&LINUX_6, 3_500), [1_000, 1_000, 1_000, 500]);
    assert_eq!(sent_into(&LINUX_6, 4_500), [1_000; 4]);
    assert_eq!(sent_into(&LINUX_6, 900), []);
    // Before there was segmentation offload each segment stood for itself.
    assert_eq!(sent_into(&LINUX_2_4, 2_500), [1_000; 2]);
}

#[test]
fn the_window_decays_while_idle() {
    //= RFC 2861, section 3
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    s.write(40, 60_000);
    let mut acked = 0;
    for ms in [80, 120] {
        while s.next(ms).is_some() {}
        for _ in 0..s.end.trace().in_flight {
            acked += 1_000;
            send!(s, ms, ack(acked));
        }
    }
    while s.next(160).is_some() {}
    send!(s, 160, ack(60_000));
    let before = s.end.trace().cwnd;
    assert!(before > 20);
    // Two timeouts of 240 ms later.
    s.write(680, 1_000);
    assert_eq!(s.end.trace().cwnd, (before >> 2).max(10));
    // And after a long time it is the initial one.
    send!(s, 720, ack(61_000));
    s.write(60_000, 1_000);
    assert_eq!(s.end.trace().cwnd, 10);
}

#[test]
fn bsd_starts_slowly_after_idle_time() {
    //= RFC 5681, section 4.1
    let mut s = five(&AIX_4_3);
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    let ms = crate::common::ms(s.now) + 10;
    send!(s, ms, ack(high));
    while s.next(ms).is_some() {}
    let high = i64::from(s.end.trace().snd_nxt.0) - 1;
    send!(s, ms + 10, ack(high));
    while s.next(ms + 10).is_some() {}
    if s.end.trace().in_flight > 0 {
        let high = i64::from(s.end.trace().snd_nxt.0) - 1;
        send!(s, ms + 20, ack(high));
    }
    assert!(s.end.trace().cwnd > 4);
    s.write(ms + 20_000, 5_000);
    assert_eq!(s.end.trace().cwnd, 1);
}

#[test]
fn the_receiver_closes_and_opens_its_window() {
    //= RFC 9293, section 3.8.6.2.2
    let mut config = script_config(&LINUX_6);
    config.receive_buffer = Some(10_000);
    let mut s = Script::connected(config, 40);
    for n in 0..10 {
        send!(s, 50 + n, data(n as i64 * 1_000, 1_000).ack(0));
    }
    let mut last = None;
    while let Some((_, packet)) = s.next(200) {
        last = Some(packet);
    }
    let last = last.expect("an acknowledgement");
    assert_eq!(last.tcp().expect("TCP").window, 0);
    // A byte read is not worth telling.
    let read = s.app(300, |end, now| end.recv(now, 1));
    assert_eq!(read, 1);
    recv_nothing!(s, 300);
    let read = s.app(400, |end, now| end.recv(now, 5_000));
    assert_eq!(read, 5_000);
    recv!(s, 400, ack(10_000).window(5_000));
}

#[test]
fn the_right_edge_does_not_move_back() {
    //= RFC 9293, section 3.8.6
    let mut config = script_config(&LINUX_6);
    config.receive_buffer = Some(10_000);
    let mut s = Script::connected(config, 40);
    let mut edge = 0;
    for n in 0..10 {
        send!(s, 50 + n * 50, data(n as i64 * 1_000, 1_000).ack(0));
        while let Some((_, packet)) = s.next(50 + n * 50 + 49) {
            let tcp = packet.tcp().expect("TCP");
            let right = tcp.ack.0 + u32::from(tcp.window);
            assert!(right >= edge, "{right} after {edge}");
            edge = right;
        }
    }
}

#[test]
fn a_probe_of_our_closed_window_is_answered() {
    //= RFC 9293, section 3.8.6.1 (MUST-37)
    let mut config = script_config(&LINUX_6);
    config.receive_buffer = Some(2_000);
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 1_000).ack(0));
    send!(s, 51, data(1_000, 1_000).ack(0));
    while s.next(1_000).is_some() {}
    for ms in [2_000, 3_000, 4_000] {
        send!(s, ms, data(2_000, 1).ack(0));
        recv!(s, ms, ack(2_000).window(0));
        send!(s, ms + 600, data(1_999, 0).ack(0));
        recv!(s, ms + 600, ack(2_000).window(0));
    }
    assert_eq!(s.end.received(), 2_000);
}

#[test]
fn every_second_segment_is_acknowledged_and_the_last_soon() {
    //= RFC 5681, section 4.2
    //= RFC 9293, section 3.8.6.3
    let mut s = Script::connected(script_config(&AIX_4_3), 40);
    send!(s, 50, data(0, 1_000).ack(0));
    recv_nothing!(s, 50);
    send!(s, 51, data(1_000, 1_000).ack(0));
    recv!(s, 51, ack(2_000));
    send!(s, 60, data(2_000, 1_000).ack(0));
    recv!(s, 260, ack(3_000));
}

#[test]
fn linux_acknowledges_quickly_at_first() {
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    for n in 0..10 {
        send!(s, 50 + n, data(n as i64 * 1_000, 1_000).ack(0));
        recv!(s, 50 + n, ack((n as i64 + 1) * 1_000));
    }
}

#[test]
fn without_sack_duplicates_show_the_same_window() {
    //= RFC 5681, section 2 (duplicate acknowledgement, e)
    let mut config = script_config(&LINUX_6);
    config.sack = Some(false);
    config.window_scale = Some(true);
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 1_000).ack(0));
    let (_, first) = s.next(50).expect("an acknowledgement");
    let window = first.tcp().expect("TCP").window;
    for n in 2..12 {
        send!(s, 50 + n as u64, data(n * 1_000, 1_000).ack(0));
        recv!(s, 50 + n as u64, ack(1_000).window(window));
    }
}

#[test]
fn a_window_that_shrinks_stops_new_data_only() {
    //= RFC 9293, section 3.8.6
    for profile in Profile::ALL {
        let mut s = five(profile);
        let (una, ms) = (una(&s), crate::common::ms(s.now) + 10);
        let high = i64::from(s.end.trace().snd_nxt.0) - 1;
        // The right edge moves back by two segments, behind what was sent.
        let room = u16::try_from(high - una - 3_000).expect("small");
        send!(s, ms, ack(una + 1_000).window(room));
        while let Some((_, packet)) = s.next(ms) {
            let seq = i64::from(packet.tcp().expect("TCP").seq.0) - 1;
            assert!(seq < high, "{}: nothing new", profile.name);
        }
        // What was sent and is not acknowledged goes out again all the same.
        let mut again = Vec::new();
        while s.end.counters().timeouts == 0 {
            let (_, packet) = s.next_sent().expect("a retransmission");
            again.push(i64::from(packet.tcp().expect("TCP").seq.0) - 1);
        }
        assert_eq!(again.last(), Some(&(una + 1_000)), "{}", profile.name);
        assert!(again.iter().all(|&seq| seq < high), "{}", profile.name);
    }
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    //= RFC 9293, section 3.10.7.4, fifth check
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    send!(s, 50, data(100, 100).ack(0).window(30_000));
    assert_eq!(s.end.trace().snd_wnd, 30_000);
    // Sent before, and overtaken on its way.
    send!(s, 60, data(0, 100).ack(0).window(50_000));
    assert_eq!(s.end.received(), 200);
    assert_eq!(s.end.trace().snd_wnd, 30_000);
}

#[test]
fn probes_come_after_a_timeout_and_then_at_twice_the_distance_each() {
    //= RFC 9293, section 3.8.6.1
    for profile in Profile::ALL {
        let mut s = closed(exact(profile));
        let mut at = vec![100];
        for _ in 0..6 {
            at.push(s.next_sent().expect("a probe").0);
        }
        let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[0] >= profile.persist.min.as_millis() as u64);
        let most = profile.persist.max.as_millis() as u64;
        let least = profile.persist.min.as_millis() as u64;
        for pair in gaps.windows(2) {
            let next = (2 * pair[0]).min(most);
            let right = pair[1] == next || pair[0] == least && pair[1] >= least;
            assert!(right, "{}: {gaps:?}", profile.name);
        }
    }
}

#[test]
fn an_acknowledgement_is_never_later_than_half_a_second() {
    //= RFC 9293, section 3.8.6.3
    for profile in Profile::ALL {
        for phase in [0, 130, 310] {
            let mut config = script_config(profile);
            config.profile = profile;
            config.clock_phase = Duration::from_millis(phase);
            let mut s = Script::connected(config, 40);
            let mut taken = 0;
            // After a while Linux no longer acknowledges each segment at once.
            for n in 0..30 {
                let at = 1_000 + n * 1_000;
                send!(s, at, data(taken, 100).ack(0));
                taken += 100;
                let _ = s.app(at, |end, now| end.recv(now, u64::MAX));
                let (told, _) = s.next(at + 500).expect("within half a second");
                assert!(told <= at + 500, "{}: {told}", profile.name);
            }
        }
    }
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    //= RFC 7661, section 4.2
    //= RFC 7661, section 4.4
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    let mut acked = 0;
    for n in 0..50 {
        let ms = 100 + n * 50;
        s.write(ms, 2_000);
        while s.next(ms).is_some() {}
        acked += 2_000;
        send!(s, ms + 40, ack(acked));
    }
    assert_eq!(s.end.trace().cwnd, 10);
    // The control: one that is filled does.
    s.write(3_000, 40_000);
    while s.next(3_000).is_some() {}
    for n in 1..=10 {
        send!(s, 3_040, ack(acked + n * 1_000));
    }
    assert_eq!(s.end.trace().cwnd, 20);
}

#[test]
fn what_fills_a_gap_is_acknowledged_at_once() {
    //= RFC 5681, section 4.2
    for profile in Profile::ALL {
        let mut s = Script::connected(script_config(profile), 40);
        // Past the quick mode of Linux.
        for n in 0..30 {
            send!(s, 50 + n, data(n as i64 * 1_000, 1_000).ack(0));
            let _ = s.app(50 + n, |end, now| end.recv(now, u64::MAX));
            while s.next(50 + n).is_some() {}
        }
        while s.next(1_000).is_some() {}
        send!(s, 1_100, data(31_000, 1_000).ack(0));
        recv!(s, 1_100, ack(30_000));
        send!(s, 1_200, data(30_000, 1_000).ack(0));
        recv!(s, 1_200, ack(32_000));
    }
}
