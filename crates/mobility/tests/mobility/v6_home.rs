//! Mobile IPv6 between mobile node and home agent: registration, tunnels, returning home, and what is
//! refused.

use crate::network_v6::{
    Network, Setup, association, care_of_address, correspondent_address, home_address, ms, probe,
};
use core::net::Ipv6Addr;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::v6::{Attachment, HomeEvent, NodeEvent};
use outlast_wire::Packet;
use outlast_wire::mobile_ipv6::{Message, Status, UpdateLifetime, encapsulate, take_home_address};

/// The statuses that the home agent has refused with.
fn refusals(network: &Network) -> Vec<Status> {
    let events = network.home_events.iter();
    let refused = events.filter_map(|(_, event)| match event {
        HomeEvent::Refused { status, .. } => Some(*status),
        _ => None,
    });
    refused.collect()
}

/// The binding updates that were sent, as they were sent.
fn updates(network: &Network) -> Vec<Packet> {
    let posted = network.posted.iter().map(|(_, packet)| packet);
    posted
        .filter(|packet| {
            let Some(inner) = take_home_address(packet) else {
                return false;
            };
            let bytes = inner.payload().unwrap_or_default();
            let far = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
            matches!(
                Message::parse(home_address(0), far, bytes),
                Ok((Message::BindingUpdate(_), _))
            )
        })
        .cloned()
        .collect()
}

#[test]
fn a_mobile_node_is_reached_where_it_is_and_keeps_its_address() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(0));
    network.run(ms(100));
    assert!(network.reaches(0), "at home");
    assert!(network.is_heard(0, 0), "at home");
    assert_eq!(network.home.counters().tunnelled, 0);
    for (moves, cell) in [(1, 1), (2, 2), (3, 1)] {
        network.place(0, Some(cell));
        network.run(ms(41));
        // One round trip.
        assert!(network.mobiles[0].node.is_registered(), "cell {cell}");
        assert_eq!(
            network.home.care_of_address(home_address(0)),
            Some(care_of_address(0, cell))
        );
        assert!(network.reaches(0), "cell {cell}");
        assert!(network.is_heard(0, 0), "cell {cell}");
        assert_eq!(network.home.counters().tunnelled, moves);
        assert_eq!(network.home.counters().reverse_tunnelled, moves);
    }
    network.place(0, Some(0));
    network.run(ms(100));
    assert_eq!(network.home.away(), 0);
    assert!(network.reaches(0) && network.is_heard(0, 0), "home again");
    assert_eq!(network.home.counters().tunnelled, 3);
}

/// The control: what the updates are good for.
#[test]
fn without_a_binding_a_mobile_node_away_from_home_is_not_reached() {
    let mut network = Network::new(Setup::default());
    network.is_home_cut_off = true;
    network.place(0, Some(1));
    network.run(ms(100));
    network.is_home_cut_off = false;
    assert!(!network.reaches(0));
    assert!(!network.is_heard(0, 0));
    // The update is repeated after a second.
    network.run(ms(1_000));
    assert!(network.reaches(0) && network.is_heard(0, 0));
}

#[test]
fn a_binding_is_renewed_and_expires_when_nobody_renews_it() {
    let mut network = Network::new(Setup {
        lifetime: UpdateLifetime(5),
        ..Setup::default()
    });
    network.place(0, Some(1));
    network.run(Duration::from_secs(600));
    assert!(network.reaches(0));
    let renewals = network.home.counters().accepted;
    // Two thirds of twenty seconds.
    assert!((40..=50).contains(&renewals), "{renewals}");
    network.place(0, None);
    network.run(ms(20_000));
    assert_eq!(network.home.away(), 0);
    let last = network.home_events.last().map(|(_, event)| *event);
    assert!(matches!(last, Some(HomeEvent::Expired { .. })), "{last:?}");
}

#[test]
fn a_mobile_node_that_ends_says_so() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    network.deregister(0);
    network.run(ms(100));
    assert_eq!(network.home.away(), 0);
    let last = network.home_events.last().map(|(_, event)| *event);
    assert!(
        matches!(last, Some(HomeEvent::Deregistered { .. })),
        "{last:?}"
    );
}

#[test]
fn a_recorded_update_is_refused() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    network.place(0, Some(2));
    network.run(ms(100));
    let recorded = updates(&network);
    assert_eq!(recorded.len(), 2);
    for late in [ms(0), ms(60_000)] {
        network.run(late);
        for packet in &recorded {
            network.replay(packet.clone());
            network.run(ms(100));
            let at = network.home.care_of_address(home_address(0));
            assert_eq!(at, Some(care_of_address(0, 2)));
        }
    }
    assert_eq!(refusals(&network), [Status::TIMESTAMP; 4]);
    assert!(network.reaches(0));
    assert!(network.mobiles[0].node.is_registered());
}

