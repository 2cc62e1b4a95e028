//! The tables of a sweep, as CSV and Parquet.

mod csv_file;
mod parquet_file;

use crate::cell::{CellSummary, Tally};
use crate::datum::{Column, Datum};
use crate::journal::{Journal, JournalError};
use crate::plan::{Plan, Run};
use crate::rows;
use csv_file::CsvFile;
use outlast_scenario::result::RunResult;
use parquet_file::ParquetFile;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The table with a row for each run.
pub const RUNS: &str = "runs";
/// The table with a row for each cell.
pub const CELLS: &str = "cells";

/// Tables that are written if asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// A row for each outage of each run.
    Outages,
    /// A row for each connection of each run.
    Flows,
}

impl Detail {
    /// All kinds of detail.
    pub const ALL: [Self; 2] = [Self::Outages, Self::Flows];

    /// The table's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outages => "outages",
            Self::Flows => "flows",
        }
    }

    /// The columns of the table: where the run stands, then `parameters`, those of
    /// [`Plan::columns`], then what is measured.
    #[must_use]
    pub fn columns(self, parameters: Vec<Column>) -> Vec<Column> {
        match self {
            Self::Outages => rows::outage_columns(parameters),
            Self::Flows => rows::flow_columns(parameters),
        }
    }

    /// The rows of `run` in the table.
    #[must_use]
    pub fn rows(self, run: Run, parameters: &[Datum], result: &RunResult) -> Vec<Vec<Datum>> {
        match self {
            Self::Outages => rows::outage_rows(run, parameters, result).collect(),
            Self::Flows => rows::flow_rows(run, parameters, result).collect(),
        }
    }
}

/// The columns of the table of runs: where a run stands, then `parameters`, those of
/// [`Plan::columns`], then what is measured.
#[must_use]
pub fn run_columns(parameters: Vec<Column>) -> Vec<Column> {
    rows::run_columns(parameters)
}

/// The row of `run` in the table of runs; `parameters` are [`Plan::parameters`] for it.
#[must_use]
pub fn run_row(run: Run, parameters: &[Datum], result: &RunResult) -> Vec<Datum> {
    rows::run_row(run, parameters, result)
}

/// The columns of the table of cells.
#[must_use]
pub fn cell_columns(plan: &Plan) -> Vec<Column> {
    CellSummary::columns(plan)
}

/// Takes the rows of all tables, each table's in order.
pub trait Rows {
    /// A row of the table of runs.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn run(&mut self, row: &[Datum]) -> Result<(), OutputError>;

    /// A row of a table that is written if asked for.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn detail(&mut self, detail: Detail, row: &[Datum]) -> Result<(), OutputError>;

    /// A cell, of which all runs have gone by.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn cell(&mut self, summary: CellSummary) -> Result<(), OutputError>;
}

/// Why tables could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Not every run is done.
    #[error("{missing} runs are not done")]
    Incomplete {
        /// How many are not.
        missing: u64,
    },
    /// A summary could not be passed on.
    #[error("cannot write the summary")]
    Summary(#[source] io::Error),
}

/// Goes through a finished sweep in the order of the tables. `details` says which rows of detail
/// are made.
///
/// # Errors
///
/// When not every run is done, the journal cannot be read, or `rows` refuses one.
pub fn walk(
    plan: &Plan,
    journal: &Journal,
    details: &[Detail],
    rows: &mut impl Rows,
) -> Result<(), OutputError> {
    let missing = plan.runs() - journal.done();
    if missing > 0 {
        return Err(OutputError::Incomplete { missing });
    }
    for cell in 0..plan.cells() {
        let mut tally = Tally::default();
        let mut parameters = Vec::new();
        for repetition in 0..plan.repeat() {
            let index = cell * plan.repeat() + repetition;
            let run = plan.run(index);
            let Some(result) = journal.result(index)? else {
                return Err(OutputError::Incomplete { missing: 1 });
            };
            parameters = plan.parameters(run);
            rows.run(&rows::run_row(run, &parameters, &result))?;
            for &detail in details {
                for row in detail.rows(run, &parameters, &result) {
                    rows.detail(detail, &row)?;
                }
            }
            tally.add(&result);
        }
        parameters.truncate(plan.grid_columns());
        rows.cell(tally.summary(cell, parameters))?;
    }
    Ok(())
}

