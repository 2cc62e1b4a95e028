//! M-TCP at the mobile: figure 5 of Brown and Singh 1997, from the mobile's side.

use crate::stack::{Stack, connection};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::{Action, Connection, Outstanding, Stage};
use outlast_host::{Host, HostConfig, Limits, Mechanism};
use outlast_wire::SeqNumber;

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn agent() -> Host {
    Host::new(Instant::ZERO, HostConfig::new(Mechanism::MTcp))
}

/// A stack of so many connections that can be frozen.
fn model(count: u16) -> Stack {
    Stack {
        freezes: true,
        ..Stack::of(count)
    }
}

fn say(host: &mut Host, stack: &mut Stack, millis: u64, state: LinkState, by: Indicator) {
    say_of(host, stack, millis, (LINK, state, by));
}

/// The link loses its carrier.
fn lose(host: &mut Host, stack: &mut Stack, millis: u64) {
    say(host, stack, millis, LinkState::Down, Indicator::Carrier);
}

/// The link has its carrier again.
fn regain(host: &mut Host, stack: &mut Stack, millis: u64) {
    say(host, stack, millis, LinkState::Up, Indicator::Carrier);
}

fn say_of(
    host: &mut Host,
    stack: &mut Stack,
    millis: u64,
    (link, state, indicator): (LinkId, LinkState, Indicator),
) {
    let event = LinkEvent {
        link,
        state,
        indicator,
    };
    host.handle_link(at(millis), event, stack);
}

/// The actions so far, with the port of each connection.
fn log(stack: &Stack) -> Vec<(u64, u16, Action)> {
    let entries = stack.log.iter();
    entries
        .map(|(now, id, action)| {
            (
                (*now - Instant::ZERO).as_millis() as u64,
                id.local.port(),
                *action,
            )
        })
        .collect()
}

/// `connection`, after the peer has acknowledged something.
fn acknowledged(connection: Connection) -> Connection {
    Connection {
        snd_una: SeqNumber(connection.snd_una.0 + 500),
        ..connection
    }
}

#[test]
fn a_lost_link_freezes_its_connections_and_its_return_thaws_them_behind_a_marked_acknowledgement() {
    let mut stack = model(1);
    stack.connections.push(connection(7, 1));
    let mut host = agent();
    lose(&mut host, &mut stack, 1_000);
    assert_eq!(
        log(&stack),
        [(1_000, 0, Action::Freeze)],
        "interface 1 is there"
    );
    // More is lost, and regained: nothing changes before the last of it is back.
    say(
        &mut host,
        &mut stack,
        1_001,
        LinkState::Down,
        Indicator::Address,
    );
    regain(&mut host, &mut stack, 9_000);
    assert_eq!(stack.log.len(), 1);
    say(
        &mut host,
        &mut stack,
        9_500,
        LinkState::Up,
        Indicator::Address,
    );
    let expected = [(9_500, 0, Action::MarkedAck), (9_500, 0, Action::Thaw)];
    assert_eq!(log(&stack)[1..], expected);
    let thawed = [(stack.connections[0].id, Outstanding::Lost)];
    assert_eq!(
        stack.thawed, thawed,
        "all that is unacknowledged goes out again"
    );
    let counters = *host.counters();
    assert_eq!(
        (counters.frozen, counters.thawed, counters.marked_acks),
        (1, 1, 1)
    );
    assert_eq!(counters.errors, 0);
}

#[test]
fn a_mobile_that_was_only_slow_sends_nothing_again() {
    let mut stack = model(1);
    let mut host = agent();
    say(
        &mut host,
        &mut stack,
        1_000,
        LinkState::Down,
        Indicator::Notify,
    );
    let before = stack.connections[0];
    assert!(before.is_frozen);
    // What was on its way when the link was lost says nothing.
    let after = acknowledged(before);
    host.handle_packet(at(1_100), &before, &after, &mut stack);
    assert_eq!(stack.count(Action::Thaw), 0);
    // Whoever is heard later is there: even one that has nothing to acknowledge.
    host.handle_packet(at(3_000), &after, &after, &mut stack);
    assert_eq!(stack.thawed, [(before.id, Outstanding::OnItsWay)]);
    assert_eq!(
        stack.count(Action::MarkedAck) + stack.count(Action::Retransmit),
        0
    );
}

