//! The report page of a handful of runs: what they were made with, a table, and for each
//! connection time-sequence diagrams of the whole and of each outage.

mod diagrams;
mod window;

use crate::failure::Failure;
use anyhow::Context;
use outlast_base::time::Instant;
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::plot::{Axis, Limit, Strip, StripRow};
use outlast_report::results::{self, Summary};
use outlast_report::settings;
use outlast_report::statistics::Sample;
use outlast_report::table::Tone;
use outlast_report::unit::Unit;
use outlast_report::words::capitalised;
use outlast_scenario::Scenario;
use outlast_scenario::result::{RunResult, TcpInForce, World};
use outlast_sim::trace::Trace;
use std::path::Path;

/// The variable with the time of a page, in seconds since 1970.
pub(crate) const SOURCE_DATE: &str = "SOURCE_DATE_EPOCH";

/// Rows of the table of a run's connections.
const MOST_CONNECTIONS: usize = 100;
/// More runs than these are summed up at the top of the page.
const MOST_HIGHLIGHTS: usize = 6;

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) title: &'a str,
    /// What makes the page again.
    pub(crate) command: &'a str,
    /// What the runs were made with, but for the control, which was made without Outlast.
    pub(crate) scenario: &'a Scenario,
    /// The scenario file's text, if it can be had.
    pub(crate) source: Option<&'a str>,
}

/// One run, in either world.
#[derive(Clone, Debug)]
pub(crate) struct Run<'a> {
    /// What the page calls it.
    pub(crate) name: &'a str,
    /// Whether it was made without Outlast, to compare the others with.
    pub(crate) is_control: bool,
    pub(crate) result: &'a RunResult,
    /// What happened to each packet, and when the workload's first byte came to the link.
    trace: Option<(&'a Trace, Instant)>,
    /// A port that no other connection has, for each of [`RunResult::flows`].
    ports: Vec<Option<u16>>,
    /// What else was in force, by name.
    pub(crate) settings: &'a [(String, String)],
}

impl<'a> Run<'a> {
    /// A run of the lab.
    pub(crate) fn in_lab(name: &'a str, report: &'a outlast_lab::RunReport) -> Self {
        Self {
            name,
            is_control: false,
            result: &report.result,
            trace: report.trace.as_ref().zip(report.started),
            ports: report.server_ports.clone(),
            settings: &report.kernel_settings,
        }
    }

    /// A run of the simulator.
    pub(crate) fn in_sim(name: &'a str, report: &'a outlast_sim::RunReport) -> Self {
        let outcome = &report.outcome;
        let port = |number| {
            let mut flows = outcome.flows.iter();
            Some(flows.find(|flow| flow.number == number)?.client_port)
        };
        Self {
            name,
            is_control: false,
            result: &report.result,
            trace: outcome.trace.as_ref().zip(outcome.started),
            ports: (0..report.result.flows.len().max(1)).map(port).collect(),
            settings: &[],
        }
    }

    /// Marks the run as the control, made without Outlast.
    pub(crate) fn into_control(self) -> Self {
        Self {
            is_control: true,
            ..self
        }
    }
}

/// Writes the page about `runs`.
pub(crate) fn write(file: &Path, about: &About<'_>, runs: &[Run<'_>]) -> Result<(), Failure> {
    let html = page(about, runs).to_html();
    std::fs::write(file, html).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn page(about: &About<'_>, runs: &[Run<'_>]) -> Page {
    let provenance = provenance(about.command, runs);
    let mut page = Page::new(about.title, provenance).subtitle(settings::line(about.scenario));
    let groups = groups(runs);
    if runs.len() <= MOST_HIGHLIGHTS {
        for run in runs {
            page.highlight(highlight(run.name, std::slice::from_ref(run.result)));
        }
    } else {
        for (name, results) in &groups {
            page.highlight(highlight(name, results));
        }
    }
    page.push(results_of(runs, &groups));
    let share = diagrams::Share::of(runs.len());
    for run in runs {
        page.push(section(run, share));
    }
    page.push(scenario(about, runs));
    page
}

