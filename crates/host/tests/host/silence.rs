//! A packet from a silent peer is an indicator for all connections with that peer.

use crate::stack::{Stack, connection};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::control::Action;
use outlast_host::{Event, Host, HostConfig, Limits, Mechanism, Reason, Watch};
use std::net::IpAddr;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
const LINK: LinkId = LinkId {
    interface: InterfaceId(0),
    peer: Some(PEER),
};

/// One that waits for silent peers and does not probe them.
fn agent() -> Host {
    let config = HostConfig {
        probes_silent_peers: false,
        ..HostConfig::new(Mechanism::RetransmissionTrigger)
    };
    Host::new(Instant::ZERO, config)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn watches(host: &mut Host) -> Vec<Watch> {
    std::iter::from_fn(|| host.poll_watch()).collect()
}

/// Connections that heard their peer last at 1 s.
fn stack(count: u16) -> Stack {
    let mut stack = Stack::of(count);
    for connection in &mut stack.connections {
        connection.heard_at = at(1_000);
    }
    stack
}

#[test]
fn a_packet_of_a_silent_peer_restarts_its_connections() {
    let (mut host, mut stack) = (agent(), stack(2));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
    assert_eq!(stack.log.len(), 0, "nothing is done while it is silent");
    host.handle_arrivals(at(5_000), [LINK], &mut stack);
    assert_eq!(stack.count(Action::Retransmit), 2);
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    let Some(Event::Pass { restored, .. }) = host.poll_event() else {
        panic!("a pass is told");
    };
    assert_eq!(restored.by, Indicator::FirstPacket);
    assert_eq!(restored.outage, Some(Duration::from_secs(4)));
    // It is heard already.
    assert_eq!(stack.count(Action::DuplicateAcks), 0);
    host.handle_arrivals(at(5_001), [LINK], &mut stack);
    assert_eq!(host.counters().restored, 1);
}

#[test]
fn connections_of_other_peers_are_left_alone() {
    let (mut host, mut stack) = (agent(), stack(2));
    let other = IpAddr::from([192, 0, 2, 9]);
    stack.connections[1].id.remote.set_ip(other);
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    host.handle_arrivals(at(5_000), [LINK], &mut stack);
    let restarted: Vec<_> = stack.log.iter().map(|entry| entry.1.remote.ip()).collect();
    assert_eq!(restarted, [PEER]);
}

/// One connection of a peer times out, and another one goes on: that is congestion.
#[test]
fn a_peer_that_is_heard_on_another_connection_is_not_silent() {
    let (mut host, mut stack) = (agent(), stack(2));
    stack.connections[1].heard_at = at(1_950);
    stack.connections[1].timeouts = 0;
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    host.handle_arrivals(at(2_010), [LINK], &mut stack);
    assert_eq!(stack.log.len(), 0);
    assert_eq!(host.poll_timeout(), None);
}

/// What is sent again because of a link's return times out like anything else, and its acknowledgement is no news.
#[test]
fn while_connections_are_restarted_their_peer_is_not_silent() {
    let (mut host, mut stack) = (agent(), stack(1));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
    let back = LinkEvent {
        link: LinkId::of_interface(InterfaceId(0)),
        state: LinkState::Up,
        indicator: Indicator::Notify,
    };
    host.handle_link(at(5_000), back, &mut stack);
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    host.handle_timeouts_of(at(5_030), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    host.handle_arrivals(at(5_031), [LINK], &mut stack);
    assert_eq!(host.counters().restored, 1);
    // All was in vain, and the connection is left to its timer.
    while let Some((due, _)) = host.poll_timeout() {
        host.handle_timeout(due, &mut stack);
    }
    watches(&mut host);
    host.handle_timeouts_of(at(9_000), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
    host.handle_arrivals(at(9_500), [LINK], &mut stack);
    assert_eq!(host.counters().restored, 2);
}

/// A link returns, and the path beyond it is still cut: what the agent sends again is in vain, and the connection's own timer
/// may be minutes away. The peer's first packet tells of the return all the same.
#[test]
fn a_peer_that_is_silent_after_its_connections_were_restarted_in_vain_is_noticed() {
    for was_silent in [true, false] {
        let (mut host, mut stack) = (agent(), stack(1));
        if was_silent {
            host.handle_timeouts_of(at(2_000), PEER, &mut stack);
            assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
        }
        let back = LinkEvent {
            link: LinkId::of_interface(InterfaceId(0)),
            state: LinkState::Up,
            indicator: Indicator::Notify,
        };
        host.handle_link(at(5_000), back, &mut stack);
        if !was_silent {
            host.handle_timeouts_of(at(5_030), PEER, &mut stack);
        }
        let all = watches(&mut host);
        assert!(
            !all.is_empty() && all.iter().all(|one| *one == Watch::End(PEER)),
            "{all:?}"
        );
        // No timer of the connection fires any more.
        let mut silent_at = None;
        while silent_at.is_none() {
            let (due, _) = host.poll_timeout().expect("it is looked at again");
            host.handle_timeout(due, &mut stack);
            silent_at = watches(&mut host)
                .contains(&Watch::Begin(PEER))
                .then_some(due);
        }
        assert_eq!(host.waiting().len(), 0, "nothing is done for it any more");
        assert!(silent_at < Some(at(8_000)), "{silent_at:?}");
        assert!(stack.lists < 40, "{}", stack.lists);
        let restored = host.counters().restored;
        host.handle_arrivals(at(60_000), [LINK], &mut stack);
        assert_eq!(host.counters().restored, restored + 1);
        let since = at(1_000);
        let outages = std::iter::from_fn(|| host.poll_event()).filter_map(|event| match event {
            Event::Pass { restored, .. } => restored.outage,
            Event::ListFailed(error) => panic!("{error}"),
        });
        assert_eq!(outages.last(), Some(at(60_000).since(since)));
    }
}

/// What was restarted goes on: nothing is left of the suspicion.
#[test]
fn a_peer_whose_connections_go_on_is_neither_attended_nor_silent() {
    let (mut host, mut stack) = (agent(), stack(1));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    let back = LinkEvent {
        link: LinkId::of_interface(InterfaceId(0)),
        state: LinkState::Up,
        indicator: Indicator::Notify,
    };
    host.handle_link(at(5_000), back, &mut stack);
    for connection in &mut stack.connections {
        connection.snd_una = connection.snd_nxt;
        connection.timeouts = 0;
        connection.heard_at = at(5_010);
    }
    watches(&mut host);
    while let Some((due, _)) = host.poll_timeout() {
        assert!(due < at(9_000), "{due:?}");
        host.handle_timeout(due, &mut stack);
    }
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    assert_eq!(host.counters().peers_silent, 1);
}

/// The pass that looks for silent peers comes before the news of a packet, which has acknowledged all that was outstanding.
#[test]
fn a_packet_that_a_pass_finds_is_a_return_that_is_not_told_twice() {
    let (mut host, mut stack) = (agent(), stack(2));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
    // Nothing new: another pass tells the time of the last packet a little differently.
    stack.connections[0].heard_at = at(1_010);
    host.handle_timeout(at(12_000), &mut stack);
    assert_eq!(host.counters().restored, 0);
    let answered = &mut stack.connections[0];
    answered.heard_at = at(21_990);
    answered.snd_una = answered.snd_nxt;
    answered.timeouts = 0;
    host.handle_timeout(at(22_000), &mut stack);
    assert_eq!(host.counters().restored, 1);
    assert_eq!(stack.count(Action::Retransmit), 1, "the other one goes on");
    assert!(watches(&mut host).contains(&Watch::End(PEER)));
    host.handle_arrivals(at(22_001), [LINK], &mut stack);
    assert_eq!(host.counters().restored, 1);
}

#[test]
fn a_silent_peer_is_forgotten_with_its_last_connection() {
    let (mut host, mut stack) = (agent(), stack(1));
    host.handle_timeouts_of(at(2_000), PEER, &mut stack);
    let due = host.poll_timeout();
    assert_eq!(due, Some((at(12_000), Reason::Silence)));
    host.handle_timeout(at(12_000), &mut stack);
    assert_eq!(watches(&mut host), [Watch::Begin(PEER)]);
    stack.connections.clear();
    host.handle_timeout(at(22_000), &mut stack);
    assert_eq!(watches(&mut host), [Watch::End(PEER)]);
    assert_eq!(host.poll_timeout(), None);
}

#[test]
fn thousands_of_peers_that_fall_silent_at_once_cost_few_passes() {
    let count = 2_000;
    let mut stack = Stack::default();
    let mut host = agent();
    host.set_limits(
        at(0),
        Limits {
            links: 1_000,
            ..Limits::default()
        },
    );
    let peer = |number: u16| IpAddr::from([10, 0, (number >> 8) as u8, number as u8]);
    for number in 0..count {
        let mut one = connection(number, 0);
        one.id.remote.set_ip(peer(number));
        stack.connections.push(one);
    }
    for number in 0..count {
        host.handle_timeouts_of(at(2_000), peer(number), &mut stack);
    }
    while let Some((due, _)) = host.poll_timeout().filter(|(due, _)| *due < at(3_000)) {
        host.handle_timeout(due, &mut stack);
    }
    assert!(stack.lists <= 3, "{}", stack.lists);
    assert_eq!(host.counters().peers_silent, 1_000);
    assert_eq!(host.counters().links_refused, 1_000);
    let ended = watches(&mut host);
    let ended = ended.iter().filter(|watch| matches!(watch, Watch::End(_)));
    assert_eq!(ended.count(), 1_000);
}

/// A server's clients were all behind the same outage.
#[test]
fn many_peers_that_are_heard_together_take_one_pass() {
    const PEERS: u16 = 500;
    let (mut host, mut stack) = (agent(), stack(2 * PEERS));
    let peer = |number: u16| IpAddr::from([10, 0, (number >> 8) as u8, number as u8]);
    for (number, connection) in (0..).zip(&mut stack.connections) {
        connection.id.remote.set_ip(peer(number % PEERS));
    }
    for number in 0..PEERS {
        host.handle_timeouts_of(at(2_000), peer(number), &mut stack);
    }
    host.handle_timeout(at(3_000), &mut stack);
    assert_eq!(host.counters().peers_silent, u64::from(PEERS));
    let before = stack.lists;
    let heard = (0..PEERS).map(|number| LinkId {
        peer: Some(peer(number)),
        ..LINK
    });
    host.handle_arrivals(at(5_000), heard, &mut stack);
    assert_eq!(stack.lists, before + 1);
    assert_eq!(stack.count(Action::Retransmit), 256, "the burst");
    let told = std::iter::from_fn(|| host.poll_event());
    let is_of_two = |event: &Event| {
        matches!(
            event,
            Event::Pass {
                connections: 2,
                stalled: 2,
                ..
            }
        )
    };
    assert_eq!(told.filter(is_of_two).count(), PEERS.into());
}