#[test]
fn a_connection_stays_frozen_until_the_last_link_of_its_way_is_back() {
    let mut stack = model(1);
    let mut host = agent();
    let peer = LinkId {
        peer: Some(stack.connections[0].id.remote.ip()),
        ..LINK
    };
    say_of(
        &mut host,
        &mut stack,
        1_000,
        (peer, LinkState::Down, Indicator::Neighbour),
    );
    lose(&mut host, &mut stack, 2_000);
    say_of(
        &mut host,
        &mut stack,
        3_000,
        (peer, LinkState::Up, Indicator::Neighbour),
    );
    assert_eq!(log(&stack), [(1_000, 0, Action::Freeze)]);
    regain(&mut host, &mut stack, 4_000);
    assert_eq!(stack.count(Action::Thaw), 1);
    assert_eq!(stack.count(Action::MarkedAck), 1);
}

#[test]
fn a_stack_that_nobody_freezes_is_made_to_retransmit_at_the_return() {
    let mut stack = Stack::of(2);
    stack.connections[1].snd_nxt = stack.connections[1].snd_una;
    let mut host = agent();
    for (down, up) in [(1_000, 5_000), (10_000, 15_000)] {
        stack.log.clear();
        say(
            &mut host,
            &mut stack,
            down,
            LinkState::Down,
            Indicator::Carrier,
        );
        say(&mut host, &mut stack, up, LinkState::Up, Indicator::Carrier);
        let expected = [
            (up, 0, Action::MarkedAck),
            (up, 0, Action::Retransmit),
            (up, 1, Action::MarkedAck),
        ];
        // The second return has it restarted as the first, although it is still looked at.
        assert_eq!(log(&stack), expected);
    }
    // Its connections are listed in vain once.
    assert_eq!(stack.lists, 3);
    assert_eq!(host.counters().errors, 0);
}

#[test]
fn a_connection_that_is_still_being_opened_is_restarted_and_tells_nothing() {
    let mut stack = model(1);
    stack.connections[0].stage = Stage::Opening;
    let mut host = agent();
    lose(&mut host, &mut stack, 1_000);
    regain(&mut host, &mut stack, 5_000);
    assert_eq!(log(&stack), [(5_000, 0, Action::Retransmit)]);
}

/// Connections that wait tell of the return first, and of thousands that do not only some do.
#[test]
fn idle_connections_tell_of_the_return_last_and_not_all() {
    let mut stack = model(2_000);
    for connection in &mut stack.connections[..1_999] {
        connection.snd_nxt = connection.snd_una;
        // The peer was silent long before the outage.
        connection.received_at = at(1);
    }
    let mut host = agent();
    lose(&mut host, &mut stack, 60_000);
    stack.log.clear();
    regain(&mut host, &mut stack, 65_000);
    let first = log(&stack)[0];
    assert_eq!(first, (65_000, 1_999, Action::MarkedAck));
    let end = at(65_000) + Duration::from_secs(10);
    while let Some((due, _)) = host.poll_timeout().filter(|&(due, _)| due <= end) {
        host.handle_timeout(due, &mut stack);
    }
    assert_eq!(stack.count(Action::MarkedAck), 1 + 256);
    assert_eq!(stack.count(Action::Thaw), 2_000, "all go on");
}

