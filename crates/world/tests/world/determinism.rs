//! Same setup, same run: results, traces and captures, on any thread.

use crate::support::{bulk, link, setup, with};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{OutageProcess, Way};
use outlast_world::{Outcome, Recording, Setup, World};
use std::thread;

fn eventful(seed: u64) -> Setup {
    let mut link = link();
    link.seed = seed;
    link.outages = OutageProcess::Exponential {
        up: Duration::from_millis(400),
        down: Duration::from_millis(300),
    };
    for pipe in [&mut link.to_mobile, &mut link.to_fixed] {
        (pipe.loss, pipe.duplicate, pipe.reorder) = (0.01, 0.01, 0.01);
    }
    let mut setup = with(
        setup(link, bulk(400_000, Way::ToMobile)),
        PathMechanismKind::Hold,
    );
    setup.recording = Recording {
        traced_packets: Some(100_000),
        captures: true,
        variables: true,
    };
    setup
}

fn run(seed: u64) -> Outcome {
    World::new(eventful(seed)).run()
}

#[test]
fn the_same_twice_and_on_several_threads() {
    let first = run(7);
    assert!(first.flows[0].is_complete);
    assert!(
        first
            .captures
            .as_ref()
            .is_some_and(|[fixed, _]| fixed.len() > 400_000)
    );
    assert!(first == run(7), "on the same thread");
    thread::scope(|scope| {
        let others: Vec<_> = (0..3).map(|_| scope.spawn(|| run(7))).collect();
        for other in others {
            assert!(
                first == other.join().expect("no panic"),
                "on another thread"
            );
        }
    });
}

#[test]
fn another_seed_is_another_run() {
    assert!(run(1).captures != run(2).captures);
}

#[test]
fn what_is_recorded_changes_nothing() {
    let recorded = run(3);
    let mut setup = eventful(3);
    setup.recording = Recording::default();
    let plain = World::new(setup).run();
    assert_eq!(plain.flows, recorded.flows);
    assert_eq!(
        (plain.ended, plain.events),
        (recorded.ended, recorded.events)
    );
    assert!(plain.trace.is_none() && plain.captures.is_none() && plain.variables.is_none());
}
