//! Which cells a sweep file has.

use crate::fixture::{PLAIN, cell, plan, plan_of};
use outlast_scenario::Mechanism;
use outlast_sweep::{Datum, Kind, Plan, Run};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tempfile::TempDir;

fn numbers(plan: &Plan, column: usize) -> Vec<f64> {
    let number = |index| match cell(plan, index)[column] {
        Datum::Number(number) => number,
        Datum::Integer(number) => number as f64,
        ref other => panic!("{other:?} is no number"),
    };
    (0..plan.cells()).map(number).collect()
}

#[test]
fn the_last_key_of_the_file_changes_fastest() {
    let plan = plan(
        "[sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n\"link.delay\" = [\"2 ms\", \"20 ms\"]\n",
    );
    let columns: Vec<_> = plan
        .columns()
        .into_iter()
        .map(|column| column.name)
        .collect();
    assert_eq!(columns, ["outlast.gateway", "link.delay_s"]);
    assert_eq!(plan.headings(), ["gateway", "delay"]);
    let text = |text: &str| Datum::Text(text.to_owned());
    let expected = [
        [text("none"), Datum::Number(0.002)],
        [text("none"), Datum::Number(0.02)],
        [text("hold"), Datum::Number(0.002)],
        [text("hold"), Datum::Number(0.02)],
    ];
    for (index, expected) in (0..).zip(expected) {
        assert_eq!(cell(&plan, index), expected);
    }
}

#[test]
fn the_scenario_of_a_cell_has_its_values() {
    let plan = plan(
        "[sweep.grid]\n\"link.uplink.queue\" = [7, 9]\n\"outlast.mobile\" = [\"none\", \"hold\"]\n",
    );
    let scenario = plan
        .scenario(Run {
            cell: 3,
            repetition: 0,
        })
        .expect("sound");
    assert_eq!(
        (scenario.link.uplink.queue, scenario.outlast.mobile),
        (9, Mechanism::Hold)
    );
    assert_ne!(scenario.link.downlink.queue, 9);
}

#[test]
fn keys_may_be_written_in_three_ways() {
    let quoted = plan("[sweep.grid]\n\"link.outages.up\" = [\"1 s\", \"2 s\"]\n");
    for other in [
        "[sweep.grid]\nlink.outages.up = [\"1 s\", \"2 s\"]\n",
        "[sweep.grid.link.outages]\nup = [\"1 s\", \"2 s\"]\n",
        "[sweep]\ngrid = { \"link.outages\" = { up = [\"1 s\", \"2 s\"] } }\n",
    ] {
        let other = plan(other);
        assert_eq!(other.fingerprint(), quoted.fingerprint());
        assert_eq!(other.columns(), quoted.columns());
    }
}

#[test]
fn zipped_keys_move_together() {
    let plan = plan(
        "[[sweep.zip]]\n\"link.rate\" = [\"1 Mbit/s\", \"10 Mbit/s\", \"unlimited\"]\n\
         \"link.queue\" = [20, 200, 20]\n\
         [sweep.grid]\n\"stack.sack\" = [true, false]\n",
    );
    assert_eq!((plan.cells(), plan.grid_columns()), (6, 3));
    let cells = (0..6).map(|index| cell(&plan, index));
    let (sack, no_sack) = (Datum::Flag(true), Datum::Flag(false));
    let expected = [
        [Datum::Integer(1_000_000), Datum::Integer(20), sack.clone()],
        [
            Datum::Integer(1_000_000),
            Datum::Integer(20),
            no_sack.clone(),
        ],
        [
            Datum::Integer(10_000_000),
            Datum::Integer(200),
            sack.clone(),
        ],
        [
            Datum::Integer(10_000_000),
            Datum::Integer(200),
            no_sack.clone(),
        ],
        [Datum::Missing, Datum::Integer(20), sack],
        [Datum::Missing, Datum::Integer(20), no_sack],
    ];
    assert!(cells.eq(expected));
}

#[test]
fn values_that_contradict_alone_may_fit_together() {
    let text = PLAIN.replace(
        "[link.outages]\nprocess = \"exponential\"\nup = \"300 ms\"\ndown = \"400 ms\"\n",
        "",
    );
    let plan = plan_of(&format!(
        "{text}\n[[sweep.zip]]\n\"link.outages.process\" = [\"periodic\", \"normal\"]\n\
         \"link.outages.up\" = [\"1 s\", \"2 s\"]\n\"link.outages.down\" = [\"3 s\", \"4 s\"]\n"
    ));
    assert_eq!(plan.cells(), 2);
}

