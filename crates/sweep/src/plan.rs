//! What is to be run: every cell of the grid, so many times.

use crate::axis::{Axis, Value};
use crate::check::{check, simulable};
use crate::datum::{Column, Datum};
use crate::file::{self, Content};
use crate::runner::Check;
use crate::sample::Sample;
use outlast_scenario::result::RunResult;
use outlast_scenario::{Change, Document, Problem, Scenario, ScenarioError, Source};
use outlast_sim::{SimError, Simulation};
use std::path::Path;

/// No sweep has more runs.
pub const MAX_RUNS: u64 = 10_000_000;

/// A sweep file that was found to be sound, with all its cells.
#[derive(Debug)]
pub struct Plan {
    author: Document,
    content: Content,
    /// The seed of the scenario, from which those of the runs are made.
    seed: u64,
    cells: u64,
    repeat: u64,
    fingerprint: String,
}

/// A run: a cell of the grid, and which of its repetitions. Both count from zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Run {
    /// The cell. The last key of the file changes from each cell to the next.
    pub cell: u64,
    /// The repetition.
    pub repetition: u64,
}

/// How the seeds of runs are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Seeds {
    /// A repetition has the same seed in all cells: they meet the same outages.
    Common,
    /// Every run has its own.
    Independent,
}

/// Error of a run that could not be carried out. Cells are checked beforehand, so that in the simulator this can
/// only come of drawn values that do not fit each other.
#[derive(Debug, thiserror::Error)]
#[error("repetition {} of cell {} ({parameters})", run.repetition + 1, run.cell + 1)]
pub struct RunError {
    /// Which run.
    pub run: Run,
    /// Its place in the grid, and what was drawn for it, in words.
    pub parameters: String,
    /// Why.
    #[source]
    pub source: RunFault,
}

/// The reason why one run was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    /// It contradicts itself.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator lacks something.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Another world has not brought it to its end.
    #[error(transparent)]
    World(Box<dyn std::error::Error + Send + Sync>),
}

/// Which of the values that can be drawn a scenario gets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// The values of a seed.
    For(u64),
    /// The least ones.
    Least,
    /// The greatest ones.
    Greatest,
}

