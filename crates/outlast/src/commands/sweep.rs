//! `outlast sweep FILE`: grids and repetitions of a scenario in virtual time, on all cores.

use crate::commands::sweep_in_guests::{self, Guests};
use crate::failure::Failure;
use crate::guests::{self, Programs};
use crate::inputs::Input;
use crate::labs;
use crate::progress::RunBar;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_guest::Kernel;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_report::table::{Table, TextStyle};
use outlast_scenario::result::World;
use outlast_sweep::output::{self, Detail, OutputError};
use outlast_sweep::{
    CellSummary, Journal, JournalError, Next, Origin, Plan, RunError, RunFault, Runner, Simulator,
    Width, Workers, table,
};
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

    /// Where tables and finished runs are stored; by default outlast-sweep/NAME, and with --kernel
    /// outlast-sweep/NAME-RELEASE.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Carry each run out by the lab on this unpacked kernel, in an emulated machine and in virtual
    /// time (see `outlast kernels`).
    #[arg(long, value_name = "DIR")]
    kernel: Option<PathBuf>,

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

    /// Relative paths in the file count from here.
    #[arg(long, value_name = "DIR", hide = true)]
    relative_to: Option<PathBuf>,
}

/// The sweep, and the world of its runs.
struct Whole {
    plan: Arc<Plan>,
    kernel: Option<Kernel>,
    /// The programs that its workloads start.
    programs: Programs,
}

impl Whole {
    fn load(arguments: &Arguments) -> Result<Self, Failure> {
        let input = Input {
            file: &arguments.file,
            directory: arguments.relative_to.as_ref(),
        };
        let mut programs = Programs::default();
        let kernel = arguments
            .kernel
            .as_deref()
            .map(guests::kernel)
            .transpose()?;
        let plan = match kernel {
            None => input.plan(&mut outlast_sweep::simulable)?,
            Some(_) => input.plan(&mut |scenario| {
                programs.add(scenario);
                sweep_in_guests::check(scenario)
            })?,
        };
        Ok(Self {
            plan: Arc::new(plan),
            kernel,
            programs,
        })
    }

    fn origin(&self) -> Origin {
        let kernel = self.kernel.as_ref();
        kernel.map_or(Origin::SIMULATOR, |kernel| Origin::kernel(kernel.release()))
    }

    /// The runner of its runs: the simulator, or guests.
    fn runner(&self, cancel: &Cancel) -> Result<Arc<dyn Runner>, Failure> {
        Ok(match &self.kernel {
            None => Arc::new(Simulator),
            Some(kernel) => Arc::new(Guests::new(kernel, &self.plan, &self.programs, cancel)?),
        })
    }

