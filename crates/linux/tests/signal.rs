//! A process that is asked to stop: it hears of it the first time and ends at once the second.

use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::signal::Termination;
use outlast_linux::waker::Waker;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
#[ignore = "not a test: the process that is asked to stop"]
fn wait_to_be_asked() {
    let waker = Waker::new().expect("eventfd");
    let _termination = Termination::wake(&waker).expect("handlers");
    println!("\nlistening");
    let mut poller = Poller::new().expect("epoll");
    poller
        .add(&waker, Token(0), Interest::Readable)
        .expect("add");
    while poller.wait().expect("wait").count() == 0 {}
    println!("\nasked");
    // Never ends by itself: it hears nothing more.
    poller.remove(&waker).expect("remove");
    while poller.wait().expect("wait").count() == 0 {}
}

#[test]
fn the_first_signal_wakes_and_the_second_ends() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "wait_to_be_asked", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("start");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut says = |word: &str| lines.any(|line| line.expect("text") == word);
        let pid = Pid::from_child(&child);
        assert!(says("listening"));
        kill_process(pid, signal).expect("alive");
        assert!(says("asked"), "{signal:?}");
        kill_process(pid, signal).expect("alive");
        let status = child.wait().expect("reaped");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
    }
}
