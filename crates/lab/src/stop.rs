//! The cord that ends a run early: deadline, cancellation, failure.

use outlast_linux::waker::Waker;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// Why a run ends before its workload does.
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

/// Pulled once, for the first reason; its descriptor is readable from then on.
#[derive(Debug)]
pub(crate) struct Stop {
    reason: AtomicU8,
    waker: Waker,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            reason: AtomicU8::new(0),
            waker: Waker::new()?,
        })
    }

    /// Ends the run; whether this call was the first.
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
        self.reason.load(SeqCst) != 0
    }

    /// Why the run ended; `None` while nobody has pulled.
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
