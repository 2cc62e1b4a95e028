//! One transfer of the size that the papers repeat by the thousand: 25 MB over 10 Mbit/s, 25 ms
//! each way and 75 packets, with one outage; and, as the baseline in the same run, the same number
//! of packets moved through a plain queue.
//!
//! ns-3.48, optimised, takes 0.15 s and 93,000 events for such a transfer on the class of machine
//! that the project is measured on. An event here is a packet that came to a host, or a deadline.
//! Where the time goes is told in `docs/simulator-speed.md`.
//!
//! `cargo bench -p outlast-world`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_wire::Packet;
use outlast_world::{FlowSetup, Outcome, Recording, Setup, Stack, Workload, World};
use std::collections::VecDeque;

/// Packets that wait for the link or are on their way in a full window.
const WINDOW: usize = 110;

fn main() {
    divan::main();
}

fn transfer(mechanism: PathMechanismKind, recording: Recording) -> Outcome {
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
        recording,
        ..Setup::new(link)
    })
    .run();
    assert!(outcome.flows[0].is_complete, "{:?}", outcome.flows[0].lost);
    outcome
}

#[divan::bench(args = [PathMechanismKind::None, PathMechanismKind::Hold], sample_count = 50)]
fn bulk_25_mb(bencher: Bencher<'_, '_>, mechanism: PathMechanismKind) {
    let events = transfer(mechanism, Recording::default()).events;
    bencher
        .counter(ItemsCount::new(events))
        .bench(|| transfer(mechanism, Recording::default()));
}

/// With a pcapng file for each end of the link, payload and checksums included.
#[divan::bench(sample_count = 10)]
fn bulk_25_mb_captured(bencher: Bencher<'_, '_>) {
    let recording = Recording {
        captures: true,
        ..Recording::default()
    };
    let events = transfer(PathMechanismKind::None, recording).events;
    bencher
        .counter(ItemsCount::new(events))
        .bench(|| transfer(PathMechanismKind::None, recording));
}

/// The baseline: as many packets as a transfer sends, without anything being done about them.
#[divan::bench(sample_count = 50)]
fn packets_through_a_queue(bencher: Bencher<'_, '_>) {
    let packets = transfer(PathMechanismKind::None, Recording::default())
        .counts
        .sent;
    bencher.counter(ItemsCount::new(packets)).bench_local(|| {
        let mut queue = VecDeque::with_capacity(WINDOW + 1);
        for _ in 0..packets {
            queue.push_back(Box::new(black_box(Packet::default())));
            if queue.len() > WINDOW {
                black_box(queue.pop_front());
            }
        }
    });
}
