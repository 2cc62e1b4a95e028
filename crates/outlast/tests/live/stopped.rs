//! `outlast run` that is stopped (SIGSTOP), as by a debugger or a fault in it: its packets go on within two
//! seconds, and when it continues it protects connections as before. So it does when somebody has killed
//! its guardian, the process that lets the packets pass.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{
    Daemon, FIXED, MOBILE, Over, Path, Transfer, Version, connected, is_ahead, keeps_something,
    until,
};
use crate::support::{Place, again};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

const BYTES: usize = 6_000_000;
/// No longer than this is anything held up.
const MOST: Duration = Duration::from_secs(2);

struct Scene {
    _place: Place,
    path: Path,
    daemon: Daemon,
}

impl Scene {
    /// `None`, with the reason, where this machine lacks something.
    fn new(over: Over, mechanism: &str) -> Option<Self> {
        let (place, path) = (Place::new(), Path::new()?);
        let daemon = Daemon::start_over(over, &place, &path.gateway, mechanism)?;
        Some(Self {
            _place: place,
            path,
            daemon,
        })
    }

    fn transfer(&self, version: Version) -> Transfer {
        let Path { fixed, mobile, .. } = &self.path;
        let mut transfer = Transfer::start(fixed, mobile, MOBILE.of(version), BYTES);
        transfer.wait_for(BYTES / 6);
        transfer
    }

    fn stop(&self) -> Instant {
        self.daemon.signal(Signal::STOP);
        clock::now()
    }

    fn resume(&self) -> Instant {
        self.daemon.signal(Signal::CONT);
        clock::now()
    }

    /// The daemon's guardian: the other process on the gateway.
    fn guardian(&self) -> Pid {
        let children = format!("/proc/{0}/task/{0}/children", self.daemon.id());
        let find = || {
            let children = std::fs::read_to_string(&children).expect("procfs");
            let child = children.split_whitespace().next()?;
            Pid::from_raw(child.parse().expect("a number"))
        };
        crate::path::seen("a guardian", find)
    }
}

/// The longest pause in a transfer from `start` on, looked at for `time`.
fn longest_pause(transfer: &mut Transfer, start: Instant, time: Duration) -> Duration {
    let (mut last, mut longest) = (start, Duration::ZERO);
    while last < start + time {
        let next = transfer.resumed(last);
        longest = longest.max(next.since(last));
        last = next;
    }
    longest
}

/// A transfer goes on while the daemon is stopped.
fn stopped_while_up(over: Over, mechanism: &str, version: Version) -> Option<()> {
    let scene = Scene::new(over, mechanism)?;
    let mut transfer = scene.transfer(version);
    let stopped = scene.stop();
    let pause = longest_pause(&mut transfer, stopped, Duration::from_secs(4));
    assert!(pause < MOST, "{over:?} {mechanism}: {pause:?}");
    let continued = scene.resume();
    let pause = longest_pause(&mut transfer, continued, Duration::from_secs(1));
    assert!(pause < MOST, "{over:?} {mechanism}, afterwards: {pause:?}");
    let Scene { path, daemon, .. } = scene;
    if mechanism == "hold" {
        path.cut_amid(&daemon, transfer);
    } else {
        // Its sender has no timer that runs.
        path.cut();
        daemon.flows_when("a frozen connection", is_ahead);
        let up = path.mend();
        assert!(transfer.resumed(up).since(up) < MOST);
        transfer.finish();
    }
    daemon.stop();
    // The guardian follows the daemon.
    path.until_deserted();
    Some(())
}

/// While the link is down the daemon is stopped. The link is back: new connections open, and the old one
/// goes on when the daemon continues.
fn stopped_while_down(over: Over, mechanism: &str, version: Version) -> Option<()> {
    let scene = Scene::new(over, mechanism)?;
    let Scene { path, daemon, .. } = &scene;
    let mut transfer = scene.transfer(version);
    path.cut();
    daemon.status_when("something that is held", keeps_something);
    let by_itself = transfer.wait_for_long_timeout();
    let stopped = scene.stop();
    path.mend();
    let (mut near, mut far) = connected(&path.mobile, &path.fixed, FIXED.of(version));
    near.write_all(b"there").expect("room");
    far.read_exact(&mut [0; 5]).expect("it comes");
    let pause = clock::now().since(stopped);
    assert!(pause < MOST, "{over:?} {mechanism}: {pause:?}");
    let continued = scene.resume();
    transfer.assert_resumes_before(by_itself, continued);
    longest_pause(&mut transfer, clock::now(), Duration::from_secs(1));
    path.cut_amid(daemon, transfer);
    let Scene { path, daemon, .. } = scene;
    daemon.stop();
    // The guardian follows the daemon.
    path.until_deserted();
    Some(())
}

