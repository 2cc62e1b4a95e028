//! `hold` and `auto`: which senders wait for a timeout after their link is back, and what wakes them.

use crate::path::{MSS, Path, Sent, Version, with};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_wire::{Packet, Transport};

const BOTH: [PathMechanismKind; 2] = [PathMechanismKind::Hold, PathMechanismKind::Auto];

/// Both, over both versions of IP.
fn cases() -> impl Iterator<Item = (PathMechanismKind, Version)> {
    let over = |version| BOTH.map(|mechanism| (mechanism, version));
    Version::BOTH.into_iter().flat_map(over)
}

/// A path with a quiet connection over that version.
fn established((mechanism, version): (PathMechanismKind, Version)) -> Path {
    Path::new(mechanism).over(version).settled()
}

/// A connection that has said something, away for so long.
fn away(case: (PathMechanismKind, Version), ms: u64) -> Path {
    idle_and_away(case, 1_000, ms)
}

/// A connection that has said something, then nothing for a while, and is away then for so long.
fn idle_and_away(case: (PathMechanismKind, Version), idle_ms: u64, ms: u64) -> Path {
    let mut path = established(case);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(idle_ms);
    path.down();
    path.after_ms(ms);
    path.up();
    path
}

fn why(path: &Path) -> &'static str {
    let report = path.gateway.flow_reports().next().expect("one connection");
    report.account.why
}

/// The far host answers a question, and has sent `len` bytes that are lost.
fn answers(path: &mut Path, len: u32) {
    path.far_ack_after(len, MSS);
}

#[test]
fn a_far_host_whose_data_is_lost_is_asked_and_woken() {
    for case in cases() {
        let mut path = away(case, 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.after_ms(40);
        answers(&mut path, 64);
        // Timeouts at 0.2, 0.6, 1.4, 3.0, 6.2 and 12.6 s have doubled its timer six times.
        assert_eq!(path.sent_with_questions(), [Sent::WakesFar(0); 6]);
        assert!(why(&path).contains("ICMP"), "{}", why(&path));
        path.after_ms(40);
        path.far_data(0, 64);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [], "it is awake");
        assert!(!why(&path).contains("ICMP"), "{}", why(&path));
    }
}

/// It has given its memory back by then.
#[test]
fn a_connection_that_was_idle_before_the_outage_is_asked_and_woken_too() {
    for case in cases() {
        let mut path = idle_and_away(case, 600_000, 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.after_ms(40);
        answers(&mut path, 64);
        assert_eq!(path.sent_with_questions(), [Sent::WakesFar(0); 6]);
        path.after_ms(40);
        path.far_data(0, 64);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [], "it is awake");
    }
}

#[test]
fn an_idle_connection_is_asked_after_each_outage_three_times_at_most_and_not_after_a_short_one() {
    for version in Version::BOTH {
        let mut path = idle_and_away((PathMechanismKind::Hold, version), 600_000, 900);
        for _ in 0..3 {
            path.after_ms(60_000);
            assert_eq!(path.sent_with_questions(), []);
            path.down();
            path.after_ms(15_000);
            path.up();
            path.after_ms(60_000);
            assert_eq!(path.sent_with_questions(), [Sent::Question; 3]);
        }
    }
}

/// The near host has answered 64 bytes with `len`, which is not acknowledged when the loss of the link is noticed 3 s
/// later; the link is back after another 15 s.
fn answered(case: (PathMechanismKind, Version), len: u32) -> Path {
    let mut path = established(case);
    asks_and_is_answered(&mut path, len);
    path.after_ms(3_000);
    path.down();
    path.after_ms(15_000);
    path.up();
    path
}

/// The far host asks with 64 bytes, and the near host answers with `len`.
fn asks_and_is_answered(path: &mut Path, len: u32) {
    path.far_data(0, 64);
    let ack = path.far_number(64);
    let answer = with(&path.data_packet(0, len), |tcp| tcp.ack = ack);
    path.near_sends(&answer);
}

