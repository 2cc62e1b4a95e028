//! Sweeps: what is to be run, and what is done of it.

use crate::VERSION;
use crate::error;
use crate::table::Builder;
use outlast_scenario::Scenario;
use outlast_sweep::output::{self, Detail, OutputError, Rows};
use outlast_sweep::{
    Bundle, CellSummary, Datum, Finished, Journal, Next, Origin, Refusal, Workers, simulable,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a signal may wait.
const TICK: Duration = Duration::from_millis(100);

/// Runs by their turns: from one, up to but without another.
type Turns = (u64, u64);

/// A sweep whose cells were all found to be sound.
#[pyclass(frozen, module = "outlast._native")]
pub(crate) struct Plan {
    plan: Arc<outlast_sweep::Plan>,
}

#[pymethods]
impl Plan {
    /// Reads the sweep file at `path`. If it is not to be `simulated`, the world that runs it says what it lacks.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, simulated: bool) -> PyResult<Self> {
        Self::of(py, || {
            outlast_sweep::Plan::load_for(&path, &mut check(simulated))
        })
    }

    /// Reads a sweep from `text`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: &str,
        name: &str,
        directory: PathBuf,
        simulated: bool,
    ) -> PyResult<Self> {
        let mut check = check(simulated);
        Self::of(py, || {
            outlast_sweep::Plan::parse_for(text, name, &directory, &mut check)
        })
    }

    /// A sweep that another process has bundled.
    #[staticmethod]
    fn unbundle(py: Python<'_>, bundle: &[u8]) -> PyResult<Self> {
        let bundle: Bundle =
            serde_json::from_slice(bundle).map_err(|error| error::of_json(&error))?;
        let plan = py.detach(|| outlast_sweep::Plan::unbundle(&bundle, VERSION));
        let plan = plan.map_err(|error| error::of_unbundle(py, &error))?;
        Ok(Self {
            plan: Arc::new(plan),
        })
    }

    /// The sweep with every file that it names, for another process.
    fn bundle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bundle = self.plan.bundle(VERSION);
        let bundle = bundle.map_err(|error| error::of_bundle(py, &error))?;
        let json = serde_json::to_vec(&bundle).map_err(|error| error::of_json(&error))?;
        Ok(PyBytes::new(py, &json))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.plan.name()
    }

    /// The text of its file.
    #[getter]
    fn text(&self) -> &str {
        &self.plan.source().text
    }

    /// Name of its file in messages.
    #[getter]
    fn file(&self) -> &str {
        &self.plan.source().name
    }

    /// From where relative paths in it count.
    #[getter]
    fn directory(&self) -> &Path {
        self.plan.directory()
    }

    /// How many cells its grid has.
    #[getter]
    fn cells(&self) -> u64 {
        self.plan.cells()
    }

    /// How often each is run.
    #[getter]
    fn repeat(&self) -> u64 {
        self.plan.repeat()
    }

    /// How many runs there are.
    #[getter]
    fn runs(&self) -> u64 {
        self.plan.runs()
    }

    /// What its results are made by.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.plan.fingerprint()
    }

    /// Simulates the runs of these turns; their lines in a journal.
    fn carry_out<'py>(&self, py: Python<'py>, turns: Vec<Turns>) -> PyResult<Bound<'py, PyBytes>> {
        let mut lines = String::new();
        for turn in turns.into_iter().flat_map(|(from, to)| from..to) {
            if turn >= self.plan.runs() {
                let runs = self.plan.runs();
                let text = format!("there is no turn {turn}: the sweep has {runs} runs");
                return Err(PyValueError::new_err(text));
            }
            let run = self.plan.turn(turn);
            let finished = py.detach(|| Finished::carry_out(&self.plan, run));
            let finished = finished.map_err(|error| error::of_run(py, &error))?;
            lines.push_str(finished.line());
            py.check_signals()?;
        }
        Ok(PyBytes::new(py, lines.as_bytes()))
    }
}

impl Plan {
    fn of(
        py: Python<'_>,
        read: impl Send + FnOnce() -> Result<outlast_sweep::Plan, outlast_scenario::ScenarioError>,
    ) -> PyResult<Self> {
        match py.detach(read) {
            Ok(plan) => Ok(Self {
                plan: Arc::new(plan),
            }),
            Err(error) => Err(error::of_scenario(py, &error)),
        }
    }
}

