//! Table 4.6: what a hand-off costs a Linux 2.2 server in round trips, congestion control included,
//! by the size of the receive buffer.
//!
//! Its columns are those of table 4.4 and a constant each, which is the model of section 3.3.2 (see
//! [`super::added_round_trips`]). Constants and hand-offs alone are 31 of its 37 round trips on average, so that what section 4.5 says
//! of all of them is not judged by that sum. It is judged by whole transfers with each of the buffers: how many round trips
//! longer one takes with a hand-off than without.

use super::added_round_trips::{self, After, PRINTED};
use super::beside::{Beside, arithmetic};
use super::handoff::{MOVE, Row};
use super::path::Path;
use super::{claim, table_4_4};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::mean;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;

/// Hand-off and round trip in ms, and the round trips lost with the buffers of
/// [`super::added_round_trips::TABLE_4_6`].
pub const ROWS: [(u64, u64, [f64; 4]); 20] = [
    (550, 60, [18.41, 23.38, 32.37, 49.36]),
    (550, 200, [12.27, 17.24, 26.23, 43.22]),
    (550, 500, [8.69, 13.66, 22.65, 39.64]),
    (550, 1_000, [7.94, 12.91, 21.9, 38.89]),
    (1_050, 60, [30.24, 35.21, 44.2, 61.19]),
    (1_050, 200, [19.11, 24.08, 33.07, 50.06]),
    (1_050, 500, [11.87, 16.84, 25.83, 42.82]),
    (1_050, 1_000, [8.72, 13.69, 22.68, 39.67]),
    (2_050, 60, [58.13, 63.1, 72.09, 89.08]),
    (2_050, 200, [19.66, 24.63, 33.62, 50.61]),
    (2_050, 500, [11.83, 16.8, 25.79, 42.78]),
    (2_050, 1_000, [11.39, 16.36, 25.35, 42.34]),
    (2_550, 60, [56.99, 61.96, 70.95, 87.94]),
    (2_550, 200, [30.75, 35.72, 44.71, 61.7]),
    (2_550, 500, [16.24, 21.21, 30.2, 47.19]),
    (2_550, 1_000, [11.38, 16.35, 25.34, 42.33]),
    (3_050, 60, [109.88, 114.85, 123.84, 140.83]),
    (3_050, 200, [33.67, 38.64, 47.63, 64.62]),
    (3_050, 500, [18.28, 23.25, 32.24, 49.23]),
    (3_050, 1_000, [11.63, 16.6, 25.59, 42.58]),
];

/// Round trips before the hand-off, if they are over before [`MOVE`]: slow start is.
const BEFORE: u32 = 100;
/// Headers of a packet, with timestamps.
const HEADERS: u32 = 52;

/// The connection's own name for a size of buffer.
fn cell(row: &Row, kilobytes: u32, is_handed: bool) -> String {
    let (name, kind) = match is_handed {
        true => (row.name(), "with"),
        false => (
            format!("round trip of {} ms", row.round_trip.as_millis()),
            "without",
        ),
    };
    format!("buffer of {kilobytes} KB, {name}, {kind} a hand-off")
}

/// Trial `index` of `of` of a transfer that is long enough to recover from its hand-off, with segments of 1 KB as the model has.
fn path(row: &Row, kilobytes: u32, is_handed: bool, index: u32, of: u32) -> Path {
    let buffer = kilobytes * 1_024;
    let moved = MOVE.min(row.round_trip * BEFORE);
    let before = moved.div_duration_f64(row.round_trip).ceil() as u32;
    // A window grows by a segment every second round trip, from two segments at worst.
    let windows = before + 2 * buffer / added_round_trips::SEGMENT_BYTES + 40;
    let whole = row.round_trip * windows + row.handoff;
    let undisturbed = whole * 4;
    Path {
        buffer,
        rate_mbit_per_s: 100,
        mtu: added_round_trips::SEGMENT_BYTES + HEADERS,
        cut: match is_handed {
            true => moved + row.round_trip * index / of,
            false => undisturbed,
        },
        bytes: u64::from(windows) * u64::from(buffer),
        deadline: undisturbed,
        ..table_4_4::TABLE.path(row, index, of)
    }
}

/// Transfers of each kind.
const fn trials(extent: Extent) -> u32 {
    match extent {
        Extent::Quick => 2,
        Extent::Full => 10,
    }
}

