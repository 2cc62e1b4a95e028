//! Whatever happens to agents, channels and mobile host, no connection is left frozen without an
//! owner, and no byte is lost: a transfer is completed, or reset at both ends.

use crate::network::{Crash, LOST_AFTER, Made, Network};
use outlast_base::time::Duration;
use outlast_tcp::Error;
use outlast_tcp::profile::{AIX_4_3, LINUX_6, Profile, SUNOS_5_6};
use proptest::prelude::*;

const AGENTS: usize = 3;
/// Agents and channels that are gone are back within this, where they come back in time.
const SOON: Duration = Duration::from_secs(20);

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    Write(u64),
    Leave,
    Come(usize),
    Route(usize),
    Moved(usize, usize),
    Crash(usize),
    CrashOnTheWay(usize, Crash),
    Start(usize),
    Cut(usize, usize),
    Mute(usize, usize),
    Mend(usize, usize),
    Say(usize, usize, Vec<u8>),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let agent = || 0..AGENTS;
    let pair = || (agent(), 1..AGENTS).prop_map(|(a, step)| (a, (a + step) % AGENTS));
    let crash = prop_oneof![Just(Crash::BeforeSending), Just(Crash::BeforeRemoval)];
    prop_oneof![
        3 => (1_u64..40_000).prop_map(Act::Write),
        3 => Just(Act::Leave),
        4 => agent().prop_map(Act::Come),
        4 => agent().prop_map(Act::Route),
        1 => pair().prop_map(|(at, to)| Act::Moved(at, to)),
        2 => agent().prop_map(Act::Crash),
        1 => (agent(), crash).prop_map(|(agent, crash)| Act::CrashOnTheWay(agent, crash)),
        3 => agent().prop_map(Act::Start),
        2 => pair().prop_map(|(a, b)| Act::Cut(a, b)),
        1 => pair().prop_map(|(a, b)| Act::Mute(a, b)),
        3 => pair().prop_map(|(a, b)| Act::Mend(a, b)),
        1 => (pair(), proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|((a, b), bytes)| Act::Say(a, b, bytes)),
        8 => prop_oneof![1_u64..100, 100_u64..2_000, 2_000_u64..12_000].prop_map(Act::Wait),
    ]
}

fn profile() -> impl Strategy<Value = &'static Profile> {
    prop_oneof![Just(&AIX_4_3), Just(&SUNOS_5_6), Just(&LINUX_6)]
}

fn carry_out(network: &mut Network, act: &Act) {
    match act.clone() {
        Act::Write(bytes) => network.write(bytes),
        Act::Leave => network.leave(),
        Act::Come(agent) => network.come(agent),
        Act::Route(agent) => network.route(agent),
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
        Act::CrashOnTheWay(agent, crash) => network.stations[agent].crash = Some(crash),
        Act::Start(agent) => network.start(agent),
        Act::Cut(a, b) => network.cut(a, b),
        Act::Mute(a, b) => network.mute(a, b),
        Act::Mend(a, b) => network.mend(a, b),
        Act::Say(a, b, bytes) => network.inject(a, b, bytes),
        Act::Wait(millis) => network.run(Duration::from_millis(millis)),
    }
}

/// Everything is there again, and the mobile host is at `agent`.
fn come_to_rest(network: &mut Network, agent: usize) {
    for station in &mut network.stations {
        station.crash = None;
    }
    for one in 0..AGENTS {
        network.start(one);
        for other in one + 1..AGENTS {
            network.mend(one, other);
        }
    }
    network.hand_over(agent);
}

/// The end of every story.
fn judge(network: &mut Network, acts: &[Act]) -> Result<bool, TestCaseError> {
    // Longer than any time-out of a stack here, and of any delivery.
    for _ in 0..60 {
        network.be_heard();
        network.run(Duration::from_secs(10));
    }
    if network.errors == [Some(Error::Reset), None] {
        // Its reset went where it was no more. It hears of that when it says something.
        network.answer();
        network.run(Duration::from_secs(10));
    }
    let is_complete = network.is_complete();
    let told = || {
        format!(
            "{:?}, {} of {} bytes, {:?} after {acts:?}",
            network.errors,
            network.mobile.received(),
            network.fixed.written(),
            network.told
        )
    };
    prop_assert!(is_complete || network.is_reset(), "{}", told());
    for (index, station) in network.stations.iter().enumerate() {
        prop_assert!(
            !network.is_frozen(index),
            "agent {index} keeps it: {}",
            told()
        );
        let Some(there) = &station.agent else {
            continue;
        };
        prop_assert_eq!(
            there.agents.frozen().count(),
            0,
            "agent {}: {}",
            index,
            told()
        );
        for neighbour in there.agents.neighbours() {
            prop_assert_eq!(neighbour.frozen, 0, "agent {}: {}", index, told());
        }
        prop_assert!(station.has_nothing_left(), "agent {index}: {}", told());
    }
    Ok(is_complete)
}

