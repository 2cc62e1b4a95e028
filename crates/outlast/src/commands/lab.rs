//! `outlast lab FILE`: a scenario on this machine's kernel TCP.

use crate::commands::lab_shell;
use crate::failure::Failure;
use crate::labs;
use crate::page;
use crate::progress::Display;
use crate::terminal;
use anyhow::anyhow;
use outlast_lab::{Lab, LabError, RunReport};
use outlast_report::results;
use outlast_report::table::Table;
use outlast_scenario::Scenario;
use outlast_scenario::result::{RunResult, ScenarioResult, World};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    inside: Option<Inside>,

    /// The scenario file (see docs/scenario-file.md; examples/scenarios has some).
    #[arg(required = true, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print the result as one JSON document (see docs/result-format.md).
    #[arg(long)]
    json: bool,

    /// Capture both ends of each link, as pcapng files in this directory.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,

    /// Write a report page with time-sequence diagrams.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Runs at once. More than one is faster, and less precise on a busy machine.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
}

#[derive(Debug, clap::Subcommand)]
enum Inside {
    /// Open a shell, or run a command, in a host of a running lab.
    Shell(lab_shell::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Inside::Shell(arguments)) = &arguments.inside {
        return lab_shell::run(arguments);
    }
    let file = arguments.file.as_ref().expect("clap demands the file");
    let scenario = Scenario::load(file)?;
    // Asked for first: whether the lab has what the scenario wants does not depend on the run.
    Lab::new(&scenario, 0)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    if let Some(report) = &arguments.report {
        labs::check_writable(report, "--report")?;
    }
    if let Some(directory) = &arguments.capture {
        labs::make_directory(directory, "--capture")?;
    }
    let (cancel, _termination) = labs::prepare()?;
    let mut reports = Vec::new();
    let all: Vec<u32> = (0..scenario.run.repeat).collect();
    for indices in all.chunks(arguments.jobs as usize) {
        let labs = indices
            .iter()
            .map(|&index| prepare(arguments, &scenario, index))
            .collect::<Result<Vec<_>, _>>()
            .map_err(anyhow::Error::from)?;
        let names: Vec<String> = indices
            .iter()
            .map(|index| format!("run {}", index + 1))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let display = Display::new(&names);
        let outcome = labs::run_at_once(&labs, &cancel, &display);
        display.clear();
        reports.extend(outcome.reports);
        if let Some(failure) = outcome.failure {
            return Err(given_up(arguments, &scenario, &reports, failure)?);
        }
    }
    show(arguments, &scenario, &reports)?;
    judge(&reports)
}

/// Shows what has been measured before something went wrong, and says how much that is.
fn given_up(
    arguments: &Arguments,
    scenario: &Scenario,
    reports: &[RunReport],
    failure: Failure,
) -> Result<Failure, Failure> {
    if reports.is_empty() {
        return Ok(failure);
    }
    show(arguments, scenario, reports)?;
    Ok(match failure {
        Failure::Run(error) => {
            let (done, all) = (reports.len(), scenario.run.repeat);
            Failure::Run(error.context(format!("only {done} of {all} runs were made")))
        }
        other => other,
    })
}

fn prepare(arguments: &Arguments, scenario: &Scenario, index: u32) -> Result<Lab, LabError> {
    let mut lab = Lab::new(scenario, index)?;
    if let Some(directory) = &arguments.capture {
        lab = lab.with_capture(directory, &format!("{}-{}", stem(scenario), index + 1));
    }
    if arguments.report.is_some() {
        lab = lab.with_trace(Lab::TRACED_PACKETS);
    }
    Ok(lab)
}

/// The scenario's name as a file name.
pub(crate) fn stem(scenario: &Scenario) -> String {
    let keep = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    scenario.name.chars().map(keep).collect()
}

fn show(arguments: &Arguments, scenario: &Scenario, reports: &[RunReport]) -> Result<(), Failure> {
    for report in reports {
        for warning in &report.warnings {
            tracing::warn!("seed {}: {warning}", report.result.settings.seed);
        }
    }
    let runs: Vec<_> = reports.iter().map(|report| report.result.clone()).collect();
    if arguments.json {
        let result = ScenarioResult {
            scenario: scenario.name.clone(),
            world: World::Lab,
            runs: runs.clone(),
        };
        let json = serde_json::to_string_pretty(&result).map_err(anyhow::Error::from)?;
        terminal::print(&(json + "\n"))?;
    } else {
        terminal::print_table(&table(&runs))?;
    }
    if let Some(file) = &arguments.report {
        let names = page::names(&scenario.name, &runs);
        let named: Vec<_> = names
            .iter()
            .zip(reports)
            .map(|(name, report)| page::Run::in_lab(name, report))
            .collect();
        let scenario_file = arguments.file.as_deref().unwrap_or(Path::new("FILE"));
        page::write(
            file,
            &format!("Lab: {}", scenario.name),
            &format!("outlast lab {}", scenario_file.display()),
            &named,
        )?;
        terminal::say(&format!("Report: {}", file.display()));
    }
    for file in reports.iter().flat_map(|report| &report.captures) {
        terminal::say(&format!("Capture: {}", file.display()));
    }
    Ok(())
}

/// Whether every run was sound; one that did not complete in time is.
fn judge(reports: &[RunReport]) -> Result<(), Failure> {
    let runs = || reports.iter().map(|report| &report.result);
    if runs().any(|run| run.intact == Some(false)) {
        return Err(Failure::Run(anyhow!("what arrived is not what was sent")));
    }
    match runs().find_map(|run| run.error.clone()) {
        Some(error) => Err(Failure::Run(anyhow!(error))),
        None => Ok(()),
    }
}

/// All that is known of each run, or what fits a narrow terminal.
fn table(runs: &[RunResult]) -> Table {
    const ALL_COLUMNS: usize = 112;
    if terminal::table_width().is_none_or(|width| width >= ALL_COLUMNS) {
        return results::runs(runs);
    }
    let names: Vec<String> = runs
        .iter()
        .map(|run| format!("seed {}", run.settings.seed))
        .collect();
    results::comparison(names.iter().map(String::as_str).zip(runs.chunks(1)))
}
