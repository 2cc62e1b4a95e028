//! Closing, resets, TIME-WAIT, challenge acknowledgements, PAWS and keepalive, segment by
//! segment.

use crate::common::script::{Script, Seg, ack, data, script_config};
use outlast_base::time::Duration;
use outlast_tcp::profile::{FREEBSD_2_2, LINUX_6};
use outlast_tcp::{Endpoint, Error, Event, State};

fn connected() -> Script {
    Script::connected(script_config(&LINUX_6), 40)
}

fn fin(seq: i64, acked: i64) -> Seg {
    Seg {
        seq: Some(seq),
        ack: Some(acked),
        flags: "FA",
        ..Seg::default()
    }
}

fn rst(seq: i64) -> Seg {
    Seg {
        seq: Some(seq),
        flags: "R",
        ..Seg::default()
    }
}

#[test]
fn normal_close() {
    //= RFC 9293, section 3.6, figure 12
    let mut s = connected();
    s.app(50, Endpoint::close);
    recv!(s, 50, fin(0, 0));
    assert_eq!(s.end.state(), State::FinWait1);
    send!(s, 90, ack(1));
    assert_eq!(s.end.state(), State::FinWait2);
    send!(s, 100, fin(0, 1));
    recv!(s, 100, ack(1).seq(1).flags("A"));
    assert_eq!(s.end.state(), State::TimeWait);
    assert_eq!(s.end.poll_event(), Some(Event::PeerClosed));
    assert_eq!(s.end.poll_event(), Some(Event::Closed));
    recv_nothing!(s, 60_099);
    assert_eq!(s.end.state(), State::TimeWait);
    recv_nothing!(s, 60_100);
    assert_eq!(s.end.state(), State::Closed);
}

#[test]
fn simultaneous_close() {
    //= RFC 9293, section 3.6, figure 13
    let mut s = connected();
    s.app(50, Endpoint::close);
    recv!(s, 50, fin(0, 0));
    send!(s, 60, fin(0, 0));
    recv!(s, 60, ack(1));
    assert_eq!(s.end.state(), State::Closing);
    s.peer_seq = 1;
    send!(s, 100, ack(1));
    assert_eq!(s.end.state(), State::TimeWait);
}

#[test]
fn the_peer_closes_first() {
    //= RFC 9293, section 3.10.7.4, eighth check
    let mut s = connected();
    send!(s, 50, fin(0, 0));
    recv!(s, 50, ack(1));
    assert_eq!(s.end.state(), State::CloseWait);
    // There may still be something to say.
    s.write(60, 500);
    recv!(s, 60, data(0, 500).ack(1));
    s.peer_seq = 1;
    send!(s, 100, ack(500));
    s.app(110, Endpoint::close);
    recv!(s, 110, fin(500, 1));
    assert_eq!(s.end.state(), State::LastAck);
    send!(s, 150, ack(501));
    assert_eq!(s.end.state(), State::Closed);
}

#[test]
fn a_fin_follows_all_data_and_is_retransmitted() {
    //= RFC 9293, section 3.10.4
    let mut s = connected();
    s.app(50, |end, now| {
        let _ = end.send(now, 1_500);
        end.close(now);
    });
    recv!(s, 50, data(0, 1_000));
    recv!(s, 50, data(1_000, 500));
    recv!(s, 50, fin(1_500, 0));
    send!(s, 90, ack(1_500));
    let (_, again) = s.next_sent().expect("a probe or retransmission");
    assert_eq!(again.tcp().expect("TCP").seq.0, 1_501);
    assert!(again.tcp().expect("TCP").has(outlast_wire::TcpFlags::FIN));
}

#[test]
fn a_fin_before_its_data_waits_for_it() {
    //= RFC 9293, section 3.10.7.4, eighth check
    let mut s = connected();
    send!(s, 50, fin(1_000, 0));
    recv!(s, 50, ack(0));
    assert_eq!(s.end.state(), State::Established);
    send!(s, 60, data(0, 1_000).ack(0));
    recv!(s, 60, ack(1_001));
    assert_eq!(s.end.state(), State::CloseWait);
    assert_eq!(s.end.received(), 1_000);
}

