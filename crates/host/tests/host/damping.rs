//! Links that flap, with the gateway's damping: what is sent stays within its bounds, and the return that lasts counts.

use crate::stack::Stack;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{DampingConfig, Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::Action;
use outlast_host::{Host, HostConfig, Limits, Mechanism};
use std::net::{IpAddr, Ipv4Addr};

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

const HOLD_DOWN: Duration = Duration::from_millis(500);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn agent(is_damped: bool) -> Host {
    let damping = DampingConfig {
        hold_down: HOLD_DOWN,
        ..DampingConfig::default()
    };
    let config = HostConfig {
        wakes_peer: false,
        // Nothing is sent again but upon a return.
        probes_silent_peers: false,
        damping: is_damped.then_some(damping),
        ..HostConfig::new(Mechanism::RetransmissionTrigger)
    };
    Host::new(Instant::ZERO, config)
}

/// Lets the agent do what is due up to then.
fn run(host: &mut Host, stack: &mut Stack, until: Instant) {
    while let Some((due, _)) = host.poll_timeout().filter(|&(due, _)| due <= until) {
        host.handle_timeout(due, stack);
    }
}

fn say(host: &mut Host, stack: &mut Stack, now: Instant, state: LinkState) {
    run(host, stack, now);
    let event = LinkEvent {
        link: LINK,
        state,
        indicator: Indicator::Notify,
    };
    host.handle_link(now, event, stack);
}

/// The link goes and comes twenty times a second up to then, from 1 s on; when it is back for good.
fn flap(host: &mut Host, stack: &mut Stack, until: u64) -> Instant {
    let mut back = at(0);
    for lost in (1_000..until).step_by(50) {
        say(host, stack, at(lost), LinkState::Down);
        back = at(lost + 25);
        say(host, stack, back, LinkState::Up);
    }
    back
}

#[test]
fn the_first_return_is_never_late() {
    let (mut host, mut stack) = (agent(true), Stack::of(1));
    let back = flap(&mut host, &mut stack, 1_050);
    assert_eq!(stack.log.len(), 1);
    assert_eq!(stack.log[0].0, back);
}

#[test]
fn a_return_that_lasts_counts_however_long_the_link_has_flapped() {
    for until in (1_100..6_000).step_by(50) {
        let (mut host, mut stack) = (agent(true), Stack::of(1));
        let back = flap(&mut host, &mut stack, until);
        stack.log.clear();
        run(&mut host, &mut stack, back + HOLD_DOWN);
        let restarts = stack.count(Action::Retransmit);
        assert!(restarts > 0, "flapping until {until} ms, back at {back:?}");
    }
}

/// In each half second one pass over the connections, with as many attempts as follow one.
#[test]
fn a_link_that_flaps_sends_no_more_than_its_bounds() {
    let limits = Limits::default();
    for is_damped in [true, false] {
        let (mut host, mut stack) = (agent(is_damped), Stack::of(50));
        flap(&mut host, &mut stack, 11_000);
        let passes = host.counters().passes;
        assert!(passes <= 21, "{passes}");
        let most = passes * 50 * u64::from(limits.attempts);
        assert!(stack.log.len() as u64 <= most, "{}", stack.log.len());
        let late = host.counters().link_ups_delayed + host.counters().link_changes_ignored;
        assert_eq!(late > 0, is_damped, "{late}");
        assert_eq!(host.damped_links(at(11_000)).count() > 0, is_damped);
    }
}

/// A peer is silent until each timeout and speaks after it, for a minute; how often a connection was restarted.
fn restarts_by_a_lying_peer(is_damped: bool) -> usize {
    let (mut host, mut stack) = (agent(is_damped), Stack::of(1));
    let link = LinkId {
        peer: Some(PEER),
        ..LINK
    };
    for now in (1_000..61_000).step_by(650) {
        run(&mut host, &mut stack, at(now));
        host.handle_timeouts_of(at(now), PEER, &mut stack);
        host.handle_arrivals(at(now + 1), [link], &mut stack);
    }
    stack.log.len()
}

#[test]
fn a_peer_that_plays_dead_is_not_believed_for_long() {
    let [damped, believed] = [true, false].map(restarts_by_a_lying_peer);
    println!("{damped} restarts with damping, {believed} without");
    assert!(believed > 80, "the control: {believed}");
    assert!(damped < believed / 4, "{damped} of {believed}");
}

#[test]
fn without_damping_what_was_said_last_holds() {
    let (mut host, mut stack) = (agent(true), Stack::of(1));
    let back = flap(&mut host, &mut stack, 1_300);
    assert!(host.damped_links(back).next().is_some(), "it flaps");
    stack.log.clear();
    host.set_damping(back, None, &mut stack);
    run(&mut host, &mut stack, back + HOLD_DOWN);
    assert!(stack.count(Action::Retransmit) > 0);
    assert_eq!(host.damped_links(back).count(), 0);
}
