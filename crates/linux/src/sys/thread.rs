//! Namespaces and scheduling of the calling thread.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::io;

/// A namespace that a thread (or the process, for users) can leave for a new one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fresh {
    /// A network namespace for the calling thread.
    Network,
    /// A process-id namespace for the children that the calling thread makes from now on.
    ProcessId,
    /// A user namespace for the whole process, which must have one thread only.
    User,
}

/// Moves the calling thread into a new namespace.
pub(crate) fn unshare(fresh: Fresh) -> rustix::io::Result<()> {
    let flags = match fresh {
        Fresh::Network => UnshareFlags::NEWNET,
        Fresh::ProcessId => UnshareFlags::NEWPID,
        Fresh::User => UnshareFlags::NEWUSER,
    };
    // SAFETY: the function is unsafe for `CLONE_FILES` only, which none of these flags is.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Gives the calling thread the lowest round-robin real-time priority. Threads and processes
/// that it makes start with ordinary priority.
pub(crate) fn schedule_round_robin() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is a valid `sched_param` for the duration of the call; 0 names the
    // calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the thread `thread` of any process the lowest first-in-first-out real-time priority.
pub(crate) fn schedule_first_in_first_out(thread: Pid) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: `parameters` is a valid `sched_param` for the duration of the call.
    match unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
