//! `outlast sweep FILE`: grids and repetitions of a scenario in virtual time, on all cores.

use crate::failure::Failure;
use crate::labs;
use crate::progress::RunBar;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_linux::clock;
use outlast_linux::signal::Termination;
use outlast_linux::waker::Waker;
use outlast_report::table::{Table, TextStyle};
use outlast_sweep::output::{self, Detail, OutputError};
use outlast_sweep::{CellSummary, Journal, JournalError, Next, Plan, Width, Workers, table};
use serde::Serialize;
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A table in a terminal has no more rows.
const MOST_ROWS: u64 = 60;
/// Before that nothing is said of the time left.
const FIRST_ESTIMATE: Duration = Duration::from_millis(200);
/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The sweep file (see docs/sweep-file.md; examples/sweeps has some).
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where tables and finished runs are stored; by default outlast-sweep/NAME.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Runs at once; by default as many as there are cores. The result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<u16>>,

    /// Write a table with a row for each outage, too.
    #[arg(long)]
    outages: bool,

    /// Write a table with a row for each connection, too, where there are several.
    #[arg(long)]
    flows: bool,

    /// Begin anew: forget the runs that an earlier call has finished.
    #[arg(long)]
    fresh: bool,

    /// Print a summary of each cell as one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = Arc::new(Plan::load(&arguments.file)?);
    let directory = match &arguments.out {
        Some(directory) => directory.clone(),
        None => Path::new("outlast-sweep").join(plan.name()),
    };
    labs::make_directory(&directory, "--out")?;
    let mut journal = open(&plan, &directory.join("journal.jsonl"), arguments.fresh)?;
    let interrupt = Interrupt::new()?;
    simulate(&plan, &mut journal, threads(arguments), &interrupt)?;
    let mut summary = Summary::new(&plan, &directory, arguments.json)?;
    let written = output::write(&plan, &journal, &directory, &details(arguments), |cell| {
        if interrupt.has_come()? {
            return Err(ErrorKind::Interrupted.into());
        }
        summary.add(&plan, cell)
    });
    written.map_err(|error| match error {
        OutputError::Summary(error) if error.kind() == ErrorKind::Interrupted => {
            Failure::Run(interrupted(&plan, &journal))
        }
        error => Failure::Run(error.into()),
    })?;
    summary.finish(&plan, arguments)
}

fn threads(arguments: &Arguments) -> NonZero<usize> {
    let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    arguments.threads.map_or_else(cores, NonZero::from)
}

/// The tables that are not written unless asked for.
fn details(arguments: &Arguments) -> Vec<Detail> {
    let is_wanted = |detail: &Detail| match detail {
        Detail::Outages => arguments.outages,
        Detail::Flows => arguments.flows,
    };
    Detail::ALL.into_iter().filter(is_wanted).collect()
}

fn open(plan: &Plan, path: &Path, fresh: bool) -> Result<Journal, Failure> {
    let discarded = if fresh {
        Journal::discard(path)
    } else {
        Ok(())
    };
    let opened = discarded.and_then(|()| Journal::open(path, plan, env!("CARGO_PKG_VERSION")));
    opened.map_err(|error| {
        let advice = match &error {
            JournalError::Foreign { .. } | JournalError::Damaged { .. } => {
                "name another directory with --out, or begin anew with --fresh"
            }
            JournalError::Busy { .. } => "wait for its end, or name another directory with --out",
            JournalError::File { .. } => "name another directory with --out",
        };
        Failure::Usage(format!("{:#}; {advice}", anyhow::Error::from(error)))
    })
}

/// Carries out what is not done yet.
fn simulate(
    plan: &Arc<Plan>,
    journal: &mut Journal,
    threads: NonZero<usize>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let before = journal.done();
    if before > 0 {
        let total = plan.runs();
        terminal::say(&format!("{before} of {total} runs were done before"));
    }
    if before == plan.runs() {
        return Ok(());
    }
    let workers = Workers::start(plan, journal.is_done(), threads).context("no thread starts")?;
    let mut bar = RunBar::new();
    let outcome = collect(plan, journal, workers, interrupt, &mut bar);
    bar.clear();
    outcome
}

