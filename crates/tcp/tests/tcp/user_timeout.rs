//! The user timeout option (RFC 5482), segment by segment and between two endpoints.

use crate::common::script::{Script, Seg, ack, data, script_config};
use crate::common::{Pair, config, link, ms};
use outlast_base::time::{Duration, Instant};
use outlast_tcp::profile::{LINUX_6, Profile};
use outlast_tcp::{Config, Endpoint, Error, Event, UserTimeoutOption};
use outlast_wire::Packet;
use outlast_wire::tcp::{TcpOptions, UserTimeout};

fn seconds(value: u16) -> Option<UserTimeout> {
    Some(UserTimeout {
        minutes: false,
        value,
    })
}

fn told(packet: &Packet) -> Option<UserTimeout> {
    packet.tcp().expect("TCP").options.user_timeout
}

fn advertising(secs: u64) -> Config {
    let mut config = script_config(&LINUX_6);
    config.user_timeout_option = Some(UserTimeoutOption {
        advertise: Duration::from_secs(secs),
        ..UserTimeoutOption::default()
    });
    config
}

/// A segment with the option.
fn saying(seg: Seg, timeout: Option<UserTimeout>) -> Seg {
    Seg {
        options: Some(TcpOptions {
            user_timeout: timeout,
            ..TcpOptions::default()
        }),
        ..seg
    }
}

/// A segment with the option as these bytes of its value say.
fn arriving(seg: Seg, [high, low]: [u8; 2]) -> Seg {
    Seg {
        options: Some(TcpOptions::parse(&[28, 4, high, low])),
        ..seg
    }
}

fn syn_ack(timeout: Option<UserTimeout>) -> Seg {
    let seg = ack(0).seq(-1).flags("SA").window(60_000);
    Seg {
        options: Some(TcpOptions {
            mss: Some(1_000),
            user_timeout: timeout,
            ..TcpOptions::default()
        }),
        ..seg
    }
}

fn connected(config: Config, peer: Option<UserTimeout>) -> Script {
    let mut s = Script::connecting(config);
    let _ = s.next(0).expect("a SYN");
    send!(s, 40, syn_ack(peer));
    assert_eq!(s.end.poll_event(), Some(Event::Connected));
    s
}

/// When the connection ends that has a segment outstanding from 100 ms on, in s.
fn ends_after(mut s: Script) -> (u64, Event) {
    s.write(100, 1_000);
    while s.next_sent().is_some() {}
    let event = s.end.poll_event().expect("it ends");
    ((ms(s.now) - 100) / 1_000, event)
}

#[test]
fn the_syn_and_the_first_segment_after_it_tell() {
    //= RFC 5482, section 3
    let mut s = Script::connecting(advertising(600));
    let (_, syn) = s.next(0).expect("a SYN");
    assert_eq!(told(&syn), seconds(600));
    send!(s, 40, syn_ack(None));
    let (_, first) = s.next(40).expect("an acknowledgement");
    assert_eq!(told(&first), seconds(600));
    s.write(50, 500);
    let (_, second) = s.next(50).expect("data");
    assert_eq!(told(&second), None, "once is enough");
}

#[test]
fn the_passive_side_tells_too() {
    //= RFC 5482, section 3
    let mut s = Script::listening(advertising(600));
    send!(s, 0, Seg::default().seq(-1).flags("S"));
    let (_, syn_ack) = s.next(0).expect("a SYN-ACK");
    assert_eq!(told(&syn_ack), seconds(600));
    send!(s, 40, ack(0).seq(0));
    // A full segment has no room for it: it must not become longer than the path takes.
    s.write(50, 1_500);
    let (_, full) = s.next(50).expect("data");
    assert_eq!((told(&full), full.total_len()), (None, 576));
    let (_, full) = s.next(50).expect("data");
    assert_eq!(told(&full), None);
    let (_, rest) = s.next(50).expect("data");
    assert_eq!(told(&rest), seconds(600));
}

#[test]
fn without_it_nothing_is_told_or_heeded() {
    //= RFC 5482, section 3.1: ENABLED is false by default
    let mut s = Script::connecting(script_config(&LINUX_6));
    let (_, syn) = s.next(0).expect("a SYN");
    assert_eq!(told(&syn), None);
    send!(s, 40, syn_ack(seconds(30)));
    let (_, first) = s.next(40).expect("an acknowledgement");
    assert_eq!(told(&first), None);
    assert_eq!(s.end.user_timeout(), None);
}

#[test]
fn the_longer_wish_of_both_is_adopted_within_the_limits() {
    //= RFC 5482, section 3.1
    let secs = Duration::from_secs;
    for (ours, theirs, adopted) in [
        (200, 600, 600),
        (600, 200, 600),
        (10, 20, 100),
        (200, 30_000, 7_200),
    ] {
        let mut config = advertising(ours);
        if let Some(option) = &mut config.user_timeout_option {
            option.at_most = secs(7_200);
        }
        let s = connected(config, seconds(theirs));
        assert_eq!(s.end.user_timeout(), Some(secs(adopted)));
    }
    // A peer that says nothing changes nothing.
    let s = connected(advertising(200), None);
    assert_eq!(s.end.user_timeout(), None);
}

