//! What every experiment has to keep, whoever declares it.

use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::job::Job;
use outlast_experiments::page;
use outlast_experiments::record::Runs;
use outlast_experiments::store::Meta;
use outlast_report::judgement::{self, Judgement};
use outlast_report::table::TextStyle;
use std::collections::BTreeSet;

const EXTENTS: [Extent; 2] = [Extent::Quick, Extent::Full];

/// The tables and claims of `experiment`, as a terminal shows them.
pub(crate) fn terminal(experiment: &Experiment, runs: &Runs) -> String {
    let style = TextStyle {
        width: Some(150),
        ..TextStyle::default()
    };
    let mut text = String::new();
    for part in experiment.present(Extent::Quick, runs) {
        for table in part.tables {
            text += &table.to_text(&style);
            text.push('\n');
        }
        if !part.listed.is_empty() {
            text += &judgement::table(&part.listed).to_text(&style);
            text.push('\n');
        }
    }
    text
}

fn meta(experiment: &Experiment, complete: bool) -> Meta {
    Meta {
        experiment: experiment.name.to_owned(),
        extent: Extent::Quick,
        version: "1.2.3".to_owned(),
        date: "a day".to_owned(),
        command: "outlast papers run".to_owned(),
        capacity: 12,
        complete,
        missing: Vec::new(),
    }
}

/// Without runs nothing is claimed to be measured.
pub(crate) fn claims_nothing_without_runs(all: &[&Experiment]) {
    for experiment in all {
        let parts = experiment.present(Extent::Full, &Runs::default());
        let claims: Vec<_> = parts.iter().flat_map(|part| &part.claims).collect();
        assert!(!claims.is_empty(), "{}", experiment.name);
        for claim in claims {
            assert_eq!(
                claim.judgement(),
                Judgement::NotMeasured,
                "{:?}",
                claim.claim()
            );
        }
    }
}

/// A page says when its measurement was interrupted.
pub(crate) fn says_when_interrupted(all: &[&Experiment]) {
    for experiment in all {
        let runs = super::runs(experiment, Extent::Quick);
        let parts = experiment.present(Extent::Quick, &runs);
        let html =
            |complete| page::page(experiment, &meta(experiment, complete), &runs, &parts).to_html();
        assert!(
            html(false).contains("was interrupted"),
            "{}",
            experiment.name
        );
        assert!(
            !html(true).contains("was interrupted"),
            "{}",
            experiment.name
        );
        assert!(html(true).contains("6.1.0"), "the kernel is named");
    }
}

/// A page shows its results before its method, folds scenarios, and explains differences in notes.
pub(crate) fn begins_with_results(all: &[&Experiment]) {
    for experiment in all {
        let runs = super::runs(experiment, Extent::Quick);
        let parts = experiment.present(Extent::Quick, &runs);
        let meta = meta(experiment, true);
        let html = page::page(experiment, &meta, &runs, &parts).to_html();
        let (results, method) = html
            .split_once("<h2>What was done</h2>")
            .expect("a page tells how");
        assert!(results.contains("<table>"), "{}", experiment.name);
        assert!(!method.contains("<table>"), "{}", experiment.name);
        assert!(!results.contains("<pre>"), "{}", experiment.name);
        let folded = html.matches("</summary>\n<pre>").count();
        assert_eq!(html.matches("<pre>").count(), folded, "{}", experiment.name);
        let cells = html.lines().filter(|line| line.starts_with("<tr>"));
        let told = cells.filter(|row| row.contains("nown departure"));
        assert_eq!(told.count(), 0, "{}", experiment.name);
    }
}

/// No two runs of an experiment are taken for each other.
pub(crate) fn tells_runs_apart(all: &[&Experiment]) {
    for experiment in all {
        for extent in EXTENTS {
            let jobs = experiment.jobs(extent);
            let places: BTreeSet<_> = jobs.iter().map(|job| (&job.cell, job.index)).collect();
            assert_eq!(
                places.len(),
                jobs.len(),
                "{} {}",
                experiment.name,
                extent.name()
            );
            let prints: BTreeSet<_> = jobs.iter().map(Job::fingerprint).collect();
            assert_eq!(
                prints.len(),
                jobs.len(),
                "{} {}",
                experiment.name,
                extent.name()
            );
        }
    }
}

/// Every run can end before its deadline.
pub(crate) fn leaves_time_for_every_run(all: &[&Experiment]) {
    for experiment in all {
        for job in experiment.jobs(Extent::Quick) {
            let scenario = &job.scenario;
            let ideal = scenario.ideal_time(job.index, scenario.framing());
            // The traces are cut off on purpose. Where a further link goes away, nobody says what is ideal.
            let has_ideal = scenario.path_config(job.index).is_some();
            if has_ideal && !job.cell.starts_with("trace") {
                assert!(
                    ideal.is_some_and(|ideal| ideal < scenario.run.deadline),
                    "{}",
                    job.cell
                );
            }
        }
    }
}
