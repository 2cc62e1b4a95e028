//! A lab whose process is killed leaves nothing behind, and shells in running labs.

use crate::support::skip;
use outlast_lab::registry::{self, RunningLab};
use outlast_lab::{Cancel, Lab, Side};
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::timer::Timer;
use outlast_scenario::Scenario;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says in which directory the fifo lies that the lab's programs hold.
const PLACE: &str = "OUTLAST_TEST_PLACE";

#[test]
#[ignore = "not a test: a process with a lab that never ends"]
fn run_for_ever() {
    let place = std::env::var_os(PLACE).expect("set by the test");
    // Programs in the background, out of the process group, all holding the fifo.
    let text = "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"command\"\nready = 4711\n\
         server = \"exec 3> fifo; echo on >&3; setsid sleep 1000 & (sleep 1000 & sleep 1000) & wait\"\n\
         client = \"true\"\n[run]\ndeadline = \"1000 s\"\n";
    let scenario = Scenario::parse(text, "for-ever.toml", Path::new(&place));
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    match lab.run(&Cancel::new().expect("eventfd"), |_| {}) {
        Err(error) if error.is_missing_capability() => skip(error),
        outcome => panic!("{outcome:?}"),
    }
}

/// A child process that a test that fails does not leave behind.
struct Mortal(Child);

impl Mortal {
    fn kill(mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) && self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

/// A child process that runs a lab, in which programs hold `fifo` open for writing.
fn child_with_lab(place: &Path) -> (Mortal, File) {
    let fifo = place.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo is part of every system").success());
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--ignored",
            "--exact",
            "killed::run_for_ever",
            "--nocapture",
        ])
        .env(PLACE, place)
        .env("XDG_RUNTIME_DIR", place)
        .stdout(Stdio::null())
        .spawn();
    let mut child = Mortal(child.expect("start"));
    // Without waiting for a writer, which may never come.
    let fifo = rustix::fs::open(fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    let mut fifo = File::from(fifo.expect("open"));
    let pid = Pid::from_child(&child.0);
    let ended = pidfd_open(pid, PidfdFlags::empty()).expect("pidfd");
    let mut fds = [
        PollFd::new(&fifo, PollFlags::IN),
        PollFd::new(&ended, PollFlags::IN),
    ];
    poll(&mut fds, None).expect("poll");
    assert!(
        !fds[0].revents().is_empty(),
        "ended too early: {:?}",
        child.0.wait()
    );
    let mut word = [0; 3];
    fifo.read_exact(&mut word)
        .expect("the server on the fixed host says that it is on");
    rustix::io::ioctl_fionbio(&fifo, false).expect("blocking from now on");
    (child, fifo)
}

/// The network namespace that `command`, to be run by a shell in `lab`, finds itself in.
fn namespace_of(lab: &RunningLab, side: Side) -> String {
    let mut command = lab.command(side, "readlink").expect("the lab runs");
    let output = command.arg("/proc/self/ns/net").output().expect("readlink");
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// Processes that are in, or hold, one of `namespaces`.
fn users_of(namespaces: &BTreeSet<String>) -> BTreeSet<PathBuf> {
    let links = |directory: PathBuf| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok())
    };
    let processes = fs::read_dir("/proc")
        .expect("proc")
        .flatten()
        .map(|entry| entry.path());
    let uses = |process: &PathBuf| {
        links(process.join("fd"))
            .chain(links(process.join("ns")))
            .any(|link| link.to_str().is_some_and(|link| namespaces.contains(link)))
    };
    processes.filter(uses).collect()
}

#[test]
fn nothing_is_left_of_a_lab_whose_process_was_killed() {
    if let Err(error) = outlast_linux::namespace::Namespace::new() {
        return skip(error);
    }
    let place = tempfile::tempdir().expect("directory");
    let (child, mut fifo) = child_with_lab(place.path());
    let labs = registry::running_in(&place.path().join("outlast")).expect("readable");
    let [lab] = &labs[..] else {
        panic!("one lab, not {labs:?}")
    };
    assert_eq!((lab.scenario(), lab.pid()), ("for-ever", child.0.id()));
    let namespaces = BTreeSet::from(Side::BOTH.map(|side| namespace_of(lab, side)));
    assert_eq!(namespaces.len(), 2);
    assert!(!users_of(&namespaces).is_empty());

    child.kill();
    // Ends when the last of the lab's programs is gone.
    assert_eq!(fifo.read_to_end(&mut Vec::new()).expect("read"), 0);
    wait_until(|| users_of(&namespaces).is_empty());
    let mounts = BufReader::new(File::open("/proc/self/mountinfo").expect("proc"));
    for mount in mounts.lines() {
        let mount = mount.expect("text");
        assert!(
            !namespaces.iter().any(|namespace| mount.contains(namespace)),
            "{mount}"
        );
    }
    assert!(
        lab.command(Side::Mobile, "true").is_err(),
        "the lab has ended"
    );
    let labs = registry::running_in(&place.path().join("outlast")).expect("readable");
    assert!(labs.is_empty());
}

#[test]
fn a_shell_in_a_host_sees_its_addresses_and_reaches_the_other_host() {
    if let Err(error) = outlast_linux::namespace::Namespace::new() {
        return skip(error);
    }
    let place = tempfile::tempdir().expect("directory");
    let (child, _fifo) = child_with_lab(place.path());
    let labs = registry::running_in(&place.path().join("outlast")).expect("readable");
    let [lab] = &labs[..] else {
        panic!("one lab, not {labs:?}")
    };
    for side in Side::BOTH {
        let mut command = lab.command(side, "cat").expect("the lab runs");
        let table = command
            .arg("/proc/self/net/fib_trie")
            .output()
            .expect("cat")
            .stdout;
        let table = String::from_utf8(table).expect("text");
        assert!(table.contains(&side.ipv4().to_string()), "{side}: {table}");
        // The other's address is no local one.
        let own = format!("|-- {}\n           /32 host LOCAL", side.peer().ipv4());
        assert!(!table.contains(&own), "{side}: {table}");
    }
    child.kill();
}

/// Looks every few milliseconds until `condition` holds; a process that was killed ends without
/// telling strangers.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = clock::now() + Duration::from_secs(90);
    let (mut timer, mut poller) = (
        Timer::new().expect("timerfd"),
        Poller::new().expect("epoll"),
    );
    poller
        .add(&timer, Token(0), Interest::Readable)
        .expect("add");
    while !condition() {
        assert!(clock::now() < deadline, "still there");
        timer
            .set(Some(clock::now() + Duration::from_millis(5)))
            .expect("set");
        assert_eq!(poller.wait().expect("wait").count(), 1);
        timer.consume().expect("consume");
    }
}
