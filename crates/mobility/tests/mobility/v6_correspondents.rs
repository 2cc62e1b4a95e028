//! Mobile IPv6 between mobile node and correspondent: return routability, route optimisation, and what
//! strangers cannot do.

use crate::network_v6::{
    Network, Setup, care_of_address, correspondent_address, home_address, ms, parameter_problem,
    probe,
};
use core::net::Ipv6Addr;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::v6::NodeEvent;
use outlast_wire::Packet;
use outlast_wire::mobile_ipv6::{
    BindingErrorStatus, BindingUpdate, Message, UpdateFlags, UpdateLifetime, add_home_address,
    mobility_packet,
};

/// A mobile node in cell 1 that has heard of its first correspondent.
fn optimized(setup: Setup) -> Network {
    let mut network = Network::new(Setup {
        route_optimization: true,
        ..setup
    });
    network.place(0, Some(1));
    network.run(ms(100));
    assert!(network.reaches(0), "through the home agent");
    network.run(ms(300));
    network
}

/// How many packets the home agent has carried for the mobile node.
fn carried(network: &Network) -> u64 {
    let counters = network.home.counters();
    counters.tunnelled + counters.reverse_tunnelled
}

/// When and with whom packets began to go directly.
fn optimizations(network: &Network) -> Vec<(Instant, Ipv6Addr)> {
    let events = network.mobiles[0].events.iter();
    let found = events.filter_map(|(at, event)| match event {
        NodeEvent::Optimized { correspondent, .. } => Some((*at, *correspondent)),
        _ => None,
    });
    found.collect()
}

fn is_given_up(network: &Network) -> bool {
    let mut events = network.mobiles[0].events.iter();
    events.any(|(_, event)| matches!(event, NodeEvent::NotOptimized { .. }))
}

#[test]
fn packets_leave_the_home_agents_way_and_come_back_directly() {
    let mut network = optimized(Setup::default());
    assert_eq!(optimizations(&network).len(), 1);
    let before = carried(&network);
    assert!(network.reaches(0) && network.is_heard(0, 0));
    assert_eq!(carried(&network), before, "past the home agent");
    assert_eq!(network.mobiles[0].node.counters().optimized_in, 1);
    assert_eq!(network.mobiles[0].node.counters().optimized_out, 1);
    // The control: another correspondent of whom nothing was heard.
    let counters = *network.home.counters();
    network.place(0, Some(2));
    network.run(ms(300));
    assert_eq!(optimizations(&network).len(), 2, "at the next place, too");
    assert!(network.home.counters().accepted > counters.accepted);
    let before = carried(&network);
    assert!(network.reaches(0) && network.is_heard(0, 0));
    assert_eq!(carried(&network), before);
    // At home nobody is told a care-of address any more.
    network.place(0, Some(0));
    network.run(ms(300));
    assert_eq!(network.correspondent(0).bindings().count(), 0);
    assert!(network.reaches(0) && network.is_heard(0, 0), "at home");
}

/// The longer of both tests, and the update; the home token is asked for anew only when it is too old.
#[test]
fn a_move_costs_the_home_registration_one_test_and_one_update() {
    let mut network = optimized(Setup::default());
    let moved = network.now;
    network.place(0, Some(2));
    network.run(ms(500));
    let (at, _) = optimizations(&network)[1];
    // Three round trips of 40 ms: home agent, care-of test, update.
    assert_eq!(at.since(moved), ms(120));
}

#[test]
fn a_correspondent_that_knows_nothing_of_it_is_reached_through_the_home_agent() {
    let mut network = optimized(Setup {
        is_last_plain: true,
        ..Setup::default()
    });
    assert!(is_given_up(&network), "{:?}", network.mobiles[0].events);
    let messages = network.mobiles[0].node.counters().correspondent_messages;
    assert_eq!(messages, 2, "one of each test, and no repetition");
    for _ in 0..10 {
        assert!(network.reaches(0) && network.is_heard(0, 0));
    }
    let after = network.mobiles[0].node.counters().correspondent_messages;
    assert_eq!(after, messages, "it is left alone");
}

#[test]
fn a_silent_correspondent_is_left_alone_after_four_tries() {
    let mut network = Network::new(Setup {
        route_optimization: true,
        ..Setup::default()
    });
    network.place(0, Some(1));
    network.run(ms(100));
    assert!(network.reaches(0));
    network.far[0].machine = None;
    network.faults.loss = 1.0;
    network.run(Duration::from_secs(60));
    assert!(is_given_up(&network));
    let messages = network.mobiles[0].node.counters().correspondent_messages;
    assert!(messages <= 8, "{messages}");
}

