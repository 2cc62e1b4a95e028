//! `--check` and `--strict`: judgements against those that are recorded.

use crate::place::Place;
use outlast_experiments::carry_out::carry_out;
use outlast_experiments::experiment::{Extent, named};
use outlast_experiments::job::Job;
use outlast_experiments::record::Record;
use outlast_experiments::store::Store;
use outlast_lab::Cancel;

/// An experiment that takes a second.
const NAME: &str = "caceres-iftode";
const MECHANISM: &str = "\"fast-retransmit\"";

#[test]
fn a_check_fails_once_a_mechanism_does_nothing() {
    let place = Place::new();
    let checked = ["papers", "run", NAME, "--quick", "--check"];
    let said = place.run(checked);
    assert_eq!(said.code, Some(0), "{}", said.err);

    stop_mechanism(&place);
    let said = place.run(["papers", "report", NAME, "--quick", "--check"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let words = "judgements are not as recorded";
    assert!(said.err.contains(words), "{}", said.err);
    let change = "Recorded: reproduced. Now: differs";
    assert!(said.err.contains(change), "{}", said.err);
}

/// Has runs of a mechanism that does nothing in place of its stored runs.
fn stop_mechanism(place: &Place) {
    let experiment = named(outlast_papers::ALL, NAME).expect("it is there");
    let store = Store::new(&place.path().join("outlast-report"), NAME, Extent::Quick);
    let mut records = store.records().expect("they were just written");
    let cancel = Cancel::new().expect("a pipe can be had");
    let jobs = experiment.jobs(Extent::Quick);
    for job in jobs.iter().filter(|job| job.text.contains(MECHANISM)) {
        let text = job.text.replace(MECHANISM, "\"none\"");
        let without = Job::from_toml(job.cell.clone(), text, job.index)
            .in_world(job.world)
            .watching(job.watch);
        let ran = carry_out(&without, &cancel).expect("the simulator has all of it");
        records.push(Record::new(job, env!("CARGO_PKG_VERSION"), 1, ran));
    }
    store.append_to(&records).expect("the place is ours");
}

#[test]
fn a_strict_check_fails_where_a_claim_differs_from_the_work() {
    let place = Place::new();
    let said = place.run(["papers", "run", NAME, "--quick", "--check", "--strict"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let words = "claims are not reproduced";
    assert!(said.err.contains(words), "{}", said.err);
}

#[test]
fn judgements_are_recorded_in_a_directory() {
    let place = Place::new();
    let said = place.run(["papers", "run", NAME, "--quick", "--record", "recorded"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let file = place.path().join("recorded/caceres-iftode-quick.txt");
    let text = std::fs::read_to_string(file).expect("it was written");
    let own = include_str!("../../../papers/judgements/caceres-iftode-quick.txt");
    let rows = |text: &'static str| text.split_once('\n').map(|(_, rows)| rows);
    assert_eq!(text.split_once('\n').map(|(_, rows)| rows), rows(own));
}

#[test]
fn of_trials_nothing_is_recorded() {
    let said = Place::new().run(["trials", "run", "hold-matrix", "--record", "recorded"]);
    said.refuses(2, &["hold-matrix", "--record"]);
}
