//! When bytes arrived that were not there before.

use outlast_base::time::{Duration, Instant};

/// Arrivals closer than this are one entry of a log; what [`DeliveryLog::first_since`] answers
/// is late by no more.
const GRAIN: Duration = Duration::from_millis(1);

/// The times at which a receiver got new bytes.
///
/// It grows by at most one entry in each millisecond with an arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryLog {
    spans: Vec<Span>,
    total: u64,
}

/// Arrivals less than [`GRAIN`] after the first of them.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Instant,
    last: Instant,
    /// All new bytes up to its last arrival.
    total: u64,
}

impl DeliveryLog {
    /// `bytes` new bytes arrived; no earlier than what was recorded before.
    pub(crate) fn record(&mut self, now: Instant, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        match self.spans.last_mut() {
            Some(span) if now.since(span.first) < GRAIN => {
                span.last = now;
                span.total = self.total;
            }
            _ => self.spans.push(Span {
                first: now,
                last: now,
                total: self.total,
            }),
        }
    }

    /// When the first new byte arrived at `moment` or later.
    pub(crate) fn first_since(&self, moment: Instant) -> Option<Instant> {
        let index = self.spans.partition_point(|span| span.last < moment);
        let span = self.spans.get(index)?;
        // Within a span only its ends are known.
        Some(if span.first >= moment {
            span.first
        } else {
            span.last
        })
    }

    /// New bytes until `moment`, to the grain.
    pub(crate) fn total_at(&self, moment: Instant) -> u64 {
        let index = self.spans.partition_point(|span| span.last <= moment);
        let before = index.checked_sub(1).and_then(|index| self.spans.get(index));
        before.map_or(0, |span| span.total)
    }

    /// When there were `total` new bytes, to the grain.
    pub(crate) fn when(&self, total: u64) -> Option<Instant> {
        let index = self.spans.partition_point(|span| span.total < total);
        Some(self.spans.get(index)?.last)
    }

    /// New bytes in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// When the latest new byte arrived.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.spans.last().map(|span| span.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn the_first_arrival_after_a_moment_is_found_to_the_grain() {
        let mut log = DeliveryLog::default();
        for (micros, bytes) in [
            (100, 1),
            (500, 1),
            (900, 1),
            (1_200, 1),
            (9_000, 5),
            (9_500, 0),
        ] {
            log.record(at(micros), bytes);
        }
        assert_eq!(log.total(), 9);
        assert_eq!(log.first_since(at(0)), Some(at(100)));
        assert_eq!(
            log.first_since(at(400)),
            Some(at(900)),
            "500 is not remembered"
        );
        assert_eq!(log.first_since(at(901)), Some(at(1_200)));
        assert_eq!(log.first_since(at(9_000)), Some(at(9_000)));
        assert_eq!(log.first_since(at(9_001)), None);
        assert_eq!(log.last(), Some(at(9_000)), "nothing new came later");
        assert_eq!(log.total_at(at(99)), 0);
        assert_eq!(log.total_at(at(900)), 3);
        assert_eq!(log.total_at(at(8_999)), 4);
        assert_eq!(log.when(3), Some(at(900)));
        assert_eq!(log.when(4), Some(at(1_200)));
        assert_eq!(log.when(9), Some(at(9_000)));
        assert_eq!(log.when(10), None);
    }

    #[test]
    fn memory_is_bounded_by_time_not_by_arrivals() {
        let mut log = DeliveryLog::default();
        for micros in 0..10_000 {
            log.record(at(micros), 1);
        }
        assert_eq!((log.spans.len(), log.total()), (10, 10_000));
    }
}
