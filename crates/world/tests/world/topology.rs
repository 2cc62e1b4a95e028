//! Several links in a row, several flows on one, and the traffic of others.

use crate::support::{bulk, flow, link, outage, setup, with};
use outlast_base::random::derived_seed;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{DropReason, LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_tcp::profile::Congestion;
use outlast_wire::Transport;
use outlast_wire::pcapng::{Block, Reader};
use outlast_world::{
    FlowSetup, HopSetup, Outcome, Pattern, Recording, Setup, Side, Stack, TrafficSetup, Workload,
    World,
};

const SECOND: Duration = Duration::from_secs(1);

fn rate(bits_per_second: u64) -> BitRate {
    BitRate::from_bits_per_second(bits_per_second).expect("not zero")
}

/// A link without outages, the same both ways.
fn plain(number: usize, bits_per_second: u64, delay: Duration) -> LinkConfig {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(bits_per_second),
        delay,
        ..PipeConfig::default()
    };
    LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        seed: derived_seed(1, &format!("hop.{number}")),
        ..LinkConfig::default()
    }
}

fn hop(link: LinkConfig) -> HopSetup {
    HopSetup {
        link,
        mechanisms: [PathMechanismKind::None; 2],
    }
}

/// A download over the usual link and the `hops` behind it.
fn chain(bytes: u64, hops: Vec<HopSetup>) -> Setup {
    Setup {
        hops,
        ..setup(link(), bulk(bytes, Way::ToMobile))
    }
}

fn run(setup: Setup) -> Outcome {
    let outcome = World::new(setup).run();
    for flow in &outcome.flows {
        assert_eq!(flow.is_intact(), Some(true), "{:?}", flow.lost);
    }
    outcome
}

fn elapsed(outcome: &Outcome) -> f64 {
    let started = outcome.started.expect("something was sent");
    outcome.ended.since(started).as_secs_f64()
}

#[test]
fn the_delays_of_a_chain_add_up() {
    // One byte: the first of a chain of 25 ms + 10 ms + 40 ms takes as long to the far end.
    let hops = [10, 40].map(|millis| {
        let mut free = plain(millis, 1, Duration::from_millis(millis as u64));
        (free.to_mobile.rate, free.to_fixed.rate) = (None, None);
        hop(free)
    });
    let mut setup = chain(1, hops.to_vec());
    (setup.link.to_mobile.rate, setup.link.to_fixed.rate) = (None, None);
    for (way, count) in [(Way::ToMobile, 1), (Way::ToFixed, 1)] {
        setup.flows = vec![flow(bulk(1, way), Stack::default())];
        let outcome = run(setup.clone());
        assert!(
            (elapsed(&outcome) - 0.075).abs() < 1e-9,
            "{way}: {}",
            elapsed(&outcome)
        );
        for hop in &outcome.hops {
            assert!(hop.link.iter().all(|pipe| pipe.delivered >= count), "{way}");
        }
    }
}

#[test]
fn the_slowest_link_governs_wherever_it_stands() {
    // 2 MB with headers at 2 Mbit/s take 8.3 s; at the link's own 10 Mbit/s a fifth.
    let control = run(chain(2_000_000, Vec::new()));
    assert!(elapsed(&control) < 2.5, "{}", elapsed(&control));
    let fast = || hop(plain(1, 100_000_000, Duration::from_millis(1)));
    let slow = || hop(plain(2, 2_000_000, Duration::from_millis(1)));
    for hops in [vec![slow()], vec![fast(), slow()], vec![slow(), fast()]] {
        let took = elapsed(&run(chain(2_000_000, hops)));
        assert!((8.2..10.5).contains(&took), "{took} s");
    }
}

#[test]
fn what_a_slow_hop_cannot_take_is_dropped_there() {
    let mut slow = plain(1, 2_000_000, Duration::from_millis(1));
    slow.to_mobile.queue = 5;
    let outcome = run(chain(2_000_000, vec![hop(slow)]));
    let full = |link: &[outlast_link::Counters; 2]| link[0].dropped(DropReason::QueueFull);
    assert!(full(&outcome.hops[0].link) > 0);
    assert_eq!(full(&outcome.link), 0, "the link behind it has room");
}

