//! `outlast trials`: Outlast's own experiments.

use super::experiments::{self, ReportArguments, RunArguments, Shelf};
use crate::failure::Failure;

/// Outlast's own experiments.
pub(super) const SHELF: Shelf = Shelf {
    command: "trials",
    experiments: outlast_trials::ALL,
    recorded: None,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the trials.
    List,
    /// Run a trial and write its report; what an earlier run has measured is kept.
    Run(RunArguments),
    /// Write the report again from what is stored, without running anything.
    Report(ReportArguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => experiments::list(SHELF.experiments),
        Action::Run(arguments) => experiments::measure(&[SHELF], arguments),
        Action::Report(what) => experiments::report(&[SHELF], what),
    }
}
