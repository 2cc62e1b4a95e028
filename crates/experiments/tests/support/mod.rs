//! Runs that nobody carried out: what they would say is worked out from the scenario.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod checks;

use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Again, Reconnection, Record, Runs};
use outlast_scenario::result::{OutageResult, RunResult, Settings, World};
use outlast_scenario::{Mechanism, Scenario, Workload};
use std::time::Duration;

/// All runs of `experiment`, as if every mechanism did as the paper says.
pub(crate) fn runs(experiment: &Experiment, extent: Extent) -> Runs {
    Runs::new(experiment.jobs(extent).iter().map(record))
}

/// The run of `job`.
pub(crate) fn record(job: &Job) -> Record {
    let result = result(&job.scenario, job.index);
    let restart = |outage: &OutageResult| Reconnection {
        restart_s: outage.resume_s.map(|resume| resume + 0.002),
        busy: outage.resume_s.map(|_| 0.5),
        again: Again {
            first_wait_s: outage.resume_s.map(|_| 0.3),
            second_wait_s: outage.resume_s.map(|_| 0.6),
            through_s: outage.resume_s.map(|resume| resume / 2.0),
        },
    };
    let watched = job.watch != Watch::Nothing;
    Record {
        cell: job.cell.clone(),
        index: job.index,
        fingerprint: job.fingerprint(),
        version: "1.2.3".to_owned(),
        reconnections: result
            .outages
            .iter()
            .filter(|_| watched)
            .map(restart)
            .collect(),
        trace: None,
        variables: Vec::new(),
        attempts: 1,
        warnings: Vec::new(),
        worst_delay_s: 0.003,
        observed: None,
        result,
    }
}

/// How many times the ideal a run takes, and how long it takes to resume; `None` is never.
fn fares(scenario: &Scenario, index: u32) -> (Option<f64>, Option<f64>) {
    let more = 1.0 + f64::from(index) / 100.0;
    let at = [scenario.outlast.gateway, scenario.outlast.mobile];
    match at {
        [Mechanism::None, Mechanism::None] => {
            let often = scenario
                .link_config(index)
                .outages_until(Duration::from_secs(10))
                .len();
            (Some(2.0 * more).filter(|_| often < 3), Some(2.0 * more))
        }
        [Mechanism::Hold, Mechanism::Hold] => (Some(1.01 * more), Some(0.042 * more)),
        [Mechanism::Hold, Mechanism::None] => (Some(1.2 * more), None),
        _ => (Some(1.05 * more), Some(0.12 * more)),
    }
}

fn result(scenario: &Scenario, index: u32) -> RunResult {
    let framing = scenario.framing();
    let ideal = scenario.ideal_time(index, framing);
    let (factor, resume_s) = fares(scenario, index);
    let at_best = ideal.unwrap_or(scenario.run.deadline);
    let elapsed = factor.map_or(scenario.run.deadline, |factor| at_best.mul_f64(factor));
    let elapsed = elapsed.min(scenario.run.deadline);
    let outages = scenario.link_config(index).outages_until(elapsed);
    let ideal_updates = scenario.ideal_updates(index, framing);
    let is_bulk = matches!(scenario.workload, Workload::Bulk { .. });
    let kernel = scenario.stack.in_lab("6.1.0".to_owned());
    RunResult {
        completed: factor.is_some(),
        intact: Some(true),
        elapsed_s: elapsed.as_secs_f64(),
        ideal_s: ideal.map(|ideal| ideal.as_secs_f64()),
        utilisation: Some(factor.map_or(0.1, f64::recip)).filter(|_| is_bulk),
        outages: outages
            .iter()
            .map(|o| OutageResult {
                resume_s,
                ..OutageResult::new(o)
            })
            .collect(),
        timeouts: Some(3),
        retransmitted_bytes: Some(1448),
        injected_packets: 10,
        bytes_received: Some(1),
        updates: ideal_updates.map(|n| (f64::from(n) / factor.unwrap_or(2.5)) as u32),
        ideal_updates,
        ..RunResult::new(Settings::new(scenario, index, World::Lab, kernel))
    }
}
