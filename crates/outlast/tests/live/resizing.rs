//! `outlast run` on an interface whose MTU is another one after the outage: what was kept under the old
//! one leaves as packets of the new one, or its sender is told, as by every router.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wire::{Way, Wire, set_mtu};
use crate::path::wiring::inside;
use crate::path::{Daemon, FIXED, LINK, MOBILE, Over, Path, Transfer, Version, until};
use crate::support::Place;
use outlast_linux::namespace::Namespace;
use rustix::io::Errno;
use rustix::net::sockopt;
use serde_json::Value;
use std::io;
use std::net::{SocketAddr, UdpSocket};

const BYTES: usize = 6_000_000;
const MTU: u32 = 1500;
const SMALLER: u32 = 1400;
/// With its headers it is longer than the smaller MTU, but not than the other.
const DATAGRAM: [u8; 1420] = [7; _];

/// Whose end of the link is watched, and sends.
#[derive(Clone, Copy, Debug)]
enum Keeper {
    Gateway,
    Mobile,
}

impl Keeper {
    const fn place(self, path: &Path) -> &Namespace {
        match self {
            Self::Gateway => &path.gateway,
            Self::Mobile => &path.mobile,
        }
    }

    const fn way(self) -> Way {
        match self {
            Self::Gateway => Way::ToMobile,
            Self::Mobile => Way::ToGateway,
        }
    }
}

/// By both data paths, each in places of its own.
#[track_caller]
fn by_both(work: impl Fn(Over) + Sync) {
    std::thread::scope(|scope| {
        let runs = Over::BOTH.map(|over| {
            let work = &work;
            scope.spawn(move || work(over))
        });
        for run in runs {
            if let Err(failure) = run.join() {
                std::panic::resume_unwind(failure);
            }
        }
    });
}

fn resize(keeper: Keeper, path: &Path, mtu: u32) {
    inside(keeper.place(path), |route| set_mtu(route, LINK, mtu));
}

/// A transfer over an outage, after which the MTU is another; it goes on at once, and nothing longer
/// than that leaves.
fn goes_on(over: Over, keeper: Keeper, version: Version, mtus: [u32; 2]) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    resize(keeper, &path, mtus[0]);
    let Some(wire) = path.tap() else { return };
    let (from, to, address) = match keeper {
        Keeper::Gateway => (&path.fixed, &path.mobile, MOBILE),
        Keeper::Mobile => (&path.mobile, &path.fixed, FIXED),
    };
    let Some(daemon) = Daemon::start_over(over, &place, keeper.place(&path), "hold") else {
        return;
    };
    let mut transfer = Transfer::start(from, to, address.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    let keeps = |status: &Value| status["held_bytes"].as_u64() > Some(0);
    daemon.status_when("something that is held", keeps);
    wire.assert_within(keeper.way(), mtus[0] as usize);
    wire.forget();
    resize(keeper, &path, mtus[1]);
    let by_itself = transfer.wait_for_long_timeout();
    let up = path.mend();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    wire.assert_within(keeper.way(), mtus[1] as usize);
    let status = daemon.status();
    assert_eq!(status["counters"]["unsent"], 0, "{status:#}");
    daemon.stop();
}

#[test]
fn what_was_kept_of_a_download_fits_an_mtu_that_has_shrunk() {
    by_both(|over| goes_on(over, Keeper::Gateway, Version::V4, [MTU, SMALLER]));
    by_both(|over| goes_on(over, Keeper::Gateway, Version::V6, [MTU, SMALLER]));
}

#[test]
fn what_was_kept_of_an_upload_does_too() {
    by_both(|over| goes_on(over, Keeper::Mobile, Version::V4, [MTU, SMALLER]));
    by_both(|over| goes_on(over, Keeper::Mobile, Version::V6, [MTU, SMALLER]));
}

#[test]
fn what_was_kept_under_a_small_mtu_leaves_under_one_that_has_grown() {
    by_both(|over| goes_on(over, Keeper::Gateway, Version::V4, [SMALLER, MTU]));
    by_both(|over| goes_on(over, Keeper::Gateway, Version::V6, [SMALLER, MTU]));
}

