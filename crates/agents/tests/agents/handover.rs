//! Frozen connections that follow their mobile host from agent to agent.

use crate::network::{LOST_AFTER, Made, Network, address, mobile};
use outlast_agents::{Event, Limits, Outcome, Prefix};
use outlast_base::time::Duration;
use outlast_tcp::profile::LINUX_6;

const MINUTE: Duration = Duration::from_secs(60);
/// What it takes to tell, beyond a time-out.
const MOMENT: Duration = Duration::from_secs(2);

fn three() -> Network {
    let mut network = Network::new(&Made {
        agents: 3,
        ..Made::default()
    });
    network.freeze(0);
    network
}

fn events(network: &Network) -> Vec<(usize, Event)> {
    let told = network.told.iter();
    told.map(|(_, agent, event)| (*agent, *event)).collect()
}

#[test]
fn the_new_agent_delivers_what_the_old_one_keeps_and_the_connection_goes_on() {
    let mut network = Network::frozen();
    network.hand_over(1);
    network.assert_goes_on();
    let told = events(&network);
    let outcome = Outcome::Acknowledged;
    let is_as_meant = matches!(
        told[..],
        [(0, Event::Lent { .. }), (1, Event::TakenOver { .. }), (0, Event::Settled { outcome: o, .. })]
            if o == outcome
    );
    assert!(is_as_meant, "{told:?}");
}

#[test]
fn a_mobile_host_is_found_by_its_packets_where_no_indicator_tells() {
    let mut network = Network::new(&Made::default());
    network.is_told_of_mobiles = false;
    network.freeze(0);
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn linux_which_does_not_obey_a_closed_window_comes_through_too() {
    let mut network = Network::new(&Made {
        profile: &LINUX_6,
        ..Made::default()
    });
    network.freeze(0);
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn without_the_protocol_the_sender_stays_in_the_probe_loop() {
    let mut network = Network::new(&Made {
        speaks: false,
        ..Made::default()
    });
    network.freeze(0);
    network.crash(0);
    network.crash(1);
    network.hand_over(1);
    let before = network.counts.probes;
    network.run(5 * MINUTE);
    assert_eq!(network.errors, [None, None], "nobody ends it");
    assert!(!network.is_complete(), "and it does not go on");
    let probes = network.counts.probes - before;
    assert!(probes >= 5, "{probes} probes");
}

#[test]
fn the_same_crash_with_the_protocol_resets_both_ends() {
    let mut network = Network::frozen();
    network.crash(0);
    network.hand_over(1);
    network.assert_both_are_reset(LOST_AFTER + MOMENT);
}

#[test]
fn a_mobile_host_that_the_router_knows_nowhere_yet_asks_for_its_segment_all_the_same() {
    let mut network = Network::frozen();
    network.come(1);
    network.run(MOMENT);
    // It has the segment; its acknowledgements go another way than the fixed host's probes.
    assert_eq!(network.told.len(), 3, "{:?}", network.told);
    network.route(1);
    network.assert_goes_on();
}

#[test]
fn a_mobile_host_that_moves_on_is_followed() {
    let mut network = three();
    network.hand_over(1);
    network.run(Duration::from_millis(12));
    network.leave();
    network.run(Duration::from_secs(20));
    network.hand_over(2);
    network.assert_goes_on();
}

#[test]
fn a_mobile_host_that_comes_back_to_the_old_agent_gets_its_segment_there() {
    let mut network = Network::frozen();
    network.come(1);
    network.run(Duration::from_millis(12));
    assert!(network.is_frozen(1), "it was taken over");
    network.leave();
    network.run(Duration::from_secs(5));
    network.hand_over(0);
    network.assert_goes_on();
}

#[test]
fn whoever_knows_where_the_mobile_host_goes_sends_the_segment_before_it_is_there() {
    let mut network = Network::frozen();
    let handed = network.act(0, |agents, site| {
        agents.handle_moved(site, mobile(), address(1))
    });
    assert_eq!(handed, Ok(1));
    let nobody = network.act(0, |agents, site| {
        agents.handle_moved(site, mobile(), address(9))
    });
    assert!(nobody.is_err());
    network.run(MOMENT);
    assert!(network.is_frozen(1));
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn what_freezes_after_the_mobile_host_has_arrived_elsewhere_follows_it() {
    let mut network = Network::new(&Made::default());
    network.come(1);
    network.write(20_000);
    // Nobody has told the old agent; packets go there still.
    assert!(
        network.run_until(MINUTE, |n| n.told.len() >= 3),
        "{:?}",
        network.told
    );
    network.route(1);
    network.assert_goes_on();
}

#[test]
fn a_late_or_repeated_request_for_what_is_over_is_answered_with_that() {
    let mut network = Network::frozen();
    network.mute(0, 1);
    network.hand_over(0);
    network.run(MOMENT);
    assert!(network.is_complete());
    // It knows of the freeze, and not of its end.
    network.come(1);
    network.mend(0, 1);
    network.hand_over(1);
    network.write(1_000);
    network.assert_goes_on();
    assert_eq!(events(&network), [], "nothing was lent");
}

#[test]
fn a_segment_that_comes_twice_is_taken_over_once() {
    let mut network = Network::frozen();
    network.come(1);
    network.run(Duration::from_millis(12));
    network.leave();
    for _ in 0..3 {
        network.cut(0, 1);
        network.run(MOMENT);
        network.mend(0, 1);
        network.run(MOMENT);
    }
    let there = network.stations[1].agent.as_ref().expect("it runs");
    assert_eq!(there.agents.counters().taken_over, 1);
    assert_eq!(there.agents.frozen().count(), 1);
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn what_is_refused_past_a_cap_stays_with_the_old_agent() {
    let limits = Limits {
        copies: 0,
        ..Limits::default()
    };
    let mut network = Network::new(&Made {
        limits,
        ..Made::default()
    });
    network.freeze(0);
    network.hand_over(1);
    network.run(Duration::from_secs(5));
    assert!(!network.is_frozen(1) && network.is_frozen(0));
    let there = network.stations[1].agent.as_ref().expect("it runs");
    assert_eq!(there.agents.counters().refused, 1, "it asks once");
    network.hand_over(0);
    network.assert_goes_on();
}

#[test]
fn of_what_is_past_the_cap_or_of_strange_mobile_hosts_no_note_is_taken() {
    let capped = Made {
        limits: Limits {
            notices: 0,
            ..Limits::default()
        },
        ..Made::default()
    };
    let elsewhere = Made {
        mobiles: vec![Prefix {
            address: [10, 0, 0, 0].into(),
            length: 8,
        }],
        ..Made::default()
    };
    for made in [capped, elsewhere] {
        let mut network = Network::new(&made);
        network.freeze(0);
        network.come(1);
        network.run(MOMENT);
        let there = network.stations[1].agent.as_ref().expect("it runs");
        assert_eq!(there.agents.counters().not_noted, 1);
        assert!(!network.is_frozen(1));
        network.hand_over(0);
        network.assert_goes_on();
    }
}
