//! Figures 12 and 13: transfers of 5 MB over the authors' hardware prototype (section 6.1).
//!
//! The prototype had 1 Mbit/s, a connected period whose mean was set, and 200 ms to 500 ms to reconnect
//! (section 3), as in [`super::interactive`]. The availabilities of the paper are what its disconnections
//! happened to give; here those that its text names are among them. In virtual time only.

use super::testbed::Testbed;
use super::{channel, claim, interactive};
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{own_claim, share, title};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Setting, Task};
use outlast_report::judgement::{Claim, Departure, Judged, Measured, Published, Tolerance};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::{Direction, Mechanism};

/// Figure 12.
#[derive(Debug)]
pub struct Figure12;

/// Figure 13.
#[derive(Debug)]
pub struct Figure13;

const BED: Testbed = Testbed::OF_THE_PAPER;
/// The paper's levels 0 and 3, and `hold`.
const SERIES: [Mechanism; 3] = interactive::SERIES;
/// "5Mbyte".
const BYTES: ByteCount = ByteCount(5_000_000);
/// The least availability at which level 3 completed everything, in percent.
const COMPLETES: u32 = 23;
/// At this availability and below, unaided TCP was not reliable.
const UNRELIABLE: u32 = 50;
/// Where unaided TCP has twice the overhead.
const TWICE: u32 = 65;

/// The availabilities, in percent.
fn availabilities(extent: Extent) -> &'static [u32] {
    extent.choose(
        &[20, COMPLETES, UNRELIABLE, TWICE, 90],
        &[
            20, COMPLETES, 30, 40, UNRELIABLE, 60, TWICE, 70, 80, 90, 100,
        ],
    )
}

fn cell(mechanism: Mechanism, percent: u32) -> String {
    BED.cell(format!("prototype, 5 MB, {mechanism}, {percent} %"))
}

fn jobs(extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &percent in availabilities(extent) {
        for mechanism in SERIES {
            let task = Task::Bulk {
                bytes: BYTES,
                direction: Direction::Download,
            };
            let name = format!("5 MB, {mechanism} at {percent} % availability");
            let outages = interactive::outages(percent);
            let setting = Setting {
                rate_mbit_per_s: interactive::RATE_MBIT_PER_S,
                seed: u64::from(percent) * 100,
                deadline: BED.deadline(extent, percent),
                ..channel::over(BED, name, outages, task, mechanism)
            };
            let transfers = 0..extent.choose(3, 10);
            jobs.extend(transfers.map(|run| BED.job(cell(mechanism, percent), &setting, run)));
        }
    }
    jobs
}

fn of(runs: &Runs, mechanism: Mechanism, percent: u32) -> &[Record] {
    runs.of(&cell(mechanism, percent))
}

/// The share of the transfers that succeed, over `percents`.
fn succeed(
    runs: &Runs,
    mechanism: Mechanism,
    percents: impl IntoIterator<Item = u32>,
) -> Option<Measured> {
    let percents = percents.into_iter();
    share(
        percents.flat_map(|percent| of(runs, mechanism, percent)),
        Record::succeeded,
    )
}

/// How long the transfers that succeed take, as a multiple of the least that each needs.
fn stretch(runs: &Runs, mechanism: Mechanism, percent: u32) -> Option<Sample> {
    let done = of(runs, mechanism, percent)
        .iter()
        .filter(|run| run.succeeded());
    Sample::of(done.filter_map(|run| Some(run.result.elapsed_s / run.result.ideal_s?)))
}

fn duration(runs: &Runs, mechanism: Mechanism, percent: u32) -> Option<f64> {
    let done = of(runs, mechanism, percent)
        .iter()
        .filter(|run| run.succeeded());
    Some(Sample::of(done.map(|run| run.result.elapsed_s))?.mean)
}

fn ideal(runs: &Runs, percent: u32) -> Option<f64> {
    let all = SERIES
        .into_iter()
        .flat_map(|mechanism| of(runs, mechanism, percent));
    Some(Sample::of(all.filter_map(|run| run.result.ideal_s))?.mean)
}

fn table(
    extent: Extent,
    unit: Unit,
    optimum: Option<&dyn Fn(u32) -> Option<f64>>,
    show: impl Fn(Mechanism, u32) -> Option<f64>,
) -> Table {
    let mut columns = vec![Column::quantity(
        "availability",
        "Availability",
        Unit::Share,
    )];
    if optimum.is_some() {
        columns.push(Column::quantity("ideal", "Ideal", unit));
    }
    columns.extend(SERIES.map(|mechanism| {
        Column::quantity(mechanism.name().replace('-', "_"), title(mechanism), unit)
    }));
    let mut table = Table::new(columns);
    for &percent in availabilities(extent) {
        let mut row = vec![Cell::from(f64::from(percent) / 100.0)];
        row.extend(optimum.map(|optimum| Cell::from(optimum(percent))));
        row.extend(SERIES.map(|mechanism| Cell::from(show(mechanism, percent))));
        table.push(row);
    }
    table
}

