//! What the agent does when a link is restored, and that nobody makes it do more.

use crate::stack::{ROUTER, Stack, connection};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::Action;
use outlast_host::{Event, Host, HostConfig, Limits, Mechanism, Network};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));

fn agent(mechanism: Mechanism) -> Host {
    Host::new(Instant::ZERO, HostConfig::new(mechanism))
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn event(link: LinkId, state: LinkState, indicator: Indicator) -> LinkEvent {
    LinkEvent {
        link,
        state,
        indicator,
    }
}

/// The link is away from 1 s on, and back at 11 s.
fn outage(host: &mut Host, stack: &mut Stack, indicator: Indicator) {
    host.handle_link(at(1_000), event(LINK, LinkState::Down, indicator), stack);
    assert_eq!(stack.log.len(), 0, "nothing is done while it is away");
    host.handle_link(at(11_000), event(LINK, LinkState::Up, indicator), stack);
}

/// Calls the agent whenever it wants to be called, up to `until`.
fn run(host: &mut Host, stack: &mut Stack, until: Instant) -> u32 {
    let mut calls = 0;
    while let Some((due, _)) = host.poll_timeout().filter(|&(due, _)| due <= until) {
        host.handle_timeout(due, stack);
        calls += 1;
        assert!(calls < 100_000, "it wants to be called all the time");
    }
    calls
}

#[test]
fn every_stalled_connection_is_restarted_at_once() {
    let mut stack = Stack::of(3);
    stack.connections[1].snd_nxt = stack.connections[1].snd_una;
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    let restarted: Vec<_> = stack
        .log
        .iter()
        .filter(|entry| entry.2 == Action::Retransmit)
        .map(|entry| (entry.0, entry.1.local.port()))
        .collect();
    assert_eq!(restarted, [(at(11_000), 0), (at(11_000), 2)]);
    // The peers cannot know: they are woken, also that of the connection with nothing outstanding.
    assert_eq!(stack.count(Action::DuplicateAcks), 3);
    let Some(Event::Pass {
        connections,
        restored,
        ..
    }) = host.poll_event()
    else {
        panic!("a pass is told");
    };
    assert_eq!(
        (connections, restored.outage),
        (3, Some(Duration::from_secs(10)))
    );
}

#[test]
fn a_symmetric_indicator_needs_no_duplicate_acknowledgements() {
    let mut stack = Stack::of(2);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::MobilityUpdate);
    assert_eq!(stack.count(Action::Retransmit), 2);
    assert_eq!(stack.count(Action::DuplicateAcks), 0);
}

/// Who says so is an explicit notification, which does not tell by itself; and it may be damped.
#[test]
fn a_return_by_a_new_path_forces_slow_start() {
    for is_new in [false, true] {
        let mut stack = Stack::of(1);
        stack.connections[0].timeouts = 0;
        let mut host = agent(Mechanism::RetransmissionTrigger);
        let back = event(LINK, LinkState::Up, Indicator::Notify);
        if is_new {
            host.handle_return_by_new_path(at(1_000), back, &mut stack);
        } else {
            host.handle_link(at(1_000), back, &mut stack);
        }
        assert_eq!(stack.count(Action::SlowStart), usize::from(is_new));
        // The next return is by the same path.
        stack.log.clear();
        host.handle_link(at(9_000), back, &mut stack);
        assert_eq!(stack.count(Action::SlowStart), 0);
    }
}

#[test]
fn a_short_outage_forces_slow_start_only_on_a_new_path() {
    for (indicator, expected) in [(Indicator::Carrier, 0), (Indicator::Address, 2)] {
        let mut stack = Stack::of(3);
        for connection in &mut stack.connections[..2] {
            connection.timeouts = 0;
        }
        let mut host = agent(Mechanism::FastRetransmit);
        outage(&mut host, &mut stack, indicator);
        assert_eq!(stack.count(Action::SlowStart), expected, "{indicator:?}");
        // Who starts slowly does so with a retransmission as after a timeout.
        assert_eq!(stack.count(Action::Retransmit), expected);
        assert_eq!(stack.count(Action::FastRetransmit), 3 - expected);
    }
}

