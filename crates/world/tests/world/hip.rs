//! HIP between the hosts: connections go on under another address, and resume when readdressing ends.

use crate::support::{bulk, setup};
use outlast_base::random::derived_seed;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_host::Mechanism::RetransmissionTrigger;
use outlast_link::{LinkConfig, OutageProcess, Way};
use outlast_wire::pcapng::{Block, Reader};
use outlast_world::{Handoff, HipSetup, IpVersion, Outcome, Recording, RoamingSetup, Setup, World};
use std::collections::BTreeSet;

const SECOND: Duration = Duration::from_secs(1);
/// Of the link.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// More than the link carries before the outage.
const BYTES: u64 = 400_000;

/// For what waited at the mobile host, which goes first.
const SLACK: Duration = Duration::from_millis(50);

const HIP: HipSetup = HipSetup {
    ip: IpVersion::V4,
    has_credit: true,
    address_delay: Duration::ZERO,
    waiting: 64,
};

/// The link of `support` at a fifth of its rate: sealing is slow without optimization.
fn link() -> LinkConfig {
    let mut link = crate::support::link();
    for pipe in [&mut link.to_mobile, &mut link.to_fixed] {
        pipe.rate = BitRate::from_bits_per_second(2_000_000);
        pipe.queue = 15;
    }
    link
}

/// How many seeds a test goes through: `PROPTEST_CASES`, or few.
fn seeds() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    cases.map_or(2, |cases| cases.parse().expect("a number"))
}

/// A transfer that one outage of `length` interrupts after a second, with agents on both hosts.
fn interrupted(way: Way, length: Duration, hip: HipSetup) -> Setup {
    let mut link = link();
    link.outages = OutageProcess::Single {
        start: SECOND,
        length,
    };
    Setup {
        agents: [Some(RetransmissionTrigger); 2],
        hip: Some(hip),
        ip: IpVersion::V6,
        mtu: 1_440,
        ..setup(link, bulk(BYTES, way))
    }
}

fn resumed(outcome: &Outcome) -> Duration {
    let flow = &outcome.flows[0];
    assert!(flow.is_complete, "{outcome:?}");
    flow.resumed[0].expect("the transfer went on")
}

/// The protocol numbers of IPv4 in a capture.
fn protocols(capture: &[u8]) -> BTreeSet<u8> {
    let blocks = Reader::new(capture).map(|block| block.expect("what was written can be read"));
    let packets = blocks.filter_map(|block| match block {
        Block::Packet(packet) => Some(packet.data[9]),
        _ => None,
    });
    packets.collect()
}

#[test]
fn a_transfer_resumes_within_three_round_trips_at_another_address() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for way in [Way::ToMobile, Way::ToFixed] {
            let outcome = World::new(interrupted(way, 20 * SECOND, HipSetup { ip, ..HIP })).run();
            let after = resumed(&outcome);
            assert!(after < 3 * ROUND_TRIP + SLACK, "{ip:?} {way:?}: {after:?}");
            let hip = outcome.hip.expect("the hosts speak HIP");
            assert_eq!(hip.readdressings.len(), 1, "{hip:?}");
            let took = hip.readdressings[0];
            assert!(took >= ROUND_TRIP && took < 2 * ROUND_TRIP, "{took:?}");
            assert!(hip.strayed > 0 || way == Way::ToFixed, "{hip:?}");
        }
    }
}

#[test]
fn without_agents_it_waits_for_a_timeout() {
    let mut setup = interrupted(Way::ToMobile, 14 * SECOND, HIP);
    setup.agents = [None; 2];
    let after = resumed(&World::new(setup).run());
    assert!(after > SECOND, "{after:?}");
}

#[test]
fn the_address_may_come_later_than_the_link() {
    let hip = HipSetup {
        address_delay: 2 * SECOND,
        ..HIP
    };
    let outcome = World::new(interrupted(Way::ToMobile, 20 * SECOND, hip)).run();
    let after = resumed(&outcome);
    assert!(
        after > 2 * SECOND && after < 2 * SECOND + 3 * ROUND_TRIP,
        "{after:?}"
    );
}

#[test]
fn readdressing_is_repeated_until_it_gets_through_a_link_that_loses_packets() {
    let mut setup = interrupted(Way::ToMobile, 5 * SECOND, HIP);
    for pipe in [&mut setup.link.to_mobile, &mut setup.link.to_fixed] {
        pipe.loss = 0.2;
    }
    for seed in 0..seeds() {
        setup.link.seed = seed;
        let outcome = World::new(setup.clone()).run();
        let hip = outcome.hip.as_ref().expect("the hosts speak HIP");
        assert_eq!(hip.readdressings.len(), 1, "seed {seed}: {hip:?}");
    }
}

#[test]
fn segments_take_more_room_in_esp() {
    let run = |hip: Option<HipSetup>| {
        let mut setup = interrupted(Way::ToMobile, SECOND, HIP);
        setup.hip = hip;
        setup.link.outages = OutageProcess::AlwaysUp;
        setup.recording = Recording {
            captures: true,
            ..Recording::default()
        };
        let outcome = World::new(setup).run();
        assert!(outcome.flows[0].is_complete);
        (
            outcome.link[0].delivered_bytes.0,
            outcome.captures.expect("asked for"),
        )
    };
    let (plain, _) = run(None);
    let (sealed, [capture, _]) = run(Some(HIP));
    // IPv4's header instead of IPv6's, ESP's header, vector, padding, trailer and check value.
    let segments = BYTES / 1_368;
    let more = sealed.saturating_sub(plain);
    assert!(
        (14 * segments..20 * segments).contains(&more),
        "{more} more for {segments}"
    );
    // No header of TCP is to be seen: all packets are HIP or ESP over IPv4.
    let protocols = protocols(&capture);
    assert_eq!(protocols, BTreeSet::from([50, 139]));
}

#[test]
fn it_moves_from_gateway_to_gateway_and_back() {
    let mut second = link();
    second.seed = derived_seed(1, "gateway.2");
    let handoff = |at, to| Handoff {
        at: at * SECOND,
        gap: 2 * SECOND,
        to,
        update: Duration::ZERO,
        forwards: false,
    };
    let roaming = RoamingSetup {
        cells: vec![second],
        home_agent: PathMechanismKind::None,
        handoffs: vec![handoff(1, 1), handoff(4, 0)],
        crashes: Vec::new(),
        mobile_ip: None,
        agents: None,
    };
    let run = |hip: Option<HipSetup>| {
        let setup = Setup {
            roaming: Some(roaming.clone()),
            hip,
            ..interrupted(Way::ToMobile, SECOND, HIP)
        };
        World::new(setup).run()
    };
    let outcome = run(Some(HIP));
    let flow = &outcome.flows[0];
    assert!(flow.is_complete, "{flow:?}");
    assert_eq!(flow.resumed.len(), 2);
    for after in &flow.resumed {
        assert!(
            after.is_some_and(|after| after < 3 * ROUND_TRIP),
            "{flow:?}"
        );
    }
    assert_eq!(
        outcome
            .hip
            .expect("the hosts speak HIP")
            .readdressings
            .len(),
        2
    );
}

#[test]
fn the_same_seed_makes_the_same_run() {
    let run = || World::new(interrupted(Way::ToFixed, 3 * SECOND, HIP)).run();
    assert_eq!(run(), run());
}
