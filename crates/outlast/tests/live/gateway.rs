//! `outlast run` between real hosts: a fixed one and a mobile one, in network namespaces.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{
    Daemon, FIXED, LINK, MOBILE, Over, Path, Transfer, Version, keeps_something, wait,
};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use serde_json::Value;

const BYTES: usize = 6_000_000;

/// Who keeps what the link drops.
#[derive(Clone, Copy, Debug)]
enum Keeper {
    Gateway,
    Mobile,
}

/// What the daemon says after a transfer that both ends' loss of carrier has interrupted until the
/// sender had long stopped trying every second, and that has gone on before its next try.
fn resume(over: Over, keeper: Keeper, version: Version) -> Option<Value> {
    let place = Place::new();
    let path = Path::new()?;
    let (from, to, address) = match keeper {
        Keeper::Gateway => (&path.fixed, &path.mobile, MOBILE),
        Keeper::Mobile => (&path.mobile, &path.fixed, FIXED),
    };
    let daemon = match keeper {
        Keeper::Gateway => Daemon::start_over(over, &place, &path.gateway, "hold")?,
        Keeper::Mobile => Daemon::start_over(over, &place, &path.mobile, "hold")?,
    };
    let mut transfer = Transfer::start(from, to, address.of(version), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut_amid(&daemon, transfer);
    let status = daemon.status();
    let said = daemon.stop();
    assert!(said.contains("packets pass"), "{said}");
    Some(status)
}

#[track_caller]
fn assert_resumes_at_once(keeper: Keeper, version: Version) {
    for over in Over::BOTH {
        let Some(status) = resume(over, keeper, version) else {
            continue;
        };
        assert_eq!(status["link"]["state"], "up", "{status:#}");
        // On a machine that is too busy to answer in time a link is silent, too.
        let silences = status["counters"]["silences"].as_u64();
        let resumes = status["counters"]["resumes"].as_u64();
        assert!(resumes == Some(1) || silences > Some(0), "{status:#}");
        assert!(status["counters"]["taken"].as_u64() > Some(0), "{status:#}");
        if over == Over::Ebpf {
            // Only for the outage did packets go through user space.
            let kernel = &status["kernel"];
            let diversions = kernel["diversions"].as_u64();
            assert!(diversions == Some(1) || silences > Some(0), "{status:#}");
            assert!(kernel["tracked"].as_u64() > Some(0), "{status:#}");
        }
    }
}

#[test]
fn a_download_resumes_at_once_after_an_outage_without_carrier() {
    assert_resumes_at_once(Keeper::Gateway, Version::V4);
}

#[test]
fn a_download_over_ipv6_does_too() {
    assert_resumes_at_once(Keeper::Gateway, Version::V6);
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
    let by_itself = transfer.wait_for_long_timeout();
    let up = path.find_mobile();
    transfer.assert_stalls_until(by_itself, up);
    transfer.finish();
}

#[test]
fn an_upload_resumes_at_once_when_the_mobile_host_is_its_own_gateway() {
    assert_resumes_at_once(Keeper::Mobile, Version::V4);
    assert_resumes_at_once(Keeper::Mobile, Version::V6);
}

#[test]
fn a_hook_tells_of_an_outage_that_the_interface_does_not_show() {
    Over::BOTH.into_iter().for_each(hears_of_an_outage);
}

fn hears_of_an_outage(over: Over) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
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
    let status = daemon.status_when("something that is held", keeps_something);
    assert_eq!(status["peers_down"][0]["peer"], peer.as_str(), "{status:#}");
    assert_eq!(status["link"]["state"], "up", "{status:#}");
    let by_itself = transfer.wait_for_long_timeout();
    path.find_mobile();
    let up = clock::now();
    notify("up");
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    let said = daemon.ask(&place, &["status"]);
    assert!(said.out.contains("resumed "), "{said:?}");
    daemon.stop();
}

#[test]
fn a_peer_that_does_not_answer_is_down_until_it_does() {
    Over::BOTH.into_iter().for_each(misses_a_peer);
}

fn misses_a_peer(over: Over) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
        return;
    };
    path.doubt_neighbours_soon();
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    path.lose_mobile();
    let is_missed = |status: &Value| status["peers_down"][0]["peer"] == to.to_string().as_str();
    daemon.status_when("a peer that is missed", is_missed);
    let takes = |status: &Value| status["counters"]["taken"].as_u64() > Some(0);
    daemon.status_when("something that is taken", takes);
    // It is asked for every second.
    let by_itself = transfer.wait_for_long_timeout();
    let up = path.find_mobile();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    daemon.stop();
}