/// Round trips that the transfers with a hand-off take longer, on average.
fn lost(runs: &Runs, row: &Row, kilobytes: u32) -> Option<f64> {
    let elapsed = |is_handed| {
        let records = runs.of(&cell(row, kilobytes, is_handed)).iter();
        let succeeded = records.filter(|record| record.succeeded());
        Some(Sample::of(succeeded.map(|record| record.result.elapsed_s))?.mean)
    };
    Some((elapsed(true)? - elapsed(false)?) / row.round_trip.as_secs_f64())
}

/// One number beside ours.
fn published(row: &Row, kilobytes: u32, published: f64) -> Claim {
    claim(
        "table 4.6",
        format!(
            "{}, buffer of {kilobytes} KB: lost round trips.",
            row.name()
        ),
        Unit::Number,
        Published::About(published),
        PRINTED,
    )
}

/// Table 4.6.
#[derive(Debug)]
pub struct Table46;

impl Figure for Table46 {
    fn name(&self) -> &'static str {
        "table-4-6"
    }

    fn title(&self) -> &'static str {
        "What a hand-off costs a Linux 2.2 server, congestion control included"
    }

    /// The runs of table 4.4, and whole transfers with each of the buffers.
    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = table_4_4::TABLE.jobs(extent);
        let trials = trials(extent);
        for (kilobytes, _) in added_round_trips::TABLE_4_6 {
            for row in table_4_4::TABLE.rows {
                for index in 0..trials {
                    let path = path(row, kilobytes, true, index, trials);
                    jobs.push(path.job(cell(row, kilobytes, true), index, Watch::Nothing));
                }
            }
            // One of each round trip is enough.
            for row in &table_4_4::TABLE.rows[..4] {
                let path = path(row, kilobytes, false, 0, 1);
                jobs.push(path.job(cell(row, kilobytes, false), 0, Watch::Nothing));
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let part = Part::new("Table 4.6: hand-off, idle time and congestion control")
            .paragraph(
                "The thesis adds what its model of congestion control gives (figure 3.7) to the \
                 totals of table 4.4, so that the four columns differ by constants. Ours are made in \
                 the same way, from our hand-offs, which table 4.4 judges.",
            );
        let buffer = vec![Column::fixed("buffer_kb", "Buffer, KB", 0)];
        let title = "What the columns of table 4.6 add to table 4.4, and the model";
        let part = arithmetic(part, title, buffer, constants(runs));
        let labels = vec![
            Column::quantity("handoff_s", "Hand-off", Unit::Seconds),
            Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
            Column::fixed("buffer_kb", "Buffer, KB", 0),
        ];
        let title = "Table 4.6: round trips that a hand-off costs a Linux 2.2 server";
        arithmetic(part, title, labels, rows(runs))
            .table(
                measured(runs)
                    .titled("Whole transfers: round trips longer with a hand-off than without"),
            )
            .claims(claims(runs))
    }
}

fn constants(runs: &Runs) -> Vec<Beside> {
    let has_runs = runs.all().next().is_some();
    let row = |(kilobytes, published)| Beside {
        labels: vec![Cell::from(kilobytes)],
        claim: claim(
            "table 4.6 less table 4.4",
            format!("Buffer of {kilobytes} KB: what the model adds, in round trips."),
            Unit::Number,
            Published::About(published),
            PRINTED,
        ),
        ours: Sample::of([modelled(kilobytes)]).filter(|_| has_runs),
    };
    added_round_trips::TABLE_4_6.into_iter().map(row).collect()
}

/// Round trips lost by hand-off, round trip and buffer, as whole transfers measure them.
fn measured(runs: &Runs) -> Table {
    let mut columns = vec![
        Column::quantity("handoff_s", "Hand-off", Unit::Seconds),
        Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
    ];
    for (kilobytes, _) in added_round_trips::TABLE_4_6 {
        columns.push(Column::fixed(
            format!("published_{kilobytes}"),
            format!("{kilobytes} KB, published"),
            2,
        ));
        columns.push(Column::fixed(
            format!("ours_{kilobytes}"),
            format!("{kilobytes} KB, ours"),
            1,
        ));
    }
    let mut table = Table::new(columns);
    for (row, (_, _, numbers)) in table_4_4::TABLE.rows.iter().zip(ROWS) {
        let mut cells = vec![
            Cell::from(row.handoff.as_secs_f64()),
            Cell::from(row.round_trip.as_secs_f64()),
        ];
        for ((kilobytes, _), number) in added_round_trips::TABLE_4_6.into_iter().zip(numbers) {
            cells.extend([Cell::from(number), Cell::from(lost(runs, row, kilobytes))]);
        }
        table.push(cells);
    }
    table.note(format!(
        "The same bytes with and without a hand-off, in segments of 1 KB at 100 Mbit/s; the hand-off comes after {BEFORE} round trips, at \
         most {} s.",
        MOVE.as_secs()
    ));
    table
}

