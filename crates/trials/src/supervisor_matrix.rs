//! Resume time of transfers behind M-TCP's supervisor host, beside `hold` and without a daemon.
//!
//! The place is that of [`gateway_matrix`](crate::gateway_matrix): three namespaces, programs as they are
//! installed, and `outlast run` on a real interface, which loses its carrier once.

use crate::gateway_matrix::cells::{Cell, DataPath, Stack};
use crate::gateway_matrix::programs::Program;
use crate::gateway_matrix::{
    Duty, LIMIT_S, five_seconds, from_first_chance, is_judged, middle, resume, trial,
};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{Bbr, Cubic, Reno};
use outlast_scenario::{Congestion, Mechanism};
use outlast_testbed::site::Cut;

/// The matrix.
pub static EXPERIMENT: Experiment = Experiment {
    name: "supervisor-matrix",
    title: "How soon transfers resume behind M-TCP's supervisor host",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application reads something new, and what the first \
               five seconds bring, with `outlast run --role supervisor` on a real interface",
    method,
    figures: &[&Matrix],
};

/// What runs on the link, in the order of the table; `None`: no daemon.
const DUTIES: [Option<Duty>; 4] = [
    None,
    Some(Duty::Hold),
    Some(Duty::MTcpAdaptive),
    Some(Duty::MTcp),
];

/// The programs: a download and an upload.
pub(crate) const PROGRAMS: [Program; 2] = [Program::Curl, Program::RsyncUp];

/// From this length on an outage leaves a sender in a timeout of seconds.
const LONG: Duration = Duration::from_secs(5);

/// The next byte may come so much later than in what a run is compared with, in seconds: what was read is looked at
/// so often.
pub(crate) const LOOK_S: f64 = 0.010;

/// The share of what the first five seconds bring under `hold` that the published rules leave at most.
const STALLED: f64 = 0.5;

const fn name_of(duty: Option<Duty>) -> &'static str {
    match duty {
        None => "no daemon",
        Some(duty) => duty.mechanism().name(),
    }
}

const fn key_of(duty: Option<Duty>) -> &'static str {
    match duty {
        None => "control",
        Some(Duty::Hold) => "hold",
        Some(Duty::MTcpAdaptive) => "adaptive",
        Some(Duty::MTcp) => "published",
    }
}

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet of {} Mbit/s each way and 40 ms round trip, with room for {} packets. curl loads \
             6 MB, or rsync brings 6 MB over ssh. After 1.8 MB both ends of the link lose their carrier. \
             `outlast run` runs on the gateway for downloads, and on the mobile host itself for uploads: \
             with `hold`, or with `--role supervisor` and a mechanism of M-TCP; or there is none.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
        ),
        format!(
            "Next byte: the time from link-up until the receiving application has read something new. Five \
             seconds: the share of the link that the first five seconds after link-up used, or those until \
             the transfer ended; all of the link is 6.25 MB with headers. Runs of each cell: {}; the table \
             shows medians. A transfer is given up after a minute and three times the outage.",
            repetitions(extent)
        ),
    ]
}

/// Runs of each cell.
fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// The cells, in the order of the table.
fn cells(extent: Extent) -> Vec<Cell> {
    let congestions: &[Congestion] = extent.choose(&[Cubic], &[Cubic, Bbr, Reno]);
    let lengths: &[u64] = extent.choose(&[6], &[1, 10, 30]);
    let mut cells = Vec::new();
    for &congestion in congestions {
        for program in PROGRAMS {
            cells.extend(lengths.iter().map(|&seconds| Cell {
                program,
                stack: Stack {
                    congestion,
                    ..Stack::USUAL
                },
                path: DataPath::Auto,
                cut: Cut::Carrier,
                outage: Duration::from_secs(seconds),
                starts_late: false,
            }));
        }
    }
    cells
}

fn run_name(cell: &Cell, duty: Option<Duty>) -> String {
    format!(
        "{}, {}, {} s, {}",
        cell.stack.congestion,
        cell.program.direction(),
        cell.outage.as_secs(),
        name_of(duty)
    )
}

fn runs_of<'r>(runs: &'r Runs, cell: &Cell, duty: Option<Duty>) -> &'r [Record] {
    runs.of(&run_name(cell, duty))
}

