//! A mobile host that goes from gateway to gateway, and what becomes of its connections.

use crate::support::{bulk, flow, link, setup};
use outlast_base::random::derived_seed;
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::Way;
use outlast_tcp::Error;
use outlast_tcp::profile::{AIX_4_3, LINUX_6, Profile};
use outlast_world::{
    AgentsSetup, Crash, Handoff, Indicators, Outcome, RoamingSetup, Setup, Stack, Workload, World,
};

const SECOND: Duration = Duration::from_secs(1);
const LOST_AFTER: Duration = Duration::from_secs(30);

/// From the first gateway to the second one, by way of nowhere.
fn handoff() -> Handoff {
    Handoff {
        at: SECOND,
        gap: 5 * SECOND,
        to: 1,
        update: Duration::ZERO,
        forwards: false,
    }
}

fn roaming() -> RoamingSetup {
    let mut second = link();
    second.seed = derived_seed(1, "gateway.2");
    RoamingSetup {
        cells: vec![second],
        home_agent: PathMechanismKind::None,
        handoffs: vec![handoff()],
        crashes: Vec::new(),
        mobile_ip: None,
        agents: Some(AgentsSetup {
            delay: Duration::from_millis(5),
            lost_after: LOST_AFTER,
        }),
    }
}

fn download(profile: &'static Profile, roaming: RoamingSetup) -> Setup {
    let stack = Stack {
        profile,
        ..Stack::default()
    };
    Setup {
        mechanisms: [PathMechanismKind::ZeroWindowAck, PathMechanismKind::None],
        flows: vec![flow(bulk(3_000_000, Way::ToMobile), stack)],
        roaming: Some(roaming),
        ..setup(link(), bulk(1, Way::ToMobile))
    }
}

/// Something that goes on for longer than any connection here, so that the world does, too.
fn with_a_bystander(mut setup: Setup) -> Setup {
    let workload = Workload::Interactive {
        interval: SECOND,
        update: outlast_base::units::ByteCount(64),
        request: outlast_base::units::ByteCount(10),
        duration: 120 * SECOND,
    };
    setup.flows.push(outlast_world::FlowSetup {
        begin: 20 * SECOND,
        ..flow(workload, Stack::default())
    });
    setup
}

fn run(setup: Setup) -> Outcome {
    World::new(setup).run()
}

fn alone(roaming: RoamingSetup) -> RoamingSetup {
    RoamingSetup {
        agents: None,
        ..roaming
    }
}

#[test]
fn gateways_that_speak_hand_a_frozen_connection_over_and_others_leave_it_stuck() {
    let outcome = run(download(&AIX_4_3, roaming()));
    assert_eq!(outcome.flows[0].is_intact(), Some(true));
    let told = outcome.roaming.expect("there were two").agents;
    let [old, new] = [0, 1].map(|agent: usize| told[agent].expect("it runs"));
    assert_eq!((old.lent, old.settled, old.reset), (1, 1, 0));
    assert_eq!((new.taken_over, new.refused), (1, 0));
    let freezes = outcome.gateways[0].expect("there is one").freezes;
    assert_eq!(freezes, 1);

    let stuck = run(download(&AIX_4_3, alone(roaming())));
    let flow = &stuck.flows[0];
    assert!(!flow.is_complete && flow.received[1] < 3_000_000);
    assert_eq!(flow.failures, [None, None], "nobody ends it");
}

#[test]
fn gateways_that_nobody_tells_find_the_mobile_host_by_its_packets() {
    for profile in [&AIX_4_3, &LINUX_6] {
        let mut setup = download(profile, roaming());
        setup.indicators = Indicators::Silence;
        let outcome = run(setup);
        assert_eq!(outcome.flows[0].is_intact(), Some(true), "{}", profile.name);
        let told = outcome.roaming.expect("there were two").agents;
        assert_eq!(told[1].expect("it runs").taken_over, 1, "{}", profile.name);
    }
}

#[test]
fn a_crash_of_the_old_agent_resets_both_ends_and_without_the_protocol_neither() {
    let crash = Crash {
        at: 4 * SECOND,
        gateway: 0,
        back_after: None,
    };
    let crashed = || RoamingSetup {
        crashes: vec![crash],
        ..roaming()
    };
    let outcome = run(with_a_bystander(download(&AIX_4_3, crashed())));
    let flow = &outcome.flows[0];
    assert_eq!(flow.failures, [Some(Error::Reset); 2]);
    let started = outcome.started.expect("something was sent");
    let due = started + crash.at + LOST_AFTER;
    let after = flow.ended.since(due);
    assert!(flow.ended >= due && after < SECOND, "{after:?}");
    let told = outcome.roaming.expect("there were two").agents;
    assert!(told[0].is_none());
    assert_eq!(told[1].expect("it runs").reset, 1);

    let stuck = run(with_a_bystander(download(&AIX_4_3, alone(crashed()))));
    assert_eq!(stuck.flows[0].failures, [None, None], "nobody ends it");
    assert!(!stuck.flows[0].is_complete);
}

