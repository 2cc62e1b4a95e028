//! The report of an experiment as one page.

use crate::experiment::{Experiment, Extent, Part};
use crate::record::{Record, Runs};
use crate::store::Meta;
use outlast_report::judgement::{Judged, Tally};
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::table::Tone;
use outlast_scenario::result::World;
use std::collections::BTreeSet;

/// The page of `experiment` with what its figures show of `runs`.
#[must_use]
pub fn page(experiment: &Experiment, meta: &Meta, runs: &Runs, parts: &[Part]) -> Page {
    let mut page = Page::new(experiment.title, provenance(meta, runs))
        .subtitle(format!("{} ({})", experiment.measures, experiment.source));
    for highlight in parts.iter().flat_map(|part| &part.highlights) {
        page.highlight(highlight.clone());
    }
    let claims: Vec<Judged> = parts.iter().flat_map(|part| part.claims.clone()).collect();
    page.highlight(statements(&claims));
    page.highlight(measured(meta, runs));
    for part in parts {
        page.push(part.section.clone());
    }
    page.push(method(experiment, meta, runs));
    page
}

fn statements(claims: &[Judged]) -> Highlight {
    let tally = Tally::of(claims);
    let note = match (tally.differs, tally.not_measured) {
        (0, 0) => "reproduced".to_owned(),
        (differs, 0) => format!("reproduced, {differs} differ"),
        (differs, missing) => format!("reproduced, {differs} differ, {missing} not measured"),
    };
    Highlight {
        label: "Statements".to_owned(),
        value: format!("{} of {}", tally.reproduced, tally.all()),
        note,
        tone: if tally.reproduced == tally.all() {
            Tone::Good
        } else {
            Tone::Plain
        },
    }
}

/// Of how much the page speaks.
fn measured(meta: &Meta, runs: &Runs) -> Highlight {
    let (note, tone) = match (meta.complete, meta.extent) {
        (false, _) => ("some are missing", Tone::Warning),
        (true, Extent::Quick) => ("the quick extent: few, and short", Tone::Plain),
        (true, Extent::Full) => ("the full extent", Tone::Plain),
    };
    Highlight {
        label: "Runs".to_owned(),
        value: runs.all().count().to_string(),
        note: note.to_owned(),
        tone,
    }
}

fn method(experiment: &Experiment, meta: &Meta, runs: &Runs) -> Section {
    let mut section = Section::new("What was done");
    for paragraph in (experiment.method)(meta.extent) {
        section = section.paragraph(paragraph);
    }
    if meta.extent == Extent::Quick {
        section = section.paragraph(
            "This is the quick extent: few trials and short transfers. `--full` has all of them.",
        );
    }
    if !meta.complete {
        section = section.paragraph(
            "Some runs are missing: the measurement was interrupted, or confined to some cells \
             (`--only`). The same command without that goes on from there.",
        );
    }
    for missing in &meta.missing {
        section = section.paragraph(format!("Runs that this machine cannot do: {missing}."));
    }
    section = section.paragraph(quality(runs));
    match experiment.jobs(meta.extent).first() {
        None => section,
        // No scenario file says which programs run.
        Some(first) if first.world == World::Live => section,
        Some(first) => section.listing(
            format!(
                "Every run is a scenario of `outlast {}`; this is the first one",
                first.world
            ),
            first.text.trim_end(),
        ),
    }
}

/// What is to be thought of the runs themselves.
fn quality(runs: &Runs) -> String {
    let total = runs.all().count();
    let repeated = runs.all().filter(|run| run.attempts > 1).count();
    let doubtful: Vec<&Record> = runs.all().filter(|run| !run.warnings.is_empty()).collect();
    let worst = runs.all().map(|run| run.worst_delay_s).fold(0.0, f64::max);
    let mut text = format!("{total} runs.");
    if runs
        .all()
        .any(|run| run.result.settings.world != World::Sim)
    {
        text.push_str(&format!(
            " The emulated link was late by {} at worst.",
            outlast_report::unit::Unit::Seconds.show(worst)
        ));
    } else if runs
        .all()
        .all(|run| run.result.settings.world == World::Sim)
    {
        text.push_str(" All in virtual time: the same seed gives the same numbers.");
    }
    if repeated > 0 {
        text.push_str(&format!(
            " {repeated} runs were repeated because the machine was too busy to emulate on time."
        ));
    }
    if let Some(first) = doubtful.first() {
        text.push_str(&format!(
            " {} of them stayed doubtful, such as {}: {}.",
            doubtful.len(),
            first.cell,
            first.warnings.join("; ")
        ));
    }
    text
}

fn at_once(meta: &Meta, runs: &Runs) -> String {
    if runs
        .all()
        .any(|run| run.result.settings.world == World::Live)
    {
        format!("up to {} sites", meta.capacity.div_ceil(2))
    } else if runs.all().any(is_in_lab) {
        format!("up to {} runs of 10 Mbit/s", meta.capacity)
    } else {
        "a run on each core".to_owned()
    }
}

fn is_in_lab(run: &Record) -> bool {
    run.result.settings.world == World::Lab
}

fn provenance(meta: &Meta, runs: &Runs) -> Provenance {
    let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
    let settings = || runs.all().map(|run| &run.result.settings);
    Provenance {
        version: meta.version.clone(),
        date: meta.date.clone(),
        kernel: list(settings().filter_map(|s| s.tcp.kernel.clone()).collect()),
        congestion_control: list(settings().map(|s| s.tcp.congestion.clone()).collect()),
        seed: settings().map(|s| s.seed).min().unwrap_or_default(),
        command: meta.command.clone(),
        more: vec![
            ("Extent".to_owned(), meta.extent.name().to_owned()),
            ("At once".to_owned(), at_once(meta, runs)),
        ],
    }
}
