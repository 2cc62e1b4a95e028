//! `outlast lab shell`: a shell, or a command, inside a host of a running lab.

use crate::failure::Failure;
use anyhow::{Context, anyhow};
use outlast_lab::Side;
use outlast_lab::registry::{self, RunningLab};
use std::ffi::OsString;
use std::process;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario's name; needed only if several labs run.
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,

    /// The host.
    #[arg(long, value_enum, default_value_t = HostName::Mobile)]
    host: HostName,

    /// Command to run instead of $SHELL, as in `outlast lab shell -- ip address`.
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum HostName {
    /// Behind the disconnecting link.
    Mobile,
    /// The one that does not move.
    Fixed,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let running = registry::running().map_err(anyhow::Error::from)?;
    let lab = choose(&running, arguments.lab.as_deref())?;
    let side = match arguments.host {
        HostName::Mobile => Side::Mobile,
        HostName::Fixed => Side::Fixed,
    };
    let shell = || vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
    let words = Some(arguments.command.clone()).filter(|words| !words.is_empty());
    let words = words.unwrap_or_else(shell);
    let (program, rest) = words.split_first().expect("a shell is at least one word");
    let mut command = lab.command(side, program).map_err(anyhow::Error::from)?;
    let status = command
        .args(rest)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if status.success() {
        return Ok(());
    }
    match status.code() {
        // As a shell does it: the command's exit code is ours.
        Some(code) => process::exit(code),
        None => Err(anyhow!("{} was killed ({status})", program.display()).into()),
    }
}

fn choose<'a>(running: &'a [RunningLab], name: Option<&str>) -> Result<&'a RunningLab, Failure> {
    let fitting: Vec<_> = running
        .iter()
        .filter(|lab| name.is_none_or(|name| lab.scenario() == name))
        .collect();
    match (&fitting[..], name) {
        ([lab], _) => Ok(lab),
        ([], _) if running.is_empty() => {
            let message =
                "no lab is running: start one with `outlast lab FILE` in another terminal";
            Err(Failure::Usage(message.to_owned()))
        }
        ([], name) => Err(Failure::Usage(format!(
            "no lab named {:?} is running; there is {}",
            name.unwrap_or_default(),
            names(running.iter()),
        ))),
        // Runs of one scenario at once are alike: the oldest will do.
        ([oldest, ..], Some(_)) => Ok(oldest),
        ([..], None) => Err(Failure::Usage(format!(
            "several labs are running, name one with --lab: {}",
            names(fitting.iter().copied()),
        ))),
    }
}

fn names<'a>(labs: impl Iterator<Item = &'a RunningLab>) -> String {
    let names: Vec<_> = labs
        .map(|lab| {
            format!(
                "{:?} (process {}, {} s old)",
                lab.scenario(),
                lab.pid(),
                lab.age().as_secs()
            )
        })
        .collect();
    names.join(", ")
}
