//! `outlast papers`: published figures and our own experiments, with a judgement for each claim.

use crate::failure::Failure;
use crate::labs;
use crate::markdown;
use crate::progress::RunBar;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_papers::batch;
use outlast_papers::run::{self, Order, RunError, Shown};
use outlast_papers::{ALL, Experiment, Extent, named};
use outlast_report::judgement::{self, Judged, Judgement};
use outlast_scenario::result::World;
use std::path::PathBuf;

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

#[derive(Debug, clap::Args)]
struct RunArguments {
    #[command(flatten)]
    what: ReportArguments,

    /// Exit with code 1 if a claim is not reproduced, or not measured.
    #[arg(long)]
    check: bool,

    /// Runs at once, each with a link of its own.
    #[arg(long, value_name = "N", default_value_t = batch::CAPACITY, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,

    /// Only the cells whose names contain TEXT, as in "IPv6", and every other TEXT that is given; all
    /// others stay as they are stored.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct ReportArguments {
    /// The experiment (see `outlast papers list`).
    name: String,

    /// The quick extent, of minutes: enough to see whether the claims hold (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// The full extent: the parameters that were published, for which the lab needs hours.
    #[arg(long)]
    full: bool,

    /// Write tables and claims as Markdown, too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Where runs are stored and the report is written.
    #[arg(long, value_name = "DIR", default_value = "outlast-report")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => list(),
        Action::Run(arguments) => measure(arguments),
        Action::Report(what) => {
            what.check_places()?;
            let shown = run::report(what.experiment()?, what.extent(), &what.out);
            show(what, &shown.map_err(failure)?)
        }
    }
}

impl ReportArguments {
    fn experiment(&self) -> Result<&'static Experiment, Failure> {
        named(&self.name).ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|experiment| experiment.name).collect();
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
    fn command(&self, experiment: &Experiment) -> String {
        let extent = self.what.extent().name();
        let mut command = format!("outlast papers run {} --{extent}", experiment.name);
        for only in &self.only {
            command.push_str(&format!(" --only {only:?}"));
        }
        command
    }
}

fn list() -> Result<(), Failure> {
    let width = ALL
        .iter()
        .map(|experiment| experiment.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for experiment in ALL {
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

fn measure(arguments: &RunArguments) -> Result<(), Failure> {
    let experiment = arguments.what.experiment()?;
    let extent = arguments.what.extent();
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
        command: arguments.command(experiment),
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
    show(&arguments.what, &shown)?;
    if arguments.check {
        check(&shown, !arguments.only.is_empty())
    } else {
        Ok(())
    }
}

/// A claim of which nothing was measured is not reproduced: a check that measures nothing cannot fail.
fn check(shown: &Shown, is_partial: bool) -> Result<(), Failure> {
    let claims = shown.parts.iter().flat_map(|part| &part.claims);
    let of = |wanted| move |claim: &&Judged| claim.judgement() == wanted;
    let differ = claims.clone().filter(of(Judgement::Differs)).count();
    let missing: Vec<_> = claims.clone().filter(of(Judgement::NotMeasured)).collect();
    let remedy = match is_partial {
        true => {
            "leave --only out, or have it name cells of which these claims speak as well; what is \
             measured by then is kept"
        }
        false => {
            "no run gave a value that can be judged: carry the experiment out on a machine with less \
             to do and everything that it needs, and with another --out, as what is stored is kept"
        }
    };
    match (differ, missing.first()) {
        (0, None) if claims.count() > 0 => Ok(()),
        (0, None) => Err(anyhow!("nothing was measured of which there is a claim").into()),
        (differ, None) => Err(anyhow!("{differ} claims are not reproduced").into()),
        (differ, Some(first)) => Err(anyhow!(
            "{differ} claims are not reproduced, and {} not measured, as {:?}; {remedy}",
            missing.len(),
            first.claim().statement
        )
        .into()),
    }
}

fn failure(error: RunError) -> Failure {
    if error.is_missing_capability() {
        Failure::Capability(format!("{:#}", anyhow::Error::from(error)))
    } else {
        Failure::Run(error.into())
    }
}

fn show(what: &ReportArguments, shown: &Shown) -> Result<(), Failure> {
    if let Some(file) = &what.markdown {
        std::fs::write(file, markdown::page(what.experiment()?, shown))
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
