//! `outlast sim FILE`: a scenario in virtual time, on the TCP model.

use crate::commands::lab;
use crate::failure::Failure;
use crate::labs;
use crate::page;
use crate::shown::{self, Wish};
use crate::virtual_time::Watch;
use anyhow::Context;
use outlast_lab::Lab;
use outlast_scenario::Scenario;
use outlast_scenario::result::World;
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

    /// Capture both ends of each link, as pcapng files in this directory.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,

    /// Write a report page with time-sequence diagrams.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Run the same without Outlast, too, and show both side by side.
    #[arg(long)]
    control: bool,

    /// Write the senders' variables at each acknowledgement, as CSV files in this directory.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = Scenario::load(&arguments.file)?;
    // Asked for first: whether the simulator has what the scenario wants does not depend on the run.
    prepare(&scenario, 0, Recording::default())?;
    if arguments.control {
        shown::check_control(&arguments.file, &scenario)?;
    }
    let directories = [
        (&arguments.capture, "--capture"),
        (&arguments.trace, "--trace"),
    ];
    for (directory, option) in directories {
        if let Some(directory) = directory {
            labs::make_directory(directory, option)?;
        }
    }
    if let Some(report) = &arguments.report {
        labs::check_writable(report, "--report")?;
    }
    let recording = Recording {
        captures: arguments.capture.is_some(),
        variables: arguments.trace.is_some(),
        traced_packets: arguments.report.is_some().then_some(Lab::TRACED_PACKETS),
    };
    let wish = Wish {
        kernel: None,
        scenario: &scenario,
        file: &arguments.file,
        world: World::Sim,
        control: arguments.control,
        json: arguments.json,
        report: arguments.report.as_deref(),
    };
    let control = scenario.without_outlast();
    let kinds = [(&scenario, false), (&control, true)];
    let kinds = &kinds[..if arguments.control { 2 } else { 1 }];
    let count = scenario.run.repeat.saturating_mul(kinds.len() as u32);
    let mut watch = Watch::new(count);
    let mut reports = Vec::new();
    for index in 0..scenario.run.repeat {
        for &(scenario, is_control) in kinds {
            let mut report = watch.run(prepare(scenario, index, recording)?);
            let stem = lab::stem_of_run(scenario, index, is_control);
            write_files(arguments, &stem, &mut report.outcome)?;
            reports.push((wish.name(index, is_control), is_control, report));
        }
    }
    watch.clear();
    let named = reports.iter().map(|(name, is_control, report)| {
        let run = page::Run::in_sim(name, report);
        if *is_control { run.into_control() } else { run }
    });
    let runs: Vec<_> = named.collect();
    wish.show(&runs)?;
    shown::judge(&runs)
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
