//! Opening a connection, segment by segment.

use crate::common::script::{Script, Seg, ack, data, script_config};
use outlast_tcp::profile::{BSD_4_3_TAHOE, LINUX_2_4, LINUX_6};
use outlast_tcp::{Endpoint, Error, Event, State};
use outlast_wire::TcpFlags;
use outlast_wire::tcp::TcpOptions;

fn syn() -> Seg {
    Seg {
        seq: Some(-1),
        flags: "S",
        ..Seg::default()
    }
}

fn syn_ack(acked: i64) -> Seg {
    Seg {
        seq: Some(-1),
        ack: Some(acked),
        flags: "SA",
        options: Some(TcpOptions {
            mss: Some(1_000),
            ..TcpOptions::default()
        }),
        ..Seg::default()
    }
}

#[test]
fn three_way() {
    //= RFC 9293, section 3.5, figure 6
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    send!(s, 40, syn_ack(0));
    recv!(s, 40, ack(0).seq(0).flags("A"));
    assert_eq!(s.end.state(), State::Established);
    assert_eq!(s.end.poll_event(), Some(Event::Connected));
}

#[test]
fn passive() {
    //= RFC 9293, section 3.10.7.2
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    recv!(
        s,
        0,
        Seg {
            seq: Some(-1),
            ack: Some(0),
            flags: "SA",
            ..Seg::default()
        }
    );
    send!(s, 40, data(0, 100).ack(0));
    assert_eq!(s.end.state(), State::Established);
    assert_eq!(s.end.received(), 100);
}

#[test]
fn a_listener_resets_what_is_no_syn() {
    //= RFC 9293, section 3.10.7.2
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, ack(500));
    recv!(
        s,
        0,
        Seg {
            seq: Some(500),
            flags: "R",
            ..Seg::default()
        }
    );
    assert_eq!(s.end.state(), State::Listen);
}

#[test]
fn both_at_once() {
    //= RFC 9293, section 3.5, figure 7
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    send!(s, 10, syn());
    recv!(
        s,
        10,
        Seg {
            seq: Some(-1),
            ack: Some(0),
            flags: "SA",
            ..Seg::default()
        }
    );
    send!(s, 50, syn_ack(0));
    assert_eq!(s.end.state(), State::Established);
}

#[test]
fn refused() {
    //= RFC 9293, section 3.10.7.3, second check
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    send!(
        s,
        40,
        Seg {
            seq: Some(0),
            ack: Some(0),
            flags: "RA",
            ..Seg::default()
        }
    );
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Refused)));
    recv_nothing!(s, 100_000);
}

#[test]
fn an_old_acknowledgement_is_reset() {
    //= RFC 9293, section 3.10.7.3, first check
    //= RFC 9293, section 3.5, figure 8
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    send!(s, 40, syn_ack(90));
    recv!(
        s,
        40,
        Seg {
            seq: Some(90),
            flags: "R",
            ..Seg::default()
        }
    );
    assert_eq!(s.end.state(), State::SynSent);
}

#[test]
fn linux_6_sends_a_syn_four_times_a_second_apart_before_it_doubles() {
    //= RFC 6298, section 2.1
    //= RFC 9293, section 3.8.3
    // tcp_syn_linear_timeouts
    let mut s = Script::connecting(script_config(&LINUX_6));
    for ms in [0, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 11_000] {
        recv!(s, ms, syn());
    }
    s.go_to(600_000);
    while s.next(600_000).is_some() {}
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
}

#[test]
fn linux_2_4_doubles_from_three_seconds() {
    //= RFC 2988, section 2.1
    let mut s = Script::connecting(script_config(&LINUX_2_4));
    for ms in [0, 3_000, 9_000, 21_000, 45_000, 93_000] {
        recv!(s, ms, syn());
    }
    recv_nothing!(s, 188_000);
    recv_nothing!(s, 189_000);
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
}

#[test]
fn bsd_sends_a_syn_after_6_and_24_seconds() {
    // TCP/IP Illustrated, volume 1, section 18.3
    let mut config = script_config(&BSD_4_3_TAHOE);
    config.profile = &BSD_4_3_TAHOE;
    let mut s = Script::connecting(config);
    for ms in [0, 6_000, 30_000, 78_000] {
        recv!(s, ms, syn());
    }
}

#[test]
fn no_mss_means_536() {
    //= RFC 9293, section 3.7.1
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    let mut answer = syn_ack(0);
    answer.options = None;
    send!(s, 40, answer);
    recv!(s, 40, ack(0));
    s.write(40, 2_000);
    recv!(s, 40, data(0, 536));
}

#[test]
fn the_smaller_mss_holds() {
    //= RFC 9293, section 3.7.1
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    s.write(40, 3_000);
    recv!(s, 40, data(0, 1_000));
}

