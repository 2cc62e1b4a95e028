//! Worlds for tests.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test binary uses a part of the fixture"
)]

use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_tcp::profile::Congestion;
use outlast_world::{FlowOutcome, FlowSetup, Setup, Stack, Workload};

pub const DELAY: Duration = Duration::from_millis(25);

/// 10 Mbit/s, 50 ms there and back, 75 packets.
pub fn link() -> LinkConfig {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(10_000_000),
        delay: DELAY,
        ..PipeConfig::default()
    };
    LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        seed: 1,
        ..LinkConfig::default()
    }
}

/// One outage, counted from the workload's first byte.
pub fn outage(start: Duration, length: Duration) -> OutageProcess {
    OutageProcess::Single { start, length }
}

pub fn bulk(bytes: u64, way: Way) -> Workload {
    Workload::Bulk {
        bytes: ByteCount(bytes),
        way,
    }
}

pub fn flow(workload: Workload, stack: Stack) -> FlowSetup {
    FlowSetup {
        begin: Duration::ZERO,
        workload,
        stacks: [stack; 2],
    }
}

/// A transfer of `bytes` that one outage interrupts, as [`outage`] has it.
pub fn interrupted(
    bytes: u64,
    way: Way,
    congestion: Congestion,
    start: Duration,
    length: Duration,
) -> Setup {
    let mut link = link();
    link.outages = outage(start, length);
    let stack = Stack {
        congestion: Some(congestion),
        ..Stack::default()
    };
    Setup {
        flows: vec![flow(bulk(bytes, way), stack)],
        ..Setup::new(link)
    }
}

/// What a transfer came to that one outage interrupted: from link-up until its receiver had something
/// new.
#[track_caller]
pub fn resumed(flow: &FlowOutcome) -> Duration {
    assert!(flow.is_complete, "{:?}", flow.lost);
    assert_eq!(flow.is_intact(), Some(true));
    let [Some(resumed)] = flow.resumed[..] else {
        panic!("one outage and one return, not {:?}", flow.resumed)
    };
    resumed
}

/// `workload` over `link` with Linux 6 at both ends.
pub fn setup(link: LinkConfig, workload: Workload) -> Setup {
    Setup {
        flows: vec![flow(workload, Stack::default())],
        ..Setup::new(link)
    }
}

pub fn with(mut setup: Setup, mechanism: PathMechanismKind) -> Setup {
    setup.mechanisms = [mechanism; 2];
    setup
}
