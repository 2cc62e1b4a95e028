//! Guests that run this very program.

use crate::failure::Failure;
use crate::progress::Spinner;
use crate::terminal;
use anyhow::{Context, anyhow};
use outlast_base::time::Duration;
use outlast_guest::{Architecture, Ended, GuestError, Image, Job, Kernel, Limits, Outcome, State};
use outlast_lab::Cancel;
use outlast_scenario::{CommandLine, Scenario, Stack, Workload};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The shell that workloads of a scenario may name.
const SHELL: &str = "/bin/sh";

/// Environment variable that names this command's file for another architecture.
const FOREIGN_PROGRAM: &str = "OUTLAST_GUEST_PROGRAM";

/// The kernel in `directory`, if there is a program for guests on it.
pub(crate) fn kernel(directory: &Path) -> Result<Kernel, Failure> {
    let kernel = Kernel::open(directory)?;
    program(&kernel)?;
    Ok(kernel)
}

/// This command for `kernel`'s architecture, as a guest's init process and as what runs in it.
fn program(kernel: &Kernel) -> Result<PathBuf, Failure> {
    let architecture = kernel.architecture();
    if Architecture::HOST == Some(architecture) {
        let program = std::env::current_exe().and_then(std::fs::canonicalize);
        return Ok(program.context("cannot find this program's file")?);
    }
    let named = std::env::var_os(FOREIGN_PROGRAM).filter(|named| !named.is_empty());
    let Some(named) = named else {
        return Err(Failure::Usage(format!(
            "Linux {} is a kernel for {name}, and this program is not: set {FOREIGN_PROGRAM} to the file of an \
             `outlast` for {name}, of this version",
            kernel.release(),
            name = architecture.name()
        )));
    };
    let program = std::fs::canonicalize(&named);
    program.map_err(|error| {
        let named = named.display();
        Failure::Usage(format!("{FOREIGN_PROGRAM} is {named}: {error}"))
    })
}

/// The state of a guest with this program, and with the shell and `programs`, on `kernel`.
pub(crate) fn state(
    kernel: &Kernel,
    programs: &Programs,
    cancel: &Cancel,
) -> Result<State, Failure> {
    let image = programs.add_to(Image::new(&program(kernel)?));
    let is_cancelled = || cancel.is_cancelled();
    let limits = Limits {
        is_cancelled: Some(&is_cancelled),
        ..Limits::default()
    };
    let mut spinner = None;
    let boots = || {
        let release = kernel.release();
        spinner = Some(Spinner::told(format!(
            "Linux {release} boots once: about ten seconds"
        )));
    };
    Ok(State::of_watched(kernel, &image, &limits, boots)?)
}

/// Bounds for a guest with `job`: real time by the job's own deadline, and the user's wish for an end.
pub(crate) fn limits<'a>(job: &Job, is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Limits<'a> {
    /// Real time that a second of a busy guest takes at most, in seconds.
    const SLOWEST: u32 = 20;
    let busy = Duration::from_nanos(job.deadline_ns).saturating_mul(SLOWEST);
    Limits {
        real_time: busy.max(Limits::default().real_time),
        is_cancelled: Some(is_cancelled),
    }
}

/// Prints what a command printed in a guest, and ends as it ended.
pub(crate) fn end_as(outcome: &Outcome) -> Result<(), Failure> {
    terminal::print(&String::from_utf8_lossy(&outcome.output))?;
    let said = String::from_utf8_lossy(&outcome.errors);
    if !said.is_empty() {
        terminal::say(said.trim_end());
    }
    match &outcome.ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(code) => Err(Failure::Told(u8::try_from(*code).unwrap_or(1))),
        ended => Err(Failure::Run(not_ended(ended))),
    }
}

/// Guest time after which a job with so many runs of `scenario` has failed.
pub(crate) fn deadline_ns(scenario: &Scenario, runs: u32) -> u64 {
    /// Beyond the runs' own deadlines, for each.
    const BETWEEN_RUNS: Duration = Duration::from_secs(30);
    let all = (scenario.run.deadline + BETWEEN_RUNS) * runs;
    u64::try_from(all.as_nanos()).unwrap_or(u64::MAX)
}

/// The place of the kernel's timer wheel in its turn at which a run of this seed begins: runs of one scenario meet the
/// kernel's timers at different moments.
pub(crate) fn phase(seed: u64) -> Duration {
    let turn = u64::try_from(Stack::TIMER_TURN.as_nanos()).unwrap_or(u64::MAX);
    // The golden ratio's multiples lie far from each other.
    Duration::from_nanos(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % turn)
}

/// The scenario of run `index` in a guest. Its timer wheel stands where the seed says, unless the file says more: what
/// comes before, such as the length of a file's name, would decide otherwise.
pub(crate) fn in_phase(scenario: &Scenario, index: u32) -> Scenario {
    let mut scenario = scenario.clone();
    let seed = scenario.run.seed_of(index);
    scenario
        .stack
        .timer_phase
        .get_or_insert_with(|| phase(seed));
    scenario
}

/// The time after which a job begins, for workloads that do not look at the timer wheel themselves.
pub(crate) fn start_after_ns(scenario: &Scenario) -> u64 {
    u64::try_from(phase(scenario.run.seed).as_nanos()).unwrap_or(0)
}

