//! Ending labs from outside.

use outlast_linux::waker::Waker;
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
