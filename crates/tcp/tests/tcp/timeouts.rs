//! The retransmission timeout, segment by segment.

use crate::common::script::{Script, ack, data, script_config};
use outlast_base::time::Duration;
use outlast_host::control::Outstanding;
use outlast_tcp::profile::{BSD_4_3_TAHOE, FREEBSD_2_2, LINUX_2_4, LINUX_6};
use outlast_tcp::{Endpoint, Error, Event};
use outlast_wire::{Packet, SeqNumber};

/// Round trip of 40 ms without samples of deviation: RTO is 240 ms.
fn one_outstanding() -> Script {
    let mut config = script_config(&LINUX_6);
    config.sack = Some(false);
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000);
    recv!(s, 100, data(0, 1_000));
    s
}

#[test]
fn linux_6_doubles_from_the_estimate() {
    //= RFC 6298, section 5.6
    //= RFC 6298, section 5.4
    //= RFC 6298, section 5.5
    let mut s = one_outstanding();
    // SRTT 40 ms and the least that Linux takes for the deviation, 200 ms.
    for ms in [340, 820, 1_780, 3_700] {
        recv!(s, ms, data(0, 1_000));
    }
    assert_eq!(s.end.counters().timeouts, 4);
}

#[test]
fn an_acknowledgement_of_new_data_restarts_the_timer() {
    //= RFC 6298, section 5.3
    let mut config = script_config(&LINUX_6);
    config.sack = Some(false);
    let mut s = Script::connected(config, 40);
    s.write(100, 2_000);
    recv!(s, 100, data(0, 1_000));
    recv!(s, 100, data(1_000, 1_000));
    send!(s, 140, ack(1_000));
    recv_nothing!(s, 379);
    recv!(s, 380, data(1_000, 1_000));
}

#[test]
fn all_acknowledged_stops_the_timer() {
    //= RFC 6298, section 5.2
    let mut s = one_outstanding();
    send!(s, 140, ack(1_000));
    recv_nothing!(s, 300_000);
    assert_eq!(s.end.poll_timeout(), None);
}

#[test]
fn a_retransmitted_segment_is_not_sampled() {
    //= RFC 6298, section 3
    let mut s = one_outstanding();
    recv!(s, 340, data(0, 1_000));
    recv!(s, 820, data(0, 1_000));
    send!(s, 821, ack(1_000));
    assert_eq!(s.end.trace().srtt, Duration::from_millis(40));
    assert_eq!(
        s.end.trace().rto,
        Duration::from_millis(960),
        "the back-off stays until there is a sample"
    );
    s.write(900, 1_000);
    recv!(s, 900, data(1_000, 1_000));
    send!(s, 940, ack(2_000));
    assert_eq!(s.end.trace().rto, Duration::from_millis(240));
}

#[test]
fn timestamps_tell_which_transmission_was_acknowledged() {
    //= RFC 7323, section 4.1
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    s.write(100, 900);
    recv!(s, 100, data(0, 900));
    s.go_to(820);
    while s.next(820).is_some() {}
    // The echo is of the retransmission at 820 ms.
    send!(s, 860, ack(900).stamps(2, 820));
    assert_eq!(s.end.trace().srtt, Duration::from_millis(40));
    assert!(s.end.trace().rto < Duration::from_millis(300));
}

#[test]
fn linux_6_gives_up_after_the_time_of_fifteen_doublings() {
    //= RFC 9293, section 3.8.3
    // tcp_retries2: (2^10 - 1) * 200 ms and six times 120 s.
    let mut s = one_outstanding();
    let mut last = 0;
    while let Some((at, _)) = s.next(3_000_000) {
        last = at;
    }
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
    assert!(last < 340 + 924_600, "{last}");
    assert!(last > 340 + 924_600 - 120_000, "{last}");
}

