//! Figure 4: the congestion window over the life of the connection of figure 3.

use super::claim;
use super::testbed::{self, A_SECOND, Crossings, Motion};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::{mean, median};
use outlast_experiments::record::{Reconnection, Record, Runs, Variables};
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::plot::{Axis, Line, Outage, Timeline};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;
use outlast_scenario::result::OutageResult;

/// Figure 4.
#[derive(Debug)]
pub struct Figure04;

const MOTION: Motion = Motion::Apart {
    rendezvous: A_SECOND,
};
const CELL: &str = "congestion window, 1 s rendezvous delay";

/// Segments in the receiver's window of 16 KiB: a congestion window from here on limits nothing.
const WINDOW: u32 = 16_384 / 1_460;

impl Figure for Figure04 {
    fn name(&self) -> &'static str {
        "figure-4"
    }

    fn title(&self) -> &'static str {
        "Congestion window in response to cell crossings"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let job = |index| {
            let crossings = Crossings::EveryEightSeconds;
            testbed::job(CELL.to_owned(), MOTION, crossings, Direction::Upload, index)
                .watching(Watch::Variables)
        };
        (0..extent.choose(5, 20)).map(job).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let records = runs.of(CELL);
        let part = Part::new("Figure 4 of the paper: congestion window");
        let part = match records.first() {
            None => part,
            Some(record) => part.figure(
                timeline(record).draw(),
                "The sender's congestion window in the transfer of figure 3, and the threshold up to \
                 which slow start doubles it. Compare figure 4 of the paper.",
            ),
        };
        part.table(table(records)).claims(claims(records))
    }
}

/// What happened to the window at a crossing.
#[derive(Clone, Copy, Debug)]
struct Collapse {
    crossing_s: f64,
    /// Retransmission timeout before the crossing.
    rto_s: Option<f64>,
    /// Segments before the crossing, and the fewest after it.
    before: Option<u32>,
    least: Option<u32>,
    /// From when the window stopped growing until it grew again.
    still_s: Option<f64>,
    /// From when the receiver had new bytes until the window limits nothing any more.
    throttled_s: Option<f64>,
}

fn collapses(record: &Record) -> Vec<Collapse> {
    let of = |(outage, _): (&OutageResult, Reconnection)| {
        let up = outage.start_s + outage.length_s?;
        let resumed = outage.resume_s.map(|resume| up + resume);
        Some(Collapse::of(&record.variables, outage.start_s, resumed))
    };
    record.outages().filter_map(of).collect()
}

impl Collapse {
    fn of(rows: &[Variables], crossing_s: f64, resumed_s: Option<f64>) -> Self {
        let split = rows.partition_point(|row| row.time_s <= crossing_s);
        let (earlier, later) = rows.split_at(split);
        let grown = |pair: &&[Variables]| pair[1].cwnd > pair[0].cwnd;
        let stopped = earlier.windows(2).rfind(grown).map(|pair| pair[1].time_s);
        let grew = later.windows(2).find(grown).map(|pair| pair[1].time_s);
        let free = resumed_s.and_then(|resumed| {
            let wide = |row: &&Variables| row.time_s > resumed && row.cwnd >= WINDOW;
            Some(later.iter().find(wide)?.time_s - resumed)
        });
        let until = grew.unwrap_or(f64::INFINITY);
        let before_growth = later.iter().take_while(|row| row.time_s < until);
        Self {
            crossing_s,
            rto_s: earlier.last().map(|row| row.rto_s),
            before: earlier.last().map(|row| row.cwnd),
            least: before_growth.map(|row| row.cwnd).min(),
            still_s: stopped.zip(grew).map(|(stopped, grew)| grew - stopped),
            throttled_s: free,
        }
    }
}

