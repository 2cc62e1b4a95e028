//! `outlast lab FILE`: a scenario on this machine's kernel TCP.

use crate::commands::{lab_in_guest, lab_shell};
use crate::failure::Failure;
use crate::guests;
use crate::inputs::Input;
use crate::labs;
use crate::page;
use crate::progress::Display;
use crate::shown::{self, Wish};
use crate::terminal;
use anyhow::Context;
use outlast_lab::{Lab, LabError, RunReport};
use outlast_scenario::Scenario;
use outlast_scenario::result::World;
use std::fs;
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

    /// Run the same without Outlast, too, at the same time, and show both side by side.
    #[arg(long)]
    control: bool,

    /// Runs at once, each with its control. More than one is faster, and less precise on a busy machine.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,

    /// Run on this unpacked kernel, in an emulated machine and in virtual time (see `outlast kernels`).
    #[arg(long, value_name = "DIR")]
    kernel: Option<PathBuf>,

    /// This is the emulated machine, with the kernel that the host has in this directory.
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "kernel")]
    in_guest: Option<PathBuf>,

    /// Relative paths in the file count from here.
    #[arg(long, value_name = "DIR", hide = true)]
    relative_to: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Inside {
    /// Open a shell, or run a command, in a host of a running lab.
    Shell(lab_shell::Arguments),
}

impl Arguments {
    fn world(&self) -> World {
        if self.in_guest.is_some() {
            World::Kernel
        } else {
            World::Lab
        }
    }

    fn display(&self, lanes: &[&str]) -> Display {
        if self.in_guest.is_some() {
            Display::silent()
        } else {
            Display::new(lanes)
        }
    }

    fn input<'a>(&'a self, file: &'a Path) -> Input<'a> {
        Input {
            file,
            directory: self.relative_to.as_ref(),
        }
    }

    /// Arguments of `outlast lab` in a guest that runs the kernel in the directory `kernel`.
    fn of_guest<'a>(&'a self, file: &'a Path, kernel: &'a Path) -> lab_in_guest::Wanted<'a> {
        lab_in_guest::Wanted {
            input: self.input(file),
            kernel,
            json: self.json,
            capture: self.capture.as_deref(),
            report: self.report.as_deref(),
            control: self.control,
            jobs: self.jobs,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Inside::Shell(arguments)) = &arguments.inside {
        return lab_shell::run(arguments);
    }
    let file = arguments.file.as_ref().expect("clap demands the file");
    let scenario = arguments.input(file).scenario()?;
    check(arguments, file, &scenario)?;
    if let Some(kernel) = &arguments.kernel {
        return lab_in_guest::run(&arguments.of_guest(file, kernel), &scenario);
    }
    let wish = Wish {
        scenario: &scenario,
        file,
        world: arguments.world(),
        kernel: arguments.in_guest.as_deref(),
        control: arguments.control,
        json: arguments.json,
        report: arguments.report.as_deref(),
    };
    let control = arguments.control.then(|| scenario.without_outlast());
    let kinds: Vec<_> = std::iter::once((&scenario, false))
        .chain(control.as_ref().map(|control| (control, true)))
        .collect();
    let (cancel, _termination) = labs::prepare()?;
    let mut reports = Vec::new();
    let all: Vec<u32> = (0..scenario.run.repeat).collect();
    for indices in all.chunks(arguments.jobs as usize) {
        let each = indices.iter().flat_map(|&index| {
            let kinds = kinds.iter();
            kinds.map(move |&(scenario, is_control)| (index, scenario, is_control))
        });
        let labs = each
            .clone()
            .map(|(index, scenario, is_control)| prepare(arguments, scenario, index, is_control))
            .collect::<Result<Vec<_>, _>>()
            .map_err(anyhow::Error::from)?;
        let lanes = each.clone().map(|(index, _, is_control)| {
            let control = if is_control { " control" } else { "" };
            format!("run {}{control}", index + 1)
        });
        let lanes: Vec<String> = lanes.collect();
        let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
        let display = arguments.display(&lanes);
        let outcome = labs::run_at_once(&labs, &cancel, &display);
        display.clear();
        let named = each.zip(outcome.reports);
        reports.extend(named.filter_map(|((index, _, is_control), report)| {
            let mut report = report?;
            report.result.settings.world = wish.world;
            Some((wish.name(index, is_control), is_control, report))
        }));
        if let Some(failure) = outcome.failure {
            return Err(given_up(&wish, &reports, failure)?);
        }
    }
    show(&wish, &reports)?;
    shown::judge(&named(&reports))
}