#[test]
fn a_forged_update_is_refused_and_its_answers_are_limited() {
    let mut network =
        Network::new(Setup::default()).with_mobiles(|config| config.home = association(9));
    network.place(0, Some(1));
    network.run(ms(100));
    assert_eq!(refusals(&network), [Status::AUTHENTICATION]);
    assert!(!network.mobiles[0].node.is_registered());
    // Nobody has signed the refusal: it is not believed, and the update is repeated.
    assert_eq!(network.mobiles[0].node.counters().ignored, 1);
    let forged = updates(&network).remove(0);
    for _ in 0..1_000 {
        network.replay(forged.clone());
    }
    let counters = network.home.counters();
    assert_eq!(counters.refused_for_authentication, 1_001);
    assert!(counters.unanswered >= 900, "{counters:?}");
    assert_eq!(network.home.away(), 0);
}

#[test]
fn a_care_of_address_that_somebody_else_has_written_is_refused() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    network.place(0, Some(2));
    network.is_home_cut_off = true;
    network.run(ms(100));
    network.is_home_cut_off = false;
    let mut bytes = updates(&network)[1].to_bytes().to_vec();
    let own = care_of_address(0, 2).octets();
    let at = bytes.windows(16).rposition(|window| window == own);
    let at = at.expect("the alternate care-of address");
    // Two words change places: the checksum stays right.
    bytes[at..at + 4].rotate_left(2);
    network.replay(Packet::parse(bytes.into()).expect("a packet"));
    assert_eq!(network.home.counters().refused_for_authentication, 1);
    let at = network.home.care_of_address(home_address(0));
    assert_eq!(at, Some(care_of_address(0, 1)));
}

#[test]
fn a_wrong_clock_is_set_by_the_home_agents() {
    let mut network = Network::new(Setup::default())
        .with_mobiles(|config| config.clock.set(Instant::ZERO, 0x1234_0000_0000));
    network.place(0, Some(1));
    // Two round trips.
    network.run(ms(85));
    assert_eq!(refusals(&network), [Status::TIMESTAMP]);
    assert_eq!(network.mobiles[0].node.counters().resynchronised, 1);
    assert!(network.reaches(0));
}

#[test]
fn a_mobile_node_that_starts_anew_learns_its_sequence_number() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    for cell in [2, 1, 2] {
        network.place(0, Some(cell));
        network.run(ms(500));
    }
    network.restart_mobile(0);
    network.run(ms(85));
    assert_eq!(refusals(&network), [Status::SEQUENCE]);
    assert!(network.mobiles[0].node.is_registered());
    assert!(network.reaches(0));
}

#[test]
fn updates_are_no_more_than_three_a_second() {
    let mut network = Network::new(Setup::default());
    for moves in 0..100 {
        network.place(0, Some(1 + moves % 2));
        network.run(ms(100));
    }
    let sent = network.mobiles[0].node.counters().requests;
    assert!((20..=34).contains(&sent), "{sent} in ten seconds");
    network.run(ms(1_000));
    assert!(network.reaches(0));
}

#[test]
fn strangers_do_not_use_the_tunnels() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    let agent = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    let inner = || probe(home_address(0), correspondent_address(0));
    let before = network.far[0].probes;
    // Of another care-of address, and of somebody who is not registered.
    let stranger = encapsulate(inner(), care_of_address(0, 2), agent).expect("it fits");
    network.replay(stranger);
    let unknown = probe(home_address(1), correspondent_address(0));
    let unknown = encapsulate(unknown, care_of_address(0, 1), agent).expect("it fits");
    network.replay(unknown);
    network.run(ms(100));
    assert_eq!(network.far[0].probes, before);
    assert_eq!(network.home.counters().dropped_strangers, 2);
}

#[test]
fn the_events_of_a_mobile_node_tell_its_story() {
    let mut network = Network::new(Setup::default());
    network.place(0, Some(1));
    network.run(ms(100));
    network.place(0, None);
    network.place(0, Some(1));
    network.run(ms(100));
    let events: Vec<_> = network.mobiles[0]
        .events
        .iter()
        .map(|(_, one)| *one)
        .collect();
    let took = ms(40);
    let at = Attachment::Foreign(care_of_address(0, 1));
    let registered = |has_moved| NodeEvent::Registered {
        at,
        has_moved,
        took,
    };
    assert_eq!(
        events,
        [registered(true), NodeEvent::Detached, registered(true)]
    );
}

const CROWD: usize = 10_000;

/// Without a rate, and without queues.
#[test]
fn ten_thousand_move_at_once_and_all_are_registered() {
    let mut network = Network::new(Setup {
        mobiles: CROWD,
        ..Setup::default()
    });
    for cell in [1, 2] {
        for number in 0..CROWD {
            network.place(number, Some(cell));
        }
        network.run(ms(41));
        assert_eq!(network.home.away(), CROWD);
    }
    assert_eq!(network.home.counters().accepted, 2 * CROWD as u64);
    for number in [0, CROWD / 2, CROWD - 1] {
        assert!(network.reaches(number));
    }
}
