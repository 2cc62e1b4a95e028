//! `outlast completions SHELL`: the completion script of a shell, on standard output.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::terminal;
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell, as in `outlast completions bash > /etc/bash_completion.d/outlast`.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "outlast", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(())
}
