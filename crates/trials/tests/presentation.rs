//! What the trials show of stored runs, and what they plan.

#[path = "../../experiments/tests/support/mod.rs"]
mod support;

use outlast_experiments::experiment::{Extent, named};
use outlast_trials::ALL;
use support::checks;

#[test]
fn tables_and_claims_of_the_matrix() {
    let experiment = named(ALL, "hold-matrix").expect("it is there");
    insta::assert_snapshot!(checks::terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
}

#[test]
fn tables_and_claims_of_the_channel() {
    let experiment = named(ALL, "hold-channel").expect("it is there");
    insta::assert_snapshot!(checks::terminal(
        experiment,
        &support::runs(experiment, Extent::Quick)
    ));
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
