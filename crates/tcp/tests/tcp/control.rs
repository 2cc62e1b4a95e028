//! What mechanisms do to an endpoint, through the core's trait alone: each act here is generic
//! over [`EndpointControl`], and could be done to any stack that implements it.

use crate::common::script::{Script, ack, data, script_config};
use crate::common::{Pair, config, link, ms, outage};
use outlast_base::time::{Duration, Instant};
use outlast_host::control::{
    Connection, ConnectionId, ControlError, EndpointControl, Needless, Outcome, Outstanding, Stage,
};
use outlast_link::InFlight;
use outlast_tcp::profile::{
    AIX_4_3, BSD_4_3_TAHOE, FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997, Profile,
    SUNOS_5_6,
};
use outlast_tcp::{Config, Endpoint, Error, Event};

/// The only connection of a stack.
fn only<C: EndpointControl + ?Sized>(stack: &mut C) -> Connection {
    let mut found = Vec::new();
    stack.connections(&mut found).expect("they can be listed");
    let [connection] = found[..] else {
        panic!("one connection: {found:?}");
    };
    connection
}

/// The retransmission trigger of Schütz and others 2005, section 3.3.2: own data at once, and three duplicate
/// acknowledgements after the one that the peer may not have seen.
fn trigger<C: EndpointControl + ?Sized>(stack: &mut C, now: Instant) -> Vec<Outcome> {
    let id = only(stack).id;
    vec![
        stack.retransmit_now(now, id).expect("it is known"),
        stack.send_duplicate_acks(now, id, 4).expect("it is open"),
    ]
}

/// The hand-off of Cáceres and Iftode 1995, section IV, at the mobile.
fn hand_off<C: EndpointControl + ?Sized>(stack: &mut C, now: Instant) -> Outcome {
    let id = only(stack).id;
    let _ = stack.send_duplicate_acks(now, id, 3);
    stack.fast_retransmit(now, id).expect("it is open")
}

fn freeze<C: EndpointControl + ?Sized>(stack: &mut C, now: Instant) -> Outcome {
    let id = only(stack).id;
    stack.freeze(now, id).expect("it is known")
}

fn thaw<C: EndpointControl + ?Sized>(stack: &mut C, now: Instant) -> Outcome {
    let id = only(stack).id;
    stack.thaw(now, id, Outstanding::Lost).expect("it is known")
}

fn wait_for<C: EndpointControl + ?Sized>(
    stack: &mut C,
    now: Instant,
    timeout: Option<Duration>,
) -> Outcome {
    let id = only(stack).id;
    stack
        .set_user_timeout(now, id, timeout)
        .expect("it is known")
}

/// A transfer is under way when the link goes for `length_ms`, 3 s after the start; the sender does
/// what `mechanism` says when the link is back.
fn after_an_outage(
    client: &Config,
    length_ms: u64,
    mut mechanism: impl FnMut(&mut Endpoint, Instant),
) -> (Pair, Instant) {
    let mut link = link();
    link.outages = outage(3_000, length_ms);
    link.in_flight = InFlight::Lost;
    let mut pair = Pair::new(client.clone(), client.mirrored(), link);
    let back = Instant::from_millis(3_000 + length_ms);
    feed(&mut pair, back);
    mechanism(&mut pair.client, back);
    pair.drain();
    (pair, back)
}

/// Runs with an application that always has more to send.
fn feed(pair: &mut Pair, until: Instant) {
    loop {
        let _ = pair.client.send(pair.now, 1_000_000);
        pair.drain();
        if !pair.step(until) {
            return;
        }
    }
}

