//! The check of a set-up: an outage of one second on a link of its own, in network namespaces.

use crate::failure::Failure;
use crate::labs;
use crate::progress::Display;
use anyhow::{Context, anyhow};
use outlast_lab::{Lab, RunReport};
use outlast_scenario::Scenario;
use std::path::Path;
use std::process::{Command, Stdio};

/// A download whose link loses everything for one second.
const SCENARIO: &str = "name = \"check\"\n\
    [link]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
    [link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"1 s\"\n\
    [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\ndirection = \"download\"\n\
    [outlast]\ngateway = \"hold\"\n\
    [run]\ndeadline = \"20 s\"\n";

/// The longest time from link-up to new bytes that passes, in seconds. A busy machine takes some of it.
const LONGEST_S: f64 = 0.5;

/// Makes the check, in this process; the line that says what came of it.
pub(crate) fn run() -> Result<String, Failure> {
    let scenario = Scenario::parse(SCENARIO, "check.toml", Path::new("."))?;
    let (cancel, _termination) = labs::prepare()?;
    let lab = Lab::new(&scenario, 0).map_err(anyhow::Error::from)?;
    let outcome = labs::run_at_once(&[lab], &cancel, &Display::silent());
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let mut reports = outcome.reports.into_iter().flatten();
    let report = reports.next().context("the check has no report")?;
    judge(&report).map_err(Failure::Run)
}

fn judge(report: &RunReport) -> anyhow::Result<String> {
    let result = &report.result;
    if let Some(error) = &result.error {
        return Err(anyhow!("the check failed: {error}"));
    }
    let resumed = result.outages.first().and_then(|outage| outage.resume_s);
    match resumed {
        Some(seconds) if result.is_complete() && result.intact != Some(false) => {
            let line = format!(
                "a download over a link that was away for one second went on {seconds:.2} s after the link's return"
            );
            match seconds <= LONGEST_S {
                true => Ok(line),
                false => Err(anyhow!(
                    "the check failed: {line}, and {LONGEST_S} s is the most that passes"
                )),
            }
        }
        _ => Err(anyhow!(
            "the check failed: the download did not go on after one second without a link"
        )),
    }
}

/// The outcome of a check in a process of its own, which leaves this one's namespaces alone.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It passed, or failed, with this line.
    Passed(String),
    Failed(String),
    /// This machine lacks something for the check, which says nothing of the gateway.
    Unable(String),
}

/// Makes the check in a process of its own.
pub(crate) fn run_apart() -> anyhow::Result<Checked> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let output = Command::new(program)
        .args(["setup", "--check"])
        .stdin(Stdio::null())
        .output()
        .context("cannot start the check")?;
    let line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    };
    Ok(match output.status.code() {
        Some(0) => Checked::Passed(line(&output.stdout)),
        Some(3) => Checked::Unable(line(&output.stderr)),
        _ => Checked::Failed(line(&output.stderr)),
    })
}