impl Plan {
    /// Reads the sweep file at `path`, with the scenario that it names, and checks every cell.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, as far as that can be told at once.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::load_for(path, &mut simulable)
    }

    /// As [`load`](Self::load), for another world than the simulator: `check` is called with the
    /// scenario of every cell, and says what that world lacks.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_for(path: &Path, check: Check<'_>) -> Result<Self, ScenarioError> {
        Self::new(Document::load(path)?, check)
    }

    /// Reads a sweep from `text`. Messages call it `name`; relative paths in it count from
    /// `directory`.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, ScenarioError> {
        Self::parse_for(text, name, directory, &mut simulable)
    }

    /// As [`parse`](Self::parse), with the `check` of [`load_for`](Self::load_for).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse_for(
        text: &str,
        name: &str,
        directory: &Path,
        check: Check<'_>,
    ) -> Result<Self, ScenarioError> {
        Self::new(Document::parse(text, name, directory)?, check)
    }

    fn new(author: Document, world: Check<'_>) -> Result<Self, ScenarioError> {
        let plan = Self::unchecked(author, None)?;
        check(&plan, world)?;
        plan.measured()
    }

    /// A plan whose cells have been checked before, elsewhere. The scenario that the sweep names is
    /// `base`.
    pub(crate) fn known(author: Document, base: Option<Document>) -> Result<Self, ScenarioError> {
        Self::unchecked(author, base)?.measured()
    }

    fn unchecked(author: Document, base: Option<Document>) -> Result<Self, ScenarioError> {
        let content = file::read(&author, base)?;
        let dimensions = content
            .dimensions
            .iter()
            .map(|dimension| dimension.len() as u64);
        let cells = dimensions.fold(1_u64, u64::saturating_mul);
        let plan = Self {
            author,
            content,
            seed: 0,
            cells,
            repeat: 1,
            fingerprint: String::new(),
        };
        plan.refuse_too_many()?;
        Ok(plan)
    }

    /// The plan with what its first cell says of seed, repetitions and fingerprint.
    fn measured(mut self) -> Result<Self, ScenarioError> {
        let first = self.scenario_with(0, Drawn::Least)?;
        self.seed = first.run.seed;
        self.repeat = self
            .content
            .repeat
            .unwrap_or_else(|| first.run.repeat.into());
        self.fingerprint = self.fingerprint_of(first);
        self.refuse_too_many()?;
        Ok(self)
    }

    fn refuse_too_many(&self) -> Result<(), ScenarioError> {
        let repeat = self.content.repeat.unwrap_or(self.repeat);
        let runs = self.cells.saturating_mul(repeat);
        if runs <= MAX_RUNS {
            return Ok(());
        }
        let lengths: Vec<_> = self
            .content
            .dimensions
            .iter()
            .map(|d| d.len().to_string())
            .collect();
        let cells = match &lengths[..] {
            [] | [_] => format!("{} cells", self.cells),
            lengths => format!("{} cells ({})", count(self.cells), lengths.join(" × ")),
        };
        let often = match repeat {
            1 => "once".to_owned(),
            repeat => format!("{repeat} times"),
        };
        Err(ScenarioError::new(vec![Problem::new(
            self.author.source(),
            self.content.at.clone(),
            format!("{} runs are too many: {cells}, each {often}", count(runs)),
            format!("allowed: {MAX_RUNS}"),
            "write fewer values or a smaller `repeat`, or draw keys in `[sweep.sample]` instead of \
             crossing them all",
        )]))
    }

    /// The sweep's name: that of its file, without its extension.
    #[must_use]
    pub fn name(&self) -> &str {
        self.author.stem()
    }

    /// The text of its file, and what messages call it.
    #[must_use]
    pub fn source(&self) -> &Source {
        self.author.source()
    }

    /// The directory from which relative paths in it count.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.author.directory()
    }

    /// How many cells the grid has; at least one.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.cells
    }

    /// How often each cell is run; at least once.
    #[must_use]
    pub const fn repeat(&self) -> u64 {
        self.repeat
    }

    /// How many runs there are; at most [`MAX_RUNS`].
    #[must_use]
    pub const fn runs(&self) -> u64 {
        self.cells * self.repeat
    }

    /// Run `index` in the order of the tables: cell by cell.
    #[must_use]
    pub const fn run(&self, index: u64) -> Run {
        Run {
            cell: index / self.repeat,
            repetition: index % self.repeat,
        }
    }

    /// The place of a run in the order of the tables, if it is one of the sweep's.
    #[must_use]
    pub fn index(&self, run: Run) -> Option<u64> {
        let is_ours = run.cell < self.cells && run.repetition < self.repeat;
        is_ours.then(|| run.cell * self.repeat + run.repetition)
    }

    /// The run that is to be carried out `turn`-th, counted from zero: all cells once, then all
    /// cells again. Neighbouring cells do not follow each other, so that at any time those done are
    /// a fair sample of all, and what they took tells how long the others will take.
    #[must_use]
    pub fn turn(&self, turn: u64) -> Run {
        Run {
            cell: turn % self.cells * stride(self.cells) % self.cells,
            repetition: turn / self.cells,
        }
    }

    /// A column for each key that varies: those of the grid, then those that are drawn.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        self.axes()
            .chain(self.samples().iter().map(|sample| &sample.axis))
            .map(Axis::column)
            .collect()
    }

    /// What readers call these columns: the keys without their tables, where that is enough to tell
    /// them apart.
    #[must_use]
    pub fn headings(&self) -> Vec<String> {
        let paths = || {
            self.axes()
                .chain(self.samples().iter().map(|sample| &sample.axis))
        };
        let heading = |axis: &Axis| {
            let is_alone = paths()
                .filter(|other| other.key.name == axis.key.name)
                .count()
                == 1;
            if is_alone {
                axis.key.name.to_owned()
            } else {
                axis.path.clone()
            }
        };
        paths().map(heading).collect()
    }

    /// How many of the [`columns`](Self::columns) are the grid's, and so the same in all runs of a
    /// cell.
    #[must_use]
    pub fn grid_columns(&self) -> usize {
        self.axes().count()
    }

    /// The values of `run` in these columns.
    #[must_use]
    pub fn parameters(&self, run: Run) -> Vec<Datum> {
        let seed = self.seed_of(run);
        let grid = self
            .values(run.cell)
            .into_iter()
            .map(|(_, value)| value.datum.clone());
        let drawn = self.samples().iter().map(|sample| sample.draw(seed).datum);
        grid.chain(drawn).collect()
    }

    /// The values of `run` in words, as in `link.delay = "2 ms", outlast.gateway = "hold"`.
    #[must_use]
    pub fn describe(&self, run: Run) -> String {
        let mut words = self.describe_cell(run.cell);
        let seed = self.seed_of(run);
        words.extend(
            self.samples()
                .iter()
                .map(|sample| assignment(&sample.axis, &sample.draw(seed))),
        );
        words.join(", ")
    }

    /// The grid's values in a cell, as readers see them.
    #[must_use]
    pub fn labels(&self, cell: u64) -> Vec<String> {
        let values = self.values(cell).into_iter();
        values.map(|(_, value)| value.label.clone()).collect()
    }

    pub(crate) fn describe_cell(&self, cell: u64) -> Vec<String> {
        let values = self.values(cell).into_iter();
        values
            .map(|(axis, value)| assignment(axis, value))
            .collect()
    }

    /// What the results are made by, apart from `repeat`: equal for sweeps whose runs are equal.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn fingerprint_of(&self, mut first: Scenario) -> String {
        // Neither where the file lies nor how it is called changes a result; and a sweep that is
        // repeated more often goes on.
        first.name.clear();
        first.directory.clear();
        first.run.repeat = 1;
        let mut hash = blake3::Hasher::new();
        let mut add = |text: &str| {
            hash.update(text.as_bytes()).update(b"\n");
        };
        add(&format!("{first:?} {:?}", self.content.seeds));
        for dimension in &self.content.dimensions {
            add("dimension");
            for axis in &dimension.axes {
                add(&axis.path);
                axis.values.iter().for_each(|value| add(&value.toml));
            }
        }
        for sample in self.samples() {
            add(&sample.description());
        }
        // The first cell's is in the scenario; others may be values of an axis.
        for trace in self.content.base.traces() {
            add(&format!("{trace:?}"));
        }
        hash.finalize().to_hex()[..32].to_owned()
    }

    /// The seed of a run.
    #[must_use]
    pub fn seed_of(&self, run: Run) -> u64 {
        let seeds = self.values(run.cell);
        let own = seeds.iter().find(|(axis, _)| axis.path == "run.seed");
        let seed = match own.map(|(_, value)| &value.datum) {
            Some(Datum::Integer(seed)) => *seed,
            _ => self.seed,
        };
        match self.content.seeds {
            Seeds::Common => seed.wrapping_add(run.repetition),
            Seeds::Independent => {
                let mut hash = blake3::Hasher::new();
                for number in [seed, run.cell, run.repetition] {
                    hash.update(&number.to_le_bytes());
                }
                let mut bytes = [0; 8];
                hash.finalize_xof().fill(&mut bytes);
                // A scenario file holds seeds of 63 bits.
                u64::from_le_bytes(bytes) >> 1
            }
        }
    }

    /// The scenario of a run, of which it is the only one.
    ///
    /// # Errors
    ///
    /// As [`RunError`] says, when drawn values do not fit each other.
    pub fn scenario(&self, run: Run) -> Result<Scenario, ScenarioError> {
        let seed = self.seed_of(run);
        let mut scenario = self.scenario_with(run.cell, Drawn::For(seed))?;
        scenario.run.seed = seed;
        scenario.run.repeat = 1;
        Ok(scenario)
    }

    /// Simulates a run.
    ///
    /// # Errors
    ///
    /// When drawn values do not fit each other.
    pub fn carry_out(&self, run: Run) -> Result<RunResult, RunError> {
        let outcome = self
            .scenario(run)
            .map_err(RunFault::from)
            .and_then(|scenario| {
                let simulation = Simulation::new(&scenario, 0)?;
                Ok(simulation.run().result)
            });
        outcome.map_err(|fault| self.failed(run, fault))
    }

    /// The error for a run that was not carried out.
    #[must_use]
    pub fn failed(&self, run: Run, fault: RunFault) -> RunError {
        RunError {
            run,
            parameters: self.describe(run),
            source: fault,
        }
    }

    pub(crate) fn scenario_with(&self, cell: u64, drawn: Drawn) -> Result<Scenario, ScenarioError> {
        let samples = self.samples().iter().map(|sample| match drawn {
            Drawn::For(seed) => sample.draw(seed),
            Drawn::Least => sample.axis.values[0].clone(),
            Drawn::Greatest => sample.axis.values[1].clone(),
        });
        let samples: Vec<Value> = samples.collect();
        let drawn = self
            .samples()
            .iter()
            .map(|sample| &sample.axis)
            .zip(&samples);
        let changes: Vec<Change<'_>> = self
            .values(cell)
            .into_iter()
            .chain(drawn)
            .map(|(axis, value)| Change {
                key: &axis.path,
                key_at: axis.key_at.clone(),
                value: &value.toml,
                value_at: value.at.clone(),
            })
            .collect();
        self.content
            .base
            .scenario(file::SWEEP, &self.author, &changes)
    }

    /// The grid's values in a cell.
    pub(crate) fn values(&self, cell: u64) -> Vec<(&Axis, &Value)> {
        let mut values = Vec::new();
        let mut rest = cell;
        for dimension in self.content.dimensions.iter().rev() {
            let length = dimension.len() as u64;
            let index = usize::try_from(rest % length).expect("below the length of a list");
            rest /= length;
            let axes = dimension.axes.iter().rev();
            values.extend(axes.map(|axis| (axis, &axis.values[index])));
        }
        values.reverse();
        values
    }

    fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.content
            .dimensions
            .iter()
            .flat_map(|dimension| &dimension.axes)
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.content.samples
    }

    pub(crate) fn author(&self) -> &Document {
        &self.author
    }

    pub(crate) fn base(&self) -> &Document {
        &self.content.base
    }
}

fn assignment(axis: &Axis, value: &Value) -> String {
    format!("{} = {}", axis.path, value.toml)
}

/// A number that stops where counting did.
fn count(number: u64) -> String {
    match number {
        u64::MAX => "more than 10^19".to_owned(),
        number => number.to_string(),
    }
}

/// A step that leads through all of `cells`, near their golden section, which spreads best.
fn stride(cells: u64) -> u64 {
    let mut stride = (cells * 618 / 1_000).max(1);
    while common_divisor(stride, cells) != 1 {
        stride += 1;
    }
    stride
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