/// Stores the runs as they are finished.
fn collect(
    plan: &Plan,
    journal: &mut Journal,
    mut workers: Workers,
    interrupt: &Interrupt,
    bar: &mut RunBar,
) -> Result<(), Failure> {
    let (before, begun) = (journal.done(), clock::now());
    let mut shown = None;
    let mut latest = begun;
    loop {
        match workers.next(TICK) {
            Next::Finished(finished) => {
                latest = clock::now();
                let stored = journal.append(plan, &finished);
                stored.map_err(|error| Failure::Run(error.into()))?;
            }
            Next::Failed(error) => {
                let error = anyhow::Error::from(*error);
                return Err(Failure::Usage(format!("cannot simulate {error:#}")));
            }
            Next::Nothing => {}
            Next::Over => return Ok(()),
        }
        if interrupt.has_come()? {
            return Err(Failure::Run(interrupted(plan, journal)));
        }
        let now = clock::now();
        if shown.is_none_or(|shown| now.since(shown) >= TICK) || journal.done() == plan.runs() {
            shown = Some(now);
            let left = left(
                journal.done() - before,
                plan.runs() - journal.done(),
                now.since(begun),
                now.since(latest),
            );
            bar.update(journal.done(), plan.runs(), "", left);
        }
    }
}

/// How long `left` runs take if `done` took `time`; `None` if that cannot be told yet. The runs come
/// in an order that makes those done a sample of all. What is left at the end is not: the longest
/// runs. Where none has ended for as long as `waited`, the next one is taken to last as long again.
fn left(done: u64, left: u64, time: Duration, waited: Duration) -> Option<Duration> {
    if time < FIRST_ESTIMATE || done == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let share = left as f64 / done as f64;
    let expected = Duration::try_from_secs_f64(time.as_secs_f64() * share).ok()?;
    Some(match left {
        0 => Duration::ZERO,
        _ => expected.max(waited),
    })
}

fn interrupted(plan: &Plan, journal: &Journal) -> anyhow::Error {
    let (done, total) = (journal.done(), plan.runs());
    anyhow!("interrupted: {done} of {total} runs are done, and the same command goes on from there")
}

/// Ctrl-C, and whatever else asks the process to end. A second one ends it at once.
struct Interrupt {
    waker: Waker,
    _termination: Termination,
}

impl Interrupt {
    fn new() -> io::Result<Self> {
        let waker = Waker::new()?;
        let termination = Termination::wake(&waker)?;
        Ok(Self {
            waker,
            _termination: termination,
        })
    }

    fn has_come(&self) -> io::Result<bool> {
        self.waker.reset()
    }
}

/// What is shown of the cells.
struct Summary {
    /// The first cells.
    cells: Vec<CellSummary>,
    corrupt: u64,
    json: Option<Document>,
}

impl Summary {
    fn new(plan: &Plan, directory: &Path, json: bool) -> Result<Self, Failure> {
        let json = json.then(|| Document::begin(plan, directory)).transpose()?;
        Ok(Self {
            cells: Vec::new(),
            corrupt: 0,
            json,
        })
    }

    fn add(&mut self, plan: &Plan, cell: CellSummary) -> io::Result<()> {
        self.corrupt += cell.corrupt;
        match &mut self.json {
            Some(json) => json.add(plan, &cell)?,
            None if (self.cells.len() as u64) < MOST_ROWS => self.cells.push(cell),
            None => {}
        }
        Ok(())
    }

    fn finish(self, plan: &Plan, arguments: &Arguments) -> Result<(), Failure> {
        match self.json {
            Some(json) => json.end().context("cannot write to standard output")?,
            None => show(plan, &self.cells, arguments)?,
        }
        match self.corrupt {
            0 => Ok(()),
            runs => Err(anyhow!("in {runs} runs what arrived is not what was sent").into()),
        }
    }
}

