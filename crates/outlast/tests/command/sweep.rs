//! `outlast sweep`: interrupted in every way and gone on with, its summaries, its refusals.

use crate::place::{Place, Said};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Child;

/// 80 runs of some milliseconds each.
const SWEEP: &str = r#"
[link]
rate = "10 Mbit/s"
delay = "5 ms"

[link.outages]
process = "exponential"
up = "1 s"
down = "2 s"

[workload]
kind = "bulk"
bytes = "1 MB"

[run]
deadline = "30 s"

[sweep]
repeat = 10

[sweep.grid]
"link.loss" = { from = 0.0, to = 0.03, count = 4 }
"outlast.gateway" = ["none", "hold"]
"#;
const RUNS: u64 = 80;

const TABLES: [&str; 6] = [
    "runs.csv",
    "runs.parquet",
    "cells.csv",
    "cells.parquet",
    "outages.csv",
    "outages.parquet",
];

/// A place with the sweep as `loss.toml`.
fn place() -> Place {
    let place = Place::new();
    place.file("loss.toml", SWEEP);
    place
}

fn tables(place: &Place) -> BTreeMap<&'static str, Vec<u8>> {
    let read = |name| fs::read(place.path().join("outlast-sweep/loss").join(name));
    TABLES
        .map(|name| (name, read(name).expect("the table was written")))
        .into()
}

/// Starts a sweep, and waits until `runs` more are in its journal, or all.
fn under_way(place: &Place, threads: &str, runs: usize) -> Child {
    let directory = place.path().join("outlast-sweep/loss");
    fs::create_dir_all(&directory).expect("the place is ours");
    let changes = inotify::init(CreateFlags::CLOEXEC).expect("inotify");
    let kinds = WatchFlags::CREATE | WatchFlags::MODIFY;
    inotify::add_watch(&changes, &directory, kinds).expect("the directory is there");
    let enough = (journalled(place) + runs).min(RUNS as usize);
    let child = place.start(["sweep", "loss.toml", "--outages", "--threads", threads]);
    let mut events = [0; 4_096];
    while journalled(place) < enough {
        rustix::io::read(&changes, &mut events).expect("an event");
    }
    child
}

/// Starts sweeps, each in a place of its own, until one is ended by `end` before its own end, after
/// `runs`; that place, and what it said. A busy machine may come to `end` one too late.
#[track_caller]
fn ended_early(threads: &str, runs: usize, end: impl Fn(&mut Child)) -> (Place, Said) {
    const TRIES: usize = 30;
    let ended = (0..TRIES).find_map(|_| {
        let place = place();
        let mut child = under_way(&place, threads, runs);
        end(&mut child);
        let said = Said::of(child.wait_with_output().expect("ends"));
        (said.code != Some(0)).then_some((place, said))
    });
    ended.expect("one that is ended before its end")
}

/// Finished runs in the journal, below its head.
fn journalled(place: &Place) -> usize {
    let journal = fs::read(place.path().join("outlast-sweep/loss/journal.jsonl"));
    let lines = |journal: Vec<u8>| journal.iter().filter(|byte| **byte == b'\n').count();
    journal.map_or(0, lines).saturating_sub(1)
}

