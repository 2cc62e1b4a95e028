//! Which end of the link helps which traffic, by what the gateway knows of the outage: the table of
//! `docs/placement.md`.

use crate::support::{DELAY, bulk, link, outage};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::Way;
use outlast_tcp::profile::Congestion;
use outlast_world::{FlowSetup, Indicators, Setup, Side, Stack, Workload, World};

const TRAFFIC: [(&str, Traffic); 5] = [
    ("download", Traffic::Download),
    ("upload", Traffic::Upload),
    ("small requests of the mobile", Traffic::Requests),
    ("a small request after a pause", Traffic::Seldom),
    ("large requests, small answers", Traffic::LargeRequests),
];
const INDICATORS: [(&str, Indicators); 2] =
    [("told", Indicators::Link), ("silence", Indicators::Silence)];
const PLACES: [&[Side]; 3] = [
    &[Side::Fixed],
    &[Side::Mobile],
    &[Side::Fixed, Side::Mobile],
];
const LENGTHS: [u64; 3] = [15, 20, 45];
const PHASES: u64 = 5;

#[derive(Clone, Copy, Debug)]
enum Traffic {
    Download,
    Upload,
    Requests,
    /// Requests so far apart that the gateway has nothing in hand when the outage begins.
    Seldom,
    LargeRequests,
}

impl Traffic {
    fn workload(self) -> Workload {
        let requests = |request, response, think_ms| Workload::RequestResponse {
            requests: 100,
            request: ByteCount(request),
            response: ByteCount(response),
            think: Duration::from_millis(think_ms),
        };
        match self {
            Self::Download => bulk(2_500_000, Way::ToMobile),
            Self::Upload => bulk(2_500_000, Way::ToFixed),
            Self::Requests => requests(100, 600, 100),
            Self::Seldom => requests(100, 600, 8_000),
            Self::LargeRequests => requests(14_000, 100, 50),
        }
    }

    /// When an outage begins, as its phase has it: that of seldom requests in the second half of a pause.
    fn outage_at(self, phase: u64) -> Duration {
        let earliest = match self {
            Self::Seldom => 6_500,
            _ => 1_000,
        };
        Duration::from_millis(earliest + 37 * phase)
    }
}

/// From link-up until the payload's receiver reads something new, by length and phase of the outage.
fn resumes(
    traffic: Traffic,
    indicators: Indicators,
    places: &[Side],
    congestion: Congestion,
) -> Vec<Duration> {
    let mut all = Vec::new();
    for seconds in LENGTHS {
        for phase in 0..PHASES {
            let mut link = link();
            let start = traffic.outage_at(phase);
            link.outages = outage(start, Duration::from_secs(seconds));
            let stack = Stack {
                congestion: Some(congestion),
                ..Stack::default()
            };
            let mut setup = Setup {
                flows: vec![FlowSetup {
                    begin: Duration::ZERO,
                    workload: traffic.workload(),
                    stacks: [stack; 2],
                }],
                indicators,
                ..Setup::new(link)
            };
            for side in places {
                setup.mechanisms[side.index()] = PathMechanismKind::Hold;
            }
            let outcome = World::new(setup).run();
            let resumed = outcome.flows[0].resumed.first().copied().flatten();
            all.push(resumed.expect("it goes on"));
        }
    }
    all.sort();
    all
}

/// How many of the connections go on within three round trips, in a word.
fn at_once(all: &[Duration]) -> &'static str {
    let soon = DELAY * 6;
    let at_once = all.iter().filter(|resumed| **resumed <= soon).count();
    match 100 * at_once / all.len() {
        100 => "all",
        50.. => "most",
        10.. => "some",
        _ => "none",
    }
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/placement.md");
    std::fs::read_to_string(path).expect("the page")
}

#[test]
fn the_page_says_which_end_helps() {
    let page = page();
    let mut missing = Vec::new();
    for (traffic_name, traffic) in TRAFFIC {
        for (name, indicators) in INDICATORS {
            let run = |places| resumes(traffic, indicators, places, Congestion::Cubic);
            let middle = |all: &[Duration]| all[all.len() / 2];
            let control = run(&[]);
            let stall = middle(&control);
            let mut row = format!("| {traffic_name} | {name} | {:.0} s |", stall.as_secs_f64());
            for places in PLACES {
                let all = run(places);
                let case = (traffic_name, name, places);
                assert!(middle(&all) <= stall, "{case:?}");
                // Nor is the worst of them worse.
                let [worst, unaided] = [&all, &control].map(|all| all[all.len() - 1]);
                assert!(worst <= unaided + 2 * DELAY, "{case:?}");
                row += &format!(" {} |", at_once(&all));
            }
            if !page.contains(&row) {
                missing.push(row);
            }
        }
    }
    assert!(missing.is_empty(), "docs/placement.md lacks {missing:#?}");
}