#[test]
fn only_connections_over_the_link_are_restarted() {
    let mut stack = Stack::of(2);
    stack.connections.push(connection(7, 1));
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    assert_eq!(stack.count(Action::Retransmit), 2);
    let behind_router = LinkId {
        interface: InterfaceId(1),
        peer: Some(ROUTER),
    };
    for state in [LinkState::Down, LinkState::Up] {
        let event = event(behind_router, state, Indicator::Neighbour);
        host.handle_link(at(12_000), event, &mut stack);
    }
    let last = stack
        .log
        .iter()
        .rfind(|entry| entry.2 == Action::Retransmit);
    assert_eq!(last.map(|entry| entry.1.local.port()), Some(7));
}

#[test]
fn a_connection_without_progress_is_restarted_a_few_times() {
    let mut stack = Stack::of(2);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    // The first one's retransmission was acknowledged, the second one's was lost.
    stack.connections[0].snd_una = stack.connections[0].snd_nxt;
    run(&mut host, &mut stack, at(100_000));
    let of = |port| {
        let of_port = stack
            .log
            .iter()
            .filter(|entry| entry.2 == Action::Retransmit && entry.1.local.port() == port);
        of_port.map(|entry| entry.0).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [at(11_000)]);
    assert_eq!(of(1), [at(11_000), at(11_050), at(11_150), at(11_350)]);
    assert_eq!(host.counters().retries, 3);
    assert_eq!(host.poll_timeout(), None);
}

#[test]
fn a_connection_that_waits_for_its_own_timer_has_its_peer_woken_twice() {
    for (has_not_backed_off, looks) in [(false, 4), (true, 16)] {
        let mut stack = Stack::of(1);
        stack.has_not_backed_off = has_not_backed_off;
        stack.connections[0].timeouts = 0;
        stack.connections[0].received_at = at(900);
        let mut host = agent(Mechanism::RetransmissionTrigger);
        outage(&mut host, &mut stack, Indicator::Address);
        run(&mut host, &mut stack, at(100_000));
        assert_eq!(stack.count(Action::Retransmit), looks, "it is looked at");
        let woken = stack
            .log
            .iter()
            .filter(|entry| entry.2 == Action::DuplicateAcks);
        let woken: Vec<_> = woken.map(|entry| entry.0).collect();
        assert_eq!(woken, [at(11_000), at(11_050)], "{has_not_backed_off}");
        assert_eq!(stack.count(Action::SlowStart), 1, "{has_not_backed_off}");
    }
}

/// Their peers may have sent something during the outage: those are asked whose data is the newest, once each, behind the
/// connections that wait. None of them counts as stalled.
#[test]
fn peers_of_idle_connections_are_asked_as_far_as_there_is_room() {
    for (length, expected) in [(900, 0), (10_000, 256)] {
        let mut stack = Stack::of(400);
        for (connection, seconds) in stack.connections.iter_mut().zip(1_000..) {
            connection.snd_nxt = connection.snd_una;
            connection.timeouts = 0;
            connection.received_at = at(seconds * 1_000);
        }
        stack.connections[7].snd_nxt += 1_000;
        let mut host = agent(Mechanism::RetransmissionTrigger);
        let away = 2_000_000;
        for (millis, state) in [(away, LinkState::Down), (away + length, LinkState::Up)] {
            host.handle_link(
                at(millis),
                event(LINK, state, Indicator::Carrier),
                &mut stack,
            );
        }
        run(&mut host, &mut stack, at(away + 1_000_000));
        let (_, first, _) = stack.log[0];
        assert_eq!(first.local.port(), 7);
        assert!(stack.count(Action::Retransmit) > 0);
        let asked = stack
            .log
            .iter()
            .filter(|one| one.2 == Action::DuplicateAcks);
        let asked: Vec<u16> = asked.map(|one| one.1.local.port()).collect();
        assert_eq!(asked.len(), expected);
        assert!(
            asked.iter().skip(1).all(|port| *port >= 400 - 256),
            "{asked:?}"
        );
        let told = std::iter::from_fn(|| host.poll_event()).find_map(|event| match event {
            Event::Pass { stalled, .. } => Some(stalled),
            _ => None,
        });
        assert_eq!(told, Some(1));
    }
}

