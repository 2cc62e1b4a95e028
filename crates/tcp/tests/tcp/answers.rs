//! Acknowledgements that wait for the application's answer (Linux: pingpong mode), segment by
//! segment. Each script is a run against Linux 6.18; its ticks of 4 ms make 43 to 44 ms of the 40 ms
//! that exact timers take here.

use crate::common::script::{Script, Seg, ack, data, script_config};
use outlast_tcp::profile::{FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, Profile};
use outlast_tcp::{Endpoint, State};

fn connected(profile: &'static Profile) -> Script {
    Script::connected(script_config(profile), 20)
}

fn fin(seq: i64, acked: i64) -> Seg {
    data(seq, 0).ack(acked).flags("FA")
}

fn read(script: &mut Script, ms: u64, bytes: u64) {
    let found = script.app(ms, |end, now| end.recv(now, u64::MAX));
    assert_eq!(found, bytes);
}

/// A peer that has sent 100 bytes at 25 ms, and got 50 as an answer 5 ms later.
fn answered(profile: &'static Profile) -> Script {
    let mut s = connected(profile);
    send!(s, 25, data(0, 100).ack(0));
    // Linux is quick at first.
    recv!(s, 25, ack(100));
    read(&mut s, 30, 100);
    s.write(30, 50);
    recv!(s, 30, data(0, 50).ack(100).flags("PA"));
    s.peer_seq = 100;
    send!(s, 50, ack(50));
    s
}

#[test]
fn who_answers_acknowledges_with_the_answers() {
    //= RFC 9293, section 3.8.6.3
    let mut s = answered(&LINUX_6);
    for n in 1..6 {
        let at = 50 + n as u64 * 100;
        send!(s, at, data(n * 100, 100).ack(n * 50));
        read(&mut s, at + 5, 100);
        recv_nothing!(s, at + 5);
        s.write(at + 5, 50);
        recv!(s, at + 5, data(n * 50, 50).ack((n + 1) * 100));
        s.peer_seq = (n + 1) * 100;
        send!(s, at + 25, ack((n + 1) * 50));
    }
    // No answer: after 43.5 ms on Linux, and quickly from then on.
    send!(s, 1_000, data(600, 100).ack(300));
    read(&mut s, 1_005, 100);
    recv!(s, 1_040, ack(700).seq(300));
    for n in 7..9 {
        let at = 400 + n as u64 * 100;
        send!(s, at, data(n * 100, 100).ack(300));
        recv!(s, at, ack((n + 1) * 100));
    }
}

#[test]
fn one_answer_is_enough() {
    //= RFC 9293, section 3.8.6.3
    for (profile, waits) in [(&LINUX_6, true), (&LINUX_2_4, true), (&LINUX_2_2, false)] {
        let mut s = answered(profile);
        send!(s, 70, data(100, 100).ack(50));
        recv!(s, if waits { 110 } else { 70 }, ack(200).seq(50));
    }
}

#[test]
fn a_late_answer_is_none() {
    //= RFC 9293, section 3.8.6.3
    // 60 ms after what it answers.
    let mut s = connected(&LINUX_6);
    send!(s, 25, data(0, 100).ack(0));
    recv!(s, 25, ack(100));
    s.write(86, 50);
    recv!(s, 86, data(0, 50));
    send!(s, 106, data(100, 100).ack(50));
    recv!(s, 106, ack(200));
}

#[test]
fn who_asks_waits_for_no_answer_of_its_own() {
    //= RFC 9293, section 3.8.6.3
    // A client: its request comes before what it receives, each time.
    let mut s = connected(&LINUX_6);
    for n in 0..3 {
        let at = 25 + n as u64 * 120;
        s.write(at, 50);
        recv!(s, at, data(n * 50, 50));
        send!(s, at + 20, data(n * 100, 100).ack((n + 1) * 50));
        recv!(s, at + 20, ack((n + 1) * 100));
        read(&mut s, at + 25, 100);
    }
}