fn made(profile: &'static Profile) -> Made {
    Made {
        agents: AGENTS,
        profile,
        ..Made::default()
    }
}

/// Found by the property below: an agent has died before it wrote down that a freeze is over, and
/// another one after it had frozen the same connection later. Both come back, and the mobile host is
/// with a third one.
#[test]
fn two_freezes_of_one_connection_both_come_to_their_end() {
    let acts = [
        Act::Moved(0, 1),
        Act::CrashOnTheWay(0, Crash::BeforeRemoval),
        Act::Write(1_461),
        Act::Come(1),
        Act::Wait(2_000),
        Act::Leave,
        Act::Route(1),
        Act::CrashOnTheWay(1, Crash::BeforeSending),
        Act::Wait(2_000),
    ];
    for profile in [&AIX_4_3, &SUNOS_5_6, &LINUX_6] {
        for is_told in [false, true] {
            if let Err(error) = tell(profile, is_told, &acts, 2) {
                panic!("{}, told: {is_told}: {error}", profile.name);
            }
        }
    }
}

/// Found by the second property: an agent has died before it wrote down that a freeze is over. It comes
/// back with it, and hears from one neighbour that it is over while the session with the other one
/// begins.
#[test]
fn who_hears_that_a_freeze_is_over_while_a_session_begins_says_so_first() {
    let acts = [
        Act::Come(1),
        Act::Write(1_461),
        Act::CrashOnTheWay(0, Crash::BeforeRemoval),
        Act::Wait(215),
        Act::Say(2, 0, vec![]),
    ];
    assert_in_time(&AIX_4_3, true, &acts, 0);
}

/// Nothing is reset in this story, in which everybody is back in time.
#[track_caller]
fn assert_in_time(profile: &'static Profile, is_told: bool, acts: &[Act], last: usize) {
    if let Err(error) = tell_in_time(profile, is_told, acts, last) {
        panic!("{error}");
    }
}

/// Whether the transfer was completed at the end of the story.
fn tell(
    profile: &'static Profile,
    is_told: bool,
    acts: &[Act],
    last: usize,
) -> Result<bool, TestCaseError> {
    let mut network = Network::new(&made(profile));
    network.is_told_of_mobiles = is_told;
    for act in acts {
        carry_out(&mut network, act);
    }
    come_to_rest(&mut network, last);
    judge(&mut network, acts)
}

/// Carries out `acts` with every absent agent back in time, and expects a complete transfer.
fn tell_in_time(
    profile: &'static Profile,
    is_told: bool,
    acts: &[Act],
    last: usize,
) -> Result<(), TestCaseError> {
    let mut network = Network::new(&made(profile));
    network.is_told_of_mobiles = is_told;
    let mut since = network.now;
    for act in acts {
        carry_out(&mut network, act);
        if network.now.since(since) + Duration::from_secs(12) > SOON {
            for one in 0..AGENTS {
                network.start(one);
                for other in one + 1..AGENTS {
                    network.mend(one, other);
                }
            }
            network.run(Duration::from_millis(50));
            since = network.now;
        }
    }
    assert!(SOON < LOST_AFTER);
    come_to_rest(&mut network, last);
    let is_complete = judge(&mut network, acts)?;
    prop_assert!(
        is_complete,
        "{:?}: {:?} after {acts:?}",
        network.errors,
        network.told
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_transfer_is_completed_or_reset_at_both_ends(
        profile in profile(),
        is_told in any::<bool>(),
        acts in proptest::collection::vec(act(), 1..40),
        last in 0..AGENTS,
    ) {
        tell(profile, is_told, &acts, last)?;
    }

    /// As long as everybody is back in time, and keeps to the protocol, nothing is reset.
    #[test]
    fn nothing_is_reset_for_what_is_over_in_time(
        profile in profile(),
        is_told in any::<bool>(),
        acts in proptest::collection::vec(act(), 1..25),
        last in 0..AGENTS,
    ) {
        tell_in_time(profile, is_told, &acts, last)?;
    }
}
