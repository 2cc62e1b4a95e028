//! What a link can do at best, from its configuration alone.

use crate::config::{LinkConfig, Way};
use crate::outage::{Outage, OutageProcess, Schedule};
use crate::trace::OPPORTUNITY;
use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};

impl LinkConfig {
    /// The outages that begin before `until`.
    #[must_use]
    pub fn outages_until(&self, until: Duration) -> Vec<Outage> {
        self.schedule()
            .take_while(|outage| outage.start < until)
            .collect()
    }

    /// How long the link is up in the first `until` after its start.
    #[must_use]
    pub fn connected_time(&self, until: Duration) -> Duration {
        let outages = self.schedule().take_while(|outage| outage.start < until);
        let down = outages.map(|outage| {
            outage
                .end
                .map_or(until, |end| end.min(until))
                .saturating_sub(outage.start)
        });
        until.saturating_sub(down.sum())
    }

    /// How much could pass `way` while the link is up in the first `until` after its start, if
    /// there was always something to send; `None` if the rate is unlimited.
    #[must_use]
    pub fn capacity(&self, way: Way, until: Duration) -> Option<ByteCount> {
        if let OutageProcess::Deliveries { trace, .. } = &self.outages {
            // Each opportunity lies outside the outages, which are gaps between opportunities.
            return Some(ByteCount(
                trace.until(until).saturating_mul(OPPORTUNITY.as_u64()),
            ));
        }
        let mut rate = self.pipe(way).rate?;
        let mut from = Duration::ZERO;
        let mut bytes = ByteCount(0);
        for (at, next) in self.changes(way).take_while(|&(at, _)| at < until) {
            bytes.0 += rate.bytes_in(self.connected_between(from, at)).0;
            (rate, from) = (next, at);
        }
        bytes.0 += rate.bytes_in(self.connected_between(from, until)).0;
        Some(bytes)
    }

    /// When the rate `way` changes, and to what, in order of time.
    fn changes(&self, way: Way) -> impl Iterator<Item = (Duration, BitRate)> {
        let changes = self.rate_changes.iter();
        changes.filter_map(move |change| Some((change.at, change.rate(way)?)))
    }

    fn connected_between(&self, from: Duration, until: Duration) -> Duration {
        self.connected_time(until)
            .saturating_sub(self.connected_time(from))
    }

    /// The two propagation delays: the round trip of a frame that takes no time to send.
    #[must_use]
    pub const fn round_trip(&self) -> Duration {
        self.to_mobile.delay.saturating_add(self.to_fixed.delay)
    }

    /// When `payload` is through at best: from one round trip after the start on, every connected
    /// moment is used at the link's rate. `None` if that takes longer than `limit`.
    #[must_use]
    pub fn ideal_time(&self, way: Way, payload: ByteCount, limit: Duration) -> Option<Duration> {
        Ideal::new(self, limit).transmit(way, self.round_trip(), payload)
    }
}

/// A sender that uses every connected moment: bytes pour through the link like a fluid, stop when
/// it is down and go on where they stopped.
///
/// Each request must come no earlier than the answer to the one before it.
#[derive(Clone, Debug)]
pub struct Ideal<'a> {
    config: &'a LinkConfig,
    limit: Duration,
    schedule: Schedule,
    /// The outage that has not ended before the latest request.
    current: Option<Outage>,
}

impl<'a> Ideal<'a> {
    /// A sender over the link of `config` that gives up at `limit` after the start.
    #[must_use]
    pub fn new(config: &'a LinkConfig, limit: Duration) -> Self {
        let mut schedule = config.schedule();
        let current = schedule.next();
        Self {
            config,
            limit,
            schedule,
            current,
        }
    }

    /// When the last bit of `bytes`, sent `way` from `from` on, has left; `None` if not by the
    /// limit.
    pub fn transmit(&mut self, way: Way, from: Duration, bytes: ByteCount) -> Option<Duration> {
        let through = match &self.config.outages {
            OutageProcess::Deliveries { trace, .. } => {
                let needed = bytes.as_u64().div_ceil(OPPORTUNITY.as_u64());
                match needed.checked_sub(1) {
                    Some(further) => trace.time(trace.until(from).saturating_add(further)),
                    None => from,
                }
            }
            _ => {
                let (from, needed) = self.at_the_last_rate(way, from, bytes);
                self.connected_for(from, needed)?
            }
        };
        (through <= self.limit).then_some(through)
    }

    /// From when on the rate is the one at which the last of `bytes` is sent, and how long the link
    /// has to be up from then on.
    fn at_the_last_rate(
        &self,
        way: Way,
        mut from: Duration,
        mut bytes: ByteCount,
    ) -> (Duration, Duration) {
        let Some(mut rate) = self.config.pipe(way).rate else {
            return (from, Duration::ZERO);
        };
        for (at, next) in self
            .config
            .changes(way)
            .take_while(|&(at, _)| at < self.limit)
        {
            if at > from {
                let passed = rate.bytes_in(self.config.connected_between(from, at));
                if passed >= bytes {
                    break;
                }
                bytes.0 -= passed.0;
                from = at;
            }
            rate = next;
        }
        (from, rate.time_for(bytes))
    }

    /// When the link has been up for `needed` since `from`, and is up.
    fn connected_for(&mut self, from: Duration, mut needed: Duration) -> Option<Duration> {
        let mut now = from;
        while let Some(outage) = self.current {
            let usable = outage.start.saturating_sub(now);
            if usable > needed || (usable == needed && !needed.is_zero()) {
                break;
            }
            needed = needed.saturating_sub(usable);
            now = now.max(outage.end?);
            if now > self.limit {
                return None;
            }
            self.current = self.schedule.next();
        }
        now.checked_add(needed)
    }
}
