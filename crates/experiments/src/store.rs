//! The files that hold the runs of an experiment.
//!
//! `NAME-EXTENT.runs.jsonl` has one [`Record`] per line, appended as soon as the run is done, so
//! that an interrupted experiment can go on where it was; `NAME-EXTENT.json` says what they belong
//! to ([`Meta`]); `NAME-EXTENT.html` is the report.

use crate::experiment::Extent;
use crate::job::Job;
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the stored runs belong to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Meta {
    /// The experiment's name.
    pub experiment: String,
    /// How much was measured.
    pub extent: Extent,
    /// The version of Outlast.
    pub version: String,
    /// When it was begun, as people write dates.
    pub date: String,
    /// The command that repeats it.
    pub command: String,
    /// How many runs went on at once.
    pub capacity: u32,
    /// Whether every run was carried out.
    pub complete: bool,
    /// What this machine lacks for some of the runs.
    pub missing: Vec<String>,
}

/// The files of one experiment in one extent.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    stem: String,
}

/// Why stored runs cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}:{line}: not what this version writes; remove the file to measure again", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Where, counted from one.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl Store {
    /// The files of `experiment` in `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: &Path, experiment: &str, extent: Extent) -> Self {
        let stem = format!("{experiment}-{}", extent.name());
        Self {
            directory: directory.to_owned(),
            stem,
        }
    }

    /// Where the report goes.
    #[must_use]
    pub fn page(&self) -> PathBuf {
        self.path("html")
    }

    /// What the stored runs belong to; `None` if there are none.
    ///
    /// # Errors
    /// When the file cannot be read or is not what this version writes.
    pub fn meta(&self) -> Result<Option<Meta>, StoreError> {
        let path = self.path("json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::File { path, source }),
        };
        let meta = serde_json::from_str(&text);
        meta.map(Some).map_err(|source| StoreError::Content {
            path,
            line: source.line(),
            source,
        })
    }

    /// Writes what the stored runs belong to.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_meta(&self, meta: &Meta) -> Result<(), StoreError> {
        let text = serde_json::to_string_pretty(meta).expect("a `Meta` has only strings as keys");
        self.replace(&self.path("json"), &(text + "\n"))
    }

    /// The stored runs. A last line without its end is what an interrupted process left: it does
    /// not count.
    ///
    /// # Errors
    /// When the file cannot be read or is not what this version writes.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        let path = self.path("runs.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(StoreError::File { path, source }),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let read = |(index, line)| {
            serde_json::from_str(line).map_err(|source| StoreError::Content {
                path: path.clone(),
                line: index + 1,
                source,
            })
        };
        whole.lines().enumerate().map(read).collect()
    }

    /// The records of runs of `jobs`, one for each job: the latest.
    #[must_use]
    pub fn belonging(records: Vec<Record>, jobs: &[Job]) -> Vec<Record> {
        let find = |job: &Job| {
            let fingerprint = job.fingerprint();
            let is_it = |record: &&Record| record.fingerprint == fingerprint;
            let found = records.iter().rev().find(is_it).cloned();
            found.map(|record| Record {
                cell: job.cell.clone(),
                ..record
            })
        };
        jobs.iter().filter_map(find).collect()
    }

    /// Begins to append runs, behind those of `kept`, which replace what the file has.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_to(&self, kept: &[Record]) -> Result<Appending, StoreError> {
        let path = self.path("runs.jsonl");
        let text: String = kept.iter().map(line).collect();
        self.replace(&path, &text)?;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|source| StoreError::File { path, source })?;
        Ok(Appending(file))
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_page(&self, html: &str) -> Result<PathBuf, StoreError> {
        let path = self.page();
        self.replace(&path, html)?;
        Ok(path)
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.stem))
    }

    /// Replaces a file, so that nobody ever sees half of it.
    fn replace(&self, path: &Path, text: &str) -> Result<(), StoreError> {
        let failed = |source| StoreError::File {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(&self.directory).map_err(failed)?;
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        fs::write(&new, text).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)
    }
}

/// A file to which runs are appended.
#[derive(Debug)]
pub struct Appending(File);

impl Appending {
    /// Appends a run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        self.0.write_all(line(record).as_bytes())
    }
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).expect("a `Record` has only strings as keys") + "\n"
}