/// Kills the daemon when the transfer has come so far; while the link is down, if `while_down`.
fn survives_a_kill(over: Over, while_down: bool) {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
        return;
    };
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    if while_down {
        path.cut();
        daemon.status_when("something that is held", keeps_something);
        daemon.kill();
        path.mend();
    } else {
        daemon.kill();
    }
    transfer.finish();
    // Rules, queue and socket are free again.
    let another = Daemon::start_over(over, &place, &path.gateway, "hold").expect("as before");
    let to = MOBILE.of(Version::V6);
    Transfer::start(&path.fixed, &path.mobile, to, BYTES / 6).finish();
    let status = another.status();
    let seen = match over {
        Over::Ebpf => &status["kernel"]["tracked"],
        Over::Nfqueue => &status["counters"]["packets"],
    };
    assert!(seen.as_u64() > Some(0), "{status:#}");
    another.stop();
}

#[test]
fn a_transfer_survives_the_daemons_end_in_the_middle_of_it() {
    Over::BOTH
        .into_iter()
        .for_each(|over| survives_a_kill(over, false));
}

#[test]
fn a_transfer_survives_the_daemons_end_while_packets_are_held() {
    Over::BOTH
        .into_iter()
        .for_each(|over| survives_a_kill(over, true));
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
        let status = daemon.status();
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
    // Where there is another interface of that name.
    let second = daemon.second(&place, &path.fixed);
    second.refuses(2, &["listens at", "already"]);
    for over in Over::BOTH {
        let elsewhere = place.path().join("second.sock");
        let second = Daemon::refused(over, &place, &path.gateway, &elsewhere);
        second.refuses(2, &[LINK, "already", "outlast status"]);
    }
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
fn an_address_that_no_neighbour_has_is_refused() {
    let place = Place::new();
    for address in ["0.0.0.0", "224.0.0.1", "ff02::1", "::1"] {
        let said = place.run(["notify", "down", "--peer", address]);
        said.refuses(2, &[address, "ip neigh"]);
    }
}

#[test]
fn mistakes_in_the_configuration_are_shown_at_their_place() {
    let place = Place::new();
    place.file(
        "gateway.toml",
        "interface = \"wwan0\"\nmechanism = \"hold-all\"\n",
    );
    let said = place.run(["run", "--config", "gateway.toml"]);
    said.refuses(2, &["gateway.toml:2:13", "hold-all", "smart-link-1"]);
    let said = place.run(["run"]);
    said.refuses(2, &["--interface"]);
    let said = place.run(["run", "--config", "absent.toml"]);
    said.refuses(2, &["absent.toml"]);
}

#[test]
fn a_check_finds_what_a_start_would_refuse() {
    let place = Place::new();
    let check = |text: &str| {
        place.file("gateway.toml", &format!("interface = \"wwan0\"\n{text}"));
        place.run(["run", "--check-config", "--config", "gateway.toml"])
    };
    let neighbours = "mechanism = \"zero-window-ack\"\n\
                      [agents]\nlisten = \"192.0.2.1:7348\"\nkey = \"agents.key\"\n";
    check(neighbours).refuses(2, &["no key at agents.key", "outlast agents key"]);
    assert_eq!(place.run(["agents", "key", "agents.key"]).code, Some(0));
    let said = check(neighbours);
    assert_eq!(said.code, Some(0), "{said:?}");
    check("mechanism = \"zero-window-ack\"\ndata_path = \"ebpf\"\n")
        .refuses(2, &["zero-window-ack must rewrite packets", "auto"]);
}

#[test]
fn a_check_warns_of_agents_that_the_mechanism_leaves_without_work() {
    let place = Place::new();
    let check = |mechanism: &str| {
        let text = format!(
            "interface = \"wwan0\"\nmechanism = \"{mechanism}\"\n[agents]\njournal = \"frozen\"\n"
        );
        place.file("gateway.toml", &text);
        place.run(["run", "--check-config", "--config", "gateway.toml"])
    };
    let said = check("hold");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("sound"), "{said:?}");
    assert!(said.err.contains("warning: `[agents]`"), "{said:?}");
    let said = check("zero-window-ack");
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(0), ""),
        "nothing to warn of"
    );
}

#[test]
fn a_name_that_no_interface_can_have_is_not_waited_for() {
    let place = Place::new();
    for name in ["", "much-longer-than-any", "eth0/", "eth 0", ".."] {
        let said = place.run(["run", "--interface", name]);
        said.refuses(2, &["ip link"]);
        let said = place.run(["status", "--interface", name]);
        said.refuses(2, &["ip link"]);
    }
}
