//! Supervisor hosts of M-TCP hand connections to each other, and none of them acknowledges ahead.

use crate::network::{Made, Network};
use outlast_agents::Event;
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_tcp::profile::{LINUX_6, NETBSD_1997, Profile};
use proptest::prelude::*;

const AGENTS: usize = 3;
/// The sender waits in persist mode, or is amid its timeouts.
const LONG: Duration = Duration::from_secs(20);

fn network(
    speaks: bool,
    mechanism: PathMechanismKind,
    profile: &'static Profile,
    agents: usize,
) -> Network {
    Network::new(&Made {
        agents,
        speaks,
        mechanism,
        profile,
        ..Made::default()
    })
}

/// How long after the mobile host has come to another supervisor host it gets something new.
fn resumes_after(speaks: bool) -> Duration {
    let mut network = network(speaks, PathMechanismKind::MTcp, &NETBSD_1997, 2);
    network.write(300_000);
    network.run(Duration::from_millis(500));
    network.leave();
    network.run(LONG);
    let (came, before) = (network.now, network.deliveries.len());
    assert!(!network.is_complete());
    network.hand_over(1);
    let limit = Duration::from_secs(120);
    assert!(network.run_until(limit, |network| network.deliveries.len() > before));
    let resumed = network.deliveries[before].since(came);
    network.assert_complete();
    assert_eq!(network.most_ahead, 0);
    resumed
}

#[test]
fn a_sender_that_is_frozen_goes_on_when_another_supervisor_host_takes_over() {
    // A message each way, and a round trip between the new supervisor host and the fixed host.
    let limit = Duration::from_millis(100);
    let (with, without) = (resumes_after(true), resumes_after(false));
    assert!(with <= limit, "{with:?}");
    assert!(without > limit * 4, "the control: {without:?}");
}

#[test]
fn who_is_asked_tells_and_lets_go_of_what_is_kept() {
    let mut network = network(true, PathMechanismKind::MTcp, &NETBSD_1997, 2);
    network.write(300_000);
    network.run(Duration::from_millis(500));
    network.leave();
    network.run(LONG);
    let held = |network: &Network, agent: usize| {
        let there = network.stations[agent].agent.as_ref().expect("it runs");
        there.gateway.held().0
    };
    assert!(held(&network, 0) > 0);
    network.hand_over(1);
    network.run(Duration::from_millis(50));
    assert_eq!(held(&network, 0), 0);
    let told: Vec<_> = network
        .told
        .iter()
        .map(|(_, agent, event)| (*agent, *event))
        .collect();
    let [
        (0, Event::Lent { flow: lent, .. }),
        (1, Event::TakenOver { flow: taken, .. }),
    ] = told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!(lent, taken);
    network.assert_complete();
}

#[test]
fn a_mechanism_that_acknowledges_ahead_is_seen_to_do_so() {
    assert!(Network::frozen().most_ahead > 0);
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    Write(u64),
    Leave,
    Come(usize),
    Route(usize),
    HandOver(usize),
    Moved(usize, usize),
    Crash(usize),
    Start(usize),
    Cut(usize, usize),
    Mute(usize, usize),
    Mend(usize, usize),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let agent = || 0..AGENTS;
    let pair = || (agent(), 1..AGENTS).prop_map(|(a, step)| (a, (a + step) % AGENTS));
    prop_oneof![
        3 => (1_u64..60_000).prop_map(Act::Write),
        3 => Just(Act::Leave),
        2 => agent().prop_map(Act::Come),
        2 => agent().prop_map(Act::Route),
        4 => agent().prop_map(Act::HandOver),
        1 => pair().prop_map(|(at, to)| Act::Moved(at, to)),
        2 => agent().prop_map(Act::Crash),
        3 => agent().prop_map(Act::Start),
        1 => pair().prop_map(|(a, b)| Act::Cut(a, b)),
        1 => pair().prop_map(|(a, b)| Act::Mute(a, b)),
        2 => pair().prop_map(|(a, b)| Act::Mend(a, b)),
        8 => prop_oneof![1_u64..100, 100_u64..2_000, 2_000_u64..12_000].prop_map(Act::Wait),
    ]
}

fn carry_out(network: &mut Network, act: &Act) {
    match *act {
        Act::Write(bytes) => network.write(bytes),
        Act::Leave => network.leave(),
        Act::Come(agent) => network.come(agent),
        Act::Route(agent) => network.route(agent),
        Act::HandOver(agent) => network.hand_over(agent),
        Act::Moved(at, to) => {
            if network.stations[at].agent.is_some() {
                network.act(at, |agents, site| {
                    let known = agents.handle_moved(
                        site,
                        crate::network::mobile(),
                        crate::network::address(to),
                    );
                    assert!(known.is_ok());
                });
            }
        }
        Act::Crash(agent) => network.crash(agent),
        Act::Start(agent) => network.start(agent),
        Act::Cut(a, b) => network.cut(a, b),
        Act::Mute(a, b) => network.mute(a, b),
        Act::Mend(a, b) => network.mend(a, b),
        Act::Wait(millis) => network.run(Duration::from_millis(millis)),
    }
}

/// Everything that happens is over, and the mobile host is at `last`: all has arrived in the end, and
/// nothing was ever acknowledged before it had.
fn tell(
    mechanism: PathMechanismKind,
    profile: &'static Profile,
    acts: &[Act],
    last: usize,
) -> Result<(), TestCaseError> {
    let mut network = network(true, mechanism, profile, AGENTS);
    for act in acts {
        carry_out(&mut network, act);
        prop_assert_eq!(network.most_ahead, 0, "after {:?} of {:?}", act, acts);
    }
    for one in 0..AGENTS {
        network.start(one);
        for other in one + 1..AGENTS {
            network.mend(one, other);
        }
    }
    network.hand_over(last);
    let is_complete = network.run_until(Duration::from_secs(1_200), Network::is_complete);
    let ends = (network.mobile.received(), network.fixed.written());
    prop_assert!(is_complete, "{:?}: {ends:?} after {acts:?}", network.errors);
    prop_assert_eq!(network.errors, [None, None]);
    prop_assert_eq!(network.most_ahead, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_acknowledged_ahead(
        mechanism in prop_oneof![Just(PathMechanismKind::MTcp), Just(PathMechanismKind::MTcpAdaptive)],
        profile in prop_oneof![Just(&NETBSD_1997), Just(&LINUX_6)],
        acts in proptest::collection::vec(act(), 1..40),
        last in 0..AGENTS,
    ) {
        tell(mechanism, profile, &acts, last)?;
    }
}
