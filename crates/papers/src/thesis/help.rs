//! What the thesis's enhancements save (chapter 5): what tables 5.1 and 5.2 have in common.
//!
//! The thesis reckons both tables from the hand-offs of chapter 4: with help the pause is as long as
//! the hand-off, as far as there was something to wake the sender with. Here the mechanisms
//! themselves are at work, at the home agent's end of the path.

use super::beside::{Beside, beside};
use super::claim;
use super::handoff::{HandoffTable, Row};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// A published table.
#[derive(Debug)]
pub struct HelpTable {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Its place in the thesis.
    pub place: &'static str,
    /// The hand-offs without help.
    pub without: &'static HandoffTable,
    /// What helps.
    pub mechanism: Mechanism,
    /// Round trips lost with help, for each row of `without`: hand-off and idle time.
    pub with: &'static [f64],
    /// Where a difference is known to come from.
    pub departure: &'static str,
}

impl HelpTable {
    fn claim(&self, row: &Row, with: f64) -> Claim {
        let statement = format!(
            "{}, {}, {}: round trips lost.",
            self.without.profile,
            self.mechanism,
            row.name()
        );
        let claim = claim(
            self.place,
            statement,
            Unit::Number,
            Published::About(with),
            tolerance(self.without, row, with),
        );
        Claim {
            departure: Some(self.departure.into()),
            ..claim
        }
    }

    pub(super) fn cell(&self, row: &Row) -> String {
        format!("{}, {}", self.without.cell(row), self.mechanism)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static Row, f64)> {
        self.without.rows.iter().zip(self.with.iter().copied())
    }
}

/// Accepted difference: that of the idle times of chapter 4.
fn tolerance(table: &HandoffTable, row: &Row, with: f64) -> Tolerance {
    let Tolerance::Absolute(without) = row.tolerance(table) else {
        unreachable!("every tolerance of a hand-off is a number of round trips")
    };
    // Where help leaves nothing but the hand-off, its uncertainty is that of a round trip.
    let least = super::handoff::ROUND_TRIPS;
    let handed = row.handoff.div_duration_f64(row.round_trip);
    Tolerance::Absolute(if with - handed < least {
        least
    } else {
        without
    })
}

/// Hand-off and idle time, in round trips; `None` of a trial that lost nothing.
pub(super) fn lost(record: &Record, row: &Row) -> Option<f64> {
    // What is lost is sent again: the segment that is kept by the agent, what else the hand-off took
    // by the sender. A hand-off between two windows takes nothing, and pauses nothing.
    let is_lost = record
        .result
        .retransmitted_bytes
        .is_some_and(|bytes| bytes > 0);
    let resumed = record.result.outages.first()?.resume_s;
    let pause = row.handoff.as_secs_f64() + resumed.filter(|_| is_lost)?;
    Some(pause / row.round_trip.as_secs_f64())
}

impl Figure for HelpTable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = super::handoff::trials(extent);
        let of_row = |(row, _): (&'static Row, f64)| {
            (0..trials).map(move |index| {
                let path = self.without.path(row, index, trials);
                path.helped_job(self.mechanism, self.cell(row), index)
            })
        };
        self.rows().flat_map(of_row).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let heading = format!("T{}: {}", &self.place[1..], self.title);
        self.part(heading, |row| {
            let ours = runs.of(&self.cell(row)).iter();
            Sample::of(ours.filter_map(|record| lost(record, row)))
        })
    }
}

impl HelpTable {
    /// The published numbers beside `ours`, the round trips lost.
    pub(super) fn part(&self, heading: String, ours: impl Fn(&Row) -> Option<Sample>) -> Part {
        let mut rows = Vec::new();
        for (row, with) in self.rows() {
            rows.push(Beside {
                labels: vec![
                    Cell::from(row.handoff.as_secs_f64()),
                    Cell::from(row.round_trip.as_secs_f64()),
                    Cell::from(Unit::Number.show_exact(row.total)),
                ],
                claim: self.claim(row, with),
                ours: ours(row),
            });
        }
        let labels = vec![
            Column::quantity("handoff_s", "Hand-off", Unit::Seconds),
            Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
            Column::text("without", "Published without"),
        ];
        beside(
            Part::new(heading.clone()),
            format!("{heading}: round trips lost"),
            labels,
            rows,
        )
    }
}
