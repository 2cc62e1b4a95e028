//! When the mobile opens the connection of `[workload]`: the other connections and the cross
//! traffic of a run count from then.

use outlast_base::time::Instant;
use outlast_linux::waker::Waker;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Noted once by the emulator, which sees the mobile's first packet; its descriptor is readable
/// from then on.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Nanoseconds, or one of the values below.
    at: AtomicU64,
    waker: Waker,
}

const NOT_YET: u64 = 0;
const NEVER: u64 = u64::MAX;

impl Opening {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            at: AtomicU64::new(NOT_YET),
            waker: Waker::new()?,
        })
    }

    /// The connection is opened at `now`.
    pub(crate) fn note(&self, now: Instant) {
        self.settle(now.as_nanos().clamp(NOT_YET + 1, NEVER - 1));
    }

    /// The workload is over. If its connection was not opened by now it never will be.
    pub(crate) fn close(&self) {
        self.settle(NEVER);
    }

    /// When it was opened; `None` if it was not.
    pub(crate) fn at(&self) -> Option<Instant> {
        match self.at.load(SeqCst) {
            NOT_YET | NEVER => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }

    fn settle(&self, nanos: u64) {
        let first = self.at.compare_exchange(NOT_YET, nanos, SeqCst, SeqCst);
        if first.is_ok() {
            self.waker.wake();
        }
    }
}

impl AsFd for Opening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_counts() {
        let opening = Opening::new().expect("a descriptor can be had");
        assert_eq!(opening.at(), None);
        opening.note(Instant::from_millis(5));
        opening.note(Instant::from_millis(6));
        opening.close();
        assert_eq!(opening.at(), Some(Instant::from_millis(5)));
        let never = Opening::new().expect("a descriptor can be had");
        never.close();
        never.note(Instant::from_millis(5));
        assert_eq!(never.at(), None);
    }
}
