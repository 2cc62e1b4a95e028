//! What receivers got after the link came back.

use crate::delivery::DeliveryLog;
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;
use outlast_link::FIRST_SECONDS;
use outlast_link::Way;
use outlast_scenario::result::Return;
use outlast_scenario::{Direction, Framing, Scenario, Workload};

/// What a connection's returns are measured by.
#[derive(Clone, Copy)]
pub(super) struct Measure<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) index: u32,
    pub(super) framing: Framing,
    /// When the run's first byte of payload came to a link.
    pub(super) started: Instant,
    /// When the connection's workload ended.
    pub(super) ended: Instant,
    pub(super) workload: &'a Workload,
    pub(super) deliveries: &'a DeliveryLog,
}

impl Measure<'_> {
    /// What came after the link was `back`.
    pub(super) fn after(self, back: Instant) -> Return {
        let resumed = self.deliveries.first_since(back);
        let in_time = resumed.filter(|&at| at <= self.ended);
        let way = self.workload.transfer().0.map(Direction::way);
        Return {
            resume_s: in_time.map(|at| at.since(back).as_secs_f64()),
            half_second_s: way.and_then(|way| self.half_second(back, way)),
            first_five_seconds_share: way.and_then(|way| self.share(back, way)),
        }
    }

    fn half_second(self, back: Instant, way: Way) -> Option<f64> {
        let enough = self.scenario.half_second(self.index, way)?.as_u64();
        let caught_up = self
            .deliveries
            .when(self.deliveries.total_at(back) + enough)?;
        (caught_up <= self.ended).then(|| caught_up.since(back).as_secs_f64())
    }

    fn share(self, back: Instant, way: Way) -> Option<f64> {
        let until = self.ended.min(back + FIRST_SECONDS);
        let payload = self.deliveries.total_at(until) - self.deliveries.total_at(back);
        let [back, ended] = [back, self.ended].map(|at| at.since(self.started));
        let (scenario, payload) = (self.scenario, ByteCount(payload));
        scenario.share_after(self.index, self.framing, way, back, ended, payload)
    }
}
