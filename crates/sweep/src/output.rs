//! The tables of a sweep, as CSV and Parquet.

mod csv_file;
mod parquet_file;

use crate::cell::{CellSummary, Tally};
use crate::datum::{Column, Datum};
use crate::journal::{Journal, JournalError};
use crate::plan::Plan;
use crate::rows;
use csv_file::CsvFile;
use parquet_file::ParquetFile;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The table with a row for each run.
pub const RUNS: &str = "runs";
/// The table with a row for each cell.
pub const CELLS: &str = "cells";
/// The table with a row for each outage.
pub const OUTAGES: &str = "outages";

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

/// Writes the tables of a finished sweep to `directory`: runs and cells, and if `with_outages` is set
/// outages. Each cell's summary is also given to `summed_up`, in order.
///
/// Files get their names when all are complete, in place of earlier ones.
///
/// # Errors
///
/// When not every run is done, or a file cannot be written.
pub fn write(
    plan: &Plan,
    journal: &Journal,
    directory: &Path,
    with_outages: bool,
    mut summed_up: impl FnMut(CellSummary) -> io::Result<()>,
) -> Result<(), OutputError> {
    let missing = plan.runs() - journal.done();
    if missing > 0 {
        return Err(OutputError::Incomplete { missing });
    }
    let mut runs = TableFiles::create(directory, RUNS, rows::run_columns(plan))?;
    let mut cells = TableFiles::create(directory, CELLS, CellSummary::columns(plan))?;
    let mut outages = match with_outages {
        true => Some(TableFiles::create(
            directory,
            OUTAGES,
            rows::outage_columns(plan),
        )?),
        false => None,
    };
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
            runs.push(&rows::run_row(run, &parameters, &result))?;
            if let Some(outages) = &mut outages {
                for row in rows::outage_rows(run, &parameters, &result) {
                    outages.push(&row)?;
                }
            }
            tally.add(&result);
        }
        parameters.truncate(plan.grid_columns());
        let summary = tally.summary(cell, parameters);
        cells.push(&summary.row())?;
        summed_up(summary).map_err(OutputError::Summary)?;
    }
    runs.finish()?;
    cells.finish()?;
    match outages {
        Some(outages) => outages.finish(),
        // What an earlier call has written may lack runs that came later.
        None => TableFiles::remove(directory, OUTAGES),
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
