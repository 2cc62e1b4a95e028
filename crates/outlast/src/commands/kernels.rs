//! `outlast kernels`: packaged kernels for guests.

use crate::failure::Failure;
use crate::terminal;
use outlast_guest::{Architecture, packages};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the kernels in the distribution's packages: version and package.
    List,
    /// Download a packaged kernel and unpack it; nothing is installed.
    Get {
        /// A version that `list` shows, such as 6.12.
        version: String,
        /// An empty directory, or one that is not there yet.
        directory: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(architecture) = Architecture::HOST else {
        return Err(Failure::Usage(
            "guests are for amd64 and arm64 only".to_owned(),
        ));
    };
    match &arguments.action {
        Action::List => {
            for package in packages::list(architecture)? {
                terminal::print(&format!("{:<6} {}\n", package.version, package.name))?;
            }
        }
        Action::Get { version, directory } => {
            let kernel = packages::get(version, directory, architecture)?;
            terminal::say(&format!(
                "Linux {} is in {}",
                kernel.release(),
                directory.display()
            ));
        }
    }
    Ok(())
}
