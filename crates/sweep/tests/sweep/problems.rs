//! What users read when a sweep file is faulty: place, value, what is allowed, remedy.

use crate::fixture::PLAIN;
use insta::assert_snapshot;
use outlast_sweep::Plan;
use std::path::Path;
use tempfile::TempDir;

/// All that is wrong with a sweep of the plain scenario.
#[track_caller]
fn problems(sweep: &str) -> String {
    problems_of(&format!("{PLAIN}\n{sweep}\n"))
}

#[track_caller]
fn problems_of(text: &str) -> String {
    match Plan::parse(text, "test.toml", Path::new(".")) {
        Ok(plan) => panic!("no problem found: {plan:#?}"),
        Err(error) => error.render(80),
    }
}

#[test]
fn no_sweep() {
    assert_snapshot!(problems(""));
}

#[test]
fn unknown_keys_of_the_sweep() {
    assert_snapshot!(problems("[sweep]\nrepeats = 3\n[sweep.gird]\nx = 1"));
}

#[test]
fn unknown_keys_of_the_scenario() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"link.dealy\" = [\"2 ms\"]\n\"delay\" = [\"2 ms\"]\nlnk.delay = [\"2 ms\"]"
    ));
}

#[test]
fn keys_that_cannot_vary() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"run.repeat\" = [1, 2]\nname = [\"a\"]\n\"link.outages\" = []\n\"workload.server\" = [\"x\"]"
    ));
}

#[test]
fn what_is_no_list() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"link.delay\" = \"2 ms\"\n\"link.queue\" = []"
    ));
}

#[test]
fn a_value_that_the_scenario_refuses() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"link.delay\" = [\"2 ms\", \"20 parsec\"]\n\"outlast.gateway\" = [\"none\", \"hodl\"]"
    ));
}

#[test]
fn values_that_do_not_fit_each_other() {
    let text = PLAIN.replace(
        "kind = \"bulk\"\nbytes = \"300 kB\"",
        "kind = \"interactive\"",
    );
    assert_snapshot!(problems_of(&format!(
        "{text}\n[sweep.grid]\n\"workload.duration\" = [\"5 s\", \"10 s\"]\n\"workload.interval\" = [\"1 s\", \"8 s\"]\n"
    )));
}

#[test]
fn a_scenario_that_is_wrong_by_itself() {
    let text = PLAIN.replace("\"10 Mbit/s\"", "10");
    assert_snapshot!(problems_of(&format!(
        "{text}\n[sweep.grid]\n\"link.delay\" = [\"2 ms\", \"20 ms\"]\n"
    )));
}

#[test]
fn what_cannot_be_simulated() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"stack.profile\" = [\"linux-6\", \"netbsd-1997\"]\n\"stack.congestion\" = [\"cubic\"]"
    ));
    let text = PLAIN.replace(
        "kind = \"bulk\"\nbytes = \"300 kB\"",
        "kind = \"command\"\nserver = \"true\"\nclient = \"true\"\nready = 80",
    );
    assert_snapshot!(problems_of(&format!("{text}\n[sweep]\nrepeat = 2\n")));
}

#[test]
fn keys_that_vary_twice() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\"link.delay\" = [\"2 ms\"]\nlink.queue = [7, 7]\n\
         [sweep.sample]\n\"link.delay\" = { distribution = \"uniform\", from = \"2 ms\", to = \"3 ms\" }"
    ));
}

#[test]
fn zips_of_different_lengths() {
    assert_snapshot!(problems(
        "[[sweep.zip]]\n\"link.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\n\"link.queue\" = [20, 30, 40]\n\
         [[sweep.zip]]\n"
    ));
}

