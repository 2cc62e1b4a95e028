//! `outlast run` on a host that translates addresses: on the link a connection has others than beyond
//! the host, and what the gateway sends by itself must fit on either side.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wiring::add_rules;
use crate::path::{
    Daemon, FIXED, LINK, MOBILE, OUTER, Over, Path, Transfer, Version, connected, wait,
};
use crate::support::Place;
use outlast_base::time::Duration;
use serde_json::Value;
use std::net::IpAddr;

const BYTES: usize = 4_000_000;
const VERSION: Version = Version::V4;

/// Who is seen with the gateway's address.
#[derive(Clone, Copy, Debug)]
enum Masked {
    /// The fixed host, on the link.
    Fixed,
    /// The mobile host, beyond the gateway.
    Mobile,
}

/// A connection that whoever is masked has opened, and by which the fixed host sends; `None`, with
/// the reason, where this machine lacks something.
fn download(path: &Path, masked: Masked) -> Option<Transfer> {
    let interface = match masked {
        Masked::Fixed => LINK,
        Masked::Mobile => "fixed0",
    };
    masquerade(path, interface)?;
    let inner: IpAddr = "192.0.2.1".parse().expect("literal");
    let (out, input, seen, expected) = match masked {
        Masked::Fixed => {
            let (near, far) = connected(&path.fixed, &path.mobile, MOBILE.of(VERSION));
            let seen = far.peer_addr().expect("connected");
            (near, far, seen, OUTER.of(VERSION))
        }
        Masked::Mobile => {
            let (near, far) = connected(&path.mobile, &path.fixed, FIXED.of(VERSION));
            let seen = far.peer_addr().expect("connected");
            (far, near, seen, inner)
        }
    };
    assert_eq!(seen.ip(), expected, "{masked:?}");
    Some(Transfer::over(out, input, BYTES))
}

/// Has the gateway's host show its own address to whoever is at `interface`.
fn masquerade(path: &Path, interface: &str) -> Option<()> {
    let rules = format!(
        "add table ip nat\n\
         add chain ip nat out {{ type nat hook postrouting priority srcnat; }}\n\
         add rule ip nat out oifname \"{interface}\" masquerade\n"
    );
    add_rules(&path.gateway, &rules)
}

fn resumes_at_once(masked: Masked) {
    for over in Over::BOTH {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
            continue;
        };
        let Some(mut transfer) = download(&path, masked) else {
            return;
        };
        transfer.wait_for(BYTES / 4);
        path.cut_amid(&daemon, transfer);
        daemon.stop();
    }
}

#[test]
fn a_download_of_a_masked_mobile_host_resumes_at_once() {
    resumes_at_once(Masked::Mobile);
}

#[test]
fn a_transfer_of_a_masked_fixed_host_resumes_at_once() {
    resumes_at_once(Masked::Fixed);
}

/// What the gateway says in the mobile host's name gets to a host that is masked on the link.
#[test]
fn a_masked_fixed_host_is_acknowledged_ahead() {
    for masked in [Masked::Fixed, Masked::Mobile] {
        for mechanism in ["zero-window-ack", "acknowledge-ahead"] {
            let place = Place::new();
            let Some(path) = Path::new() else { return };
            let Some(daemon) = Daemon::start(&place, &path.gateway, mechanism) else {
                return;
            };
            let Some(mut transfer) = download(&path, masked) else {
                return;
            };
            transfer.wait_for(BYTES / 4);
            transfer.pause();
            path.cut();
            let is_down = |status: &Value| status["link"]["state"] == "down";
            daemon.status_when("the outage", is_down);
            transfer.go_on_in_vain();
            wait(Duration::from_secs(1));
            path.mend();
            transfer.finish();
            daemon.stop();
        }
    }
}
