//! `outlast lab FILE --kernel DIR`: the same command in a guest.

use crate::failure::Failure;
use crate::guests::{self, Programs};
use crate::inputs::Input;
use crate::page::SOURCE_DATE;
use crate::progress::Spinner;
use crate::{labs, terminal};
use anyhow::Context;
use outlast_guest::{Job, JobFile, Outcome};
use outlast_scenario::Scenario;
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments that the guest's command gets as they are.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) input: Input<'a>,
    /// The directory of the unpacked kernel.
    pub(crate) kernel: &'a Path,
    pub(crate) json: bool,
    pub(crate) capture: Option<&'a Path>,
    pub(crate) report: Option<&'a Path>,
    pub(crate) control: bool,
    pub(crate) jobs: u32,
}

pub(crate) fn run(wanted: &Wanted<'_>, scenario: &Scenario) -> Result<(), Failure> {
    let kernel = guests::kernel(wanted.kernel)?;
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let (cancel, _termination) = labs::interruptible()?;
    let mut programs = Programs::default();
    programs.add(scenario);
    let state = guests::state(&kernel, &programs, &cancel)?;
    let program = state.init().to_string_lossy().into_owned();
    let runs = scenario.run.repeat * if wanted.control { 2 } else { 1 };
    let job = Job {
        command: wanted.command(program)?,
        environment: environment(wanted.report.is_some()),
        directory: here.clone(),
        files: files(wanted.input, &here)?,
        collect: [wanted.capture, wanted.report]
            .into_iter()
            .flatten()
            .map(Path::to_owned)
            .collect(),
        start_after_ns: guests::start_after_ns(scenario),
        deadline_ns: guests::deadline_ns(scenario, runs),
    };
    let is_cancelled = || cancel.is_cancelled();
    let limits = guests::limits(&job, &is_cancelled);
    let spinner = Spinner::new(format!("Linux {}, in virtual time", kernel.release()));
    let outcome = state.run(&job, &limits);
    drop(spinner);
    show(&outcome?)
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
            text(self.input.file)?,
            "--in-guest".to_owned(),
            text(self.kernel)?,
        ];
        let flags = [(self.json, "--json"), (self.control, "--control")];
        command.extend(
            flags
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        for (option, path) in [
            ("--capture", self.capture),
            ("--report", self.report),
            ("--relative-to", self.input.directory.map(PathBuf::as_path)),
        ] {
            if let Some(path) = path {
                command.extend([option.to_owned(), text(path)?]);
            }
        }
        command.extend(["--jobs".to_owned(), self.jobs.to_string()]);
        Ok(command)
    }
}

/// Variables of this process that change what the command shows.
fn environment(has_page: bool) -> Vec<(String, String)> {
    let mut variables = vec![("NO_COLOR".to_owned(), "1".to_owned())];
    if let Some(columns) = terminal::table_width() {
        variables.push(("COLUMNS".to_owned(), columns.to_string()));
    }
    if has_page {
        // The guest's own date is a constant.
        let now = jiff::Timestamp::now().as_second();
        variables.push((SOURCE_DATE.to_owned(), now.to_string()));
    }
    variables
}

/// The scenario's file, and those that it names.
fn files(input: Input<'_>, here: &Path) -> Result<Vec<JobFile>, Failure> {
    let document = input.document()?;
    // Reads what the file names.
    document.scenario("", &document, &[])?;
    let mut paths = document.trace_paths();
    paths.push(input.file.to_owned());
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

/// Shows what the guest's command printed, and writes its files.
fn show(outcome: &Outcome) -> Result<(), Failure> {
    for file in &outcome.files {
        write(&file.path, &file.data)?;
    }
    guests::end_as(outcome)
}

fn write(path: &PathBuf, data: &[u8]) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let written = fs::write(path, data);
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}