/// Writes the tables of a finished sweep to `directory`: runs, cells, and those of `details`. Each
/// cell's summary is also given to `summed_up`, in order.
///
/// Files get their names when they are complete, in place of earlier ones. Details that an earlier
/// call has written and nobody asks for now are removed: they may lack runs that came later.
///
/// # Errors
///
/// When not every run is done, or a file cannot be written.
pub fn write(
    plan: &Plan,
    journal: &Journal,
    directory: &Path,
    details: &[Detail],
    summed_up: impl FnMut(CellSummary) -> io::Result<()>,
) -> Result<(), OutputError> {
    // Nothing is begun that cannot be finished.
    let missing = plan.runs() - journal.done();
    if missing > 0 {
        return Err(OutputError::Incomplete { missing });
    }
    let mut files = AllFiles::create(plan, directory, details, summed_up)?;
    walk(plan, journal, details, &mut files)?;
    files.finish()?;
    let mut unwanted = Detail::ALL
        .iter()
        .filter(|detail| !details.contains(detail));
    unwanted.try_for_each(|detail| TableFiles::remove(directory, detail.name()))
}

/// The files of a sweep's tables.
struct AllFiles<S> {
    runs: TableFiles,
    cells: TableFiles,
    detailed: Vec<(Detail, TableFiles)>,
    summed_up: S,
}

impl<S> AllFiles<S> {
    fn create(
        plan: &Plan,
        directory: &Path,
        details: &[Detail],
        summed_up: S,
    ) -> Result<Self, OutputError> {
        let create = |name, columns| TableFiles::create(directory, name, columns);
        let detailed = details.iter().map(|&detail| {
            let files = create(detail.name(), detail.columns(plan.columns()))?;
            Ok::<_, OutputError>((detail, files))
        });
        Ok(Self {
            runs: create(RUNS, run_columns(plan.columns()))?,
            cells: create(CELLS, cell_columns(plan))?,
            detailed: detailed.collect::<Result<_, _>>()?,
            summed_up,
        })
    }

    fn finish(self) -> Result<(), OutputError> {
        self.runs.finish()?;
        self.cells.finish()?;
        let mut detailed = self.detailed.into_iter();
        detailed.try_for_each(|(_, files)| files.finish())
    }
}

impl<S: FnMut(CellSummary) -> io::Result<()>> Rows for AllFiles<S> {
    fn run(&mut self, row: &[Datum]) -> Result<(), OutputError> {
        self.runs.push(row)
    }

    fn detail(&mut self, detail: Detail, row: &[Datum]) -> Result<(), OutputError> {
        let mut files = self.detailed.iter_mut().filter(|(kind, _)| *kind == detail);
        files.try_for_each(|(_, files)| files.push(row))
    }

    fn cell(&mut self, summary: CellSummary) -> Result<(), OutputError> {
        self.cells.push(&summary.row())?;
        (self.summed_up)(summary).map_err(OutputError::Summary)
    }
}

/// One table in both formats.
struct TableFiles {
    csv: Target<CsvFile>,
    parquet: Target<ParquetFile>,
}

/// A file that gets its name when it is complete.
struct Target<F> {
    file: F,
    path: PathBuf,
}

impl TableFiles {
    fn create(directory: &Path, name: &str, columns: Vec<Column>) -> Result<Self, OutputError> {
        let [csv, parquet] = Self::paths(directory, name);
        Ok(Self {
            csv: Target::create(csv, |path| CsvFile::create(path, &columns))?,
            parquet: Target::create(parquet, |path| ParquetFile::create(path, &columns))?,
        })
    }

    fn paths(directory: &Path, name: &str) -> [PathBuf; 2] {
        ["csv", "parquet"].map(|format| directory.join(format!("{name}.{format}")))
    }

    fn remove(directory: &Path, name: &str) -> Result<(), OutputError> {
        for path in Self::paths(directory, name) {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(OutputError::File { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, row: &[Datum]) -> Result<(), OutputError> {
        self.csv.with(|file| file.push(row))?;
        self.parquet.with(|file| file.push(row))
    }

    fn finish(self) -> Result<(), OutputError> {
        self.csv.finish(CsvFile::finish)?;
        self.parquet.finish(ParquetFile::finish)
    }
}

impl<F> Target<F> {
    fn create(
        path: PathBuf,
        create: impl FnOnce(&Path) -> io::Result<F>,
    ) -> Result<Self, OutputError> {
        match create(&unfinished(&path)) {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(OutputError::File { path, source }),
        }
    }

    fn with(&mut self, act: impl FnOnce(&mut F) -> io::Result<()>) -> Result<(), OutputError> {
        act(&mut self.file).map_err(|source| OutputError::File {
            path: self.path.clone(),
            source,
        })
    }

    fn finish(self, finish: impl FnOnce(F) -> io::Result<()>) -> Result<(), OutputError> {
        let Self { file, path } = self;
        let finished = finish(file).and_then(|()| fs::rename(unfinished(&path), &path));
        finished.map_err(|source| OutputError::File { path, source })
    }
}

/// The name of a file that is not complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