/// The runs with Outlast and those without, as far as there are any, under their names.
fn groups(runs: &[Run<'_>]) -> Vec<(&'static str, Vec<RunResult>)> {
    [("with Outlast", false), ("control", true)]
        .map(|(name, is_control)| {
            let of_group = runs.iter().filter(|run| run.is_control == is_control);
            (name, of_group.map(|run| run.result.clone()).collect())
        })
        .into_iter()
        .filter(|(_, results): &(_, Vec<_>)| !results.is_empty())
        .collect()
}

fn highlight(name: &str, runs: &[RunResult]) -> Highlight {
    let summary = Summary::of(runs);
    let done = summary.completed == summary.runs;
    let value = match (&summary.elapsed_s, runs) {
        (Some(elapsed), _) if done => Unit::Seconds.show(elapsed.mean),
        (_, [run]) => received(run),
        _ => format!("{} of {} completed", summary.completed, summary.runs),
    };
    let used = summary
        .utilisation
        .map(|used| format!("{} of connected time used", Unit::Share.show(used.mean)));
    let worst = match (summary.never_resumed, summary.resume_s) {
        (0, None) => None,
        (0, Some(resume)) => Some(format!("worst resume {}", show(resume.greatest))),
        (1, _) => Some("once never resumed".to_owned()),
        (n, _) => Some(format!("{n} times never resumed")),
    };
    let notes: Vec<_> = used.into_iter().chain(worst).collect();
    let tone = if done { Tone::Good } else { Tone::Bad };
    Highlight {
        label: name.to_owned(),
        value,
        note: notes.join(", "),
        tone,
    }
}

fn show(seconds: f64) -> String {
    Unit::Seconds.show(seconds)
}

/// How much of the payload came, if the run was not completed.
fn received(run: &RunResult) -> String {
    let goal: Option<u64> = match run.flows[..] {
        [] => run.settings.bytes,
        _ => run.flows.iter().map(|flow| flow.bytes).sum(),
    };
    let share = goal.zip(run.received_in_all());
    let share = share.map(|(all, got)| got as f64 / all.max(1) as f64);
    share.map_or_else(
        || "not done".to_owned(),
        |share| format!("{} received", Unit::Share.show(share)),
    )
}

fn results_of(runs: &[Run<'_>], groups: &[(&'static str, Vec<RunResult>)]) -> Section {
    let each: Vec<Vec<RunResult>> = runs.iter().map(|run| vec![run.result.clone()]).collect();
    let names = runs.iter().map(|run| run.name);
    let rows = names.zip(each.iter().map(Vec::as_slice));
    let mut text =
        "Resume is the time from link-up until the receiving application gets bytes that it \
                    did not have."
            .to_owned();
    if runs.iter().any(|run| !run.result.flows.is_empty()) {
        text.push_str(" Time and resumes are over all connections of a run.");
    } else {
        text.push_str(
            " Ideal is the time that the payload needs if every connected moment after the first round \
             trip is used at the link's rate.",
        );
    }
    if runs.iter().any(|run| run.is_control) {
        text.push_str(" The control is the same scenario with the same seed, without Outlast.");
    }
    let mut section = Section::new("Results").paragraph(text);
    if groups.len() > 1 && runs.len() > 2 {
        let summed = groups.iter().map(|(name, runs)| (*name, &runs[..]));
        section = section.table(results::comparison(summed));
    }
    section = section.table(results::comparison(rows));
    match resumes(runs, groups) {
        Some((strip, caption)) => section.figure(strip.draw(), caption),
        None => section,
    }
}

