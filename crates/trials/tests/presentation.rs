//! What the trials show of stored runs, and what they plan.

#[macro_use]
#[path = "../../experiments/tests/support/checks_of_all.rs"]
mod checks_of_all;
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

checks_of_all!(ALL);
