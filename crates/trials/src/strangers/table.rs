//! The tables of the page.

use super::cells::{Cell, Placement};
use super::trial::Observed;
use super::{is_judged, of, resume};
use crate::gateway_matrix::cells::DataPath;
use crate::gateway_matrix::middle;
use outlast_experiments::record::{Record, Runs};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;

/// What resumes, and what the first five seconds bring.
pub(super) fn transfers(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = head();
    columns.extend([
        Column::text("neighbours", "Neighbours"),
        Column::quantity("resume_s", "Resumed", Unit::Seconds),
        Column::quantity("first_sign_s", "First sign", Unit::Seconds),
        Column::quantity("five_seconds", "First five seconds", Unit::Share),
        Column::quantity("taken", "Kept", Unit::Count),
        Column::quantity("injected", "Sent by gateways", Unit::Count),
        Column::quantity("lost", "Taken for lost", Unit::Count),
        Column::text("ended", "Ended"),
    ]);
    let mut table = Table::new(columns).titled("When it resumes");
    for cell in cells {
        let records = judged(cell, runs);
        let mut row = names(cell);
        row.push(Shown::from(match cell.is_introduced {
            true => "known",
            false => "asked for",
        }));
        row.push(time(&records, |run| {
            Some(resume(run).unwrap_or(f64::INFINITY))
        }));
        row.push(time(&records, |run| of(run)?.first_sign_s));
        row.push(Shown::from(middle(records.iter().copied(), |run| {
            run.result.outages.first()?.first_five_seconds_share
        })));
        row.push(count(&records, |seen| Some(seen.taken)));
        row.push(count(&records, |seen| Some(seen.injected)));
        row.push(count(&records, |seen| seen.lost));
        let ended = records.iter().find_map(|run| of(run)?.ended);
        row.push(ended.map_or_else(Shown::missing, |why| Shown::from(why).tone(Tone::Bad)));
        table.push(row);
    }
    table.note(
        "First five seconds: payload, as a share of all that the link carries in that time, headers included. Taken for \
         lost: packets, over all of the run.",
    );
    table
}

/// What became of datagrams that say when they were sent.
pub(super) fn datagrams(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = head();
    columns.extend([
        Column::quantity("late", "Late", Unit::Count),
        Column::quantity("oldest_s", "Oldest", Unit::Seconds),
        Column::quantity("duplicates", "Twice", Unit::Count),
        Column::quantity("overtaken", "Overtaken", Unit::Count),
        Column::quantity("outside_window", "Outside a window of 64", Unit::Count),
        Column::quantity("fresh", "Fresh", Unit::Count),
        Column::quantity("slowest_fresh_s", "Slowest fresh", Unit::Seconds),
        Column::quantity("jitter_s", "Jitter", Unit::Seconds),
    ]);
    let mut table = Table::new(columns).titled("What comes late, and what that does");
    for cell in cells.iter().filter(|cell| !cell.stranger.is_transfer()) {
        let records = judged(cell, runs);
        let mut row = names(cell);
        row.push(count(&records, |it| Some(it.seen.late)));
        row.push(time(&records, |run| of(run)?.seen.oldest_s));
        row.push(count(&records, |it| Some(it.seen.duplicates)));
        row.push(count(&records, |it| Some(it.seen.overtaken)));
        row.push(count(&records, |it| Some(it.seen.outside_window)));
        row.push(count(&records, |it| Some(it.seen.fresh)));
        row.push(time(&records, |run| of(run)?.seen.slowest_fresh_s));
        row.push(time(&records, |run| of(run)?.seen.jitter_s));
        table.push(row);
    }
    table.note(
        "Late: sent before link-up, came after it. Overtaken: came after one with a higher number; of these, what a \
         receiver of ESP or WireGuard with an anti-replay window of 64 packets would discard. Fresh: sent after link-up.",
    );
    table
}

fn head() -> Vec<Column> {
    vec![
        Column::text("stranger", "Traffic"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
        Column::text("placement", "hold at"),
        Column::text("path", "by"),
    ]
}

fn names(cell: &Cell) -> Vec<Shown> {
    let path = match (cell.placement, cell.path) {
        (Placement::None, _) => "",
        (_, DataPath::Auto) => "eBPF",
        (_, DataPath::Nfqueue) => "nfqueue",
    };
    vec![
        Shown::from(cell.stranger.title()),
        Shown::from(cell.outage.as_secs_f64()),
        Shown::from(cell.placement.title()),
        Shown::from(path),
    ]
}

fn judged<'r>(cell: &Cell, runs: &'r Runs) -> Vec<&'r Record> {
    let all = runs.of(&cell.name()).iter();
    all.filter(|run| is_judged(run)).collect()
}

fn time(records: &[&Record], value: impl Fn(&Record) -> Option<f64>) -> Shown {
    match middle(records.iter().copied(), value) {
        None => Shown::missing(),
        Some(time) if time.is_finite() => Shown::from(time),
        Some(_) => Shown::from("never").tone(Tone::Bad),
    }
}

fn count(records: &[&Record], value: impl Fn(&Observed) -> Option<u64>) -> Shown {
    let value = |run: &Record| value(&of(run)?).map(|count| count as f64);
    middle(records.iter().copied(), value)
        .map_or_else(Shown::missing, |count| Shown::from(count as u64))
}