#[test]
fn time_wait_answers_and_ignores_resets() {
    //= RFC 9293, section 3.6.1
    //= RFC 1337, section 3
    let mut s = connected();
    s.app(50, Endpoint::close);
    recv!(s, 50, fin(0, 0));
    send!(s, 90, fin(0, 1));
    recv!(s, 90, ack(1));
    send!(s, 10_000, rst(1));
    assert_eq!(s.end.state(), State::TimeWait);
    // The peer has not got our acknowledgement: the wait begins anew.
    send!(s, 20_000, fin(0, 1));
    recv!(s, 20_000, ack(1));
    recv_nothing!(s, 79_999);
    assert_eq!(s.end.state(), State::TimeWait);
}

#[test]
fn fin_wait_2_does_not_last_for_ever() {
    //= RFC 9293, section 3.6
    let mut s = connected();
    s.app(50, Endpoint::close);
    recv!(s, 50, fin(0, 0));
    send!(s, 90, ack(1));
    recv_nothing!(s, 60_089);
    assert_eq!(s.end.state(), State::FinWait2);
    recv_nothing!(s, 60_090);
    assert_eq!(s.end.state(), State::Closed);
}

#[test]
fn abort_resets() {
    //= RFC 9293, section 3.10.5
    let mut s = connected();
    s.app(50, Endpoint::abort);
    let (_, reset) = s.next(50).expect("a reset");
    assert!(reset.tcp().expect("TCP").has(outlast_wire::TcpFlags::RST));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Aborted)));
}

#[test]
fn only_an_exact_reset_counts() {
    //= RFC 5961, section 3.2
    let mut s = connected();
    send!(s, 50, rst(100));
    recv!(s, 50, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.state(), State::Established);
    send!(s, 60, rst(1_000_000));
    recv_nothing!(s, 60);
    send!(s, 70, rst(0));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Reset)));
}

#[test]
fn any_reset_in_the_window_counted_once() {
    //= RFC 9293, section 3.10.7.4, second check
    let mut s = Script::connected(script_config(&FREEBSD_2_2), 40);
    send!(s, 50, rst(100));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Reset)));
}

#[test]
fn a_syn_is_challenged() {
    //= RFC 5961, section 4.2
    let mut s = connected();
    let syn = Seg {
        seq: Some(10),
        flags: "S",
        ..Seg::default()
    };
    send!(s, 50, syn);
    recv!(s, 50, ack(0).seq(0).flags("A"));
    // At most one in half a second.
    //= RFC 5961, section 7
    send!(s, 60, syn);
    recv_nothing!(s, 549);
    send!(s, 550, syn);
    recv!(s, 550, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.state(), State::Established);
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_challenged() {
    //= RFC 5961, section 5.2
    let mut s = connected();
    send!(s, 50, data(0, 100).ack(5_000));
    recv!(s, 50, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.received(), 0, "and its data is not taken");
}

#[test]
fn a_closed_endpoint_resets() {
    //= RFC 9293, section 3.10.7.1
    let mut s = connected();
    send!(s, 50, rst(0));
    send!(s, 60, data(0, 10).ack(77));
    recv!(
        s,
        60,
        Seg {
            seq: Some(77),
            flags: "R",
            ..Seg::default()
        }
    );
    send!(s, 70, rst(0));
    recv_nothing!(s, 70);
}

#[test]
fn segments_out_of_the_window_are_answered() {
    //= RFC 9293, section 3.10.7.4, first check
    let mut s = connected();
    send!(s, 50, data(500_000, 100).ack(0));
    recv!(s, 50, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.received(), 0);
}

#[test]
fn old_timestamps_are_rejected() {
    //= RFC 7323, section 5.3, R1
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 100).ack(0).stamps(5_000, 40));
    while s.next(50).is_some() {}
    send!(s, 60, data(100, 100).ack(0).stamps(4_000, 40));
    recv!(s, 60, ack(100));
    assert_eq!(s.end.received(), 100);
    // A reset is not subject to it.
    let mut reset = rst(100);
    reset.stamps = Some((10, 0));
    send!(s, 70, reset);
    assert_eq!(s.end.poll_event(), Some(Event::Readable));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Reset)));
}