#[test]
fn window_scaling_needs_both() {
    //= RFC 7323, section 2.2
    let mut config = script_config(&LINUX_6);
    config.window_scale = Some(true);
    let mut s = Script::connecting(config);
    let (_, first) = s.next(0).expect("a SYN");
    assert!(first.tcp().expect("TCP").options.window_scale.is_some());
    send!(s, 40, syn_ack(0));
    // 60000 offered, and the peer's 60000 is not shifted either.
    s.app(40, |end, now| end.send(now, 100_000));
    assert_eq!(s.end.trace().snd_wnd, 60_000);
}

#[test]
fn a_shift_above_fourteen_counts_as_fourteen() {
    //= RFC 7323, section 2.3
    let mut config = script_config(&LINUX_6);
    config.window_scale = Some(true);
    let mut s = Script::connecting(config);
    let mut answer = syn_ack(0);
    answer.options = Some(TcpOptions {
        window_scale: Some(20),
        ..TcpOptions::default()
    });
    send!(s, 40, answer);
    assert_eq!(
        s.end.trace().snd_wnd,
        60_000,
        "a SYN's window is never scaled"
    );
    send!(s, 50, ack(0).window(2).seq(0));
    assert_eq!(s.end.trace().snd_wnd, 2 << 14);
}

#[test]
fn a_lost_syn_means_a_small_initial_window_and_a_long_timeout() {
    //= RFC 6928, section 2
    //= RFC 6298, section 5.7
    let mut s = Script::connecting(script_config(&LINUX_6));
    s.go_to(2_500);
    while s.next(2_500).is_some() {}
    send!(s, 2_500, syn_ack(0));
    recv!(s, 2_500, ack(0));
    assert_eq!(s.end.trace().cwnd, 1);
    assert_eq!(s.end.trace().rto.as_millis(), 3_000);
}

#[test]
fn the_timeout_after_a_handshake_without_sample_is_three_seconds_on_linux_6() {
    //= RFC 6298, section 5.7
    // Linux 6.18: SYNs at 0, 1, 2, 3, 4, 5 and 7 s, a SYN-ACK at 8 s, then data that nobody
    // acknowledges: a probe after a second, the timeout 3 s behind it, and the next at twice that.
    let mut s = Script::connecting(script_config(&LINUX_6));
    s.go_to(8_000);
    let syns: Vec<_> = core::iter::from_fn(|| s.next(8_000))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(syns, [0, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000]);
    let mut answer = syn_ack(0);
    let options = answer.options.get_or_insert_with(Default::default);
    options.sack_permitted = true;
    send!(s, 8_000, answer);
    recv!(s, 8_000, ack(0));
    s.write(8_010, 100);
    recv!(s, 8_010, data(0, 100));
    recv!(s, 9_010, data(0, 100));
    recv!(s, 12_010, data(0, 100));
    recv!(s, 18_010, data(0, 100));
    // The passive side of Linux begins there, too.
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    s.go_to(3_300);
    let syn_acks: Vec<_> = core::iter::from_fn(|| s.next(3_300))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(syn_acks, [0, 1_000, 3_000]);
    send!(s, 3_300, ack(0).seq(0));
    assert_eq!(s.end.trace().rto.as_millis(), 3_000);
    // Linux 2.4 keeps what the SYNs have made of it.
    let mut s = Script::connecting(script_config(&LINUX_2_4));
    s.go_to(10_000);
    while s.next(10_000).is_some() {}
    send!(s, 10_000, syn_ack(0));
    assert_eq!(s.end.trace().rto.as_millis(), 12_000);
}

#[test]
fn a_duplicate_syn_draws_the_syn_ack_again() {
    //= RFC 9293, section 3.10.7.4, fourth check
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    recv!(
        s,
        0,
        Seg {
            seq: Some(-1),
            flags: "SA",
            ..Seg::default()
        }
    );
    send!(s, 10, syn());
    recv!(
        s,
        10,
        Seg {
            seq: Some(-1),
            flags: "SA",
            ..Seg::default()
        }
    );
}

#[test]
fn a_reset_sends_a_listener_back_to_listening() {
    //= RFC 9293, section 3.10.7.4, second check
    //= RFC 9293, section 3.5, figure 8
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    let _ = s.next(0).expect("a SYN-ACK");
    // The SYN was an old duplicate, and the peer has never heard of it.
    send!(s, 40, Seg::default().seq(0).flags("R"));
    assert_eq!(s.end.state(), State::Listen);
    assert_eq!(s.end.poll_event(), None);
    assert_eq!(s.end.poll_timeout(), None);
    // The real one comes.
    send!(s, 50, syn());
    let (_, answer) = s.next(50).expect("a SYN-ACK");
    assert!(answer.tcp().expect("TCP").has(TcpFlags::SYN));
    send!(s, 90, ack(0).seq(0));
    assert_eq!(s.end.state(), State::Established);
}

#[test]
fn a_reset_refuses_one_of_two_that_open_at_once() {
    //= RFC 9293, section 3.10.7.4, second check
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    send!(s, 10, syn());
    let _ = s.next(10).expect("a SYN-ACK");
    send!(s, 20, Seg::default().seq(0).flags("R"));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Refused)));
}

