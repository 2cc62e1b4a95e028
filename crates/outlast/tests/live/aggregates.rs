//! `outlast run` on an interface that is spared work by its network card: packets that cross the host
//! as one, and checksums that are filled in last. What the link carries for them is what the
//! interface would have sent.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wire::{Log, Way, Wire, set_mtu};
use crate::path::wiring::inside;
use crate::path::{Daemon, LINK, MOBILE, Over, Path, Transfer, Version, keeps_something, until};
use crate::support::Place;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::offload;

const BYTES: usize = 6_000_000;
const MTU: usize = 1500;

fn super_segments(namespace: &Namespace, interface: &str, on: bool) {
    let told = || offload::set_super_segments(interface, on);
    namespace.run(told).expect("enter").expect("a veth's");
}

fn checksums(namespace: &Namespace, interface: &str, on: bool) {
    let told = || offload::set_checksums(interface, on);
    namespace.run(told).expect("enter").expect("a veth's");
}

/// Packets that the host believes its end of the link to have sent.
fn sent(path: &Path) -> u64 {
    let work = || {
        let mut route = RouteSocket::open().expect("netlink");
        let index = route.interface(LINK).expect("made");
        route.statistics(index).expect("netlink").sent_packets
    };
    path.gateway.run(work).expect("enter")
}

/// A download over an outage, before and in which something is done to the path; it goes on at
/// once, whole, by packets that fit `mtu` and whose checksums are right. By both data paths and both
/// versions of IP, each in places of its own.
#[track_caller]
fn goes_on_within(mtu: usize, before: fn(&Path), meanwhile: fn(&Path)) {
    std::thread::scope(|scope| {
        let runs = Over::BOTH.map(|over| {
            [Version::V4, Version::V6]
                .map(|version| scope.spawn(move || goes_on(over, version, mtu, before, meanwhile)))
        });
        for run in runs.into_iter().flatten() {
            if let Err(failure) = run.join() {
                std::panic::resume_unwind(failure);
            }
        }
    });
}

fn goes_on(over: Over, version: Version, mtu: usize, before: fn(&Path), meanwhile: fn(&Path)) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    before(&path);
    let Some(wire) = path.tap() else { return };
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
        return;
    };
    let to = MOBILE.of(version);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    outlasts(&path, &wire, daemon, transfer, mtu, meanwhile);
}

/// The rest of the test, for a download that runs behind a daemon.
fn outlasts(
    path: &Path,
    wire: &Wire,
    daemon: Daemon,
    mut transfer: Transfer,
    mtu: usize,
    meanwhile: fn(&Path),
) {
    // How many they stand for hangs on how much else the machine does.
    until("super-segments", || {
        let crossed = sent(path);
        wire.log(Way::ToMobile).packets as u64 > crossed + 200
    });
    path.cut();
    daemon.status_when("something that is held", keeps_something);
    meanwhile(path);
    let by_itself = transfer.wait_for_long_timeout();
    let up = path.mend();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    wire.assert_within(Way::ToMobile, mtu);
    let status = daemon.status();
    assert_eq!(status["counters"]["unsent"], 0, "{status:#}");
    daemon.stop();
}

const NOTHING: fn(&Path) = |_| {};

#[test]
fn super_segments_of_a_host_leave_as_the_packets_that_they_are() {
    goes_on_within(MTU, NOTHING, NOTHING);
}

/// The fixed host sends single packets, which the gateway puts together (GRO).
fn receive_in_crowds(path: &Path) {
    super_segments(&path.fixed, "eth0", false);
    super_segments(&path.gateway, "fixed0", true);
}

#[test]
fn packets_that_were_put_together_leave_as_they_came() {
    goes_on_within(MTU, receive_in_crowds, NOTHING);
}

#[test]
fn super_segments_that_the_interface_does_not_send_any_more_leave_all_the_same() {
    let meanwhile: fn(&Path) = |path| super_segments(&path.gateway, LINK, false);
    goes_on_within(MTU, NOTHING, meanwhile);
}

#[test]
fn checksums_that_the_interface_does_not_fill_in_any_more_are_right() {
    let meanwhile: fn(&Path) = |path| checksums(&path.gateway, LINK, false);
    goes_on_within(MTU, NOTHING, meanwhile);
}

#[test]
fn what_a_receiver_of_small_packets_is_sent_stays_small() {
    let before: fn(&Path) = |path| inside(&path.mobile, |route| set_mtu(route, LINK, 1300));
    goes_on_within(1300, before, NOTHING);
}

/// What its receiver has offered to take nobody has seen who is there by now; how long the packets are
/// that it is sent, everybody sees.
#[test]
fn what_is_sent_on_a_connection_older_than_the_daemon_stays_as_small_as_it_was() {
    const SMALL: usize = 1300;
    std::thread::scope(|scope| {
        let each = |over, version| {
            let place = Place::new();
            let Some(path) = Path::new() else { return };
            inside(&path.mobile, |route| set_mtu(route, LINK, 1300));
            let Some(wire) = path.tap() else { return };
            let to = MOBILE.of(version);
            let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
            transfer.wait_for(BYTES / 12);
            transfer.pause();
            let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
                return;
            };
            transfer.go_on();
            transfer.wait_for(BYTES / 6);
            outlasts(&path, &wire, daemon, transfer, SMALL, NOTHING);
        };
        let runs = Over::BOTH.map(|over| {
            [Version::V4, Version::V6].map(|version| scope.spawn(move || each(over, version)))
        });
        for run in runs.into_iter().flatten() {
            if let Err(failure) = run.join() {
                std::panic::resume_unwind(failure);
            }
        }
    });
}

#[test]
fn the_wire_sees_what_is_too_long_or_wrong() {
    let Some(path) = Path::new() else { return };
    for (namespace, interface) in [
        (&path.fixed, "eth0"),
        (&path.gateway, "fixed0"),
        (&path.gateway, LINK),
        (&path.mobile, LINK),
    ] {
        inside(namespace, |route| set_mtu(route, interface, 4000));
    }
    let Some(wire) = path.tap() else { return };
    let to = MOBILE.of(Version::V4);
    Transfer::start(&path.fixed, &path.mobile, to, BYTES / 6).finish();
    let Log { longest, wrong, .. } = wire.log(Way::ToMobile);
    assert_eq!((longest, wrong), (4000, None));
    // An echo whose checksum is none.
    let mut damaged = Log::default();
    let mut echo = vec![0; 12];
    echo.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x4e, 0x63]);
    echo.extend([192, 0, 2, 2, 198, 51, 100, 2, 8, 0, 1, 2, 3, 4, 5, 6]);
    damaged.note(&echo);
    assert!(damaged.wrong.is_some(), "{damaged:?}");
}
