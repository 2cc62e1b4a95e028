//! What wakes a sender beyond the link, which the mobile host's side cannot reach otherwise.

use super::cells::{self, Cell, Contestant};
use super::{LONG_S, is_judged, resume, shown};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{five_seconds, median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;

/// One round trip and 100 ms, in seconds.
const LIMIT_S: f64 = 0.040 + 0.100;

/// Ways to wake a remote sender, as one figure.
#[derive(Debug)]
pub(super) struct RemoteSender;

impl Figure for RemoteSender {
    fn name(&self) -> &'static str {
        "remote-sender"
    }

    fn title(&self) -> &'static str {
        "What wakes a sender beyond the link"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent, &cells::remote_cells(extent), &Contestant::OF_REMOTE)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::remote_cells(extent);
        let mut part = Part::new("What wakes a sender beyond the link");
        for same in cells.chunk_by(|one, next| one.outage == next.outage) {
            part = part.table(table(same, runs));
        }
        part.claims(claims(&cells, runs))
    }
}

fn sender(cell: &Cell) -> String {
    let sack = if cell.sack { "" } else { " without SACK" };
    format!("{}{sack}", cell.congestion)
}

/// The cells of one outage: a row for each sender and each way to wake it.
fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new(vec![
        Column::text("sender", "Sender"),
        Column::text("woken_by", "Woken by"),
        Column::quantity("resume_s", "Resumed", Unit::Seconds),
        Column::quantity("worst_s", "worst", Unit::Seconds),
        Column::quantity("five_seconds", "First five seconds", Unit::Share),
    ])
    .titled(format!(
        "Downloads, no carrier for {} s",
        cells[0].outage.as_secs_f64()
    ));
    for cell in cells {
        for contestant in Contestant::OF_REMOTE {
            let records = runs.of(&cell.name(contestant));
            let worst = records
                .iter()
                .map(|run| resume(run).unwrap_or(f64::INFINITY));
            table.push(vec![
                Shown::from(sender(cell)),
                Shown::from(match contestant {
                    Contestant::Plain => "nothing",
                    _ => contestant.title(),
                }),
                shown(median(records.iter().map(resume)).map(|it| it.value)),
                shown(worst.reduce(f64::max)),
                Shown::from(five_seconds(records)),
            ]);
        }
    }
    table
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let of = |which: fn(&Cell) -> bool, contestant: Contestant| {
        let those = cells.iter().filter(move |cell| which(cell));
        those
            .flat_map(move |cell| runs.of(&cell.name(contestant)))
            .filter(|run| is_judged(run))
    };
    let in_time = |statement: &'static str, which, contestant| {
        let is_in_time = |run: &Record| resume(run).is_some_and(|time| time <= LIMIT_S);
        own_claim("race", statement, Unit::Share, Published::AtLeast(1.0))
            .judge(share(of(which, contestant), is_in_time))
    };
    let is_long = |cell: &Cell| cell.outage.as_secs_f64() >= LONG_S;
    let waits = own_claim(
        "race",
        "A sender beyond the link that nothing wakes waits for a second or more after outages of 15 s and longer (median).",
        Unit::Seconds,
        Published::AtLeast(1.0),
    );
    vec![
        in_time(
            "With agents at both hosts a sender beyond the link resumes within one round trip and 100 ms (share of runs).",
            |_| true,
            Contestant::AgentAtBoth,
        ),
        in_time(
            "With hold at the mobile host alone CUBIC and Reno with SACK do (share of runs).",
            |cell| cell.sack && cell.congestion != outlast_scenario::Congestion::Bbr,
            Contestant::HoldAtMobile,
        ),
        waits.judge(median(of(is_long, Contestant::Plain).map(resume))),
    ]
}
