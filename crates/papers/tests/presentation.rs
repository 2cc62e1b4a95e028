//! What the experiments on published works show of stored runs, and what they plan.

#[macro_use]
#[path = "../../experiments/tests/support/checks_of_all.rs"]
mod checks_of_all;
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

checks_of_all!(ALL);
