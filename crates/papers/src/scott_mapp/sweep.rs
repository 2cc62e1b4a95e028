//! Timed transfers at every availability and level (section 5.3): the runs of figures 5, 6 and 7.

use super::channel;
use super::testbed::Testbed;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::present::title;
use outlast_experiments::record::{Record, Runs};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// The paper's levels, and `hold`.
pub const SERIES: [Mechanism; 6] = [
    Mechanism::None,
    Mechanism::SmartLink1,
    Mechanism::SmartLink2,
    Mechanism::SmartLink3,
    Mechanism::SmartLink4,
    Mechanism::Hold,
];

/// The availabilities, in percent.
#[must_use]
pub fn availabilities(extent: Extent) -> &'static [u32] {
    extent.choose(
        &[10, 30, 50, 80, 90, 100],
        &[10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
    )
}

/// The runs.
#[must_use]
pub fn jobs(bed: Testbed, extent: Extent, series: &[Mechanism]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &percent in availabilities(extent) {
        for &mechanism in series {
            let setting = channel::transfer(bed, extent, mechanism, percent);
            let cell = cell(bed, mechanism, percent);
            let trials = 0..bed.trials(extent);
            jobs.extend(trials.map(|trial| bed.job(cell.clone(), &setting, trial)));
        }
    }
    jobs
}

fn cell(bed: Testbed, mechanism: Mechanism, percent: u32) -> String {
    bed.cell(format!("transfer, {mechanism}, {percent} %"))
}

/// The trials of a series at an availability.
#[must_use]
pub fn of(bed: Testbed, runs: &Runs, mechanism: Mechanism, percent: u32) -> &[Record] {
    runs.of(&cell(bed, mechanism, percent))
}

/// The trials of a series at all `percents`.
pub fn over(
    bed: Testbed,
    runs: &Runs,
    mechanism: Mechanism,
    percents: impl IntoIterator<Item = u32>,
) -> impl Iterator<Item = &Record> {
    percents
        .into_iter()
        .flat_map(move |percent| of(bed, runs, mechanism, percent))
}

/// How long the trials that succeeded took.
#[must_use]
pub fn durations(records: &[Record]) -> Option<Sample> {
    let succeeded = records.iter().filter(|record| record.succeeded());
    Sample::of(succeeded.map(|record| record.result.elapsed_s))
}

/// The mean of the least times that the trials at an availability need.
#[must_use]
pub fn optimum(bed: Testbed, runs: &Runs, percent: u32) -> Option<f64> {
    let all = SERIES
        .into_iter()
        .flat_map(|mechanism| of(bed, runs, mechanism, percent));
    Sample::of(all.filter_map(|record| record.result.ideal_s)).map(|sample| sample.mean)
}

/// A table with a row per availability and a column per series.
pub(super) fn table<'a>(
    bed: Testbed,
    extent: Extent,
    runs: &'a Runs,
    unit: Unit,
    suffix: &str,
    show: impl Fn(&'a [Record]) -> Cell,
) -> Table {
    let mut columns = vec![Column::quantity(
        "availability",
        "Availability",
        Unit::Share,
    )];
    columns.extend(SERIES.map(|mechanism| {
        let key = format!("{}{suffix}", mechanism.name().replace('-', "_"));
        Column::quantity(key, title(mechanism), unit)
    }));
    let mut table = Table::new(columns);
    for &percent in availabilities(extent) {
        let mut row = vec![Cell::from(f64::from(percent) / 100.0)];
        row.extend(
            SERIES.map(|mechanism| match of(bed, runs, mechanism, percent) {
                [] => Cell::missing(),
                trials => show(trials),
            }),
        );
        table.push(row);
    }
    table
}

/// Curves of `series` against availability.
pub(super) fn curves<'a>(
    bed: Testbed,
    extent: Extent,
    runs: &'a Runs,
    series: &[Mechanism],
    percents: impl Fn(u32) -> bool,
    y: Axis,
    point: impl Fn(f64, &'a [Record]) -> Option<Point>,
) -> Curves {
    let percents: Vec<u32> = availabilities(extent)
        .iter()
        .copied()
        .filter(|&percent| percents(percent))
        .collect();
    let series = series.iter().map(|&mechanism| Series {
        name: title(mechanism).to_owned(),
        is_control: mechanism == Mechanism::None,
        points: percents
            .iter()
            .filter_map(|&percent| {
                let x = f64::from(percent) / 100.0;
                match of(bed, runs, mechanism, percent) {
                    [] => None,
                    // Where nothing succeeded the line is interrupted.
                    trials => Some(point(x, trials).unwrap_or(Point::new(x, f64::NAN))),
                }
            })
            .collect(),
    });
    let ends = percents
        .iter()
        .copied()
        .min()
        .zip(percents.iter().copied().max());
    let (low, high) = ends.unwrap_or((0, 100));
    let x = Axis::new("Availability of the link", Unit::Share);
    let x = x.range(f64::from(low) / 100.0, f64::from(high) / 100.0);
    let best = percents
        .iter()
        .filter_map(|&percent| Some((f64::from(percent) / 100.0, optimum(bed, runs, percent)?)));
    let optimum = Some(("optimum".to_owned(), best.collect()));
    Curves {
        x,
        y,
        series: series.collect(),
        optimum,
    }
}
