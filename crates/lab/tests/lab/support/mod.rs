//! What the tests of the lab share.
#![allow(dead_code, reason = "each test program uses a part")]
#![expect(clippy::print_stderr, reason = "a run that was disturbed says so")]

use outlast_base::time::Duration;
use outlast_lab::{Cancel, Lab, RunReport};
use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
pub(crate) use outlast_skip::skip;
use std::path::Path;

/// The scenario that `text` describes.
pub(crate) fn scenario(text: &str) -> Scenario {
    match Scenario::parse(text, "test.toml", Path::new(".")) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{}", error.render(100)),
    }
}

/// The text of one of the repository's scenarios.
pub(crate) fn example(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    std::fs::read_to_string(directory.join(name)).expect("the example")
}

/// The transfer was completed, byte for byte.
#[track_caller]
pub(crate) fn assert_done(result: &RunResult) {
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );
}

/// Runs `text`; where this machine lacks what a lab needs, says so and answers `None`: the test
/// is to return.
///
/// Root has it, and so has an ordinary user below `unshare --user --map-root-user`.
pub(crate) fn run(text: &str) -> Option<RunReport> {
    run_lab(&Lab::new(&scenario(text), 0).expect("the lab has it"))
}

/// Runs a lab that was made before, as [`run`] does.
pub(crate) fn run_lab(lab: &Lab) -> Option<RunReport> {
    match lab.run(&Cancel::new().expect("eventfd"), |_| {}) {
        Ok(report) => {
            for warning in &report.warnings {
                eprintln!("warning: {warning}");
            }
            Some(report)
        }
        Err(error) if error.is_missing_capability() => {
            skip(error);
            None
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

/// The result of `text` in the simulator.
pub(crate) fn in_sim(text: &str) -> RunResult {
    let report = outlast_sim::run(&scenario(text), 0).expect("the simulator has it");
    report.result
}

/// Whether the machine was so busy during a run that times in it say little: a link that is later
/// than this may make a sender time out.
pub(crate) fn was_late(report: &RunReport) -> bool {
    report.effort.worst_delay > Duration::from_millis(50)
}
