//! Asking the scheduler for punctuality.

use crate::sys::thread::{schedule_first_in_first_out, schedule_round_robin};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use std::io;

/// How punctual a thread will be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Priority {
    /// It runs before all ordinary threads.
    RealTime,
    /// It gets more of the processor than ordinary threads.
    Favoured,
    /// As any other: nothing more is allowed.
    Ordinary,
}

/// Makes the calling thread as punctual as this process may; threads and processes that it makes
/// later are as before if it becomes [`Priority::RealTime`].
pub fn raise_current_thread() -> Priority {
    if schedule_round_robin().is_ok() {
        return Priority::RealTime;
    }
    favour_current_thread()
}

/// Gives the calling thread more of the processor than ordinary threads have, if this process may: what
/// is to be done after an outage is little, and urgent.
pub fn favour_current_thread() -> Priority {
    match setpriority_process(Some(gettid()), -10) {
        Ok(()) => Priority::Favoured,
        Err(_) => Priority::Ordinary,
    }
}

/// Makes the thread `thread`, of any process, run before all ordinary threads of its processor until it waits.
///
/// # Errors
/// Without the right to it (`CAP_SYS_NICE`), or when there is no such thread.
pub fn put_first(thread: Pid) -> io::Result<()> {
    schedule_first_in_first_out(thread)
}
