//! Which runs share their chance, and what is drawn.

use crate::fixture::{PLAIN, plan};
use outlast_scenario::result::RunResult;
use outlast_sweep::{Datum, Plan, Run};
use std::collections::BTreeSet;

const GRID: &str = "[sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n";

fn runs(plan: &Plan) -> impl Iterator<Item = Run> {
    (0..plan.runs()).map(|index| plan.run(index))
}

fn drawn(plan: &Plan, run: Run) -> f64 {
    match plan.parameters(run).last() {
        Some(Datum::Number(number)) => *number,
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn mechanisms_are_compared_on_the_same_outages() {
    let plan = plan(&format!("[sweep]\nrepeat = 3\n{GRID}"));
    let mut outages = 0;
    for repetition in 0..3 {
        let [plain, held] = [0, 1].map(|cell| {
            let run = Run { cell, repetition };
            assert_eq!(plan.seed_of(run), 1 + repetition);
            plan.carry_out(run).expect("sound")
        });
        let starts = |run: RunResult| {
            let outages = run.outages.into_iter();
            outages.map(|outage| outage.start_s).collect::<Vec<_>>()
        };
        assert_eq!(plain.settings.seed, 1 + repetition);
        let (plain, held) = (starts(plain), starts(held));
        let shared = plain.len().min(held.len());
        assert_eq!(plain[..shared], held[..shared]);
        outages += shared;
    }
    assert!(outages > 0, "runs without outages show nothing");
}

#[test]
fn independent_runs_have_seeds_of_their_own() {
    let plan = plan(&format!(
        "[sweep]\nrepeat = 50\nseeds = \"independent\"\n{GRID}"
    ));
    let seeds: BTreeSet<u64> = runs(&plan).map(|run| plan.seed_of(run)).collect();
    assert_eq!(seeds.len(), 100);
    // A scenario file can say each of them.
    assert!(seeds.iter().all(|seed| i64::try_from(*seed).is_ok()));
}

#[test]
fn a_run_is_what_the_simulator_makes_of_its_scenario() {
    let sweep = plan(&format!("[sweep]\nrepeat = 2\n{GRID}"));
    let run = Run {
        cell: 1,
        repetition: 1,
    };
    let text = format!("{PLAIN}seed = 2\n[outlast]\ngateway = \"hold\"\n");
    let scenario = outlast_scenario::Scenario::parse(&text, "x.toml", std::path::Path::new("."));
    let alone = outlast_sim::run(&scenario.expect("sound"), 0).expect("simulable");
    assert_eq!(sweep.carry_out(run).expect("sound"), alone.result);
}

#[test]
fn the_scenarios_repetitions_are_the_default() {
    let text = PLAIN.replace("[run]\n", "[run]\nrepeat = 7\nseed = 40\n");
    let plan = crate::fixture::plan_of(&format!("{text}[sweep]\n"));
    assert_eq!((plan.cells(), plan.repeat()), (1, 7));
    assert_eq!(plan.seed_of(plan.run(6)), 46);
}

#[test]
fn seeds_may_be_an_axis() {
    let plan = plan("[sweep.grid]\n\"run.seed\" = [5, 500]\n[sweep]\nrepeat = 2\n");
    let seeds: Vec<u64> = runs(&plan).map(|run| plan.seed_of(run)).collect();
    assert_eq!(seeds, [5, 6, 500, 501]);
}

#[test]
fn what_is_drawn_is_the_same_in_every_cell_and_lies_in_its_range() {
    for law in [
        "distribution = \"uniform\", from = \"1 ms\", to = \"400 ms\"",
        "distribution = \"log-uniform\", from = \"1 ms\", to = \"400 ms\"",
        "distribution = \"normal\", mean = \"300 ms\", deviation = \"200 ms\", from = \"1 ms\", to = \"400 ms\"",
    ] {
        let plan = plan(&format!(
            "[sweep]\nrepeat = 300\n{GRID}[sweep.sample]\n\"link.delay\" = {{ {law} }}\n"
        ));
        let values: Vec<f64> = runs(&plan).map(|run| drawn(&plan, run)).collect();
        assert_eq!(values[..300], values[300..], "common seeds");
        let distinct: BTreeSet<_> = values.iter().map(|value| value.to_bits()).collect();
        assert_eq!(distinct.len(), 300);
        assert!(
            values.iter().all(|value| (0.001..=0.4).contains(value)),
            "{law}"
        );
        let run = Run {
            cell: 1,
            repetition: 17,
        };
        let delay = plan.scenario(run).expect("sound").link.downlink.delay;
        assert_eq!(delay.as_secs_f64(), drawn(&plan, run));
    }
}

/// Means and spreads of 2000 values, five standard errors wide.
#[test]
fn distributions_have_their_moments() {
    let moments = |law: &str, shape: fn(f64) -> f64| {
        let plan = plan(&format!(
            "[sweep]\nrepeat = 2000\n[sweep.sample]\n\"link.delay\" = {{ {law} }}\n"
        ));
        let values: Vec<f64> = runs(&plan).map(|run| shape(drawn(&plan, run))).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / count;
        (mean, variance.sqrt())
    };
    let close = |(mean, deviation): (f64, f64), expected: (f64, f64)| {
        let error = 5.0 * expected.1 / 2000_f64.sqrt();
        assert!(
            (mean - expected.0).abs() < error,
            "{mean} is not {}",
            expected.0
        );
        assert!(
            (deviation - expected.1).abs() < error,
            "{deviation} is not {}",
            expected.1
        );
    };
    let twelfth = 1.0 / 12_f64.sqrt();
    let uniform = "distribution = \"uniform\", from = \"1 s\", to = \"3 s\"";
    close(moments(uniform, |value| value), (2.0, 2.0 * twelfth));
    let log = "distribution = \"log-uniform\", from = \"1 ms\", to = \"1 s\"";
    close(moments(log, f64::log10), (-1.5, 3.0 * twelfth));
    let normal = "distribution = \"normal\", mean = \"10 s\", deviation = \"1 s\"";
    close(moments(normal, |value| value), (10.0, 1.0));
}

#[test]
fn keys_are_drawn_independently() {
    let sweep = |keys: &[&str]| {
        let law = "{ distribution = \"uniform\", from = \"1 s\", to = \"3 s\" }";
        let lines: Vec<_> = keys
            .iter()
            .map(|key| format!("\"{key}\" = {law}\n"))
            .collect();
        plan(&format!(
            "[sweep]\nrepeat = 20\n[sweep.sample]\n{}",
            lines.concat()
        ))
    };
    let (alone, both) = (
        sweep(&["link.delay"]),
        sweep(&["link.outages.up", "link.delay"]),
    );
    for run in runs(&alone) {
        let values = both.parameters(run);
        assert_eq!(
            alone.parameters(run),
            values[1..],
            "another key changes nothing"
        );
        assert_ne!(values[0], values[1]);
    }
}