#[test]
fn a_crash_of_the_new_agent_that_stays_away_resets_both_ends() {
    // It takes over at six seconds, and the mobile host leaves before it has heard anything.
    let mut setup = download(&AIX_4_3, roaming());
    let roaming = setup.roaming.as_mut().expect("it is there");
    roaming.handoffs.push(Handoff {
        at: 6 * SECOND + Duration::from_millis(20),
        gap: 100 * SECOND,
        to: 0,
        ..handoff()
    });
    roaming.crashes.push(Crash {
        at: 10 * SECOND,
        gateway: 1,
        back_after: None,
    });
    let told = run(with_a_bystander(setup.clone()));
    let near = told.flows[0].failures[0];
    assert_eq!(near, Some(Error::Reset), "its host was told");
    let agents = told.roaming.expect("there were two").agents;
    assert_eq!(agents[0].expect("it runs").reset, 1);
    // With the process back, nothing is reset, and all arrives.
    for crash in &mut setup.roaming.as_mut().expect("it is there").crashes {
        crash.back_after = Some(20 * SECOND);
    }
    let outcome = run(setup);
    assert_eq!(
        outcome.flows[0].is_intact(),
        Some(true),
        "{:?}",
        outcome.flows[0].lost
    );
}

#[test]
fn an_agent_that_is_back_in_time_goes_on_from_its_journal() {
    let mut setup = download(&AIX_4_3, roaming());
    let roaming = setup.roaming.as_mut().expect("it is there");
    roaming.crashes.push(Crash {
        at: 4 * SECOND,
        gateway: 0,
        back_after: Some(10 * SECOND),
    });
    let outcome = run(setup);
    let flow = &outcome.flows[0];
    assert_eq!(flow.is_intact(), Some(true), "{:?}", flow.lost);
    let told = outcome.roaming.expect("there were two").agents;
    assert_eq!(told[0].expect("it runs again").lent, 1);
    // Not before it was back.
    let started = outcome.started.expect("something was sent");
    assert!(flow.ended > started + 14 * SECOND);
}

#[test]
fn packets_go_to_the_old_gateway_until_the_router_hears() {
    let late = |update| {
        let mut setup = download(&LINUX_6, alone(roaming()));
        setup.mechanisms = [PathMechanismKind::None; 2];
        let roaming = setup.roaming.as_mut().expect("it is there");
        roaming.handoffs[0].update = update;
        let outcome = run(setup);
        assert_eq!(outcome.flows[0].is_intact(), Some(true));
        outcome.flows[0].resumed[0].expect("it went on")
    };
    assert!(late(Duration::ZERO) < 20 * SECOND);
    assert!(late(20 * SECOND) >= 20 * SECOND);
}

/// How long after the mobile host's arrival the transfer went on.
fn resumed(home: PathMechanismKind, foreign: PathMechanismKind, forwards: bool) -> Duration {
    let mut setup = download(&LINUX_6, alone(roaming()));
    setup.mechanisms = [foreign, PathMechanismKind::None];
    let roaming = setup.roaming.as_mut().expect("it is there");
    roaming.home_agent = home;
    roaming.handoffs[0].gap = 3 * SECOND;
    roaming.handoffs[0].forwards = forwards;
    let outcome = run(setup);
    assert_eq!(outcome.flows[0].is_intact(), Some(true));
    outcome.flows[0].resumed[0].expect("it went on")
}

#[test]
fn a_cached_retransmission_goes_to_the_new_place_from_the_home_agent_and_from_the_old_foreign_agent()
 {
    use PathMechanismKind::{None, RetransmissionCache};
    let without = resumed(None, None, false);
    assert!(without > SECOND, "{without:?}: the sender sleeps");
    // The mobile host has what was on its way, and acknowledges it: new bytes take one trip more.
    let soon = 3 * Duration::from_millis(50);
    let at_home = resumed(RetransmissionCache, None, false);
    assert!(at_home < soon, "{at_home:?}");
    let at_foreign_agent = resumed(None, RetransmissionCache, true);
    assert!(at_foreign_agent < soon, "{at_foreign_agent:?}");
    // Nobody tells the old one where the mobile host is.
    let untold = resumed(None, RetransmissionCache, false);
    assert_eq!(untold, without);
}

#[test]
fn the_same_setup_gives_the_same_outcome() {
    let setup = || with_a_bystander(download(&LINUX_6, roaming()));
    assert_eq!(run(setup()), run(setup()));
}
