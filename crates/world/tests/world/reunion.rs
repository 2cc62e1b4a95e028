//! Thousands of connections behind one gateway come back at once.
//!
//! Each shows something new once a second, when its mobile has asked for it (Linux 6 at both ends,
//! two segments at a time). So at the link's return every one of them owes two updates: the one that
//! was on its way, and what has changed since, for which its mobile asks as soon as it has the first.
//! The link needs its time for this backlog whatever anybody does. A fair share of it is: nobody
//! waits for longer than all of it takes, and a round trip.

use crate::support::{DELAY, outage};
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{DropReason, LinkConfig, PipeConfig, Way};
use outlast_world::trace::{Origin, TracedPacket};
use outlast_world::{FlowSetup, Outcome, Recording, Setup, Stack, Workload, World};

/// All of them where the compiler optimises.
const CONNECTIONS: u64 = if cfg!(debug_assertions) { 500 } else { 5_000 };
/// Of the link's rate, what each connection has for itself, in bits per second.
const EACH: u64 = 40_000;
const UPDATE: u64 = 2_800;
/// The segments of an update, as IP packets with timestamps.
const UPDATE_ON_LINK: u64 = UPDATE + 2 * 52;
const START: Duration = Duration::from_secs(10);

fn rate() -> BitRate {
    BitRate::from_bits_per_second(CONNECTIONS * EACH).expect("not zero")
}

fn run(mechanism: PathMechanismKind, length: Duration) -> Outcome {
    let pipe = PipeConfig {
        rate: Some(rate()),
        delay: DELAY,
        queue: usize::try_from(CONNECTIONS / 2).expect("few"),
        ..PipeConfig::default()
    };
    let workload = Workload::Interactive {
        interval: Duration::from_secs(1),
        update: ByteCount(UPDATE),
        request: ByteCount(40),
        duration: START + length + Duration::from_secs(40),
    };
    let flows = (0..CONNECTIONS).map(|number| FlowSetup {
        // Spread over the second that they all have in common.
        begin: Duration::from_micros(number * 1_000_000 / CONNECTIONS),
        workload,
        stacks: [Stack::default(); 2],
    });
    let mut setup = Setup {
        flows: flows.collect(),
        mechanisms: [mechanism; 2],
        deadline: Duration::from_secs(200),
        recording: Recording {
            traced_packets: Some(120 * usize::try_from(CONNECTIONS).expect("few")),
            ..Recording::default()
        },
        ..Setup::new(LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            seed: 1,
            ..LinkConfig::default()
        })
    };
    setup.link.outages = outage(START, length);
    World::new(setup).run()
}

/// The waits of all connections in order; `None` if one did not resume.
fn waits(outcome: &Outcome) -> Option<Vec<Duration>> {
    let mut waits = Vec::new();
    for flow in &outcome.flows {
        waits.push((*flow.resumed.first()?)?);
    }
    waits.sort();
    Some(waits)
}

#[test]
fn all_resume_and_none_waits_for_more_than_its_share() {
    let length = Duration::from_secs(10);
    let control = run(PathMechanismKind::None, length);
    let held = run(PathMechanismKind::Hold, length);
    let round_trip = 2 * DELAY;
    let backlog = rate().time_for(ByteCount(CONNECTIONS * 2 * UPDATE_ON_LINK));
    let waits = waits(&held).expect("every connection resumes");
    assert_eq!(waits.len() as u64, CONNECTIONS);
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    let unaided = self::waits(&control);
    let unaided = unaided.map(|waits| (waits[waits.len() / 2], waits[waits.len() - 1]));
    let drops = held.link[0].dropped(DropReason::QueueFull);
    println!(
        "{CONNECTIONS} connections, backlog of {backlog:?}: median {median:?}, longest {longest:?}, \
         {drops} packets dropped; unaided: {unaided:?}"
    );
    assert!(
        longest <= backlog + round_trip,
        "{longest:?} of {backlog:?}"
    );
    // Without help somebody waits for a timeout that has doubled several times.
    assert!(unaided.is_none_or(|(_, longest)| longest > 4 * (backlog + round_trip)));
    assert!(held.flows.iter().all(|flow| flow.lost.is_none()));
    assert_paced(&held);
}

/// What the gateway sends towards the mobiles keeps to the link's rate and the quarter above it that
/// keeps the link busy, in any tenth of a second.
fn assert_paced(outcome: &Outcome) {
    let trace = outcome.trace.as_ref().expect("it was asked for");
    let is_resent = |packet: &&TracedPacket| {
        packet.way == Way::ToMobile && matches!(packet.origin, Origin::Resent(_))
    };
    let resent: Vec<_> = trace.packets().iter().filter(is_resent).collect();
    assert!(
        resent.len() as u64 >= CONNECTIONS,
        "{} resent",
        resent.len()
    );
    let window = Duration::from_millis(100);
    let most = rate().bits_per_second() / 8 / 10 * 5 / 4 + 12 * 1_500;
    let (mut first, mut bytes, mut worst) = (0, 0, 0);
    for packet in &resent {
        bytes += u64::from(packet.length);
        while packet.at.since(resent[first].at) >= window {
            bytes -= u64::from(resent[first].length);
            first += 1;
        }
        worst = worst.max(bytes);
    }
    assert!(worst <= most, "{worst} bytes, {most} allowed");
    assert!(
        worst > most / 2,
        "{worst} bytes: the pace was never put to the test"
    );
}
