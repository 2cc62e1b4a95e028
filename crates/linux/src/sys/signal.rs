//! Signal handlers.

use signal_hook::SigId;
use std::io;

/// Runs `action` whenever the process gets `signal`.
///
/// `action` runs inside the signal handler: it may only make async-signal-safe system calls.
pub(crate) fn on(
    signal: libc::c_int,
    action: impl Fn() + Send + Sync + 'static,
) -> io::Result<SigId> {
    // SAFETY: the only caller writes to a descriptor, which is async-signal-safe; rustix makes
    // the system call without touching `errno`.
    unsafe { signal_hook::low_level::register(signal, action) }
}