#[test]
fn packets_go_on_while_the_daemon_is_stopped_and_afterwards_it_protects_them_again() {
    use Version::{V4, V6};
    std::thread::scope(|scope| {
        scope.spawn(|| stopped_while_up(Over::Ebpf, "hold", V4));
        scope.spawn(|| stopped_while_up(Over::Nfqueue, "hold", V4));
        scope.spawn(|| stopped_while_up(Over::Nfqueue, "acknowledge-ahead", V6));
        scope.spawn(|| stopped_while_down(Over::Ebpf, "hold", V6));
        scope.spawn(|| stopped_while_down(Over::Nfqueue, "hold", V4));
    });
}

#[test]
fn a_guardian_that_is_killed_is_followed_by_another() {
    let Some(scene) = Scene::new(Over::Nfqueue, "hold") else {
        return;
    };
    let mut transfer = scene.transfer(Version::V4);
    let first = scene.guardian();
    kill_process(first, Signal::KILL).expect("it runs");
    until("another guardian", || scene.guardian() != first);
    let stopped = scene.stop();
    let pause = longest_pause(&mut transfer, stopped, Duration::from_secs(3));
    assert!(pause < MOST, "{pause:?}");
    scene.resume();
    transfer.finish();
    // Both killed at once.
    let second = scene.guardian();
    kill_process(second, Signal::KILL).expect("it runs");
    let Scene { path, daemon, .. } = scene;
    daemon.kill();
    path.until_deserted();
    let (mut near, mut far) = connected(&path.mobile, &path.fixed, FIXED.of(Version::V4));
    near.write_all(b"there").expect("room");
    far.read_exact(&mut [0; 5]).expect("it comes");
}

/// Datagrams between two: about two thousand in a second.
const GAP: Duration = Duration::from_micros(500);
/// The daemon is stopped for so long: shorter than its guardian waits.
const STOPPED: Duration = Duration::from_millis(300);

/// The numbers of the datagrams that come for `time`, in the order in which they come.
fn numbers(receiver: &UdpSocket, time: Duration) -> Vec<u32> {
    let (began, mut came, mut number) = (clock::now(), Vec::new(), [0; 4]);
    while let Some(left) = time.checked_sub(clock::now().since(began)) {
        let left = left.max(Duration::from_millis(1));
        receiver.set_read_timeout(Some(left)).expect("a time");
        if again(|| receiver.recv(&mut number)).is_ok() {
            came.push(u32::from_be_bytes(number));
        }
    }
    came
}

/// How many datagrams waited for a daemon that was stopped when its link was back, and how many of them were
/// overtaken afterwards; `None` if none waited any more, as their peer's packets had gone back to the kernel.
fn overtaken(scene: &Scene, receiver: &UdpSocket) -> Option<(usize, usize)> {
    let Scene { path, daemon, .. } = scene;
    path.cut();
    daemon.status_when("the outage", |status| status["link"]["state"] == "down");
    path.mend();
    numbers(receiver, Duration::ZERO);
    receiver.set_read_timeout(None).expect("none");
    receiver.recv(&mut [0; 4]).expect("the link is back");
    scene.stop();
    let meanwhile = numbers(receiver, STOPPED);
    scene.resume();
    let came = numbers(receiver, Duration::from_millis(700));
    let newest = came.iter().scan(0, |newest, number| {
        *newest = (*newest).max(*number);
        Some(*newest)
    });
    let late = newest.zip(&came).filter(|(newest, own)| newest > own);
    let waited = STOPPED.as_millis() / 2;
    (meanwhile.len() < 150).then(|| (usize::try_from(waited).expect("few"), late.count()))
}

/// Ends another thread, however its own ends.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Who is overtaken is taken for lost: so what waits goes on before what stays in the kernel again.
#[test]
fn what_has_waited_is_not_overtaken_when_packets_stay_in_the_kernel_again() {
    let Some(scene) = Scene::new(Over::Ebpf, "hold") else {
        return;
    };
    let Path { fixed, mobile, .. } = &scene.path;
    let socket = |place: &outlast_linux::namespace::Namespace, address| {
        let bound = place.run(|| UdpSocket::bind((address, 5_004)));
        bound.expect("enter").expect("free")
    };
    let (from, to) = (FIXED.of(Version::V4), MOBILE.of(Version::V4));
    let (sender, receiver) = (socket(fixed, from), socket(mobile, to));
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let _end = Ending(&is_over);
        scope.spawn(|| {
            for number in 1_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // Where the link is away the kernel may say so.
                let _ = sender.send_to(&number.to_be_bytes(), (to, 5_004));
                crate::path::wait(GAP);
            }
        });
        (0..20).find_map(|_| overtaken(&scene, &receiver))
    });
    let (waited, late) = seen.expect("the daemon is stopped in time");
    assert!(late < waited / 10, "{late} of some {waited}");
}
