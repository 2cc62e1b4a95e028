//! The recorded judgements are those of the experiments, and a mechanism that is switched off changes them.

use outlast_experiments::carry_out::carry_out;
use outlast_experiments::experiment::{Experiment, Extent, Figure, named};
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::recorded::{Change, Found, Recorded};
use outlast_lab::Cancel;
use outlast_papers::{ALL, judgements};
use outlast_scenario::result::World;
use std::collections::BTreeSet;

const EXTENTS: [Extent; 2] = [Extent::Quick, Extent::Full];

/// The claims of `experiment`, of which nothing is measured.
fn claims(experiment: &Experiment, extent: Extent) -> Vec<String> {
    let parts = experiment.present(extent, &Runs::default());
    Recorded::of(experiment, &parts).claims().collect()
}

#[test]
fn no_two_claims_of_an_experiment_are_taken_for_each_other() {
    for experiment in ALL {
        for extent in EXTENTS {
            let claims = claims(experiment, extent);
            let different: BTreeSet<_> = claims.iter().collect();
            assert_eq!(different.len(), claims.len(), "{}", experiment.name);
        }
    }
}

#[test]
fn every_experiment_in_virtual_time_has_its_claims_recorded() {
    for experiment in ALL {
        let jobs = experiment.jobs(Extent::Quick);
        let is_in_virtual_time = jobs.iter().any(|job| job.world == World::Sim);
        let quick = judgements::recorded(experiment.name, Extent::Quick);
        let name = experiment.name;
        assert!(
            quick.is_some() || !is_in_virtual_time,
            "{name}: not recorded"
        );
        for extent in EXTENTS {
            let Some(recorded) = judgements::recorded(experiment.name, extent) else {
                continue;
            };
            let recorded: Vec<_> = recorded.claims().collect();
            let remedy = "outlast papers run NAME --record crates/papers/judgements";
            assert_eq!(
                recorded,
                claims(experiment, extent),
                "{} --{}: {remedy}",
                experiment.name,
                extent.name()
            );
        }
    }
}

#[test]
fn every_file_of_judgements_is_part_of_the_program() {
    let directory = std::fs::read_dir("judgements").expect("the crate's directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("readable").file_name();
        name.into_string().expect("UTF-8")
    };
    let files: BTreeSet<String> = directory.map(name).collect();
    assert_eq!(files, judgements::files().collect());
}

/// A figure of an experiment, and those of its quick runs that take no time.
struct Case {
    experiment: &'static str,
    figure: &'static str,
    is_wanted: fn(&str) -> bool,
    /// The mechanism that the runs have.
    mechanism: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        experiment: "caceres-iftode",
        figure: "figure-9-helped",
        is_wanted: |_| true,
        mechanism: "fast-retransmit",
    },
    Case {
        experiment: "scott-mapp-sim",
        figure: "figure-10",
        is_wanted: |_| true,
        mechanism: "smart-link-3",
    },
    Case {
        experiment: "thesis-help",
        figure: "table-5-2",
        is_wanted: |cell| cell.contains("3050 ms, round trip of 1000 ms"),
        mechanism: "zero-window-ack",
    },
];

impl Case {
    fn experiment(&self) -> &'static Experiment {
        named(ALL, self.experiment).expect("it is there")
    }

    fn figure(&self) -> &'static dyn Figure {
        let mut figures = self.experiment().figures.iter();
        *figures
            .find(|figure| figure.name() == self.figure)
            .expect("it is there")
    }

    /// The runs, with `mechanism` in place of their own.
    fn runs(&self, mechanism: &str) -> Runs {
        let cancel = Cancel::new().expect("a pipe can be had");
        let jobs = self.figure().jobs(Extent::Quick);
        let wanted = jobs.into_iter().filter(|job| (self.is_wanted)(&job.cell));
        Runs::new(wanted.map(|job| {
            let own = format!("{:?}", self.mechanism);
            assert!(job.text.contains(&own), "{}", job.text);
            let text = job.text.replace(&own, &format!("{mechanism:?}"));
            let other = Job::from_toml(job.cell.clone(), text, job.index)
                .in_world(job.world)
                .watching(job.watch);
            let ran = carry_out(&other, &cancel).expect("the simulator has all of it");
            Record::new(&other, "", 1, ran)
        }))
    }

    /// The measured claims of the figure whose judgements are not as recorded.
    fn changes(&self, mechanism: &str) -> Vec<Change> {
        let recorded = judgements::recorded(self.experiment, Extent::Quick);
        let recorded = recorded.expect("the quick extent is recorded");
        let experiment = self.experiment();
        let parts = experiment.present(Extent::Quick, &self.runs(mechanism));
        let mut changes = recorded.changes(&Recorded::of(experiment, &parts));
        let of_figure = format!("{}, ", self.figure);
        changes.retain(|change| {
            change.claim.starts_with(&of_figure) && change.now != Some(Found::NotMeasured)
        });
        changes
    }
}

#[test]
fn a_mechanism_that_is_switched_off_changes_judgements() {
    for case in CASES {
        assert_eq!(case.changes(case.mechanism), [], "{}", case.figure);
        let broken = case.changes("none");
        let is_lost = |change: &Change| {
            change.recorded == Some(Found::Reproduced) && change.now != change.recorded
        };
        assert!(broken.iter().any(is_lost), "{}: {broken:?}", case.figure);
    }
}