/// Every resume in one figure, if there are enough of them to be shown.
fn resumes(runs: &[Run<'_>], groups: &[(&'static str, Vec<RunResult>)]) -> Option<(Strip, String)> {
    let of = |results: &[RunResult]| -> Vec<Option<f64>> {
        let all = results.iter().flat_map(results::resumes_of_all);
        all.collect()
    };
    let samples: Vec<Vec<Option<f64>>> = groups.iter().map(|(_, results)| of(results)).collect();
    let times = samples
        .iter()
        .flatten()
        .flatten()
        .filter(|time| **time > 0.0);
    if times.clone().count() < 3 {
        return None;
    }
    let range = Sample::of(times.copied())?;
    let round_trip = runs.first()?.result.settings.round_trip_s;
    let axis = Axis::new("Time from link-up to new data", Unit::Seconds).logarithmic();
    // Whole decades, whose ends have labels.
    let low = range.least.min(round_trip).max(1e-4).log10().floor();
    let high = range.greatest.max(round_trip).log10().ceil().max(low + 1.0);
    let strip = Strip {
        axis: axis.range(10f64.powf(low), 10f64.powf(high)),
        variants: groups
            .iter()
            .map(|(name, _)| ((*name).to_owned(), *name == "control"))
            .collect(),
        rows: vec![StripRow {
            group: None,
            label: "all runs".to_owned(),
            samples,
        }],
        limit: Some(Limit {
            value: round_trip.max(1e-4),
            name: format!("round trip of the links, {}", show(round_trip)),
        }),
    };
    let caption = "Every return of the link, of every connection: how long until its receiver had bytes \
                   that it did not have.";
    Some((strip, caption.to_owned()))
}

/// The section of one run, with all of it.
fn section(run: &Run<'_>, share: diagrams::Share) -> Section {
    let mut section = Section::new(capitalised(run.name));
    if let Some(error) = &run.result.error {
        section = section.paragraph(format!("The run ended with an error: {error}."));
    }
    if let Some(table) = results::connections(run.result, MOST_CONNECTIONS) {
        let text = "Each connection that shared the link, the worst first. Times count from when the \
                    mobile opened it.";
        section = section.paragraph(text).table(table);
    }
    if let Some(table) = results::hops(run.result) {
        let text = "Packets that Outlast put on each link, and that the link dropped.";
        section = section.paragraph(text).table(table);
    }
    if let Some(table) = results::traffic(run.result) {
        let text = "Datagrams of others: how many were sent, and how many came out of their link.";
        section = section.paragraph(text).table(table);
    }
    diagrams::add(section, run, share)
}

/// What the runs were made with.
fn scenario(about: &About<'_>, runs: &[Run<'_>]) -> Section {
    let mut section = Section::new("Scenario");
    if runs.iter().any(|run| run.is_control) {
        section = section.paragraph("The control has all of this but Outlast.");
    }
    section = section.table(settings::table(about.scenario));
    match about.source {
        Some(source) => section.listing("The scenario file", source),
        None => section,
    }
}

fn provenance(command: &str, runs: &[Run<'_>]) -> Provenance {
    let first = runs.first();
    let settings = first.map(|run| &run.result.settings);
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: date().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        kernel: settings.map_or_else(String::new, |settings| {
            let time = match settings.world {
                World::Kernel => ", packaged, in virtual time",
                _ => "",
            };
            stack(&settings.tcp) + time
        }),
        congestion_control: settings
            .map(|s| s.tcp.congestion.to_string())
            .unwrap_or_default(),
        seed: settings.map_or(0, |settings| settings.seed),
        command: command.to_owned(),
        more: first.map_or_else(Vec::new, |run| run.settings.to_vec()),
    }
}

/// The time of the page: now, or where the clock says nothing, as in a guest, what the environment says in the variable
/// of <https://reproducible-builds.org/specs/source-date-epoch/>.
fn date() -> jiff::Timestamp {
    let told = std::env::var(SOURCE_DATE).ok();
    let told = told.and_then(|seconds| jiff::Timestamp::from_second(seconds.parse().ok()?).ok());
    told.unwrap_or_else(jiff::Timestamp::now)
}

/// Whose TCP it was.
fn stack(tcp: &TcpInForce) -> String {
    match (&tcp.kernel, tcp.profile) {
        (Some(kernel), _) => format!("Linux {kernel}"),
        (None, Some(profile)) => format!("none: simulated in virtual time, TCP profile {profile}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