/// The error for a command in a guest that did not end as it should.
pub(crate) fn not_ended(ended: &Ended) -> anyhow::Error {
    match ended {
        Ended::Exited(code) => anyhow!("the command ended in the guest with exit code {code}"),
        Ended::Killed(signal) => anyhow!("the command was killed in the guest by signal {signal}"),
        Ended::Overdue => anyhow!("the command did not end in the guest's time"),
        Ended::NotStarted(why) => anyhow!("the command did not start in the guest: {why}"),
    }
}

/// The host's programs that workloads name, beside this one.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    files: BTreeSet<PathBuf>,
}

impl Programs {
    /// Takes in what `scenario` starts: the shell, and every word of its command lines that is a program here.
    pub(crate) fn add(&mut self, scenario: &Scenario) {
        let Workload::Command(commands) = &scenario.workload else {
            return;
        };
        self.files.insert(SHELL.into());
        for line in [&commands.server, &commands.client] {
            let texts = match line {
                CommandLine::Shell(text) => std::slice::from_ref(text),
                CommandLine::Words(words) => words,
            };
            // The shell's own words are names of no programs, or of such as do the same.
            let is_other = |c: char| !c.is_alphanumeric() && !"_-+./".contains(c);
            for word in texts.iter().flat_map(|text| text.split(is_other)) {
                self.add_word(word, &scenario.directory);
            }
        }
    }

    /// Adds the program that `word` names in `directory`, if it names one.
    fn add_word(&mut self, word: &str, directory: &Path) {
        let file = match word.contains('/') {
            true if word.starts_with('/') => Some(word.into()),
            true => in_full(&directory.join(word)),
            false => std::env::var_os("PATH").and_then(|places| {
                let mut places = std::env::split_paths(&places).map(|place| place.join(word));
                places.find(|path| kind(path).is_some())
            }),
        };
        let Some((kind, file)) = file.and_then(|file| Some((kind(&file)?, file))) else {
            return;
        };
        if self.files.insert(file)
            && let Kind::Script(interpreter) = kind
        {
            for word in interpreter.split_whitespace() {
                self.add_word(word, directory);
            }
        }
    }

    fn add_to(&self, image: Image) -> Image {
        self.files
            .iter()
            .fold(image, |image, file| image.with_program(file))
    }
}

/// The path of a file from the root, without links and parents on the way.
fn in_full(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(directory.join(name))
}

/// The kinds of executable files that a guest can have.
enum Kind {
    /// A program for a processor.
    Program,
    /// A text for this program, with its arguments.
    Script(String),
}

/// The kind of the file at `path`, if it can be executed.
fn kind(path: &Path) -> Option<Kind> {
    /// The longest first line of a script.
    const LINE: u64 = 256;
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let mut head = Vec::new();
    file.take(LINE).read_to_end(&mut head).ok()?;
    // ELF, of 64 bits.
    if head.starts_with(b"\x7fELF\x02") {
        return Some(Kind::Program);
    }
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    Some(Kind::Script(String::from_utf8_lossy(line).into_owned()))
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Self {
        match error {
            GuestError::Kernel { .. } | GuestError::Package(_) => Self::Usage(error.to_string()),
            error @ (GuestError::Home { .. }
            | GuestError::Homeless
            | GuestError::Unpackable { .. }) => {
                Self::Usage(format!("{:#}", anyhow::Error::from(error)))
            }
            error if error.is_missing_capability() => Self::Shown(error.to_string()),
            error => Self::Run(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    fn file(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, text).expect("ours");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
        path.canonicalize().expect("it is there")
    }

    fn programs(directory: &Path, server: &str, client: &str) -> BTreeSet<PathBuf> {
        let text = format!(
            "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"command\"\nready = 80\n\
             server = {server}\nclient = {client}\n"
        );
        let scenario = Scenario::parse(&text, "test.toml", directory).expect("a sound scenario");
        let mut programs = Programs::default();
        programs.add(&scenario);
        programs.files
    }

    #[test]
    fn every_word_that_is_a_program_is_taken_along() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (here, below) = (place.path(), place.path().join("below"));
        fs::create_dir(&below).expect("ours");
        let script = file(here, "serve", "#!/bin/sh -e\nexit\n", 0o755);
        file(here, "sent", "#!/bin/sh\n", 0o644);
        file(here, "notes", "no program\n", 0o755);
        let found = programs(
            &below,
            r#""test -e ../sent && exec ../serve --at=$OUTLAST_FIXED:80""#,
            r#"["sh", "-c", "cat ../notes|head no-such-program"]"#,
        );
        let names = |name: &str| {
            let mut files = found.iter();
            files.any(|file| file.file_name().is_some_and(|found| found == name))
        };
        assert!(found.contains(&script), "{found:?}");
        assert!(found.contains(Path::new(SHELL)), "{found:?}");
        assert!(names("cat") && names("head"), "{found:?}");
        assert!(
            !names("sent") && !names("notes") && !names("no-such-program"),
            "{found:?}"
        );
        assert!(found.iter().all(|file| file.is_absolute()));
    }

    #[test]
    fn repetitions_begin_at_phases_over_the_whole_span() {
        let mut phases: Vec<Duration> = (1..=64).map(phase).collect();
        phases.sort_unstable();
        let gaps = phases.windows(2).map(|pair| pair[1] - pair[0]);
        let widest = gaps.max().expect("many");
        assert!(widest < Stack::TIMER_TURN / 8, "{widest:?}");
    }
}
