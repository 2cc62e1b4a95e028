//! Carrying one run out, in the world that it asks for.

use crate::job::{Job, Watch};
use crate::moments::Moments;
use crate::record::{HandOffs, Variables};
use crate::trial::TrialError;
use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, Lab, LabError};
use outlast_scenario::result::{RunResult, World};
use outlast_sim::trace::{Cause, Trace, VariableRow};
use outlast_sim::{Recording, SimError, Simulation};
use outlast_wire::SeqNumber;
use serde::Serialize;
use serde_json::Value;

/// What came of a run, in any world.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The result.
    pub result: RunResult,
    /// When the workload's first byte came to the link, on the clock of the trace.
    pub started: Option<Instant>,
    /// What happened to each packet, if that is kept.
    pub trace: Option<Trace>,
    /// The variables of the payload's sender, if they are kept.
    pub variables: Vec<Variables>,
    /// What makes the numbers doubtful.
    pub warnings: Vec<String>,
    /// By how much the link was late at worst; in virtual time it never is.
    pub worst_delay: Duration,
    /// What only a live trial shows, in the trial's own form; [`HandOffs`] of a simulation with Mobile IP.
    pub observed: Option<Value>,
}

impl Ran {
    /// Nothing but the result.
    #[must_use]
    pub fn new(result: RunResult) -> Self {
        Self {
            result,
            started: None,
            trace: None,
            variables: Vec::new(),
            warnings: Vec::new(),
            worst_delay: Duration::ZERO,
            observed: None,
        }
    }

