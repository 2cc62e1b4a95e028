//! Figure 6: hand-off latency and packet losses, 1 s rendezvous delay.

use super::single::{self, Numbers};
use super::testbed::A_SECOND;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_scenario::Direction;

/// Figure 6.
#[derive(Debug)]
pub struct Figure06;

const NUMBERS: Numbers = Numbers {
    figure: "figure 6",
    place: "section III.C, figure 6, and section IV.D for the pause",
    rendezvous: A_SECOND,
    pause_s: 2.8,
    wait_s: 1.65,
    timeouts: 2,
};

impl Figure for Figure06 {
    fn name(&self) -> &'static str {
        "figure-6"
    }

    fn title(&self) -> &'static str {
        "Hand-off latency and packet losses with 1 s rendezvous delay"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        single::jobs(extent, NUMBERS.rendezvous, Direction::Upload)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        NUMBERS.part(
            runs,
            "Figure 6 of the paper: one hand-off, 1 s rendezvous delay".to_owned(),
        )
    }
}
