//! Figure 9: a trace of re-receiving five times (level 2).

use super::testbed::Testbed;
use super::{claim, traces};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 9.
#[derive(Debug)]
pub struct Figure09 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure09 {
    fn name(&self) -> &'static str {
        "figure-9"
    }

    fn title(&self) -> &'static str {
        "Trace of re-receiving five times (level 2)"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::SmartLink2)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let claim = claim(
            "section 5.4, figure 9",
            "Level 2: TCP does not restart immediately (share of outages; 100 ms and less is immediately).",
            Unit::Share,
            Published::AtLeast(1.0),
            Tolerance::Exact,
        );
        let claim = self.bed.departing(
            claim,
            "while it recovers, today's Linux looks at every ACK for what to retransmit, at a repeated \
             one too; after the other outages it waits as the paper says.",
        );
        let claim = self.bed.departing_in_sim(claim, traces::ACKNOWLEDGED_AGAIN);
        traces::part(
            self.bed,
            runs,
            Mechanism::SmartLink2,
            "Figure 9 of the paper: re-receive five times",
            "Level 2: the same ACK is received five times more (plus marks, one upon the other). Compare figure 9 of the paper.",
        )
        .claims(vec![claim.judge(traces::waits(self.bed, runs, Mechanism::SmartLink2))])
    }
}
