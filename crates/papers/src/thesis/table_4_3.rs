//! Table 4.3: the times of the hand-offs in the experiments.

use super::beside::{Beside, arithmetic};
use super::claim;
use super::table_4_1::{Switching, times};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;

/// The hand-offs: best, average and worst case.
pub const HANDOFFS: [(Switching, [Duration; 3]); 2] = [
    (Switching::Eager, [ms(50), ms(550), ms(1_050)]),
    (Switching::Lazy, [ms(2_050), ms(2_550), ms(3_050)]),
];

/// What the times may be off: the table calls them approximate, and for LCS it adds the switch of
/// the link layer, which table 4.1 has pass while the mobile waits.
pub const TOLERANCE: Tolerance = Tolerance::Absolute(0.015);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Best, average and worst case as claims.
#[must_use]
pub fn claims() -> Vec<Claim> {
    let claim = |switching, case, time: Duration| {
        let name = match switching {
            Switching::Eager => "ECS",
            Switching::Lazy => "LCS",
        };
        claim(
            "table 4.3",
            format!("{name}, {case} case: time of a hand-off."),
            Unit::Seconds,
            Published::About(time.as_secs_f64()),
            TOLERANCE,
        )
    };
    let of = |(switching, [best, average, worst]): (Switching, [Duration; 3])| {
        [
            claim(switching, "best", best),
            claim(switching, "average", average),
            claim(switching, "worst", worst),
        ]
    };
    HANDOFFS.into_iter().flat_map(of).collect()
}

/// Table 4.3.
#[derive(Debug)]
pub struct Table43;

impl Figure for Table43 {
    fn name(&self) -> &'static str {
        "table-4-3"
    }

    fn title(&self) -> &'static str {
        "The times of the hand-offs in the experiments"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        Vec::new()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let of = |(switching, _): (Switching, _)| {
            let all = times(switching).filter(|_| runs.all().next().is_some());
            let cases = |all: Sample| [all.least, all.mean, all.greatest].map(Some);
            all.map_or([None; 3], cases)
        };
        let rows = claims().into_iter().zip(HANDOFFS.into_iter().flat_map(of));
        let rows = rows.map(|(claim, ours)| Beside {
            labels: vec![Cell::from(claim.statement.as_ref())],
            claim,
            ours: ours.and_then(|ours| Sample::of([ours])),
        });
        let labels = vec![Column::text("what", "What")];
        let rows: Vec<Beside> = rows.collect();
        let part = Part::new("Table 4.3: the hand-offs of the experiments");
        arithmetic(
            part,
            "Table 4.3: the hand-offs of the experiments",
            labels,
            rows,
        )
    }
}
