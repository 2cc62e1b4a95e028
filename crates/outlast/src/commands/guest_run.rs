//! `outlast guest-run BUNDLE CELL REPETITION`: one run of a sweep, in a guest.

use crate::failure::Failure;
use crate::guests;
use crate::labs;
use crate::progress::Display;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_lab::Lab;
use outlast_scenario::result::World;
use outlast_sweep::{Bundle, Plan, Run};
use std::fs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The sweep with all its files, as JSON.
    bundle: PathBuf,
    /// The cell, counted from zero.
    cell: u64,
    /// The repetition, counted from zero.
    repetition: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = fs::read(&arguments.bundle).context("cannot read the sweep")?;
    let bundle: Bundle = serde_json::from_slice(&text).context("cannot read the sweep")?;
    let plan = Plan::unbundle(&bundle, env!("CARGO_PKG_VERSION")).map_err(anyhow::Error::from)?;
    let run = Run {
        cell: arguments.cell,
        repetition: arguments.repetition,
    };
    let scenario = guests::in_phase(&plan.scenario(run)?, 0);
    let lab = Lab::new(&scenario, 0).map_err(anyhow::Error::from)?;
    let (cancel, _termination) = labs::prepare()?;
    let outcome = labs::run_at_once(&[lab], &cancel, &Display::silent());
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let report = outcome.reports.into_iter().flatten().next();
    let report = report.ok_or_else(|| anyhow!("the run has no result"))?;
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    let mut result = report.result;
    result.settings.world = World::Kernel;
    terminal::print(&serde_json::to_string(&result).map_err(anyhow::Error::from)?)
}
