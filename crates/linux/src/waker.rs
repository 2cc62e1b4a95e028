//! Waking a loop in another thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// An `eventfd`: readable after [`wake`](Waker::wake) until [`reset`](Waker::reset).
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A waker that nobody has woken yet.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd })
    }

    /// Makes the descriptor readable; from any thread, and from a signal handler.
    pub fn wake(&self) {
        // The one possible failure is a full counter, and then the descriptor is readable.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again; whether it had been woken.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn reset(&self) -> io::Result<bool> {
        let mut count = [0; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