fn timeline(record: &Record) -> Timeline {
    let values = |of: fn(&Variables) -> f64| {
        let rows = record.variables.iter();
        rows.map(|row| (row.time_s, of(row))).collect()
    };
    let line = |name: &str, is_control, of| Line {
        name: name.to_owned(),
        is_control,
        values: values(of),
    };
    let outage = |outage: &OutageResult| Outage {
        start_s: outage.start_s,
        end_s: outage.length_s.map(|length| outage.start_s + length),
    };
    Timeline {
        y: Axis::new("Window (segments of 1460 bytes)", Unit::Count),
        lines: vec![
            line("slow-start threshold", true, |row| {
                row.ssthresh.map_or(f64::NAN, f64::from)
            }),
            line("congestion window", false, |row| f64::from(row.cwnd)),
        ],
        outages: record.result.outages.iter().map(outage).collect(),
        window_s: (0.0, record.result.elapsed_s),
    }
}

fn table(records: &[Record]) -> Table {
    let mut table = Table::new([
        Column::quantity("run", "Run", Unit::Count),
        Column::quantity("crossing_s", "Crossing at", Unit::Seconds),
        Column::quantity("rto_s", "Timeout then", Unit::Seconds),
        Column::quantity("cwnd_before", "Window then", Unit::Count),
        Column::quantity("cwnd_least", "Least after", Unit::Count),
        Column::quantity("still_s", "No growth for", Unit::Seconds),
        Column::quantity("throttled_s", "Throttles for", Unit::Seconds),
    ]);
    for record in records.iter().take(3) {
        for collapse in collapses(record) {
            table.push([
                Cell::from(record.index),
                Cell::from(collapse.crossing_s),
                Cell::from(collapse.rto_s),
                Cell::from(collapse.before.map(f64::from)),
                Cell::from(collapse.least.map(f64::from)),
                Cell::from(collapse.still_s),
                Cell::from(collapse.throttled_s),
            ]);
        }
    }
    table.note(format!(
        "The first three transfers. The window throttles from when the receiver has new bytes until it \
         has the {WINDOW} segments of the receiver's window."
    ));
    table.titled("The congestion window at each crossing, in segments")
}

fn claims(records: &[Record]) -> Vec<Judged> {
    let all: Vec<Collapse> = records.iter().flat_map(collapses).collect();
    let shrinks = claim(
        "section III.B, figure 4",
        "After a crossing the window shrinks to its least value, one segment (mean).",
        Unit::Count,
        Published::About(1.0),
        Tolerance::Exact,
    );
    let least = all.iter().filter_map(|collapse| collapse.least);
    let still = claim(
        "section III.B, figure 4",
        "The window does not grow for the 3 s of the pause (median).",
        Unit::Seconds,
        Published::About(3.0),
        Tolerance::Absolute(0.5),
    );
    let throttles = claim(
        "section III.D",
        "Slow start throttles the connection for about 1 s after it resumes (median).",
        Unit::Seconds,
        Published::About(1.0),
        Tolerance::Factor(2.0),
    );
    let timeout = claim(
        "section IV.B",
        "The retransmission timeout is at its least value, 1 s (median at a crossing).",
        Unit::Seconds,
        Published::About(1.0),
        Tolerance::Exact,
    );
    let still_least = claim(
        "section III.B, figure 4",
        "At a shorter pause the window does not grow for about 1 s (shortest).",
        Unit::Seconds,
        Published::About(1.0),
        Tolerance::Absolute(0.5),
    );
    let shortest = Sample::of(all.iter().filter_map(|collapse| collapse.still_s));
    let shortest = shortest.map(|all| Measured {
        value: all.least,
        standard_deviation: None,
        count: all.count,
    });
    vec![
        shrinks.judge(mean(least.map(f64::from))),
        still.judge(median(all.iter().map(|collapse| collapse.still_s))),
        still_least.judge(shortest),
        throttles.judge(median(all.iter().map(|collapse| collapse.throttled_s))),
        timeout.judge(median(all.iter().map(|collapse| collapse.rto_s))),
    ]
}
