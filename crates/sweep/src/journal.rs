//! The file to which finished runs are appended, so that an interrupted sweep can go on.
//!
//! A line of JSON says what the runs belong to, and each further one is a run: where it stands in
//! the grid, and its result. A line that was not written to its end is dropped when the journal is
//! opened again.

use crate::lock::Locked;
use crate::plan::{Plan, Run};
use crate::runner::Origin;
use outlast_scenario::result::{RunResult, World};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a journal is, and of which format.
const FORMAT: &str = "outlast sweep journal 1";

/// The runs of a sweep that are done.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Locked,
    length: u64,
    /// Where the line of each run begins, in the order of the tables; zero, where the head stands,
    /// for those that are not done.
    places: Vec<u64>,
    done: u64,
}

/// The first line.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Head {
    format: String,
    version: String,
    sweep: String,
    fingerprint: String,
    /// Not written for the simulator, which was the only world at first.
    #[serde(default = "simulator", skip_serializing_if = "is_simulator")]
    world: World,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
}

const fn simulator() -> World {
    World::Sim
}

fn is_simulator(world: &World) -> bool {
    *world == World::Sim
}

impl Head {
    fn origin(&self) -> Origin {
        Origin::of(self.world, self.kernel.clone())
    }
}

/// A line for a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Entry<R = RunResult> {
    /// The cell, counted from zero.
    pub cell: u64,
    /// The repetition, counted from zero.
    pub repetition: u64,
    /// What came of it.
    pub result: R,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// The journal.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process uses it.
    #[error("another sweep is writing to {}", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// Its runs are those of something else.
    #[error("{} holds runs of {other}", path.display())]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// Of what.
        other: String,
    },
    /// A line is not what was written.
    #[error("{}:{line}: damaged", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// The line of a run.
pub(crate) fn line(run: Run, result: RunResult) -> String {
    let Run { cell, repetition } = run;
    let entry = Entry {
        cell,
        repetition,
        result,
    };
    let mut line =
        serde_json::to_string(&entry).expect("results have text keys and finite numbers");
    line.push('\n');
    line
}

impl Journal {
    /// Opens the journal of `plan` at `path` for this process alone, or begins it. Its runs come from
    /// `origin`. `version` is the program's, as another one may simulate otherwise.
    ///
    /// # Errors
    ///
    /// When it cannot be used, as [`JournalError`] says.
    pub fn open(
        path: &Path,
        plan: &Plan,
        origin: &Origin,
        version: &str,
    ) -> Result<Self, JournalError> {
        let unusable = |source| JournalError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file = options.open(path).map_err(unusable)?;
        let file = Locked::take(file).map_err(unusable)?;
        let file = file.ok_or_else(|| JournalError::Busy {
            path: path.to_owned(),
        })?;
        let runs = usize::try_from(plan.runs()).expect("a plan has at most MAX_RUNS runs");
        let mut journal = Self {
            path: path.to_owned(),
            file,
            length: 0,
            places: vec![0; runs],
            done: 0,
        };
        let head = Head {
            format: FORMAT.to_owned(),
            version: version.to_owned(),
            sweep: plan.name().to_owned(),
            fingerprint: plan.fingerprint().to_owned(),
            world: origin.world(),
            kernel: origin.release().map(str::to_owned),
        };
        journal.read(plan, &head)?;
        journal.file.set_len(journal.length).map_err(unusable)?;
        if journal.length == 0 {
            let mut line = serde_json::to_string(&head).expect("texts are JSON");
            line.push('\n');
            journal.write(&line)?;
        }
        Ok(journal)
    }

