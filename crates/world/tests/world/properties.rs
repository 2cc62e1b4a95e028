//! Whatever happens on the way, the bytes arrive intact or the connection ends with an error, and
//! the world moves on.

use crate::support::{bulk, flow};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_link::{InFlight, LinkConfig, OutageProcess, PipeConfig, RateChange, Way, WhileDown};
use outlast_tcp::Error;
use outlast_tcp::profile::{Congestion, Profile};
use outlast_world::{HopSetup, IpVersion, Pattern, Setup, Stack, TrafficSetup, Workload, World};
use proptest::prelude::*;

/// More than any workload here moves in a second, at the highest rate and with every copy and
/// acknowledgement counted.
const EVENTS_PER_SECOND: u64 = 100_000;
/// More than can follow from one event without time passing: what a gateway keeps may all be sent
/// at once where there is no rate.
const EVENTS_PER_INSTANT: u64 = 50_000;

fn duration(millis: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    millis.prop_map(Duration::from_millis)
}

fn pipe() -> impl Strategy<Value = PipeConfig> {
    let rate = prop_oneof![Just(None), (50_000_u64..20_000_000).prop_map(Some)];
    let damage = || prop_oneof![2 => Just(0.0), 1 => 0.0..0.15_f64];
    (
        rate,
        duration(0..200),
        1_usize..100,
        damage(),
        damage(),
        damage(),
    )
        .prop_map(
            |(rate, delay, queue, loss, duplicate, reorder)| PipeConfig {
                rate: rate.and_then(BitRate::from_bits_per_second),
                delay,
                queue,
                loss,
                duplicate,
                reorder,
            },
        )
}

