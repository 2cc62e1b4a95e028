//! What is stored is what comes back, after an interruption too.

mod support;

use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_experiments::run;
use outlast_experiments::store::{Meta, Store, StoreError};
use std::fs;

const NAME: &str = "specimen";

static SPECIMEN: Experiment = Experiment {
    name: NAME,
    title: "A download and its outage",
    source: "a test",
    measures: "Nothing that anybody asks for",
    method: |_| vec!["Each run is the first one with another seed.".to_owned()],
    figures: &[&Download],
};

/// Three runs of a download.
struct Download;

impl Figure for Download {
    fn name(&self) -> &'static str {
        "download"
    }

    fn title(&self) -> &'static str {
        "A download"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        let text = r#"
            name = "a tunnel"
            [link]
            rate = "10 Mbit/s"
            delay = "25 ms"
            queue = 75
            [workload]
            kind = "bulk"
            bytes = "3 MB"
            direction = "download"
        "#;
        let job = |index| Job::from_toml("cell", text.to_owned(), index);
        (0..3).map(job).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new(format!("{} downloads", runs.all().count()))
    }
}

fn jobs() -> Vec<Job> {
    SPECIMEN.jobs(Extent::Quick)
}

fn meta(complete: bool) -> Meta {
    Meta {
        experiment: NAME.to_owned(),
        extent: Extent::Quick,
        version: "1.2.3".to_owned(),
        date: String::new(),
        command: String::new(),
        capacity: 12,
        complete,
        missing: vec!["no bbr".to_owned()],
    }
}

#[test]
fn what_is_stored_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(&directory.path().join("deeper"), NAME, Extent::Quick);
    assert_eq!(store.meta().unwrap(), None);
    assert_eq!(store.records().unwrap(), []);
    store.set_meta(&meta(true)).unwrap();
    assert_eq!(store.meta().unwrap(), Some(meta(true)));
    let records: Vec<_> = jobs().iter().take(3).map(support::record).collect();
    let mut appending = store.append_to(&records[..1]).unwrap();
    appending.push(&records[1]).unwrap();
    appending.push(&records[2]).unwrap();
    assert_eq!(store.records().unwrap(), records);
}

#[test]
fn a_line_cut_off_by_an_interruption_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path(), NAME, Extent::Quick);
    let records: Vec<_> = jobs().iter().take(2).map(support::record).collect();
    store.append_to(&records).unwrap();
    let path = directory.path().join("specimen-quick.runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 20]).unwrap();
    assert_eq!(store.records().unwrap(), records[..1]);
}

#[test]
fn a_line_of_something_else_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path(), NAME, Extent::Quick);
    store.append_to(&[support::record(&jobs()[0])]).unwrap();
    let path = directory.path().join("specimen-quick.runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + "{}\n").unwrap();
    let error = store.records().unwrap_err();
    assert!(
        matches!(error, StoreError::Content { line: 2, .. }),
        "{error:?}"
    );
}

#[test]
fn only_the_latest_run_of_the_same_scenario_belongs_to_a_job() {
    let jobs = jobs();
    let earlier = support::record(&jobs[0]);
    let mut later = earlier.clone();
    later.attempts = 2;
    let mut other = support::record(&jobs[1]);
    other.fingerprint = "of another scenario".to_owned();
    let belonging = Store::belonging(vec![earlier, later.clone(), other], &jobs);
    assert_eq!(belonging, [later]);
}

#[test]
fn a_report_is_made_of_what_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = &SPECIMEN;
    let nothing = run::report(experiment, Extent::Quick, directory.path()).unwrap_err();
    assert!(
        nothing.to_string().contains("nothing is stored"),
        "{nothing}"
    );
    let store = Store::new(directory.path(), NAME, Extent::Quick);
    store.set_meta(&meta(true)).unwrap();
    store
        .append_to(&jobs().iter().map(support::record).collect::<Vec<_>>())
        .unwrap();
    let shown = run::report(experiment, Extent::Quick, directory.path()).unwrap();
    let html = fs::read_to_string(&shown.page).unwrap();
    assert!(html.contains("3 runs.") && html.contains("no bbr"));
    assert_eq!(shown.parts.len(), experiment.figures.len());
}
