//! Figure 1: a trace of unaided TCP.

use super::testbed::Testbed;
use super::{claim, traces};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 1.
#[derive(Debug)]
pub struct Figure01 {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for Figure01 {
    fn name(&self) -> &'static str {
        "figure-1"
    }

    fn title(&self) -> &'static str {
        "Trace of unaided TCP"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::None)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let claim = claim(
            "section 2, figure 1",
            "After an outage unaided TCP leaves more than 1.5 s of connected time unused (median here).",
            Unit::Seconds,
            Published::AtLeast(1.5),
            Tolerance::Exact,
        );
        let claim = self.bed.departing(
            claim,
            "the wait depends on how the outage falls between the sender's timeouts; on average it is half of the outage's length.",
        );
        let claim = self.bed.departing_in_sim(
            claim,
            "the wait depends on how the outage falls between the sender's timeouts. The quick extent has eleven outages; over the 51 of \
             the full one the median is within the published range.",
        );
        traces::part(
            self.bed,
            runs,
            Mechanism::None,
            "Figure 1 of the paper: unaided TCP",
            "Unaided TCP over one outage: upright lines are segments, dots are ACKs, crosses did not get across. Compare figure 1 of the paper.",
        )
        .claims(vec![claim.judge(traces::restart(self.bed, runs, Mechanism::None))])
    }
}
