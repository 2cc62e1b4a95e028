//! Sweeps that were ended early, and journals that are not theirs.

use crate::fixture::{Place, VERSION, plan};
use outlast_sweep::{Journal, JournalError, Origin, Plan};
use std::fs;
use std::sync::Arc;

const SWEEP: &str = "[sweep]\nrepeat = 2\n\
    [sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n\"link.queue\" = [20, 40]\n";

#[track_caller]
fn refused(place: &Place, plan: &Plan) -> String {
    refused_from(place, plan, &Origin::SIMULATOR)
}

#[track_caller]
fn refused_from(place: &Place, plan: &Plan, origin: &Origin) -> String {
    let opened = Journal::open(&place.journal(), plan, origin, VERSION);
    let error = opened.expect_err("not this sweep's");
    error
        .to_string()
        .replace(&place.path().display().to_string(), "DIR")
}

/// Wherever the journal ends, the sweep goes on from its last whole line, to the same tables.
#[test]
fn an_interrupted_sweep_goes_on_from_wherever_it_was() {
    let plan = Arc::new(plan(SWEEP));
    let whole = Place::new();
    whole.complete(&plan, 2);
    let (journal, tables) = (fs::read(whole.journal()).expect("ours"), whole.tables());
    let line_ends = (0..journal.len()).filter(|&at| journal[at] == b'\n');
    let around = line_ends.flat_map(|at| [at, at + 1, at + 2]);
    let points = around
        .chain((0..journal.len()).step_by(211))
        .filter(|at| *at <= journal.len());
    for point in points {
        let place = Place::new();
        fs::write(place.journal(), &journal[..point]).expect("a file in our directory");
        let lines = journal[..point]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u64;
        let there = lines.saturating_sub(1);
        assert_eq!(place.complete(&plan, 1), 8 - there, "cut at {point}");
        assert!(place.tables() == tables, "cut at {point}");
    }
}

#[test]
fn a_finished_sweep_runs_nothing_again() {
    let plan = Arc::new(plan(SWEEP));
    let place = Place::new();
    assert_eq!(place.complete(&plan, 2), 8);
    let tables = place.tables();
    assert_eq!(place.complete(&plan, 2), 0);
    assert!(place.tables() == tables);
}

#[test]
fn more_repetitions_add_to_those_that_are_there() {
    let more = Arc::new(plan(&SWEEP.replace("repeat = 2", "repeat = 5")));
    let (place, at_once) = (Place::new(), Place::new());
    place.complete(&Arc::new(plan(SWEEP)), 2);
    assert_eq!(place.complete(&more, 2), 12);
    assert_eq!(at_once.complete(&more, 2), 20);
    assert!(place.tables() == at_once.tables());
    // And fewer leave some of them out.
    let fewer = Arc::new(plan(SWEEP));
    assert_eq!(place.complete(&fewer, 2), 0);
    at_once.complete(&Arc::new(plan(SWEEP)), 1);
    assert!(place.tables() == at_once.tables());
    assert_eq!(place.csv("runs.csv").lines().count(), 1 + 8);
}

#[test]
fn a_journal_of_another_sweep_is_refused() {
    let place = Place::new();
    drop(place.open(&plan(SWEEP)));
    let changed = plan(&SWEEP.replace("[20, 40]", "[20, 50]"));
    let before = fs::read(place.journal()).expect("ours");
    let message = "DIR/journal.jsonl holds runs of `test` as it was before it was changed";
    assert_eq!(refused(&place, &changed), message);
    let renamed = crate::fixture::PLAIN.to_owned() + SWEEP + "\"link.mtu\" = [1400]\n";
    let renamed = Plan::parse(&renamed, "other.toml", std::path::Path::new(".")).expect("sound");
    let message = "DIR/journal.jsonl holds runs of another sweep, `test`";
    assert_eq!(refused(&place, &renamed), message);
    let origin = Origin::SIMULATOR;
    let opened = Journal::open(&place.journal(), &plan(SWEEP), &origin, "9.9.9");
    let error = opened.expect_err("other version");
    assert!(
        error
            .to_string()
            .ends_with("holds runs of Outlast 0.0.0, and this is 9.9.9"),
        "{error}"
    );
    assert_eq!(
        fs::read(place.journal()).expect("ours"),
        before,
        "nothing was changed"
    );
}

#[test]
fn a_journal_of_another_world_or_kernel_is_refused() {
    let plan = plan(SWEEP);
    let [older, newer] = ["6.1.0", "6.12.0"].map(Origin::kernel);
    let place = Place::new();
    drop(place.open(&plan));
    let head = fs::read_to_string(place.journal()).expect("ours");
    assert!(
        !head.contains("world"),
        "as earlier versions have it: {head}"
    );
    let message = "DIR/journal.jsonl holds runs of the simulator, and this is Linux 6.1.0";
    assert_eq!(refused_from(&place, &plan, &older), message);
    let place = Place::new();
    let open = |origin| Journal::open(&place.journal(), &plan, origin, VERSION);
    drop(open(&older).expect("a new journal"));
    drop(open(&older).expect("the same kernel"));
    let message = "DIR/journal.jsonl holds runs of Linux 6.1.0, and this is Linux 6.12.0";
    assert_eq!(refused_from(&place, &plan, &newer), message);
    let message = "DIR/journal.jsonl holds runs of Linux 6.1.0, and this is the simulator";
    assert_eq!(refused(&place, &plan), message);
}

#[test]
fn what_is_no_journal_is_left_alone() {
    let place = Place::new();
    fs::write(place.journal(), "my thesis\n").expect("a file in our directory");
    assert_eq!(
        refused(&place, &plan(SWEEP)),
        "DIR/journal.jsonl holds runs of something else"
    );
    assert_eq!(fs::read(place.journal()).expect("ours"), b"my thesis\n");
}

#[test]
fn a_damaged_line_is_named() {
    let plan = Arc::new(plan(SWEEP));
    let place = Place::new();
    place.complete(&plan, 1);
    let text = fs::read_to_string(place.journal()).expect("ours");
    let damaged = text.replacen("\"cell\":", "\"cel\":", 1);
    fs::write(place.journal(), damaged).expect("ours");
    assert_eq!(refused(&place, &plan), "DIR/journal.jsonl:2: damaged");
}

#[test]
fn two_processes_do_not_share_a_journal() {
    let plan = plan(SWEEP);
    let place = Place::new();
    let first = place.open(&plan);
    // A second opening is another lock, as a second process would ask for.
    let second = Journal::open(&place.journal(), &plan, &Origin::SIMULATOR, VERSION);
    assert!(
        matches!(second, Err(JournalError::Busy { .. })),
        "{second:?}"
    );
    assert!(matches!(
        Journal::discard(&place.journal()),
        Err(JournalError::Busy { .. })
    ));
    drop(first);
    place.open(&plan);
}

#[test]
fn a_discarded_journal_is_forgotten() {
    let place = Place::new();
    drop(place.open(&plan(SWEEP)));
    Journal::discard(&place.journal()).expect("ours");
    let changed = plan(&SWEEP.replace("[20, 40]", "[20, 50]"));
    assert_eq!(place.open(&changed).done(), 0);
    Journal::discard(&place.path().join("none.jsonl")).expect("nothing to discard");
}
