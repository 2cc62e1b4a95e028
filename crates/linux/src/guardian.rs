//! A process beside a daemon that has a [`Queue`]: it lets the packets pass that the daemon does not take.
//!
//! A queue holds up every packet as long as its owner lives, also where that is stopped (`SIGSTOP`, a
//! debugger) or turns in circles. The guardian is a fork of the daemon that shares the queue. It sleeps as
//! long as no packet waits, and otherwise looks at the daemon's [`Pulse`] a few times a second:
//!
//! | what it sees | what it does |
//! |---|---|
//! | packets wait, and the daemon has done nothing for [`STALLED_AFTER`] | accepts them, and all that follow |
//! | the daemon has [taken them back](Pulse::take_back) | sleeps |
//! | the daemon is gone | accepts those that wait, does what it was given to do then, and ends |
//!
//! It has no rules: these are the daemon's, and go with it, so that a guardian which is stopped itself
//! holds nobody up after the daemon's end. It ignores all signals that can be ignored: what ends it is the
//! daemon's end. If it is killed the daemon notices ([`Guardian::as_fd`]) and makes another.

use crate::clock;
use crate::netfilter::queue::{Queue, Ruling};
use crate::privilege;
use crate::sys::child::{Forked, fork, wait_for_end};
use crate::sys::shared::SharedWords;
use outlast_base::time::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, pidfd_send_signal,
    setsid, waitpid,
};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a waiting guardian looks.
const LOOK: Duration = Duration::from_millis(250);
/// Looks in a row that find packets waiting and a daemon that has not moved.
const LOOKS: u32 = 4;
/// A daemon is stalled that has taken no packet and finished no turn for so long, while packets wait.
/// Every look is one that the guardian itself was given time for, so that a machine that runs neither
/// process does not count.
pub const STALLED_AFTER: Duration = Duration::from_millis(1_000);
const _: () = assert!(LOOKS as u128 * LOOK.as_nanos() == STALLED_AFTER.as_nanos());

/// Its words in shared memory.
const TURNS: usize = 0;
const IS_STALLED: usize = 1;
/// When the guardian began to let packets pass, in nanoseconds: the low half, and the high one.
const STALLED_AT: [usize; 2] = [2, 3];
const WORDS: usize = 4;

/// What a daemon and its guardian know of each other.
#[derive(Clone, Debug)]
pub struct Pulse {
    words: Arc<SharedWords>,
}

impl Pulse {
    /// The pulse of a daemon.
    ///
    /// # Errors
    /// When the process is out of memory.
    pub fn new() -> io::Result<Self> {
        let words = Arc::new(SharedWords::anonymous(WORDS)?);
        Ok(Self { words })
    }

    /// The daemon has done something.
    pub fn beat(&self) {
        self.words.word(TURNS).fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the guardian lets packets pass: the daemon has been away.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.words.word(IS_STALLED).load(Ordering::Acquire) != 0
    }

    /// Since when it does.
    #[must_use]
    pub fn stalled_since(&self) -> Option<Instant> {
        let [low, high] =
            STALLED_AT.map(|at| u64::from(self.words.word(at).load(Ordering::Relaxed)));
        self.is_stalled()
            .then(|| Instant::from_nanos(high << 32 | low))
    }

    /// The daemon takes the packets itself again.
    pub fn take_back(&self) {
        self.beat();
        self.words.word(IS_STALLED).store(0, Ordering::Release);
    }

    fn turns(&self) -> u32 {
        self.words.word(TURNS).load(Ordering::Relaxed)
    }

    fn stall(&self, now: Instant) {
        let nanos = now.as_nanos();
        for (place, half) in STALLED_AT
            .into_iter()
            .zip([nanos as u32, (nanos >> 32) as u32])
        {
            self.words.word(place).store(half, Ordering::Relaxed);
        }
        self.words.word(IS_STALLED).store(1, Ordering::Release);
    }
}

/// A guardian that runs. It ends when the value is dropped, or after the process.
#[derive(Debug)]
pub struct Guardian {
    pid: Pid,
    process: OwnedFd,
    is_left: bool,
}

/// Standard error.
const STDERR: RawFd = 2;

