//! Being asked to stop: Ctrl-C, `kill`, a closed terminal.

use crate::waker::Waker;
use rustix::fd::AsFd;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Wakes `waker` when the process is asked to stop (SIGINT, SIGTERM, SIGHUP), until the value is
/// dropped. Asked a second time, the process ends at once: nobody has to wait for a clean end.
#[derive(Debug)]
pub struct Termination {
    registered: Vec<SigId>,
}

impl Termination {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn wake(waker: &Waker) -> io::Result<Self> {
        let mut termination = Self {
            registered: Vec::new(),
        };
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal must find the flag unset.
            let again =
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))?;
            let first = signal_hook::flag::register(signal, Arc::clone(&asked))?;
            let waker = waker.as_fd().try_clone_to_owned()?;
            let wake = crate::sys::signal::on(signal, move || {
                // As in `Waker::wake`: a full counter is as good.
                let _ = rustix::io::write(&waker, &1_u64.to_ne_bytes());
            })?;
            termination.registered.extend([again, first, wake]);
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