fn show(plan: &Plan, cells: &[CellSummary], arguments: &Arguments) -> Result<(), Failure> {
    let mut fitting = table(plan, cells, Width::Wide);
    if terminal::table_width().is_some_and(|width| !fits(&fitting, width)) {
        fitting = table(plan, cells, Width::Narrow);
    }
    let hidden = plan.cells() - cells.len() as u64;
    if hidden > 0 {
        fitting.note(format!("{hidden} more cells are in cells.csv."));
    }
    terminal::print_table(&fitting)?;
    let mut names = vec![output::RUNS, output::CELLS];
    names.extend(details(arguments).into_iter().map(Detail::name));
    let out = arguments.out.clone();
    let directory = out.unwrap_or_else(|| Path::new("outlast-sweep").join(plan.name()));
    let directory = std::path::absolute(directory)?;
    terminal::print(&format!(
        "\n{} runs: {} as CSV and Parquet in {}\n",
        plan.runs(),
        names.join(", "),
        directory.display()
    ))
}

/// Whether a table can be shown in `width` columns.
fn fits(table: &Table, width: usize) -> bool {
    let style = TextStyle {
        width: Some(width),
        ..TextStyle::default()
    };
    let text = table.to_text(&style);
    text.lines()
        .all(|line| console::measure_text_width(line) <= width)
}

/// How the JSON document begins.
#[derive(Serialize)]
struct Head<'a> {
    sweep: &'a str,
    directory: PathBuf,
    runs: u64,
    repeat: u64,
}

/// The JSON document, written as the cells come: there may be many.
struct Document {
    out: BufWriter<Stdout>,
    is_first: bool,
    /// Whether the reader has gone away, which is no error of ours.
    is_unread: bool,
}

impl Document {
    fn begin(plan: &Plan, directory: &Path) -> Result<Self, Failure> {
        let mut document = Self {
            out: BufWriter::new(io::stdout()),
            is_first: true,
            is_unread: false,
        };
        let head = Head {
            sweep: plan.name(),
            directory: std::path::absolute(directory)?,
            runs: plan.runs(),
            repeat: plan.repeat(),
        };
        let head = serde_json::to_string(&head).map_err(anyhow::Error::from)?;
        let head = head.trim_end_matches('}');
        let begun = document.write(&format!("{head},\"cells\":["));
        begun.context("cannot write to standard output")?;
        Ok(document)
    }

    fn add(&mut self, plan: &Plan, cell: &CellSummary) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) {
            "\n"
        } else {
            ",\n"
        };
        let cell = serde_json::to_string(&cell.to_json(plan))?;
        self.write(&format!("{separator}{cell}"))
    }

    fn end(mut self) -> io::Result<()> {
        self.write("\n]}\n")?;
        self.act(Write::flush)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.act(|out| out.write_all(text.as_bytes()))
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>,
    ) -> io::Result<()> {
        match act(&mut self.out) {
            _ if self.is_unread => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_unread = true;
                Ok(())
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_runs_are_not_expected_to_end_at_once() {
        let seconds = Duration::from_secs;
        // 10,000 runs took 100 s, and two long ones are left.
        let of_all = left(10_000, 2, seconds(100), Duration::ZERO);
        assert_eq!(of_all, Some(Duration::from_millis(20)));
        assert_eq!(
            left(10_000, 2, seconds(130), seconds(30)),
            Some(seconds(30))
        );
        assert_eq!(left(10_002, 0, seconds(150), seconds(20)), Some(seconds(0)));
        // While many are left, a pause says nothing.
        assert_eq!(left(100, 100, seconds(60), seconds(2)), Some(seconds(60)));
        assert_eq!(left(0, 10, seconds(5), seconds(5)), None);
    }
}
