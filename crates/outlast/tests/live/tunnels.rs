//! The daemon on a tunnel: bare packets of IP, no Ethernet, no neighbours.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, FIXED, MOBILE, Over, Path, Transfer, Version};
use crate::support::Place;
use serde_json::Value;

const BYTES: usize = 6_000_000;

fn is_silent(status: &Value) -> bool {
    status["silent"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
}

/// A transfer through a tunnel that loses everything for a while; with a daemon at the sender's end,
/// or without one. Where the daemon does not run here there is nothing to see.
fn outage(over: Option<Over>, is_upload: bool, version: Version) {
    let place = Place::new();
    let Some(mut path) = Path::new() else { return };
    let Some(tunnel) = path.dig() else { return };
    let (from, to, keeper, address) = match is_upload {
        false => (&path.fixed, &path.mobile, &path.gateway, MOBILE),
        true => (&path.mobile, &path.fixed, &path.mobile, FIXED),
    };
    let daemon = over.map(|over| Daemon::start_over(over, &place, keeper, "hold"));
    if matches!(daemon, Some(None)) {
        return;
    }
    let daemon = daemon.flatten();
    let mut transfer = Transfer::start(from, to, address.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    tunnel.lose_all();
    if let Some(daemon) = &daemon {
        daemon.status_when("silence", is_silent);
    }
    let by_itself = transfer.wait_for_long_timeout();
    let back = tunnel.lose_nothing();
    match daemon {
        Some(daemon) => {
            transfer.assert_resumes_before(by_itself, back);
            daemon.stop();
        }
        None => transfer.assert_stalls_until(by_itself, back),
    }
    transfer.finish();
}

#[test]
fn a_download_through_a_tunnel_resumes_at_once() {
    for over in Over::BOTH {
        outage(Some(over), false, Version::V4);
    }
}

#[test]
fn a_download_over_ipv6_does_too() {
    outage(Some(Over::Ebpf), false, Version::V6);
}

#[test]
fn an_upload_through_it_does_too_when_the_mobile_host_is_its_own_gateway() {
    for over in Over::BOTH {
        outage(Some(over), true, Version::V4);
    }
}

#[test]
fn without_the_daemon_it_stalls() {
    outage(None, false, Version::V4);
}