#[test]
fn two_equal_flows_share_the_bottleneck() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let stack = Stack {
            congestion: Some(congestion),
            ..Stack::default()
        };
        let mut setup = chain(0, Vec::new());
        setup.deadline = 60 * SECOND;
        setup.flows = (0..2)
            .map(|number| FlowSetup {
                begin: number * SECOND / 10,
                ..flow(bulk(1_000_000_000, Way::ToMobile), stack)
            })
            .collect();
        let outcome = World::new(setup).run();
        let got = [0, 1].map(|flow: usize| outcome.flows[flow].received[Side::Mobile.index()]);
        let [first, second] = got.map(|bytes| f64::from(u32::try_from(bytes).expect("75 MB")));
        // Jain's index of two flows: 1 is equal, 0.5 is all for one.
        let fairness = (first + second).powi(2) / (2.0 * (first.powi(2) + second.powi(2)));
        assert!(fairness > 0.9, "{congestion:?}: {got:?}");
        // Together they fill the link: 10 Mbit/s for 60 s, without headers.
        let used = (first + second) / (10e6 / 8.0 * 60.0);
        assert!(used > 0.85, "{congestion:?}: {used}");
    }
}

/// A source that takes 60 % of the downlink.
fn neighbour(link: usize, pattern: Pattern) -> TrafficSetup {
    TrafficSetup {
        link,
        way: Way::ToMobile,
        pattern,
        packet: 1_000,
        begin: Duration::ZERO,
        end: None,
    }
}

#[test]
fn cross_traffic_takes_its_share_and_fills_the_queue() {
    let control = run(chain(3_000_000, Vec::new()));
    let rate = rate(6_000_000);
    let on_off = Pattern::OnOff {
        rate: self::rate(9_000_000),
        on: SECOND / 5,
        off: SECOND / 10,
    };
    for pattern in [
        Pattern::Constant { rate },
        Pattern::Poisson { rate },
        on_off,
    ] {
        let mut setup = chain(3_000_000, Vec::new());
        setup.traffic = vec![neighbour(0, pattern)];
        let outcome = run(setup);
        let slower = elapsed(&outcome) / elapsed(&control);
        // 4 of 10 Mbit/s are left, which makes it 2.5 times: less where datagrams meet a full queue,
        // more where the transfer has to recover from its own losses.
        assert!((1.7..6.0).contains(&slower), "{pattern:?}: {slower} times");
        let [traffic] = outcome.traffic[..] else {
            panic!("one source")
        };
        let lost = traffic.sent - traffic.received;
        let offered = traffic.sent as f64 * 8_000.0 / outcome.ended.as_secs_f64();
        assert!(
            (0.8..1.25).contains(&(offered / 6e6)),
            "{pattern:?}: {offered}"
        );
        let dropped = outcome.link[0].dropped(DropReason::QueueFull);
        assert!(dropped > 0 && lost <= dropped + 100, "{lost} of {dropped}");
    }
}

#[test]
fn waiting_behind_cross_traffic_takes_as_long_as_theory_says() {
    const EXCHANGES: u32 = 4_000;
    let exchanges = |load: u64| {
        let mut setup = chain(0, Vec::new());
        setup.deadline = 1_000 * SECOND;
        let workload = Workload::RequestResponse {
            requests: EXCHANGES,
            request: ByteCount(10),
            response: ByteCount(10),
            think: Duration::ZERO,
        };
        setup.flows = vec![flow(workload, Stack::default())];
        let pattern = BitRate::from_bits_per_second(load * 100_000)
            .map(|rate| neighbour(0, Pattern::Poisson { rate }));
        setup.traffic = pattern.into_iter().collect();
        elapsed(&run(setup)) / f64::from(EXCHANGES)
    };
    let alone = exchanges(0);
    for percent in [50, 80] {
        let waited = exchanges(percent) - alone;
        // Pollaczek and Khinchine's mean wait of an M/D/1 queue; 1000 bytes take 0.8 ms.
        let load = f64::from(u32::try_from(percent).expect("a share")) / 100.0;
        let expected = load * 0.000_8 / (2.0 * (1.0 - load));
        let error = (waited - expected).abs() / expected;
        assert!(error < 0.1, "{percent} %: {waited} s, not {expected} s");
    }
}

