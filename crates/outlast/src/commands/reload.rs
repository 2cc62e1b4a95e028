//! `outlast reload`: makes a running gateway read its configuration again.

use crate::commands::notify::Whom;
use crate::failure::Failure;
use crate::terminal;
use anyhow::Context;
use outlast_daemon::control::{Request, ask};
use serde::Deserialize;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    whom: Whom,
}

#[derive(Debug, Deserialize)]
struct Reloaded {
    changed: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let answer = ask(&arguments.whom.control()?, Request::Reload)?;
    let Reloaded { changed, warnings } =
        serde_json::from_value(answer).context("the daemon is of another version")?;
    for warning in warnings {
        terminal::say(&format!("warning: {warning}"));
    }
    match &changed[..] {
        [] => terminal::print("Nothing has changed.\n"),
        changed => terminal::print(&format!("Changed: {}.\n", changed.join(", "))),
    }
}
