//! Flows that are idle: they give back the memory that they can do without.

use super::Gateway;
use crate::links::LinkState;
use crate::tracking::FlowIndex;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;

/// A flow without packets for so long gives back what it does not need. A pause that is shorter
/// than what people make between two actions would take and give back the same memory all the time.
pub(super) const PAUSE_BEFORE_REST: Duration = Duration::from_secs(5);

impl Gateway {
    /// A mechanism that a new one can stand in for is given up until the flow's next packet; any other
    /// takes less memory.
    pub(super) fn rest(&mut self, now: Instant, index: FlowIndex) {
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        let is_up = record.state == LinkState::Up && record.deadline.is_none();
        let Some(mechanism) = record.mechanism.as_mut().filter(|_| is_up) else {
            return;
        };
        let before = self.budget.used().0;
        let rests = mechanism.may_rest(now, &record.tracked);
        match rests {
            true => mechanism.release(&mut self.budget),
            false => mechanism.rest(&mut self.budget),
        }
        let given_back = before - self.budget.used().0;
        let held = record.held;
        record.held = ByteCount(held.0.saturating_sub(given_back));
        if rests {
            record.mechanism = None;
        }
        let now_held = record.held;
        if let Some(key) = self.flows.key(index) {
            self.shares.change(key.far.ip(), held.0, now_held.0);
        }
    }
}