/// Section 4.5's statements on the table, by whole transfers.
fn claims(runs: &Runs) -> Vec<Judged> {
    let table = &table_4_4::TABLE;
    let mut all = Vec::new();
    let mut claims = Vec::new();
    for (column, (kilobytes, _)) in added_round_trips::TABLE_4_6.into_iter().enumerate() {
        let rows = table.rows.iter().filter_map(|row| {
            let [_, idle] = table.ours(runs, row);
            let handoff = row.handoff.div_duration_f64(row.round_trip);
            Some([handoff, idle?.mean, lost(runs, row, kilobytes)?])
        });
        let rows: Vec<[f64; 3]> = rows.collect();
        let published = ROWS.map(|(_, _, numbers)| numbers[column]);
        let published = published.iter().sum::<f64>() / published.len() as f64;
        claims.push(
            claim(
                "table 4.6",
                format!("Buffer of {kilobytes} KB: lost round trips, mean over the rows (measured by whole transfers)."),
                Unit::Number,
                Published::About((published * 100.0).round() / 100.0),
                Tolerance::Relative(super::timeouts::SHARE),
            )
            .judge(mean(rows.iter().map(|[_, _, lost]| *lost))),
        );
        all.extend(rows);
    }
    let is_largest = |&&[handoff, idle, lost]: &&[f64; 3]| {
        let congestion = lost - handoff - idle;
        congestion > handoff && congestion > idle
    };
    let largest = all.iter().filter(is_largest).count() as f64;
    claims.push(
        claim(
            "section 4.5",
            "A hand-off costs well over 20 round trips on average (mean over table 4.6, measured by whole transfers; without \
             congestion control it would be 18).",
            Unit::Number,
            Published::AtLeast(20.0),
            Tolerance::Exact,
        )
        .judge(mean(all.iter().map(|[_, _, lost]| *lost))),
    );
    claims.push(
        claim(
            "section 4.5",
            "In most cases congestion control is the largest part of the lost round trips (share of table 4.6: what whole \
             transfers lose beyond hand-off and idle time).",
            Unit::Share,
            Published::AtLeast(0.5),
            Tolerance::Exact,
        )
        .judge((!all.is_empty()).then(|| Measured {
            value: largest / all.len() as f64,
            standard_deviation: None,
            count: all.len(),
        })),
    );
    claims
}

fn modelled(kilobytes: u32) -> f64 {
    added_round_trips::added(After::CongestionControl, kilobytes)
}

fn rows(runs: &Runs) -> Vec<Beside> {
    let measured = &table_4_4::TABLE;
    let mut rows = Vec::new();
    for (row, (_, _, numbers)) in measured.rows.iter().zip(ROWS) {
        let [_, idle] = measured.ours(runs, row);
        let handoff = row.handoff.div_duration_f64(row.round_trip);
        for ((kilobytes, _), number) in added_round_trips::TABLE_4_6.into_iter().zip(numbers) {
            let more = handoff + modelled(kilobytes);
            rows.push(Beside {
                labels: vec![
                    Cell::from(row.handoff.as_secs_f64()),
                    Cell::from(row.round_trip.as_secs_f64()),
                    Cell::from(kilobytes),
                ],
                claim: published(row, kilobytes, number),
                ours: idle.map(|idle| shifted(idle, more)),
            });
        }
    }
    rows
}

/// The sample with `more` added to each of its values.
fn shifted(sample: Sample, more: f64) -> Sample {
    Sample {
        mean: sample.mean + more,
        median: sample.median + more,
        least: sample.least + more,
        greatest: sample.greatest + more,
        ..sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_those_of_table_4_4_and_a_constant_each() {
        for (row, (handoff, round_trip, published)) in table_4_4::TABLE.rows.iter().zip(ROWS) {
            assert_eq!(row.handoff.as_millis(), u128::from(handoff));
            assert_eq!(row.round_trip.as_millis(), u128::from(round_trip));
            for ((_, constant), published) in
                added_round_trips::TABLE_4_6.into_iter().zip(published)
            {
                let total = published - constant;
                assert!((total - row.total).abs() < 0.0151, "{}", row.name());
            }
        }
    }
}
