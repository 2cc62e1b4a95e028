//! `outlast lab FILE --kernel DIR`: the same command in a guest.

use crate::failure::Failure;
use crate::{guests, terminal};
use anyhow::{Context, anyhow};
use outlast_guest::{Ended, Job, JobFile, Limits, Outcome};
use outlast_scenario::{CommandLine, Document, Scenario, Workload};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs of one seed meet the kernel's timers at the same moment of this span.
const PHASES_NS: u64 = 1_000_000_000;
/// Guest time beyond the runs' deadlines, for each.
const BETWEEN_RUNS: Duration = Duration::from_secs(30);

/// Arguments that the guest's command gets as they are.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) file: &'a Path,
    pub(crate) json: bool,
    pub(crate) capture: Option<&'a Path>,
    pub(crate) report: Option<&'a Path>,
    pub(crate) control: bool,
    pub(crate) jobs: u32,
}

pub(crate) fn run(kernel: &Path, wanted: &Wanted<'_>, scenario: &Scenario) -> Result<(), Failure> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let state = guests::state(kernel, |image| match &scenario.workload {
        Workload::Command(commands) => {
            let image = guests::with_command(image, program(&commands.server));
            guests::with_command(image, program(&commands.client))
        }
        _ => image,
    })?;
    let program = state.init().to_string_lossy().into_owned();
    let each = scenario.run.deadline + BETWEEN_RUNS;
    let runs = scenario.run.repeat * if wanted.control { 2 } else { 1 };
    let job = Job {
        command: wanted.command(program)?,
        environment: environment(),
        directory: here.clone(),
        files: files(wanted.file, &here)?,
        collect: [wanted.capture, wanted.report]
            .into_iter()
            .flatten()
            .map(Path::to_owned)
            .collect(),
        start_after_ns: phase(scenario.run.seed),
        deadline_ns: u64::try_from((each * runs).as_nanos()).unwrap_or(u64::MAX),
    };
    let outcome = state.run(&job, &Limits::default())?;
    show(&outcome)
}

impl Wanted<'_> {
    fn command(&self, program: String) -> Result<Vec<String>, Failure> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| {
                Failure::Usage(format!(
                    "{}: a guest takes names in UTF-8 only",
                    path.display()
                ))
            })
        };
        let mut command = vec![
            program,
            "lab".to_owned(),
            text(self.file)?,
            "--in-guest".to_owned(),
        ];
        let flags = [(self.json, "--json"), (self.control, "--control")];
        command.extend(
            flags
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        for (option, path) in [("--capture", self.capture), ("--report", self.report)] {
            if let Some(path) = path {
                command.extend([option.to_owned(), text(path)?]);
            }
        }
        command.extend(["--jobs".to_owned(), self.jobs.to_string()]);
        Ok(command)
    }
}

/// The program that a command line starts, if it is named.
fn program(line: &CommandLine) -> Option<&str> {
    match line {
        // The shell knows its words only.
        CommandLine::Shell(text) => text.split_whitespace().next(),
        CommandLine::Words(words) => words.first().map(String::as_str),
    }
}

/// Variables of this process that change what the command shows.
fn environment() -> Vec<(String, String)> {
    let mut variables = vec![("NO_COLOR".to_owned(), "1".to_owned())];
    if let Some(columns) = terminal::table_width() {
        variables.push(("COLUMNS".to_owned(), columns.to_string()));
    }
    variables
}

/// The scenario's file, and those that it names.
fn files(file: &Path, here: &Path) -> Result<Vec<JobFile>, Failure> {
    let document = Document::load(file)?;
    // Reads what the file names.
    document.scenario("", &document, &[])?;
    let mut paths = document.trace_paths();
    paths.push(file.to_owned());
    let each = paths.into_iter().map(|path| {
        let data =
            fs::read(&path).with_context(|| format!("cannot read {} again", path.display()))?;
        Ok(JobFile {
            path: here.join(path),
            mode: 0o644,
            data,
        })
    });
    each.collect()
}

/// The moment at which runs of this seed begin.
fn phase(seed: u64) -> u64 {
    // The golden ratio's multiples lie far from each other.
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PHASES_NS
}

/// Shows what the guest's command printed, and writes its files.
fn show(outcome: &Outcome) -> Result<(), Failure> {
    terminal::print(&String::from_utf8_lossy(&outcome.output))?;
    let said = String::from_utf8_lossy(&outcome.errors);
    if !said.is_empty() {
        terminal::say(said.trim_end());
    }
    for file in &outcome.files {
        write(&file.path, &file.data)?;
    }
    match &outcome.ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(code) => Err(Failure::Told(u8::try_from(*code).unwrap_or(1))),
        Ended::Killed(signal) => Err(Failure::Run(anyhow!(
            "the command was killed in the guest by signal {signal}"
        ))),
        Ended::Overdue => Err(Failure::Run(anyhow!(
            "the command did not end in the guest's time"
        ))),
        Ended::NotStarted(why) => Err(Failure::Run(anyhow!(
            "the command did not start in the guest: {why}"
        ))),
    }
}

fn write(path: &PathBuf, data: &[u8]) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let written = fs::write(path, data);
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}
