//! `outlast papers`: published figures and tables, with a judgement for each claim.

use super::experiments::{self, ReportArguments, RunArguments, Shelf};
use super::trials;
use crate::failure::Failure;
use crate::terminal;
use outlast_papers::catalogue::WORKS;

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
    List {
        /// List every figure, table and quantitative claim of the five works instead, run or not.
        #[arg(long)]
        all: bool,
    },
    /// Run an experiment and write its report; what an earlier run has measured is kept.
    Run(RunArguments),
    /// Write the report again from what is stored, without running anything.
    Report(ReportArguments),
}

/// Runs the subcommand; `run` and `report` know the names of trials, too.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List { all: false } => experiments::list(SHELF.experiments),
        Action::List { all: true } => list_all(),
        Action::Run(arguments) => experiments::measure(&[SHELF, trials::SHELF], arguments),
        Action::Report(what) => experiments::report(&[SHELF, trials::SHELF], what),
    }
}

/// Prints the catalogue, a line for each entry.
fn list_all() -> Result<(), Failure> {
    for work in WORKS {
        terminal::print(&format!("{}: {}\n", work.cite, work.title))?;
        for entry in work.entries {
            let line = format!("  {}: {} [{}]\n", entry.place, entry.says, entry.bound);
            terminal::print(&line)?;
        }
        terminal::print("\n")?;
    }
    Ok(())
}