/// Asks the simulator what it lacks of a scenario, if that is to be simulated.
fn check(simulated: bool) -> impl FnMut(&Scenario) -> Result<(), Refusal> + Send {
    move |scenario| match simulated {
        true => simulable(scenario),
        false => Ok(()),
    }
}

/// The finished runs of a sweep, in a file.
#[pyclass(frozen, module = "outlast._native")]
pub(crate) struct Store {
    plan: Arc<outlast_sweep::Plan>,
    journal: Mutex<Journal>,
}

#[pymethods]
impl Store {
    /// Opens the journal of `plan` at `path`, or begins it. Its runs are those of the simulator, or of the packaged kernel
    /// of the release `kernel`.
    #[new]
    #[pyo3(signature = (plan, path, fresh, kernel = None))]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        path: PathBuf,
        fresh: bool,
        kernel: Option<&str>,
    ) -> PyResult<Self> {
        let origin = kernel.map_or(Origin::SIMULATOR, Origin::kernel);
        let open = || {
            if fresh {
                Journal::discard(&path)?;
            }
            Journal::open(&path, &plan.plan, &origin, VERSION)
        };
        match py.detach(open) {
            Ok(journal) => Ok(Self {
                plan: plan.plan.clone(),
                journal: Mutex::new(journal),
            }),
            Err(error) => Err(error::of_journal(py, &error)),
        }
    }

    /// How many runs are done.
    #[getter]
    fn done(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.journal().done())
    }

    /// The turns of the runs that are not done, in batches of `size`.
    fn pending(&self, py: Python<'_>, size: NonZero<u64>) -> Vec<Vec<Turns>> {
        py.detach(|| batches(&self.plan, &self.journal().is_done(), size.get()))
    }

    /// Stores runs that were carried out elsewhere; how many are done then.
    fn append(&self, py: Python<'_>, lines: &[u8]) -> PyResult<u64> {
        let lines = std::str::from_utf8(lines).map_err(|error| error::of_text(py, error))?;
        let finished: Result<Vec<_>, _> = lines.lines().map(Finished::from_line).collect();
        let finished = finished.map_err(|error| error::of_line(py, &error))?;
        let stored = py.detach(|| {
            let mut journal = self.journal();
            let mut finished = finished.iter();
            finished.try_for_each(|finished| journal.append(&self.plan, finished))?;
            Ok(journal.done())
        });
        stored.map_err(|error| error::of_journal(py, &error))
    }

    /// Simulates what is not done, in `threads` threads or as many as there are processors. After each
    /// run `progress` is called with the number of those done.
    fn simulate(
        &self,
        py: Python<'_>,
        threads: Option<NonZero<usize>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let is_done = py.detach(|| self.journal().is_done());
        if is_done.iter().all(|&is_done| is_done) {
            return Ok(());
        }
        let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let workers = Workers::start(&self.plan, is_done, threads.unwrap_or_else(cores));
        let mut workers = workers.map_err(|error| error::of_threads(&error))?;
        loop {
            // The threads' results wait in a queue, so that the lock is not asked for by each.
            match py.detach(|| workers.next(TICK)) {
                Next::Finished(finished) => {
                    let stored = py.detach(|| {
                        let mut journal = self.journal();
                        journal.append(&self.plan, &finished)?;
                        Ok(journal.done())
                    });
                    let done = stored.map_err(|error| error::of_journal(py, &error))?;
                    if let Some(progress) = progress {
                        progress.call1((done,))?;
                    }
                }
                Next::Failed(error) => return Err(error::of_run(py, &error)),
                Next::Nothing => {}
                Next::Over => return Ok(()),
            }
            py.check_signals()?;
        }
    }

    /// Writes the tables as CSV and Parquet into `directory`.
    fn write(&self, py: Python<'_>, directory: PathBuf, details: Vec<String>) -> PyResult<()> {
        let details = details_of(&details)?;
        let written = py.detach(|| {
            let journal = self.journal();
            output::write(&self.plan, &journal, &directory, &details, interruptible)
        });
        written.map_err(|error| of_walk(py, error, None))
    }

    /// The tables, and how many runs were corrupt.
    fn tables<'py>(
        &self,
        py: Python<'py>,
        details: Vec<String>,
    ) -> PyResult<(Bound<'py, PyDict>, u64)> {
        let details = details_of(&details)?;
        let parameters = || self.plan.columns();
        let builder = |detail: &Detail| (*detail, Builder::new(&detail.columns(parameters())));
        let mut tables = Tables {
            runs: Builder::new(&output::run_columns(parameters())),
            cells: Builder::new(&output::cell_columns(&self.plan)),
            detailed: details.iter().map(builder).collect(),
            corrupt: 0,
            refused: None,
        };
        let walked = py.detach(|| output::walk(&self.plan, &self.journal(), &details, &mut tables));
        walked.map_err(|error| of_walk(py, error, tables.refused.take()))?;
        let named = PyDict::new(py);
        named.set_item(output::RUNS, Bound::new(py, tables.runs.finish()?)?)?;
        named.set_item(output::CELLS, Bound::new(py, tables.cells.finish()?)?)?;
        for (detail, builder) in tables.detailed {
            named.set_item(detail.name(), Bound::new(py, builder.finish()?)?)?;
        }
        Ok((named, tables.corrupt))
    }
}