#[test]
fn a_connection_that_retransmits_late_has_a_round_trip_for_the_answer() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    // The system was busy.
    stack.connections[0].sent_at = at(11_030);
    run(&mut host, &mut stack, at(11_300));
    let restarts = stack
        .log
        .iter()
        .filter(|entry| entry.2 == Action::Retransmit);
    let restarts: Vec<_> = restarts.map(|entry| entry.0).collect();
    assert_eq!(restarts, [at(11_000), at(11_080), at(11_180)]);
}

/// What was done with the only connection at that time.
fn done_at(stack: &Stack, time: Instant) -> Vec<Action> {
    let entries = stack.log.iter().filter(|entry| entry.0 == time);
    entries.map(|entry| entry.2).collect()
}

/// It is still looked at because of the first return, and may have used up its restarts.
#[test]
fn a_second_return_restarts_and_wakes_the_peer_as_the_first() {
    for rtt in [40, 200] {
        for up in [500, 1_000, 2_500, 5_000] {
            let mut stack = Stack::of(1);
            stack.connections[0].min_rtt = Duration::from_millis(rtt);
            stack.connections[0].received_at = at(900);
            let mut host = agent(Mechanism::RetransmissionTrigger);
            outage(&mut host, &mut stack, Indicator::Carrier);
            let lost = 11_000 + up;
            for millis in ((11_000 + rtt)..lost).step_by(10) {
                let connection = &mut stack.connections[0];
                connection.snd_una += 1_000;
                connection.snd_nxt = connection.snd_una + 1_000;
                connection.timeouts = 0;
                (connection.heard_at, connection.sent_at) = (at(millis), at(millis + 1));
                connection.received_at = at(millis);
                run(&mut host, &mut stack, at(millis));
            }
            let waits = host.waiting().len();
            assert!(up >= 2_500 || waits == 1, "it is looked at: {rtt}, {up}");
            let down = event(LINK, LinkState::Down, Indicator::Carrier);
            host.handle_link(at(lost), down, &mut stack);
            // Its own timer sends in vain.
            stack.connections[0].timeouts = 2;
            stack.connections[0].sent_at = at(lost + 700);
            let back = lost + 1_000;
            run(&mut host, &mut stack, at(back - 1));
            let up_again = event(LINK, LinkState::Up, Indicator::Carrier);
            host.handle_link(at(back), up_again, &mut stack);
            let both = [Action::DuplicateAcks, Action::Retransmit];
            assert_eq!(done_at(&stack, at(back)), both, "{rtt}, {up}");
            run(&mut host, &mut stack, at(back + 30_000));
            let after = stack.log.iter().filter(|entry| entry.0 >= at(back));
            let restarts = after.filter(|entry| entry.2 == Action::Retransmit).count();
            assert_eq!(restarts, 4, "with all attempts: {rtt}, {up}");
            assert_eq!(host.poll_timeout(), None, "it comes to rest");
        }
    }
}

#[test]
fn a_second_return_shortly_after_the_first_waits_for_the_interval() {
    let mut stack = Stack::of(1);
    stack.connections[0].min_rtt = Duration::from_millis(600);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    for (millis, state) in [(11_100, LinkState::Down), (11_200, LinkState::Up)] {
        let heard = event(LINK, state, Indicator::Carrier);
        host.handle_link(at(millis), heard, &mut stack);
    }
    run(&mut host, &mut stack, at(11_600));
    let restarts = stack.log.iter().filter(|e| e.2 == Action::Retransmit);
    let restarts: Vec<_> = restarts.map(|entry| entry.0).collect();
    assert_eq!(restarts, [at(11_000), at(11_500)]);
}

