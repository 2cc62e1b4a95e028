//! `shutdown` and `close`, which are two things, segment by segment. Each script is a run against
//! Linux 6.18.

use crate::common::script::{Script, Seg, ack, data, script_config};
use outlast_tcp::profile::{FREEBSD_2_2, LINUX_6};
use outlast_tcp::{Endpoint, Error, Event, State};
use outlast_wire::TcpFlags;

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

/// The reset of a segment that nobody is left to read: its acknowledgement number is all it has.
fn reset(acked: i64) -> Seg {
    Seg::default().seq(acked).flags("R")
}

fn read(script: &mut Script, ms: u64) -> u64 {
    script.app(ms, |end, now| end.recv(now, u64::MAX))
}

/// An endpoint that has said FIN by `end_it` at 50 ms and is in FIN-WAIT-2 from 90 ms on.
fn fin_wait_2(end_it: fn(&mut Endpoint, outlast_base::time::Instant)) -> Script {
    let mut s = connected();
    s.app(50, end_it);
    recv!(s, 50, fin(0, 0));
    send!(s, 90, ack(1));
    assert_eq!(s.end.state(), State::FinWait2);
    s
}

#[test]
fn after_a_shutdown_the_peer_may_take_its_time() {
    //= RFC 9293, section 3.6
    let mut s = fin_wait_2(Endpoint::shutdown);
    assert_eq!(s.end.poll_timeout(), None);
    recv_nothing!(s, 3_600_000);
    send!(s, 3_600_000, data(0, 1_000).ack(1));
    assert_eq!(read(&mut s, 3_600_001), 1_000);
    while s.next(3_600_100).is_some() {}
    send!(s, 7_200_000, fin(1_000, 1));
    recv!(s, 7_200_000, ack(1_001).seq(1));
    assert_eq!(s.end.state(), State::TimeWait);
    // What was written is finished, and writing is over.
    assert_eq!(s.app(7_200_001, |end, now| end.send(now, 1)), 0);
}

#[test]
fn after_a_close_it_may_not() {
    //= RFC 9293, section 3.6
    let mut s = fin_wait_2(Endpoint::close);
    recv_nothing!(s, 60_089);
    assert_eq!(s.end.state(), State::FinWait2);
    recv_nothing!(s, 60_090);
    assert_eq!(s.end.state(), State::Closed);
    // The minute begins with the close, not with the shutdown before it.
    let mut s = fin_wait_2(Endpoint::shutdown);
    recv_nothing!(s, 1_000_000);
    s.app(1_000_000, Endpoint::close);
    recv_nothing!(s, 1_059_999);
    assert_eq!(s.end.state(), State::FinWait2);
    recv_nothing!(s, 1_060_000);
    assert_eq!(s.end.state(), State::Closed);
}

#[test]
fn data_after_a_close_is_reset() {
    //= RFC 9293, section 3.6
    for end_it in [
        Endpoint::close as fn(&mut Endpoint, _),
        |end: &mut Endpoint, now| {
            end.shutdown(now);
            end.close(now);
        },
    ] {
        let mut s = fin_wait_2(end_it);
        send!(s, 100, data(0, 500).ack(1));
        recv!(s, 100, reset(1));
        assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Aborted)));
        // Nothing is left of it.
        send!(s, 150, fin(500, 1));
        recv!(s, 150, reset(1));
    }
    // In FIN-WAIT-1, whether the FIN was acknowledged or not, and with a FIN of the peer's or not.
    for (segment, acked) in [
        (data(0, 500).ack(0), 0),
        (data(0, 500).ack(1), 1),
        (data(150, 100).ack(0), 0),
        (data(0, 500).ack(0).flags("FA"), 0),
    ] {
        let mut s = connected();
        s.app(50, Endpoint::close);
        recv!(s, 50, fin(0, 0));
        send!(s, 90, segment);
        recv!(s, 90, reset(acked));
        assert_eq!(s.end.state(), State::Closed);
    }
    // After a shutdown it is read.
    let mut s = fin_wait_2(Endpoint::shutdown);
    send!(s, 100, data(0, 500).ack(1));
    recv!(s, 100, ack(500).seq(1));
    assert_eq!(read(&mut s, 110), 500);
}

