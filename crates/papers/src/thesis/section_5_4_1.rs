//! Section 5.4.1: hand-offs in which M-TCP has no acknowledgement left for a closed window.
//!
//! The thesis believes that this occurs often, as an intermediary has to forward a withheld acknowledgement after a
//! while, and TCP is bursty (its figure 5.2). Here `m-tcp` stands at the home agent, in the hand-offs of tables 4.4 and
//! 4.5, and is told of their beginning and end.

use super::handoff::{HandoffTable, Row, timeouts, trials};
use super::help::lost;
use super::{table_4_4, table_4_5};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Measured, Published};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// M-TCP in the hand-offs of chapter 4.
#[derive(Debug)]
pub struct Section541;

const TABLES: [&HandoffTable; 2] = [&table_4_4::OF_WHOLE_SEGMENTS, &table_4_5::OF_WHOLE_SEGMENTS];

/// Reason for which M-TCP nearly always has an acknowledgement left.
const A_BYTE_KEPT: &str = "the thesis's intermediary forwards the whole acknowledgement after a while. M-TCP (its section 5.3) and with it \
    `m-tcp` never acknowledge the last byte before more data is acknowledged, so that a closed window can always acknowledge \
    something new.";

impl Figure for Section541 {
    fn name(&self) -> &'static str {
        "section-5-4-1"
    }

    fn title(&self) -> &'static str {
        "Hand-offs in which M-TCP does not work"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = trials(extent);
        let mut jobs = Vec::new();
        for table in TABLES {
            for row in table.rows {
                for index in 0..trials {
                    let path = table.path(row, index, trials);
                    jobs.push(path.helped_job(Mechanism::MTcp, cell(table, row), index));
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Section 5.4.1: hand-offs in which M-TCP does not work";
        let mut shown = Table::new([
            Column::text("server", "Server"),
            Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
            Column::quantity("share", "Hand-offs with timeouts", Unit::Share),
        ]);
        for table in TABLES {
            for first in &table.rows[..4] {
                let rows = table.rows.iter();
                let rows = rows.filter(|row| row.round_trip == first.round_trip);
                shown.push([
                    Cell::from(table.profile.to_string()),
                    Cell::from(first.round_trip.as_secs_f64()),
                    Cell::from(stopped(runs, table, rows).map(|share| share.value)),
                ]);
            }
        }
        shown.note(
            "Of the hand-offs with losses. Linux 2.2 does not obey a window that is closed while data is under way: \
             its timeouts say nothing of M-TCP's acknowledgements.",
        );
        let often = Claim {
            departure: Some(A_BYTE_KEPT.into()),
            ..own_claim(
                "section-5-4-1",
                "AIX with M-TCP: one hand-off with losses of four costs a timeout all the same, which is our reading of \
                 \"would occur often\" (share).",
                Unit::Share,
                Published::AtLeast(0.25),
            )
        };
        let aix = TABLES[1];
        Part::new(title)
            .table(shown.titled("M-TCP at the home agent: hand-offs that cost a timeout"))
            .claims(vec![often.judge(stopped(runs, aix, aix.rows))])
    }
}

fn cell(table: &HandoffTable, row: &Row) -> String {
    format!("{}, {}", table.cell(row), Mechanism::MTcp)
}

/// The share of the hand-offs with losses that cost a timeout.
fn stopped<'a>(
    runs: &Runs,
    table: &HandoffTable,
    rows: impl IntoIterator<Item = &'a Row>,
) -> Option<Measured> {
    let records = rows.into_iter().flat_map(|row| {
        let records = runs.of(&cell(table, row)).iter();
        records.filter(move |record| lost(record, row).is_some())
    });
    share(records, |record: &Record| {
        timeouts(record).is_some_and(|timeouts| timeouts > 0.0)
    })
}
