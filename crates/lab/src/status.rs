//! What a running lab shows of itself: written by the emulator and the workload, read by whoever
//! draws the progress.

use outlast_base::time::{Duration, Instant};
use outlast_link::Way;
use outlast_world::Progress;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Shared between the threads of one lab. Each value stands for itself, so that the weakest
/// memory order is enough.
#[derive(Debug)]
pub(crate) struct Status {
    link_up: AtomicBool,
    outages: AtomicU64,
    /// Nanoseconds of the workload's first byte; zero before.
    started: AtomicU64,
    delivered: [AtomicU64; 2],
    received: AtomicU64,
    updates: AtomicU64,
    injected: AtomicU64,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            link_up: AtomicBool::new(true),
            outages: AtomicU64::new(0),
            started: AtomicU64::new(0),
            delivered: [AtomicU64::new(0), AtomicU64::new(0)],
            received: AtomicU64::new(0),
            updates: AtomicU64::new(0),
            injected: AtomicU64::new(0),
        }
    }
}

impl Status {
    pub(crate) fn start(&self, now: Instant) {
        self.started.store(now.as_nanos().max(1), Relaxed);
    }

    /// Whether the mobile's link is up, and how often it was not.
    pub(crate) fn set_link(&self, up: bool, outages: u64) {
        self.link_up.store(up, Relaxed);
        self.outages.store(outages, Relaxed);
    }

    /// Gateways put so many packets on the path.
    pub(crate) fn set_injected(&self, packets: u64) {
        self.injected.store(packets, Relaxed);
    }

    pub(crate) fn set_delivered(&self, way: Way, bytes: u64) {
        self.delivered[usize::from(way == Way::ToFixed)].store(bytes, Relaxed);
    }

    /// A receiving application has so many `bytes` more.
    pub(crate) fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn count_update(&self) {
        self.updates.fetch_add(1, Relaxed);
    }

    /// How things are at `now`, for a workload that is to deliver `goal` bytes.
    pub(crate) fn progress(&self, now: Instant, goal: Option<u64>) -> Progress {
        let started = self.started.load(Relaxed);
        let delivered = self.delivered.each_ref().map(|bytes| bytes.load(Relaxed));
        let received = match self.received.load(Relaxed) {
            0 if goal.is_none() => delivered[0].max(delivered[1]),
            received => received,
        };
        Progress {
            elapsed: match started {
                0 => Duration::ZERO,
                nanos => now.since(Instant::from_nanos(nanos)),
            },
            link_up: self.link_up.load(Relaxed),
            outages: self.outages.load(Relaxed),
            received,
            goal,
            updates: self.updates.load(Relaxed),
            injected: self.injected.load(Relaxed),
        }
    }
}