    /// Adds what only a live trial shows.
    ///
    /// # Panics
    /// If `observed` has no form in JSON: the trials are part of this program.
    #[must_use]
    pub fn observing(mut self, observed: &impl Serialize) -> Self {
        let value = serde_json::to_value(observed);
        self.observed = Some(value.expect("an observation has a form in JSON"));
        self
    }
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CarryOutError {
    /// In the lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// In the simulator.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// With real programs.
    #[error(transparent)]
    Trial(TrialError),
}

/// Carries `job` out, alone.
///
/// # Errors
/// When the lab fails or is cancelled, or the world has not what the scenario asks for.
pub fn carry_out(job: &Job, cancel: &Cancel) -> Result<Ran, CarryOutError> {
    carry_out_among(job, &Moments::new(1), cancel)
}

/// Carries `job` out among others that have the same `moments`.
///
/// # Errors
/// As [`carry_out`].
pub fn carry_out_among(
    job: &Job,
    moments: &Moments,
    cancel: &Cancel,
) -> Result<Ran, CarryOutError> {
    match job.world {
        World::Lab => in_lab(job, cancel),
        // A simulation ends soon of itself: one that has begun is not ended early.
        World::Sim if cancel.is_cancelled() => Err(LabError::Cancelled.into()),
        World::Sim => in_sim(job),
        World::Live | World::Kernel => in_reality(job, moments, cancel),
    }
}

/// A job in [`World::Live`] or [`World::Kernel`] is one with a trial, see [`Job::live`] and [`Job::in_guest`].
fn in_reality(job: &Job, moments: &Moments, cancel: &Cancel) -> Result<Ran, CarryOutError> {
    let trial = job
        .trial
        .as_ref()
        .expect("whoever sets the world sets the trial");
    trial
        .carry_out(job, moments, cancel)
        .map_err(|error| match error {
            // Cancelled is cancelled, wherever it is noticed.
            TrialError::Place(error) => error.into(),
            error => CarryOutError::Trial(error),
        })
}

fn in_lab(job: &Job, cancel: &Cancel) -> Result<Ran, CarryOutError> {
    let mut lab = Lab::new(&job.scenario, job.index)?;
    if job.watch != Watch::Nothing {
        lab = lab.with_trace(Lab::TRACED_PACKETS);
    }
    let report = lab.run(cancel, |_| {})?;
    Ok(Ran {
        started: report.started,
        trace: report.trace,
        warnings: report.warnings,
        worst_delay: report.effort.worst_delay,
        ..Ran::new(report.result)
    })
}

fn in_sim(job: &Job) -> Result<Ran, CarryOutError> {
    let recording = Recording {
        traced_packets: (job.watch != Watch::Nothing).then_some(Lab::TRACED_PACKETS),
        variables: job.watch == Watch::Variables,
        captures: false,
    };
    let simulation = Simulation::new(&job.scenario, job.index)?;
    let report = simulation.with_recording(recording).run();
    let outcome = report.outcome;
    let sender = outcome.flows.first().map(|flow| flow.receiver.peer());
    let rows = outcome.variables.unwrap_or_default();
    let rows = || rows.iter().filter(|row| Some(row.side) == sender);
    let origin = rows()
        .find(|row| row.cause == Cause::Ack)
        .map(|row| row.variables.snd_una);
    let started = outcome.started;
    let variables = match (started, origin) {
        (Some(started), Some(origin)) => rows()
            .map(|row| Variables::of(row, started, origin))
            .collect(),
        _ => Vec::new(),
    };
    let ran = match outcome.roaming.and_then(|roaming| roaming.mobile_ip) {
        Some(mobile_ip) => Ran::new(report.result).observing(&HandOffs {
            took_s: mobile_ip
                .handoffs
                .iter()
                .map(Duration::as_secs_f64)
                .collect(),
        }),
        None => Ran::new(report.result),
    };
    Ok(Ran {
        started,
        trace: outcome.trace,
        variables,
        ..ran
    })
}

impl Variables {
    /// `origin` is where the stream begins.
    fn of(row: &VariableRow, started: Instant, origin: SeqNumber) -> Self {
        let VariableRow {
            at,
            cause,
            variables,
            ..
        } = row;
        Self {
            time_s: at.since(started).as_secs_f64(),
            timeout: matches!(cause, Cause::Timeout(_)),
            cwnd: variables.cwnd,
            ssthresh: variables.ssthresh,
            rto_s: variables.rto.as_secs_f64(),
            in_flight: variables.in_flight,
            acknowledged: u64::from(variables.snd_una.0.wrapping_sub(origin.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "a tunnel"
        [link]
        rate = "10 Mbit/s"
        delay = "25 ms"
        queue = 75
        [link.outages]
        process = "single"
        start = "1 s"
        length = "2 s"
        [workload]
        kind = "bulk"
        bytes = "3 MB"
        direction = "upload"
    "#;

    fn ran(watch: Watch) -> Ran {
        let job = Job::from_toml("cell", TEXT.to_owned(), 0)
            .in_world(World::Sim)
            .watching(watch);
        let cancel = Cancel::new().expect("a pipe can be had");
        carry_out(&job, &cancel).expect("the simulator has all of it")
    }

    #[test]
    fn a_run_in_virtual_time_keeps_what_is_watched() {
        let plain = ran(Watch::Nothing);
        assert!(plain.result.completed && plain.trace.is_none() && plain.variables.is_empty());
        assert_eq!(plain.result.settings.world, World::Sim);
        assert!(ran(Watch::Packets).trace.is_some());
        let watched = ran(Watch::Variables);
        assert_eq!(watched.result, plain.result);
        let timeouts = watched.variables.iter().filter(|row| row.timeout).count();
        assert!(timeouts > 0 && timeouts < watched.variables.len());
        assert!(watched.variables.iter().any(|row| row.ssthresh.is_none()));
        // The sender is the mobile: its window grows before the outage.
        assert!(watched.variables.iter().any(|row| row.cwnd > 20));
        let acknowledged = watched.variables.iter().map(|row| row.acknowledged);
        let acknowledged = acknowledged.max().expect("there are rows");
        // The run is over when everything has arrived, before it is acknowledged.
        assert!(
            (2_900_000..=3_000_000).contains(&acknowledged),
            "{acknowledged}"
        );
    }
}
