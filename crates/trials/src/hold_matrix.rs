//! Resume time in a matrix of congestion control, SACK, direction and length of a single outage, with
//! `hold` at both ends of the link, at one end only, and without it.
//!
//! One transfer at 10 Mbit/s and 40 ms round trip is cut off after about 3 s and goes on after the
//! outage. Measured is the time from link-up until the receiving application has new bytes.

pub mod cells;
mod table;

use cells::{Cell, Placement};
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Limit, Strip, StripRow};
use outlast_report::table::Tone;
use outlast_report::unit::Unit;

/// The matrix.
pub static EXPERIMENT: Experiment = Experiment {
    name: "hold-matrix",
    title: "How soon a transfer resumes after an outage",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application has new bytes, after a single outage",
    method,
    figures: &[&Matrix],
};

/// The limit that `hold` at both ends is to keep: one round trip and 50 ms.
pub const LIMIT_S: f64 = 0.040 + 0.050;

/// A transfer that takes longer than its limit is limited by the link, not by anybody's waiting, if
/// the link was sending towards the receiver for at least this share of the time.
pub const LINK_LIMITED: f64 = 0.9;

/// Outages of this length or longer, in seconds, make the control stall for seconds.
const LONG_S: f64 = 3.0;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "One transfer at {} Mbit/s and 40 ms round trip, with room for {} packets at the link, \
             is cut off after about 3 s for the length of the outage. The resume time runs from \
             link-up until the receiving application gets bytes that it did not have. Each cell is \
             run {}.",
            cells::RATE_MBIT_PER_S,
            cells::QUEUE,
            match cells::repeats(extent) {
                1 => "once".to_owned(),
                repeats => format!(
                    "{repeats} times, with the outage at different moments; the table shows the worst"
                ),
            },
        ),
        format!(
            "`hold` at both ends is to keep the limit of one round trip and 50 ms ({}) in every cell \
             that is not limited by the link itself. That is decided by the packets: a cell beyond \
             the limit is limited by the link if it was sending towards the receiver for at least \
             {} of the time from link-up to the first new bytes, the propagation delay left out. A run \
             for which the machine was too busy is repeated; if it was each time, the limit is longer \
             by as much as the emulated link was late.",
            Unit::Seconds.show_exact(LIMIT_S),
            Unit::Share.show_exact(LINK_LIMITED),
        ),
    ]
}

/// The matrix as one figure.
#[derive(Debug)]
pub struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "Resume time in every cell, by where `hold` is"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::cells(extent);
        let within = within_limit(&cells, runs);
        let part = Part::new("Resume time by cell and placement")
            .table(table::matrix(extent, &cells, runs))
            .figure(
                strip(extent, &cells, runs).draw(),
                "Every mark is one run; a column for those that never resumed stands at the right \
                 where there are any.",
            );
        let part = match table::beyond(&cells, runs) {
            None => part,
            Some(beyond) => part.table(beyond),
        };
        part.claims(claims(&cells, runs)).highlight(Highlight {
            label: "Within the limit".to_owned(),
            value: within.map_or("–".to_owned(), |within| Unit::Share.show(within.value)),
            note: "of the cells, with hold at both ends".to_owned(),
            tone: within.map_or(Tone::Plain, |within| {
                if within.value < 1.0 {
                    Tone::Bad
                } else {
                    Tone::Good
                }
            }),
        })
    }
}

/// The resume time of a run's outage; `None` if it never resumed.
#[must_use]
pub fn resume(record: &Record) -> Option<f64> {
    record
        .result
        .outages
        .first()
        .and_then(|outage| outage.resume_s)
}

/// Whether a run kept the limit, or could not as the link itself was busy all the time.
fn is_within(record: &Record) -> bool {
    resume(record).is_some_and(|resume| resume <= limit(record)) || is_link_limited(record)
}

/// The limit of a run: longer by what the emulated link was late, if the machine was too busy for it
/// in each attempt.
fn limit(record: &Record) -> f64 {
    let is_doubtful = !record.warnings.is_empty();
    LIMIT_S
        + if is_doubtful {
            record.worst_delay_s
        } else {
            0.0
        }
}

/// Whether the link was busy from link-up to the first new bytes.
fn is_link_limited(record: &Record) -> bool {
    let busy = record.reconnections.first().and_then(|first| first.busy);
    busy.is_some_and(|busy| busy >= LINK_LIMITED)
}

/// The share of cells in which every run with `hold` at both ends kept the limit.
fn within_limit(cells: &[Cell], runs: &Runs) -> Option<Measured> {
    let measured = cells
        .iter()
        .map(|cell| runs.of(&cell.name(Placement::Both)));
    let measured: Vec<_> = measured.filter(|records| !records.is_empty()).collect();
    let within = measured
        .iter()
        .filter(|records| records.iter().all(is_within))
        .count();
    (!measured.is_empty()).then(|| Measured {
        value: within as f64 / measured.len() as f64,
        standard_deviation: None,
        count: measured.iter().map(|records| records.len()).sum(),
    })
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, unit, published| {
        own_claim("hold-matrix", statement, unit, published)
    };
    let within = own(
        "hold at both ends: new bytes within one round trip and 50 ms in every cell that the link \
         itself does not limit (share of cells).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let stalls = own(
        "The control stalls for a second or more after outages of 3 s and longer (median).",
        Unit::Seconds,
        Published::AtLeast(1.0),
    );
    let long = cells
        .iter()
        .filter(|cell| cell.outage.as_secs_f64() >= LONG_S);
    let stalled = median(
        long.flat_map(|cell| runs.of(&cell.name(Placement::None)))
            .map(resume),
    );
    let complete = own(
        "hold at both ends: every transfer completes.",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let both = || {
        cells
            .iter()
            .flat_map(|cell| runs.of(&cell.name(Placement::Both)))
    };
    let intact = own(
        "What completed is intact, wherever hold is (share of transfers).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let completed = runs.all().filter(|record| record.result.completed);
    vec![
        within.judge(within_limit(cells, runs)),
        stalls.judge(stalled),
        complete.judge(share(both(), |record| record.result.completed)),
        intact.judge(share(completed, |record| {
            record.result.intact == Some(true)
        })),
    ]
}

fn strip(extent: Extent, cells: &[Cell], runs: &Runs) -> Strip {
    let placements = cells::placements(extent);
    let mut rows: Vec<StripRow> = Vec::new();
    let mut group_before = None;
    for cell in cells {
        let group = cell.group();
        let is_new = group_before.as_ref() != Some(&group);
        rows.push(StripRow {
            group: is_new.then(|| group.clone()),
            label: cell.label(),
            samples: placements
                .iter()
                .map(|&placement| runs.of(&cell.name(placement)).iter().map(resume).collect())
                .collect(),
        });
        group_before = Some(group);
    }
    let variant =
        |placement: &Placement| (placement.title().to_owned(), *placement == Placement::None);
    Strip {
        axis: Axis::new("Time from link-up to new bytes", Unit::Seconds).logarithmic(),
        variants: placements.iter().map(variant).collect(),
        rows,
        limit: Some(Limit {
            value: LIMIT_S,
            name: "one round trip + 50 ms".to_owned(),
        }),
    }
}