#[test]
fn faulty_ranges() {
    assert_snapshot!(problems(
        "[sweep.grid]\n\
         \"link.delay\" = { from = \"2 ms\", to = \"1 ms\", count = 3 }\n\
         \"link.rate\" = { from = 5, to = \"1 Gbit/s\", count = 3 }\n\
         \"link.loss\" = { from = 0.1, to = 1.5, count = 3 }\n\
         \"link.queue\" = { from = 1, to = 3, count = 9 }\n\
         \"link.mtu\" = { from = 600, to = 1500 }\n\
         \"link.reorder\" = { from = 0.0, to = 0.1, count = 3, scale = \"log\" }\n\
         \"link.duplicate\" = { from = 0.0, to = 0.1, count = 1 }\n\
         \"link.outages.up\" = { from = \"1 s\", too = \"2 s\", count = 2 }\n\
         \"link.outages.down\" = { from = \"1 s\", to = \"2 s\", step = \"0 s\" }\n\
         \"stack.sack\" = { from = false, to = true, count = 2 }"
    ));
}

#[test]
fn faulty_distributions() {
    assert_snapshot!(problems(
        "[sweep.sample]\n\
         \"link.delay\" = [\"2 ms\"]\n\
         \"link.rate\" = { distribution = \"gauss\", from = \"1 Mbit/s\", to = \"2 Mbit/s\" }\n\
         \"link.queue\" = { from = 1, to = 30 }\n\
         \"link.loss\" = { distribution = \"log-uniform\", from = 0.0, to = 0.1 }\n\
         \"link.outages.up\" = { distribution = \"normal\", mean = \"2 s\" }\n\
         \"link.outages.down\" = { distribution = \"normal\", mean = \"2 s\", deviation = \"1 s\", from = \"3 s\" }\n\
         \"outlast.gateway\" = { distribution = \"uniform\", from = 1, to = 2 }\n\
         \"run.seed\" = { distribution = \"uniform\", from = 1, to = 2 }"
    ));
}

#[test]
fn too_many_runs() {
    let range = "{ from = \"1 ms\", to = \"1 s\", count = 10000 }";
    assert_snapshot!(problems(&format!(
        "[sweep]\nrepeat = 20\n[sweep.grid]\n\"link.delay\" = {range}\n\"link.outages.up\" = {range}"
    )));
    let range = "{ from = \"1 ms\", to = \"1 s\", count = 100000 }";
    assert_snapshot!(problems(&format!(
        "[sweep.grid]\n\"link.uplink.delay\" = {range}\n\"link.outages.up\" = {range}\n\
         \"link.downlink.delay\" = {range}\n\"link.outages.down\" = {range}"
    )));
}

#[test]
fn too_many_repetitions() {
    assert_snapshot!(problems("[sweep]\nrepeat = 10000001"));
    assert_snapshot!(problems("[sweep]\nrepeat = 0\nseeds = \"same\""));
}

#[test]
fn a_scenario_here_and_there() {
    assert_snapshot!(problems("[sweep]\nscenario = \"other.toml\""));
    assert_snapshot!(problems_of("[sweep]\nscenario = \"other.toml\""));
    assert_snapshot!(problems_of("[sweep]\nscenario = 3\n"));
}

#[test]
fn what_is_wrong_in_the_other_file_is_shown_there() {
    let place = TempDir::new().expect("a temporary directory");
    let base = place.path().join("base.toml");
    std::fs::write(&base, PLAIN.replace("\"300 kB\"", "\"300 s\"")).expect("a file of ours");
    let sweep = "[sweep]\nscenario = \"base.toml\"\n[sweep.grid]\n\"link.mtu\" = [500]\n";
    let error = Plan::parse(sweep, "test.toml", place.path()).expect_err("faulty");
    let text = error
        .render(80)
        .replace(&place.path().display().to_string(), "DIR");
    assert_snapshot!(text);
}

#[test]
fn what_is_no_toml() {
    assert_snapshot!(problems("[sweep.grid]\n\"link.delay\" = [\"2 ms\", 20 ms]"));
}

/// A file with many mistakes is read to the end, and shows a part of them.
#[test]
fn the_first_twenty_problems_are_shown() {
    let values: Vec<_> = (1..=40).map(|n| format!("\"{n} fortnights\"")).collect();
    let text = problems(&format!(
        "[sweep.grid]\n\"link.delay\" = [{}]",
        values.join(", ")
    ));
    assert!(text.starts_with("test.toml has 20 problems"), "{text}");
}
