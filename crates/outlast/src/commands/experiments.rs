//! `list`, `run` and `report` of experiments, for `outlast papers` and `outlast trials` alike.

mod check;

use self::check::JudgementArguments;
use crate::failure::Failure;
use crate::labs;
use crate::markdown;
use crate::progress::RunBar;
use crate::terminal;
use anyhow::Context;
use outlast_experiments::batch;
use outlast_experiments::experiment::{Experiment, Extent, named};
use outlast_experiments::recorded::Recorded;
use outlast_experiments::run::{self, Order, RunError, Shown};
use outlast_report::judgement;
use outlast_scenario::result::World;
use std::path::PathBuf;

/// The experiments of one subcommand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shelf {
    /// The subcommand.
    pub(crate) command: &'static str,
    /// The experiments that the subcommand lists.
    pub(crate) experiments: &'static [&'static Experiment],
    /// The recorded judgements of an experiment in an extent; `None` if nothing is recorded on this shelf.
    pub(crate) recorded: Option<fn(&str, Extent) -> Option<Recorded>>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    what: ReportArguments,

    /// Runs at once, each with a link of its own.
    #[arg(long, value_name = "N", default_value_t = batch::CAPACITY, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,

    /// Only the cells whose names contain TEXT, as in "IPv6", and every other TEXT that is given; all
    /// others stay as they are stored.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {
    /// The experiment's name, as `list` shows it.
    name: String,

    /// The quick extent, of minutes: enough to see whether the claims hold (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// The full extent: all cells and repetitions, of published works as published. The lab may need hours.
    #[arg(long)]
    full: bool,

    /// Write tables and claims as Markdown, too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Where runs are stored and the report is written.
    #[arg(long, value_name = "DIR", default_value = "outlast-report")]
    out: PathBuf,

    #[command(flatten)]
    judgements: JudgementArguments,
}

/// Writes the report of what is stored.
pub(crate) fn report(shelves: &[Shelf], what: &ReportArguments) -> Result<(), Failure> {
    what.check_places()?;
    let (shelf, experiment) = what.experiment(shelves)?;
    what.judgements
        .refuse_impossible(shelf, experiment, what.extent())?;
    let shown = run::report(experiment, what.extent(), &what.out).map_err(failure)?;
    show(what, experiment, &shown)?;
    what.judgements.apply(shelf, experiment, &shown, false)
}

impl ReportArguments {
    /// The experiment of that name, and the shelf that has it.
    fn experiment<'a>(
        &self,
        shelves: &'a [Shelf],
    ) -> Result<(&'a Shelf, &'static Experiment), Failure> {
        let found = shelves
            .iter()
            .find_map(|shelf| Some((shelf, named(shelf.experiments, &self.name)?)));
        found.ok_or_else(|| {
            let all = shelves.iter().flat_map(|shelf| shelf.experiments);
            let names: Vec<_> = all.map(|experiment| experiment.name).collect();
            let names = names.join(", ");
            Failure::Usage(format!(
                "there is no experiment {:?}; there is {names}",
                self.name
            ))
        })
    }

    /// Nothing is measured that could not be kept.
    fn check_places(&self) -> Result<(), Failure> {
        labs::make_directory(&self.out, "--out")?;
        match &self.markdown {
            Some(file) => labs::check_writable(file, "--markdown"),
            None => Ok(()),
        }
    }

    fn extent(&self) -> Extent {
        if self.full {
            Extent::Full
        } else {
            Extent::Quick
        }
    }
}

impl RunArguments {
    /// The command that repeats it.
    fn command(&self, subcommand: &str, experiment: &Experiment) -> String {
        let extent = self.what.extent().name();
        let name = experiment.name;
        let mut command = format!("outlast {subcommand} run {name} --{extent}");
        for only in &self.only {
            command.push_str(&format!(" --only {only:?}"));
        }
        command
    }
}

/// Prints each experiment with its figures.
pub(crate) fn list(experiments: &[&Experiment]) -> Result<(), Failure> {
    let width = experiments
        .iter()
        .map(|experiment| experiment.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for experiment in experiments {
        let Experiment {
            name,
            title,
            source,
            measures,
            ..
        } = experiment;
        let indent = " ".repeat(width + 2);
        text.push_str(&format!(
            "{name:width$}  {title}\n{indent}{measures}\n{indent}{source}\n"
        ));
        for figure in experiment.figures {
            text.push_str(&format!(
                "{indent}- {}: {}\n",
                figure.name(),
                figure.title()
            ));
        }
        text.push('\n');
    }
    terminal::print(text.trim_end())?;
    terminal::print("\n")?;
    Ok(())
}

/// Carries an experiment out, and writes its report.
pub(crate) fn measure(shelves: &[Shelf], arguments: &RunArguments) -> Result<(), Failure> {
    let (shelf, experiment) = arguments.what.experiment(shelves)?;
    let judgements = &arguments.what.judgements;
    let extent = arguments.what.extent();
    judgements.refuse_impossible(shelf, experiment, extent)?;
    arguments.what.check_places()?;
    let jobs = experiment.jobs(extent);
    let (cancel, _termination) = if jobs.iter().any(|job| job.world != World::Sim) {
        labs::prepare()?
    } else {
        labs::interruptible()?
    };
    let order = Order {
        extent,
        directory: arguments.what.out.clone(),
        capacity: arguments.jobs,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command: arguments.command(shelf.command, experiment),
        only: arguments.only.clone(),
    };
    if !jobs.iter().any(|job| order.is_wanted(&job.cell)) {
        let only = arguments.only.join(" --only ");
        let example = jobs.first().map_or("", |job| &job.cell);
        return Err(Failure::Usage(format!(
            "--only {only}: no cell has that in its name; they are called like {example:?}"
        )));
    }
    let mut bar = RunBar::new();
    let outcome = run::run(experiment, &order, &cancel, |progress| {
        update(&mut bar, progress);
    });
    bar.clear();
    let shown = outcome.map_err(failure)?;
    show(&arguments.what, experiment, &shown)?;
    judgements.apply(shelf, experiment, &shown, !arguments.only.is_empty())
}

fn failure(error: RunError) -> Failure {
    if error.is_missing_capability() {
        Failure::Capability(format!("{:#}", anyhow::Error::from(error)))
    } else {
        Failure::Run(error.into())
    }
}

fn show(what: &ReportArguments, experiment: &Experiment, shown: &Shown) -> Result<(), Failure> {
    if let Some(file) = &what.markdown {
        std::fs::write(file, markdown::page(experiment, shown))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    for part in &shown.parts {
        for table in &part.tables {
            terminal::print_table(table)?;
            terminal::print("\n")?;
        }
        if !part.listed.is_empty() {
            terminal::print_table(&judgement::table(&part.listed))?;
            terminal::print("\n")?;
        }
    }
    let page = std::path::absolute(&shown.page)?;
    terminal::print(&format!("Report: {}\n", page.display()))?;
    Ok(())
}

fn update(bar: &mut RunBar, progress: &batch::Progress) {
    let repeated = match progress.repeated {
        0 => String::new(),
        n => format!(" {n} repeated,"),
    };
    let notes = format!("{} running,{repeated} ", progress.running);
    let (done, total) = (progress.done as u64, progress.total as u64);
    bar.update(done, total, &notes, Some(progress.left));
}
