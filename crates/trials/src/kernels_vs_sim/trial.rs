//! A scenario on a packaged kernel: this program's own `lab`, in a guest.

use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_experiments::trial::{Trial, TrialError};
use outlast_guest::{Ended, GuestError, Image, JobFile, Limits, State, packages};
use outlast_lab::Cancel;
use outlast_scenario::result::ScenarioResult;
use std::sync::{Arc, Mutex, PoisonError};

/// A run on a kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KernelTrial {
    /// The kernel's version, such as `6.12`.
    pub version: &'static str,
}

const DIRECTORY: &str = "/root";
const FILE: &str = "scenario.toml";

/// The guests' states that have been made, by version.
static STATES: Mutex<Vec<(&str, Arc<State>)>> = Mutex::new(Vec::new());

impl Trial for KernelTrial {
    fn weight(&self, _capacity: u32) -> u32 {
        1
    }

    fn expected(&self) -> Option<Duration> {
        Some(Duration::from_secs(5))
    }

    fn attempts(&self) -> u32 {
        1
    }

    fn carry_out(&self, job: &Job, _: &Moments, cancel: &Cancel) -> Result<Ran, TrialError> {
        let failed = |error: GuestError| match error.is_missing_capability() {
            true => TrialError::Missing(error.to_string()),
            false => TrialError::Failed(error.into()),
        };
        if cancel.is_cancelled() {
            return Err(TrialError::Place(outlast_lab::LabError::Cancelled));
        }
        let state = self.state().map_err(failed)?;
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let outcome = state.run(
            &outlast_guest::Job {
                command: [
                    &text(state.init()),
                    "lab",
                    FILE,
                    "--in-guest",
                    self.version,
                    "--json",
                ]
                .map(ToString::to_string)
                .into(),
                directory: DIRECTORY.into(),
                files: vec![JobFile {
                    path: format!("{DIRECTORY}/{FILE}").into(),
                    mode: 0o644,
                    data: job.text.clone().into_bytes(),
                }],
                ..outlast_guest::Job::default()
            },
            &Limits::default(),
        );
        let outcome = outcome.map_err(failed)?;
        if outcome.ended != Ended::Exited(0) {
            let said = String::from_utf8_lossy(&outcome.errors).into_owned();
            return Err(TrialError::Failed(
                format!("{:?} in the guest: {said}", outcome.ended).into(),
            ));
        }
        let document: ScenarioResult = serde_json::from_slice(&outcome.output)
            .map_err(|error| TrialError::Failed(error.into()))?;
        let run = document.runs.into_iter().next();
        run.map(Ran::new)
            .ok_or_else(|| TrialError::Failed("no run in the guest".into()))
    }
}

impl KernelTrial {
    /// The state of a guest with this program on the kernel, which is downloaded if it is not there yet.
    fn state(&self) -> Result<Arc<State>, GuestError> {
        let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, state)) = states.iter().find(|(version, _)| *version == self.version) {
            return Ok(state.clone());
        }
        let kernel = packages::cached(self.version)?;
        let program = std::env::current_exe().and_then(std::fs::canonicalize);
        let program = program.map_err(|error| {
            GuestError::Package(format!("cannot find this program's file: {error}"))
        })?;
        let state = Arc::new(State::of(&kernel, &Image::new(&program))?);
        states.push((self.version, state.clone()));
        Ok(state)
    }
}