#[test]
fn what_was_read_before_a_close_is_acknowledged_again() {
    //= RFC 9293, section 3.10.7.4, seventh check
    let mut s = connected();
    send!(s, 50, data(0, 100).ack(0));
    recv!(s, 50, ack(100));
    assert_eq!(read(&mut s, 55), 100);
    s.app(60, Endpoint::close);
    recv!(s, 60, fin(0, 100));
    send!(s, 100, data(0, 100).ack(0));
    recv!(s, 100, ack(100).seq(1).sack(&[(0, 100)]));
    assert_eq!(s.end.state(), State::FinWait1);
}

#[test]
fn a_close_with_unread_data_resets() {
    //= RFC 9293, section 3.6
    // The connection's own reset, in the place of the next segment.
    let mut s = connected();
    send!(s, 50, data(0, 500).ack(0));
    recv!(s, 50, ack(500));
    s.app(60, Endpoint::close);
    recv!(s, 60, ack(500).seq(0).flags("RA"));
    assert_eq!(s.end.poll_event(), Some(Event::Readable));
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::Aborted)));
    // So it is after the peer's FIN, and with data of its own that is not acknowledged.
    let mut s = connected();
    s.write(50, 2_500);
    while s.next(50).is_some() {}
    send!(s, 60, fin(0, 0).with_len(500));
    while s.next(150).is_some() {}
    s.app(150, Endpoint::close);
    recv!(s, 150, ack(501).seq(2_500).flags("RA"));
    // A shutdown resets nothing, and a stack of BSD's sends its FIN.
    let mut s = connected();
    send!(s, 50, data(0, 500).ack(0));
    recv!(s, 50, ack(500));
    s.app(60, Endpoint::shutdown);
    recv!(s, 60, fin(0, 500));
    assert_eq!(read(&mut s, 70), 500);
    let mut s = Script::connected(script_config(&FREEBSD_2_2), 40);
    send!(s, 50, data(0, 500).ack(0));
    s.app(60, Endpoint::close);
    recv!(s, 60, fin(0, 500));
    assert_eq!(read(&mut s, 70), 0, "nobody is there");
}

#[test]
fn only_an_orphan_is_given_up_early() {
    //= RFC 9293, section 3.8.3
    // Data and FIN that nobody acknowledges: after a shutdown for tcp_retries2, 924 s; after a close
    // for what eight retransmissions take.
    let lasts = |end_it: fn(&mut Endpoint, outlast_base::time::Instant)| {
        let mut s = connected();
        s.write(50, 100);
        s.app(51, end_it);
        while s.next_sent().is_some() {}
        assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::TimedOut)));
        crate::common::ms(s.now) / 1_000
    };
    assert!((900..1_100).contains(&lasts(Endpoint::shutdown)));
    assert!((80..250).contains(&lasts(Endpoint::close)));
}

#[test]
fn a_shutdown_in_the_middle_of_an_answer_lets_it_come() {
    //= RFC 9293, section 3.6
    // The way of HTTP/1.0 and of `nc -N`: a request, a shutdown, and an answer of any length.
    let mut s = connected();
    s.write(50, 100);
    s.app(50, Endpoint::shutdown);
    recv!(s, 50, data(0, 100).flags("PA"));
    recv!(s, 50, fin(100, 0));
    send!(s, 90, ack(101));
    for n in 0..200_u64 {
        let ms = 1_000 + n * 1_000;
        send!(s, ms, data(n as i64 * 1_000, 1_000).ack(101));
        assert_eq!(read(&mut s, ms + 1), 1_000);
        while let Some((_, packet)) = s.next(ms + 500) {
            assert!(!packet.tcp().expect("TCP").has(TcpFlags::RST));
        }
    }
    send!(s, 300_000, fin(200_000, 101));
    recv!(s, 300_000, ack(200_001).seq(101));
    assert_eq!(s.end.received(), 200_000);
}
