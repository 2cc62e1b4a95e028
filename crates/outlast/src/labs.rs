//! What `demo` and `lab` share: carrying labs out under the user's eyes.

use crate::failure::Failure;
use crate::progress::Display;
use outlast_lab::{Cancel, Lab, LabError, RunReport};
use outlast_linux::signal::Termination;
use outlast_linux::user_namespace;
use rustix::fs::Access;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Component, Path};
use std::thread;

/// Makes labs possible, and Ctrl-C end them. To be called before the process has threads.
pub(crate) fn prepare() -> Result<(Cancel, Termination), Failure> {
    user_namespace::enter()?;
    interruptible()
}

/// Makes Ctrl-C end what asks the [`Cancel`]. To be called before the process has threads.
pub(crate) fn interruptible() -> Result<(Cancel, Termination), Failure> {
    let cancel = Cancel::new()?;
    let termination = Termination::wake(cancel.waker())?;
    Ok((cancel, termination))
}

/// What came of labs that were carried out at once.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Of each lab, if it came to an end.
    pub(crate) reports: Vec<Option<RunReport>>,
    /// Why the others did not.
    pub(crate) failure: Option<Failure>,
}

/// Carries labs out at once, each shown in its lane. The first error ends them all.
pub(crate) fn run_at_once(labs: &[Lab], cancel: &Cancel, display: &Display) -> Outcome {
    let outcomes: Vec<Result<RunReport, LabError>> = thread::scope(|scope| {
        let threads: Vec<_> = labs
            .iter()
            .enumerate()
            .map(|(lane, lab)| scope.spawn(move || run_one(lab, lane, cancel, display)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut reports = Vec::new();
    let mut first = None;
    for outcome in outcomes {
        match (outcome, &first) {
            (Ok(report), _) => {
                reports.push(Some(report));
                continue;
            }
            // The error that ended the others says more than that they were ended.
            (Err(error), None | Some(LabError::Cancelled)) => first = Some(error),
            (Err(_), Some(_)) => {}
        }
        reports.push(None);
    }
    Outcome {
        reports,
        failure: first.map(failure),
    }
}

fn run_one(
    lab: &Lab,
    lane: usize,
    cancel: &Cancel,
    display: &Display,
) -> Result<RunReport, LabError> {
    let outcome = lab.run(cancel, |progress| display.update(lane, progress));
    match &outcome {
        Ok(report) => display.finish(lane, &report.result),
        Err(_) => cancel.cancel(),
    }
    outcome
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::NoSuchMechanism { .. } | LabError::Topology { .. } => {
            Failure::Usage(error.to_string())
        }
        error if error.is_missing_capability() => {
            Failure::Capability(format!("{:#}", anyhow::Error::from(error)))
        }
        error => Failure::Run(error.into()),
    }
}

/// Makes sure, before anything is measured, that a file can be written; `option` is where the user
/// has named it.
pub(crate) fn check_writable(file: &Path, option: &str) -> Result<(), Failure> {
    make_parent(file, option)?;
    let refused = |error: io::Error| {
        Failure::Usage(format!(
            "cannot write {}: {error}; name another file with {option}",
            file.display()
        ))
    };
    match fs::metadata(file) {
        // Opening anything else, such as a pipe, would have consequences.
        Ok(existing) if !existing.is_file() && !existing.is_dir() => Ok(()),
        Ok(_) => {
            let opened = OpenOptions::new().append(true).open(file);
            opened.map(drop).map_err(refused)
        }
        Err(_) => {
            let made = OpenOptions::new().append(true).create_new(true).open(file);
            made.map_err(refused)?;
            // Whatever ends the command early, no empty file stays behind.
            fs::remove_file(file).map_err(refused)
        }
    }
}

/// Makes the directory that a file is to be written to; `option` is where the user has named it.
///
/// One below the working directory alone: what is missing elsewhere is more likely a slip, and root would make it.
pub(crate) fn make_parent(file: &Path, option: &str) -> Result<(), Failure> {
    let Some(parent) = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    else {
        return Ok(());
    };
    if is_below_working_directory(parent) {
        return make_directory(parent, option);
    }
    let missing = match parent.try_exists() {
        Ok(true) => return Ok(()),
        Ok(false) => "it is not there: make it first".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::Usage(format!(
        "cannot write to the directory {}: {missing}, or name another place with {option}",
        parent.display()
    )))
}

fn is_below_working_directory(path: &Path) -> bool {
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let is_below = || std::env::current_dir().is_ok_and(|current| path.starts_with(current));
    !goes_up && (path.is_relative() || is_below())
}

/// Makes a directory to write to; `option` is where the user has named it. Below the working directory those above it are
/// made, too.
pub(crate) fn make_directory(directory: &Path, option: &str) -> Result<(), Failure> {
    let made = match is_below_working_directory(directory) {
        true => fs::create_dir_all(directory),
        false if directory.is_dir() => Ok(()),
        false => fs::create_dir(directory),
    };
    let usable =
        made.and_then(|()| rustix::fs::access(directory, Access::WRITE_OK).map_err(Into::into));
    usable.map_err(|error| {
        Failure::Usage(format!(
            "cannot write to the directory {}: {error}; name another place with {option}",
            directory.display()
        ))
    })
}