#[test]
fn after_24_days_an_old_timestamp_is_taken() {
    //= RFC 7323, section 5.5
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 100).ack(0).stamps(5_000, 40));
    while s.next(50).is_some() {}
    let later = 25 * 24 * 3_600 * 1_000;
    send!(s, later, data(100, 100).ack(0).stamps(4_000, 40));
    assert_eq!(s.end.received(), 200);
}

#[test]
fn the_timestamp_of_the_oldest_unacknowledged_segment_is_echoed() {
    //= RFC 7323, section 4.3
    let mut config = script_config(&FREEBSD_2_2);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    send!(s, 50, data(0, 988).ack(0).stamps(100, 1));
    send!(s, 60, data(988, 988).ack(0).stamps(110, 1));
    let (_, packet) = s.next(60).expect("an acknowledgement of both");
    let stamps = packet
        .tcp()
        .expect("TCP")
        .options
        .timestamps
        .expect("stamps");
    assert_eq!(stamps.echo, 100);
}

#[test]
fn idle_connections_are_probed_and_given_up() {
    //= RFC 9293, section 3.8.4
    let mut config = script_config(&LINUX_6);
    config.keepalive = true;
    let mut s = Script::connected(config, 40);
    let hours = 7_200_000 + 40;
    recv_nothing!(s, hours - 1);
    recv!(s, hours, data(-1, 0).flags("A"));
    send!(s, hours + 40, ack(0));
    // Another two hours from the answer.
    recv_nothing!(s, 2 * hours - 1);
    recv!(s, 2 * hours, data(-1, 0));
    for n in 1..9 {
        recv!(s, 2 * hours + n * 75_000, data(-1, 0));
    }
    let (_, reset) = s.next_sent().expect("a reset");
    assert!(reset.tcp().expect("TCP").has(outlast_wire::TcpFlags::RST));
    assert_eq!(
        s.end.poll_event(),
        Some(Event::Failed(Error::KeepaliveTimeout))
    );
    assert_eq!(s.end.counters().keepalive_probes, 10);
}

#[test]
fn keepalive_is_off_unless_asked_for() {
    //= RFC 9293, section 3.8.4 (MUST-25)
    let s = connected();
    assert_eq!(s.end.poll_timeout(), None);
}

#[test]
fn data_of_another_stream_ends_it() {
    let mut client = script_config(&LINUX_6);
    client.stream_in = 2;
    let mut s = Script::connected(client, 40);
    send!(s, 50, data(0, 100).ack(0));
    assert_eq!(s.end.received(), 100);
    let mut other = script_config(&LINUX_6);
    other.stream_in = 3;
    let mut elsewhere = Script::connected(other, 40);
    let _ = elsewhere.app(50, |end, now| end.send(now, 1));
    // The same numbers, another stream: built by hand from what the script sends.
    let payload = outlast_wire::ModelledPayload {
        stream: 9,
        offset: 100,
    };
    let header = outlast_wire::TcpHeader {
        source_port: 80,
        destination_port: 40_000,
        seq: crate::common::script::PEER + 101,
        ack: outlast_wire::SeqNumber(1),
        flags: outlast_wire::TcpFlags::ACK,
        window: 1_000,
        ..outlast_wire::TcpHeader::default()
    };
    let ip = outlast_wire::IpHeader::new([192, 0, 2, 2].into(), [192, 0, 2, 1].into());
    let packet = outlast_wire::Packet::modelled_tcp(ip, header, payload, 10);
    s.app(60, |end, now| end.handle_packet(now, &packet));
    assert_eq!(s.end.poll_event(), Some(Event::Readable));
    let failed = Event::Failed(Error::WrongData { offset: 100 });
    assert_eq!(s.end.poll_event(), Some(failed));
    let _ = Duration::ZERO;
}

#[test]
fn one_side_may_have_closed_and_still_receive() {
    //= RFC 9293, section 3.6
    let mut s = connected();
    s.app(50, Endpoint::shutdown);
    recv!(s, 50, fin(0, 0));
    send!(s, 90, ack(1));
    assert_eq!(s.app(95, |end, now| end.send(now, 100)), 0);
    for n in 0..5 {
        send!(s, 100 + n, data(n as i64 * 1_000, 1_000).ack(1));
    }
    assert_eq!(s.end.state(), State::FinWait2);
    assert_eq!(s.app(200, |end, now| end.recv(now, u64::MAX)), 5_000);
    while s.next(250).is_some() {}
    send!(s, 300, fin(5_000, 1));
    recv!(s, 300, ack(5_001).seq(1));
    assert_eq!(s.end.state(), State::TimeWait);
}

