//! `compression` of `outlast run` between real hosts: at a supervisor host and at a mobile, with and without an
//! outage, and where nobody at the mobile knows of it.
//!
//! What arrives is compared with what was sent by the transfer itself.

use crate::path::wiring::{add_rules, inside, switch};
use crate::path::{Daemon, FIXED, LINK, MOBILE, Path, Transfer, Version, wait};
use crate::support::Place;
use outlast_base::time::Duration;
use serde_json::Value;

const BYTES: usize = 2_000_000;

fn counter(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap_or_default()
}

/// A daemon for the supervisor host, and one for the mobile that accepts what that one offers.
fn supervisor(place: &Place, path: &Path) -> Option<Daemon> {
    let text = "mechanism = \"m-tcp-adaptive\"\nrate = \"8 Mbit/s\"\ncompression = \"offer\"\n";
    Daemon::configured(place, &path.gateway, text)
}

fn mobile(place: &Place, path: &Path) -> Option<Daemon> {
    let text = "mechanism = \"m-tcp-adaptive\"\nrate = \"8 Mbit/s\"\ncompression = \"accept\"\n";
    Daemon::configured(place, &path.mobile, text)
}

/// Segments that the mobile host's own daemon sends to it come over its loopback interface.
fn listen_to_itself(path: &Path) {
    inside(&path.mobile, |route| switch(route, "lo", true));
}

/// Transfers both ways, of which most crosses compressed, through an outage.
fn crosses_compressed(version: Version) {
    let places = [Place::new(), Place::new()];
    let Some(path) = Path::new() else { return };
    listen_to_itself(&path);
    let (Some(supervisor), Some(mobile)) =
        (supervisor(&places[0], &path), mobile(&places[1], &path))
    else {
        return;
    };
    let (fixed, host) = (&path.fixed, &path.mobile);
    let mut download = Transfer::start(fixed, host, MOBILE.of(version), BYTES);
    let mut upload = Transfer::start(host, fixed, FIXED.of(version), BYTES);
    for transfer in [&mut download, &mut upload] {
        transfer.wait_for(BYTES / 4);
    }
    path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    supervisor.status_when("the outage", is_down);
    path.mend();
    for transfer in [&mut download, &mut upload] {
        transfer.wait_for(BYTES);
    }
    for (sender, receiver) in [(&supervisor, &mobile), (&mobile, &supervisor)] {
        let [sent, received] = [sender.status(), receiver.status()];
        let [from, to] =
            ["compressed_from_bytes", "compressed_to_bytes"].map(|name| counter(&sent, name));
        assert!(from > BYTES as u64 / 2, "{sent:#}");
        assert!(to < from * 9 / 10, "{sent:#}");
        assert!(counter(&received, "restored") > 0, "{received:#}");
        assert_eq!(counter(&received, "not_restored"), 0, "{received:#}");
    }
    download.finish();
    upload.finish();
    supervisor.stop();
    mobile.stop();
}

#[test]
fn both_ways_cross_compressed_and_arrive_as_they_were_sent() {
    crosses_compressed(Version::V4);
}

#[test]
fn both_ways_cross_compressed_and_arrive_as_they_were_sent_over_ipv6() {
    crosses_compressed(Version::V6);
}

#[test]
fn a_mobile_without_a_daemon_gets_nothing_compressed_and_the_fixed_host_no_error() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(supervisor) = supervisor(&place, &path) else {
        return;
    };
    let mobile = MOBILE.of(Version::V4);
    let mut download = Transfer::start(&path.fixed, &path.mobile, mobile, BYTES);
    download.wait_for(BYTES);
    let status = supervisor.status();
    assert_eq!(counter(&status, "compressed"), 0, "{status:#}");
    assert!(counter(&status, "compression_offers") > 0, "{status:#}");
    assert!(counter(&status, "compression_refused") > 0, "{status:#}");
    download.finish();
    supervisor.stop();
}

#[test]
fn a_daemon_that_dies_at_the_mobile_ends_compression_and_no_transfer() {
    let places = [Place::new(), Place::new()];
    let Some(path) = Path::new() else { return };
    listen_to_itself(&path);
    let (Some(supervisor), Some(mobile)) =
        (supervisor(&places[0], &path), mobile(&places[1], &path))
    else {
        return;
    };
    let to = MOBILE.of(Version::V4);
    let mut download = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    let is_compressed = |status: &Value| counter(status, "compressed") > 0;
    supervisor.status_when("compressed segments", is_compressed);
    mobile.kill();
    let is_refused = |status: &Value| counter(status, "compression_refused") > 0;
    supervisor.status_when("the end of compression", is_refused);
    download.wait_for(BYTES);
    download.finish();
    supervisor.stop();
}

/// Has a transfer cross compressed until the end of the link drops its segments in `chain`, which filters what comes
/// from the link. Returns how many bytes the sender knows to have arrived in two seconds after that.
fn arrives_behind_a_filter(chain: &str, is_upload: bool) -> Option<u64> {
    let places = [Place::new(), Place::new()];
    let path = Path::new()?;
    listen_to_itself(&path);
    let ends = (supervisor(&places[0], &path), mobile(&places[1], &path));
    let (Some(supervisor), Some(mobile)) = ends else {
        return None;
    };
    let (fixed, host) = (&path.fixed, &path.mobile);
    let (mut transfer, restoring, filters) = match is_upload {
        true => {
            let to = FIXED.of(Version::V4);
            let transfer = Transfer::start(host, fixed, to, BYTES);
            (transfer, &supervisor, &path.gateway)
        }
        false => {
            let to = MOBILE.of(Version::V4);
            let transfer = Transfer::start(fixed, host, to, BYTES);
            (transfer, &mobile, &path.mobile)
        }
    };
    let is_restored = |status: &Value| counter(status, "restored") > 50;
    restoring.status_when("restored segments", is_restored);
    let rules = format!(
        "add table inet fw\n\
         add chain inet fw in {{ type filter hook {chain} priority filter; }}\n\
         add rule inet fw in iifname \"{LINK}\" meta l4proto tcp drop\n"
    );
    add_rules(filters, &rules)?;
    let arrived = || {
        wait(Duration::from_secs(2));
        transfer.acknowledged()
    };
    let before = arrived();
    let behind = arrived() - before;
    add_rules(filters, "delete table inet fw")?;
    transfer.wait_for(BYTES);
    transfer.finish();
    supervisor.stop();
    mobile.stop();
    Some(behind)
}

#[test]
fn what_is_restored_meets_the_filters_of_a_router() {
    if let Some(bytes) = arrives_behind_a_filter("forward", true) {
        assert_eq!(bytes, 0);
    }
}

#[test]
fn what_is_restored_meets_the_filters_of_a_host() {
    if let Some(bytes) = arrives_behind_a_filter("input", false) {
        assert_eq!(bytes, 0);
    }
}
