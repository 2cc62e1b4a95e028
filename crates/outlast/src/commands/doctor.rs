//! `outlast doctor`: what this machine offers, found by trying, and what depends on it.

use crate::failure::Failure;
use crate::terminal;
use outlast_linux::capability::{self, Probe, ProbeResult, probe_all};
use outlast_linux::user_namespace;
use serde_json::json;
use std::fmt::Write as _;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let rights = capability::of_this_process();
    // Without namespaces the other probes cannot be made; the first ones then say why.
    if let Err(error) = user_namespace::enter() {
        tracing::debug!(%error, "no namespaces");
    }
    let mut probes = probe_all();
    probes.push(rights);
    let text = if arguments.json {
        as_json(&probes)
    } else {
        as_text(&probes)
    };
    terminal::print(&text)?;
    Ok(())
}

fn as_json(probes: &[Probe]) -> String {
    let probes: Vec<_> = probes
        .iter()
        .map(|probe| match &probe.result {
            ProbeResult::Available { detail } => json!({
                "name": probe.name, "needed_for": probe.needed_for,
                "available": true, "detail": detail,
            }),
            ProbeResult::Missing { what, remedy } => json!({
                "name": probe.name, "needed_for": probe.needed_for,
                "available": false, "missing": what, "remedy": remedy,
            }),
        })
        .collect();
    format!("{:#}\n", json!({ "probes": probes }))
}

fn as_text(probes: &[Probe]) -> String {
    let name_width = probes
        .iter()
        .map(|probe| probe.name.len())
        .max()
        .unwrap_or(0);
    let (yes, no) = (console::style("ok").green(), console::style("--").red());
    let mut text = String::new();
    for Probe {
        name,
        needed_for,
        result,
    } in probes
    {
        match result {
            ProbeResult::Available { detail } => {
                let _ = writeln!(text, "{yes}  {name:name_width$}  {detail}");
            }
            ProbeResult::Missing { what, remedy } => {
                let indent = " ".repeat(name_width + 6);
                let _ = writeln!(text, "{no}  {name:name_width$}  missing: {what}");
                let _ = writeln!(text, "{indent}needed for: {needed_for}");
                let _ = writeln!(text, "{indent}remedy: {remedy}");
            }
        }
    }
    let missing = probes
        .iter()
        .filter(|probe| !probe.result.is_available())
        .count();
    let _ = match missing {
        0 => writeln!(text, "\nThis machine offers everything that Outlast uses."),
        n => writeln!(text, "\n{n} of {} are missing.", probes.len()),
    };
    text
}