#[test]
fn ranges_are_even_and_hold_their_ends() {
    let of = |range: &str| numbers(&plan(&format!("[sweep.grid]\n{range}\n")), 0);
    assert_eq!(
        of("\"link.delay\" = { from = \"0 s\", to = \"1 s\", count = 5 }"),
        [0.0, 0.25, 0.5, 0.75, 1.0]
    );
    assert_eq!(
        of("\"link.delay\" = { from = \"1 ms\", to = \"1 s\", count = 4, scale = \"log\" }"),
        [0.001, 0.01, 0.1, 1.0]
    );
    assert_eq!(
        of("\"link.loss\" = { from = 0.0, to = 0.35, step = 0.1 }"),
        [0.0, 0.1, 0.2, 0.3]
    );
    assert_eq!(
        of("\"link.loss\" = { from = 0, to = 0.3, step = 0.1 }"),
        [0.0, 0.1, 0.2, 0.3]
    );
    assert_eq!(
        of("\"link.queue\" = { from = 10, to = 1000, count = 3, scale = \"log\" }"),
        [10.0, 100.0, 1000.0]
    );
    assert_eq!(
        of("\"workload.bytes\" = { from = \"1 kB\", to = \"3 kB\", step = \"1 kB\" }"),
        [1e3, 2e3, 3e3]
    );
    assert_eq!(
        of("\"link.rate\" = { from = \"1 Mbit/s\", to = \"2 Mbit/s\", count = 2 }"),
        [1e6, 2e6]
    );
}

#[test]
fn columns_name_their_unit() {
    let plan = plan(
        "[sweep.grid]\n\"link.rate\" = [\"1 Mbit/s\"]\n\"workload.bytes\" = [\"1 kB\"]\n\
         \"link.loss\" = [0.0]\n\"stack.ip\" = [\"ipv6\"]\n\"outlast.user_timeout\" = [\"off\"]\n",
    );
    let columns: Vec<_> = plan
        .columns()
        .into_iter()
        .map(|c| (c.name, c.kind))
        .collect();
    let expected = [
        ("link.rate_bits_per_s", Kind::Integer),
        ("workload.bytes", Kind::Integer),
        ("link.loss", Kind::Number),
        ("stack.ip", Kind::Text),
        ("outlast.user_timeout_s", Kind::Number),
    ];
    assert_eq!(
        columns,
        expected.map(|(name, kind)| (name.to_owned(), kind))
    );
}

#[test]
fn headings_that_would_be_equal_are_whole_paths() {
    let plan = plan(
        "[sweep.grid]\n\"link.uplink.queue\" = [7]\n\"link.downlink.queue\" = [9]\n\"link.loss\" = [0]\n",
    );
    let expected = ["link.uplink.queue", "link.downlink.queue", "loss"];
    assert_eq!(plan.headings(), expected);
}

#[test]
fn the_scenario_may_be_another_file() {
    let place = TempDir::new().expect("a temporary directory");
    let directory = place.path().join("scenarios");
    std::fs::create_dir(&directory).expect("a directory in ours");
    std::fs::write(directory.join("plain.toml"), PLAIN).expect("a file in ours");
    let sweep =
        "[sweep]\nscenario = \"scenarios/plain.toml\"\n[sweep.grid]\n\"link.queue\" = [7]\n";
    let file = place.path().join("queue.toml");
    std::fs::write(&file, sweep).expect("a file in ours");
    let apart = Plan::load(&file).expect("a sound sweep");
    assert_eq!((apart.name(), apart.cells()), ("queue", 1));
    // Where it is written does not matter to the result.
    let together = plan("[sweep.grid]\n\"link.queue\" = [7]\n");
    assert_eq!(apart.fingerprint(), together.fingerprint());
}

