//! `outlast run` between real hosts: a fixed one and a mobile one, in network namespaces.
//!
//! Where this machine lacks what that needs, a test says so and ends.

mod path;
mod support;

use outlast_core::time::Duration;
use path::{Daemon, FIXED, MOBILE, Path, Transfer, Version, wait};
use serde_json::Value;
use support::Place;

/// By far longer than it takes, on a machine that has much else to do.
const AT_ONCE: Duration = Duration::from_millis(500);

const BYTES: usize = 6_000_000;

/// Who keeps what the link drops.
#[derive(Clone, Copy, Debug)]
enum Keeper {
    Gateway,
    Mobile,
}

/// How long after link-up a transfer goes on that both ends' loss of carrier has interrupted, and
/// what the daemon then says.
fn resume(keeper: Keeper, version: Version, outage: Duration) -> Option<(Duration, Value)> {
    let place = Place::new();
    let path = Path::new()?;
    let (from, to, address) = match keeper {
        Keeper::Gateway => (&path.fixed, &path.mobile, MOBILE),
        Keeper::Mobile => (&path.mobile, &path.fixed, FIXED),
    };
    let daemon = match keeper {
        Keeper::Gateway => Daemon::start(&place, &path.gateway, "hold")?,
        Keeper::Mobile => Daemon::start(&place, &path.mobile, "hold")?,
    };
    let mut transfer = Transfer::start(from, to, address.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    wait(outage);
    let up = path.mend();
    let resumed = transfer.resumed_after(up);
    transfer.finish();
    let status = daemon.status(&place);
    let said = daemon.stop();
    assert!(said.contains("packets pass"), "{said}");
    Some((resumed, status))
}

#[track_caller]
fn assert_resumes_at_once(keeper: Keeper, version: Version, outage: Duration) {
    let Some((resumed, status)) = resume(keeper, version, outage) else {
        return;
    };
    assert!(resumed < AT_ONCE, "after {resumed:?}: {status:#}");
    assert_eq!(status["link"]["state"], "up", "{status:#}");
    assert_eq!(status["counters"]["resumes"], 1, "{status:#}");
    assert!(status["counters"]["taken"].as_u64() > Some(0), "{status:#}");
}

#[test]
fn a_download_resumes_at_once_after_a_second_without_carrier() {
    assert_resumes_at_once(Keeper::Gateway, Version::V4, Duration::from_secs(1));
}

#[test]
fn a_download_over_ipv6_resumes_at_once_after_ten_seconds() {
    assert_resumes_at_once(Keeper::Gateway, Version::V6, Duration::from_secs(10));
}

#[test]
fn a_download_without_a_gateway_stalls() {
    // The mobile host alone has no carrier: what the kernel of the gateway's host does about a
    // neighbour that it misses ("host unreachable", a packet kept for it) would shorten the stall.
    let Some(path) = Path::new() else { return };
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.lose_mobile();
    // Four doublings of at least 200 ms: the next try is more than three seconds away.
    transfer.wait_for_backoff(4);
    let up = path.find_mobile();
    let resumed = transfer.resumed_after(up);
    assert!(
        resumed > 2 * AT_ONCE,
        "the control resumed after {resumed:?}"
    );
    transfer.finish();
}

#[test]
fn an_upload_resumes_at_once_when_the_mobile_host_is_its_own_gateway() {
    assert_resumes_at_once(Keeper::Mobile, Version::V4, Duration::from_secs(2));
    assert_resumes_at_once(Keeper::Mobile, Version::V6, Duration::from_secs(2));
}

#[test]
fn a_hook_tells_of_an_outage_that_the_interface_does_not_show() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    let peer = MOBILE.of(Version::V4).to_string();
    let notify = |state: &str| {
        let said = daemon.ask(&place, &["notify", state, "--peer", &peer]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    };
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), BYTES);
    transfer.wait_for(BYTES / 6);
    path.lose_mobile();
    notify("down");
    wait(Duration::from_secs(2));
    let status = daemon.status(&place);
    assert_eq!(status["peers_down"][0]["peer"], peer.as_str(), "{status:#}");
    assert_eq!(status["link"]["state"], "up", "{status:#}");
    assert!(status["held_bytes"].as_u64() > Some(0), "{status:#}");
    path.find_mobile();
    let up = outlast_linux::clock::now();
    notify("up");
    let resumed = transfer.resumed_after(up);
    assert!(resumed < AT_ONCE, "after {resumed:?}");
    transfer.finish();
    let said = daemon.ask(&place, &["status"]);
    assert!(said.out.contains("resumed "), "{said:?}");
    daemon.stop();
}