/// Finishes a sweep; how many runs had been done before.
fn go_on(place: &Place) -> u64 {
    let said = place.run(["sweep", "loss.toml", "--outages"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let before = said
        .err
        .lines()
        .find_map(|line| line.strip_suffix(" runs were done before"));
    let before = before.and_then(|line| line.split(' ').next());
    before.map_or(0, |number| number.parse().expect("a number"))
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_tables() {
    let undisturbed = place();
    assert_eq!(go_on(&undisturbed), 0);
    let tables_at_once = tables(&undisturbed);
    for (threads, runs) in [("1", 0), ("1", 1), ("2", 16), ("5", 32)] {
        let kill = |child: &mut Child| child.kill().expect("it has not been waited for");
        let (place, said) = ended_early(threads, runs, kill);
        assert_eq!(said.code, None, "{said:?}");
        let before = go_on(&place);
        assert!(before >= runs as u64, "{before} after {runs} runs");
        assert!(
            tables(&place) == tables_at_once,
            "{threads} threads, {runs} runs"
        );
    }
}

#[test]
fn a_sweep_that_is_killed_again_and_again_comes_to_its_end() {
    let undisturbed = place();
    go_on(&undisturbed);
    let place = place();
    for _ in 0..4 {
        let before = journalled(&place);
        let mut child = under_way(&place, "2", 8);
        child.kill().expect("it has not been waited for");
        child.wait().expect("ends");
        assert!(journalled(&place) >= (before + 8).min(RUNS as usize));
    }
    assert!(go_on(&place) > 0);
    assert!(tables(&place) == tables(&undisturbed));
}

#[test]
fn ctrl_c_says_how_to_go_on() {
    let interrupt = |child: &mut Child| {
        kill_process(Pid::from_child(child), Signal::INT).expect("it is ours");
    };
    let (place, said) = ended_early("2", 8, interrupt);
    let err = &said.err;
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{err}");
    let last = err.lines().last().expect("a message");
    assert!(last.starts_with("error: interrupted: "), "{err}");
    assert!(
        last.contains("of 80 runs are done, and the same command goes on"),
        "{err}"
    );
    let before = go_on(&place);
    assert!((8..=RUNS).contains(&before), "{before}");
}

#[test]
fn cells_are_summed_up_in_a_table_and_in_json() {
    let place = place();
    let words = place.run(["sweep", "loss.toml", "--threads", "1"]);
    assert_eq!(words.code, Some(0), "{words:?}");
    let lines: Vec<_> = words.out.lines().collect();
    assert!(
        lines[0].starts_with("loss  gateway  Completed  Utilisation"),
        "{words:?}"
    );
    assert!(words.out.contains("\n0.01  hold     all 10"), "{words:?}");
    assert!(
        lines
            .last()
            .is_some_and(|line| line.starts_with("80 runs: ")),
        "{words:?}"
    );
    assert!(
        !place.path().join("outlast-sweep/loss/outages.csv").exists(),
        "not asked for"
    );

    // What was run stays; whoever asks in JSON gets nothing else on standard output.
    let json = place.run(["sweep", "loss.toml", "--json"]);
    assert_eq!(json.code, Some(0), "{json:?}");
    assert_eq!(json.err, "80 of 80 runs were done before\n");
    let document: Value = serde_json::from_str(&json.out).expect("one document");
    assert_eq!(document["sweep"], "loss");
    assert_eq!(
        (&document["runs"], &document["repeat"]),
        (&80.into(), &10.into())
    );
    let cells = document["cells"].as_array().expect("a list");
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[2]["parameters"]["link.loss"], 0.01);
    assert_eq!(cells[3]["parameters"]["outlast.gateway"], "hold");
    assert_eq!(cells[3]["runs"], 10);
    let (plain, held) = (&cells[0]["resume_median_s"], &cells[1]["resume_median_s"]);
    assert!(
        plain.as_f64() > held.as_f64(),
        "{plain} without, {held} with hold"
    );
}

#[test]
fn a_long_summary_is_cut_and_says_so() {
    let place = Place::new();
    let grid = "[sweep.grid]\n\"link.queue\" = { from = 1, to = 70, step = 1 }\n";
    let text = SWEEP
        .split("[sweep]")
        .next()
        .expect("a scenario")
        .replace("1 MB", "10 kB");
    place.file("queue.toml", &(text + grid));
    let said = place.run(["sweep", "queue.toml", "--out", "here"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.contains("\n10 more cells are in cells.csv.\n"),
        "{said:?}"
    );
    let csv = fs::read_to_string(place.path().join("here/cells.csv")).expect("written");
    assert_eq!(csv.lines().count(), 71);
}

#[test]
fn a_journal_of_another_sweep_is_refused_with_advice() {
    let place = place();
    place.file("small.toml", &SWEEP.replace("repeat = 10", "repeat = 1"));
    assert_eq!(
        place.run(["sweep", "small.toml", "--out", "x"]).code,
        Some(0)
    );
    place.file(
        "small.toml",
        &SWEEP
            .replace("0.03", "0.04")
            .replace("repeat = 10", "repeat = 1"),
    );
    let said = place.run(["sweep", "small.toml", "--out", "x"]);
    said.refuses(
        2,
        &[
            "x/journal.jsonl",
            "`small`",
            "before it was changed",
            "--out",
            "--fresh",
        ],
    );
    let said = place.run(["sweep", "small.toml", "--out", "x", "--fresh"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("done before"), "{said:?}");
}

#[test]
fn what_is_no_sweep_is_refused() {
    let place = place();
    place.run(["sweep"]).refuses(2, &["<FILE>"]);
    place
        .run(["sweep", "none.toml"])
        .refuses(2, &["none.toml", "No such file"]);
    place.file(
        "sim.toml",
        SWEEP.split("[sweep]").next().expect("a scenario"),
    );
    place
        .run(["sweep", "sim.toml"])
        .refuses(2, &["`[sweep]`", "outlast sim", "sim.toml:"]);
    place.file("typo.toml", &SWEEP.replace("\"hold\"]", "\"hodl\"]"));
    let said = place.run(["sweep", "typo.toml"]);
    said.refuses(
        2,
        &[
            "typo.toml:23",
            "`hodl`",
            "did you mean `hold`?",
            "4 of 8 cells",
        ],
    );
    assert!(
        !place.path().join("outlast-sweep").exists(),
        "nothing was begun"
    );
    place
        .run(["sweep", "loss.toml", "--threads", "0"])
        .refuses(2, &["--threads", "0"]);
    place.file("file", "something");
    place
        .run(["sweep", "loss.toml", "--out", "file"])
        .refuses(2, &["file", "--out"]);
}
