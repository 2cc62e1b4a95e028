//! What the experiments show of stored runs, and what they plan.

mod support;

use outlast_papers::page;
use outlast_papers::record::Runs;
use outlast_papers::store::Meta;
use outlast_papers::{ALL, Experiment, Extent, named};
use outlast_report::judgement::{self, Judgement};
use outlast_report::table::TextStyle;
use std::collections::BTreeSet;

const EXTENTS: [Extent; 2] = [Extent::Quick, Extent::Full];

/// The tables and claims of `experiment`, as a terminal shows them.
fn terminal(experiment: &Experiment, runs: &Runs) -> String {
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

#[test]
fn tables_and_claims_of_the_matrix() {
    let experiment = named("hold-matrix").expect("it is there");
    insta::assert_snapshot!(terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
}

#[test]
fn tables_and_claims_of_the_channel() {
    let experiment = named("hold-channel").expect("it is there");
    insta::assert_snapshot!(terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
}

#[test]
fn tables_and_claims_of_the_paper() {
    let experiment = named("scott-mapp").expect("it is there");
    insta::assert_snapshot!(terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
}

#[test]
fn tables_and_claims_of_the_thesis() {
    for name in ["thesis-timeouts", "thesis-handoff"] {
        let experiment = named(name).expect("it is there");
        let runs = support::runs(experiment, Extent::Quick);
        insta::assert_snapshot!(name, terminal(experiment, &runs));
    }
}

#[test]
fn without_runs_nothing_is_claimed_to_be_measured() {
    for experiment in ALL {
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

#[test]
fn a_page_says_when_its_measurement_was_interrupted() {
    for experiment in ALL {
        let runs = support::runs(experiment, Extent::Quick);
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

/// What was found comes before how, a scenario is folded, and what is known of differences stands
/// once in a table's notes.
#[test]
fn a_page_begins_with_its_results() {
    for experiment in ALL {
        let runs = support::runs(experiment, Extent::Quick);
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

#[test]
fn no_two_runs_of_an_experiment_are_taken_for_each_other() {
    for experiment in ALL {
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
            let prints: BTreeSet<_> = jobs
                .iter()
                .map(outlast_papers::job::Job::fingerprint)
                .collect();
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

#[test]
fn every_run_can_end_before_its_deadline() {
    for experiment in ALL {
        for job in experiment.jobs(Extent::Quick) {
            let scenario = &job.scenario;
            let ideal = scenario.ideal_time(job.index, scenario.framing());
            // The traces are cut off on purpose.
            if !job.cell.starts_with("trace") {
                assert!(
                    ideal.is_some_and(|ideal| ideal < scenario.run.deadline),
                    "{}",
                    job.cell
                );
            }
        }
    }
}
