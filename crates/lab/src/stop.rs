//! The cord that ends a run early, or one of its connections: deadline, cancellation, failure.

use outlast_linux::waker::Waker;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// Why a run or a connection ends before its workload does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StopReason {
    /// The time is up.
    Deadline = 1,
    /// The user wants no more of it.
    Cancelled = 2,
    /// Part of the lab does not work.
    Broken = 3,
    /// The workload is over, for one of the hosts: there is nothing left to wait for.
    Over = 4,
}

/// Pulled once, for the first reason; its descriptor is readable from then on. That of a
/// connection counts as pulled when the run's is, of which only the run's descriptor tells.
#[derive(Debug)]
pub(crate) struct Stop {
    reason: AtomicU8,
    waker: Waker,
    /// The run's, if this one is a connection's.
    run: Option<Arc<Self>>,
}

impl Stop {
    /// The stop of a run.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            reason: AtomicU8::new(0),
            waker: Waker::new()?,
            run: None,
        })
    }

    /// The stop of a connection, which ends with `run` at the latest.
    pub(crate) fn within(run: &Arc<Self>) -> io::Result<Self> {
        Ok(Self {
            run: Some(Arc::clone(run)),
            ..Self::new()?
        })
    }

    /// The run's, if this one is a connection's.
    pub(crate) fn run(&self) -> Option<&Self> {
        self.run.as_deref()
    }

    /// Ends the run or the connection; whether this call was the first.
    pub(crate) fn pull(&self, reason: StopReason) -> bool {
        let first = self
            .reason
            .compare_exchange(0, reason as u8, SeqCst, SeqCst)
            .is_ok();
        if first {
            self.waker.wake();
        }
        first
    }

    pub(crate) fn is_pulled(&self) -> bool {
        self.reason.load(SeqCst) != 0 || self.run().is_some_and(Self::is_pulled)
    }

    /// Why this one was pulled; `None` while nobody has.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        match self.reason.load(SeqCst) {
            0 => None,
            1 => Some(StopReason::Deadline),
            2 => Some(StopReason::Cancelled),
            3 => Some(StopReason::Broken),
            _ => Some(StopReason::Over),
        }
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
