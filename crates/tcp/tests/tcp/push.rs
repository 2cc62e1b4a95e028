//! PSH, segment by segment: which segments carry it, first and when they are sent again. Each script
//! is a run against Linux 6.18 at a round trip of 20 ms.

use crate::common::script::{Script, ack, script_config};
use outlast_tcp::profile::{Congestion, FREEBSD_2_2, LINUX_2_4, LINUX_6, Profile};

fn connected(profile: &'static Profile) -> Script {
    let mut config = script_config(profile);
    config.congestion = Some(Congestion::Reno);
    let mut s = Script::connected(config, 20);
    s.go_to(25);
    s
}

/// Asserts what is sent up to `ms`: `PA` or `A` for each segment of a thousand bytes from `first` on.
#[track_caller]
fn sends(s: &mut Script, ms: u64, first: i64, flags: &[&str]) {
    let sent = s.sent_to(ms);
    let found: Vec<_> = sent
        .iter()
        .map(|(seq, _, flags)| (*seq, &**flags))
        .collect();
    let seqs = (0..).map(|n| first + n * 1_000);
    let wanted: Vec<_> = seqs.zip(flags.iter().copied()).collect();
    assert_eq!(found, wanted, "up to {ms} ms");
}

#[test]
fn each_buffer_of_several_segments_ends_with_push() {
    //= RFC 9293, section 3.9.1.2, PUSH
    // Two segments leave at once at this round trip: what is sent in a millisecond, two at least.
    let mut s = connected(&LINUX_6);
    s.write(25, 10_000);
    let pairs = ["A", "PA"].repeat(5);
    sends(&mut s, 25, 0, &pairs);
    // A segment for itself carries none, unless it ends the write.
    let mut s = connected(&LINUX_6);
    s.write(25, 2_500);
    let sent = s.sent_to(25);
    let expected = [(0, 1_000, "A"), (1_000, 1_000, "PA"), (2_000, 500, "PA")];
    assert_eq!(sent.len(), 3);
    for ((seq, len, flags), wanted) in sent.iter().zip(expected) {
        assert_eq!((*seq, *len, &**flags), wanted);
    }
    // Stacks that send each segment for itself.
    for profile in [&LINUX_2_4, &FREEBSD_2_2] {
        let mut s = connected(profile);
        s.write(25, 2_000);
        s.go_to(25);
        let first = s.sent_to(25);
        assert_eq!(&first[0].2, "A", "{}", profile.name);
        assert_eq!(
            &first.last().expect("data").2,
            if first.len() == 2 { "PA" } else { "A" }
        );
    }
}

#[test]
fn each_write_ends_with_push() {
    //= RFC 9293, section 3.9.1.2, PUSH
    let mut s = connected(&LINUX_6);
    for n in 0..10 {
        s.write(25, 1_000);
        sends(&mut s, 25, n * 1_000, &["PA"]);
    }
    // What waits and what is written behind it share one.
    let mut s = connected(&LINUX_6);
    for _ in 0..3 {
        s.write(25, 500);
    }
    let sent = s.sent_to(25);
    let expected = [(0, 500, "PA"), (500, 1_000, "PA")];
    for ((seq, len, flags), wanted) in sent.iter().zip(expected) {
        assert_eq!((*seq, *len, &**flags), wanted);
    }
}

#[test]
fn a_segment_sent_again_has_what_is_its_own() {
    //= RFC 9293, section 3.9.1.2, PUSH
    // Three segments of one write: the last one is the probe of the tail, the first one follows the
    // timeout. That of the buffer's end is not the segment's.
    let mut s = connected(&LINUX_6);
    s.write(25, 2_500);
    let _ = s.sent_to(25);
    let (_, probe) = s.next_sent().expect("a probe");
    assert!(probe.tcp().expect("TCP").has(outlast_wire::TcpFlags::PSH));
    let (_, again) = s.next_sent().expect("a timeout");
    assert_eq!(again.tcp().expect("TCP").seq.0, 1);
    assert!(!again.tcp().expect("TCP").has(outlast_wire::TcpFlags::PSH));
    // The first of ten that were written in one, and each of ten written one by one.
    for (writes, flags) in [(1, "A"), (10, "PA")] {
        let mut s = connected(&LINUX_6);
        for _ in 0..writes {
            s.write(25, 10_000 / writes);
        }
        let _ = s.sent_to(25);
        for right in [2_000, 3_000, 4_000] {
            send!(s, 46, ack(0).sack(&[(1_000, right)]));
        }
        sends(&mut s, 47, 0, &[flags]);
    }
}

#[test]
fn buffers_sent_again_end_with_push_as_far_as_they_leave_together() {
    //= RFC 9293, section 3.9.1.2, PUSH
    // Ten segments in pairs, all lost. What the window lets go of a pair leaves for itself.
    let run = |writes: u64, expected: [&[&str]; 4]| {
        let mut s = connected(&LINUX_6);
        for _ in 0..writes {
            s.write(25, 10_000 / writes);
        }
        let _ = s.sent_to(700);
        send!(s, 726, ack(1_000));
        sends(&mut s, 726, 1_000, expected[0]);
        send!(s, 746, ack(3_000));
        sends(&mut s, 746, 3_000, expected[1]);
        send!(s, 767, ack(5_000));
        sends(&mut s, 767, 7_000, expected[2]);
        send!(s, 787, ack(7_000));
        sends(&mut s, 787, 10_000, expected[3]);
    };
    run(
        1,
        [&["A", "A"], &["A", "A", "PA", "A"], &["A", "A", "PA"], &[]],
    );
    let one_by_one = ["PA"; 4];
    let each: [&[&str]; 4] = [&one_by_one[..2], &one_by_one, &one_by_one[..3], &[]];
    run(10, each);
}

#[test]
fn a_stack_that_asks_what_is_left_pushes_the_end_alone() {
    //= RFC 9293, section 3.9.1.2, PUSH
    // 4.4BSD looks at the buffer whenever it sends: the end of it has PSH, and a segment loses it when
    // more was written.
    for (more, flags) in [(0, "PA"), (700, "A")] {
        let mut s = connected(&FREEBSD_2_2);
        s.write(25, 1_000);
        sends(&mut s, 25, 0, &["PA"]);
        if more > 0 {
            s.write(26, more);
        }
        while s.next(27).is_some() {}
        let (_, again) = s.next_sent().expect("a timeout");
        let has_push = again.tcp().expect("TCP").has(outlast_wire::TcpFlags::PSH);
        assert_eq!(has_push, flags == "PA");
    }
}
