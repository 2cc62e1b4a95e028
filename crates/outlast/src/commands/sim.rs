//! `outlast sim FILE`: a scenario in virtual time, on the TCP model.

use crate::commands::lab;
use crate::failure::Failure;
use crate::labs;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_report::results;
use outlast_scenario::Scenario;
use outlast_scenario::result::{RunResult, ScenarioResult, World};
use outlast_sim::trace::variables_csv;
use outlast_sim::{Outcome, Recording, Side, Simulation};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario file (see docs/scenario-file.md; examples/scenarios has some).
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print the result as one JSON document (see docs/result-format.md).
    #[arg(long)]
    json: bool,

    /// Capture both ends of the link, as pcapng files in this directory.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,

    /// Write the senders' variables at each acknowledgement, as CSV files in this directory.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = Scenario::load(&arguments.file)?;
    let recording = Recording {
        captures: arguments.capture.is_some(),
        variables: arguments.trace.is_some(),
        traced_packets: None,
    };
    let mut runs = Vec::new();
    for index in 0..scenario.run.repeat {
        let simulation =
            Simulation::new(&scenario, index).map_err(|error| Failure::Usage(error.to_string()))?;
        let report = simulation.with_recording(recording).run();
        let stem = format!("{}-{}", lab::stem(&scenario), index + 1);
        write_files(arguments, &stem, &report.outcome)?;
        runs.push(report.result);
    }
    show(arguments, &scenario, runs)
}

fn write_files(arguments: &Arguments, stem: &str, outcome: &Outcome) -> Result<(), Failure> {
    if let (Some(directory), Some(captures)) = (&arguments.capture, &outcome.captures) {
        for side in Side::BOTH {
            let file = directory.join(format!("{stem}.{side}.pcapng"));
            write(&file, "--capture", &captures[side.index()])?;
        }
    }
    if let (Some(directory), Some(rows)) = (&arguments.trace, &outcome.variables) {
        let file = directory.join(format!("{stem}.csv"));
        write(&file, "--trace", variables_csv(rows).as_bytes())?;
    }
    Ok(())
}

/// Writes a file below the directory that `option` names.
fn write(file: &Path, option: &str, bytes: &[u8]) -> Result<(), Failure> {
    labs::make_parent(file, option)?;
    std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn show(arguments: &Arguments, scenario: &Scenario, runs: Vec<RunResult>) -> Result<(), Failure> {
    let is_corrupt = runs.iter().any(|run| run.intact == Some(false));
    let error = runs.iter().find_map(|run| run.error.clone());
    if arguments.json {
        let result = ScenarioResult {
            scenario: scenario.name.clone(),
            world: World::Sim,
            runs,
        };
        let json = serde_json::to_string_pretty(&result).map_err(anyhow::Error::from)?;
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print_table(&results::runs(&runs))?;
    }
    match (is_corrupt, error) {
        (true, _) => Err(Failure::Run(anyhow!("what arrived is not what was sent"))),
        (false, Some(error)) => Err(Failure::Run(anyhow!(error))),
        (false, None) => Ok(()),
    }
}