#[test]
fn nothing_comes_after_a_fin() {
    //= RFC 9293, section 3.10.7.4, seventh check
    let mut s = connected();
    send!(s, 50, data(0, 500).ack(0));
    send!(s, 51, fin(500, 0));
    while s.next(99).is_some() {}
    send!(s, 100, data(501, 500).ack(0));
    assert_eq!(s.end.received(), 500);
    assert_eq!(s.end.state(), State::CloseWait);
    // What came before and comes again is acknowledged again.
    send!(s, 110, data(0, 500).ack(0));
    recv!(s, 110, ack(501));
}

#[test]
fn half_open_connections_are_found_out() {
    //= RFC 9293, section 3.5.1
    //= RFC 5961, section 4.2
    // The peer has lost its memory and opens anew.
    let mut s = connected();
    s.write(50, 100);
    recv!(s, 50, data(0, 100));
    let syn = Seg {
        seq: Some(4_000),
        flags: "S",
        ..Seg::default()
    };
    send!(s, 60, syn);
    recv!(s, 60, ack(0).seq(100).flags("A"));
    // It knows nothing of what was acknowledged, and resets with that number.
    send!(s, 100, rst(0));
    let failed = Event::Failed(Error::Reset);
    assert_eq!(s.end.poll_event(), Some(failed));
}

#[test]
fn an_acknowledgement_older_than_a_window_is_challenged() {
    //= RFC 5961, section 5.2
    let mut s = connected();
    // So that there are more than 60000 numbers behind: the largest window there was.
    for n in 0..70 {
        let ms = 50 + n * 10;
        s.write(ms, 1_000);
        send!(s, ms + 5, ack(1_000 * (n as i64 + 1)));
        while s.next(ms + 5).is_some() {}
    }
    send!(s, 2_000, data(0, 10).ack(20_000));
    assert_eq!(s.end.received(), 10, "late, but within the window");
    while s.next(2_100).is_some() {}
    send!(s, 3_000, data(10, 10).ack(5_000));
    assert_eq!(s.end.received(), 10);
    recv!(s, 3_000, ack(10).flags("A"));
    assert_eq!(s.end.counters().challenge_acks, 1);
}

#[test]
fn a_keepalive_probe_draws_an_answer_and_no_probe_alone_ends_anything() {
    //= RFC 9293, section 3.8.4
    let mut s = connected();
    send!(s, 50, ack(0).seq(-1));
    recv!(s, 50, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.counters().keepalive_probes, 0);
}

#[test]
fn a_segment_partly_known_brings_the_rest() {
    //= RFC 9293, section 3.10.7.4, seventh check
    let mut s = connected();
    send!(s, 50, data(0, 1_000).ack(0));
    send!(s, 60, data(500, 1_000).ack(0));
    assert_eq!(s.end.received(), 1_500);
}

#[test]
fn closing_before_the_peer_answers_ends_it() {
    //= RFC 9293, section 3.10.4
    let mut s = Script::connecting(script_config(&LINUX_6));
    let _ = s.next(0).expect("a SYN");
    s.app(10, Endpoint::close);
    assert_eq!(s.end.state(), State::Closed);
    assert_eq!(s.end.poll_event(), Some(Event::Closed));
    recv_nothing!(s, 100_000);
}

#[test]
fn a_syn_in_the_window_ends_an_old_stack() {
    //= RFC 9293, section 3.10.7.4, fourth check
    let mut s = Script::connected(script_config(&FREEBSD_2_2), 40);
    let syn = Seg {
        seq: Some(10),
        flags: "S",
        ..Seg::default()
    };
    send!(s, 50, syn);
    let (_, reset) = s.next(50).expect("a reset");
    assert!(reset.tcp().expect("TCP").has(outlast_wire::TcpFlags::RST));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Reset)));
}
