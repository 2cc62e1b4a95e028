//! `outlast papers`: published figures and tables, with a judgement for each claim.

use super::experiments::{self, ReportArguments, RunArguments, Shelf};
use super::trials;
use crate::failure::Failure;
use crate::terminal;
use outlast_experiments::recorded::Found;
use outlast_papers::catalogue::WORKS;
use outlast_papers::judgements;

/// The experiments on published works.
const SHELF: Shelf = Shelf {
    command: "papers",
    experiments: outlast_papers::ALL,
    recorded: Some(judgements::recorded),
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
    terminal::print(&counts())?;
    Ok(())
}

/// The catalogue and the recorded judgements in numbers.
fn counts() -> String {
    let entries: Vec<_> = WORKS.iter().flat_map(|work| work.entries).collect();
    let not_judged = entries.iter().filter(|entry| entry.is_not_judged());
    let run = WORKS.iter().map(|work| work.count_run()).sum::<usize>();
    let mut text = format!(
        "{} entries: {run} run, {} not run; {} of them have a number that is not judged.\n",
        entries.len(),
        entries.len() - run,
        not_judged.count(),
    );
    let mut sums = [0; 4];
    for (name, extent, recorded) in judgements::all() {
        let of_one = Found::ALL.map(|found| recorded.count(found));
        for (sum, count) in sums.iter_mut().zip(of_one) {
            *sum += count;
        }
        text.push_str(&format!("{name} --{}: {}\n", extent.name(), rows(of_one)));
    }
    text + &format!("All rows as recorded: {}\n", rows(sums))
}

/// Counts of rows, in the order of [`Found::ALL`].
fn rows([reproduced, differ, unexplained, not_measured]: [usize; 4]) -> String {
    format!(
        "{reproduced} reproduced, {differ} differ for a known reason, {unexplained} not explained, \
         {not_measured} not measured."
    )
}