#[test]
fn a_binding_is_renewed_while_it_is_used_and_ends_when_it_is_not() {
    let mut network = optimized(Setup {
        lifetime: UpdateLifetime(450),
        ..Setup::default()
    });
    let before = carried(&network);
    for _ in 0..60 {
        network.run(Duration::from_secs(20));
        assert!(network.reaches(0) && network.is_heard(0, 0));
    }
    // Home tests and nothing else went through the home agent.
    let tests = carried(&network) - before;
    assert!(tests <= 12, "{tests}");
    assert_eq!(network.correspondent(0).bindings().count(), 1);
    network.run(Duration::from_secs(421));
    assert_eq!(network.correspondent(0).bindings().count(), 0);
    assert!(network.reaches(0), "through the home agent again");
}

#[test]
fn a_correspondent_that_starts_anew_says_that_it_knows_no_binding() {
    let mut network = optimized(Setup::default());
    network.start_correspondent(0);
    assert!(!network.is_heard(0, 0), "the first packet is lost");
    network.run(ms(1_500));
    assert!(network.is_heard(0, 0) && network.reaches(0));
    assert_eq!(network.correspondent(0).bindings().count(), 1);
}

/// An update of the mobile node's home address to another care-of address, signed by `authenticator`.
fn forged(care_of: Ipv6Addr, indices: (u16, u16), authenticator: [u8; 12]) -> Packet {
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: 40_000,
        flags: UpdateFlags::ACKNOWLEDGE,
        lifetime: UpdateLifetime(100),
    });
    let (home, far) = (home_address(0), correspondent_address(0));
    let message = update.emit().nonce_indices(indices.0, indices.1);
    let message = message.authorize(|_| authenticator).finish(home, far);
    add_home_address(&mobility_packet(home, far, &message), care_of).expect("it fits")
}

#[test]
fn forged_updates_change_nothing() {
    let mut network = optimized(Setup::default());
    for number in 0..200_u8 {
        let update = forged(care_of_address(0, 9), (0, 0), [number; 12]);
        network.replay_far(0, &update);
    }
    // Nonces that were never made.
    network.replay_far(0, &forged(care_of_address(0, 9), (77, 78), [1; 12]));
    let bindings: Vec<_> = network.correspondent(0).bindings().collect();
    assert_eq!(bindings, [(home_address(0), care_of_address(0, 1))]);
    let counters = network.correspondent(0).counters();
    assert_eq!(counters.refused_for_authentication, 200);
    assert!(network.reaches(0) && network.is_heard(0, 0));
}

#[test]
fn a_recorded_update_changes_nothing() {
    let mut network = optimized(Setup::default());
    let far = correspondent_address(0);
    let recorded: Vec<Packet> = network
        .posted
        .iter()
        .map(|(_, packet)| packet.clone())
        .filter(|packet| packet.header().ip.destination == far)
        .collect();
    network.place(0, Some(2));
    network.run(ms(300));
    for packet in &recorded {
        network.replay_far(0, packet);
        network.run(ms(100));
    }
    let bindings: Vec<_> = network.correspondent(0).bindings().collect();
    assert_eq!(bindings, [(home_address(0), care_of_address(0, 2))]);
}

#[test]
fn a_packet_with_a_home_address_and_no_binding_is_not_delivered() {
    let mut network = optimized(Setup::default());
    let before = network.far[0].probes;
    let spoofed = probe(home_address(0), correspondent_address(0));
    let spoofed = add_home_address(&spoofed, care_of_address(0, 9)).expect("it fits");
    network.replay_far(0, &spoofed);
    assert_eq!(network.far[0].probes, before);
    assert_eq!(network.correspondent(0).counters().dropped_strangers, 1);
    // Whoever says so to the mobile node costs it one round of tests.
    network.run(ms(3_000));
    assert!(network.is_heard(0, 0));
}

/// A binding error in the correspondent's name: nothing in it is secret.
fn binding_error(status: BindingErrorStatus) -> Packet {
    let (far, node) = (correspondent_address(0), care_of_address(0, 1));
    let error = Message::BindingError {
        status,
        home_address: home_address(0),
    };
    mobility_packet(far, node, &error.emit().finish(far, node))
}