#[test]
fn retries_can_be_set() {
    //= RFC 9293, section 3.8.3
    let mut config = script_config(&LINUX_2_4);
    config.retries = Some(9);
    config.sack = Some(false);
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000);
    let mut count = 0;
    while s.next(3_000_000).is_some() {
        count += 1;
    }
    assert_eq!(
        count,
        1 + 9,
        "Schütz and others 2005, section 4: nine retransmissions"
    );
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
}

#[test]
fn bsd_gives_up_after_twelve() {
    //= RFC 9293, section 3.8.3
    let mut config = script_config(&BSD_4_3_TAHOE);
    config.profile = &BSD_4_3_TAHOE;
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000);
    let mut at = Vec::new();
    while let Some((ms, _)) = s.next(3_000_000) {
        at.push(ms);
    }
    assert_eq!(at.len(), 1 + 12);
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.last(), Some(&64_000), "TCPTV_REXMTMAX");
}

#[test]
fn timers_of_freebsd_fire_on_its_heartbeat() {
    //= RFC 6298, section 4
    let mut config = script_config(&FREEBSD_2_2);
    config.profile = &FREEBSD_2_2;
    config.clock_phase = Duration::from_millis(130);
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000);
    recv!(s, 100, data(0, 1_000));
    let (at, _) = s.next(10_000).expect("a retransmission");
    assert_eq!((at + 130) % 500, 0);
}

#[test]
fn the_user_timeout_counts_from_the_first_retransmission() {
    //= RFC 9293, section 3.10.8 (user timeout)
    // tcp_clamp_rto_to_user_timeout
    let mut s = one_outstanding();
    s.end.set_user_timeout(Some(Duration::from_secs(10)));
    let mut last = 0;
    loop {
        let due = s.end.poll_timeout().expect("a timer").0;
        s.go_to(crate::common::ms(due));
        if let Some(event) = s.end.poll_event() {
            assert_eq!(event, Event::Failed(Error::UserTimeout));
            break;
        }
        last = crate::common::ms(due);
    }
    assert!(last < 10_340);
    assert_eq!(crate::common::ms(s.now), 10_340);
}

/// A destination unreachable about the segment at `seq`.
fn unreachable(seq: u32, code: u8) -> Packet {
    crate::common::unreachable(&crate::common::config(&LINUX_6), SeqNumber(seq), code)
}

#[test]
fn unreachables_take_back_offs_back() {
    //= RFC 6069, section 4.2
    //= RFC 6069, section 4.2, step 5
    //= RFC 6069, section 4.2, step 7
    //= RFC 6069, section 4.2, step 8
    let mut s = one_outstanding();
    for ms in [340, 820, 1_780] {
        recv!(s, ms, data(0, 1_000));
    }
    // Due at 3700; one back-off less makes it 2740.
    let error = unreachable(1, 1);
    s.app(1_900, |end, now| end.handle_packet(now, &error));
    recv_nothing!(s, 2_739);
    recv!(s, 2_740, data(0, 1_000));
    // Two at once, late: the second finds the time passed.
    let error = unreachable(1, 0);
    s.app(3_500, |end, now| end.handle_packet(now, &error));
    recv_nothing!(s, 3_500);
    s.app(3_500, |end, now| end.handle_packet(now, &error));
    recv!(s, 3_500, data(0, 1_000));
}

#[test]
fn unreachables_about_other_segments_take_nothing_back() {
    //= RFC 6069, section 4.2, step 3
    let mut s = one_outstanding();
    recv!(s, 340, data(0, 1_000));
    for (seq, code) in [(0, 1), (2_000, 1), (1, 3), (1, 13)] {
        let error = unreachable(seq, code);
        s.app(400, |end, now| end.handle_packet(now, &error));
    }
    recv_nothing!(s, 819);
    recv!(s, 820, data(0, 1_000));
}

