//! `outlast run --role supervisor` between real hosts: M-TCP's supervisor host, and what it tells.
//!
//! The sender's kernel says what was acknowledged to it, and the mobile's kernel what it has received
//! in order. The sender is asked first, so that the mobile may only have received more by the time it
//! is asked.

use crate::path::{Daemon, LINK, MOBILE, Path, Transfer, Version, connected, seen, wait};
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::socket::{TcpInfo, set_congestion_control};
use outlast_linux::sysctl;
use serde_json::Value;
use std::net::TcpStream;

const BYTES: usize = 3_000_000;
/// An outage lasts at least so long.
const OUTAGE: Duration = Duration::from_secs(2);
/// The sender waits so long for its next try when the link comes back.
const REST: Duration = Duration::from_millis(1_500);
const OFTEN: Duration = Duration::from_millis(5);
/// The kernel counts the SYN among the acknowledged bytes.
const SYN: u64 = 1;

/// How a link goes away.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// Both ends lose their carrier.
    Carrier,
    /// The mobile is gone, and the gateway's interface does not show it.
    Silence,
}

/// A download, and both its ends.
struct Download {
    transfer: Transfer,
    out: TcpStream,
    input: TcpStream,
}

impl Download {
    fn start(path: &Path, version: Version) -> Self {
        let (out, input) = connected(&path.fixed, &path.mobile, MOBILE.of(version));
        set_congestion_control(&out, "reno").expect("every Linux has it");
        let again = |end: &TcpStream| end.try_clone().expect("descriptor");
        Self {
            out: again(&out),
            input: again(&input),
            transfer: Transfer::over(out, input, BYTES),
        }
    }

    /// Bytes that were acknowledged to the sender and that the mobile does not have.
    fn ahead(&self) -> u64 {
        let out = TcpInfo::of(&self.out).expect("a TCP socket");
        let input = TcpInfo::of(&self.input).expect("a TCP socket");
        let told = out.acknowledged_bytes().expect("Linux 4.1") - SYN;
        told.saturating_sub(input.received_bytes().expect("Linux 4.1"))
    }

    /// When the sender tries next by itself.
    fn next_try(&self) -> Option<Instant> {
        let now = clock::now();
        let rest = TcpInfo::of(&self.out)
            .expect("a TCP socket")
            .until_next_timeout()?;
        Some(now + rest)
    }

    /// The most that is acknowledged ahead during an outage that ends well before the sender tries
    /// again by itself; when it would.
    fn suffer(&self) -> (u64, Instant) {
        let end = clock::now() + OUTAGE;
        let mut most = 0;
        let by_itself = seen("a long timeout of the sender's", || {
            while clock::now() < end {
                most = most.max(self.ahead());
                wait(OFTEN);
            }
            most = most.max(self.ahead());
            self.next_try().filter(|&at| at >= clock::now() + REST)
        });
        (most, by_itself)
    }
}

fn supervisor(place: &Place, path: &Path, mechanism: &str) -> Option<Daemon> {
    let arguments = ["--role", "supervisor", "--mechanism", mechanism];
    Daemon::start_with(place, &path.gateway, &arguments)
}

/// How a transfer comes to its end after an outage.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Under the supervisor.
    Supervised,
    /// Under nobody: the published rules let a sender on Linux send one segment in a timeout.
    Alone,
}

#[track_caller]
fn outlasts(mechanism: &str, loss: Loss, version: Version, end: End) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = supervisor(&place, &path, mechanism) else {
        return;
    };
    let mut download = Download::start(&path, version);
    download.transfer.wait_for(BYTES / 6);
    match loss {
        Loss::Carrier => path.cut(),
        Loss::Silence => path.lose_mobile(),
    }
    let (ahead, by_itself) = download.suffer();
    let up = match loss {
        Loss::Carrier => path.mend(),
        Loss::Silence => path.find_mobile(),
    };
    assert_eq!(ahead, 0, "bytes acknowledged that the mobile does not have");
    download.transfer.assert_resumes_before(by_itself, up);
    assert_eq!(download.ahead(), 0);
    let status = daemon.status();
    assert_eq!(status["mechanism"], mechanism, "{status:#}");
    let rewritten = status["counters"]["taken"].as_u64();
    assert!(rewritten > Some(0), "{status:#}");
    end_of(download, daemon, end);
}

