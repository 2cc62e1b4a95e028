//! What runs between `fork` and `exec`, and processes that are forked for good. Only async-signal-safe calls are made there, because the
//! forking process has several threads.

use outlast_base::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How [`attempt`] tells success from failure: `exec` must never happen.
const SUCCEEDED: Errno = Errno::CANCELED;

/// Runs `step` in the child of `command` before `exec`, which does not happen when it fails.
///
/// `step` may only make system calls: no allocation, no lock, nothing that waits for another
/// thread.
pub(crate) fn before_exec(
    command: &mut Command,
    mut step: impl FnMut() -> rustix::io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: every closure given to this private function only makes system calls, as its
    // documentation demands and each call site shows; turning an `Errno` into an `io::Error`
    // does not allocate.
    unsafe { command.pre_exec(move || step().map_err(Into::into)) };
}

/// Runs `step` in a forked child that ends right afterwards; what `step` changes of the process
/// dies with it.
///
/// `step` may only make system calls, as in [`before_exec`].
pub(crate) fn attempt(
    mut step: impl FnMut() -> rustix::io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    before_exec(&mut command, move || {
        step()?;
        Err(SUCCEEDED)
    });
    match command.spawn() {
        // The hook never lets `exec` happen, so that an error is the only possible answer.
        Ok(mut child) => {
            child.kill()?;
            child.wait()?;
            Err(io::Error::other("the attempt was not made"))
        }
        Err(error) if error.raw_os_error() == Some(SUCCEEDED.raw_os_error()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Forks a process that runs `work` and ends: it hears no signal but those that nobody can block, and has
/// no descriptor but those of `keep`.
///
/// It goes on with a copy of this process's memory, and nothing of it is dropped. Where other threads
/// run, what they had locked stays locked there, but for the allocator of glibc and of musl: `work` asks
/// nothing else that locks.
pub(crate) fn fork(keep: &[RawFd], work: impl FnOnce(&Forked)) -> io::Result<Pid> {
    // SAFETY: both sets are plain data, which the calls initialise.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the thread's mask is put back below.
    unsafe {
        let mut every_signal = std::mem::zeroed();
        libc::sigfillset(&raw mut every_signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every_signal, &raw mut before);
    }
    // SAFETY: the child makes system calls and allocates, as documented above, and never returns from here.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let forked = Forked { _private: () };
        forked.keep_only(keep);
        // What panics says nothing of use to anybody: the process ends either way.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&forked)));
        // SAFETY: ends the process without running anything of what it has inherited.
        unsafe { libc::_exit(i32::from(ended.is_err())) }
    }
    let outcome = match forked {
        -1 => Err(io::Error::last_os_error()),
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process")),
    };
    // SAFETY: `before` was filled in above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    outcome
}

/// A process that was forked, in which nothing is dropped.
#[derive(Debug)]
pub(crate) struct Forked {
    _private: (),
}

impl Forked {
    /// Closes every other descriptor. Who uses one of these afterwards gets an error, or what was opened
    /// since.
    pub(crate) fn keep_only(&self, kept: &[RawFd]) {
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        let mut first = 0;
        for last in kept.iter().map(|fd| fd - 1).chain([RawFd::MAX]) {
            if last >= first {
                close_range(first, last);
            }
            first = last.saturating_add(2);
        }
    }
}

/// Waits for so long where all signals are blocked; whether one comes meanwhile that asks to end.
pub(crate) fn wait_for_end(pause: Duration) -> bool {
    let pause = libc::timespec {
        tv_sec: libc::time_t::try_from(pause.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: pause.subsec_nanos().into(),
    };
    // SAFETY: the set is plain data, which the calls initialise; nothing is written elsewhere.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const pause) > 0
    }
}

fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: only a forked process comes here, in which nothing uses another descriptor than those that
    // are kept.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0_u32) != 0 {
            // Linux before 5.9.
            let end = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536);
            for fd in first..=last.min(i32::try_from(end).unwrap_or(i32::MAX)) {
                libc::close(fd);
            }
        }
    }
}

/// Makes the child of `command` the init process of its process-id namespace and the program
/// that child's only child: when the program ends, init ends with the same status, and with it
/// everything that the program left behind. When the process `parent` dies, the kernel kills
/// init, and with it everything else.
///
/// The thread that spawns must be in a fresh process-id namespace and must outlive the child:
/// the death signal is sent when that thread ends.
pub(crate) fn contain(command: &mut Command, parent: OwnedFd) {
    before_exec(command, move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above. Its pid cannot be compared (it has
        // none in the new namespace), but its pidfd tells.
        let mut fds = [PollFd::from_borrowed_fd(parent.as_fd(), PollFlags::IN)];
        if poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )? != 0
        {
            return Err(Errno::SRCH);
        }
        split_init_from_program()
    });
}

/// Forks: returns in the child, which goes on to `exec` the program; the parent becomes init.
fn split_init_from_program() -> rustix::io::Result<()> {
    // SAFETY: this process has a single thread (it was just forked), and after this fork both
    // sides only make async-signal-safe calls until `exec` or `_exit`. With SIGCHLD ignored, as
    // it may have been inherited, init could not learn the program's status.
    let forked = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::fork()
    };
    match forked {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN)),
        0 => Ok(()),
        program => init(program),
    }
}

/// Reaps until `program` has ended, and ends with its status: 128 and the signal's number if a
/// signal killed it, as a shell has it.
fn init(program: libc::pid_t) -> ! {
    // SAFETY: `sigset_t` is plain data, which `sigfillset` initialises, and all the calls are
    // async-signal-safe. Nothing in this process uses a descriptor again: std's pipe to the
    // spawning thread and the program's standard streams must be closed here so that their
    // readers see the end when the program has closed its own.
    unsafe {
        let mut every_signal = std::mem::zeroed();
        libc::sigfillset(&raw mut every_signal);
        libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const every_signal,
            std::ptr::null_mut(),
        );
        if libc::syscall(libc::SYS_close_range, 0_u32, u32::MAX, 0_u32) != 0 {
            // Linux before 5.9.
            for fd in 0..libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) {
                libc::close(i32::try_from(fd).unwrap_or(i32::MAX));
            }
        }
    }
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended == program || ended == -1 {
            let code = match (ended, libc::WIFSIGNALED(status)) {
                (-1, _) => 127,
                (_, true) => 128 + libc::WTERMSIG(status),
                (_, false) => libc::WEXITSTATUS(status),
            };
            // SAFETY: ends the process without running anything of it.
            unsafe { libc::_exit(code) }
        }
    }
}
