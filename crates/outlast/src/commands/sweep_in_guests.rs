//! `outlast sweep FILE --kernel DIR`: each run by the lab, in a guest of its own.

use crate::failure::Failure;
use crate::guests::{self, Programs};
use anyhow::{Context, anyhow};
use outlast_guest::{Ended, Job, JobFile, Kernel, State};
use outlast_lab::{Cancel, Lab, LabError};
use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
use outlast_sweep::{Plan, Refusal, Run, RunError, RunFault, Runner};
use std::path::PathBuf;

/// The path of the sweep in a guest.
const BUNDLE: &str = "/run/outlast-sweep.json";

/// Says what the lab lacks of a scenario.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Refusal> {
    let Err(error) = Lab::new(scenario, 0) else {
        return Ok(());
    };
    let (keys, remedy) = match &error {
        LabError::NoSuchMechanism { key, available, .. } => {
            (vec![*key], format!("there it has {available}"))
        }
        LabError::Topology { table, .. } => {
            let remedy = "run this sweep without `--kernel`, or change these tables";
            (vec![*table], remedy.to_owned())
        }
        _ => (Vec::new(), "run this sweep without `--kernel`".to_owned()),
    };
    Err(Refusal {
        message: error.to_string(),
        keys,
        label: "not in the lab",
        remedy,
    })
}

/// Carries runs out in guests.
#[derive(Debug)]
pub(crate) struct Guests {
    state: State,
    bundle: JobFile,
    directory: PathBuf,
    cancel: Cancel,
}

impl Guests {
    /// Guests for the runs of `plan`, each of which goes on from the saved state of `kernel`; `programs` are those that its
    /// workloads start.
    pub(crate) fn new(
        kernel: &Kernel,
        plan: &Plan,
        programs: &Programs,
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let bundle = plan.bundle(env!("CARGO_PKG_VERSION"));
        let bundle = serde_json::to_vec(&bundle.map_err(anyhow::Error::from)?);
        let directory = std::env::current_dir().context("cannot tell the current directory")?;
        Ok(Self {
            state: guests::state(kernel, programs, cancel)?,
            bundle: JobFile {
                path: BUNDLE.into(),
                mode: 0o644,
                data: bundle.map_err(anyhow::Error::from)?,
            },
            directory,
            cancel: cancel.clone(),
        })
    }

    fn job(&self, scenario: &Scenario, run: Run) -> Job {
        let program = self.state.init().to_string_lossy().into_owned();
        let words = [
            program,
            "guest-run".to_owned(),
            BUNDLE.to_owned(),
            run.cell.to_string(),
            run.repetition.to_string(),
        ];
        Job {
            command: words.into(),
            environment: vec![("NO_COLOR".to_owned(), "1".to_owned())],
            directory: self.directory.clone(),
            files: vec![self.bundle.clone()],
            start_after_ns: guests::start_after_ns(scenario),
            deadline_ns: guests::deadline_ns(scenario, 1),
            ..Job::default()
        }
    }

    fn result(&self, scenario: &Scenario, run: Run) -> anyhow::Result<RunResult> {
        let job = self.job(scenario, run);
        let is_cancelled = || self.cancel.is_cancelled();
        let limits = guests::limits(&job, &is_cancelled);
        let outcome = self.state.run(&job, &limits)?;
        let said = String::from_utf8_lossy(&outcome.errors);
        match &outcome.ended {
            Ended::Exited(0) => {
                if !said.is_empty() {
                    tracing::info!(
                        "cell {}, {}: {}",
                        run.cell + 1,
                        run.repetition + 1,
                        said.trim_end()
                    );
                }
                serde_json::from_slice(&outcome.output).context("the guest printed no result")
            }
            ended if said.is_empty() => Err(guests::not_ended(ended)),
            ended => Err(anyhow!("{}\n{}", guests::not_ended(ended), said.trim_end())),
        }
    }
}

impl Runner for Guests {
    fn carry_out(&self, plan: &Plan, run: Run) -> Result<RunResult, RunError> {
        let fault = |fault| plan.failed(run, fault);
        let scenario = plan.scenario(run).map_err(|error| fault(error.into()))?;
        let result = self.result(&scenario, run);
        result.map_err(|error| fault(RunFault::World(error.into())))
    }
}
