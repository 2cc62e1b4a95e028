//! Section 1: single disconnections of under 1 s, and of 1 minute.
//!
//! The paper says that both degrade TCP's performance, and not by how much. Judged is the connected time that a
//! transfer loses: how much longer than without a disconnection it takes, the disconnection itself not counted.

use super::channel;
use super::testbed::Testbed;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, own_claim};
use outlast_experiments::record::Runs;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::{Direction, Mechanism};

/// Single disconnections of unaided TCP.
#[derive(Debug)]
pub struct Section1;

const BED: Testbed = Testbed::OF_THE_PAPER;
/// Disconnections of under 1 s, in ms.
const SHORT_MS: [u64; 4] = [300, 500, 700, 900];
/// A disconnection of 1 minute, in ms.
const MINUTE_MS: u64 = 60_000;
/// Connected time that counts as degraded performance at least, as a share of the disconnection's length.
const DEGRADED: f64 = 0.1;
const BYTES: ByteCount = ByteCount(10_000_000);

fn lengths() -> impl Iterator<Item = u64> {
    [0].into_iter().chain(SHORT_MS).chain([MINUTE_MS])
}

fn cell(length_ms: u64) -> String {
    format!("one disconnection of {length_ms} ms")
}

/// Run `index` of `of`. When the disconnection comes is spread over its own length.
fn job(length_ms: u64, index: u32, of: u32) -> Job {
    let outages = match length_ms {
        0 => Outages::None,
        _ => Outages::Single {
            start: Duration::from_secs(2) + Duration::from_millis(500) * index / of,
            length: Duration::from_millis(length_ms),
        },
    };
    let task = Task::Bulk {
        bytes: BYTES,
        direction: Direction::Download,
    };
    let setting = Setting {
        deadline: Duration::from_secs(600),
        ..channel::over(BED, cell(length_ms), outages, task, Mechanism::None)
    };
    BED.job(cell(length_ms), &setting, index)
}

/// Connected time that each transfer loses, in seconds.
fn lost(runs: &Runs, length_ms: u64) -> Vec<f64> {
    let elapsed = |length_ms| {
        let records = runs.of(&cell(length_ms)).iter();
        let succeeded = records.filter(|record| record.succeeded());
        succeeded.map(|record| record.result.elapsed_s)
    };
    let Some(undisturbed) = Sample::of(elapsed(0)).map(|sample| sample.mean) else {
        return Vec::new();
    };
    let length_s = Duration::from_millis(length_ms).as_secs_f64();
    elapsed(length_ms)
        .map(|elapsed_s| elapsed_s - length_s - undisturbed)
        .collect()
}

/// The mean of what the transfers lose, as a share of the disconnection's length.
fn share(runs: &Runs, lengths_ms: &[u64]) -> Option<Measured> {
    mean(lengths_ms.iter().flat_map(|&length_ms| {
        let length_s = Duration::from_millis(length_ms).as_secs_f64();
        lost(runs, length_ms)
            .into_iter()
            .map(move |lost_s| lost_s / length_s)
    }))
}

impl Figure for Section1 {
    fn name(&self) -> &'static str {
        "section-1"
    }

    fn title(&self) -> &'static str {
        "Single disconnections of under 1 s, and of 1 minute"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = extent.choose(10, 40);
        let of_length = |length_ms| (0..trials).map(move |index| job(length_ms, index, trials));
        lengths().flat_map(of_length).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Section 1 of the paper: single disconnections";
        let mut table = Table::new([
            Column::quantity("disconnected_s", "Disconnected", Unit::Seconds),
            Column::quantity("lost_s", "Connected time lost, mean", Unit::Seconds),
            Column::quantity("least_s", "Least", Unit::Seconds),
            Column::quantity("greatest_s", "Greatest", Unit::Seconds),
        ]);
        for length_ms in lengths().skip(1) {
            let lost = Sample::of(lost(runs, length_ms));
            let of = |value: fn(&Sample) -> f64| Cell::from(lost.as_ref().map(value));
            table.push([
                Cell::from(Duration::from_millis(length_ms).as_secs_f64()),
                of(|lost| lost.mean),
                of(|lost| lost.least),
                of(|lost| lost.greatest),
            ]);
        }
        table.note("Downloads of 10 MB, beyond what one without a disconnection takes.");
        Part::new(title)
            .table(table.titled("Connected time that unaided TCP loses by one disconnection"))
            .claims(claims(runs))
    }
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let degrades = |statement: &'static str| {
        own_claim(
            "section-1",
            statement,
            Unit::Share,
            Published::AtLeast(DEGRADED),
        )
    };
    vec![
        degrades(
            "Disconnections of under 1 s degrade TCP's performance: they cost connected time of a tenth of their \
             length or more, which is our reading (mean).",
        )
        .judge(share(runs, &SHORT_MS)),
        degrades(
            "Disconnections of 1 minute degrade TCP's performance: they cost connected time of a tenth of their \
             length or more, which is our reading (mean).",
        )
        .judge(share(runs, &[MINUTE_MS])),
    ]
}