fn end_of(download: Download, daemon: Daemon, end: End) {
    match end {
        End::Supervised => {
            download.transfer.finish();
            daemon.stop();
        }
        End::Alone => {
            daemon.stop();
            download.transfer.finish();
        }
    }
}

#[test]
fn a_download_outlasts_an_outage_without_carrier_as_published() {
    outlasts("m-tcp", Loss::Carrier, Version::V4, End::Alone);
}

#[test]
fn a_download_outlasts_an_outage_without_carrier_adaptively() {
    outlasts(
        "m-tcp-adaptive",
        Loss::Carrier,
        Version::V6,
        End::Supervised,
    );
}

/// At the link's return the kernel looks for its neighbour, and keeps three packets meanwhile: the first of what
/// the supervisor host sends are lost, and their sender waits for a long timeout.
#[track_caller]
fn outlasts_an_unresolved_neighbour(mechanism: &str, end: End) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let few = || {
        let name = format!("net.ipv6.neigh.{LINK}.unres_qlen");
        sysctl::write(&name, "3").expect("Linux has it");
    };
    path.gateway.run(few).expect("a namespace");
    let Some(daemon) = supervisor(&place, &path, mechanism) else {
        return;
    };
    let mut download = Download::start(&path, Version::V6);
    download.transfer.wait_for(BYTES / 6);
    path.cut();
    let (_, by_itself) = download.suffer();
    let up = path.mend();
    download.transfer.assert_resumes_before(by_itself, up);
    end_of(download, daemon, end);
}

#[test]
fn what_an_unresolved_neighbour_loses_stalls_no_download_adaptively() {
    outlasts_an_unresolved_neighbour("m-tcp-adaptive", End::Supervised);
}

/// A persist packet finds out after a timeout, and not after five seconds.
#[test]
fn what_an_unresolved_neighbour_loses_stalls_no_download_as_published() {
    outlasts_an_unresolved_neighbour("m-tcp", End::Alone);
}

#[test]
fn a_download_outlasts_a_silent_outage_as_published() {
    outlasts("m-tcp", Loss::Silence, Version::V6, End::Alone);
}

#[test]
fn a_download_outlasts_a_silent_outage_adaptively() {
    outlasts(
        "m-tcp-adaptive",
        Loss::Silence,
        Version::V4,
        End::Supervised,
    );
}

/// Each sender would bring 3 MB/s.
#[test]
fn two_downloads_share_the_rate_that_a_supervisor_is_told() {
    const EACH: usize = 1_000_000;
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let text = "mechanism = \"m-tcp-adaptive\"\nrate = \"8 Mbit/s\"\nshare_rate = true\n";
    let Some(daemon) = Daemon::configured(&place, &path.gateway, text) else {
        return;
    };
    let began = clock::now();
    let mut both = [Version::V4, Version::V6].map(|version| Download::start(&path, version));
    for download in &mut both {
        download.transfer.wait_for(EACH);
    }
    let status = daemon.flows_when("shares", |status| {
        let flows = status["flow_list"].as_array().expect("it was asked for");
        flows
            .iter()
            .any(|flow| flow["share_bits_per_s"] == 8_000_000 / 2)
    });
    assert!(status["flow_list"].is_array(), "{status:#}");
    // Together 2 MB, with headers, but for what may be ahead of its time.
    let took = clock::now().since(began);
    assert!(took >= Duration::from_millis(1_950), "{took:?}");
    for download in both {
        assert_eq!(download.ahead(), 0);
        download.transfer.finish();
    }
    daemon.stop();
}

#[test]
fn a_mechanism_that_acknowledges_ahead_is_seen_to_do_so() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "acknowledge-ahead") else {
        return;
    };
    let mut download = Download::start(&path, Version::V4);
    download.transfer.wait_for(BYTES / 6);
    path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    daemon.status_when("the outage", is_down);
    seen("bytes acknowledged ahead", || {
        (download.ahead() > 0).then_some(())
    });
    path.mend();
    download.transfer.finish();
    daemon.stop();
}

#[test]
fn a_supervisor_refuses_what_is_not_m_tcp() {
    let said = Place::new().run([
        "run",
        "--role",
        "supervisor",
        "--interface",
        "lo",
        "--mechanism",
        "hold",
        "--check-config",
    ]);
    said.refuses(2, &["take m-tcp-adaptive or m-tcp"]);
}
