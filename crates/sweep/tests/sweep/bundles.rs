//! Sweeps that are sent to where their files are not.

use crate::fixture::{PLAIN, Place, VERSION};
use outlast_sweep::{Bundle, Finished, Plan, Run, UnbundleError};
use std::fs;

/// A sweep of a scenario in a file of its own, with a trace.
fn sweep(place: &Place) -> Plan {
    let scenario = PLAIN.replace(
        "process = \"exponential\"\nup = \"300 ms\"\ndown = \"400 ms\"",
        "process = \"trace\"\nfile = \"train.trace\"",
    );
    let sweep =
        "[sweep]\nscenario = \"base.toml\"\n[sweep.grid]\n\"link.delay\" = [\"2 ms\", \"9 ms\"]\n";
    for (name, text) in [
        ("base.toml", scenario.as_str()),
        ("train.trace", "0 up\n0.1 down\n0.7 up\n5 down\n6 up\n"),
        ("sweep.toml", sweep),
    ] {
        fs::write(place.path().join(name), text).expect("our directory");
    }
    Plan::load(&place.path().join("sweep.toml")).expect("a sound sweep")
}

/// What JSON makes of a bundle.
fn sent(plan: &Plan) -> Bundle {
    let bundle = plan.bundle(VERSION).expect("the files are there");
    let json = serde_json::to_string(&bundle).expect("texts are JSON");
    serde_json::from_str(&json).expect("what was written")
}

#[test]
fn a_bundle_has_all_that_its_runs_need() {
    let place = Place::new();
    let plan = sweep(&place);
    let bundle = sent(&plan);
    drop(place);
    let there = Plan::unbundle(&bundle, VERSION).expect("nothing is read from files");
    let run = Run {
        cell: 1,
        repetition: 0,
    };
    let finished = Finished::carry_out(&there, run).expect("a sound run");
    let own = plan.carry_out(run).expect("a sound run");
    assert_eq!(own.outages[0].start_s, 0.1);
    let line: serde_json::Value = serde_json::from_str(finished.line()).expect("JSON");
    assert_eq!(line["result"], serde_json::to_value(own).expect("JSON"));
    let back = Finished::from_line(finished.line()).expect("a line");
    assert_eq!((back.run, back.line()), (run, finished.line()));
}

#[test]
fn a_bundle_of_another_version_is_refused() {
    let place = Place::new();
    let bundle = sent(&sweep(&place));
    let refused = Plan::unbundle(&bundle, "9.9.9").expect_err("another version");
    assert!(
        matches!(refused, UnbundleError::Version { .. }),
        "{refused}"
    );
}

#[test]
fn a_trace_that_was_changed_meanwhile_is_noticed() {
    let place = Place::new();
    let plan = sweep(&place);
    fs::write(place.path().join("train.trace"), "0 up\n0.2 down\n0.7 up\n").expect("our directory");
    let refused = Plan::unbundle(&sent(&plan), VERSION).expect_err("another trace");
    assert!(matches!(refused, UnbundleError::Changed), "{refused}");
}

#[test]
fn half_a_line_is_no_run() {
    assert!(Finished::from_line("{\"cell\":0,\"repet").is_err());
}
