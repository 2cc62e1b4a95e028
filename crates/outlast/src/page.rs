//! The report page of a handful of runs: a table, and a time-sequence diagram for each.

use crate::failure::Failure;
use anyhow::Context;
use outlast_lab::RunReport;
use outlast_papers::diagram::FlowTrace;
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::results::{self, Summary};
use outlast_report::table::Tone;
use outlast_report::unit::Unit;
use outlast_scenario::result::RunResult;
use std::path::Path;

/// How to read the diagrams.
const LEGEND: &str = "Time to the right, sequence numbers upwards, the outages shaded. Upright \
    lines are data segments, dots acknowledgements, crosses packets that the link dropped, circles \
    and plus marks packets that Outlast sent.";

/// Writes the page about `runs`, each with its name.
pub(crate) fn write(
    file: &Path,
    title: &str,
    command: &str,
    runs: &[(String, &RunReport)],
) -> Result<(), Failure> {
    let results: Vec<Vec<RunResult>> = runs
        .iter()
        .map(|(_, report)| vec![report.result.clone()])
        .collect();
    let mut page = Page::new(title, provenance(command, runs));
    for ((name, _), result) in runs.iter().zip(&results) {
        page.highlight(highlight(name, result));
    }
    let names = runs.iter().map(|(name, _)| name.as_str());
    let rows = names.zip(results.iter().map(Vec::as_slice));
    page.push(
        Section::new("Results")
            .paragraph(
                "Ideal is the time that the payload needs if every connected moment after the \
                 first round trip is used at the link's rate. Resume is the time from link-up until \
                 the receiving application gets bytes that it did not have.",
            )
            .table(results::comparison(rows)),
    );
    for (name, report) in runs {
        if let Some(section) = diagram(name, report) {
            page.push(section);
        }
    }
    std::fs::write(file, page.to_html())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn highlight(name: &str, runs: &[RunResult]) -> Highlight {
    let summary = Summary::of(runs);
    let done = summary.completed == summary.runs;
    let value = match (&summary.elapsed_s, runs.first()) {
        (Some(elapsed), _) if done => Unit::Seconds.show(elapsed.mean),
        (_, Some(run)) => {
            let share = run.settings.bytes.zip(run.bytes_received);
            let share = share.map(|(all, got)| got as f64 / all.max(1) as f64);
            share.map_or_else(
                || "not done".to_owned(),
                |share| format!("{} received", Unit::Share.show(share)),
            )
        }
        _ => "not done".to_owned(),
    };
    let used = summary.utilisation.map_or_else(String::new, |used| {
        format!("{} of connected time used", Unit::Share.show(used.mean))
    });
    let tone = if done { Tone::Good } else { Tone::Bad };
    Highlight {
        label: name.to_owned(),
        value,
        note: used,
        tone,
    }
}

fn diagram(name: &str, report: &RunReport) -> Option<Section> {
    let flow = FlowTrace::of(report.trace.as_ref()?, report.started?)?;
    let until = report.result.elapsed_s.max(1.0);
    let figure = flow.diagram(0.0, until).draw();
    Some(Section::new(name).figure(figure, format!("{name}: the payload's flow. {LEGEND}")))
}

fn provenance(command: &str, runs: &[(String, &RunReport)]) -> Provenance {
    let settings = runs.first().map(|(_, report)| &report.result.settings);
    let mut more: Vec<(String, String)> = Vec::new();
    if let Some((_, report)) = runs.first() {
        more.extend(report.kernel_settings.iter().cloned());
    }
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M UTC")
            .to_string(),
        kernel: format!("Linux {}", outlast_linux::kernel_release()),
        congestion_control: settings
            .map(|s| s.tcp.congestion.to_string())
            .unwrap_or_default(),
        seed: settings.map_or(0, |settings| settings.seed),
        command: command.to_owned(),
        more,
    }
}