#[test]
fn a_fingerprint_tells_what_makes_results_differ() {
    let sweep = "[sweep]\nrepeat = 3\n[sweep.grid]\n\"link.queue\" = [7, 9]\n\
        [sweep.sample]\n\"link.delay\" = { distribution = \"uniform\", from = \"1 ms\", to = \"2 ms\" }\n";
    let known = plan(sweep);
    let same = [
        sweep.replace("repeat = 3", "repeat = 4 # more"),
        sweep.replace("[7, 9]", "[ 7, 9, ]"),
    ];
    for sweep in same {
        assert_eq!(plan(&sweep).fingerprint(), known.fingerprint(), "{sweep}");
    }
    let different = [
        sweep.replace("repeat = 3", "seeds = \"independent\""),
        sweep.replace("[7, 9]", "[9, 7]"),
        sweep.replace("link.queue", "link.uplink.queue"),
        sweep.replace("2 ms", "3 ms"),
        sweep.replace("\"uniform\"", "\"log-uniform\""),
        format!("{sweep}[link.uplink]\nqueue = 30\n"),
    ];
    for sweep in different {
        assert_ne!(plan(&sweep).fingerprint(), known.fingerprint(), "{sweep}");
    }
}

/// Distinct values of three kinds of keys.
fn lists() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, bool)> {
    let list = || prop::collection::btree_set(1..1_000_u32, 1..6);
    let list = move || list().prop_map(|set| set.into_iter().collect::<Vec<_>>());
    (list(), list().prop_shuffle(), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every combination is a cell, once, in the order in which nested loops would meet them.
    #[test]
    fn a_grid_is_its_lists_product((queues, delays, is_zipped) in lists()) {
        let written: Vec<_> = delays.iter().map(|delay| format!("\"{delay} ms\"")).collect();
        let mut sweep = format!("[sweep.grid]\n\"link.queue\" = {queues:?}\n\"link.delay\" = [{}]\n",
            written.join(", "));
        if is_zipped {
            sweep.push_str("[[sweep.zip]]\n\"link.mtu\" = [600, 700]\n\"stack.retries\" = [3, 4]\n");
        }
        let plan = plan(&sweep);
        let mut expected = Vec::new();
        for queue in &queues {
            for delay in &delays {
                let pair = [Datum::from(*queue), Datum::Number(f64::from(*delay) / 1e3)];
                if is_zipped {
                    for (mtu, retries) in [(600_u32, 3_u32), (700, 4)] {
                        let mut row = pair.to_vec();
                        row.extend([mtu.into(), retries.into()]);
                        expected.push(row);
                    }
                } else {
                    expected.push(pair.to_vec());
                }
            }
        }
        let cells: Vec<_> = (0..plan.cells()).map(|index| cell(&plan, index)).collect();
        prop_assert_eq!(cells, expected);
    }

    /// Whatever the shape, every run has its turn once, and all cells come before any comes again.
    #[test]
    fn turns_are_a_permutation(cells in 1..60_usize, repeat in 1..5_u64) {
        let queues: Vec<_> = (1..=cells).collect();
        let plan = plan(&format!("[sweep]\nrepeat = {repeat}\n[sweep.grid]\n\"link.queue\" = {queues:?}\n"));
        let turns: Vec<_> = (0..plan.runs()).map(|turn| plan.turn(turn)).collect();
        let places: BTreeSet<_> = turns.iter().map(|run| plan.index(*run).expect("its own")).collect();
        prop_assert_eq!(places.len() as u64, plan.runs());
        prop_assert!(turns.is_sorted_by_key(|run| run.repetition));
        for index in 0..plan.runs() {
            prop_assert_eq!(plan.index(plan.run(index)), Some(index));
        }
    }

    /// A range has as many values as asked for, upwards, from end to end.
    #[test]
    fn a_range_is_as_long_as_asked_for(
        low in 1..1_000_u64, more in 1_000..1_000_000_u64, count in 2..40_u32, is_log in any::<bool>(),
    ) {
        let scale = if is_log { "log" } else { "linear" };
        let high = low + more;
        let plan = plan(&format!("[sweep.grid]\n\"link.delay\" = \
            {{ from = \"{low} us\", to = \"{high} us\", count = {count}, scale = \"{scale}\" }}\n"));
        let values = numbers(&plan, 0);
        prop_assert_eq!(values.len(), count as usize);
        prop_assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        prop_assert_eq!((values[0], values[values.len() - 1]), (low as f64 / 1e6, high as f64 / 1e6));
    }
}
