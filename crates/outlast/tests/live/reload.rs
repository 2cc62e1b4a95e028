//! The configuration of a running gateway changes: what holds then, and what is refused.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, MOBILE, Path, Transfer, Version, keeps_something};
use crate::support::Place;

const BYTES: usize = 6_000_000;

#[test]
fn a_reload_changes_what_runs_and_loses_neither_connections_nor_what_is_kept() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let before = "mechanism = \"hold\"\n";
    let Some(daemon) = Daemon::configured(&place, &path.gateway, before) else {
        return;
    };
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    let by_itself = transfer.wait_for_long_timeout();
    let status = daemon.status_when("something that is kept", keeps_something);
    let kept = status["held_bytes"].as_u64();
    place.file(
        "gateway.toml",
        "mechanism = \"smart-link-4\"\nrate = \"200 Mbit/s\"\n\
         [limits]\nheld_in_all = \"32 MiB\"\npeers = 7\n[log]\nlevel = \"debug\"\n",
    );
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "Changed: mechanism, rate, limits, log.level.\n");
    let status = daemon.status();
    assert_eq!(status["mechanism"], "smart-link-4", "{status:#}");
    assert_eq!(status["rate_bits_per_s"], 200_000_000, "{status:#}");
    assert_eq!(
        status["limits"]["held_in_all_bytes"],
        32 << 20,
        "{status:#}"
    );
    assert_eq!(status["limits"]["peers"], 7, "{status:#}");
    assert!(status["held_bytes"].as_u64() >= kept, "{status:#}");
    let up = path.mend();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    let nothing = daemon.ask(&place, &["reload"]);
    assert_eq!(nothing.out, "Nothing has changed.\n", "{nothing:?}");
    let said = daemon.stop();
    assert!(said.contains("configuration read"), "{said}");
    assert!(
        said.contains("resumed"),
        "at `debug` connections are told: {said}"
    );
}

#[test]
fn agents_without_work_are_warned_of_at_the_start_and_at_a_reload() {
    const WARNING: &str = "`[agents]` has nothing to do with mechanism hold";
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let with = |mechanism: &str| {
        format!(
            "mechanism = \"{mechanism}\"\ndata_path = \"nfqueue\"\n[agents]\njournal = \"frozen\"\n"
        )
    };
    let Some(mut daemon) = Daemon::configured(&place, &path.gateway, &with("hold")) else {
        return;
    };
    crate::path::until("a warning", || daemon.has_said(WARNING));
    let status = daemon.status();
    let file = place.path().join("gateway.toml");
    assert_eq!(status["config"].as_str(), file.to_str(), "{status:#}");

    place.file("gateway.toml", &with("zero-window-ack"));
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    place.file("gateway.toml", &with("hold"));
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "Changed: mechanism.\n");
    assert!(
        said.err.contains(&format!("warning: {WARNING}")),
        "{said:?}"
    );
    let said = daemon.stop();
    assert_eq!(said.matches(WARNING).count(), 2, "at both times: {said}");
}

#[test]
fn a_reload_with_a_mistake_changes_nothing_and_says_where_it_is() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let before = "mechanism = \"hold\"\n[limits]\npeers = 9\n";
    let Some(mut daemon) = Daemon::configured(&place, &path.gateway, before) else {
        return;
    };
    place.file(
        "gateway.toml",
        "mechanism = \"none\"\n[limits]\npeers = 0\n",
    );
    daemon
        .ask(&place, &["reload"])
        .refuses(1, &["gateway.toml:3:9", "peers = 0", "1 to 1000000"]);
    let line = daemon.line();
    assert!(
        line.contains("the former one holds") && line.contains("gateway.toml:3:9"),
        "{line}"
    );
    // At a signal it does the same; who sent that is told nothing.
    daemon.signal(rustix::process::Signal::HUP);
    assert!(daemon.line().contains("the former one holds"));
    for (what, name) in [
        ("queue = 9", "queue"),
        ("control_mode = \"0666\"", "control_mode"),
    ] {
        place.file("gateway.toml", &format!("{what}\nmechanism = \"none\"\n"));
        daemon
            .ask(&place, &["reload"])
            .refuses(1, &[name, "restart it"]);
    }
    let status = daemon.status();
    assert_eq!(status["mechanism"], "hold", "{status:#}");
    assert_eq!(status["limits"]["peers"], 9, "{status:#}");
    daemon.stop();
}

#[test]
fn a_reload_does_not_promise_places_that_the_kernel_s_table_lacks() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let with = |data_path: &str, flows: u32| {
        format!("data_path = \"{data_path}\"\n[limits]\nflows = {flows}\n")
    };
    if let Some(daemon) = Daemon::configured(&place, &path.gateway, &with("ebpf", 100)) {
        place.file("gateway.toml", &with("ebpf", 5000));
        let said = daemon.ask(&place, &["reload"]);
        said.refuses(1, &["limits.flows", "restart it"]);
        let status = daemon.status();
        assert_eq!(status["limits"]["flows"], 100, "{status:#}");
        daemon.stop();
    }
    let Some(daemon) = Daemon::configured(&place, &path.gateway, &with("nfqueue", 100)) else {
        return;
    };
    place.file("gateway.toml", &with("nfqueue", 5000));
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!(said.out, "Changed: limits.\n", "{said:?}");
    let status = daemon.status();
    assert_eq!(status["limits"]["flows"], 5000, "{status:#}");
    daemon.stop();
}

#[test]
fn a_reload_refuses_a_mechanism_that_the_named_data_path_cannot_carry() {
    const WHY: &str = "because mechanism acknowledge-ahead must rewrite packets";
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let with = |data_path: &str, mechanism: &str| {
        format!("data_path = \"{data_path}\"\nmechanism = \"{mechanism}\"\n")
    };
    let Some(daemon) = Daemon::configured(&place, &path.gateway, &with("ebpf", "hold")) else {
        return;
    };
    place.file("gateway.toml", &with("ebpf", "acknowledge-ahead"));
    let said = daemon.ask(&place, &["reload"]);
    said.refuses(1, &["acknowledge-ahead must rewrite packets", "auto"]);
    assert_eq!(daemon.status()["mechanism"], "hold");
    daemon.stop();
    // Where any will do, all packets go through user space.
    let daemon =
        Daemon::configured(&place, &path.gateway, &with("auto", "hold")).expect("as before");
    place.file("gateway.toml", &with("auto", "acknowledge-ahead"));
    assert_eq!(daemon.ask(&place, &["reload"]).code, Some(0));
    let status = daemon.status();
    let said = status["data_path"].as_str().expect("a text");
    assert_eq!(
        said,
        format!("eBPF: every packet through user space, {WHY}")
    );
    daemon.stop();
}