#[test]
fn a_retransmission_at_once_resumes_within_a_round_trip() {
    // Schütz and others 2005, section 3.3.2; the control is the same run without it. 26 s are over seconds before
    // the next timeout of any profile.
    for profile in Profile::ALL {
        let resumed = |acts: bool| {
            let (mut pair, back) = after_an_outage(&config(profile), 26_000, |end, now| {
                if acts {
                    assert_eq!(trigger(end, now)[0], Outcome::Done, "{}", profile.name);
                }
            });
            let had = pair.server.received();
            let limit = back + Duration::from_secs(200);
            while pair.server.received() == had && pair.step(limit) {}
            pair.now - back
        };
        let (with, without) = (resumed(true), resumed(false));
        // A round trip of 40 ms and half of one where the oldest segment had arrived and only its
        // acknowledgement was lost. Linux 2.4 then learns from a DSACK that it was, takes all the
        // others for arrived too, and has no F-RTO that would see them missing: a timeout, but one
        // of the first length.
        let is_misled = profile.undo.dsack && !profile.undo.frto;
        let most = if is_misled { 1_000 } else { 120 };
        assert!(
            with <= Duration::from_millis(most),
            "{}: {with:?}",
            profile.name
        );
        assert!(
            without > Duration::from_secs(2),
            "{}: {without:?}",
            profile.name
        );
    }
}

#[test]
fn asking_for_it_changes_neither_the_estimate_nor_the_back_off() {
    //= RFC 6298, section 3 (Karn's algorithm): what was sent twice is not sampled
    for profile in Profile::ALL {
        let mut config = config(profile);
        config.timestamps = Some(false);
        let mut before = None;
        let (mut pair, _) = after_an_outage(&config, 20_000, |end, now| {
            let backed_off = end.trace();
            assert!(only(end).timeouts > 0, "{}", profile.name);
            let timeouts = only(end).timeouts;
            let mut copy = end.clone();
            for _ in 0..5 {
                assert_eq!(trigger(&mut copy, now)[0], Outcome::Done);
            }
            assert_eq!(copy.trace().rto, backed_off.rto, "{}", profile.name);
            assert_eq!(trigger(end, now)[0], Outcome::Done);
            assert_eq!(end.trace().rto, backed_off.rto, "{}", profile.name);
            assert_eq!(end.trace().srtt, backed_off.srtt, "{}", profile.name);
            assert_eq!(only(end).timeouts, timeouts, "{}", profile.name);
            before = Some(backed_off);
        });
        let before = before.expect("it ran");
        // The estimate follows the round trips that come now.
        let limit = pair.now + Duration::from_secs(3);
        feed(&mut pair, limit);
        let after = pair.client.trace();
        assert!(after.rto < before.rto, "{}: {after:?}", profile.name);
        assert!(
            after.srtt < Duration::from_millis(900),
            "{}: {after:?}",
            profile.name
        );
    }
}

#[test]
fn asking_for_it_never_gives_a_connection_up() {
    for profile in Profile::ALL {
        let (mut pair, back) = after_an_outage(&config(profile), 30_000, |_, _| {});
        pair.link = outlast_link::Link::new(outlast_link::LinkConfig {
            outages: outage(0, 100_000_000),
            ..link()
        });
        pair.link.start(pair.now);
        for n in 0..500 {
            let _ = trigger(&mut pair.client, back + Duration::from_micros(n));
            while pair.client.poll_transmit(back).is_some() {}
        }
        assert_eq!(pair.client.poll_event(), None, "{}", profile.name);
    }
}

#[test]
fn with_nothing_outstanding_there_is_nothing_to_retransmit() {
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    let outcome = s.app(100, |end, now| trigger(end, now)[0]);
    assert_eq!(outcome, Outcome::Needless(Needless::NothingOutstanding));
    for _ in 0..4 {
        recv!(s, 100, ack(0).seq(0).flags("A"));
    }
    recv_nothing!(s, 1_000);
    let outcome = s.app(1_000, hand_off);
    assert_eq!(outcome, Outcome::Needless(Needless::NothingOutstanding));
}