#[test]
fn an_unreachable_before_any_timeout_does_nothing() {
    //= RFC 6069, section 4.2, step 2
    let mut s = one_outstanding();
    let error = unreachable(1, 1);
    s.app(200, |end, now| end.handle_packet(now, &error));
    recv_nothing!(s, 339);
    recv!(s, 340, data(0, 1_000));
}

#[test]
fn a_mechanism_may_retransmit_at_once() {
    // Schütz and others 2005, section 3.2.
    let mut s = one_outstanding();
    recv!(s, 340, data(0, 1_000));
    recv!(s, 820, data(0, 1_000));
    s.app(900, Endpoint::retransmit_now);
    recv!(s, 900, data(0, 1_000));
    // The timer does not run longer than it did.
    recv!(s, 1_860, data(0, 1_000));
}

#[test]
fn a_frozen_endpoint_waits() {
    // Brown and Singh 1997, section 4.
    let mut s = one_outstanding();
    s.app(200, Endpoint::freeze);
    recv_nothing!(s, 100_000);
    s.app(100_000, |end, now| end.thaw(now, Outstanding::Lost));
    recv!(s, 100_000, data(0, 1_000));
    assert_eq!(s.end.counters().timeouts, 0);
    recv!(s, 100_240, data(0, 1_000));
    assert_eq!(s.end.counters().timeouts, 1);
}

#[test]
fn an_endpoint_whose_packets_were_only_slow_sends_nothing_again() {
    // Brown and Singh 1997, figure 5.
    let mut s = one_outstanding();
    s.app(200, Endpoint::freeze);
    recv_nothing!(s, 100_000);
    s.app(100_000, |end, now| end.thaw(now, Outstanding::OnItsWay));
    recv_nothing!(s, 100_200);
    // It waits a timeout that has not backed off.
    recv!(s, 100_240, data(0, 1_000));
    assert_eq!(s.end.counters().timeouts, 1);
}

#[test]
fn a_reconnection_is_told_once_in_an_acknowledgement_without_data() {
    let mut s = one_outstanding();
    s.app(200, Endpoint::send_marked_ack);
    let (_, packet) = s.next(200).expect("an acknowledgement");
    let options = |packet: &Packet| {
        packet
            .tcp()
            .expect("a segment")
            .options
            .experimental
            .clone()
    };
    assert_eq!(packet.header().payload_len, 0);
    let seq = |packet: &Packet| packet.tcp().expect("a segment").seq;
    let marked_seq = seq(&packet);
    let mark = options(&packet).expect("an option");
    assert!(mark.is_immediate_retransmission(), "{mark:?}");
    s.app(200, |end, now| end.send_duplicate_acks(now, 1));
    let (_, packet) = s.next(200).expect("another one");
    assert_eq!(options(&packet), None);
    assert_eq!(
        marked_seq + 1 + 1_000,
        seq(&packet),
        "a keep-alive's number to a peer that has nothing of what is in flight"
    );
}

#[test]
fn an_unreachable_does_not_end_a_connection() {
    //= RFC 9293, section 3.9.2.2
    let mut s = one_outstanding();
    recv!(s, 340, data(0, 1_000));
    for code in 0..=15 {
        let error = unreachable(1, code);
        s.app(400, |end, now| end.handle_packet(now, &error));
    }
    assert_eq!(s.end.poll_event(), None);
    while s.next(500).is_some() {}
    s.peer_seq = 0;
    send!(s, 600, ack(1_000));
    assert_eq!(s.end.acknowledged(), 1_000);
}

#[test]
fn numbers_out_of_flight_make_an_error_message_suspect() {
    //= RFC 5927, section 4.1
    let mut s = one_outstanding();
    recv!(s, 340, data(0, 1_000));
    let before = s.end.trace();
    for seq in [0, 1_002, 0x8000_0000] {
        let error = unreachable(seq, 0);
        s.app(400, |end, now| end.handle_packet(now, &error));
    }
    assert_eq!(s.end.trace(), before);
}
