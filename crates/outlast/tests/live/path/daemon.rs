//! `outlast run` in a namespace.

use super::{LINK, seen_within_patience, skip, until};
use crate::support::{Place, Said, flows_at, status_at};
use outlast_linux::namespace::Namespace;
use outlast_linux::process;
use rustix::fd::AsFd;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;

/// By which data path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Over {
    Ebpf,
    Nfqueue,
}

impl Over {
    pub(crate) const BOTH: [Self; 2] = [Self::Ebpf, Self::Nfqueue];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ebpf => "ebpf",
            Self::Nfqueue => "nfqueue",
        }
    }
}

/// A daemon in a namespace.
pub(crate) struct Daemon {
    child: Child,
    /// What it says, by line; somebody always reads, so that it never waits for a reader.
    lines: mpsc::Receiver<String>,
    /// What of it was looked at.
    said: String,
    pub(crate) introduction: String,
    control: PathBuf,
}

impl Daemon {
    /// `outlast run` with `mechanism` on the link, once packets go through it; `None`, with the
    /// reason, where this machine lacks something.
    pub(crate) fn start(place: &Place, namespace: &Namespace, mechanism: &str) -> Option<Self> {
        Self::start_with(place, namespace, &["--mechanism", mechanism])
    }

    /// `outlast run` with `mechanism` over the data path `over`.
    pub(crate) fn start_over(
        over: Over,
        place: &Place,
        namespace: &Namespace,
        mechanism: &str,
    ) -> Option<Self> {
        let arguments = ["--mechanism", mechanism, "--data-path", over.name()];
        Self::start_with(place, namespace, &arguments)
    }

    /// `outlast run` with these arguments.
    pub(crate) fn start_with(
        place: &Place,
        namespace: &Namespace,
        arguments: &[&str],
    ) -> Option<Self> {
        let control = place
            .path()
            .join(format!("{}.sock", namespace.id().expect("a namespace").0));
        let mut command = command(place, namespace, &control);
        command.args(arguments);
        Self::begin(command, control)
    }

    /// `outlast run` with a configuration file in which `text` stands.
    pub(crate) fn configured(place: &Place, namespace: &Namespace, text: &str) -> Option<Self> {
        let file = place.file("gateway.toml", text);
        let file = file.to_str().expect("a path of ours");
        Self::start_with(place, namespace, &["--config", file])
    }

    /// Starts a daemon by `command`, which has it listen at `control`.
    pub(crate) fn begin(mut command: Command, control: PathBuf) -> Option<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("outlast was built");
        let lines = lines(child.stderr.take().expect("piped"));
        let mut introduction = String::new();
        // What it finds that an earlier one has left is told first.
        while !introduction.contains(LINK) {
            let Ok(line) = lines.recv() else { break };
            introduction.push_str(&line);
        }
        if !introduction.contains(LINK) {
            let code = child.wait().expect("it ends").code();
            assert_eq!(code, Some(3), "{introduction}");
            skip(&introduction);
            return None;
        }
        Some(Self {
            child,
            lines,
            said: String::new(),
            introduction,
            control,
        })
    }

    /// What another one for the same interface says.
    pub(crate) fn second(&self, place: &Place, namespace: &Namespace) -> Said {
        let mut command = command(place, namespace, &self.control);
        Said::of(command.output().expect("outlast was built"))
    }

    /// What one that does not start says.
    pub(crate) fn refused(
        over: Over,
        place: &Place,
        namespace: &Namespace,
        control: &std::path::Path,
    ) -> Said {
        let mut command = command(place, namespace, control);
        command.args(["--data-path", over.name()]);
        Said::of(command.output().expect("outlast was built"))
    }

    /// Waits until it can be asked: it says first of what it waits for.
    pub(crate) fn wait_until_asked(&self) {
        until("it can be asked", || {
            UnixStream::connect(&self.control).is_ok()
        });
    }

    /// The document of `outlast status --json`.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        status_at(&self.control)
    }

    /// The document of `outlast status --json`, once `is_so` holds of it.
    #[track_caller]
    pub(crate) fn status_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        awaited(what, || self.status(), is_so)
    }

    /// The document of `outlast status --json --flows`, once `is_so` holds of it.
    #[track_caller]
    pub(crate) fn flows_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        awaited(what, || flows_at(&self.control), is_so)
    }

    /// Runs a subcommand that talks to this daemon.
    pub(crate) fn ask(&self, place: &Place, arguments: &[&str]) -> Said {
        let mut command = place.command(arguments);
        command.arg("--control").arg(&self.control);
        Said::of(command.output().expect("outlast was built"))
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it still runs");
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        self.lines.recv().expect("it still runs")
    }

    /// Whether it has said `what` since its introduction, beside what [`line`](Self::line) took.
    pub(crate) fn has_said(&mut self, what: &str) -> bool {
        self.said.extend(self.lines.try_iter());
        self.said.contains(what)
    }

    /// Ends it as the kernel ends what runs amok; what it said since its introduction.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().expect("it still runs");
        self.child.wait().expect("it ends");
        self.said.extend(self.lines.iter());
        std::mem::take(&mut self.said)
    }

    /// Asks it to end; what it said since its introduction.
    pub(crate) fn stop(mut self) -> String {
        self.signal(rustix::process::Signal::TERM);
        self.said.extend(self.lines.iter());
        let said = std::mem::take(&mut self.said);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {said}");
        assert!(!self.control.exists(), "the socket is left behind");
        said
    }
}

impl Drop for Daemon {
    /// A test that fails leaves nobody behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

/// A daemon's document, once `is_so` holds of it.
#[track_caller]
fn awaited(what: &str, look: impl Fn() -> Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let seen = seen_within_patience(|| {
        last = look();
        is_so(&last).then(|| last.take())
    });
    seen.unwrap_or_else(|waited| panic!("{what}: not after {waited:?}, but {last:#}"))
}

/// The lines that a program writes, as they come.
fn lines(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stderr = BufReader::new(stderr);
        loop {
            let mut line = String::new();
            let length = stderr.read_line(&mut line).expect("text");
            if length == 0 || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What `outlast run` on the link says, which is to refuse these arguments.
pub(crate) fn try_with(place: &Place, namespace: &Namespace, arguments: &[&str]) -> Said {
    let mut command = command(place, namespace, &place.path().join("refused.sock"));
    command.args(arguments);
    Said::of(command.output().expect("outlast was built"))
}

/// `outlast run` on the link, to be run in `namespace`.
fn command(place: &Place, namespace: &Namespace, control: &std::path::Path) -> Command {
    let mut command = place.command(["run", "--interface", LINK]);
    command.arg("--control").arg(control);
    let network = namespace.as_fd().try_clone_to_owned().expect("descriptor");
    process::place(&mut command, None, network);
    command
}
