//! When a gateway wants to be called: one table of deadlines, each with its reason.

use crate::tracking::FlowIndex;
use alloc::collections::BTreeSet;
use outlast_base::time::Instant;

/// Why the gateway wants to be called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeoutReason {
    /// A packet's turn comes.
    Pace,
    /// A connection's mechanism wants to be called: a flow ought to have moved by then, or something that the
    /// mechanism has kept back is to go out.
    Mechanism,
    /// A handshake ought to have been answered by then.
    Handshake,
    /// A packet that is no part of a connection has waited for others of its flow for long enough.
    OtherTraffic,
    /// A silent link is asked whether it is back.
    Probe,
    /// What an indicator has said is believed from now on.
    Damping,
    /// A flow has been idle for too long.
    Expiry,
    /// A flow has been idle for a while: what it does not need is given back.
    Rest,
}

/// The first of `deadlines`; of those at one instant, the first in the table.
pub(crate) fn first<const N: usize>(
    deadlines: [(TimeoutReason, Option<Instant>); N],
) -> Option<(Instant, TimeoutReason)> {
    deadlines
        .into_iter()
        .filter_map(|(reason, at)| Some((at?, reason)))
        .min_by_key(|(at, _)| *at)
}

/// The deadlines of the connections' mechanisms, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Instant, FlowIndex)>,
}

impl Timers {
    /// The connection's mechanism wants to be called at `wanted`, and not at `before`, which is what was
    /// set here last.
    pub(crate) fn set(
        &mut self,
        index: FlowIndex,
        before: &mut Option<Instant>,
        wanted: Option<Instant>,
    ) {
        if *before == wanted {
            return;
        }
        if let Some(at) = *before {
            self.by_time.remove(&(at, index));
        }
        if let Some(at) = wanted {
            self.by_time.insert((at, index));
        }
        *before = wanted;
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline if it has come, and returns its connection.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<FlowIndex> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        self.by_time.pop_first().map(|(_, index)| index)
    }
}