/// A datagram that was sent while the link was down, whose MTU is smaller since; the link is back.
struct Late {
    daemon: Daemon,
    _path: Path,
    wire: Wire,
    sender: UdpSocket,
    receiver: UdpSocket,
}

fn socket(namespace: &Namespace, address: SocketAddr) -> UdpSocket {
    let bound = namespace.run(|| UdpSocket::bind(address)).expect("enter");
    let socket = bound.expect("bind");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

impl Late {
    fn new(place: &Place, over: Over, version: Version, prepare: fn(&UdpSocket)) -> Option<Self> {
        let path = Path::new()?;
        let wire = path.tap()?;
        let patient = place.file("gateway.toml", "[limits]\nother_age = \"1 h\"\n");
        let patient = ["--config", patient.to_str().expect("a path of ours")];
        let arguments = ["--mechanism", "hold", "--data-path", over.name()];
        let arguments = [arguments.as_slice(), &patient].concat();
        let daemon = Daemon::start_with(place, &path.gateway, &arguments)?;
        let receiver = socket(&path.mobile, SocketAddr::new(MOBILE.of(version), 0));
        let sender = socket(&path.fixed, SocketAddr::new(FIXED.of(version), 0));
        prepare(&sender);
        let to = receiver.local_addr().expect("bound");
        sender.connect(to).expect("a way");
        path.cut();
        let is_down = |status: &Value| status["link"]["state"] == "down";
        daemon.status_when("a link that is down", is_down);
        sender.send(&DATAGRAM).expect("room");
        let keeps = |status: &Value| status["held_other_bytes"].as_u64() > Some(0);
        daemon.status_when("a datagram that waits", keeps);
        resize(Keeper::Gateway, &path, SMALLER);
        path.mend();
        Some(Self {
            daemon,
            _path: path,
            wire,
            sender,
            receiver,
        })
    }

    /// Waits for the datagram.
    #[track_caller]
    fn receive(&self) {
        let mut buffer = [0; 2 * DATAGRAM.len()];
        until("the datagram", || match self.receiver.recv(&mut buffer) {
            Ok(length) => buffer[..length] == DATAGRAM,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                false
            }
        });
    }

    /// It came as two packets that fit.
    #[track_caller]
    fn assert_in_two(&self) {
        let log = self.wire.log(Way::ToMobile);
        assert_eq!((log.fragments, &log.wrong), (2, &None), "{log:?}");
        assert!(log.longest <= SMALLER as usize, "{log:?}");
    }
}

fn tells_the_sender(over: Over, version: Version) {
    let place = Place::new();
    let Some(late) = Late::new(&place, over, version, |_| {}) else {
        return;
    };
    until("word that it is too long", || {
        let error = late.sender.recv(&mut [0; 8]).expect_err("nobody answers");
        error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
    });
    let status = late.daemon.status();
    assert_eq!(status["counters"]["unsent"], 1, "{status:#}");
    // Whom it was told cuts what is sent to it from now on.
    late.sender.send(&DATAGRAM).expect("room");
    late.receive();
    late.assert_in_two();
    late.daemon.stop();
}

#[test]
fn who_sent_a_datagram_that_is_too_long_by_now_is_told() {
    by_both(|over| tells_the_sender(over, Version::V4));
    by_both(|over| tells_the_sender(over, Version::V6));
}

fn cuts_the_datagram(over: Over) {
    let place = Place::new();
    let allow = |sender: &UdpSocket| {
        sockopt::set_ip_mtu_discover(sender, sockopt::Ipv4PathMtuDiscovery::DONT).expect("Linux");
    };
    let Some(late) = Late::new(&place, over, Version::V4, allow) else {
        return;
    };
    late.receive();
    late.assert_in_two();
    let status = late.daemon.status();
    assert_eq!(status["counters"]["unsent"], 0, "{status:#}");
    late.daemon.stop();
}

#[test]
fn a_datagram_that_may_be_cut_arrives_in_fragments() {
    by_both(cuts_the_datagram);
}