#[test]
fn a_closed_window_is_probed_at_once() {
    // The thesis, section 5.4: the window update may have been lost in the outage.
    for profile in [&LINUX_6, &FREEBSD_2_2] {
        let mut s = Script::connected(script_config(profile), 40);
        send!(s, 50, ack(0).seq(0).window(0));
        s.write(60, 5_000);
        recv_nothing!(s, 100);
        let probes = s.end.counters().window_probes;
        let outcome = s.app(110, |end, now| trigger(end, now)[0]);
        assert_eq!(outcome, Outcome::Done, "{}", profile.name);
        let (at, probe) = s.next(110).expect("a probe");
        assert_eq!(at, 110);
        assert!(probe.header().payload_len <= 1, "{}", profile.name);
        assert_eq!(s.end.counters().window_probes, probes + 1);
    }
}

#[test]
fn a_syn_goes_out_at_once() {
    // Schütz and others 2005, section 3.3.2: the standard retransmission procedure, also of a SYN.
    for profile in Profile::ALL {
        let mut s = Script::connecting(script_config(profile));
        let (_, syn) = s.next(0).expect("a SYN");
        let outcome = s.app(500, |end, now| {
            let id = only(end).id;
            assert_eq!(only(end).stage, Stage::Opening);
            assert_eq!(
                EndpointControl::send_duplicate_acks(end, now, id, 3),
                Err(ControlError::NotOpen(id))
            );
            EndpointControl::retransmit_now(end, now, id)
        });
        assert_eq!(outcome, Ok(Outcome::Done), "{}", profile.name);
        let (at, again) = s.next(500).expect("a SYN");
        assert_eq!((at, again.tcp()), (500, syn.tcp()), "{}", profile.name);
        let rto = s.end.trace().rto;
        assert_eq!(rto, *profile.initial_rto, "{}", profile.name);
    }
}

/// Ten segments of 1000 bytes are outstanding and unanswered; `s.now` is when they were sent.
fn ten_outstanding(profile: &'static Profile, sack: bool) -> (Script, i64) {
    let mut config = script_config(profile);
    config.sack = Some(sack);
    let mut s = Script::connected(config, 40);
    s.write(100, 1_000_000);
    // The window grows until ten are out.
    let mut at = 100;
    let mut acked = 0;
    loop {
        while s.next(at).is_some() {}
        let trace = s.end.trace();
        // The first acknowledgement may update the window and then is no duplicate's model.
        if trace.in_flight >= 10 && acked > 0 {
            break;
        }
        acked += i64::from(trace.snd_nxt.distance_from(trace.snd_una));
        at += 40;
        send!(s, at, ack(acked));
        assert!(at < 10_000, "{}: {trace:?}", profile.name);
    }
    while s.next(at).is_some() {}
    (s, acked)
}

#[test]
fn three_duplicates_restart_the_peer_of_each_profile() {
    //= RFC 5681, section 3.2
    // Cáceres and Iftode 1995, section IV. Without SACK each of them retransmits at the third; Tahoe begins
    // slowly, the others recover fast.
    for profile in Profile::ALL {
        let (mut s, acked) = ten_outstanding(profile, false);
        let at = ms(s.now) + 20;
        let outstanding = s.end.trace().in_flight;
        for _ in 0..2 {
            send!(s, at, ack(acked));
        }
        while let Some((_, packet)) = s.next(at) {
            //= RFC 3042, section 2 (limited transmit): new data, where the stack does that
            assert!(i64::from(packet.tcp().expect("TCP").seq.0) > acked + 1);
        }
        send!(s, at, ack(acked));
        recv!(s, at, data(acked, 1_000));
        let trace = s.end.trace();
        assert_eq!(s.end.counters().timeouts, 0, "{}", profile.name);
        assert_eq!(s.end.counters().fast_recoveries, 1, "{}", profile.name);
        let half = trace.ssthresh.expect("a loss");
        if profile.name == BSD_4_3_TAHOE.name {
            assert_eq!(trace.cwnd, 1);
        } else {
            assert!(trace.cwnd >= half, "{}: {trace:?}", profile.name);
        }
        assert!(half < outstanding && half >= 2, "{}: {half}", profile.name);
    }
}