    /// Empties the journal at `path`, if there is one that no other process uses.
    ///
    /// # Errors
    ///
    /// When it is in use or cannot be written.
    pub fn discard(path: &Path) -> Result<(), JournalError> {
        let unusable = |source| JournalError::File {
            path: path.to_owned(),
            source,
        };
        let file = match OpenOptions::new().write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unusable(error)),
        };
        match Locked::take(file).map_err(unusable)? {
            Some(file) => file.set_len(0).map_err(unusable),
            None => Err(JournalError::Busy {
                path: path.to_owned(),
            }),
        }
    }

    /// Takes in what is there, up to the last whole line.
    fn read(&mut self, plan: &Plan, head: &Head) -> Result<(), JournalError> {
        let path = self.path.clone();
        let unusable = |source| JournalError::File {
            path: path.clone(),
            source,
        };
        let mut reader = BufReader::new(self.file.try_clone().map_err(unusable)?);
        let _ = reader.seek(SeekFrom::Start(0)).map_err(unusable)?;
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(unusable)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            if number == 1 {
                self.check(&line, head)?;
            } else {
                let entry: Entry<IgnoredAny> =
                    serde_json::from_slice(&line).map_err(|source| JournalError::Damaged {
                        path: path.clone(),
                        line: number,
                        source,
                    })?;
                let Entry {
                    cell, repetition, ..
                } = entry;
                self.note(plan, Run { cell, repetition });
            }
            self.length += read as u64;
        }
        Ok(())
    }

    /// Whether the runs are those of the sweep that `expected` names.
    fn check(&self, line: &[u8], expected: &Head) -> Result<(), JournalError> {
        let foreign = |other| JournalError::Foreign {
            path: self.path.clone(),
            other,
        };
        let head: Head =
            serde_json::from_slice(line).map_err(|_| foreign("something else".to_owned()))?;
        let (found, ours) = (&head.version, &expected.version);
        if head.format != expected.format || found != ours {
            return Err(foreign(format!("Outlast {found}, and this is {ours}")));
        }
        let (found, ours) = (head.origin(), expected.origin());
        if found != ours {
            return Err(foreign(format!("{found}, and this is {ours}")));
        }
        if head.fingerprint == expected.fingerprint {
            return Ok(());
        }
        Err(foreign(match head.sweep == expected.sweep {
            true => format!("`{}` as it was before it was changed", head.sweep),
            false => format!("another sweep, `{}`", head.sweep),
        }))
    }

    /// Notes that the line of `run` begins where the journal ends. Runs that are no longer asked
    /// for, as they are repeated less often now, are passed over.
    fn note(&mut self, plan: &Plan, run: Run) {
        let index = plan
            .index(run)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(place) = index.and_then(|index| self.places.get_mut(index)) {
            self.done += u64::from(*place == 0);
            *place = self.length;
        }
    }

    /// Appends a finished run.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn append(&mut self, plan: &Plan, finished: &crate::Finished) -> Result<(), JournalError> {
        let place = self.length;
        self.write(&finished.line)?;
        let end = std::mem::replace(&mut self.length, place);
        self.note(plan, finished.run);
        self.length = end;
        Ok(())
    }

    /// In one go, so that whoever ends the process leaves whole lines and at most one half.
    fn write(&mut self, line: &str) -> Result<(), JournalError> {
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|source| JournalError::File {
            path: self.path.clone(),
            source,
        })?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// How many runs are done.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Whether each run is done, in the order of the tables.
    #[must_use]
    pub fn is_done(&self) -> Vec<bool> {
        self.places.iter().map(|place| *place != 0).collect()
    }

    /// The result of the run at place `index` in the order of the tables; `None` if it is not done.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn result(&self, index: u64) -> Result<Option<RunResult>, JournalError> {
        let place = usize::try_from(index)
            .ok()
            .and_then(|index| self.places.get(index));
        let Some(&place) = place.filter(|place| **place != 0) else {
            return Ok(None);
        };
        let unusable = |source| JournalError::File {
            path: self.path.clone(),
            source,
        };
        let line = self.line_at(place).map_err(unusable)?;
        match serde_json::from_slice::<Entry>(&line) {
            Ok(entry) => Ok(Some(entry.result)),
            Err(error) => Err(unusable(error.into())),
        }
    }

    /// The line that begins at `place`.
    fn line_at(&self, place: u64) -> io::Result<Vec<u8>> {
        /// Most lines are shorter.
        const PIECE: usize = 4_096;
        let mut line = Vec::new();
        loop {
            let start = line.len();
            line.resize(start + PIECE, 0);
            let read = self
                .file
                .read_at(&mut line[start..], place + start as u64)?;
            line.truncate(start + read);
            if let Some(end) = line[start..].iter().position(|&byte| byte == b'\n') {
                line.truncate(start + end);
                return Ok(line);
            }
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
