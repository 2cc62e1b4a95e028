//! Every stack gets through, in every workload.

use crate::support::{bulk, flow, link, outage, setup};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::Way;
use outlast_tcp::Error;
use outlast_tcp::profile::Profile;
use outlast_world::{Stack, Workload, World};

fn workloads() -> [Workload; 4] {
    [
        bulk(500_000, Way::ToMobile),
        bulk(500_000, Way::ToFixed),
        Workload::Interactive {
            interval: Duration::from_millis(200),
            update: ByteCount(64),
            request: ByteCount(10),
            duration: Duration::from_secs(20),
        },
        Workload::RequestResponse {
            requests: 20,
            request: ByteCount(200),
            response: ByteCount(10_000),
            think: Duration::from_millis(100),
        },
    ]
}

#[test]
fn every_profile_completes_every_workload_across_an_outage() {
    for profile in Profile::ALL {
        for workload in workloads() {
            let mut link = link();
            link.outages = outage(Duration::from_millis(300), Duration::from_secs(4));
            let mut setup = setup(link, workload);
            let stack = Stack {
                profile,
                ..Stack::default()
            };
            setup.flows = vec![flow(workload, stack)];
            let outcome = World::new(setup).run();
            let flow = &outcome.flows[0];
            let case = (profile.name, workload);
            assert!(flow.is_complete, "{case:?}: {:?}", flow.lost);
            assert_eq!(flow.is_intact(), Some(true), "{case:?}");
            assert!(flow.resumed[0].is_some(), "{case:?}");
            let received = flow.received[flow.receiver.index()];
            match workload {
                Workload::Bulk { bytes, .. } => assert_eq!(received, bytes.0, "{case:?}"),
                Workload::RequestResponse { .. } => assert_eq!(received, 200_000, "{case:?}"),
                Workload::Interactive { .. } => {
                    let updates = flow.updates.expect("it is interactive");
                    assert!((50..100).contains(&updates), "{case:?}: {updates}");
                    assert_eq!(received / 64, updates.into(), "{case:?}");
                }
            }
        }
    }
}

#[test]
fn an_interactive_mobile_sees_every_change_of_a_link_that_is_fast_enough() {
    let outcome = World::new(setup(link(), workloads()[2])).run();
    assert_eq!(
        outcome.flows[0].updates,
        Some(99),
        "the last one is on its way at the end"
    );
}

#[test]
fn the_user_timeout_ends_a_connection_and_the_deadline_a_run() {
    let mut link = link();
    link.outages = outage(Duration::from_secs(1), Duration::from_secs(10_000));
    let mut setup = setup(link, bulk(50_000_000, Way::ToMobile));
    setup.deadline = Duration::from_secs(120);
    let run = World::new(setup.clone()).run();
    assert!(!run.flows[0].is_complete);
    assert_eq!(run.flows[0].lost, None);
    assert_eq!(
        run.ended,
        run.started.expect("it began") + Duration::from_secs(120)
    );

    let patience = Duration::from_secs(20);
    for stack in &mut setup.flows[0].stacks {
        stack.user_timeout = Some(patience);
    }
    let run = World::new(setup).run();
    let lost = run.flows[0].lost.expect("it was given up");
    assert_eq!(lost.error, Error::UserTimeout);
    assert!(run.flows[0].is_given_up());
    assert_eq!(run.flows[0].is_intact(), None);
    let after = run.ended.since(run.started.expect("it began"));
    assert!(after > patience && after < 4 * patience, "{after:?}");
}
