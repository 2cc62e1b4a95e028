//! When somebody was heard, and the gaps between.

use alloc::collections::VecDeque;
use outlast_base::time::Instant;

/// Gaps that are remembered of each path.
const MOST_GAPS: usize = 32;
/// A shorter gap is none.
pub(crate) const SHORTEST_GAP: u64 = 100_000_000;

/// A time without a sign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gap {
    /// The last sign before.
    pub(crate) from: Instant,
    /// The first sign after; `None` while there is none.
    pub(crate) to: Option<Instant>,
    /// Signs between the gap before and this one.
    pub(crate) signs_before: u32,
}

/// The signs of one path in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Signs {
    last: Instant,
    gaps: VecDeque<Gap>,
    /// Signs since the last gap.
    since_gap: u32,
    is_heard: bool,
}

impl Signs {
    /// The first sign.
    pub(crate) const fn new(at: Instant) -> Self {
        Self {
            last: at,
            gaps: VecDeque::new(),
            since_gap: 0,
            is_heard: false,
        }
    }

    /// True if there was any sign.
    pub(crate) const fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// The last sign.
    pub(crate) const fn last(&self) -> Instant {
        self.last
    }

    /// A sign.
    #[inline]
    pub(crate) fn hear(&mut self, at: Instant) {
        if at.nanos_since(self.last) >= SHORTEST_GAP {
            if self.gaps.len() >= MOST_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back(Gap {
                from: self.last,
                to: Some(at),
                signs_before: self.since_gap,
            });
            self.since_gap = 0;
        }
        self.since_gap = self.since_gap.saturating_add(1);
        self.is_heard = true;
        self.last = self.last.max(at);
    }

    /// The first gap that lasts beyond `due`, or the open one.
    pub(crate) fn gap_beyond(&self, due: Instant) -> Gap {
        let mut gaps = self.gaps.iter().copied();
        let found = gaps.find(|gap| gap.to.is_some_and(|to| to > due));
        found.unwrap_or(Gap {
            from: self.last,
            to: None,
            signs_before: self.since_gap,
        })
    }
}
