//! `outlast run`: a gateway on a real interface.

use crate::daemon;
use crate::daemon::config::{File, Given, Mechanism};
use crate::failure::Failure;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The interface that leads to the disconnecting link.
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// What to do for the connections that cross: none, smart-link-1 to smart-link-4, or hold.
    ///
    /// Without it, what the configuration file says, or else hold.
    #[arg(short, long, value_name = "NAME")]
    mechanism: Option<Mechanism>,

    /// A configuration file (see docs/gateway.md).
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where to listen for `outlast status` and `outlast notify` [default: /run/outlast/NAME.sock].
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = match &arguments.config {
        Some(path) => File::load(path)?,
        None => File::default(),
    };
    let settings = file.complete(Given {
        interface: arguments.interface.clone(),
        mechanism: arguments.mechanism,
        control: arguments.control.clone(),
    })?;
    daemon::run(&settings)
}
