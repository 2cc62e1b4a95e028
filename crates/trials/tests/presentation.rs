//! What the trials show of stored runs, and what they plan.

#[macro_use]
#[path = "../../experiments/tests/support/checks_of_all.rs"]
mod checks_of_all;
#[path = "../../experiments/tests/support/mod.rs"]
mod support;

use outlast_experiments::experiment::{Extent, named};
use outlast_experiments::record::{Record, Runs};
use outlast_trials::ALL;
use outlast_trials::tunnel_cost::bench::Observed;
use outlast_trials::tunnel_cost::place::Way;
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

/// A machine without nft has no address translator, and so no tunnel in UDP.
#[test]
fn a_way_that_there_is_not_has_no_value_and_no_claim() {
    let experiment = named(ALL, "tunnel-cost").expect("it is there");
    let ways = [
        Way::Plain,
        Way::CoLocated,
        Way::ForeignAgent,
        Way::UserSpace,
        Way::Nfqueue,
    ];
    let observed = Observed {
        rounds: vec![ways.map(|way| (way, 1e9)).into(); 3],
        untranslated: Some("nft is not installed".to_owned()),
        ..Observed::default()
    };
    let records = experiment.jobs(Extent::Quick).into_iter().map(|job| {
        let observed = serde_json::to_value(&observed).expect("it has a form in JSON");
        Record {
            observed: Some(observed),
            ..support::record(&job)
        }
    });
    let shown = checks::terminal(experiment, &Runs::new(records));
    assert!(
        shown.contains("There is no tunnel in UDP here: nft is not installed."),
        "{shown}"
    );
    assert!(!shown.contains('∞'), "{shown}");
    let lines = |words: &str| shown.lines().filter(|line| line.contains(words)).count();
    assert_eq!(
        lines("not measured"),
        2,
        "those of the tunnel in UDP: {shown}"
    );
    assert_eq!(lines("reproduced"), 6, "{shown}");
}

checks_of_all!(ALL);