/// Its own timeout may be as long as the outage was.
#[test]
fn a_connection_that_stops_within_two_seconds_is_restarted() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    // It goes on, and is heard of and sends every 10 ms.
    for millis in (11_010..13_000).step_by(10) {
        let connection = &mut stack.connections[0];
        connection.snd_una += 1_000;
        connection.snd_nxt = connection.snd_una + 1_000;
        (connection.heard_at, connection.sent_at) = (at(millis), at(millis));
        run(&mut host, &mut stack, at(millis));
    }
    assert_eq!(stack.count(Action::Retransmit), 1, "nothing but the first");
    // Then it hears something, and has nothing more to send.
    stack.connections[0].heard_at = at(13_010);
    run(&mut host, &mut stack, at(13_800));
    assert_eq!(stack.count(Action::Retransmit), 2);
    run(&mut host, &mut stack, at(100_000));
    assert!(stack.count(Action::Retransmit) <= usize::from(Limits::default().attempts));
    assert_eq!(host.poll_timeout(), None, "it comes to rest");
}

/// It goes through all sockets each time.
#[test]
fn connections_that_go_on_are_looked_at_for_two_and_a_half_seconds_and_no_longer() {
    for rtt in [40, 200, 600] {
        let mut stack = Stack::of(10_000);
        for connection in &mut stack.connections {
            connection.min_rtt = Duration::from_millis(rtt);
        }
        let mut host = agent(Mechanism::RetransmissionTrigger);
        outage(&mut host, &mut stack, Indicator::Carrier);
        // The last ones are restarted 0.6 s later.
        let end = 11_000 + 600 + 2_500;
        let (mut lists, mut last) = (stack.lists, 0);
        for millis in (11_010..60_000).step_by(50) {
            if host.poll_timeout().is_none() {
                break;
            }
            for connection in &mut stack.connections {
                connection.snd_una += 1_000;
                connection.snd_nxt = connection.snd_una + 1_000;
                (connection.heard_at, connection.sent_at) = (at(millis), at(millis + 1));
            }
            run(&mut host, &mut stack, at(millis));
            if stack.lists > lists {
                (lists, last) = (stack.lists, millis);
            }
        }
        assert_eq!(host.poll_timeout(), None, "it comes to rest: {rtt}");
        assert_eq!(stack.count(Action::Retransmit), 10_000, "{rtt}");
        // Looks that are together in a pass may be 0.15 s late.
        let least = end - 2 * rtt - 200;
        assert!((least..=end + 200).contains(&last), "{rtt}: until {last}");
        // The first, and then one in 0.15 s.
        assert!(stack.lists <= 23, "{rtt}: {} passes", stack.lists);
    }
}

/// What it sends may all be new data, and its oldest segment lost once more.
#[test]
fn a_connection_whose_oldest_segment_stays_is_restarted_although_it_sends() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    stack.connections[0].snd_una += 100;
    for millis in (11_010..11_300).step_by(10) {
        let connection = &mut stack.connections[0];
        (connection.heard_at, connection.sent_at) = (at(millis), at(millis));
        run(&mut host, &mut stack, at(millis));
    }
    let restarts = stack
        .log
        .iter()
        .filter(|entry| entry.2 == Action::Retransmit);
    let restarts: Vec<_> = restarts.map(|entry| entry.0).collect();
    assert_eq!(restarts, [at(11_000), at(11_200)]);
}