#[test]
fn pure_duplicates_say_nothing_to_a_peer_with_sack() {
    //= RFC 6675, section 2: a duplicate acknowledgement has new SACK information
    for profile in [&LINUX_2_2, &LINUX_2_4, &LINUX_6] {
        let (mut s, acked) = ten_outstanding(profile, true);
        let at = ms(s.now) + 20;
        for _ in 0..6 {
            send!(s, at, ack(acked));
        }
        recv_nothing!(s, at);
        assert_eq!(s.end.counters().fast_recoveries, 0, "{}", profile.name);
    }
    for profile in [
        &BSD_4_3_TAHOE,
        &NETBSD_1997,
        &FREEBSD_2_2,
        &SUNOS_5_6,
        &AIX_4_3,
    ] {
        assert!(!profile.offers.sack, "{}", profile.name);
    }
}

#[test]
fn the_acknowledgements_that_are_sent_count_as_duplicates() {
    //= RFC 5681, section 2: same number, same window, no data
    for profile in Profile::ALL {
        let mut s = Script::connected(script_config(profile), 40);
        send!(s, 50, data(0, 1_000).ack(0));
        send!(s, 50, data(1_000, 1_000).ack(0));
        let _ = s.app(60, |end, now| end.recv(now, u64::MAX));
        while s.next(900).is_some() {}
        let _ = s.app(1_000, trigger);
        let mut sent = Vec::new();
        while let Some((_, packet)) = s.next(1_000) {
            assert_eq!(packet.header().payload_len, 0, "{}", profile.name);
            sent.push(packet.tcp().expect("TCP").clone());
        }
        assert_eq!(sent.len(), 4, "{}", profile.name);
        // The first may tell of a new window, hence four.
        let first = &sent[0];
        assert_eq!(first.ack, crate::common::script::PEER + 2_001);
        for copy in &sent[1..] {
            assert_eq!(
                (copy.ack, copy.seq, copy.window, copy.flags),
                (first.ack, first.seq, first.window, first.flags),
                "{}",
                profile.name
            );
        }
    }
}

#[test]
fn fast_retransmission_takes_no_timeout() {
    // Cáceres and Iftode 1995, section IV.
    for profile in Profile::ALL {
        let (mut s, acked) = ten_outstanding(profile, false);
        let at = ms(s.now) + 20;
        let outcome = s.app(at, hand_off);
        assert_eq!(outcome, Outcome::Done, "{}", profile.name);
        for _ in 0..3 {
            recv!(s, at, ack(0).flags("A"));
        }
        recv!(s, at, data(acked, 1_000));
        assert_eq!(s.end.counters().timeouts, 0, "{}", profile.name);
        let again = s.app(at, hand_off);
        if profile.name != BSD_4_3_TAHOE.name {
            assert_eq!(again, Outcome::Needless(Needless::Recovering));
        }
    }
}

#[test]
fn fast_retransmission_helps_a_stack_that_goes_back_after_timeouts() {
    // Cáceres and Iftode 1995, section IV: the hand-off may have outlasted a timeout. Stacks with a scoreboard are
    // in recovery then, and say so: what helps them is the retransmission at once.
    for profile in Profile::ALL {
        let (mut s, acked) = ten_outstanding(profile, false);
        while s.end.counters().timeouts < 2 {
            let _ = s.next_sent().expect("a timeout");
        }
        let at = ms(s.now) + 20;
        while s.next(at).is_some() {}
        let outcome = s.app(at, hand_off);
        let recovering = profile.recovery.has_scoreboard();
        if recovering {
            assert_eq!(outcome, Outcome::Needless(Needless::Recovering));
            continue;
        }
        assert_eq!(outcome, Outcome::Done, "{}", profile.name);
        for _ in 0..3 {
            recv!(s, at, ack(0).flags("A"));
        }
        recv!(s, at, data(acked, 1_000));
    }
}

