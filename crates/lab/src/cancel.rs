//! Ending labs from outside.

use outlast_linux::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::sync::Arc;

/// Ends every lab that was given a clone of it. Clones are one.
#[derive(Clone, Debug)]
pub struct Cancel {
    waker: Arc<Waker>,
}

impl Cancel {
    /// One that nobody has used yet.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
        })
    }

    /// Ends the labs, those that begin later too: each run answers
    /// [`LabError::Cancelled`](crate::LabError::Cancelled), with everything cleaned up.
    pub fn cancel(&self) {
        self.waker.wake();
    }

    /// Whether the labs are to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let mut descriptor = [PollFd::new(&*self.waker, PollFlags::IN)];
        // A poll that fails for want of memory or by a signal says nothing: the next one will.
        rustix::event::poll(&mut descriptor, Some(&Timespec::default()))
            .is_ok_and(|ready| ready > 0)
    }

    /// What [`Termination::wake`](outlast_linux::signal::Termination::wake) is to wake, so that
    /// Ctrl-C ends the labs.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_knows() {
        let cancel = Cancel::new().expect("a descriptor can be had");
        let clone = cancel.clone();
        assert!(!clone.is_cancelled());
        cancel.cancel();
        assert!(clone.is_cancelled() && cancel.is_cancelled());
    }
}