/// It may never send what is lost, and only the stack knows.
#[test]
fn a_connection_that_sends_on_by_itself_is_looked_at_every_round_trip() {
    for (has_not_backed_off, expected) in [
        (true, &[at(11_000), at(11_050), at(11_100)][..]),
        (false, &[at(11_000)][..]),
    ] {
        let mut stack = Stack::of(1);
        stack.has_not_backed_off = has_not_backed_off;
        let mut host = agent(Mechanism::RetransmissionTrigger);
        outage(&mut host, &mut stack, Indicator::Carrier);
        stack.connections[0].sent_at = at(20_000);
        run(&mut host, &mut stack, at(11_149));
        let restarts = stack
            .log
            .iter()
            .filter(|entry| entry.2 == Action::Retransmit);
        let restarts: Vec<_> = restarts.map(|entry| entry.0).collect();
        assert_eq!(restarts, expected, "{has_not_backed_off}");
    }
}

#[test]
fn ten_thousand_connections_take_less_than_a_second() {
    let mut stack = Stack::of(10_000);
    let mut config = HostConfig::new(Mechanism::RetransmissionTrigger);
    config.limits.attempts = 1;
    let mut host = Host::new(Instant::ZERO, config);
    outage(&mut host, &mut stack, Indicator::Carrier);
    assert_eq!(
        stack.count(Action::Retransmit),
        config.limits.burst as usize,
        "a burst first"
    );
    run(&mut host, &mut stack, at(12_000));
    assert_eq!(stack.count(Action::Retransmit), 10_000);
    assert_eq!(host.poll_timeout(), None);
}

#[test]
fn a_flood_of_triggers_is_one_pass_an_interval() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    for millis in 0..10_000 {
        run(&mut host, &mut stack, at(millis));
        let up = event(LINK, LinkState::Up, Indicator::Notify);
        host.handle_link(at(millis), up, &mut stack);
    }
    run(&mut host, &mut stack, at(20_000));
    let least = usize::try_from(10_000 / Limits::default().interval.as_millis()).unwrap_or(0);
    let restarts = stack.count(Action::Retransmit) - host.counters().retries as usize;
    assert!((least / 4..=least + 1).contains(&restarts), "{restarts}");
}

#[test]
fn a_peer_that_is_heard_after_timeouts_is_sent_to_at_once() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    let waiting = stack.connections[0];
    let mut running = waiting;
    running.timeouts = 0;
    host.handle_packet(at(50), &running, &running, &mut stack);
    assert_eq!(stack.log.len(), 0, "control: nothing waits");
    host.handle_packet(at(60), &waiting, &waiting, &mut stack);
    assert_eq!(stack.log[..], [(at(60), waiting.id, Action::Retransmit)]);
}

/// What it has sent upon that may still be on its way.
#[test]
fn a_connection_that_moves_by_itself_has_a_round_trip_for_the_answer() {
    // Control: what was sent long ago has no answer to come.
    for (sent, restarted) in [(0, 100), (75, 125), (90, 140)] {
        let mut stack = Stack::of(1);
        let mut host = agent(Mechanism::RetransmissionTrigger);
        let before = stack.connections[0];
        stack.connections[0].snd_una += 100;
        stack.connections[0].sent_at = at(sent);
        let after = stack.connections[0];
        host.handle_packet(at(50), &before, &after, &mut stack);
        assert_eq!(stack.log.len(), 0, "it moves");
        run(&mut host, &mut stack, at(145));
        let expected = [(at(restarted), after.id, Action::Retransmit)];
        assert_eq!(stack.log[..], expected, "sent at {sent} ms");
    }
}

