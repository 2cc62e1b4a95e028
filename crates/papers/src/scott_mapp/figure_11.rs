//! Figure 11: a trace of re-sending five times (level 4).

use super::testbed::Testbed;
use super::{claim, traces};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 11.
#[derive(Debug)]
pub struct Figure11 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure11 {
    fn name(&self) -> &'static str {
        "figure-11"
    }

    fn title(&self) -> &'static str {
        "Trace of re-sending five times (level 4)"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::SmartLink4)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let claim = claim(
            "section 5.4, figure 11",
            "Level 4: TCP restarts immediately (median time to the sender's next segment).",
            Unit::Seconds,
            Published::AtMost(traces::IMMEDIATELY_S),
            Tolerance::Exact,
        );
        let claim = self.bed.departing(
            claim,
            "where the kept packet is an early copy, its old timestamp makes a modern sender take its timeout for spurious: it undoes it and waits for another.",
        );
        traces::part(
            self.bed,
            runs,
            Mechanism::SmartLink4,
            "Figure 11 of the paper: re-send five times",
            "Level 4: the same segment is sent five times (circles, one upon the other). Compare figure 11 of the paper.",
        )
        .claims(vec![claim.judge(traces::restart(self.bed, runs, Mechanism::SmartLink4))])
    }
}
