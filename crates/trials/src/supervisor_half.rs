//! Resume time of transfers past M-TCP's supervisor host, with the mobile's half and without it.
//!
//! The place is that of [`gateway_matrix`](crate::gateway_matrix), but only the mobile host loses its carrier, and
//! neighbours know each other for good: the supervisor host at the gateway has silence to go by, and the mobile's
//! marked acknowledgement.

use crate::gateway_matrix::cells::{Cell, DataPath, Stack};
use crate::gateway_matrix::trial::{Arrangement, Observed};
use crate::gateway_matrix::{Duty, five_seconds, middle, trial};
use crate::supervisor_matrix::{
    LOOK_S, PROGRAMS, ends, is_intact, never_is_late, share_of_cells, time,
};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{Bbr, Cubic, Reno};
use outlast_scenario::{Congestion, Mechanism};
use outlast_testbed::site::Cut;

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "supervisor-half",
    title: "How soon transfers resume past a supervisor host, with the mobile's half of M-TCP and without it",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application reads something new, and what the first \
               five seconds bring, with `outlast run --role host` and `mechanism = \"m-tcp\"` at the mobile host \
               and without it",
    method,
    figures: &[&Half],
};

/// With the mobile's half, and without it.
const BOTH: [bool; 2] = [false, true];

/// Shares of the link that differ by less are alike.
const ALIKE: f64 = 0.05;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet of {} Mbit/s each way and 40 ms round trip, with room for {} packets. curl loads \
             6 MB, or rsync brings 6 MB over ssh. After 1.8 MB nothing crosses the link any more, and the mobile \
             host alone loses its carrier. Both ends know each other's hardware address for good. `outlast run --role \
             supervisor` with {} runs on the gateway, for uploads, too, and learns of the outage by silence. `outlast run \
             --role host` with `mechanism = \"m-tcp\"` runs on the mobile host, or does not.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
            Mechanism::MTcpAdaptive,
        ),
        format!(
            "Next byte: the time from link-up until the receiving application has read something new. Five \
             seconds: the share of the link that the first five seconds after link-up used, or those until \
             the transfer ended; all of the link is 6.25 MB with headers. Runs of each cell: {}; the table \
             shows medians, and of the next byte the latest, too. A transfer is given up after a minute and three times \
             the outage.",
            repetitions(extent)
        ),
    ]
}

/// Runs of each cell.
fn repetitions(extent: Extent) -> u32 {
    extent.choose(3, 12)
}

/// The cells, in the order of the table.
fn cells(extent: Extent) -> Vec<Cell> {
    let congestions: &[Congestion] = extent.choose(&[Cubic], &[Cubic, Bbr, Reno]);
    let mut cells = Vec::new();
    for &congestion in congestions {
        cells.extend(PROGRAMS.map(|program| Cell {
            program,
            stack: Stack {
                congestion,
                ..Stack::USUAL
            },
            path: DataPath::Auto,
            cut: Cut::MobileCarrier,
            outage: Duration::from_secs(3),
            starts_late: false,
        }));
    }
    cells
}

fn run_name(cell: &Cell, has_mobiles_half: bool) -> String {
    format!(
        "{}, {}, {} s, {} the mobile's half",
        cell.stack.congestion,
        cell.program.direction(),
        cell.outage.as_secs(),
        with_or_without(has_mobiles_half)
    )
}

const fn with_or_without(has_mobiles_half: bool) -> &'static str {
    match has_mobiles_half {
        true => "with",
        false => "without",
    }
}

fn runs_of<'r>(runs: &'r Runs, cell: &Cell, has_mobiles_half: bool) -> &'r [Record] {
    runs.of(&run_name(cell, has_mobiles_half))
}

/// The comparison as one figure.
#[derive(Debug)]
struct Half;

impl Figure for Half {
    fn name(&self) -> &'static str {
        "half"
    }

    fn title(&self) -> &'static str {
        "Next byte and first five seconds, with the mobile's half and without it"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for index in 0..repetitions(extent) {
                jobs.extend(BOTH.map(|has_mobiles_half| {
                    let arrangement = Arrangement::AtGateway { has_mobiles_half };
                    let name = run_name(&cell, has_mobiles_half);
                    cell.job_in(arrangement, name, Some(Duty::MTcpAdaptive), index)
                }));
            }
        }
        jobs
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells(extent);
        Part::new("Next byte and first five seconds")
            .table(table(&cells, runs))
            .claims(claims(&cells, runs))
    }
}

/// One row for each cell.
fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("direction", "Direction"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
    ];
    for has_half in BOTH {
        let key = with_or_without(has_half);
        let heading = format!("{key} the half: next byte");
        let quantity = |name: &str, title: String, unit| {
            Column::quantity(format!("{key}_{name}"), title, unit)
        };
        columns.extend([
            quantity("s", heading, Unit::Seconds),
            quantity("latest_s", "the latest".into(), Unit::Seconds),
            quantity("five_seconds", "five seconds".into(), Unit::Share),
            Column::text(format!("{key}_intact"), "intact"),
        ]);
    }
    let mut table = Table::new(columns).titled("Next byte, first five seconds, and end");
    for cell in cells {
        let mut row = vec![
            Shown::from(cell.stack.congestion.name()),
            Shown::from(cell.program.direction().name()),
            Shown::from(cell.outage.as_secs_f64()),
        ];
        for has_half in BOTH {
            let records = runs_of(runs, cell, has_half);
            let latest = records.iter().filter_map(never_is_late);
            row.extend([
                time(middle(records.iter(), never_is_late)),
                time(latest.reduce(f64::max)),
                Shown::from(middle(records.iter(), five_seconds)),
                ends(records),
            ]);
        }
        table.push(row);
    }
    table.note(
        "Intact: how many of the transfers had ended before they were given up, with hashes at both ends \
         that are the same.",
    );
    table
}

/// Whether the mobile's half has told of its return.
fn has_marked(run: &Record) -> bool {
    let observed = run.observed::<Observed>();
    observed.and_then(|observed| observed.marked_acks) > Some(0)
}

/// The medians of a cell without the half and with it.
fn medians(cell: &Cell, runs: &Runs, value: fn(&Record) -> Option<f64>) -> Option<(f64, f64)> {
    let [without, with] = BOTH.map(|half| middle(runs_of(runs, cell, half).iter(), value));
    Some((without?, with?))
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str| {
        let everywhere = Published::AtLeast(1.0);
        own_claim("supervisor-half", statement, Unit::Share, everywhere)
    };
    let no_later = share_of_cells(cells.iter(), |cell| {
        let (without, with) = medians(cell, runs, never_is_late)?;
        // Where neither ever goes on, nothing is shown.
        Some(with.is_finite() && with <= without + LOOK_S)
    });
    let no_less = share_of_cells(cells.iter(), |cell| {
        let (without, with) = medians(cell, runs, five_seconds)?;
        Some(with >= without - ALIKE)
    });
    let with_half = cells.iter().flat_map(|cell| runs_of(runs, cell, true));
    vec![
        own("Every transfer ends and is intact.").judge(share(runs.all(), is_intact)),
        own("With the mobile's half at least one acknowledgement is marked (share of runs).")
            .judge(share(with_half, has_marked)),
        own("With the mobile's half the next byte is read at most 10 ms later than without (share of cells, medians).")
            .judge(no_later),
        own(
            "With the mobile's half the first five seconds bring no less than without, by more than 5 % of the link \
             (share of cells, medians).",
        )
        .judge(no_less),
    ]
}