/// Its link's carrier may be back before packets pass.
#[test]
fn a_marked_acknowledgement_is_repeated_until_the_peer_goes_on() {
    for goes_on in [false, true] {
        let mut stack = model(1);
        stack.connections[0].snd_nxt = stack.connections[0].snd_una;
        stack.connections[0].received_at = at(990);
        let mut host = agent();
        lose(&mut host, &mut stack, 1_000);
        regain(&mut host, &mut stack, 5_000);
        assert_eq!(stack.count(Action::MarkedAck), 1);
        if goes_on {
            stack.connections[0].rcv_nxt = SeqNumber(1_001);
        }
        while let Some((due, _)) = host.poll_timeout().filter(|&(due, _)| due <= at(60_000)) {
            host.handle_timeout(due, &mut stack);
        }
        let expected = if goes_on { 1 } else { 4 };
        assert_eq!(stack.count(Action::MarkedAck), expected);
    }
}

/// Lets the agent do what is due until then.
fn run(host: &mut Host, stack: &mut Stack, until: Instant) -> Option<Instant> {
    let mut last = None;
    while let Some((due, _)) = host.poll_timeout().filter(|&(due, _)| due <= until) {
        host.handle_timeout(due, stack);
        last = Some(due);
    }
    last
}

/// A link flaps faster than the budget lets a thousand connections tell of it.
#[test]
fn a_connection_waits_once_to_tell_of_any_number_of_returns() {
    for freezes in [false, true] {
        let mut stack = Stack {
            freezes,
            ..Stack::of(1_000)
        };
        let mut config = HostConfig::new(Mechanism::MTcp);
        config.limits = Limits {
            per_second: 100,
            burst: 1,
            ..config.limits
        };
        let mut host = Host::new(Instant::ZERO, config);
        let flaps = 100;
        for n in 1..=flaps {
            let (down, up) = (n * 1_000, n * 1_000 + 100);
            let by = Indicator::Carrier;
            say(&mut host, &mut stack, down, LinkState::Down, by);
            say(&mut host, &mut stack, up, LinkState::Up, by);
            run(&mut host, &mut stack, at(n * 1_000 + 999));
        }
        stack.log.clear();
        let last = run(&mut host, &mut stack, at(5_000_000)).expect("some wait");
        let marks = stack.count(Action::MarkedAck);
        assert!((1..=4_000).contains(&marks), "{marks}");
        // Each of them is marked and restarted four times at most.
        assert!(last <= at(101_000 + 80_000 + 5_000), "{last:?}");
        assert!(stack.connections.iter().all(|one| !one.is_frozen));
    }
}

/// A connection that is left to its own timer is looked at often.
#[test]
fn a_connection_that_has_not_backed_off_tells_of_the_return_as_often_as_others() {
    let mut stack = Stack {
        has_not_backed_off: true,
        ..Stack::of(1)
    };
    stack.connections[0].received_at = at(990);
    let mut host = agent();
    let by = Indicator::Carrier;
    say(&mut host, &mut stack, 1_000, LinkState::Down, by);
    say(&mut host, &mut stack, 5_000, LinkState::Up, by);
    run(&mut host, &mut stack, at(60_000));
    assert_eq!(stack.count(Action::MarkedAck), 4);
    assert!(stack.count(Action::Retransmit) > 4, "it was looked at");
}

/// A neighbour of which nobody says that it is back holds up no connection that goes on by itself.
#[test]
fn a_neighbour_that_stays_away_keeps_nobody_from_telling_of_the_return() {
    let mut stack = Stack::of(1);
    let mut host = agent();
    let neighbour = LinkId {
        peer: Some(stack.connections[0].id.remote.ip()),
        ..LINK
    };
    let by = Indicator::Notify;
    let lost = (neighbour, LinkState::Down, by);
    say_of(&mut host, &mut stack, 60_000, lost);
    say(&mut host, &mut stack, 60_100, LinkState::Down, by);
    say(&mut host, &mut stack, 65_000, LinkState::Up, by);
    let expected = [
        (65_000, 0, Action::MarkedAck),
        (65_000, 0, Action::Retransmit),
    ];
    assert_eq!(log(&stack), expected);
}

