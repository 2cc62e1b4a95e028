//! Being asked to stop: Ctrl-C, `kill`, a closed terminal. And, for daemons, to look again.

use crate::waker::Waker;
use rustix::fd::AsFd;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Wakes a loop when the process is asked to stop, until the value is dropped. Asked a second time, the process ends at once: nobody has to wait for a clean end.
#[derive(Debug)]
pub struct Termination {
    registered: Vec<SigId>,
}

impl Termination {
    /// Wakes `waker` at SIGINT, SIGTERM and SIGHUP.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn wake(waker: &Waker) -> io::Result<Self> {
        Self::wake_at(&[SIGINT, SIGTERM, SIGHUP], waker)
    }

    /// Wakes `waker` at SIGINT and SIGTERM: to a daemon, SIGHUP means something else.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn wake_daemon(waker: &Waker) -> io::Result<Self> {
        Self::wake_at(&[SIGINT, SIGTERM], waker)
    }

    fn wake_at(signals: &[libc::c_int], waker: &Waker) -> io::Result<Self> {
        let mut termination = Self {
            registered: Vec::new(),
        };
        let asked = Arc::new(AtomicBool::new(false));
        for &signal in signals {
            // In this order: the first signal must find the flag unset.
            let again =
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))?;
            let first = signal_hook::flag::register(signal, Arc::clone(&asked))?;
            termination
                .registered
                .extend([again, first, wake_on(signal, waker)?]);
        }
        Ok(termination)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// Wakes a loop at SIGHUP, by which daemons are asked to read their configuration again, until the
/// value is dropped.
#[derive(Debug)]
pub struct Hangup(SigId);

impl Hangup {
    /// Wakes `waker`.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn wake(waker: &Waker) -> io::Result<Self> {
        wake_on(SIGHUP, waker).map(Self)
    }
}

impl Drop for Hangup {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.0);
    }
}

fn wake_on(signal: libc::c_int, waker: &Waker) -> io::Result<SigId> {
    let waker = waker.as_fd().try_clone_to_owned()?;
    crate::sys::signal::on(signal, move || {
        // As in `Waker::wake`: a full counter is as good.
        let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
    })
}