/// The matrix as one figure.
#[derive(Debug)]
struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "Next byte and first five seconds, by what runs on the link"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for duty in DUTIES {
                let job = |index| cell.job_of(run_name(&cell, duty), duty, index);
                jobs.extend((0..repetitions(extent)).map(job));
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
    for duty in DUTIES {
        let (key, name) = (key_of(duty), name_of(duty));
        columns.push(Column::quantity(
            format!("{key}_s"),
            format!("{name}: next byte"),
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{key}_five_seconds"),
            "five seconds",
            Unit::Share,
        ));
        columns.push(Column::text(format!("{key}_intact"), "intact"));
    }
    let mut table = Table::new(columns).titled("Next byte, first five seconds, and end");
    for cell in cells {
        let mut row = vec![
            Shown::from(cell.stack.congestion.name()),
            Shown::from(cell.program.direction().name()),
            Shown::from(cell.outage.as_secs_f64()),
        ];
        for duty in DUTIES {
            let records = runs_of(runs, cell, duty);
            row.push(time(middle(records.iter(), never_is_late)));
            row.push(Shown::from(middle(records.iter(), first_five_seconds)));
            row.push(ends(records));
        }
        table.push(row);
    }
    table.note(
        "Intact: how many of the transfers had ended before they were given up, with hashes at both ends \
         that are the same. A transfer under a daemon that has not brought 1.8 MB in 30 s has no outage: its \
         next byte never comes, and its five seconds bring nothing.",
    );
    table
}

/// A time of transfers, or that they never went on.
pub(crate) fn time(seconds: Option<f64>) -> Shown {
    match seconds {
        None => Shown::missing(),
        Some(time) if time.is_finite() => Shown::from(time),
        Some(_) => Shown::from("never").tone(Tone::Bad),
    }
}

/// How many transfers were intact at their end.
pub(crate) fn ends(records: &[Record]) -> Shown {
    let intact = records.iter().filter(|record| is_intact(record)).count();
    match records.len() {
        0 => Shown::missing(),
        all if intact == all => Shown::from(format!("{intact} of {all}")),
        all => Shown::from(format!("{intact} of {all}")).tone(Tone::Bad),
    }
}

/// When the next byte was read, in seconds after link-up; infinity if it never was.
pub(crate) fn never_is_late(run: &Record) -> Option<f64> {
    Some(resume(run).unwrap_or(f64::INFINITY))
}

/// The share of the link that the first five seconds used; none of it if too little came before for an outage.
fn first_five_seconds(run: &Record) -> Option<f64> {
    match run.result.outages.is_empty() {
        true => Some(0.0),
        false => five_seconds(run),
    }
}

pub(crate) fn is_intact(run: &Record) -> bool {
    run.result.completed && run.result.intact == Some(true)
}

fn is_in_time(run: &Record) -> bool {
    from_first_chance(run).is_some_and(|time| time <= LIMIT_S)
}

/// The share of `cells` for which `holds`, of those that were measured.
pub(crate) fn share_of_cells<'c>(
    cells: impl Iterator<Item = &'c Cell>,
    holds: impl Fn(&Cell) -> Option<bool>,
) -> Option<Measured> {
    let judged: Vec<bool> = cells.filter_map(holds).collect();
    let good = judged.iter().filter(|&&holds| holds).count();
    (!judged.is_empty()).then(|| Measured {
        value: good as f64 / judged.len() as f64,
        standard_deviation: None,
        count: judged.len(),
    })
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let judged_by = |statement: String, published| {
        own_claim("supervisor-matrix", statement, Unit::Share, published)
    };
    let own = |statement| judged_by(statement, Published::AtLeast(1.0));
    let adaptive = || {
        let all = cells.iter();
        all.flat_map(|cell| runs_of(runs, cell, Some(Duty::MTcpAdaptive)))
    };
    let ended = runs.all().filter(|run| run.result.completed);
    let median = |cell: &Cell, duty, value: fn(&Record) -> Option<f64>| {
        middle(runs_of(runs, cell, duty).iter(), value)
    };
    let no_later = share_of_cells(cells.iter(), |cell| {
        let control = median(cell, None, never_is_late)?;
        Some(median(cell, Some(Duty::MTcpAdaptive), never_is_late)? <= control + LOOK_S)
    });
    let long = cells.iter().filter(|cell| cell.outage >= LONG);
    let beside_hold = long.map(|cell| {
        let hold = median(cell, Some(Duty::Hold), first_five_seconds)?;
        let published = median(cell, Some(Duty::MTcp), first_five_seconds)?;
        (hold > 0.0).then(|| published / hold)
    });
    let adaptive_name = Mechanism::MTcpAdaptive;
    vec![
        own(format!(
            "{adaptive_name}: every transfer ends and is intact."
        ))
        .judge(share(adaptive(), is_intact)),
        own("What ended is intact, whatever runs on the link (share of transfers).".into())
            .judge(share(ended, is_intact)),
        own(format!(
            "{adaptive_name}: the next byte is read within one round trip and 50 ms of the first possible moment \
             (share of transfers)."
        ))
        .judge(share(adaptive().filter(|run| is_judged(run)), is_in_time)),
        own(format!(
            "{adaptive_name}: the next byte is read at most 10 ms later than without a daemon (share of cells, \
             medians)."
        ))
        .judge(no_later),
        judged_by(
            "m-tcp, as published, stalls senders on Linux: after outages of 5 s and longer the first five seconds \
             bring at most half of what they bring with hold (median over the cells, each by its medians)."
                .into(),
            Published::AtMost(STALLED),
        )
        .judge(outlast_experiments::present::median(
            beside_hold.flatten().map(Some),
        )),
    ]
}
