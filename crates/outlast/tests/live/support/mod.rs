//! Helpers that live tests share.

pub(crate) use crate::place::{Place, Said};

use crate::hip::pace;
use outlast_base::time::Duration;
use outlast_daemon::control::{self, Request};
use outlast_linux::clock;
use outlast_skip::skip;
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Lets this process have so many descriptors; false, with the reason, where it may not.
pub(crate) fn allow_descriptors(wanted: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Two tests at once must not take back what the other one got.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let had = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: had.current.map(|current| current.max(wanted)),
        maximum: had.maximum.map(|most| most.max(wanted)),
    };
    let is_allowed = setrlimit(Resource::Nofile, raised).is_ok();
    if !is_allowed {
        skip("so many descriptors are not allowed");
    }
    is_allowed
}

/// Asks the daemon that listens at `socket` what `outlast status --json` prints. A process for each question of a test
/// that waits for something would cost more than all else in it.
#[track_caller]
pub(crate) fn status_at(socket: &Path) -> Value {
    answer(socket, Request::Status)
}

/// Asks for what `outlast status --json --flows` prints.
#[track_caller]
pub(crate) fn flows_at(socket: &Path) -> Value {
    /// The command's own limit.
    const LIMIT: usize = 20;
    answer(socket, Request::Flows { limit: LIMIT })
}

#[track_caller]
fn answer(socket: &Path, request: Request) -> Value {
    let answer = control::ask(socket, request);
    answer.unwrap_or_else(|failure| panic!("{}: {failure}", socket.display()))
}

/// Repeats a call that is interrupted. The kernel does not where a socket has a timeout, and somebody who stops a
/// process for a moment (a debugger, a freezer) interrupts as a signal does.
pub(crate) fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Tells people what was seen: those who read of a test that fails, and those who want the numbers.
#[expect(clippy::print_stderr, reason = "people read it")]
pub(crate) fn report(what: &str) {
    eprintln!("{what}");
}

/// Does something, and says how long this machine stood still meanwhile at most: a virtual machine that is stopped for
/// a moment, or has no processor for its threads. What happens on a link then is not what a test has asked for.
pub(crate) fn watched<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let witness = scope.spawn(|| {
            let (mut last, mut longest) = (clock::now(), Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                pace();
                let now = clock::now();
                (last, longest) = (now, longest.max(now - last));
            }
            longest
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        (done, witness.join().expect("it only looks at the clock"))
    })
}

/// True if the running kernel is of this version or a later one.
pub(crate) fn has_kernel(major: u32, minor: u32) -> bool {
    let release = outlast_linux::kernel_release();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|digits| digits.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}