#[test]
fn a_wrong_acknowledgement_of_a_syn_ack_is_reset() {
    //= RFC 9293, section 3.10.7.4, fifth check
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    let _ = s.next(0).expect("a SYN-ACK");
    send!(s, 40, ack(700).seq(0));
    let (_, reset) = s.next(40).expect("a reset");
    let tcp = reset.tcp().expect("TCP");
    assert!(tcp.has(TcpFlags::RST) && !tcp.has(TcpFlags::ACK));
    assert_eq!(tcp.seq.0, 701);
    assert_eq!(s.end.state(), State::SynReceived);
}

#[test]
fn options_make_segments_shorter() {
    //= RFC 9293, section 3.7.1
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    s.write(50, 2_000);
    let (_, full) = s.next(50).expect("data");
    assert_eq!((full.header().payload_len, full.total_len()), (988, 1_040));
}

#[test]
fn timestamps_are_on_every_segment_once_agreed_on_and_else_on_none() {
    //= RFC 7323, section 3.2
    for agreed in [true, false] {
        let mut config = script_config(&LINUX_6);
        config.timestamps = Some(true);
        let mut s = Script::connecting(config);
        let (_, first) = s.next(0).expect("a SYN");
        let offered = first.tcp().expect("TCP").options.timestamps;
        let offered = offered.expect("they are offered");
        assert_eq!(offered.echo, 0, "nothing to echo yet");
        let answer = syn_ack(0);
        send!(
            s,
            40,
            if agreed {
                answer.stamps(777, 0)
            } else {
                answer
            }
        );
        s.write(50, 10);
        s.app(60, Endpoint::close);
        let mut seen = 0;
        while let Some((_, packet)) = s.next(60) {
            let stamps = packet.tcp().expect("TCP").options.timestamps;
            assert_eq!(stamps.map(|s| s.echo), agreed.then_some(777));
            seen += 1;
        }
        assert_eq!(seen, 3, "an acknowledgement, data, FIN");
    }
}

#[test]
fn what_lacks_a_timestamp_is_taken_all_the_same() {
    //= RFC 7323, section 3.2
    // The RFC would have it dropped; the stacks of the profiles take it.
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    send!(
        s,
        50,
        Seg {
            seq: Some(0),
            len: 100,
            ack: Some(0),
            ..Seg::default()
        }
    );
    assert_eq!(s.end.received(), 100);
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    //= RFC 7323, section 2.2
    let mut config = script_config(&LINUX_6);
    config.window_scale = Some(true);
    let mut s = Script::connecting(config);
    let (_, first) = s.next(0).expect("a SYN");
    assert!(first.tcp().expect("TCP").window > 60_000);
    let mut answer = syn_ack(0);
    let options = answer.options.get_or_insert_with(Default::default);
    options.window_scale = Some(4);
    send!(s, 40, answer.window(5_000));
    assert_eq!(s.end.trace().snd_wnd, 5_000);
    send!(s, 50, Seg::default().seq(0).ack(0).window(5_000));
    assert_eq!(s.end.trace().snd_wnd, 5_000 << 4);
}

#[test]
fn only_what_was_agreed_on_is_selectively_acknowledged() {
    //= RFC 2018, section 2
    for agreed in [true, false] {
        let mut s = Script::connecting(script_config(&LINUX_6));
        let (_, first) = s.next(0).expect("a SYN");
        assert!(first.tcp().expect("TCP").options.sack_permitted);
        let mut answer = syn_ack(0);
        let options = answer.options.get_or_insert_with(Default::default);
        options.sack_permitted = agreed;
        send!(s, 40, answer);
        let _ = s.next(40);
        send!(
            s,
            50,
            Seg {
                seq: Some(100),
                len: 50,
                ack: Some(0),
                ..Seg::default()
            }
        );
        let (_, told) = s.next(50).expect("an acknowledgement");
        let blocks = told.tcp().expect("TCP").options.sack.len();
        assert_eq!(blocks, usize::from(agreed));
    }
}

#[test]
fn the_shift_is_that_of_the_largest_buffer() {
    //= RFC 7323, section 2.3
    // The kernel counts tcp_rmem in memory, 32 MiB, and offers 10: see docs/model-fidelity.md.
    for (profile, buffer, shift) in [
        (&LINUX_6, None, 9),
        (&LINUX_6, Some(65_535), 0),
        (&LINUX_6, Some(1_000_000), 4),
        (&LINUX_2_4, None, 0),
        (&BSD_4_3_TAHOE, None, 0),
        (&BSD_4_3_TAHOE, Some(100_000), 1),
    ] {
        let mut config = script_config(profile);
        config.window_scale = Some(true);
        config.receive_buffer = buffer;
        let mut s = Script::connecting(config);
        let (_, syn) = s.next(0).expect("a SYN");
        let offered = syn.tcp().expect("TCP").options.window_scale;
        assert_eq!(offered, Some(shift), "{} {buffer:?}", profile.name);
    }
}
