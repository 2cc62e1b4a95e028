//! Reasons why a guest does not run.

use std::io;
use std::path::{Path, PathBuf};

/// Error of a guest that could not be made, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The directory is no unpacked kernel.
    #[error(
        "{directory}: {problem}; `outlast kernels get 6.12 DIR` unpacks a kernel into a new directory"
    )]
    Kernel {
        /// The directory.
        directory: PathBuf,
        /// The part that is missing.
        problem: String,
    },
    /// A program of the host's is missing.
    #[error("{program} is not installed: on Debian, `apt-get install {package}`")]
    Program {
        /// The program.
        program: String,
        /// The package that has it.
        package: &'static str,
    },
    /// The distribution's packages cannot be had.
    #[error("{0}")]
    Package(String),
    /// A file of the host's cannot be used.
    #[error("cannot {action} {path}")]
    File {
        /// The refused action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A program or library for the guest cannot be read.
    #[error("{program} cannot be taken into a guest: {problem}")]
    Unpackable {
        /// The program.
        program: PathBuf,
        /// The fault that was found in it.
        problem: String,
    },
    /// The emulator refuses something.
    #[error("the emulator says: {0}")]
    Emulator(String),
    /// The guest ended before its job, or said nothing for too long.
    #[error("the guest {what}; {}", shown(console))]
    Lost {
        /// Its fate, as a verb.
        what: &'static str,
        /// The end of what it wrote to its console.
        console: String,
    },
    /// Nothing says where states are to be kept.
    #[error("there is no place for saved guests: set OUTLAST_GUESTS to a directory")]
    Homeless,
    /// The directory of saved states has no room for another one.
    #[error(
        "{directory} has room for {free_mib} MiB, and the state of a guest takes up to {needed_mib}: make room, or \
         set OUTLAST_GUESTS to another directory"
    )]
    Full {
        /// The directory.
        directory: PathBuf,
        /// Room that is left.
        free_mib: u64,
        /// Room that a state needs.
        needed_mib: u64,
    },
    /// States cannot be kept in the directory that is for them.
    #[error(
        "guests cannot be kept in {directory}; set OUTLAST_GUESTS to a directory that can be written to"
    )]
    Home {
        /// The directory.
        directory: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The caller has asked for an end, see [`Limits::is_cancelled`](crate::Limits::is_cancelled).
    #[error("cancelled")]
    Cancelled,
    /// The job does not fit into the mailbox, or is no job.
    #[error("the job cannot be handed over: {0}")]
    Job(String),
}

/// The end of a console, in words.
fn shown(console: &str) -> String {
    match console {
        "" => "its console is empty".to_owned(),
        console => format!("its console ends with:\n{console}"),
    }
}

impl GuestError {
    /// True if this machine lacks something that would make it work.
    #[must_use]
    pub fn is_missing_capability(&self) -> bool {
        matches!(self, Self::Program { .. })
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}
