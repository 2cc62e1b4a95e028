//! The paper's trace with `hold`, which the paper does not have.

use super::testbed::Testbed;
use super::traces;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_scenario::Mechanism;

/// The trace with `hold`.
#[derive(Debug)]
pub struct FigureHold {
    /// Where it is measured.
    pub bed: Testbed,
}

impl Figure for FigureHold {
    fn name(&self) -> &'static str {
        "figure-hold"
    }

    fn title(&self) -> &'static str {
        "Trace of `hold`"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        traces::jobs(self.bed, extent, Mechanism::Hold)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        traces::part(
            self.bed,
            runs,
            Mechanism::Hold,
            "The same outages with hold",
            "With `hold` at both ends everything that the link dropped, or would have dropped, is \
             sent in order on reconnection (circles), ACKs first (plus marks).",
        )
        .paragraph(
            "The sender's own next segments wait behind what was kept for their flow, so that they \
             come later than with the other levels while the link sends at its full rate.",
        )
    }
}
