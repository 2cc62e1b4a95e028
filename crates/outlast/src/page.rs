//! The report page of a handful of runs: a table, and a time-sequence diagram for each.

use crate::failure::Failure;
use anyhow::Context;
use outlast_core::time::Instant;
use outlast_papers::diagram::FlowTrace;
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::results::{self, Summary};
use outlast_report::table::Tone;
use outlast_report::unit::Unit;
use outlast_scenario::result::{RunResult, TcpInForce};
use outlast_sim::trace::Trace;
use std::path::Path;

/// How to read the diagrams.
const LEGEND: &str = "Time to the right, sequence numbers upwards, the outages shaded. Upright \
    lines are data segments, dots acknowledgements, crosses packets that the link dropped, circles \
    and plus marks packets that Outlast sent.";

/// One run, in either world.
#[derive(Clone, Debug)]
pub(crate) struct Run<'a> {
    /// What the page calls it.
    pub(crate) name: &'a str,
    pub(crate) result: &'a RunResult,
    /// The flow that the diagram shows.
    flow: Option<FlowTrace>,
    /// What else was in force, by name.
    pub(crate) settings: &'a [(String, String)],
}

impl<'a> Run<'a> {
    /// A run of the lab.
    pub(crate) fn in_lab(name: &'a str, report: &'a outlast_lab::RunReport) -> Self {
        Self {
            name,
            result: &report.result,
            flow: match report.result.flows[..] {
                [] => drawn(report.trace.as_ref(), report.started, FlowTrace::of),
                _ => drawn(report.trace.as_ref(), report.started, FlowTrace::of_first),
            },
            settings: &report.kernel_settings,
        }
    }

    /// A run of the simulator.
    pub(crate) fn in_sim(name: &'a str, report: &'a outlast_sim::RunReport) -> Self {
        Self {
            name,
            result: &report.result,
            flow: drawn(
                report.outcome.trace.as_ref(),
                report.outcome.started,
                FlowTrace::of_first,
            ),
            settings: &[],
        }
    }
}

/// The flow that `choose` picks of a trace, whose times count from `started`.
fn drawn(
    trace: Option<&Trace>,
    started: Option<Instant>,
    choose: impl Fn(&Trace, Instant) -> Option<FlowTrace>,
) -> Option<FlowTrace> {
    choose(trace?, started?)
}

/// What the runs of one scenario are called: by its name if there is one, else by their seeds.
pub(crate) fn names(scenario: &str, runs: &[RunResult]) -> Vec<String> {
    match runs {
        [_] => vec![scenario.to_owned()],
        _ => runs
            .iter()
            .map(|run| format!("seed {}", run.settings.seed))
            .collect(),
    }
}

/// Writes the page about `runs`.
pub(crate) fn write(
    file: &Path,
    title: &str,
    command: &str,
    runs: &[Run<'_>],
) -> Result<(), Failure> {
    let results: Vec<Vec<RunResult>> = runs.iter().map(|run| vec![run.result.clone()]).collect();
    let mut page = Page::new(title, provenance(command, runs));
    for (run, result) in runs.iter().zip(&results) {
        page.highlight(highlight(run.name, result));
    }
    let names = runs.iter().map(|run| run.name);
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
    for run in runs {
        for section in shared(run).into_iter().chain(diagram(run)) {
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

/// What came of the other connections, links and traffic of a run, if there are any.
fn shared(run: &Run<'_>) -> Vec<Section> {
    let section = |title: &str, text: &str, table| {
        let title = format!("{}: {title}", run.name);
        Section::new(title).paragraph(text).table(table)
    };
    let connections = results::connections(run.result).map(|table| {
        let text = "Each connection that shared the link, that of the workload first. Times count from \
                    when the mobile opened it.";
        section("connections", text, table)
    });
    let hops = results::hops(run.result).map(|table| {
        let text = "Packets that Outlast put on each link, and that the link dropped.";
        section("links", text, table)
    });
    let traffic = results::traffic(run.result).map(|table| {
        let text = "Datagrams of others: how many were sent, and how many came out of their link.";
        section("cross traffic", text, table)
    });
    connections.into_iter().chain(hops).chain(traffic).collect()
}

fn diagram(run: &Run<'_>) -> Option<Section> {
    let flow = run.flow.as_ref()?;
    let until = run.result.elapsed_s.max(1.0);
    let figure = flow.diagram(0.0, until).draw();
    let name = run.name;
    Some(Section::new(name).figure(figure, format!("{name}: the payload's flow. {LEGEND}")))
}

fn provenance(command: &str, runs: &[Run<'_>]) -> Provenance {
    let first = runs.first();
    let settings = first.map(|run| &run.result.settings);
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M UTC")
            .to_string(),
        kernel: settings.map_or_else(String::new, |settings| stack(&settings.tcp)),
        congestion_control: settings
            .map(|s| s.tcp.congestion.to_string())
            .unwrap_or_default(),
        seed: settings.map_or(0, |settings| settings.seed),
        command: command.to_owned(),
        more: first.map_or_else(Vec::new, |run| run.settings.to_vec()),
    }
}

/// Whose TCP it was.
fn stack(tcp: &TcpInForce) -> String {
    match (&tcp.kernel, tcp.profile) {
        (Some(kernel), _) => format!("Linux {kernel}"),
        (None, Some(profile)) => format!("none: simulated in virtual time, TCP profile {profile}"),
        (None, None) => String::new(),
    }
}