fn outages() -> impl Strategy<Value = OutageProcess> {
    let (up, down) = (|| duration(20..4_000), || duration(0..8_000));
    prop_oneof![
        Just(OutageProcess::AlwaysUp),
        (up(), down()).prop_map(|(start, length)| OutageProcess::Single { start, length }),
        (up(), down()).prop_map(|(up, down)| OutageProcess::Exponential { up, down }),
        (up(), up(), down()).prop_map(|(first, up, down)| OutageProcess::Periodic {
            first,
            up,
            down
        }),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    let way = prop_oneof![Just(Way::ToMobile), Just(Way::ToFixed)];
    prop_oneof![
        3 => (1_u64..150_000, way).prop_map(|(bytes, way)| bulk(bytes, way)),
        1 => (1_u64..3_000, 1_u64..300).prop_map(|(update, request)| Workload::Interactive {
            interval: Duration::from_millis(200),
            update: ByteCount(update),
            request: ByteCount(request),
            duration: Duration::from_secs(10),
        }),
        1 => (1_u32..10, 1_u64..300, 1_u64..20_000, duration(0..300)).prop_map(
            |(requests, request, response, think)| Workload::RequestResponse {
                requests,
                request: ByteCount(request),
                response: ByteCount(response),
                think,
            }
        ),
    ]
}

fn stack() -> impl Strategy<Value = Stack> {
    let switch = || prop_oneof![2 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let congestion = prop_oneof![
        Just(None),
        Just(Some(Congestion::Reno)),
        Just(Some(Congestion::Cubic)),
        Just(Some(Congestion::Bbr)),
    ];
    let profile = prop_oneof![1 => Just(7), 1 => 0..Profile::ALL.len()];
    (profile, congestion, switch(), switch()).prop_map(|(profile, congestion, sack, timestamps)| {
        Stack {
            profile: Profile::ALL[profile],
            congestion,
            sack,
            timestamps,
            ..Stack::default()
        }
    })
}

fn mechanism() -> impl Strategy<Value = PathMechanismKind> {
    prop_oneof![
        2 => Just(PathMechanismKind::None),
        1 => Just(PathMechanismKind::SmartLink(Level::One)),
        1 => Just(PathMechanismKind::SmartLink(Level::Two)),
        1 => Just(PathMechanismKind::SmartLink(Level::Three)),
        1 => Just(PathMechanismKind::SmartLink(Level::Four)),
        3 => Just(PathMechanismKind::Hold),
        1 => Just(PathMechanismKind::RetransmissionCache),
        2 => Just(PathMechanismKind::ZeroWindowAck),
        2 => Just(PathMechanismKind::AcknowledgeAhead),
    ]
}

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let rate =
        || prop::option::of((100_000..20_000_000_u64).prop_map(BitRate::from_bits_per_second));
    let change = (0..3_000_u64, rate(), rate()).prop_map(|(at, to_mobile, to_fixed)| RateChange {
        at: Duration::from_millis(at),
        to_mobile: to_mobile.flatten(),
        to_fixed: to_fixed.flatten(),
    });
    let fates = (any::<bool>(), any::<bool>(), prop::option::of(change));
    (pipe(), pipe(), outages(), fates, any::<u64>()).prop_map(
        |(to_mobile, to_fixed, outages, (lost, queued, change), seed)| LinkConfig {
            to_mobile,
            to_fixed,
            outages,
            in_flight: if lost {
                InFlight::Lost
            } else {
                InFlight::Delivered
            },
            while_down: if queued {
                WhileDown::Queued
            } else {
                WhileDown::Dropped
            },
            rate_changes: change.into_iter().collect(),
            seed,
        },
    )
}

/// A further link, mostly one that does not go away: several that do rarely are up together.
fn hop() -> impl Strategy<Value = HopSetup> {
    (any_link(), [mechanism(), mechanism()], 0..4).prop_map(|(mut link, mechanisms, dice)| {
        if dice > 0 {
            link.outages = OutageProcess::AlwaysUp;
        }
        HopSetup { link, mechanisms }
    })
}

fn traffic() -> impl Strategy<Value = TrafficSetup> {
    let pattern = (0..3, 1_000..2_000_000_u64, 1..500_u64, 1..500_u64);
    let pattern = pattern.prop_map(|(kind, bits, on, off)| {
        let rate = BitRate::from_bits_per_second(bits).expect("not zero");
        match kind {
            0 => Pattern::Constant { rate },
            1 => Pattern::Poisson { rate },
            _ => Pattern::OnOff {
                rate,
                on: Duration::from_millis(on),
                off: Duration::from_millis(off),
            },
        }
    });
    (0..3_usize, any::<bool>(), pattern, 28..1_500_u16).prop_map(|(link, down, pattern, packet)| {
        TrafficSetup {
            link,
            way: if down { Way::ToMobile } else { Way::ToFixed },
            pattern,
            packet,
            begin: Duration::ZERO,
            end: Some(Duration::from_secs(60)),
        }
    })
}

fn any_setup() -> impl Strategy<Value = Setup> {
    let flows = proptest::collection::vec((workload(), [stack(), stack()]), 1..4);
    let mechanisms = [mechanism(), mechanism()];
    let hops = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(hop(), 1..3),
    ];
    let traffic = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(traffic(), 1..3),
    ];
    let more = (hops, traffic);
    (any_link(), flows, mechanisms, any::<bool>(), more).prop_map(
        |(link, flows, mechanisms, six, (hops, traffic))| Setup {
            mechanisms,
            hops,
            traffic,
            flows: flows
                .into_iter()
                .map(|(workload, stacks)| outlast_world::FlowSetup {
                    stacks,
                    ..flow(workload, Stack::default())
                })
                .collect(),
            ip: if six { IpVersion::V6 } else { IpVersion::V4 },
            deadline: Duration::from_secs(120),
            ..Setup::new(link)
        },
    )
}

/// Runs `world` and sees that time passes.
fn run(mut world: World) -> Result<outlast_world::Outcome, TestCaseError> {
    let (mut at, mut events_before) = (Instant::ZERO, 0);
    while !world.is_over() {
        world.step();
        prop_assert!(world.now() >= at, "time does not go back");
        if world.now() > at {
            (at, events_before) = (world.now(), world.events());
        }
        let at_once = world.events() - events_before;
        prop_assert!(at_once < EVENTS_PER_INSTANT, "{at_once} events at {at}");
    }
    Ok(world.finish())
}

proptest! {
    #[test]
    fn every_flow_ends_intact_or_with_an_error_or_at_the_deadline(setup in any_setup()) {
        let deadline = setup.deadline;
        let outcome = run(World::new(setup))?;
        let seconds = 1 + outcome.ended.as_nanos() / 1_000_000_000;
        prop_assert!(
            outcome.events < seconds * EVENTS_PER_SECOND,
            "{} events in {seconds} s",
            outcome.events
        );
        for flow in &outcome.flows {
            prop_assert!(flow.is_intact() != Some(false), "{:?}", flow.lost);
            let is_wrong = |error| matches!(error, Error::WrongData { .. } | Error::Reset);
            prop_assert!(!flow.lost.is_some_and(|lost| is_wrong(lost.error)), "{:?}", flow.lost);
            let is_late = outcome.ended >= outcome.started.unwrap_or(Instant::ZERO) + deadline;
            prop_assert!(flow.is_complete || flow.lost.is_some() || is_late);
        }
    }
}