/// Refuses what cannot be carried out, before anything is.
fn check(arguments: &Arguments, file: &Path, scenario: &Scenario) -> Result<(), Failure> {
    Lab::new(scenario, 0)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    if arguments.control {
        shown::check_control(file, scenario)?;
    }
    if arguments.in_guest.is_some() {
        // A guest has no other directories of its host than those of the scenario's files.
        let report = arguments.report.as_deref().and_then(Path::parent);
        for directory in arguments.capture.as_deref().into_iter().chain(report) {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
    }
    if let Some(directory) = &arguments.capture {
        labs::make_directory(directory, "--capture")?;
    }
    if let Some(report) = &arguments.report {
        labs::check_writable(report, "--report")?;
    }
    Ok(())
}

/// A run's name, whether it is a control, and what came of it.
type Named = (String, bool, RunReport);

/// Shows what has been measured before something went wrong, and says how much that is.
fn given_up(wish: &Wish<'_>, reports: &[Named], failure: Failure) -> Result<Failure, Failure> {
    if reports.is_empty() {
        return Ok(failure);
    }
    show(wish, reports)?;
    Ok(match failure {
        Failure::Run(error) => {
            let kinds = if wish.control { 2 } else { 1 };
            let (done, all) = (reports.len(), wish.scenario.run.repeat * kinds);
            Failure::Run(error.context(format!("only {done} of {all} runs were made")))
        }
        other => other,
    })
}

fn prepare(
    arguments: &Arguments,
    scenario: &Scenario,
    index: u32,
    is_control: bool,
) -> Result<Lab, LabError> {
    let mut lab = match arguments.in_guest {
        Some(_) => Lab::new(&guests::in_phase(scenario, index), index)?,
        None => Lab::new(scenario, index)?,
    };
    if let Some(directory) = &arguments.capture {
        lab = lab.with_capture(directory, &stem_of_run(scenario, index, is_control));
    }
    if arguments.report.is_some() {
        lab = lab.with_trace(Lab::TRACED_PACKETS);
    }
    Ok(lab)
}

/// What the files of a run begin with.
pub(crate) fn stem_of_run(scenario: &Scenario, index: u32, is_control: bool) -> String {
    let control = if is_control { "-control" } else { "" };
    format!("{}-{}{control}", stem(scenario), index + 1)
}

/// The scenario's name as a file name.
fn stem(scenario: &Scenario) -> String {
    let keep = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    scenario.name.chars().map(keep).collect()
}

fn named(reports: &[Named]) -> Vec<page::Run<'_>> {
    let mut runs = Vec::with_capacity(reports.len());
    for (name, is_control, report) in reports {
        let run = page::Run::in_lab(name, report);
        runs.push(if *is_control { run.into_control() } else { run });
    }
    runs
}

fn show(wish: &Wish<'_>, reports: &[Named]) -> Result<(), Failure> {
    for (name, _, report) in reports {
        for warning in &report.warnings {
            tracing::warn!("{name}: {warning}");
        }
    }
    wish.show(&named(reports))?;
    for file in reports.iter().flat_map(|(_, _, report)| &report.captures) {
        terminal::say(&format!("Capture: {}", file.display()));
    }
    Ok(())
}
