//! Figure 5: hand-off latency and packet losses, 0 s rendezvous delay.

use super::single::{self, Numbers};
use super::testbed::AT_ONCE;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_scenario::Direction;

/// Figure 5.
#[derive(Debug)]
pub struct Figure05;

const NUMBERS: Numbers = Numbers {
    figure: "figure 5",
    place: "section III.C, figure 5",
    rendezvous: AT_ONCE,
    pause_s: 0.8,
    wait_s: 0.65,
    timeouts: 1,
};

impl Figure for Figure05 {
    fn name(&self) -> &'static str {
        "figure-5"
    }

    fn title(&self) -> &'static str {
        "Hand-off latency and packet losses with 0 s rendezvous delay"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        single::jobs(extent, NUMBERS.rendezvous, Direction::Upload)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        NUMBERS.part(
            runs,
            "Figure 5 of the paper: one hand-off, 0 s rendezvous delay".to_owned(),
        )
    }
}