/// A host that asks and waits may have the answer, and have asked again: it is told at once, behind the answer.
#[test]
fn a_far_host_that_may_have_its_answer_is_woken_without_being_asked() {
    for case in cases() {
        let mut path = answered(case, 100);
        let sent = path.sent_with_questions();
        assert!(matches!(sent[0], Sent::Data(0, 100, _)), "{sent:?}");
        assert_eq!(sent[1..], [Sent::WakesFar(64); 6]);
        path.after_ms(20);
        path.far_ack_after(128, 100);
        assert_eq!(path.sent_with_questions(), [], "it was told already");
        path.after_ms(20);
        path.far_data(64, 64);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [], "it is awake");
    }
}

#[test]
fn a_far_host_that_was_woken_unasked_and_sleeps_on_is_told_twice_more() {
    for case in cases() {
        let mut path = answered(case, 100);
        path.sent_with_questions();
        path.after_ms(20);
        path.far_ack_after(128, 100);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [Sent::WakesFar(64); 12]);
    }
}

#[test]
fn a_far_host_that_lacks_nothing_is_woken_unasked_once_at_most() {
    for case in cases() {
        let mut path = answered(case, 100);
        path.sent_with_questions();
        path.after_ms(20);
        path.far_ack_after(64, 100);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

/// It waits for the rest of it.
#[test]
fn a_far_host_whose_answer_is_longer_than_a_segment_is_not_woken_unasked() {
    for case in cases() {
        let mut path = answered(case, 1_300);
        let sent = path.sent_with_questions();
        assert!(matches!(sent[..], [Sent::Data(0, 1_300, _)]), "{sent:?}");
    }
}

/// A crowd's errors would be in the way of what is kept.
#[test]
fn few_far_hosts_are_woken_unasked_after_one_return() {
    let mut path = Path::new(PathMechanismKind::Hold);
    for port in 1..=100 {
        path.use_port(port);
        path.open();
        asks_and_is_answered(&mut path, 100);
    }
    path.after_ms(3_000);
    path.down();
    path.after_ms(15_000);
    path.up();
    path.after_ms(500);
    let sent = path.sent_with_questions();
    let errors = sent.iter().filter(|sent| matches!(sent, Sent::WakesFar(_)));
    assert_eq!(errors.count(), 22 * 6, "15,000 bytes");
}

/// Data that comes while the link is away goes out at its return, and draws the answer.
#[test]
fn an_idle_connection_that_speaks_amid_the_outage_is_as_one_that_was_not_idle() {
    for version in Version::BOTH {
        let mut path = idle_and_away((PathMechanismKind::Hold, version), 600_000, 5_000);
        path.down();
        path.after_ms(60_000);
        path.sent_with_questions();
        path.data(MSS, MSS);
        path.after_ms(15_000);
        path.up();
        path.after_ms(20);
        path.far_ack_after(64, 2 * MSS);
        let sent = path.sent_with_questions();
        assert_eq!(sent[0], Sent::Untimed(0), "{sent:?}");
        assert!(matches!(sent[1], Sent::Data(MSS, MSS, _)), "{sent:?}");
        assert_eq!(sent[2], Sent::WakesFar(0), "{sent:?}");
    }
}

/// Questions for thousands would be in the way of what is known to wait: those go out that were heard last.
#[test]
fn of_many_idle_connections_the_newest_are_asked() {
    const FLOWS: u16 = 1_000;
    let mut path = Path::new(PathMechanismKind::Hold);
    for port in 0..FLOWS {
        path.use_port(10_000 + port);
        path.open();
        path.after_ms(10);
    }
    path.after_ms(60_000);
    path.down();
    path.after_ms(15_000);
    path.up();
    path.after_ms(400);
    let sent = std::iter::from_fn(|| path.gateway.poll_transmit());
    let questions = sent.filter(|transmit| transmit.reason == SendReason::Question);
    let ports: Vec<u16> = questions
        .filter_map(|transmit| transmit.packet.tcp().map(|tcp| tcp.source_port))
        .collect();
    assert_eq!(ports.len(), 256, "{ports:?}");
    let oldest = ports.iter().min().copied();
    assert_eq!(oldest, Some(10_000 + FLOWS - 256));
}

#[test]
fn a_far_host_that_lacks_nothing_is_asked_once_and_left_alone() {
    for case in cases() {
        let mut path = away(case, 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.after_ms(40);
        answers(&mut path, 0);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

#[test]
fn nobody_is_asked_after_a_short_outage() {
    for case in cases() {
        let mut path = away(case, 900);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

#[test]
fn a_far_host_that_does_not_answer_is_asked_three_times() {
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 15_000);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question; 3]);
    }
}

#[test]
fn a_sender_that_does_not_wake_is_told_three_times() {
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 1_000);
        answers(&mut path, 64);
        path.after_ms(60_000);
        let mut sent = path.sent_with_questions();
        assert_eq!(sent.remove(0), Sent::Question);
        assert_eq!(sent, [Sent::WakesFar(0); 6]);
    }
}

/// An ICMP error draws no answer, so that a peer which does not answer at first would not be found.
#[test]
fn a_silent_peer_is_probed_with_data_before_it_is_told_again() {
    for version in Version::BOTH {
        let mut path = established((PathMechanismKind::Hold, version));
        path.data(0, MSS);
        path.after_ms(40);
        path.far_data(0, 64);
        path.far_data(128, 64);
        path.far_ack(MSS);
        path.after_ms(1_000);
        path.down();
        for n in 1..5 {
            path.data(n * MSS, MSS);
        }
        path.after_ms(15_000);
        path.up();
        path.after_ms(100);
        let at_first = path.sent_with_questions();
        let told = at_first.iter().filter(|sent| **sent == Sent::WakesFar(0));
        assert_eq!(told.count(), 6, "{at_first:?}");
        path.after_ms(5_000);
        let probes = path.sent_with_questions();
        let is_wake = |sent: &Sent| *sent == Sent::WakesFar(0);
        let in_a_row = probes.windows(2).filter(|two| two.iter().all(is_wake));
        assert_eq!(in_a_row.count(), 0, "{probes:?}");
    }
}

/// The acknowledgement of what was kept says as much as the answer to a question.
#[test]
fn nobody_is_asked_where_data_goes_out() {
    for version in Version::BOTH {
        let mut path = established((PathMechanismKind::Hold, version));
        path.down();
        path.data(0, MSS);
        path.after_ms(15_000);
        path.up();
        path.after_ms(20);
        path.far_ack_after(64, MSS);
        let sent = path.sent_with_questions();
        assert!(matches!(sent[0], Sent::Data(0, MSS, _)), "{sent:?}");
        assert_eq!(sent[1..], [Sent::WakesFar(0); 6]);
    }
}

/// What has arrived and is not acknowledged yet is not lost.
#[test]
fn a_far_host_that_is_heard_is_awake() {
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 15_000);
        assert_eq!(path.sent_with_questions(), [Sent::Question]);
        path.far_data(0, 64);
        answers(&mut path, 64);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

/// Nothing could be kept: only the near host has what it has sent.
#[test]
fn a_near_host_of_which_nothing_is_kept_is_woken() {
    for version in Version::BOTH {
        let limits = Limits {
            held_in_all: ByteCount(10),
            ..Limits::default()
        };
        let mut path = Path::with_limits(PathMechanismKind::Hold, limits).over(version);
        path.open();
        path.after_ms(2_000);
        path.data(0, MSS);
        path.down();
        path.after_ms(15_000);
        path.up();
        let mut sent = path.sent_with_questions();
        sent.retain(|sent| *sent != Sent::Question);
        assert_eq!(sent, [Sent::WakesNear(0); 6]);
        path.data(0, MSS);
        path.after_ms(20);
        path.far_ack(MSS);
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

#[test]
fn the_next_outage_ends_it() {
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 15_000);
        answers(&mut path, 64);
        assert!(path.sent_with_questions().len() > 1);
        path.down();
        path.after_ms(60_000);
        assert_eq!(path.sent_with_questions(), []);
    }
}

/// The errors that the gateway sends within `ms`, with their ways and times.
fn errors_within(path: &mut Path, ms: u64) -> Vec<(Instant, Direction, Packet)> {
    let mut errors = Vec::new();
    let end = path.now() + Duration::from_millis(ms);
    loop {
        while let Some(transmit) = path.gateway.poll_transmit() {
            if transmit.reason == SendReason::Unreachable {
                errors.push((path.now(), transmit.direction, transmit.packet));
            }
        }
        let due = path.gateway.poll_timeout();
        let Some((due, _)) = due.filter(|(at, _)| *at <= end) else {
            return errors;
        };
        path.at(due.max(path.now()));
    }
}

/// RFC 6069, section 3: IPv4's "network unreachable" and IPv6's "no route", about the oldest byte that is
/// not acknowledged, from the host that could not be reached.
#[track_caller]
fn assert_is_known(packet: &Packet, version: Version, (from, to): (u8, u8), seq: u32) {
    let [from, to] = [from, to].map(|last| version.address(last));
    let header = packet.header();
    assert_eq!((header.ip.source, header.ip.destination), (from, to));
    let Transport::IcmpError(error) = &header.transport else {
        panic!("{header:?}");
    };
    let expected = match version {
        Version::V4 => (3, 0),
        Version::V6 => (1, 0),
    };
    assert_eq!((error.kind, error.code), expected, "{error:?}");
    let quoted = error.quoted.expect("a segment");
    assert_eq!((quoted.source, quoted.destination), (to, from));
    assert_eq!(quoted.seq.expect("a segment").0, seq, "{quoted:?}");
    // What it is on the wire is what was meant.
    let parsed = Packet::parse(packet.to_bytes()).expect("it was just written");
    assert!(parsed.checksums_ok(), "{parsed:?}");
    assert_eq!(parsed.header().transport, header.transport);
}

#[test]
fn the_error_is_one_by_which_senders_take_back_their_back_off() {
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 15_000);
        path.far_data(0, 64);
        path.near_ack(64);
        path.down();
        path.after_ms(15_000);
        path.up();
        // The far host's first 64 bytes have arrived, the next 64 have not; nobody knows whether it has heard of the first.
        path.after_ms(40);
        answers(&mut path, 128);
        let errors = errors_within(&mut path, 40);
        assert_eq!(errors.len(), 12);
        for (number, (_, direction, error)) in errors.into_iter().enumerate() {
            assert_eq!(direction, Direction::ToLink);
            let seq = path.far_number(if number < 6 { 0 } else { 64 });
            assert_is_known(&error, version, (2, 1), seq.0);
        }

        let limits = Limits {
            held_in_all: ByteCount(10),
            ..Limits::default()
        };
        let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
        path = path.over(version).settled();
        path.data(0, MSS);
        path.after_ms(40);
        path.far_ack(MSS);
        path.data(MSS, MSS);
        path.down();
        path.after_ms(15_000);
        path.up();
        let errors = errors_within(&mut path, 40);
        assert_eq!(errors.len(), 6, "{errors:?}");
        for (_, direction, error) in errors {
            assert_eq!(direction, Direction::FromLink);
            assert_is_known(&error, version, (1, 2), path.near_number(MSS).0);
        }
    }
}

/// However long the outage was, for a host that never wakes.
#[test]
fn there_are_three_rounds_of_fifteen_errors_at_most() {
    const ROUND: usize = 15;
    for version in Version::BOTH {
        let mut path = away((PathMechanismKind::Hold, version), 7_000_000);
        answers(&mut path, 64);
        let errors = errors_within(&mut path, 60_000);
        assert_eq!(errors.len(), 3 * ROUND);
        let begins: Vec<_> = errors.iter().step_by(ROUND).map(|error| error.0).collect();
        let ends = errors.iter().skip(ROUND - 1).step_by(ROUND);
        for (end, next) in ends.zip(&begins[1..]) {
            assert!(
                next.since(end.0) >= Duration::from_millis(500),
                "{begins:?}"
            );
        }
        // After a short outage its timer runs out soon.
        path.down();
        path.after_ms(900);
        path.up();
        answers(&mut path, 64);
        assert_eq!(errors_within(&mut path, 60_000).len(), 0);
    }
}