impl Guardian {
    /// Forks a guardian of `queue`. Once this process is gone, and no packet waits any more, it calls
    /// `afterwards`, which has no descriptor but standard error, and may have to do without that.
    ///
    /// # Errors
    /// When there is no room for another process.
    pub fn fork(
        pulse: &Pulse,
        queue: &mut Queue,
        afterwards: impl FnOnce(&Aftermath<'_>),
    ) -> io::Result<Self> {
        let daemon = pidfd_open(getpid(), PidfdFlags::empty())?;
        let kept = [queue.as_fd().as_raw_fd(), daemon.as_raw_fd(), STDERR];
        let pid = fork(&kept, |forked| {
            rename();
            // Whatever the terminal or the service manager tells the daemon's group is not for it.
            let _ = setsid();
            // It has what it needs; and with more it works as well.
            let _ = privilege::keep_network_capabilities();
            stand_by(pulse, queue, daemon.as_fd());
            // Nobody is to find the queue taken.
            forked.keep_only(&[STDERR]);
            afterwards(&Aftermath { forked });
        })?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => Ok(Self {
                pid,
                process,
                is_left: false,
            }),
            Err(errno) => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                Err(errno.into())
            }
        }
    }

    /// Its process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Lets it live on after this value, until what it has to do after the daemon's end is done.
    pub const fn leave(&mut self) {
        self.is_left = true;
    }
}

impl AsFd for Guardian {
    /// Readable once the guardian has ended, which it does not by itself.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // It may have ended; in any case it is to be waited for.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        while matches!(
            waitpid(Some(self.pid), WaitOptions::empty()),
            Err(Errno::INTR)
        ) {}
    }
}

/// What a guardian may do after the daemon's end.
#[derive(Debug)]
pub struct Aftermath<'f> {
    forked: &'f Forked,
}

impl Aftermath<'_> {
    /// Says a line where the daemon has said its.
    pub fn say(&self, line: &str) {
        // Perhaps nobody listens any more.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Closes standard error: whoever reads it is to see the end.
    pub fn fall_silent(&self) {
        self.forked.keep_only(&[]);
    }

    /// Waits; whether somebody asks the guardian meanwhile to end (SIGTERM, SIGINT).
    #[must_use]
    pub fn is_asked_to_end_within(&self, pause: Duration) -> bool {
        wait_for_end(pause)
    }
}

/// For `ps`.
fn rename() {
    // A name that does not fit is cut, and nothing else can go wrong.
    let _ = rustix::thread::set_name(c"outlast-guard");
}

/// Returns once the daemon is gone and nothing waits in the queue.
fn stand_by(pulse: &Pulse, queue: &mut Queue, daemon: BorrowedFd<'_>) {
    loop {
        // As long as no packet waits nobody is late.
        let [is_gone, _] = ready([daemon, queue.as_fd()], None);
        if is_gone || watch(pulse, queue, daemon) {
            let_pass(queue, || true);
            return;
        }
    }
}

/// Packets wait: returns when none do, or the daemon is gone; whether it is.
fn watch(pulse: &Pulse, queue: &mut Queue, daemon: BorrowedFd<'_>) -> bool {
    let (mut seen, mut looks) = (pulse.turns(), 0);
    loop {
        if ready([daemon], Some(LOOK))[0] {
            return true;
        }
        if !ready([queue.as_fd()], Some(Duration::ZERO))[0] {
            return false;
        }
        let now = pulse.turns();
        looks = if now == seen { looks + 1 } else { 0 };
        seen = now;
        if looks == LOOKS {
            pulse.stall(clock::now());
            while pulse.is_stalled() {
                let_pass(queue, || pulse.is_stalled());
                if ready([daemon, queue.as_fd()], Some(LOOK))[0] {
                    return true;
                }
            }
            return false;
        }
    }
}

/// Accepts what waits, and what the daemon had taken out of the queue before and not judged, as long as
/// packets `may_pass`.
fn let_pass(queue: &mut Queue, may_pass: impl Fn() -> bool) {
    // What cannot be read or answered passes when the queue is gone.
    while may_pass()
        && let Ok(Some(queued)) = queue.receive()
    {
        let id = queued.id;
        if queue.give_until(id, Ruling::Accept).is_err() {
            return;
        }
    }
}

/// Which of the descriptors are readable, at the latest after `patience`.
fn ready<const N: usize>(all: [BorrowedFd<'_>; N], patience: Option<Duration>) -> [bool; N] {
    let mut fds = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let patience = patience.map(|patience| Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    });
    // All signals are blocked. What else goes wrong is as if nothing were ready.
    let _ = poll(&mut fds, patience.as_ref());
    fds.map(|fd| !fd.revents().is_empty())
}
