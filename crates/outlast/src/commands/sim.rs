//! `outlast sim FILE`: a scenario in virtual time, on the TCP model.

use crate::commands::lab;
use crate::failure::Failure;
use crate::labs;
use crate::page;
use crate::terminal;
use crate::virtual_time::Watch;
use anyhow::{Context, anyhow};
use outlast_lab::Lab;
use outlast_report::results;
use outlast_scenario::Scenario;
use outlast_scenario::result::{ScenarioResult, World};
use outlast_sim::trace::variables_csv;
use outlast_sim::{Outcome, Recording, RunReport, Side, Simulation};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario file (see docs/scenario-file.md; examples/scenarios has some).
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print the result as one JSON document (see docs/result-format.md).
    #[arg(long)]
    json: bool,

    /// Capture both ends of each link, as pcapng files in this directory.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,

    /// Write a report page with time-sequence diagrams.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write the senders' variables at each acknowledgement, as CSV files in this directory.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = Scenario::load(&arguments.file)?;
    // Asked for first: whether the simulator has what the scenario wants does not depend on the run.
    prepare(&scenario, 0, Recording::default())?;
    if let Some(report) = &arguments.report {
        labs::check_writable(report, "--report")?;
    }
    let recording = Recording {
        captures: arguments.capture.is_some(),
        variables: arguments.trace.is_some(),
        traced_packets: arguments.report.is_some().then_some(Lab::TRACED_PACKETS),
    };
    let mut watch = Watch::new(scenario.run.repeat);
    let mut reports = Vec::new();
    for index in 0..scenario.run.repeat {
        let mut report = watch.run(prepare(&scenario, index, recording)?);
        let stem = format!("{}-{}", lab::stem(&scenario), index + 1);
        write_files(arguments, &stem, &mut report.outcome)?;
        reports.push(report);
    }
    watch.clear();
    show(arguments, &scenario, &reports)
}

fn prepare(
    scenario: &Scenario,
    index: u32,
    recording: Recording,
) -> Result<Simulation<'_>, Failure> {
    let simulation =
        Simulation::new(scenario, index).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(simulation.with_recording(recording))
}

/// Writes the files of one run, which are not kept: they may be large, and runs many.
fn write_files(arguments: &Arguments, stem: &str, outcome: &mut Outcome) -> Result<(), Failure> {
    if let Some(directory) = &arguments.capture {
        let hops = outcome.hops.iter_mut().zip(1..);
        let hops = hops.map(|(hop, number)| (format!("{stem}.hop{number}"), hop.captures.take()));
        let first = (stem.to_owned(), outcome.captures.take());
        let cells = outcome
            .roaming
            .iter_mut()
            .flat_map(|roaming| &mut roaming.cells);
        let cells = cells.zip(2..);
        let cells = cells.map(|(cell, n)| (format!("{stem}.gateway{n}"), cell.captures.take()));
        for (stem, captures) in std::iter::once(first).chain(hops).chain(cells) {
            for (side, capture) in Side::BOTH.into_iter().zip(captures.into_iter().flatten()) {
                let file = directory.join(format!("{stem}.{side}.pcapng"));
                write(&file, "--capture", &capture)?;
            }
        }
    }
    if let (Some(directory), Some(rows)) = (&arguments.trace, outcome.variables.take()) {
        let file = directory.join(format!("{stem}.csv"));
        write(&file, "--trace", variables_csv(&rows).as_bytes())?;
    }
    Ok(())
}

/// Writes a file below the directory that `option` names.
fn write(file: &Path, option: &str, bytes: &[u8]) -> Result<(), Failure> {
    labs::make_parent(file, option)?;
    std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn show(arguments: &Arguments, scenario: &Scenario, reports: &[RunReport]) -> Result<(), Failure> {
    let runs: Vec<_> = reports.iter().map(|report| report.result.clone()).collect();
    let is_corrupt = runs.iter().any(|run| run.intact == Some(false));
    let error = runs.iter().find_map(|run| run.error.clone());
    if arguments.json {
        let result = ScenarioResult {
            scenario: scenario.name.clone(),
            world: World::Sim,
            runs: runs.clone(),
        };
        let json = serde_json::to_string_pretty(&result).map_err(anyhow::Error::from)?;
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print_table(&results::runs(&runs))?;
    }
    if let Some(file) = &arguments.report {
        let names = page::names(&scenario.name, &runs);
        let runs = names.iter().zip(reports);
        let runs: Vec<_> = runs
            .map(|(name, report)| page::Run::in_sim(name, report))
            .collect();
        let title = format!("Simulation: {}", scenario.name);
        let command = format!("outlast sim {}", arguments.file.display());
        page::write(file, &title, &command, &runs)?;
        terminal::say(&format!("Report: {}", file.display()));
    }
    match (is_corrupt, error) {
        (true, _) => Err(Failure::Run(anyhow!("what arrived is not what was sent"))),
        (false, Some(error)) => Err(Failure::Run(anyhow!(error))),
        (false, None) => Ok(()),
    }
}