impl Store {
    /// The journal. Never waited for with the interpreter's lock.
    fn journal(&self) -> MutexGuard<'_, Journal> {
        // Whoever panicked has appended a run or not.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Raises what a signal such as Ctrl-C asks for.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method belongs to one lifetime, and any is asked for"
)]
fn signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Looks for signals while tables are written, a cell at a time.
fn interruptible(_: CellSummary) -> io::Result<()> {
    signals().map_err(io::Error::from)
}

/// The exception for tables that were not made, which may be what ended their making.
fn of_walk(py: Python<'_>, error: OutputError, refused: Option<PyErr>) -> PyErr {
    match (refused, error) {
        (Some(refused), _) => refused,
        (None, OutputError::Summary(error)) => error.into(),
        (None, error) => error::of_output(py, &error),
    }
}

fn details_of(names: &[String]) -> PyResult<Vec<Detail>> {
    let detail = |name: &String| {
        let mut all = Detail::ALL.into_iter();
        all.find(|detail| detail.name() == name)
            .ok_or_else(|| PyRuntimeError::new_err(format!("there is no table `{name}`")))
    };
    names.iter().map(detail).collect()
}

/// The turns of the runs that are not done, joined where they follow each other, `size` in a batch.
fn batches(plan: &outlast_sweep::Plan, is_done: &[bool], size: u64) -> Vec<Vec<Turns>> {
    let is_open = |turn: &u64| {
        let index = plan.index(plan.turn(*turn));
        let index = index.and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| is_done.get(index)) != Some(&true)
    };
    let mut batches: Vec<Vec<Turns>> = Vec::new();
    let mut room = 0;
    for turn in (0..plan.runs()).filter(is_open) {
        if room == 0 {
            batches.push(Vec::new());
            room = size;
        }
        room -= 1;
        let Some(batch) = batches.last_mut() else {
            continue;
        };
        match batch.last_mut() {
            Some((_, end)) if *end == turn => *end += 1,
            _ => batch.push((turn, turn + 1)),
        }
    }
    batches
}

/// The tables of a sweep while they are made.
struct Tables {
    runs: Builder,
    cells: Builder,
    detailed: Vec<(Detail, Builder)>,
    corrupt: u64,
    /// Why a row was refused.
    refused: Option<PyErr>,
}

impl Tables {
    /// Remembers why a row was refused.
    fn kept(&mut self, kept: PyResult<()>) -> Result<(), OutputError> {
        kept.map_err(|error| {
            self.refused = Some(error);
            OutputError::Summary(io::ErrorKind::Other.into())
        })
    }
}

impl Rows for Tables {
    fn run(&mut self, row: &[Datum]) -> Result<(), OutputError> {
        let kept = self.runs.push(row);
        self.kept(kept)
    }

    fn detail(&mut self, detail: Detail, row: &[Datum]) -> Result<(), OutputError> {
        let mut builders = self.detailed.iter_mut();
        let kept = match builders.find(|(kind, _)| *kind == detail) {
            Some((_, builder)) => builder.push(row),
            None => Ok(()),
        };
        self.kept(kept)
    }

    fn cell(&mut self, summary: CellSummary) -> Result<(), OutputError> {
        self.corrupt += summary.corrupt;
        let kept = self.cells.push(&summary.row());
        self.kept(kept)?;
        self.kept(signals())
    }
}