#[test]
fn cross_traffic_of_one_link_is_not_on_another() {
    let fast = || hop(plain(1, 10_000_000, Duration::from_millis(1)));
    let mut setup = chain(500_000, vec![fast(), fast()]);
    let pattern = Pattern::Constant {
        rate: rate(1_000_000),
    };
    setup.traffic = vec![neighbour(2, pattern)];
    setup.recording.captures = true;
    let outcome = run(setup);
    let datagrams = |capture: &[u8]| {
        let blocks = Reader::new(capture).filter_map(Result::ok);
        let is_udp = |block: &Block<'_>| match block {
            Block::Packet(packet) => {
                let packet = outlast_wire::Packet::parse(packet.data.to_vec().into());
                let packet = packet.expect("an IP packet");
                assert!(packet.checksums_ok());
                matches!(packet.header().transport, Transport::Udp(_))
            }
            _ => false,
        };
        blocks.filter(is_udp).count() as u64
    };
    let captures = |captures: &Option<[Vec<u8>; 2]>| {
        let captures = captures.as_ref().expect("asked for");
        captures.each_ref().map(|capture| datagrams(capture))
    };
    assert_eq!(captures(&outcome.captures), [0, 0]);
    assert_eq!(captures(&outcome.hops[0].captures), [0, 0]);
    let [sent, received] = captures(&outcome.hops[1].captures);
    assert_eq!(sent, outcome.traffic[0].sent);
    assert_eq!(received, outcome.traffic[0].received);
    assert!(received > 20);
}

#[test]
fn a_source_of_a_link_that_is_not_there_harms_nobody() {
    let mut setup = chain(500_000, Vec::new());
    let control = run(setup.clone());
    let pattern = Pattern::Constant {
        rate: rate(1_000_000),
    };
    setup.traffic = vec![neighbour(7, pattern)];
    let outcome = run(setup);
    assert_eq!(outcome.flows, control.flows);
    assert_eq!(outcome.traffic[0].received, 0);
}

/// The usual link, and behind it one that goes down from 1 s to 6 s.
fn with_an_interrupted_hop() -> Setup {
    let mut away = plain(1, 20_000_000, Duration::from_millis(5));
    away.outages = outage(SECOND, 5 * SECOND);
    chain(4_000_000, vec![hop(away)])
}

#[test]
fn a_gateway_in_the_middle_serves_its_own_link() {
    let control = run(with_an_interrupted_hop());
    let mut helped = with_an_interrupted_hop();
    helped.hops[0].mechanisms = [PathMechanismKind::Hold; 2];
    let helped = run(helped);
    assert_eq!(helped.counts.resent, 0, "the mobile's link has no gateway");
    assert!(helped.hops[0].counts.resent > 0);
    // 3.3 s of transfer and 5 s of outage: hold costs a round trip, the back-off seconds.
    assert!(elapsed(&helped) < 8.7, "{}", elapsed(&helped));
    assert!(
        elapsed(&control) > elapsed(&helped) + 0.5,
        "{}",
        elapsed(&control)
    );
}

#[test]
fn the_outage_of_a_hop_is_unseen_by_the_gateways_of_another_link() {
    let control = run(with_an_interrupted_hop());
    let outcome = run(with(with_an_interrupted_hop(), PathMechanismKind::Hold));
    assert_eq!(outcome.counts.taken, 0);
    assert_eq!(outcome.counts.resent + outcome.counts.rereceived, 0);
    assert_eq!(outcome.ended, control.ended);
    assert_eq!(outcome.flows, control.flows);
    assert!(
        outcome.flows[0].resumed.is_empty(),
        "the mobile's link did not go away"
    );
}

