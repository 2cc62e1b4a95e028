//! Neighbours that come and go, and mobiles that are served from now on, while connections are
//! frozen.

use crate::network::{LOST_AFTER, Made, Network, address};
use outlast_agents::{Config, Limits, Prefix, StillNeeded};
use outlast_base::time::Duration;

const MOMENT: Duration = Duration::from_secs(2);

fn config(neighbours: &[usize], mobiles: &[Prefix]) -> Config {
    Config {
        instance: 0,
        neighbours: neighbours.iter().copied().map(address).collect(),
        mobiles: mobiles.to_vec(),
        lost_after: LOST_AFTER,
        limits: Limits::default(),
    }
}

fn reconfigure(network: &mut Network, agent: usize, next: Config) -> Result<(), StillNeeded> {
    network.act(agent, |agents, _| agents.reconfigure(next))
}

fn neighbours(network: &Network, agent: usize) -> usize {
    let there = network.stations[agent].agent.as_ref().expect("it runs");
    there.agents.neighbours().count()
}

#[test]
fn a_neighbour_that_delivers_a_segment_or_has_given_one_stays_until_that_is_over() {
    let mut network = Network::frozen();
    network.come(1);
    network.run(Duration::from_millis(12));
    assert!(network.is_frozen(1), "it was taken over");
    network.leave();
    for agent in [0, 1] {
        let still = StillNeeded {
            neighbour: address(1 - agent),
            connections: 1,
        };
        let refused = reconfigure(&mut network, agent, config(&[], &[]));
        assert_eq!(refused, Err(still));
        assert_eq!(neighbours(&network, agent), 1, "nothing has changed");
    }
    network.hand_over(1);
    network.assert_goes_on();
    for agent in [0, 1] {
        assert_eq!(reconfigure(&mut network, agent, config(&[], &[])), Ok(()));
        assert_eq!(neighbours(&network, agent), 0);
    }
}

#[test]
fn what_a_neighbour_that_goes_has_frozen_is_nobodys_business_here_and_it_is_welcome_again() {
    let mut network = Network::frozen();
    network.cut(0, 1);
    assert_eq!(reconfigure(&mut network, 1, config(&[], &[])), Ok(()));
    network.come(1);
    // Longer than a neighbour may be away: nothing here depends on it.
    network.run(2 * LOST_AFTER);
    assert_eq!(network.errors, [None, None]);
    assert!(network.is_frozen(0) && !network.is_frozen(1));
    assert_eq!(reconfigure(&mut network, 1, config(&[0], &[])), Ok(()));
    network.mend(0, 1);
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn where_the_mobile_host_was_said_to_be_is_forgotten_with_the_neighbour() {
    let mut network = Network::new(&Made::default());
    let known = network.act(0, |agents, site| {
        agents.handle_moved(site, crate::network::mobile(), address(1))
    });
    assert_eq!(known, Ok(0));
    network.cut(0, 1);
    assert_eq!(reconfigure(&mut network, 0, config(&[], &[])), Ok(()));
    network.freeze(0);
    // It would be lent to nobody, and never delivered.
    network.hand_over(0);
    network.assert_goes_on();
}

#[test]
fn other_mobiles_are_served_from_the_next_session_on() {
    let elsewhere = Prefix {
        address: [10, 0, 0, 0].into(),
        length: 8,
    };
    let mut network = Network::new(&Made {
        mobiles: vec![elsewhere],
        ..Made::default()
    });
    network.freeze(0);
    let own = Prefix {
        address: crate::network::mobile(),
        length: 32,
    };
    assert_eq!(reconfigure(&mut network, 1, config(&[0], &[own])), Ok(()));
    network.come(1);
    network.run(MOMENT);
    assert!(!network.is_frozen(1), "it was not noted");
    network.cut(0, 1);
    network.mend(0, 1);
    network.hand_over(1);
    network.assert_goes_on();
}
