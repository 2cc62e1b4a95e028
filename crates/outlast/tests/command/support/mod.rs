//! What the tests of the command share: the command itself, in a directory of its own.

use crate::hip::pace;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_skip::skip;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tempfile::TempDir;

/// A directory for one test: files, results, and the registry of the labs that it runs.
pub(crate) struct Place(TempDir);

/// What the command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a file in a directory of ours");
        path
    }

    /// Where labs that run here register.
    pub(crate) fn registry(&self) -> PathBuf {
        self.path().join("outlast")
    }

    /// `outlast` with `arguments`, to be run in this directory.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("NO_COLOR", "1")
            .env_remove("TERM")
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command
    }

    /// Runs `outlast` with `arguments` to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Said {
        Said::of(self.command(arguments).output().expect("outlast was built"))
    }

    /// Starts `outlast` with `arguments`, both outputs piped.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("outlast was built")
    }
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command prints text");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Checks exit code and silence on standard output, and that the message has each of `words`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
    }
}

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