fn curves(extent: Extent, y: Axis, show: impl Fn(Mechanism, u32) -> Option<f64>) -> Curves {
    let points = |mechanism| {
        let at = |&percent: &u32| {
            let x = f64::from(percent) / 100.0;
            Some(Point::new(x, show(mechanism, percent)?))
        };
        availabilities(extent).iter().filter_map(at).collect()
    };
    let series = SERIES.map(|mechanism| Series {
        name: title(mechanism).to_owned(),
        is_control: mechanism == Mechanism::None,
        points: points(mechanism),
    });
    Curves {
        x: Axis::new("Availability of the link", Unit::Share),
        y,
        series: series.to_vec(),
        optimum: None,
    }
}

impl Figure for Figure12 {
    fn name(&self) -> &'static str {
        "figure-12"
    }

    fn title(&self) -> &'static str {
        "Transfers of 5 MB over the prototype that succeed, against availability"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let rate = |mechanism, percent| Some(succeed(runs, mechanism, [percent])?.value);
        let table = table(extent, Unit::Share, None, rate);
        let y = Axis::new("Transfers that succeed", Unit::Share).range(0.0, 1.05);
        Part::new("Figure 12 of the paper: transfers over the prototype")
            .paragraph(
                "5 MB over 1 Mbit/s, disconnected for 350 ms on average, the time that the paper's prototype \
                 needs to reconnect, and connected for as long as the availability demands.",
            )
            .table(table.titled("Transfers of 5 MB that succeed"))
            .figure(
                curves(extent, y, rate).draw(),
                "Compare figure 12 of the paper, which lacks `hold`.",
            )
            .claims(succeeding(extent, runs))
    }
}

fn succeeding(extent: Extent, runs: &Runs) -> Vec<Judged> {
    let from = |least: u32| {
        availabilities(extent)
            .iter()
            .copied()
            .filter(move |&p| p >= least)
    };
    let low = availabilities(extent).iter().filter(|&&p| p <= UNRELIABLE);
    let best = low.filter_map(|&percent| succeed(runs, Mechanism::None, [percent]));
    let best = best.reduce(|one, other| if other.value > one.value { other } else { one });
    vec![
        claim(
            "section 6.1, figure 12",
            "Level 3 completes all transfers down to an availability of 23 %.",
            Unit::Share,
            Published::AtLeast(1.0),
            Tolerance::Exact,
        )
        .judge(succeed(runs, Mechanism::SmartLink3, from(COMPLETES))),
        // One failure of ten is the least that the paper can have seen.
        Claim {
            departure: Some(
                "a connection is given up after fifteen retransmissions here, which outages of half a second never reach. With five, no \
                 transfer of ten succeeds at 50 %, and all do at 65 %, as in the paper, which does not tell its limit."
                    .into(),
            ),
            ..claim(
            "section 6.1, figure 12",
            "Unaided TCP is not reliable at 50 % availability or less (share that succeeds, at the best of \
             these availabilities).",
            Unit::Share,
            Published::AtMost(0.9),
            Tolerance::Exact,
        )
        }
        .judge(best),
    ]
}

impl Figure for Figure13 {
    fn name(&self) -> &'static str {
        "figure-13"
    }

    fn title(&self) -> &'static str {
        "Mean duration of transfers of 5 MB over the prototype, against availability"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let time = |mechanism, percent| duration(runs, mechanism, percent);
        let optimum = |percent| ideal(runs, percent);
        let table = table(extent, Unit::Seconds, Some(&optimum), time);
        let y = BED.durations(Axis::new("Mean duration", Unit::Seconds));
        Part::new("Figure 13 of the paper: durations over the prototype")
            .table(table.titled("Mean duration of the transfers of 5 MB that succeed"))
            .figure(
                curves(extent, y, time).draw(),
                "Compare figure 13 of the paper, which lacks `hold`.",
            )
            .claims(lasting(extent, runs))
    }
}

fn lasting(extent: Extent, runs: &Runs) -> Vec<Judged> {
    let overhead = |mechanism| Some(stretch(runs, mechanism, TWICE)?.mean - 1.0);
    let twice = overhead(Mechanism::None)
        .zip(overhead(Mechanism::SmartLink3))
        .map(|(none, three)| Measured {
            value: none / three,
            standard_deviation: None,
            count: of(runs, Mechanism::None, TWICE).len(),
        });
    let worst = availabilities(extent)
        .iter()
        .filter_map(|&percent| stretch(runs, Mechanism::SmartLink3, percent))
        .reduce(|one, other| if other.mean > one.mean { other } else { one });
    vec![
        // Read off curves of ten transfers each: to a half.
        Claim {
            departure: Some(Departure::Unexplained(
                "unaided TCP takes 53 % beyond the ideal here, level 3 only 2 %; which of the two was different in the paper cannot be read. \
                 Tried: a delay of 20 ms each way (246 and 21 %, a factor of 12), and outages of 1 and 2 s (48 and 0.8 %, 53 and 0.2 %)."
                    .into(),
            )),
            ..claim(
            "section 6.1, figure 13",
            "At 65 % availability unaided TCP has twice the overhead of level 3 (what it takes beyond the ideal).",
            Unit::Factor,
            Published::About(2.0),
            Tolerance::Absolute(0.5),
        )
        }
        .judge(twice),
        own_claim(
            "figure-13",
            "Level 3 takes at most a quarter longer than the ideal down to 20 % availability, which is our \
             reading of \"relatively close\" in section 6.1 (mean at the worst availability).",
            Unit::Factor,
            Published::AtMost(1.25),
        )
        .judge(worst.map(Measured::from)),
    ]
}
