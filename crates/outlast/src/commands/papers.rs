//! `outlast papers`: published figures and tables, with a judgement for each claim.

use super::experiments::{self, ReportArguments, RunArguments, Shelf};
use super::trials;
use crate::failure::Failure;

/// The experiments on published works.
const SHELF: Shelf = Shelf {
    command: "papers",
    experiments: outlast_papers::ALL,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the experiments.
    List,
    /// Run an experiment and write its report; what an earlier run has measured is kept.
    Run(RunArguments),
    /// Write the report again from what is stored, without running anything.
    Report(ReportArguments),
}

/// Runs the subcommand; `run` and `report` know the names of trials, too.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => experiments::list(SHELF.experiments),
        Action::Run(arguments) => experiments::measure(&[SHELF, trials::SHELF], arguments),
        Action::Report(what) => experiments::report(&[SHELF, trials::SHELF], what),
    }
}