    /// The directory for tables and finished runs, if none is named.
    fn directory(&self) -> PathBuf {
        let name = self.plan.name();
        let place = Path::new("outlast-sweep");
        match &self.kernel {
            None => place.join(name),
            Some(kernel) => place.join(format!("{name}-{}", kernel.release())),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let whole = Whole::load(arguments)?;
    let plan = &whole.plan;
    let directory = match &arguments.out {
        Some(directory) => directory.clone(),
        None => whole.directory(),
    };
    labs::make_directory(&directory, "--out")?;
    let mut journal = open(&whole, &directory.join("journal.jsonl"), arguments.fresh)?;
    let (cancel, _termination) = labs::interruptible()?;
    carry_out(&whole, &mut journal, threads(arguments), &cancel)?;
    let mut summary = Summary::new(&whole, &directory, arguments.json)?;
    let written = output::write(plan, &journal, &directory, &details(arguments), |cell| {
        if cancel.is_cancelled() {
            return Err(ErrorKind::Interrupted.into());
        }
        summary.add(plan, cell)
    });
    written.map_err(|error| match error {
        OutputError::Summary(error) if error.kind() == ErrorKind::Interrupted => {
            Failure::Run(interrupted(plan, &journal))
        }
        error => Failure::Run(error.into()),
    })?;
    summary.finish(&whole, &directory, arguments)
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

fn open(whole: &Whole, path: &Path, fresh: bool) -> Result<Journal, Failure> {
    let discarded = if fresh {
        Journal::discard(path)
    } else {
        Ok(())
    };
    let version = env!("CARGO_PKG_VERSION");
    let opened =
        discarded.and_then(|()| Journal::open(path, &whole.plan, &whole.origin(), version));
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
fn carry_out(
    whole: &Whole,
    journal: &mut Journal,
    threads: NonZero<usize>,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let plan = &whole.plan;
    let before = journal.done();
    if before > 0 {
        let total = plan.runs();
        terminal::say(&format!("{before} of {total} runs were done before"));
    }
    if before == plan.runs() {
        return Ok(());
    }
    let runner = whole.runner(cancel)?;
    let workers = Workers::start_with(runner, plan, journal.is_done(), threads);
    let mut workers = workers.context("no thread starts")?;
    let mut bar = RunBar::new();
    let outcome = collect(plan, journal, &mut workers, cancel, &mut bar);
    bar.clear();
    if outcome.is_err() && whole.kernel.is_some() {
        // What guests keep on disk goes with them.
        cancel.cancel();
        workers.end();
    }
    outcome
}

/// Stores the runs as they are finished.
fn collect(
    plan: &Plan,
    journal: &mut Journal,
    workers: &mut Workers,
    cancel: &Cancel,
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
            Next::Failed(_) if cancel.is_cancelled() => {}
            Next::Failed(error) => return Err(failed(*error, plan, journal)),
            Next::Nothing => {}
            Next::Over => return Ok(()),
        }
        if cancel.is_cancelled() {
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

/// The failure of one run, with which the sweep ends.
fn failed(error: RunError, plan: &Plan, journal: &Journal) -> Failure {
    let is_world = matches!(error.source, RunFault::World(_));
    let error = anyhow::Error::from(error);
    if !is_world {
        return Failure::Usage(format!("cannot simulate {error:#}"));
    }
    let (done, total) = (journal.done(), plan.runs());
    Failure::Run(anyhow!(
        "cannot carry out {error:#}\n{done} of {total} runs are done, and the same command goes on from there"
    ))
}

fn interrupted(plan: &Plan, journal: &Journal) -> anyhow::Error {
    let (done, total) = (journal.done(), plan.runs());
    anyhow!("interrupted: {done} of {total} runs are done, and the same command goes on from there")
}

/// What is shown of the cells.
struct Summary {
    /// The first cells.
    cells: Vec<CellSummary>,
    corrupt: u64,
    json: Option<Document>,
}

impl Summary {
    fn new(whole: &Whole, directory: &Path, json: bool) -> Result<Self, Failure> {
        let json = json
            .then(|| Document::begin(whole, directory))
            .transpose()?;
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

    fn finish(self, whole: &Whole, directory: &Path, arguments: &Arguments) -> Result<(), Failure> {
        match self.json {
            Some(json) => json.end().context("cannot write to standard output")?,
            None => show(whole, &self.cells, directory, &details(arguments))?,
        }
        match self.corrupt {
            0 => Ok(()),
            runs => Err(anyhow!("in {runs} runs what arrived is not what was sent").into()),
        }
    }
}

fn show(
    whole: &Whole,
    cells: &[CellSummary],
    directory: &Path,
    details: &[Detail],
) -> Result<(), Failure> {
    let plan = &whole.plan;
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
    names.extend(details.iter().map(|detail| detail.name()));
    let kernel = whole.kernel.as_ref();
    let on = kernel.map_or_else(String::new, |kernel| {
        format!(" on Linux {}", kernel.release())
    });
    let directory = std::path::absolute(directory)?;
    terminal::print(&format!(
        "\n{} runs{on}: {} as CSV and Parquet in {}\n",
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
    /// Only where it is a packaged kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<World>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
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
    fn begin(whole: &Whole, directory: &Path) -> Result<Self, Failure> {
        let (plan, kernel) = (&whole.plan, whole.kernel.as_ref());
        let mut document = Self {
            out: BufWriter::new(io::stdout()),
            is_first: true,
            is_unread: false,
        };
        let head = Head {
            sweep: plan.name(),
            world: kernel.map(|_| World::Kernel),
            kernel: kernel.map(Kernel::release),
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
