//! Figure 9, without the remedy: pauses with the sender on the mobile and on the stationary host.

use super::claim;
use super::single::{self, HALF_A_BEAT};
use super::testbed::{A_SECOND, AT_ONCE};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Measured, Published};
use outlast_report::plot::{Axis, Strip, StripRow};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;

/// Figure 9.
#[derive(Debug)]
pub struct Figure09;

/// Direction, rendezvous delay, and the pause of section IV.D.
const BARS: [(Direction, Duration, f64); 4] = [
    (Direction::Upload, AT_ONCE, 0.8),
    (Direction::Upload, A_SECOND, 2.8),
    (Direction::Download, AT_ONCE, 0.6),
    (Direction::Download, A_SECOND, 2.6),
];

impl Figure for Figure09 {
    fn name(&self) -> &'static str {
        "figure-9"
    }

    fn title(&self) -> &'static str {
        "Pauses in communication, without the remedy"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        BARS.into_iter()
            .flat_map(|(direction, rendezvous, _)| single::jobs(extent, rendezvous, direction))
            .collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let judged = BARS.map(|(direction, rendezvous, published)| {
            let statement = format!(
                "With the sender on the {} and {} s rendezvous delay communication halts for \
                 {published} s.",
                sender(direction),
                rendezvous.as_secs()
            );
            let pause = claim(
                "section IV.D, figure 9",
                statement,
                Unit::Seconds,
                Published::About(published),
                HALF_A_BEAT,
            );
            let records = single::of(runs, rendezvous, direction);
            pause.judge(single::pause(records).map(Measured::from))
        });
        Part::new("Figure 9 of the paper, without the remedy: pauses by sender")
            .table(table(runs))
            .figure(
                strip(runs).draw(),
                "The pause of every hand-off, beside the paper's. Compare the first of each pair of \
                 bars in figure 9 of the paper.",
            )
            .claims(judged.to_vec())
    }
}

const fn sender(direction: Direction) -> &'static str {
    match direction {
        Direction::Upload => "mobile",
        Direction::Download => "stationary host",
    }
}

fn label(direction: Direction, rendezvous: Duration) -> String {
    format!("{}, {} s", sender(direction), rendezvous.as_secs())
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("bar", "Sender on the, rendezvous delay"),
        Column::quantity("published_s", "Published", Unit::Seconds),
        Column::quantity("mean_s", "Mean", Unit::Seconds),
        Column::quantity("difference_s", "Difference", Unit::Seconds),
        Column::quantity("least_s", "Shortest", Unit::Seconds),
        Column::quantity("greatest_s", "Longest", Unit::Seconds),
    ]);
    for (direction, rendezvous, published) in BARS {
        let ours = single::pause(single::of(runs, rendezvous, direction));
        table.push([
            Cell::from(label(direction, rendezvous)),
            Cell::from(published),
            Cell::from(ours.as_ref().map(|ours| ours.mean)),
            Cell::from(ours.as_ref().map(|ours| ours.mean - published)),
            Cell::from(ours.as_ref().map(|ours| ours.least)),
            Cell::from(ours.as_ref().map(|ours| ours.greatest)),
        ]);
    }
    table.titled("Pause after a crossing")
}

fn strip(runs: &Runs) -> Strip {
    let row = |(direction, rendezvous, published): (Direction, Duration, f64)| StripRow {
        group: None,
        label: label(direction, rendezvous),
        samples: vec![
            vec![Some(published)],
            super::transfer::pauses(single::of(runs, rendezvous, direction)).collect(),
        ],
    };
    Strip {
        axis: Axis::new("Pause", Unit::Seconds).range(0.0, 3.5),
        variants: vec![("published".to_owned(), true), ("ours".to_owned(), false)],
        rows: BARS.map(row).to_vec(),
        limit: None,
    }
}
