//! What goes wrong while a connection opens: ICMP errors and acknowledgements of something else,
//! segment by segment. Each script is a run against Linux 6.18.

use crate::common::icmp_error;
use crate::common::script::{Script, Seg, ack, script_config};
use outlast_tcp::profile::{FREEBSD_2_2, LINUX_2_4, LINUX_6, Profile};
use outlast_tcp::{Error, Event, State};
use outlast_wire::SeqNumber;

fn syn() -> Seg {
    Seg {
        seq: Some(-1),
        flags: "S",
        ..Seg::default()
    }
}

/// Gives `script` an ICMP error about the segment at `seq`.
fn tell(script: &mut Script, profile: &'static Profile, ms: u64, (kind, code): (u8, u8), seq: u32) {
    let packet = icmp_error(&script_config(profile), SeqNumber(seq), kind, code);
    script.app(ms, |end, now| end.handle_packet(now, &packet));
}

/// What becomes of a SYN that draws an ICMP error after 20 ms.
fn opening(profile: &'static Profile, error: (u8, u8)) -> Option<Event> {
    let mut s = Script::connecting(script_config(profile));
    let _ = s.next(0).expect("a SYN");
    tell(&mut s, profile, 20, error, 0);
    s.end.poll_event()
}

/// Whether a SYN-ACK that draws an ICMP error after 20 ms is sent again.
fn repeats_syn_ack(profile: &'static Profile, error: (u8, u8)) -> bool {
    let mut s = Script::listening(script_config(profile));
    send!(s, 0, syn());
    let _ = s.next(0).expect("a SYN-ACK");
    tell(&mut s, profile, 20, error, 0);
    assert_eq!(s.end.poll_event(), None);
    s.next_sent().is_some()
}

#[test]
fn an_icmp_error_fails_an_opening_at_once() {
    //= RFC 9293, section 3.9.2.2
    // connect() of Linux 6.18 ends with EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT, ECONNREFUSED,
    // EHOSTUNREACH, EHOSTUNREACH and EPROTO.
    let failed = Some(Event::Failed(Error::Unreachable));
    let errors = [(3, 1), (3, 0), (3, 2), (3, 3), (3, 13), (11, 0), (12, 0)];
    for error in errors {
        for profile in [&LINUX_6, &LINUX_2_4] {
            assert_eq!(opening(profile, error), failed, "{error:?}");
        }
        assert_eq!(opening(&FREEBSD_2_2, error), None, "{error:?}");
    }
    // Too large a packet, a redirect and a source quench end nothing.
    for error in [(3, 4), (5, 1), (4, 0)] {
        assert_eq!(opening(&LINUX_6, error), None, "{error:?}");
    }
}

#[test]
fn an_icmp_error_about_another_segment_leaves_an_opening() {
    //= RFC 5927, section 4.1
    let mut s = Script::connecting(script_config(&LINUX_6));
    recv!(s, 0, syn());
    tell(&mut s, &LINUX_6, 20, (3, 1), 16_909_060);
    recv!(s, 1_000, syn());
    assert_eq!(s.end.state(), State::SynSent);
}

#[test]
fn a_request_is_dropped_silently_if_the_path_is_at_fault() {
    //= RFC 9293, section 3.9.2.2
    for error in [(3, 1), (3, 0), (11, 0), (12, 0)] {
        assert!(!repeats_syn_ack(&LINUX_6, error), "{error:?}");
        assert!(!repeats_syn_ack(&LINUX_2_4, error), "{error:?}");
        assert!(repeats_syn_ack(&FREEBSD_2_2, error), "{error:?}");
    }
    // Ports, protocols and filters are no reason for Linux 6.
    for error in [(3, 2), (3, 3), (3, 13), (3, 4)] {
        assert!(repeats_syn_ack(&LINUX_6, error), "{error:?}");
    }
    assert!(!repeats_syn_ack(&LINUX_2_4, (3, 3)));
}

#[test]
fn after_a_request_was_dropped_its_acknowledgement_is_reset() {
    //= RFC 9293, section 3.10.7.2
    let mut s = Script::listening(script_config(&LINUX_6));
    send!(s, 0, syn());
    let _ = s.next(0).expect("a SYN-ACK");
    tell(&mut s, &LINUX_6, 20, (3, 1), 0);
    assert_eq!(s.end.state(), State::Listen);
    send!(s, 1_320, ack(0).seq(0));
    recv!(s, 1_320, Seg::default().seq(0).flags("R"));
    // The next SYN opens as the first one did.
    send!(s, 1_400, syn());
    let _ = s.next(1_400).expect("a SYN-ACK");
    send!(s, 1_420, ack(0).seq(0));
    assert_eq!(s.end.poll_event(), Some(Event::Connected));
}

/// The next segment is a reset at 700 without window and options.
fn takes_bare_reset(script: &mut Script, ms: u64) {
    let (at, reset) = script.next(ms).expect("a reset");
    let tcp = reset.tcp().expect("TCP");
    assert_eq!((at, tcp.seq.0, tcp.window), (ms, 701, 0));
    assert_eq!(tcp.flags, crate::common::script::flags("R"));
    assert_eq!(tcp.options, outlast_wire::tcp::TcpOptions::default());
}

#[test]
fn a_reset_from_syn_sent_has_no_options_and_the_syn_follows_soon() {
    //= RFC 9293, section 3.10.7.3, first check
    // Linux 6.18: SYN at 0; an acknowledgement of something else at 20 ms, and a reset; the SYN again
    // two ticks (8 ms) later, then a second apart; the second wrong one at 1526 ms draws but a reset.
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connecting(config);
    recv!(s, 0, syn());
    send!(s, 20, ack(700).seq(0).stamps(1, 1));
    takes_bare_reset(&mut s, 20);
    recv!(s, 28, syn());
    recv!(s, 1_028, syn());
    send!(s, 1_526, ack(700).seq(0).flags("SA").stamps(1, 1));
    takes_bare_reset(&mut s, 1_526);
    recv!(s, 2_028, syn());
    // Others wait for their timeout.
    let mut s = Script::connecting(script_config(&LINUX_2_4));
    recv!(s, 0, syn());
    send!(s, 20, ack(700).seq(0));
    recv!(s, 20, Seg::default().seq(700).flags("R"));
    recv!(s, 3_000, syn());
}

#[test]
fn a_reset_of_what_belongs_to_no_connection_has_no_options() {
    //= RFC 9293, section 3.10.7.1
    let mut config = script_config(&LINUX_6);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    s.app(50, outlast_tcp::Endpoint::abort);
    // The connection's own reset has timestamps.
    let (_, own) = s.next(50).expect("a reset");
    assert!(own.tcp().expect("TCP").options.timestamps.is_some());
    send!(s, 60, ack(0).stamps(2, 1));
    let (_, reply) = s.next(60).expect("a reset");
    assert_eq!(reply.tcp().expect("TCP").options.timestamps, None);
}
