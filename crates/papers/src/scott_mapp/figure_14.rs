//! Figure 14: updates received in an interactive session, against availability.

use super::claim;
use super::interactive::{self, SERIES};
use super::testbed::Testbed;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::title;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 14.
#[derive(Debug)]
pub struct Figure14 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure14 {
    fn name(&self) -> &'static str {
        "figure-14"
    }

    fn title(&self) -> &'static str {
        "Updates received in an interactive session, against availability"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        interactive::jobs(self.bed, extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let bed = self.bed;
        Part::new("Figure 14 of the paper: interactive updates")
            .paragraph(
                "A small update is due every 200 ms, and asked for only when the last one has \
                 arrived. The link is disconnected for 350 ms on average, the time that the paper's \
                 prototype needs to reconnect, and connected for as long as the availability \
                 demands, at 1 Mbit/s. Messages of the same pattern stand in for VNC.",
            )
            .table(table(bed, extent, runs))
            .figure(
                curves(bed, extent, runs).draw(),
                "Updates received, as a share of the five per second of a link that is always up, \
                 with standard deviations. Compare figure 14 of the paper, which lacks `hold`.",
            )
            .claims(claims(bed, extent, runs))
    }
}

/// Updates that were received, as a share of those of a link that is always up.
fn received(
    bed: Testbed,
    extent: Extent,
    runs: &Runs,
    mechanism: Mechanism,
    percent: u32,
) -> Option<Measured> {
    let per_s = |percent| {
        interactive::updates_per_s(interactive::of(bed, runs, mechanism, percent), extent)
    };
    let (sample, whole) = (per_s(percent)?, per_s(100)?.mean);
    Some(Measured {
        value: sample.mean / whole,
        standard_deviation: sample.standard_deviation.map(|deviation| deviation / whole),
        count: sample.count,
    })
}

fn table(bed: Testbed, extent: Extent, runs: &Runs) -> Table {
    let mut columns = vec![
        Column::quantity("availability", "Availability", Unit::Share),
        Column::fixed("optimum_per_s", "optimum, per s", 2),
    ];
    for mechanism in SERIES {
        let key = mechanism.name().replace('-', "_");
        columns.push(Column::fixed(
            format!("{key}_per_s"),
            format!("{}, per s", title(mechanism)),
            2,
        ));
        columns.push(Column::quantity(
            format!("{key}_share"),
            "of always up",
            Unit::Share,
        ));
    }
    let mut table = Table::new(columns).titled("Updates received");
    for &percent in interactive::availabilities(extent) {
        let optimum = interactive::optimum_per_s(bed, runs, percent, extent);
        let mut row = vec![Cell::from(f64::from(percent) / 100.0), Cell::from(optimum)];
        for mechanism in SERIES {
            let tests = interactive::of(bed, runs, mechanism, percent);
            row.push(Cell::from(
                interactive::updates_per_s(tests, extent).map(|s| s.mean),
            ));
            row.push(Cell::from(
                received(bed, extent, runs, mechanism, percent).map(|m| m.value),
            ));
        }
        table.push(row);
    }
    table
}

fn curves(bed: Testbed, extent: Extent, runs: &Runs) -> Curves {
    let percents = interactive::availabilities(extent);
    let x = |percent: u32| f64::from(percent) / 100.0;
    let series = SERIES.map(|mechanism| Series {
        name: title(mechanism).to_owned(),
        is_control: mechanism == Mechanism::None,
        points: percents
            .iter()
            .filter_map(|&percent| {
                let share = received(bed, extent, runs, mechanism, percent)?;
                let point = Point::new(x(percent), share.value);
                Some(
                    share
                        .standard_deviation
                        .map_or(point, |by| point.deviating(by)),
                )
            })
            .collect(),
    });
    let whole = interactive::optimum_per_s(bed, runs, 100, extent);
    let optimum = whole.map(|whole| {
        let at = |&percent: &u32| {
            Some((
                x(percent),
                interactive::optimum_per_s(bed, runs, percent, extent)? / whole,
            ))
        };
        (
            "optimum".to_owned(),
            percents.iter().filter_map(at).collect(),
        )
    });
    Curves {
        x: Axis::new("Availability of the link", Unit::Share),
        y: Axis::new("Updates received", Unit::Share).range(0.0, 1.05),
        series: series.to_vec(),
        optimum,
    }
}

fn claims(bed: Testbed, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let at_half = |mechanism, published, statement: &'static str| {
        let claim = claim(
            "section 6.2.2, figure 14",
            statement,
            Unit::Share,
            Published::About(published),
            Tolerance::Absolute(0.1),
        );
        let claim = bed.departing(
            claim,
            "how long the prototype was disconnected each time is stated only roughly; its dot \
             blinked, so that two changes missed cancelled out, while here every change is news; \
             and a modern sender probes for a lost last segment before its first timeout.",
        );
        let claim = bed.departing_in_sim(
            claim,
            "how long the prototype was disconnected each time is stated only roughly, and the share \
             unaided depends on it steeply, as the table shows; its dot blinked, so that two changes \
             missed cancelled out, while here every change is news; and its hardware and VNC take time \
             of their own after a reconnection.",
        );
        claim.judge(received(bed, extent, runs, mechanism, 50))
    };
    vec![
        at_half(
            Mechanism::SmartLink3,
            0.8,
            "At 50 % availability level 3 brings 80 % of the updates.",
        ),
        at_half(
            Mechanism::None,
            0.4,
            "At 50 % availability unaided TCP brings 40 % of the updates.",
        ),
    ]
}