#[test]
fn freezing_keeps_the_window_and_thawing_sends_everything_again() {
    // Brown and Singh 1997, section 4.
    for profile in Profile::ALL {
        let (mut s, acked) = ten_outstanding(profile, false);
        let at = ms(s.now) + 20;
        let before = s.end.trace();
        assert_eq!(s.app(at, freeze), Outcome::Done);
        assert!(only(&mut s.end).is_frozen);
        let again = s.app(at, freeze);
        assert_eq!(again, Outcome::Needless(Needless::Already));
        recv_nothing!(s, at + 2_000_000);
        assert_eq!(s.end.poll_timeout(), None, "{}", profile.name);
        let outcome = s.app(at + 2_000_000, |end, now| trigger(end, now)[0]);
        assert_eq!(outcome, Outcome::Needless(Needless::Frozen));
        while s.next(at + 2_000_000).is_some() {}

        let back = at + 2_000_001;
        assert_eq!(s.app(back, thaw), Outcome::Done);
        let mut sent = 0;
        while let Some((when, packet)) = s.next(back) {
            assert_eq!(when, back, "{}", profile.name);
            let tcp = packet.tcp().expect("TCP");
            if sent == 0 {
                assert_eq!(i64::from(tcp.seq.0) - 1, acked, "{}", profile.name);
            }
            sent += 1;
        }
        let after = s.end.trace();
        assert_eq!(sent, before.in_flight, "{}", profile.name);
        assert_eq!(after.cwnd, before.cwnd, "{}", profile.name);
        assert_eq!(after.ssthresh, before.ssthresh, "{}", profile.name);
        assert_eq!(after.rto, before.rto, "{}", profile.name);
        // All of it arrives: the window goes on growing from where it was.
        send!(s, back + 40, ack(acked + 1_000 * i64::from(sent)));
        assert!(s.end.trace().cwnd >= before.cwnd, "{}", profile.name);
        let again = s.app(back + 41, thaw);
        assert_eq!(again, Outcome::Needless(Needless::Already));
        assert_eq!(s.end.counters().timeouts, 0, "{}", profile.name);
    }
}

#[test]
fn the_time_in_ice_counts_for_no_limit() {
    // Brown and Singh 1997, section 4: however long the disconnection lasts.
    for profile in Profile::ALL {
        let (mut s, _) = ten_outstanding(profile, false);
        // Retransmission has begun when the freeze comes.
        let begun = s.next_sent().expect("a timeout").0;
        while s.next(begun).is_some() {}
        let at = begun + 10;
        let _ = s.app(at, |end, now| {
            wait_for(end, now, Some(Duration::from_secs(600)))
        });
        assert_eq!(s.app(at, freeze), Outcome::Done);
        let back = at + 5_000_000;
        assert_eq!(s.app(back, thaw), Outcome::Done);
        while s.next(back).is_some() {}
        s.go_to(back + 500_000);
        assert_eq!(s.end.poll_event(), None, "{}", profile.name);
        s.go_to(back + 800_000);
        let failed = Event::Failed(Error::UserTimeout);
        assert_eq!(s.end.poll_event(), Some(failed), "{}", profile.name);
    }
}

#[test]
fn a_frozen_connection_still_receives() {
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    let _ = s.app(50, freeze);
    send!(s, 60, data(0, 1_000).ack(0));
    recv!(s, 60, ack(1_000));
    s.app(70, |end, now| end.send(now, 500));
    recv_nothing!(s, 10_000);
    let _ = s.app(10_000, thaw);
    recv!(s, 10_000, data(0, 500));
}