#[test]
fn the_outages_of_all_links_count_from_the_first_byte() {
    let mut setup = with_an_interrupted_hop();
    setup.link.outages = outage(SECOND, 5 * SECOND);
    setup.mechanisms = [PathMechanismKind::Hold; 2];
    setup.hops[0].mechanisms = [PathMechanismKind::Hold; 2];
    let outcome = run(setup);
    // Both come back at one moment: what the hop kept enters the link 5 ms later.
    let resumed = outcome.flows[0].resumed[0].expect("the transfer went on");
    assert!(resumed <= Duration::from_millis(32), "{resumed:?}");
}

/// Everything at once.
fn eventful(seed: u64) -> Setup {
    let lossy = |mut link: LinkConfig| {
        for pipe in [&mut link.to_mobile, &mut link.to_fixed] {
            (pipe.loss, pipe.duplicate, pipe.reorder) = (0.005, 0.005, 0.005);
        }
        link.outages = OutageProcess::Exponential {
            up: 2 * SECOND,
            down: SECOND / 2,
        };
        link
    };
    let mut setup = chain(0, Vec::new());
    setup.link = lossy(setup.link);
    setup.link.seed = seed;
    let mut hop = hop(lossy(plain(1, 8_000_000, Duration::from_millis(7))));
    hop.link.seed = derived_seed(seed, "hop.1");
    hop.mechanisms = [PathMechanismKind::Hold; 2];
    setup.hops = vec![hop];
    setup.flows = [Way::ToMobile, Way::ToFixed, Way::ToMobile]
        .map(|way| flow(bulk(400_000, way), Stack::default()))
        .to_vec();
    setup.traffic = [
        Pattern::Poisson {
            rate: rate(500_000),
        },
        Pattern::OnOff {
            rate: rate(1_000_000),
            on: SECOND,
            off: SECOND,
        },
    ]
    .into_iter()
    .enumerate()
    .map(|(link, pattern)| neighbour(link, pattern))
    .collect();
    setup.recording = Recording {
        traced_packets: Some(100_000),
        captures: true,
        variables: true,
    };
    setup
}

#[test]
fn a_whole_topology_is_the_same_on_every_thread() {
    for seed in [1, 2] {
        let first = World::new(eventful(seed)).run();
        for threads in [1, 2, 5] {
            std::thread::scope(|scope| {
                let worlds: Vec<_> = (0..threads)
                    .map(|_| scope.spawn(|| World::new(eventful(seed)).run()))
                    .collect();
                for world in worlds {
                    assert!(
                        first == world.join().expect("no panic"),
                        "{threads} threads"
                    );
                }
            });
        }
    }
}

#[test]
fn adding_a_component_leaves_the_chances_of_the_others() {
    // A second source on a link of its own, a source and a hop that carry next to nothing.
    let mut setup = eventful(3);
    setup.recording = Recording::default();
    setup.flows.truncate(1);
    let before = World::new(setup.clone()).run();
    setup.traffic.push(TrafficSetup {
        link: 9,
        ..setup.traffic[0]
    });
    let after = World::new(setup.clone()).run();
    assert_eq!(after.flows, before.flows);
    assert_eq!(after.traffic[..2], before.traffic[..]);
    assert_eq!(after.link, before.link);
    let mut free = plain(2, 1, Duration::ZERO);
    (free.to_mobile.rate, free.to_fixed.rate) = (None, None);
    setup.hops.push(hop(free));
    let longer = World::new(setup).run();
    assert_eq!(
        longer.flows, before.flows,
        "a link that costs nothing changes nothing"
    );
    assert_eq!(longer.hops[0].link, before.hops[0].link);
}