/// Somebody on the link makes it flap ten times a second, and peers are told by duplicate acknowledgements.
#[test]
fn a_link_that_flaps_sends_duplicates_to_peers_within_the_rate() {
    let mut stack = Stack::of(1_000);
    let mut config = HostConfig::new(Mechanism::FastRetransmit);
    config.limits = Limits {
        per_second: 100,
        burst: 10,
        ..config.limits
    };
    let mut host = Host::new(Instant::ZERO, config);
    for millis in (0..10_000).step_by(50) {
        run(&mut host, &mut stack, at(millis));
        for connection in &mut stack.connections {
            connection.received_at = at(millis);
        }
        let state = match millis % 100 {
            0 => LinkState::Down,
            _ => LinkState::Up,
        };
        let heard = event(LINK, state, Indicator::Carrier);
        host.handle_link(at(millis), heard, &mut stack);
    }
    run(&mut host, &mut stack, at(10_000));
    let woken = stack.count(Action::DuplicateAcks);
    assert!((100..=1_010).contains(&woken), "{woken} peers in 10 s");
    // Each peer is one of a thousand: nobody is told twice before all others.
    let first = stack.connections[0].id;
    let of_one = stack
        .log
        .iter()
        .filter(|entry| entry.1 == first && entry.2 == Action::DuplicateAcks);
    assert!(of_one.count() <= 2);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Link(u32, bool, usize, Option<u8>),
    Packet(u16, u32),
    Progress(u16),
    Close(u16),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (
            0u32..4,
            any::<bool>(),
            0usize..8,
            proptest::option::of(0u8..40)
        )
            .prop_map(|(interface, up, by, peer)| Step::Link(interface, up, by, peer)),
        (0u16..40, 0u32..100).prop_map(|(number, bytes)| Step::Packet(number, bytes)),
        (0u16..40).prop_map(Step::Progress),
        (0u16..40).prop_map(Step::Close),
        (0u64..700).prop_map(Step::Wait),
    ]
}

const INDICATORS: [Indicator; 8] = [
    Indicator::Carrier,
    Indicator::Address,
    Indicator::Route,
    Indicator::Neighbour,
    Indicator::Notify,
    Indicator::MobilityUpdate,
    Indicator::Silence,
    Indicator::FirstPacket,
];

proptest! {
    /// Whatever the indicators say and the peers send, no second has more restarts than the limits
    /// allow, nor more peers woken, no table grows beyond them, and the agent comes to rest.
    #[test]
    fn nobody_makes_it_send_more_than_its_limits(
        steps in proptest::collection::vec(step(), 1..300),
        per_second in 1u32..50,
        burst in 1u32..10,
        connections in 1usize..50,
        links in 1usize..8,
        has_not_backed_off in any::<bool>(),
    ) {
        let limits = Limits { per_second, burst, connections, links, ..Limits::default() };
        let config = HostConfig { limits, ..HostConfig::new(Mechanism::RetransmissionTrigger) };
        let mut stack = Stack::of(0);
        stack.has_not_backed_off = has_not_backed_off;
        stack.connections = (0..40).map(|number| connection(number, u32::from(number % 3))).collect();
        let mut host = Host::new(Instant::ZERO, config);
        let mut now = Instant::ZERO;
        for step in steps {
            match step {
                Step::Link(interface, up, by, peer) => {
                    let peer = peer.map(|number| std::net::IpAddr::from([192, 0, 2, number]));
                    let link = LinkId { interface: InterfaceId(interface), peer };
                    let state = if up { LinkState::Up } else { LinkState::Down };
                    host.handle_link(now, event(link, state, INDICATORS[by]), &mut stack);
                }
                Step::Packet(number, bytes) => {
                    let of = stack.connections.iter().find(|c| c.id.local.port() == number);
                    if let Some(connection) = of.copied() {
                        let mut after = connection;
                        after.snd_una += bytes;
                        host.handle_packet(now, &connection, &after, &mut stack);
                    }
                }
                Step::Progress(number) => {
                    for c in stack.connections.iter_mut().filter(|c| c.id.local.port() == number) {
                        c.snd_una += 100;
                        c.snd_nxt = c.snd_una + 100;
                    }
                }
                Step::Close(number) => stack.connections.retain(|c| c.id.local.port() != number),
                Step::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    run(&mut host, &mut stack, now);
                }
            }
            while host.poll_event().is_some() {}
        }
        run(&mut host, &mut stack, now + Duration::from_secs(3_600));
        prop_assert_eq!(host.poll_timeout(), None, "it comes to rest");

        let most = (per_second + burst + 1) as usize;
        for action in [Action::Retransmit, Action::DuplicateAcks] {
            let times: Vec<Instant> = stack.log.iter()
                .filter(|entry| entry.2 == action).map(|entry| entry.0).collect();
            for (index, &start) in times.iter().enumerate() {
                let within = times[index..].iter().filter(|&&at| at.since(start) < Duration::from_secs(1));
                prop_assert!(within.count() <= most, "more than {} in a second", most);
            }
        }
        // A peer is woken twice after one return.
        let passes = host.counters().passes as usize;
        for number in 0..40 {
            let woken = stack.log.iter()
                .filter(|entry| entry.2 == Action::DuplicateAcks && entry.1.local.port() == number);
            prop_assert!(woken.count() <= 2 * passes, "woken more often than its link came back");
        }
        // A connection is restarted by the links that it crosses: its interface, its peer, its router.
        let mut of: BTreeMap<u16, Vec<Instant>> = BTreeMap::new();
        for entry in stack.log.iter().filter(|entry| entry.2 == Action::Retransmit) {
            of.entry(entry.1.local.port()).or_default().push(entry.0);
        }
        for times in of.values() {
            for (index, &start) in times.iter().enumerate() {
                let within = times[index..].iter().filter(|&&at| at.since(start) < limits.interval);
                prop_assert!(within.count() <= 3 * usize::from(limits.attempts));
            }
        }
    }
}