#[test]
fn a_closed_window_stays_closed_through_a_freeze() {
    for profile in Profile::ALL {
        let (mut s, acked) = ten_outstanding(profile, false);
        let at = ms(s.now) + 20;
        // New data acknowledged: every stack takes this window.
        send!(s, at, ack(acked + 1_000).window(0));
        while s.next(at).is_some() {}
        let _ = s.app(at + 1, freeze);
        recv_nothing!(s, at + 60_000);
        let _ = s.app(at + 60_000, thaw);
        while s.next(at + 60_000).is_some() {}
        let (timer, _) = s.end.poll_timeout().expect("it is not forgotten");
        assert!(timer <= s.now + Duration::from_secs(240));
        send!(s, at + 60_100, ack(acked + 1_000).seq(0).window(60_000));
        let (_, packet) = s.next_sent().expect("data");
        assert!(packet.header().payload_len > 0, "{}", profile.name);
        assert!(ms(s.now) <= at + 60_100 + 130_000);
    }
}

#[test]
fn a_new_user_timeout_takes_effect_at_once_and_can_be_taken_back() {
    //= RFC 9293, section 3.9.1.2 (STATUS and options: the timeout may be changed)
    for profile in Profile::ALL {
        let lasts = |timeouts: [Option<Duration>; 2]| {
            let (mut s, _) = ten_outstanding(profile, false);
            let at = ms(s.now);
            for timeout in timeouts {
                let _ = s.app(at + 1, |end, now| wait_for(end, now, timeout));
                assert_eq!(only(&mut s.end).user_timeout, timeout);
            }
            while s.next_sent().is_some() {}
            let failed = s.end.poll_event();
            (ms(s.now) - at, failed)
        };
        let patience = Duration::from_secs(30);
        let (short, failed) = lasts([None, Some(patience)]);
        assert_eq!(failed, Some(Event::Failed(Error::UserTimeout)));
        assert!(
            (30_000..95_000).contains(&short),
            "{}: {short}",
            profile.name
        );
        let (long, failed) = lasts([Some(patience), None]);
        assert_eq!(failed, Some(Event::Failed(Error::TimedOut)));
        assert!(long > 100_000, "{}: {long}", profile.name);
    }
}

#[test]
fn many_endpoints_are_one_host() {
    let ports = 40_000..40_005_u16;
    let mut host: Vec<Endpoint> = ports
        .clone()
        .map(|port| {
            let mut config = script_config(&LINUX_6);
            config.local.set_port(port);
            Endpoint::connect(Instant::ZERO, config)
        })
        .collect();
    let mut found = Vec::new();
    host[..].connections(&mut found).expect("they are listed");
    let listed: Vec<_> = found.iter().map(|c| c.id.local.port()).collect();
    assert_eq!(listed, ports.collect::<Vec<_>>());

    let id = found[3].id;
    let now = Instant::from_millis(100);
    assert_eq!(host[..].freeze(now, id), Ok(Outcome::Done));
    let frozen: Vec<_> = host.iter().map(Endpoint::is_frozen).collect();
    assert_eq!(frozen, [false, false, false, true, false]);
    assert_eq!(
        host[..].send_duplicate_acks(now, id, 3),
        Err(ControlError::NotOpen(id))
    );
    let stranger = ConnectionId {
        local: id.remote,
        remote: id.local,
    };
    assert_eq!(
        host[..].retransmit_now(now, stranger),
        Err(ControlError::Unknown(stranger))
    );
}

#[test]
fn what_has_ended_is_not_listed() {
    let mut s = Script::connected(script_config(&LINUX_6), 40);
    let id = only(&mut s.end).id;
    s.app(50, Endpoint::abort);
    let mut found = Vec::new();
    s.end.connections(&mut found).expect("they are listed");
    assert_eq!(found, []);
    assert_eq!(
        EndpointControl::retransmit_now(&mut s.end, s.now, id),
        Err(ControlError::Unknown(id))
    );
}
