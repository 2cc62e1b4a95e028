//! Figure 3: the sequence number over the life of a connection, 1 s rendezvous delay.

use super::testbed::{A_SECOND, AT_ONCE, Motion};
use super::{claim, transfer};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::median;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;

/// Figure 3.
#[derive(Debug)]
pub struct Figure03;

const MOTIONS: [Motion; 2] = [
    Motion::Apart {
        rendezvous: AT_ONCE,
    },
    Motion::Apart {
        rendezvous: A_SECOND,
    },
];

impl Figure for Figure03 {
    fn name(&self) -> &'static str {
        "figure-3"
    }

    fn title(&self) -> &'static str {
        "Sequence number in response to cell crossings"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        transfer::jobs(extent, &MOTIONS)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let part = Part::new("Figure 3 of the paper: pauses in communication");
        let drawn = transfer::of(runs, MOTIONS[1]).iter().find_map(|record| {
            let trace = record.trace.as_ref()?;
            Some(trace.diagram(0.0, record.result.elapsed_s).draw())
        });
        let part = match drawn {
            None => part,
            Some(figure) => part.figure(
                figure,
                "A transfer with 1 s rendezvous delay. Shaded is the interruption from the crossing \
                 to the end of the hand-off, without the wait of TCP that follows. Compare figure 3 \
                 of the paper.",
            ),
        };
        part.table(table(runs)).claims(claims(runs))
    }
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("scenario", "Scenario"),
        Column::quantity("hand_offs", "Hand-offs", Unit::Count),
        Column::quantity("least_s", "Shortest", Unit::Seconds),
        Column::quantity("median_s", "Median", Unit::Seconds),
        Column::quantity("mean_s", "Mean", Unit::Seconds),
        Column::quantity("greatest_s", "Longest", Unit::Seconds),
    ]);
    for motion in MOTIONS {
        let pauses = transfer::pauses(transfer::of(runs, motion));
        let sample = Sample::of(pauses.flatten());
        let show = |of: fn(&Sample) -> f64| Cell::from(sample.as_ref().map(of));
        table.push([
            Cell::from(motion.name()),
            sample.as_ref().map_or(Cell::missing(), |sample| {
                Cell::from(u32::try_from(sample.count).unwrap_or(u32::MAX))
            }),
            show(|sample| sample.least),
            show(|sample| sample.median),
            show(|sample| sample.mean),
            show(|sample| sample.greatest),
        ]);
    }
    table.note("From the crossing until the receiver has new bytes again.");
    table.titled("Pauses in communication")
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let roughly = |motion, seconds, statement: &'static str| {
        let claim = claim(
            "section III.B, figure 3",
            statement,
            Unit::Seconds,
            Published::About(seconds),
            // "Roughly": to the nearest second.
            Tolerance::Absolute(0.5),
        );
        claim.judge(median(transfer::pauses(transfer::of(runs, motion))))
    };
    let shortest = Sample::of(transfer::pauses(transfer::of(runs, MOTIONS[1])).flatten());
    vec![
        roughly(
            MOTIONS[1],
            3.0,
            "A pause of 3 s is typical of 1 s rendezvous delay (median).",
        ),
        roughly(
            MOTIONS[0],
            1.0,
            "A pause of 1 s is typical of 0 s rendezvous delay (median).",
        ),
        claim(
            "section III.B, figure 3",
            "With 1 s rendezvous delay a pause can last about 1 s, as the last one of figure 3 does (shortest).",
            Unit::Seconds,
            Published::About(1.0),
            Tolerance::Absolute(0.5),
        )
        .judge(shortest.map(|all| Measured {
            value: all.least,
            standard_deviation: None,
            count: all.count,
        })),
    ]
}
