//! What `demo` and `lab` share: carrying labs out under the user's eyes.

use crate::failure::Failure;
use crate::progress::Display;
use outlast_lab::{Cancel, Lab, LabError, RunReport};
use outlast_linux::signal::Termination;
use outlast_linux::user_namespace;
use std::path::Path;
use std::thread;

/// Makes labs possible, and Ctrl-C end them. To be called before the process has threads.
pub(crate) fn prepare() -> Result<(Cancel, Termination), Failure> {
    user_namespace::enter()?;
    let cancel = Cancel::new()?;
    let termination = Termination::wake(cancel.waker())?;
    Ok((cancel, termination))
}

/// Carries labs out at once, each shown in its lane. The first error ends them all.
pub(crate) fn run_at_once(
    labs: &[Lab],
    cancel: &Cancel,
    display: &Display,
) -> Result<Vec<RunReport>, Failure> {
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
    // The error that ended the others says more than that they were ended.
    let (cancelled, other): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|outcome| matches!(outcome, Err(LabError::Cancelled)));
    let mut reports = Vec::new();
    for outcome in other.into_iter().chain(cancelled) {
        reports.push(outcome.map_err(failure)?);
    }
    Ok(reports)
}

fn run_one(
    lab: &Lab,
    lane: usize,
    cancel: &Cancel,
    display: &Display,
) -> Result<RunReport, LabError> {
    let outcome = lab.run(cancel, |progress| display.update(lane, progress));
    match &outcome {
        Ok(report) => display.finish(lane, report.result.completed),
        Err(_) => cancel.cancel(),
    }
    outcome
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::NoSuchMechanism { .. } => Failure::Usage(error.to_string()),
        error if error.is_missing_capability() => {
            Failure::Capability(format!("{:#}", anyhow::Error::from(error)))
        }
        error => Failure::Run(error.into()),
    }
}

/// Makes the directory that a file is to be written to.
pub(crate) fn make_parent(file: &Path) -> Result<(), Failure> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        std::fs::create_dir_all(parent).map_err(|error| {
            Failure::Usage(format!(
                "cannot make the directory {}: {error}",
                parent.display()
            ))
        })?;
    }
    Ok(())
}
