//! Silent peers are tried at pauses that grow slowly, by one connection each.

use crate::stack::{Stack, connection};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::{Action, Stage};
use outlast_host::{Host, HostConfig, Limits, Mechanism};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// Of connections in these tests, without doublings.
const TIMEOUT: Duration = Duration::from_millis(240);

fn agent(probes_silent_peers: bool) -> Host {
    let config = HostConfig {
        probes_silent_peers,
        ..HostConfig::new(Mechanism::RetransmissionTrigger)
    };
    Host::new(Instant::ZERO, config)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Connections that have heard their peer last at 1 s, and have had their second timeout at `sent_at`.
fn stack(count: u16, sent_at: Instant) -> Stack {
    let mut stack = Stack::of(count);
    for connection in &mut stack.connections {
        connection.heard_at = at(1_000);
        connection.sent_at = sent_at;
        connection.min_rtt = ROUND_TRIP;
        connection.timeouts = 2;
    }
    stack
}

/// Lets time come to `end`; what the agent makes a connection send is sent. Returns when something was sent.
fn pass_time(host: &mut Host, stack: &mut Stack, end: Instant) -> Vec<Instant> {
    let before = stack.log.len();
    while let Some((due, _)) = host.poll_timeout().filter(|(due, _)| *due < end) {
        let known = stack.log.len();
        host.handle_timeout(due, stack);
        for &(now, id, action) in &stack.log[known..] {
            assert_eq!(action, Action::Retransmit);
            let mut all = stack.connections.iter_mut();
            let connection = all.find(|one| one.id == id).expect("it is one of these");
            connection.sent_at = now;
        }
    }
    stack.log[before..].iter().map(|entry| entry.0).collect()
}

/// Retransmissions of a lone connection that nobody helps, whose timeout doubles up to `longest`.
fn own_timeouts(longest: Duration, end: Instant) -> Vec<Instant> {
    let (mut now, mut timeout, mut all) = (at(1_000) + TIMEOUT, TIMEOUT, vec![]);
    while now < end {
        all.push(now);
        timeout = (timeout * 2).min(longest);
        now += timeout;
    }
    all
}

/// From the end of a silence that has lasted so long until something is sent.
fn wait(sent: &[Instant], silence: Duration) -> Duration {
    let end = at(1_000) + silence;
    let first = sent.iter().find(|&&at| at >= end);
    first.expect("something is sent").since(end)
}

#[test]
fn after_a_silence_something_is_sent_within_a_pause_and_not_after_as_long_again() {
    let end = at(1_000) + Duration::from_secs(240);
    let plain = own_timeouts(Duration::from_secs(120), end);
    let setting = own_timeouts(Duration::from_secs(1), end);
    let (mut host, mut stack) = (agent(true), stack(1, plain[1]));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    let probes = pass_time(&mut host, &mut stack, end);
    let waits = |sent: &[Instant], from: u64| -> Duration {
        // A silence ends at any moment.
        let moments = (0..1_000).map(|step| Duration::from_millis(from * 1_000 + step * 10));
        moments
            .map(|silence| wait(sent, silence))
            .max()
            .expect("many")
    };
    for silence in [5, 30, 90] {
        let [helped, unhelped, set] = [&probes, &plain, &setting].map(|sent| waits(sent, silence));
        assert!(helped < set, "{silence} s: {helped:?} for {set:?}");
        assert!(
            unhelped > helped * 10,
            "{silence} s: {helped:?} for {unhelped:?}"
        );
    }
    assert!(wait(&probes, Duration::from_secs(20)) <= Duration::from_millis(250));
    assert_eq!(host.counters().probes, stack.log.len() as u64);
}

/// The bound on what a dead path costs: beside the same silence with a setting of one second.
#[test]
fn an_hour_costs_a_fifth_of_what_a_timeout_of_one_second_costs() {
    let end = at(1_000) + Duration::from_secs(3_600);
    let setting = own_timeouts(Duration::from_secs(1), end).len();
    let (mut host, mut stack) = (agent(true), stack(50, at(1_900)));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    let probes = pass_time(&mut host, &mut stack, end).len();
    assert!(
        probes * 4 < setting,
        "{probes} for {setting} of each connection"
    );
    assert!(probes > 600, "{probes}");
}

#[test]
fn one_connection_after_another_probes_for_all_with_its_peer() {
    let (mut host, mut stack) = (agent(true), stack(20, at(1_900)));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    let probes = pass_time(&mut host, &mut stack, at(7_000));
    assert!((18..=20).contains(&probes.len()), "{probes:?}");
    let who: BTreeSet<_> = stack.log.iter().map(|entry| entry.1).collect();
    assert_eq!(who.len(), probes.len(), "each time another one");
    // The answer to one wakes the others.
    let link = LinkId {
        interface: InterfaceId(0),
        peer: Some(PEER),
    };
    let before = stack.log.len();
    host.handle_arrivals(at(7_000), [link], &mut stack);
    let woken: BTreeSet<_> = stack.log[before..].iter().map(|entry| entry.1).collect();
    assert_eq!(woken.len(), 20);
}

#[test]
fn a_retransmission_by_a_connections_own_timer_counts_as_a_probe() {
    let (mut host, mut stack) = (agent(true), stack(2, at(1_900)));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    stack.connections[1].sent_at = at(2_100);
    let probes = pass_time(&mut host, &mut stack, at(2_600));
    assert_eq!(probes, [at(2_350), at(2_600)][..1]);
}

/// The return of a link that is known to be away is told by the link.
#[test]
fn nothing_is_sent_while_the_own_link_is_away() {
    let (mut host, mut stack) = (agent(true), stack(1, at(1_900)));
    let told = |state| LinkEvent {
        link: LinkId::of_interface(InterfaceId(0)),
        state,
        indicator: Indicator::Carrier,
    };
    host.handle_link(at(1_950), told(LinkState::Down), &mut stack);
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(pass_time(&mut host, &mut stack, at(20_000)), []);
    host.handle_link(at(20_000), told(LinkState::Up), &mut stack);
    assert_eq!(stack.count(Action::Retransmit), 1);
}

/// An ICMP error about a SYN ends the attempt.
#[test]
fn a_connection_that_is_being_opened_does_not_probe() {
    let (mut host, mut stack) = (agent(true), stack(1, at(1_900)));
    stack.connections[0].stage = Stage::Opening;
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(pass_time(&mut host, &mut stack, at(20_000)), []);
}

#[test]
fn probing_can_be_switched_off() {
    let (mut host, mut stack) = (agent(false), stack(1, at(1_900)));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(pass_time(&mut host, &mut stack, at(10_000)), []);
    host.set_probing(true);
    assert!(!pass_time(&mut host, &mut stack, at(20_000)).is_empty());
    host.set_probing(false);
    assert_eq!(pass_time(&mut host, &mut stack, at(30_000)), []);
}

#[test]
fn very_many_silent_peers_share_a_bound() {
    const PEERS: u16 = 4_000;
    let mut host = agent(true);
    let mut stack = stack(0, at(1_900));
    let peer = |number: u16| IpAddr::from([10, 0, (number >> 8) as u8, number as u8]);
    for number in 0..PEERS {
        let mut one = connection(number, 0);
        one.id.remote.set_ip(peer(number));
        (one.heard_at, one.sent_at) = (at(1_000), at(1_900));
        stack.connections.push(one);
    }
    host.set_limits(
        at(0),
        Limits {
            links: PEERS.into(),
            ..Limits::default()
        },
    );
    for number in 0..PEERS {
        host.handle_timeouts_of(at(2_000), peer(number), &mut stack);
    }
    let lists = stack.lists;
    let probes = pass_time(&mut host, &mut stack, at(32_000));
    let mut in_second = BTreeMap::<u64, u32>::new();
    for at in &probes {
        *in_second
            .entry(at.since(Instant::ZERO).as_secs())
            .or_default() += 1;
    }
    assert!(
        in_second.values().all(|&count| count <= 256),
        "{in_second:?}"
    );
    assert!(probes.len() > 7_000, "{}", probes.len());
    assert!(stack.lists - lists <= 4 * 31, "{}", stack.lists - lists);
    let who: BTreeSet<_> = stack.log.iter().map(|entry| entry.1).collect();
    assert_eq!(who.len(), usize::from(PEERS), "each has its turn");
}