#[test]
fn two_full_segments_are_acknowledged_while_an_answer_is_awaited() {
    //= RFC 9293, section 3.8.6.3
    let mut s = answered(&LINUX_6);
    send!(s, 70, data(100, 1_000).ack(50));
    read(&mut s, 70, 1_000);
    recv_nothing!(s, 70);
    send!(s, 71, data(1_100, 1_000).ack(50));
    read(&mut s, 71, 1_000);
    recv!(s, 71, ack(2_100).seq(50));
    // Reading one small segment does not acknowledge, reading two does.
    let mut s = answered(&LINUX_6);
    send!(s, 70, data(100, 100).ack(50));
    read(&mut s, 71, 100);
    recv_nothing!(s, 72);
    send!(s, 73, data(200, 100).ack(50));
    read(&mut s, 74, 100);
    recv!(s, 74, ack(300));
}

#[test]
fn an_old_segment_ends_the_wait() {
    //= RFC 9293, section 3.10.7.4, seventh check
    let mut s = answered(&LINUX_6);
    send!(s, 70, data(0, 100).ack(50));
    recv!(s, 70, ack(100).sack(&[(0, 100)]));
    send!(s, 75, data(100, 100).ack(50));
    recv!(s, 75, ack(200));
}

#[test]
fn a_fin_is_acknowledged_with_an_answer_or_after_the_delay() {
    //= RFC 9293, section 3.10.7.4, eighth check
    // After data with an answer and without (41.4 and 42.0 ms on Linux), and along with data (44 ms).
    let mut s = answered(&LINUX_6);
    send!(s, 51, fin(100, 50));
    recv!(s, 91, ack(101).seq(50));
    let mut s = connected(&LINUX_6);
    send!(s, 25, data(0, 100).ack(0));
    recv!(s, 25, ack(100));
    read(&mut s, 30, 100);
    send!(s, 51, fin(100, 0));
    recv!(s, 91, ack(101));
    let mut s = connected(&LINUX_6);
    send!(s, 25, fin(0, 0).with_len(100));
    recv!(s, 65, ack(101));
    // Reading does not hasten it.
    let mut s = connected(&LINUX_6);
    send!(s, 25, data(0, 1_000).ack(0));
    recv!(s, 25, ack(1_000));
    send!(s, 31, fin(1_000, 0).with_len(100));
    read(&mut s, 31, 1_100);
    recv!(s, 71, ack(1_101));
    // Before any data there is no delay to speak of: 2 to 3 ms on Linux, until the next tick.
    let mut s = connected(&LINUX_6);
    send!(s, 25, fin(0, 0));
    recv!(s, 25, ack(1));
    // A FIN of its own takes it along.
    let mut s = answered(&LINUX_6);
    send!(s, 51, fin(100, 50));
    s.app(52, Endpoint::close);
    recv!(s, 52, fin(50, 101));
    recv_nothing!(s, 95);
    // What fills a gap is acknowledged at once, FIN or not.
    let mut s = connected(&LINUX_6);
    send!(s, 25, fin(1_000, 0).with_len(100));
    recv!(s, 25, ack(0));
    send!(s, 31, data(0, 1_000).ack(0));
    recv!(s, 31, ack(1_101));
    assert_eq!(s.end.state(), State::CloseWait);
}

#[test]
fn a_fin_that_comes_again_is_acknowledged_at_once() {
    //= RFC 2883, section 4.1.1
    let mut s = connected(&LINUX_6);
    send!(s, 25, fin(0, 0));
    recv!(s, 25, ack(1));
    send!(s, 86, fin(0, 0));
    recv!(s, 86, ack(1).sack(&[(0, 1)]));
}

#[test]
fn older_stacks_acknowledge_a_fin_at_once() {
    //= RFC 9293, section 3.10.7.4, eighth check
    for profile in [&FREEBSD_2_2, &LINUX_2_2] {
        let mut s = connected(profile);
        send!(s, 25, data(0, 100).ack(0));
        while s.next(300).is_some() {}
        send!(s, 300, fin(100, 0));
        recv!(s, 300, ack(101));
    }
}
