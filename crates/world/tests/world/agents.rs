//! Host agents restart transfers when the link is back; without them the same transfers stall.

use crate::support::{bulk, flow, interrupted, link, outage, resumed};
use outlast_base::time::Duration;
use outlast_host::Mechanism;
use outlast_link::Way;
use outlast_tcp::profile::{BSD_4_3_TAHOE, Congestion};
use outlast_world::{FlowOutcome, Outcome, Setup, Stack, World};

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// A round trip, and 100 ms.
const AT_ONCE: Duration = Duration::from_millis(150);
const NOBODY: [Option<Mechanism>; 2] = [None; 2];
const AT_MOBILE: [Option<Mechanism>; 2] = [None, Some(Mechanism::RetransmissionTrigger)];
const AT_BOTH: [Option<Mechanism>; 2] = [Some(Mechanism::RetransmissionTrigger); 2];
const LENGTHS_S: [u64; 6] = [1, 3, 10, 30, 60, 180];
const CONTROLS: [Congestion; 3] = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];

fn run(agents: [Option<Mechanism>; 2], mut setup: Setup) -> Outcome {
    setup.agents = agents;
    World::new(setup).run()
}

/// From link-up until the receiver has new bytes, for every length, congestion control and SACK.
fn resumes(way: Way, agents: [Option<Mechanism>; 2]) -> Vec<(String, Duration)> {
    let mut all = Vec::new();
    for congestion in CONTROLS {
        for sack in [true, false] {
            for length in LENGTHS_S {
                let start = Duration::from_millis(1_700);
                let length = Duration::from_secs(length);
                let mut setup = interrupted(4_000_000, way, congestion, start, length);
                setup.deadline = Duration::from_secs(1_000);
                for stack in &mut setup.flows[0].stacks {
                    stack.sack = Some(sack);
                }
                let outcome = run(agents, setup);
                let cell = format!("{congestion:?}, SACK {sack}, {length:?}");
                all.push((cell, resumed(&outcome.flows[0])));
            }
        }
    }
    all
}

#[track_caller]
fn assert_stalls(resumes: &[(String, Duration)]) {
    let stalled = resumes.iter().filter(|(_, resumed)| *resumed > 2 * AT_ONCE);
    assert!(stalled.count() * 10 > resumes.len() * 7, "{resumes:?}");
}

#[test]
fn an_upload_resumes_at_once_with_the_agent_at_the_mobile() {
    assert_stalls(&resumes(Way::ToFixed, NOBODY));
    for (cell, resumed) in resumes(Way::ToFixed, AT_MOBILE) {
        // Where only an acknowledgement was lost, the sender takes its timeout for spurious and waits
        // for another one, until the agent looks again.
        let most = AT_ONCE + ROUND_TRIP / 2;
        assert!(resumed <= most, "{cell}: {resumed:?}");
    }
}

#[test]
fn a_download_resumes_at_once_with_agents_at_both_hosts() {
    assert_stalls(&resumes(Way::ToMobile, NOBODY));
    for (cell, resumed) in resumes(Way::ToMobile, AT_BOTH) {
        // The mobile's acknowledgement has to come first.
        assert!(resumed <= AT_ONCE, "{cell}: {resumed:?}");
    }
}

#[test]
fn a_transfer_outlasts_half_an_hour_with_a_user_timeout() {
    let outcome = |agents, user_timeout| {
        let start = Duration::from_secs(1);
        let length = Duration::from_secs(1_800);
        let way = Way::ToFixed;
        let mut setup = interrupted(4_000_000, way, Congestion::Cubic, start, length);
        setup.deadline = Duration::from_secs(4_000);
        for stack in &mut setup.flows[0].stacks {
            stack.user_timeout = user_timeout;
        }
        run(agents, setup)
    };
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
    let lost = outcome(AT_MOBILE, None);
    assert!(
        lost.flows[0].is_given_up(),
        "control: {:?}",
        lost.flows[0].lost
    );
    let kept = outcome(AT_MOBILE, hours(1));
    let resumed = resumed(&kept.flows[0]);
    assert!(resumed <= AT_ONCE, "{resumed:?}");
}

/// A transfer of 4.3BSD-Tahoe with one hand-off, and the pause that it makes.
fn pause(way: Way, agents: [Option<Mechanism>; 2], millis: u64) -> (Duration, FlowOutcome) {
    let length = Duration::from_millis(millis);
    let mut link = link();
    link.outages = outage(Duration::from_millis(2_300), length);
    let stack = Stack {
        profile: &BSD_4_3_TAHOE,
        ..Stack::default()
    };
    let setup = Setup {
        flows: vec![flow(bulk(2_000_000, way), stack)],
        ..Setup::new(link)
    };
    let outcome = run(agents, setup);
    let flow = outcome.flows[0].clone();
    (length + resumed(&flow), flow)
}

#[test]
fn fast_retransmission_shortens_a_hand_off_whoever_sends() {
    // Cáceres and Iftode 1995, section IV: the mobile's own data by a local signal, the fixed host's by identical
    // acknowledgements, which an unmodified host obeys.
    let fast = [None, Some(Mechanism::FastRetransmit)];
    for way in [Way::ToFixed, Way::ToMobile] {
        for millis in [150, 1_150] {
            let (without, _) = pause(way, NOBODY, millis);
            let (with, flow) = pause(way, fast, millis);
            let handed_off = Duration::from_millis(millis);
            assert!(with < handed_off + 4 * ROUND_TRIP, "{way:?}: {with:?}");
            assert!(
                without > with + Duration::from_millis(300),
                "{way:?}: {without:?}"
            );
            assert!(flow.sender().timeouts <= 1, "{way:?}");
        }
    }
}

#[test]
fn the_retry_restarts_who_lost_the_first_retransmission() {
    // One loss in three: the control has the same agent, which tries once only, by its counters.
    let mut retried = 0;
    for seed in 0..20 {
        let start = Duration::from_secs(1);
        let length = Duration::from_secs(30);
        let mut setup = interrupted(300_000, Way::ToFixed, Congestion::Cubic, start, length);
        setup.link.seed = seed;
        setup.link.to_fixed.loss = 0.3;
        setup.deadline = Duration::from_secs(900);
        let outcome = run(AT_MOBILE, setup);
        let agent = outcome.agents[1].expect("there is one at the mobile");
        retried += agent.retries;
    }
    assert!(retried > 0);
}

#[test]
fn an_agent_does_nothing_while_nothing_happens() {
    let outcome = |agents| {
        let workload = bulk(2_000, Way::ToFixed);
        let flows = (0..20).map(|_| flow(workload, Stack::default()));
        let setup = Setup {
            flows: flows.collect(),
            ..Setup::new(link())
        };
        let outcome = run(agents, setup);
        (outcome.ended, outcome.events)
    };
    assert_eq!(outcome(AT_BOTH), outcome(NOBODY));
}
