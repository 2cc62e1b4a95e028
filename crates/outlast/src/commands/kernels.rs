//! `outlast kernels`: packaged kernels for guests.

use crate::failure::Failure;
use crate::guests::{self, Programs};
use crate::{labs, terminal};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outlast_guest::{Architecture, Job, packages};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the kernels in the distribution's packages: version and package.
    List {
        #[command(flatten)]
        of: Choice,
    },
    /// Download a packaged kernel and unpack it; nothing is installed.
    Get {
        /// A version that `list` shows, such as 6.12.
        version: String,
        /// An empty directory, or one that is not there yet.
        directory: PathBuf,
        #[command(flatten)]
        of: Choice,
    },
    /// Run a command of this program on an unpacked kernel, as its root: `outlast kernels run DIR doctor`.
    Run {
        /// The unpacked kernel.
        directory: PathBuf,
        /// The command and its arguments. It has no files of this machine's but programs.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// The architecture that packages are for.
#[derive(Debug, clap::Args)]
struct Choice {
    /// The kernels' architecture; this machine's unless it is named. Another one's need an `outlast` for it in
    /// OUTLAST_GUEST_PROGRAM.
    #[arg(long, value_name = "NAME", value_parser = architectures())]
    architecture: Option<Architecture>,
}

impl Choice {
    fn architecture(&self) -> Result<Architecture, Failure> {
        let architecture = self.architecture.or(Architecture::HOST);
        architecture.ok_or_else(|| {
            Failure::Usage(
                "guests are for amd64 and arm64 only: name one with --architecture".to_owned(),
            )
        })
    }
}

fn architectures() -> impl TypedValueParser<Value = Architecture> {
    PossibleValuesParser::new(Architecture::ALL.map(Architecture::name)).try_map(|name| {
        let mut all = Architecture::ALL.into_iter();
        all.find(|architecture| architecture.name() == name)
            .ok_or_else(|| format!("there are no guests for {name}"))
    })
}

/// Guest time that a command may take.
const LONGEST_NS: u64 = 3_600_000_000_000;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List { of } => {
            for package in packages::list(of.architecture()?)? {
                terminal::print(&format!("{:<6} {}\n", package.version, package.name))?;
            }
        }
        Action::Get {
            version,
            directory,
            of,
        } => {
            let kernel = packages::get(version, directory, of.architecture()?)?;
            terminal::say(&format!(
                "Linux {} is in {}",
                kernel.release(),
                directory.display()
            ));
        }
        Action::Run { directory, command } => return run_there(directory, command),
    }
    Ok(())
}

/// Runs a command of this program in a guest, and ends as it ends.
fn run_there(directory: &Path, command: &[String]) -> Result<(), Failure> {
    let kernel = guests::kernel(directory)?;
    let (cancel, _termination) = labs::interruptible()?;
    let state = guests::state(&kernel, &Programs::default(), &cancel)?;
    let mut words = vec![state.init().to_string_lossy().into_owned()];
    words.extend_from_slice(command);
    let job = Job {
        command: words,
        environment: vec![("NO_COLOR".to_owned(), "1".to_owned())],
        directory: "/root".into(),
        deadline_ns: LONGEST_NS,
        ..Job::default()
    };
    let is_cancelled = || cancel.is_cancelled();
    let outcome = state.run(&job, &guests::limits(&job, &is_cancelled))?;
    guests::end_as(&outcome)
}
