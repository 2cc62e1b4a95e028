//! `outlast status`: how a running gateway is.

use crate::commands::notify::Whom;
use crate::daemon::control::{Request, ask};
use crate::daemon::status::Status;
use crate::failure::Failure;
use crate::terminal;
use anyhow::Context;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    whom: Whom,

    /// Print one JSON document (see docs/gateway.md).
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let answer = ask(&arguments.whom.control()?, Request::Status)?;
    if arguments.json {
        return terminal::print(&format!("{answer:#}\n"));
    }
    let status: Status =
        serde_json::from_value(answer).context("the daemon is of another version")?;
    terminal::print(&status.to_text())
}
