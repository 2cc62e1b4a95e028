//! `outlast completions SHELL`: the completion script of a shell, on standard output.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::terminal;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The shell, as in `outlast completions bash > /etc/bash_completion.d/outlast`.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    terminal::print(&script(arguments.shell))
}

/// The value that stands for every interface of the machine until the script is made.
const INTERFACES: &str = "OUTLAST-INTERFACES";

/// The script, which offers interfaces as they are when it is asked.
fn script(shell: Shell) -> String {
    let mut command = hinted(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "outlast", &mut script);
    let script = String::from_utf8_lossy(&script);
    let (placeholder, list) = match shell {
        // Between double quotes, in which a command is replaced by what it prints.
        Shell::Bash => (
            INTERFACES.to_owned(),
            "$(command ls /sys/class/net 2>/dev/null)",
        ),
        Shell::Zsh => (format!("({INTERFACES})"), "_net_interfaces"),
        Shell::Fish => (format!("{INTERFACES}\\t''"), "(__fish_print_interfaces)"),
        // They offer no values.
        _ => (INTERFACES.to_owned(), ""),
    };
    script.replace(&placeholder, list)
}

/// The command with what a shell should know of its values beyond what the parser says.
fn hinted(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let hint = hint(&argument);
        match argument.get_id().as_str() {
            _ if !argument.get_action().takes_values() => argument,
            "interface" => argument.value_parser(PossibleValuesParser::new([INTERFACES])),
            _ => argument.value_hint(hint),
        }
    });
    command.mut_subcommands(hinted)
}

/// What kind of value `argument` takes. Without a hint, shells offer files.
fn hint(argument: &Arg) -> ValueHint {
    let names = argument.get_value_names().unwrap_or_default();
    let is_named = |name: &str| names.iter().any(|value| value == name);
    match argument.get_value_hint() {
        ValueHint::AnyPath if is_named("DIR") => ValueHint::DirPath,
        ValueHint::Unknown => ValueHint::Other,
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_keeps_the_placeholder() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish] {
            assert!(!script(shell).contains(INTERFACES), "{shell}");
        }
    }
}
