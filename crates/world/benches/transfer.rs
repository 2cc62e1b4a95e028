//! One transfer of the size that the papers repeat by the thousand: 25 MB over 10 Mbit/s, 25 ms
//! each way and 75 packets, with one outage, nothing recorded.
//!
//! ns-3.48, optimised, takes 0.15 s and 93,000 events for it on the class of machine that the
//! project is measured on. An event here is a packet that came to a host, or a deadline.

use divan::counter::ItemsCount;
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_core::time::Duration;
use outlast_core::units::{BitRate, ByteCount};
use outlast_link::{LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_world::{FlowSetup, Outcome, Setup, Stack, Workload, World};

fn main() {
    divan::main();
}

fn transfer(mechanism: PathMechanismKind) -> Outcome {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(10_000_000),
        delay: Duration::from_millis(25),
        queue: 75,
        ..PipeConfig::default()
    };
    let link = LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        outages: OutageProcess::Single {
            start: Duration::from_secs(10),
            length: Duration::from_secs(5),
        },
        ..LinkConfig::default()
    };
    let workload = Workload::Bulk {
        bytes: ByteCount(25_000_000),
        way: Way::ToMobile,
    };
    let flow = FlowSetup {
        begin: Duration::ZERO,
        workload,
        stacks: [Stack::default(); 2],
    };
    let outcome = World::new(Setup {
        mechanisms: [mechanism; 2],
        flows: vec![flow],
        ..Setup::new(link)
    })
    .run();
    assert!(outcome.flows[0].is_complete, "{:?}", outcome.flows[0].lost);
    outcome
}

#[divan::bench(args = [PathMechanismKind::None, PathMechanismKind::Hold], sample_count = 50)]
fn bulk_25_mb(bencher: divan::Bencher<'_, '_>, mechanism: PathMechanismKind) {
    let events = transfer(mechanism).events;
    bencher
        .counter(ItemsCount::new(events))
        .bench(|| transfer(mechanism));
}