#[test]
fn a_peer_that_asks_has_its_connection_restarted() {
    let mut stack = Stack::of(3);
    stack.connections[1].snd_nxt = stack.connections[1].snd_una;
    let mut host = agent(Mechanism::RetransmissionTrigger);
    let ids: Vec<_> = stack.connections.iter().map(|one| one.id).collect();
    for id in &ids[1..] {
        host.handle_request(at(1_000), *id, &mut stack);
    }
    // The first request makes a pass, the second one waits for the next.
    run(&mut host, &mut stack, at(1_030));
    let restarted: Vec<_> = stack.log.iter().map(|entry| entry.1).collect();
    assert_eq!(
        restarted,
        [ids[2]],
        "the others have nothing outstanding or no peer that asks"
    );
    assert_eq!(host.counters().requests, 2);
}

/// A peer with a thousand connections asks for each of them every millisecond.
#[test]
fn a_flood_of_requests_stays_within_the_rate() {
    let mut stack = Stack::of(1_000);
    let mut config = HostConfig::new(Mechanism::RetransmissionTrigger);
    config.limits = Limits {
        per_second: 100,
        burst: 10,
        ..config.limits
    };
    let mut host = Host::new(Instant::ZERO, config);
    let ids: Vec<_> = stack.connections.iter().map(|one| one.id).collect();
    for millis in 0..3_000 {
        for id in ids.iter().skip(millis % 10).step_by(10) {
            host.handle_request(at(millis as u64), *id, &mut stack);
        }
        run(&mut host, &mut stack, at(millis as u64));
    }
    let restarts = stack.count(Action::Retransmit);
    assert!((200..=310).contains(&restarts), "{restarts} in 3 s");
    // One pass in 20 ms, whatever is asked for.
    assert!(stack.lists <= 151, "{} passes", stack.lists);
    assert!(host.counters().requests_refused > 200_000);
    // With the flood it ends.
    let calls = run(&mut host, &mut stack, at(100_000));
    assert_eq!(host.poll_timeout(), None, "after {calls} calls");
}