#[test]
fn a_peer_that_does_not_answer_is_down_until_it_does() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    path.doubt_neighbours_soon();
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.lose_mobile();
    // At most one and a half seconds of trust, one of doubt, and three unanswered questions.
    wait(Duration::from_secs(7));
    let status = daemon.status(&place);
    assert_eq!(
        status["peers_down"][0]["peer"],
        to.to_string().as_str(),
        "{status:#}"
    );
    assert!(status["counters"]["taken"].as_u64() > Some(0), "{status:#}");
    let up = path.find_mobile();
    // It is asked for every second.
    let resumed = transfer.resumed_after(up);
    assert!(resumed < Duration::from_secs(3), "after {resumed:?}");
    transfer.finish();
    daemon.stop();
}

/// Kills the daemon when the transfer has come so far; while the link is down, if `while_down`.
fn survives_a_kill(while_down: bool) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    if while_down {
        path.cut();
        wait(Duration::from_secs(1));
        let status = daemon.status(&place);
        assert!(status["held_bytes"].as_u64() > Some(0), "{status:#}");
        daemon.kill();
        path.mend();
    } else {
        daemon.kill();
    }
    transfer.finish();
    // Rules, queue and socket are free again.
    let another = Daemon::start(&place, &path.gateway, "hold").expect("as before");
    let to = MOBILE.of(Version::V6);
    Transfer::start(&path.fixed, &path.mobile, to, BYTES / 6).finish();
    let status = another.status(&place);
    assert!(
        status["counters"]["packets"].as_u64() > Some(0),
        "{status:#}"
    );
    another.stop();
}

#[test]
fn a_transfer_survives_the_daemons_end_in_the_middle_of_it() {
    survives_a_kill(false);
}

#[test]
fn a_transfer_survives_the_daemons_end_while_packets_are_held() {
    survives_a_kill(true);
}

#[test]
fn each_mechanism_carries_a_transfer_across_an_outage() {
    for mechanism in [
        "none",
        "smart-link-1",
        "smart-link-2",
        "smart-link-3",
        "smart-link-4",
    ] {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(daemon) = Daemon::start(&place, &path.gateway, mechanism) else {
            return;
        };
        assert!(daemon.introduction.contains(mechanism));
        let to = MOBILE.of(Version::V4);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES / 3);
        transfer.wait_for(BYTES / 6);
        path.cut();
        wait(Duration::from_millis(700));
        path.mend();
        transfer.finish();
        let status = daemon.status(&place);
        assert_eq!(status["mechanism"], mechanism, "{status:#}");
        daemon.stop();
    }
}

#[test]
fn one_daemon_serves_an_interface() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    let second = daemon.second(&place, &path.gateway);
    second.refuses(2, &["listens at", "already"]);
    daemon.stop();
}

#[test]
fn who_asks_where_no_daemon_listens_is_told_so() {
    let place = Place::new();
    let nobody = place.run(["status", "--control", "nobody.sock"]);
    nobody.refuses(2, &["no daemon listens at nobody.sock"]);
    let nobody = place.run(["notify", "down", "--control", "nobody.sock"]);
    nobody.refuses(2, &["no daemon listens at nobody.sock"]);
    let which = place.run(["status"]);
    which.refuses(2, &["--interface"]);
}

#[test]
fn mistakes_in_the_configuration_are_shown_at_their_place() {
    let place = Place::new();
    place.file(
        "gateway.toml",
        "interface = \"wwan0\"\nmechanism = \"m-tcp\"\n",
    );
    let said = place.run(["run", "--config", "gateway.toml"]);
    said.refuses(2, &["gateway.toml", "line 2", "m-tcp", "smart-link-1"]);
    let said = place.run(["run"]);
    said.refuses(2, &["--interface"]);
    let said = place.run(["run", "--config", "absent.toml"]);
    said.refuses(2, &["absent.toml"]);
}
