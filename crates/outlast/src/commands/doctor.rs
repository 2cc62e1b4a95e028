//! `outlast doctor`: what this machine offers, found by trying, and what depends on it.

use crate::failure::Failure;
use crate::terminal;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outlast_linux::capability::{
    self, MainCommand, Probe, ProbeResult, VerifiedProgram, probe_all,
};
use outlast_linux::user_namespace;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Show what this machine offers, and what is missing for which part of Outlast.
///
/// Ends with exit code 3 if `outlast lab` or `outlast run` cannot do without something that is
/// missing, or those of them that are named. What is missing otherwise costs speed, or is needed only
/// where it is asked for by name.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The commands that count for the exit code; all of them if none is named.
    #[arg(value_name = "COMMAND", value_parser = command_parser())]
    commands: Vec<MainCommand>,

    /// Print one JSON document.
    #[arg(long)]
    json: bool,

    /// Load every eBPF program, and tell how many instructions the kernel's verifier processed for each.
    #[arg(long)]
    programs: bool,
}

fn command_parser() -> impl TypedValueParser<Value = MainCommand> {
    PossibleValuesParser::new(MainCommand::ALL.map(MainCommand::name)).try_map(|name| {
        let mut all = MainCommand::ALL.into_iter();
        all.find(|command| command.name() == name)
            .ok_or_else(|| format!("{name} is no command that needs anything"))
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let rights = capability::of_this_process();
    // Without namespaces the other probes cannot be made; the first ones then say why.
    if let Err(error) = user_namespace::enter() {
        tracing::debug!(%error, "no namespaces");
    }
    let mut probes = probe_all();
    probes.push(rights);
    let programs = match arguments.programs {
        true => capability::verified_programs(),
        false => Vec::new(),
    };
    let text = if arguments.json {
        as_json(&probes, &programs)
    } else {
        as_text(&probes) + &of_programs(&programs)
    };
    terminal::print(&text)?;
    let counts = |command: &MainCommand| {
        arguments.commands.is_empty() || arguments.commands.contains(command)
    };
    let all = MainCommand::ALL.into_iter().filter(counts);
    let lacking: Vec<_> = all
        .filter_map(|command| lack_of(command, &probes))
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(Failure::Shown(lacking.join("; "))),
    }
}

/// What `command` cannot do without and lacks; `None` if it has everything.
fn lack_of(command: MainCommand, probes: &[Probe]) -> Option<String> {
    let missing = probes
        .iter()
        .filter(|probe| probe.required_by.contains(&command) && !probe.result.is_available());
    let names: Vec<_> = missing.map(|probe| probe.name).collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("`outlast {}` cannot run without: {names}", command.name()))
}

/// Shows the programs and their instructions, if there are any.
fn of_programs(programs: &[VerifiedProgram]) -> String {
    let mut text = String::new();
    if !programs.is_empty() {
        let _ = writeln!(
            text,
            "\nInstructions that the verifier processed, of 1,000,000 at most:"
        );
    }
    for VerifiedProgram { name, instructions } in programs {
        let _ = writeln!(text, "  {name:16} {instructions:>7}");
    }
    text
}

fn as_json(probes: &[Probe], programs: &[VerifiedProgram]) -> String {
    let ready = MainCommand::ALL.map(|command| {
        let is_ready = lack_of(command, probes).is_none();
        (command.name(), is_ready)
    });
    let ready: BTreeMap<_, _> = ready.into_iter().collect();
    let probes: Vec<_> = probes
        .iter()
        .map(|probe| {
            let required_by = probe.required_by.iter().map(|command| command.name());
            let required_by: Vec<_> = required_by.collect();
            match &probe.result {
                ProbeResult::Available { detail } => json!({
                    "name": probe.name, "needed_for": probe.needed_for,
                    "required_by": required_by, "available": true, "detail": detail,
                }),
                ProbeResult::Missing { what, remedy } => json!({
                    "name": probe.name, "needed_for": probe.needed_for,
                    "required_by": required_by, "available": false, "missing": what,
                    "remedy": remedy,
                }),
            }
        })
        .collect();
    let mut document = json!({ "probes": probes, "ready": ready });
    if !programs.is_empty() {
        let programs = programs.iter().map(
            |VerifiedProgram { name, instructions }| json!({ "name": name, "instructions": instructions }),
        );
        document["programs"] = programs.collect();
    }
    format!("{document:#}\n")
}

fn as_text(probes: &[Probe]) -> String {
    let name_width = probes
        .iter()
        .map(|probe| probe.name.len())
        .max()
        .unwrap_or(0);
    let yes = console::style("ok").green();
    let mut text = String::new();
    for Probe {
        name,
        needed_for,
        required_by,
        result,
    } in probes
    {
        match result {
            ProbeResult::Available { detail } => {
                let _ = writeln!(text, "{yes}  {name:name_width$}  {detail}");
            }
            ProbeResult::Missing { what, remedy } => {
                let indent = " ".repeat(name_width + 6);
                let no = console::style("--");
                let (no, kind) = match required_by.is_empty() {
                    true => (no.yellow(), "useful for"),
                    false => (no.red(), "needed for"),
                };
                let _ = writeln!(text, "{no}  {name:name_width$}  missing: {what}");
                let _ = writeln!(text, "{indent}{kind}: {needed_for}");
                let _ = writeln!(text, "{indent}remedy: {remedy}");
            }
        }
    }
    let _ = writeln!(text);
    for command in MainCommand::ALL {
        let _ = match lack_of(command, probes) {
            None => writeln!(text, "`outlast {}` has all that it needs.", command.name()),
            Some(lack) => writeln!(text, "{lack}."),
        };
    }
    let others = probes.iter().filter(|probe| probe.required_by.is_empty());
    let missing = others.filter(|probe| !probe.result.is_available()).count();
    let _ = match missing {
        0 => Ok(()),
        1 => writeln!(text, "One thing that is useful is missing."),
        n => writeln!(text, "{n} things that are useful are missing."),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(name: &'static str, required_by: &'static [MainCommand], there: bool) -> Probe {
        let (what, remedy) = ("gone".to_owned(), "a newer one".to_owned());
        Probe {
            name,
            needed_for: "something",
            required_by,
            result: match there {
                true => ProbeResult::Available { detail: what },
                false => ProbeResult::Missing { what, remedy },
            },
        }
    }

    #[test]
    fn only_what_a_command_cannot_do_without_counts() {
        let queue = |there| probe("NFQUEUE", &[MainCommand::Run], there);
        let probes = [
            probe("TUN devices", &[MainCommand::Lab], true),
            queue(false),
            probe("AF_XDP", &[], false),
        ];
        assert_eq!(lack_of(MainCommand::Lab, &probes), None);
        let lack = lack_of(MainCommand::Run, &probes);
        assert_eq!(
            lack.as_deref(),
            Some("`outlast run` cannot run without: NFQUEUE")
        );
        insta::assert_snapshot!(as_text(&probes), @r"
        ok  TUN devices  gone
        --  NFQUEUE      missing: gone
                         needed for: something
                         remedy: a newer one
        --  AF_XDP       missing: gone
                         useful for: something
                         remedy: a newer one

        `outlast lab` has all that it needs.
        `outlast run` cannot run without: NFQUEUE.
        One thing that is useful is missing.
        ");
        let json: serde_json::Value = serde_json::from_str(&as_json(&probes, &[])).expect("JSON");
        assert_eq!(json["ready"], json!({ "lab": true, "run": false }));
        assert_eq!(lack_of(MainCommand::Run, &[queue(true)]), None);
    }
}