/// A route is replaced, and nobody has said that anything was away: only connections that wait in vain for peers to which
/// the way has changed are meant.
#[test]
fn a_route_that_is_replaced_concerns_only_connections_that_have_stalled_on_it() {
    let network = |address: [u8; 4], length| Network {
        address: address.into(),
        length,
    };
    let (here, foreign) = (network([0; 4], 0), network([10, 200, 0, 0], 16));
    let other_family = Network {
        address: std::net::Ipv6Addr::UNSPECIFIED.into(),
        length: 0,
    };
    // Heard so long ago: longer than a round trip of 40 ms, and shorter.
    for (to, silence, expected) in [
        (here, 100, 1),
        (here, 30, 0),
        (foreign, 100, 0),
        (other_family, 100, 0),
    ] {
        let mut stack = Stack::of(1);
        let connection = &mut stack.connections[0];
        connection.timeouts = 0;
        connection.heard_at = at(9_000 - silence);
        connection.sent_at = connection.heard_at;
        let mut host = agent(Mechanism::RetransmissionTrigger);
        let link = LinkId {
            peer: Some(ROUTER),
            ..LINK
        };
        host.handle_moved_route(at(9_000), link, to, &mut stack);
        assert_eq!(stack.count(Action::SlowStart), expected, "{to:?} {silence}");
        assert_eq!(stack.count(Action::Retransmit), expected);
        let Some(Event::Pass { stalled, .. }) = host.poll_event() else {
            panic!("a pass is told");
        };
        assert_eq!(stalled as usize, expected);
    }
}

/// The pass has to wait, and meanwhile packets pass.
#[test]
fn a_connection_that_is_heard_again_before_the_pass_does_not_start_slowly() {
    for is_heard in [false, true] {
        let mut stack = Stack::of(1);
        stack.connections[0].timeouts = 0;
        stack.connections[0].heard_at = at(1);
        let mut host = agent(Mechanism::RetransmissionTrigger);
        let to = Network {
            address: [0; 4].into(),
            length: 0,
        };
        host.handle_moved_route(at(2), LINK, to, &mut stack);
        host.handle_moved_route(at(100), LINK, to, &mut stack);
        assert_eq!(stack.count(Action::SlowStart), 0);
        if is_heard {
            stack.connections[0].heard_at = at(490);
        }
        host.handle_timeout(at(502), &mut stack);
        assert_eq!(stack.count(Action::SlowStart), usize::from(!is_heard));
    }
}

/// The kernel may be short of memory at that moment.
#[test]
fn a_pass_that_cannot_list_the_connections_is_repeated() {
    let mut stack = Stack::of(1);
    stack.fails_to_list = 2;
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    assert_eq!(stack.count(Action::Retransmit), 0);
    run(&mut host, &mut stack, at(13_000));
    let restarted: Vec<_> = stack
        .log
        .iter()
        .filter(|entry| entry.2 == Action::Retransmit)
        .map(|entry| entry.0)
        .collect();
    assert_eq!(restarted.first(), Some(&at(12_000)), "{restarted:?}");
    assert_eq!(host.counters().errors, 2);
}

#[test]
fn a_stack_that_never_lists_its_connections_is_asked_a_few_times_and_no_more() {
    let mut stack = Stack::of(1);
    stack.fails_to_list = u32::MAX;
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::Carrier);
    run(&mut host, &mut stack, at(600_000));
    assert_eq!(stack.lists, u32::from(Limits::default().attempts));
    assert_eq!(host.poll_timeout(), None, "it sleeps");
}

#[test]
fn a_look_that_cannot_list_the_connections_forgets_none() {
    let mut stack = Stack::of(1);
    let mut host = agent(Mechanism::RetransmissionTrigger);
    outage(&mut host, &mut stack, Indicator::MobilityUpdate);
    stack.fails_to_list = 3;
    run(&mut host, &mut stack, at(20_000));
    let limits = Limits::default();
    assert_eq!(
        stack.count(Action::Retransmit),
        usize::from(limits.attempts)
    );
    assert_eq!(host.poll_timeout(), None, "it sleeps");
}
