//! Runs that the first ones ask for.

use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_experiments::run::{self, Order, Shown};
use outlast_lab::Cancel;
use outlast_scenario::result::World;
use std::path::Path;

static DOUBTFUL: Experiment = Experiment {
    name: "doubtful",
    title: "A download that one run leaves in doubt",
    source: "a test",
    measures: "Nothing that anybody asks for",
    method: |_| Vec::new(),
    figures: &[&Download],
};

/// A cell that is content with one run, and one that wants two more.
struct Download;

fn job(cell: &str, index: u32) -> Job {
    let text = r#"
        name = "a download"
        [link]
        rate = "10 Mbit/s"
        delay = "5 ms"
        queue = 75
        [workload]
        kind = "bulk"
        bytes = "10 kB"
        direction = "download"
    "#;
    Job::from_toml(cell, text.replace("a download", cell), index).in_world(World::Sim)
}

impl Figure for Download {
    fn name(&self) -> &'static str {
        "download"
    }

    fn title(&self) -> &'static str {
        "A download"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        vec![job("content", 0), job("doubtful", 0)]
    }

    fn further_jobs(&self, _extent: Extent, runs: &Runs) -> Vec<Job> {
        assert!(
            runs.all().all(|run| run.index == 0),
            "only what `jobs` names"
        );
        let doubtful = runs.of("doubtful").iter();
        doubtful
            .flat_map(|_| [1, 2].map(|index| job("doubtful", index)))
            .collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let count = |cell| runs.of(cell).len();
        Part::new(format!("{} and {}", count("content"), count("doubtful")))
    }
}

fn order(directory: &Path, only: &[&str]) -> Order {
    Order {
        extent: Extent::Quick,
        directory: directory.to_owned(),
        capacity: 2,
        version: "1.2.3".to_owned(),
        date: String::new(),
        command: String::new(),
        only: only.iter().map(|&text| text.to_owned()).collect(),
    }
}

/// The order's outcome, and how many runs were carried out for it.
fn ran(order: &Order) -> (Shown, usize) {
    let cancel = Cancel::new().expect("a pipe can be had");
    let mut rounds = Vec::new();
    let shown = run::run(&DOUBTFUL, order, &cancel, |progress| {
        rounds.push(progress.done);
    });
    (
        shown.expect("the simulator has all of it"),
        rounds.into_iter().max().unwrap_or_default(),
    )
}

#[test]
fn what_the_first_runs_ask_for_is_carried_out_and_presented() {
    let directory = tempfile::tempdir().unwrap();
    let (shown, done) = ran(&order(directory.path(), &[]));
    assert_eq!(shown.parts[0], Part::new("1 and 3"));
    assert_eq!((shown.meta.complete, done), (true, 4));
    let again = run::report(&DOUBTFUL, Extent::Quick, directory.path()).unwrap();
    assert_eq!(again.parts, shown.parts);
}

#[test]
fn only_what_is_named_is_carried_out_further_runs_too() {
    let directory = tempfile::tempdir().unwrap();
    let (shown, done) = ran(&order(directory.path(), &["content"]));
    assert_eq!(shown.parts[0], Part::new("1 and 0"));
    assert_eq!((shown.meta.complete, done), (false, 1));
    let (shown, done) = ran(&order(directory.path(), &["doubtful"]));
    assert_eq!(shown.parts[0], Part::new("1 and 3"));
    assert_eq!((shown.meta.complete, done), (true, 4));
}
