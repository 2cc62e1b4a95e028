//! What the experiments on published works show of stored runs, and what they plan.

#[path = "../../experiments/tests/support/mod.rs"]
mod support;

use outlast_experiments::experiment::{Extent, named};
use outlast_papers::ALL;
use support::checks;

#[test]
fn tables_and_claims_of_the_paper() {
    let experiment = named(ALL, "scott-mapp").expect("it is there");
    insta::assert_snapshot!(checks::terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
}

#[test]
fn tables_and_claims_of_the_thesis() {
    for name in ["thesis-timeouts", "thesis-handoff"] {
        let experiment = named(ALL, name).expect("it is there");
        let runs = support::runs(experiment, Extent::Quick);
        insta::assert_snapshot!(name, checks::terminal(experiment, &runs));
    }
}

#[test]
fn without_runs_nothing_is_claimed_to_be_measured() {
    checks::claims_nothing_without_runs(ALL);
}

#[test]
fn a_page_says_when_its_measurement_was_interrupted() {
    checks::says_when_interrupted(ALL);
}

#[test]
fn a_page_begins_with_its_results() {
    checks::begins_with_results(ALL);
}

#[test]
fn no_two_runs_of_an_experiment_are_taken_for_each_other() {
    checks::tells_runs_apart(ALL);
}

#[test]
fn every_run_can_end_before_its_deadline() {
    checks::leaves_time_for_every_run(ALL);
}