/// Who tells of the neighbour's return does so before the link is back.
#[test]
fn a_neighbour_that_is_not_missing_any_more_keeps_nobody_frozen() {
    for is_told in [false, true] {
        let mut stack = model(1);
        let mut host = agent();
        let router = LinkId {
            peer: stack.connections[0].via.expect("a way").next_hop,
            ..LINK
        };
        let by = Indicator::Notify;
        let lost = (router, LinkState::Down, by);
        say_of(&mut host, &mut stack, 60_000, lost);
        say(&mut host, &mut stack, 60_100, LinkState::Down, by);
        if is_told {
            host.forget_absence(router);
        }
        assert_eq!(stack.count(Action::Freeze), stack.log.len());
        say(&mut host, &mut stack, 65_000, LinkState::Up, by);
        assert_eq!(stack.connections[0].is_frozen, !is_told);
    }
}

/// How a return may pass a frozen connection by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Passed {
    /// The queue is full of others.
    QueueFull,
    /// So is the list of links with a return lately.
    LinksFull,
    /// The stack fails to list its connections once.
    NotListed,
    /// Its packets take another way meanwhile.
    Rerouted,
}

#[test]
fn a_return_that_finds_no_room_or_another_way_leaves_nobody_frozen() {
    for passed in [
        Passed::QueueFull,
        Passed::LinksFull,
        Passed::NotListed,
        Passed::Rerouted,
    ] {
        let mut stack = model(3);
        let mut config = HostConfig::new(Mechanism::MTcp);
        match passed {
            Passed::QueueFull => config.limits.per_second = 1,
            Passed::LinksFull => config.limits.links = 1,
            Passed::NotListed | Passed::Rerouted => {}
        }
        let mut host = Host::new(Instant::ZERO, config);
        let by = Indicator::Carrier;
        say(&mut host, &mut stack, 60_000, LinkState::Down, by);
        assert_eq!(stack.count(Action::Freeze), 3, "{passed:?}");
        let elsewhere = LinkId::of_interface(InterfaceId(1));
        match passed {
            Passed::QueueFull => {
                let limits = Limits {
                    connections: 2,
                    ..config.limits
                };
                host.set_limits(at(60_000), limits);
            }
            Passed::LinksFull => {
                let up = (elsewhere, LinkState::Up, Indicator::Notify);
                say_of(&mut host, &mut stack, 64_900, up);
            }
            Passed::NotListed => stack.fails_to_list = 1,
            Passed::Rerouted => {
                for one in &mut stack.connections {
                    one.via = connection(0, 1).via;
                }
                let up = (elsewhere, LinkState::Up, Indicator::Notify);
                say_of(&mut host, &mut stack, 64_900, up);
            }
        }
        let is_gone = passed == Passed::Rerouted;
        if !is_gone {
            say(&mut host, &mut stack, 65_000, LinkState::Up, by);
        }
        run(&mut host, &mut stack, at(120_000));
        let frozen = stack.connections.iter().filter(|one| one.is_frozen);
        assert_eq!(frozen.count(), 0, "{passed:?}");
    }
}

/// Nothing is on its way that somebody might acknowledge, and the link that was said to be away never says that it is back.
#[test]
fn a_false_alarm_ends_with_the_next_packet() {
    let mut stack = model(1);
    stack.connections[0].snd_nxt = stack.connections[0].snd_una;
    let mut host = agent();
    let by = Indicator::Carrier;
    say(&mut host, &mut stack, 60_000, LinkState::Down, by);
    let one = stack.connections[0];
    host.handle_packet(at(60_400), &one, &one, &mut stack);
    assert!(
        stack.connections[0].is_frozen,
        "it may have been on its way"
    );
    host.handle_packet(at(61_000), &one, &one, &mut stack);
    assert!(!stack.connections[0].is_frozen);
}
