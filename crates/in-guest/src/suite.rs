//! The tests of an executable, each carried out in a guest of its own.

use crate::arguments::Arguments;
use crate::contents;
use crate::report::{Report, Verdict};
use anyhow::{Context, ensure};
use outlast_guest::{Ended, GuestError, Job, Kernel, Limits, Outcome, State};
use outlast_linux::clock;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Guest time that a test may take.
const LONGEST: Duration = Duration::from_secs(600);
/// Real time that a test may take, while other guests may want the same processor.
const PATIENCE: Duration = Duration::from_secs(1_200);
/// Variables that tests get from outside, by the beginnings of their names.
const PASSED_ON: [&str; 6] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_PKG_",
    "CI",
    "OUTLAST_",
    "PROPTEST_",
    "RUST_",
];

/// A test executable and the tests of it that are to run.
#[derive(Debug)]
pub(crate) struct Suite {
    program: PathBuf,
    /// Those that guests carry out.
    tests: Vec<String>,
    /// Those that this machine's kernel carries out.
    here: Vec<String>,
    ignored: BTreeSet<String>,
}

impl Suite {
    /// Asks `program` for its tests. Those in the modules `costly` are not for guests.
    pub(crate) fn new(
        program: &Path,
        arguments: &Arguments,
        costly: &[&str],
    ) -> anyhow::Result<Self> {
        let list = |further: &[&str]| -> anyhow::Result<Vec<String>> {
            let output = Command::new(program)
                .args(&arguments.choice)
                .args(further)
                .args(["--list", "--format", "terse"])
                .output()
                .with_context(|| format!("cannot start {}", program.display()))?;
            let complaint = String::from_utf8_lossy(&output.stderr);
            ensure!(
                output.status.success(),
                "{}: {complaint}",
                program.display()
            );
            let said = String::from_utf8(output.stdout).context("tests have names in UTF-8")?;
            let tests = said.lines().filter_map(|line| line.strip_suffix(": test"));
            Ok(tests.map(str::to_owned).collect())
        };
        let ignored = match arguments.wants_ignored {
            true => Vec::new(),
            false => list(&["--ignored"])?,
        };
        let is_costly = |test: &String| {
            costly.iter().any(|module| {
                let rest = test.strip_prefix(module);
                rest.is_some_and(|rest| rest.starts_with("::"))
            })
        };
        let (here, tests) = list(&[])?.into_iter().partition(is_costly);
        Ok(Self {
            program: program.to_owned(),
            tests,
            here,
            ignored: ignored.into_iter().collect(),
        })
    }

    /// Runs the tests that are not for guests; true if all have passed.
    pub(crate) fn run_here(&self, arguments: &Arguments) -> anyhow::Result<bool> {
        if self.here.is_empty() {
            return Ok(true);
        }
        let ignored = arguments.choice.iter();
        let ignored =
            ignored.filter(|option| option.starts_with("--") && option.ends_with("ignored"));
        let mut command = Command::new(&self.program);
        command.arg("--exact").args(ignored).args(&self.here);
        if arguments.shows_output {
            command.arg("--nocapture");
        }
        let done = command.status();
        let done = done.with_context(|| format!("cannot start {}", self.program.display()))?;
        Ok(done.success())
    }

    /// Runs the other tests in guests with `kernel`; true if all have passed.
    pub(crate) fn run_in_guests(
        &self,
        kernel: &Kernel,
        arguments: &Arguments,
    ) -> anyhow::Result<bool> {
        let report = Mutex::new(Report::begin(
            kernel,
            self.tests.len(),
            arguments.shows_output,
        ));
        let report = || report.lock().unwrap_or_else(PoisonError::into_inner);
        let (ignored, wanted): (Vec<_>, Vec<_>) = self
            .tests
            .iter()
            .partition(|test| self.ignored.contains(*test));
        for test in ignored {
            report().ignored(test);
        }
        if !wanted.is_empty() {
            let begun = clock::now();
            let state = contents::state(kernel, &self.program)?;
            report().ready(clock::now().since(begun));
            let processors = thread::available_parallelism().map_or(1, usize::from);
            let guests = arguments.guests.unwrap_or(processors).clamp(1, processors);
            let next = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..guests {
                    scope.spawn(|| {
                        while let Some(test) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let verdict = self.carry_out(test, &state);
                            report().ended(test, verdict);
                        }
                    });
                }
            });
        }
        Ok(report().end())
    }

    /// Runs one test in a guest.
    fn carry_out(&self, test: &str, state: &State) -> Verdict {
        let begun = clock::now();
        let limits = Limits {
            real_time: PATIENCE,
            ..Limits::default()
        };
        let outcome = self.job(test).and_then(|job| Ok(state.run(&job, &limits)?));
        let real = clock::now().since(begun);
        match outcome {
            Ok(outcome) => Verdict {
                has_passed: outcome.ended == Ended::Exited(0),
                guest: Some(Duration::from_nanos(outcome.elapsed_ns)),
                real,
                output: said(&outcome),
            },
            Err(error) => Verdict {
                has_passed: false,
                guest: None,
                real,
                output: lost(&error),
            },
        }
    }

    fn job(&self, test: &str) -> anyhow::Result<Job> {
        let program = self.program.to_str().context("the path is not UTF-8")?;
        let command = [program, test, "--exact", "--nocapture", "--include-ignored"];
        let here = std::env::current_dir().context("cannot tell the current directory")?;
        Ok(Job {
            command: command.map(str::to_owned).into(),
            environment: environment(),
            directory: here,
            deadline_ns: u64::try_from(LONGEST.as_nanos())?,
            ..Job::default()
        })
    }
}

fn environment() -> Vec<(String, String)> {
    let is_passed_on = |name: &str| {
        let mut names = PASSED_ON.iter();
        names.any(|beginning| name.starts_with(beginning)) && name != crate::KERNEL
    };
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        is_passed_on(&name).then_some((name, value))
    });
    let mut variables: Vec<_> = variables.collect();
    // Snapshots lie where they lie outside; nothing that is written in a guest is kept.
    let repository = contents::repository().to_string_lossy().into_owned();
    variables.push(("INSTA_WORKSPACE_ROOT".to_owned(), repository));
    variables.push(("INSTA_UPDATE".to_owned(), "no".to_owned()));
    variables.sort();
    variables
}

/// Everything that a test wrote, and how it ended if it did so by itself.
fn said(outcome: &Outcome) -> String {
    let mut text = String::from_utf8_lossy(&outcome.output).into_owned();
    text.push_str(&String::from_utf8_lossy(&outcome.errors));
    match &outcome.ended {
        Ended::Exited(_) => {}
        Ended::Killed(signal) => text.push_str(&format!("\nkilled by signal {signal}\n")),
        Ended::Overdue => text.push_str(&format!("\nnot over after {LONGEST:?}\n")),
        Ended::NotStarted(why) => text.push_str(&format!("\nnot started: {why}\n")),
    }
    text
}

fn lost(error: &anyhow::Error) -> String {
    match error.downcast_ref::<GuestError>() {
        Some(lost @ GuestError::Lost { .. }) => format!("{lost}\n"),
        _ => format!("{error:#}\n"),
    }
}
