//! Figure 8: a trace of re-receiving once (level 1).

use super::testbed::Testbed;
use super::{claim, traces};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 8.
#[derive(Debug)]
pub struct Figure08 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure08 {
    fn name(&self) -> &'static str {
        "figure-8"
    }

    fn title(&self) -> &'static str {
        "Trace of re-receiving once (level 1)"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::SmartLink1)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let claim = claim(
            "section 5.4, figure 8",
            "Level 1: TCP does not restart immediately (share of outages; 100 ms and less is immediately).",
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
            Mechanism::SmartLink1,
            "Figure 8 of the paper: re-receive once",
            "Level 1: the newest ACK that came over the link is received once more on reconnection (plus mark). Compare figure 8 of the paper.",
        )
        .claims(vec![claim.judge(traces::waits(self.bed, runs, Mechanism::SmartLink1))])
    }
}
