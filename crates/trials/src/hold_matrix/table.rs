//! The matrix as tables.

use super::cells::{self, Cell, Placement, on_or_off};
use super::{LIMIT_S, is_link_limited, is_within, resume};
use outlast_experiments::experiment::Extent;
use outlast_experiments::present::{five_seconds, half_second};
use outlast_experiments::record::{Record, Runs};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;

/// What is shown of more than the first new bytes.
const BESIDE: [Placement; 2] = [Placement::None, Placement::Both];

/// One row per cell, one column per placement: the worst resume time.
pub(super) fn matrix(extent: Extent, cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("sack", "SACK"),
        Column::text("direction", "Direction"),
        Column::text("ip", "IP"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
    ];
    let placements = cells::placements(extent);
    columns.extend(
        placements
            .iter()
            .map(|placement| Column::quantity(placement.key(), placement.short(), Unit::Seconds)),
    );
    columns.push(Column::text("both_within", "Limit kept"));
    for placement in BESIDE {
        let (key, short) = (placement.key(), placement.short());
        columns.push(Column::quantity(
            format!("{key}_half_second_s"),
            format!("{short}: half a second"),
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{key}_five_seconds"),
            "five seconds",
            Unit::Share,
        ));
    }
    let mut table =
        Table::new(columns).titled("Resume time, the worst run of each cell, by where hold is");
    for cell in cells {
        let mut row = vec![
            Shown::from(cell.congestion.name()),
            Shown::from(on_or_off(cell.sack)),
            Shown::from(cell.direction.name()),
            Shown::from(cell.ip.name()),
            Shown::from(cell.outage.as_secs_f64()),
        ];
        for &placement in placements {
            row.push(worst(placement, runs.of(&cell.name(placement))));
        }
        row.push(verdict(runs.of(&cell.name(Placement::Both))));
        for placement in BESIDE {
            let records = runs.of(&cell.name(placement));
            row.push(Shown::from(half_second(records)));
            row.push(Shown::from(five_seconds(records)));
        }
        table.push(row);
    }
    table.note(format!(
        "Limit kept: with hold at both ends, one round trip and 50 ms, {}. \"never\": not before the run's deadline, three times \
         the outage and more after link-up.",
        Unit::Seconds.show_exact(LIMIT_S)
    ));
    table.note(
        "Half a second: the median time from link-up until as much had come as the link carries in half a          second. Five seconds: the median share of the link that the first five seconds used, or those          until the transfer ended.",
    );
    table
}

/// The longest resume time; what never resumed is longest.
fn worst(placement: Placement, records: &[Record]) -> Shown {
    if records.is_empty() {
        return Shown::missing();
    }
    let times: Option<Vec<f64>> = records.iter().map(resume).collect();
    let Some(times) = times else {
        return Shown::from("never").tone(Tone::Bad);
    };
    let worst = times.into_iter().fold(0.0, f64::max);
    let tone = match placement {
        _ if worst <= LIMIT_S => Tone::Good,
        Placement::None => Tone::Plain,
        _ if records.iter().all(is_within) => Tone::Plain,
        Placement::Both => Tone::Bad,
        Placement::Gateway | Placement::Mobile => Tone::Warning,
    };
    Shown::from(worst).tone(tone)
}

fn verdict(records: &[Record]) -> Shown {
    let beyond = || {
        records
            .iter()
            .filter(|r| resume(r).is_none_or(|time| time > LIMIT_S))
    };
    match (records, beyond().count()) {
        ([], _) => Shown::missing(),
        (_, 0) => Shown::from("yes").tone(Tone::Good),
        _ if beyond().all(is_link_limited) => Shown::from("limited by the link").tone(Tone::Plain),
        _ => Shown::from("no").tone(Tone::Bad),
    }
}

/// The runs with `hold` at both ends that are beyond the limit; `None` if there are none.
pub(super) fn beyond(cells: &[Cell], runs: &Runs) -> Option<Table> {
    let mut table = Table::new([
        Column::text("cell", "Cell"),
        Column::quantity("run", "Run", Unit::Count),
        Column::quantity("resume_s", "New bytes after", Unit::Seconds),
        Column::quantity("restart_s", "Sender restarts after", Unit::Seconds),
        Column::quantity("link_busy", "Link busy until then", Unit::Share),
        Column::text("link_limited", "Limited by the link"),
        Column::quantity("timeouts", "Timeouts", Unit::Count),
    ])
    .titled("Beyond the limit with hold at both ends");
    for cell in cells {
        for record in runs.of(&cell.name(Placement::Both)) {
            if resume(record).is_some_and(|time| time <= LIMIT_S) {
                continue;
            }
            let reconnection = record.reconnections.first().copied().unwrap_or_default();
            table.push([
                Shown::from(format!("{}, {}", cell.group(), cell.label())),
                Shown::from(record.index),
                Shown::from(resume(record)),
                Shown::from(reconnection.restart_s),
                Shown::from(reconnection.busy),
                Shown::from(is_link_limited(record)),
                Shown::from(record.result.timeouts),
            ]);
        }
    }
    (table.row_count() > 0).then_some(table)
}
