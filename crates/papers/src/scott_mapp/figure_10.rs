//! Figure 10: a trace of re-sending once (level 3).

use super::testbed::Testbed;
use super::{claim, traces};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 10.
#[derive(Debug)]
pub struct Figure10 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure10 {
    fn name(&self) -> &'static str {
        "figure-10"
    }

    fn title(&self) -> &'static str {
        "Trace of re-sending once (level 3)"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::SmartLink3)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let claim = claim(
            "section 5.4, figure 10",
            "Level 3: TCP restarts immediately (median time to the sender's next segment).",
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
            Mechanism::SmartLink3,
            "Figure 10 of the paper: re-send once",
            "Level 3: one kept segment is sent again on reconnection (circle). Compare figure 10 of the paper.",
        )
        .claims(vec![claim.judge(traces::restart(self.bed, runs, Mechanism::SmartLink3))])
    }
}