/// One forged error after the other for a minute, 100 a second of both kinds. Each had packets take the longer way for a round
/// trip, and two of different kinds for five minutes.
#[test]
fn forged_binding_errors_cost_a_round_of_tests_in_ten_seconds() {
    let mut network = optimized(Setup::default());
    let before = network.mobiles[0].node.counters().correspondent_messages;
    let (mut direct, mut tried) = (0, 0);
    for number in 0..6_000 {
        for status in [
            BindingErrorStatus::NO_BINDING,
            BindingErrorStatus::UNKNOWN_MESSAGE,
        ] {
            network.route(binding_error(status));
        }
        network.run(ms(10));
        if number % 50 == 0 {
            let sent = network.mobiles[0].node.counters().optimized_out;
            assert!(network.is_heard(0, 0));
            tried += 1;
            direct += network.mobiles[0].node.counters().optimized_out - sent;
        }
    }
    assert!(!is_given_up(&network));
    let messages = network.mobiles[0].node.counters().correspondent_messages - before;
    assert!((3..=7 * 4).contains(&messages), "{messages}");
    assert!(
        direct * 10 >= tried * 8,
        "{direct} of {tried} went directly"
    );
}

/// A mobile node that has just asked its first correspondent for tokens, and what it has sent to it directly.
fn testing() -> (Network, Packet) {
    let mut network = Network::new(Setup {
        route_optimization: true,
        ..Setup::default()
    });
    network.place(0, Some(1));
    network.run(ms(100));
    network.route(probe(correspondent_address(0), home_address(0)));
    let asks = |packet: &Packet| {
        let ip = packet.header().ip;
        ip.source == care_of_address(0, 1) && ip.destination == correspondent_address(0)
    };
    while !network.posted.iter().any(|(_, packet)| asks(packet)) {
        network.run(ms(1));
    }
    let mut asked = network.posted.iter().map(|(_, packet)| packet.clone());
    let asked = asked.rfind(asks).expect("a test");
    (network, asked)
}

/// One forged error about a correspondent that had not answered yet had packets take the longer way for five minutes.
#[test]
fn an_error_that_quotes_no_outstanding_cookie_changes_nothing() {
    let (far, home) = (correspondent_address(0), home_address(0));
    let tests = |cookie: u64| {
        let message = Message::CareOfTestInit { cookie }.emit();
        let care_of_address = care_of_address(0, 1);
        let by_care_of_address = message.finish(care_of_address, far);
        let message = Message::HomeTestInit { cookie }.emit();
        [
            mobility_packet(care_of_address, far, &by_care_of_address),
            mobility_packet(home, far, &message.finish(home, far)),
        ]
    };
    for is_true in [false, true] {
        let (mut network, asked) = testing();
        for packet in (0..500).flat_map(tests) {
            network.route(parameter_problem(far, &packet));
        }
        network.route(binding_error(BindingErrorStatus::UNKNOWN_MESSAGE));
        network.run(ms(1));
        if is_true {
            // The control: an error of somebody who has seen the test.
            network.route(parameter_problem(far, &asked));
        }
        network.run(ms(300));
        assert_eq!(is_given_up(&network), is_true);
        assert_eq!(optimizations(&network).len(), usize::from(!is_true));
    }
}

/// A correspondent of which a binding is known may ask for its renewal, and anybody in its name: each had the mobile node
/// send an update.
#[test]
fn forged_refresh_requests_cost_an_update_in_ten_seconds() {
    let mut network = optimized(Setup::default());
    let before = network.mobiles[0].node.counters().correspondent_messages;
    let (far, node) = (correspondent_address(0), care_of_address(0, 1));
    let message = Message::BindingRefreshRequest.emit().finish(far, node);
    for _ in 0..6_000 {
        network.route(mobility_packet(far, node, &message));
        network.run(ms(10));
    }
    let messages = network.mobiles[0].node.counters().correspondent_messages - before;
    // The control: one in ten seconds is believed.
    assert!((6..=7).contains(&messages), "{messages}");
    assert_eq!(network.correspondent(0).bindings().count(), 1);
}

#[test]
fn a_flood_of_tests_is_not_answered_beyond_the_limit() {
    let mut network = optimized(Setup::default());
    for cookie in 0..5_000 {
        let source = care_of_address(0, 9);
        let far = correspondent_address(0);
        let message = Message::CareOfTestInit { cookie }
            .emit()
            .finish(source, far);
        network.replay_far(0, &mobility_packet(source, far, &message));
    }
    let counters = network.correspondent(0).counters();
    assert!(counters.unanswered >= 4_000, "{counters:?}");
    assert_eq!(network.correspondent(0).bindings().count(), 1);
    network.run(ms(1_000));
    assert!(network.reaches(0) && network.is_heard(0, 0));
}