#[test]
fn an_adopted_timeout_ends_the_connection_and_no_limit_before_it() {
    //= RFC 9293, section 3.10.8 (user timeout)
    let (after, event) = ends_after(connected(advertising(200), seconds(150)));
    assert_eq!(event, Event::Failed(Error::UserTimeout));
    assert_eq!(after, 200);
    let (after, event) = ends_after(connected(advertising(200), seconds(3_000)));
    assert_eq!(event, Event::Failed(Error::UserTimeout));
    assert_eq!(after, 3_000, "longer than fifteen retransmissions take");
}

#[test]
fn it_is_never_shorter_than_the_timeout_that_runs() {
    //= RFC 5482, section 3.1: above the current RTO
    let mut config = advertising(1);
    config.rto_bounds = Some((Duration::from_secs(200), Duration::from_secs(400)));
    let s = connected(config, seconds(1));
    assert!(s.end.user_timeout() >= Some(Duration::from_secs(200)));
}

#[test]
fn what_the_application_sets_the_peer_cannot_change() {
    //= RFC 5482, section 3.1: CHANGEABLE becomes false
    let mut s = connected(advertising(200), seconds(500));
    while s.next(40).is_some() {}
    s.end.set_user_timeout(Some(Duration::from_secs(50)));
    send!(s, 60, saying(data(0, 100).ack(0), seconds(900)));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(50)));
    // The peer hears of the new one with the next segment.
    let (_, told_next) = s.next(60).expect("an acknowledgement");
    assert_eq!(told(&told_next), seconds(50));
    s.end.set_user_timeout(None);
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(900)));
}

#[test]
fn a_peer_may_change_its_mind() {
    //= RFC 5482, section 3.1
    let mut s = connected(advertising(150), seconds(500));
    s.write(100, 1_000);
    s.peer_seq = 0;
    send!(s, 140, saying(ack(1_000), seconds(300)));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(300)));
    // What is not acceptable says nothing.
    send!(s, 150, saying(data(900_000, 10).ack(1_000), seconds(700)));
    send!(s, 160, saying(ack(700_000), seconds(800)));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(300)));
}

#[test]
fn it_takes_the_place_of_a_sack_block_where_room_is_short() {
    //= RFC 2018, section 3: forty bytes of options
    let mut config = advertising(600);
    config.timestamps = Some(true);
    let mut s = Script::connected(config, 40);
    for n in [1, 3, 5, 7] {
        send!(s, 50, data(n * 100, 100).ack(0).stamps(2 + n as u32, 0));
    }
    while s.next(60).is_some() {}
    s.end.set_user_timeout(Some(Duration::from_secs(50)));
    send!(s, 70, data(900, 100).ack(0).stamps(20, 0));
    let (_, packet) = s.next(80).expect("an acknowledgement");
    let options = &packet.tcp().expect("TCP").options;
    assert_eq!(options.user_timeout, seconds(50));
    assert_eq!(options.sack.len(), 2);
    assert_eq!(*options, options.clone().fitted());
}

#[test]
fn keepalive_waits_longer() {
    //= RFC 5482, section 4.2
    let mut config = advertising(20_000);
    config.keepalive = true;
    let mut s = connected(config, seconds(20_000));
    while s.next(40).is_some() {}
    recv_nothing!(s, 20_001_039);
    recv!(s, 20_001_040, data(-1, 0));
}

#[test]
fn a_syn_is_not_sent_for_longer_than_the_user_timeout() {
    //= RFC 9293, section 3.10.8 (user timeout, for any state)
    let mut config = script_config(&LINUX_6);
    config.user_timeout = Some(Duration::from_secs(10));
    let mut s = Script::connecting(config);
    while s.next_sent().is_some() {}
    assert_eq!(s.end.poll_event(), Some(Event::Failed(Error::UserTimeout)));
    assert!((10_000..16_000).contains(&ms(s.now)), "{}", ms(s.now));
}

#[test]
fn both_ends_of_each_profile_keep_an_adopted_timeout() {
    // Schütz and others 2005, section 3.2: an outage longer than either stack would bear.
    for profile in Profile::ALL {
        let mut client = config(profile);
        client.user_timeout_option = Some(UserTimeoutOption {
            advertise: Duration::from_secs(3_600),
            ..UserTimeoutOption::default()
        });
        let mut link = link();
        link.outages = crate::common::outage(1_000, 1_800_000);
        let mut pair = Pair::new(client.clone(), client.mirrored(), link);
        pair.run_until(Instant::from_millis(900));
        for end in [&pair.client, &pair.server] {
            let adopted = Endpoint::user_timeout(end);
            assert_eq!(adopted, Some(Duration::from_secs(3_600)));
        }
        pair.run_until(Instant::from_millis(2_000));
        let had = pair.server.received();
        let _ = pair.client.send(pair.now, 5_000);
        pair.drain();
        pair.run_until(Instant::ZERO + Duration::from_secs(3_000));
        assert_eq!(pair.error(), None, "{}", profile.name);
        assert!(pair.server.received() > had, "{}", profile.name);
    }
}

#[test]
fn zero_is_passed_over() {
    //= RFC 5482, section 3.4
    let mut s = connected(advertising(200), seconds(500));
    while s.next(40).is_some() {}
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(500)));
    send!(s, 60, arriving(data(0, 100).ack(0), [0, 0]));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(500)));
    // Zero minutes are none either; the segment itself counts.
    send!(s, 61, arriving(data(100, 100).ack(0), [0x80, 0]));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(500)));
    assert_eq!(s.end.received(), 200);
    send!(s, 62, arriving(data(200, 100).ack(0), [0, 250]));
    assert_eq!(s.end.user_timeout(), Some(Duration::from_secs(250)));
}
