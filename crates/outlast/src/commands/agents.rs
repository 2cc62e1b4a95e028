//! `outlast agents`: what gateways that hand frozen connections to each other need.

use crate::failure::Failure;
use outlast_daemon::agents::key;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make the key that neighbours share.
    ///
    /// Writes 32 random bytes to a file that only its owner can read. Copy it to all neighbours by a
    /// safe way, and name it as `key` in `[agents]` of each one's configuration.
    Key {
        /// Where to write it; nothing may be there yet.
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Key { path } => Ok(key::make(path)?),
    }
}
