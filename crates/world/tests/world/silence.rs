//! Outages that nobody tells of: how soon a transfer goes on, and from which side that can be known.

use crate::support::{DELAY, bulk, interrupted, link, resumed, setup};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_link::Way;
use outlast_tcp::profile::Congestion;
use outlast_world::{Indicators, Outcome, Side, World};

const BYTES: u64 = 4_000_000;
const START: Duration = Duration::from_secs(2);
const ROUND_TRIP: Duration = DELAY.saturating_mul(2);
/// What not being told may cost: the pause between two probes, and half a round trip more than
/// one that is told needs.
const PROMISE: Duration = Duration::from_millis(50);

fn transfer(
    at: [PathMechanismKind; 2],
    congestion: Congestion,
    way: Way,
    length: Duration,
) -> Outcome {
    let mut setup = interrupted(BYTES, way, congestion, START, length);
    setup.mechanisms = at;
    setup.indicators = Indicators::Silence;
    World::new(setup).run()
}

const NONE: [PathMechanismKind; 2] = [PathMechanismKind::None; 2];

fn at(side: Side, mechanism: PathMechanismKind) -> [PathMechanismKind; 2] {
    let mut at = NONE;
    at[side.index()] = mechanism;
    at
}

#[test]
fn a_transfer_resumes_within_a_round_trip_and_the_promise_although_nobody_tells() {
    for congestion in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
        for way in Way::BOTH {
            // Whose data is lost, there is the gateway.
            let sender = Side::reached_by(way).peer();
            for ms in [1_000, 3_000, 10_000, 30_000, 60_000] {
                let length = Duration::from_millis(ms);
                let run = |at| transfer(at, congestion, way, length);
                let held = run(at(sender, PathMechanismKind::Hold));
                let control = run(NONE);
                let case = (congestion, way, ms);
                let (kick, stall) = (resumed(&held.flows[0]), resumed(&control.flows[0]));
                assert!(kick <= ROUND_TRIP + PROMISE, "{case:?}: {kick:?}");
                assert!(stall > 4 * DELAY, "{case:?}: {stall:?}");
            }
        }
    }
}

/// Nobody tells, and the sender hears of what is missing by the answer to a probe. Where its own timer happens
/// to be due at the link's return there is nothing to gain (one case of ten).
#[test]
fn a_sender_without_sack_and_timestamps_ends_sooner_than_unaided() {
    let mut sooner = 0;
    for congestion in [Congestion::Cubic, Congestion::Reno] {
        for ms in [1_000, 3_000, 7_000, 10_000, 30_000] {
            let run = |at| {
                let length = Duration::from_millis(ms);
                let way = Way::ToMobile;
                let mut setup = interrupted(BYTES, way, congestion, START, length);
                for stack in &mut setup.flows[0].stacks {
                    (stack.sack, stack.timestamps) = (Some(false), Some(false));
                }
                setup.mechanisms = at;
                setup.indicators = Indicators::Silence;
                World::new(setup).run()
            };
            let helped = run(at(Side::Fixed, PathMechanismKind::Auto));
            let control = run(NONE);
            let case = (congestion, ms);
            let (kick, ended) = (resumed(&helped.flows[0]), helped.ended);
            assert!(kick <= ROUND_TRIP + PROMISE, "{case:?}: {kick:?}");
            let most = control.ended + Duration::from_millis(200);
            assert!(ended < most, "{case:?}: {ended:?}");
            sooner += u32::from(ended < control.ended);
        }
    }
    assert!(sooner >= 9, "{sooner} of 10");
}

#[test]
fn other_mechanisms_hear_of_it_as_of_any_outage() {
    let total = |mechanism| {
        let lengths = [4, 10, 20].map(Duration::from_secs);
        let resumes = lengths.map(|length| {
            let at = at(Side::Fixed, mechanism);
            resumed(&transfer(at, Congestion::Cubic, Way::ToMobile, length).flows[0])
        });
        resumes.iter().sum::<Duration>()
    };
    let stall = total(PathMechanismKind::None);
    for mechanism in [
        PathMechanismKind::RetransmissionCache,
        PathMechanismKind::SmartLink(Level::Four),
    ] {
        let kick = total(mechanism);
        assert!(4 * kick < stall, "{mechanism}: {kick:?}, not {stall:?}");
    }
}

#[test]
fn a_gateway_that_only_hears_the_sender_cannot_know_of_its_silence() {
    // An upload, and the gateway at the fixed side: what is lost comes from beyond the link, and
    // nothing that the gateway passes is owed an answer.
    let length = Duration::from_secs(10);
    let run = |at| transfer(at, Congestion::Cubic, Way::ToFixed, length);
    let control = run(NONE);
    let far = run(at(Side::Fixed, PathMechanismKind::Hold));
    assert_eq!(resumed(&far.flows[0]), resumed(&control.flows[0]));
    assert_eq!(far.counts.resent, 0);
}

#[test]
fn a_transfer_that_is_not_interrupted_is_never_suspected() {
    for way in Way::BOTH {
        let run = |mechanism| {
            let mut setup = setup(link(), bulk(BYTES, way));
            setup.mechanisms = [mechanism; 2];
            setup.indicators = Indicators::Silence;
            World::new(setup).run()
        };
        let (plain, held) = (run(PathMechanismKind::None), run(PathMechanismKind::Hold));
        assert_eq!(plain.flows, held.flows);
        for gateway in held.gateways.iter().flatten() {
            assert_eq!((gateway.silences, gateway.probes), (0, 0));
        }
    }
}
