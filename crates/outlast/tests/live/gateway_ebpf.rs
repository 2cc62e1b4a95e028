//! `outlast run` on the eBPF path: which packets go through user space, and when.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, MOBILE, Over, Path, Transfer, Version};
use crate::support::Place;
use outlast_linux::clock;
use serde_json::Value;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};

const BYTES: usize = 4_000_000;

/// `hold` on the eBPF path. What is asked of it is to be told of outages: on a machine that is too
/// busy to answer in time a link would be silent, too.
fn hold(place: &Place, path: &Path) -> Option<Daemon> {
    let text = "mechanism = \"hold\"\ndata_path = \"ebpf\"\n[indicators]\nsilence = false\n";
    Daemon::configured(place, &path.gateway, text)
}

fn count(status: &Value, names: [&str; 2]) -> u64 {
    let [group, name] = names;
    status[group][name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name}: {status:#}"))
}

fn says_of_its_path(status: &Value, what: &str) -> bool {
    status["data_path"]
        .as_str()
        .is_some_and(|path| path.contains(what))
}

/// What the daemon says once its packets stay in the kernel again.
#[track_caller]
fn at_rest(daemon: &Daemon) -> Value {
    let what = "stay in the kernel";
    daemon.status_when(what, |status| says_of_its_path(status, what))
}

#[test]
fn packets_of_a_link_that_is_up_stay_in_the_kernel_before_and_after_an_outage() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = hold(&place, &path) else {
        return;
    };
    assert!(
        daemon.introduction.contains("eBPF"),
        "{}",
        daemon.introduction
    );
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), BYTES);
    transfer.wait_for(BYTES / 4);
    let status = daemon.status();
    assert_eq!(count(&status, ["counters", "packets"]), 0, "{status:#}");
    assert!(count(&status, ["kernel", "recorded"]) > 0, "{status:#}");
    for outages in 1..=2 {
        path.cut();
        let is_diverted = |status: &Value| {
            says_of_its_path(status, "for now") && status["held_bytes"].as_u64() > Some(0)
        };
        daemon.status_when("a diversion", is_diverted);
        let up = path.mend();
        transfer.resumed(up);
        let before = at_rest(&daemon);
        assert_eq!(
            count(&before, ["kernel", "diversions"]),
            outages,
            "{before:#}"
        );
        assert_eq!(
            count(&before, ["counters", "resumes"]),
            outages,
            "{before:#}"
        );
        transfer.resumed(clock::now());
        let after = at_rest(&daemon);
        let names = ["counters", "packets"];
        assert_eq!(count(&after, names), count(&before, names), "{after:#}");
    }
    transfer.finish();
    daemon.stop();
}

#[test]
fn the_connections_in_the_kernel_are_listed() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = hold(&place, &path) else {
        return;
    };
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 4);
    let listed = |limit: &str| {
        let said = daemon.ask(&place, &["status", "--json", "--flows", "--limit", limit]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let status: Value = serde_json::from_str(&said.out).expect("JSON");
        let flows = status["flow_list"].as_array().expect("asked for");
        flows.clone()
    };
    let flows = listed("10");
    let flow = flows.iter().find(|flow| {
        flow["far"]
            .as_str()
            .is_some_and(|far| far.starts_with("198.51.100.2:"))
    });
    let flow = flow.unwrap_or_else(|| panic!("not listed: {flows:?}"));
    assert_eq!(flow["phase"], "established", "{flow:#}");
    assert_eq!(flow["doing"], "passing", "{flow:#}");
    assert_eq!(flow["held_bytes"], 0, "{flow:#}");
    assert!(
        flow["rtt_s"].as_f64().is_some_and(|rtt| rtt > 0.0),
        "{flow:#}"
    );
    assert_eq!(listed("1").len(), 1);
    transfer.finish();
    daemon.stop();
}

#[test]
fn one_peers_outage_leaves_the_packets_of_the_others_in_the_kernel() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = hold(&place, &path) else {
        return;
    };
    let to = MOBILE.of(Version::V4);
    let said = daemon.ask(&place, &["notify", "down", "--peer", "198.51.100.77"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    Transfer::start(&path.fixed, &path.mobile, to, BYTES / 4).finish();
    let status = daemon.status();
    assert_eq!(count(&status, ["counters", "packets"]), 0, "{status:#}");
    let path_of = |status: &Value| status["data_path"].as_str().map(str::to_owned);
    assert!(
        path_of(&status).is_some_and(|path| path.contains("one peer")),
        "{status:#}"
    );
    // And those of the peer itself go through user space.
    let said = daemon.ask(&place, &["notify", "down", "--peer", &to.to_string()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = daemon.ask(&place, &["notify", "up", "--peer", &to.to_string()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = daemon.ask(&place, &["notify", "up", "--peer", "198.51.100.77"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    at_rest(&daemon);
    daemon.stop();
}

#[test]
fn a_transfer_goes_on_when_the_interface_has_gone_and_come_back() {
    for over in Over::BOTH {
        let place = Place::new();
        let Some(mut path) = Path::new() else { return };
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
            continue;
        };
        let to = MOBILE.of(Version::V4);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
        transfer.wait_for(BYTES / 4);
        path.remove_link();
        let is_down = |status: &Value| status["link"]["state"] == "down";
        daemon.status_when("an interface that is gone", is_down);
        let up = path.restore_link();
        transfer.resumed(up);
        if over == Over::Ebpf {
            // The programs are on the new interface.
            let before = at_rest(&daemon);
            transfer.resumed(clock::now());
            let names = ["kernel", "tracked"];
            let track = |status: &Value| count(status, names) > count(&before, names);
            daemon.status_when("segments that are tracked", track);
        }
        transfer.finish();
        daemon.stop();
    }
}

#[test]
fn what_a_far_host_has_said_before_is_received_again_by_who_sends_during_an_outage() {
    for over in Over::BOTH {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "smart-link-1") else {
            continue;
        };
        let to = MOBILE.of(Version::V6);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
        transfer.wait_for(BYTES / 4);
        // Nothing is on its way when the link goes down.
        transfer.pause();
        path.cut();
        let is_down = |status: &Value| status["link"]["state"] == "down";
        daemon.status_when("a link that is down", is_down);
        transfer.go_on();
        transfer.wait_for_backoff(2);
        path.mend();
        let names = ["counters", "rereceived"];
        let is_heard = |status: &Value| count(status, names) > 0;
        daemon.status_when("an acknowledgement once more", is_heard);
        transfer.finish();
        daemon.stop();
    }
}

#[test]
fn what_the_path_is_and_why_is_said() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    for (arguments, said) in [
        (&["--data-path", "nfqueue"][..], "as it was asked for"),
        (
            &["--mechanism", "zero-window-ack"],
            "because mechanism zero-window-ack must rewrite packets",
        ),
    ] {
        let Some(daemon) = Daemon::start_with(&place, &path.gateway, arguments) else {
            return;
        };
        assert!(
            daemon.introduction.contains(said),
            "{}",
            daemon.introduction
        );
        let status = daemon.status();
        let path = status["data_path"].as_str().unwrap_or_default();
        assert!(
            path.contains("NFQUEUE") && path.contains(said),
            "{status:#}"
        );
        assert_eq!(status["kernel"], Value::Null, "{status:#}");
        daemon.stop();
    }
    let impossible = ["--mechanism", "acknowledge-ahead", "--data-path", "ebpf"];
    let said = crate::path::try_with(&place, &path.gateway, &impossible);
    said.refuses(2, &["eBPF", "acknowledge-ahead", "take another mechanism"]);
}

/// Ended connections give way unnoticed; where all are alive, some one has to.
#[test]
fn connections_that_had_to_give_way_are_told() {
    const FLOWS: usize = 100;
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let text =
        format!("data_path = \"ebpf\"\n[limits]\nflows = {FLOWS}\n[indicators]\nsilence = false\n");
    let Some(daemon) = Daemon::configured(&place, &path.gateway, &text) else {
        return;
    };
    let to = SocketAddr::new(MOBILE.of(Version::V4), 0);
    let bound = path.mobile.run(|| TcpListener::bind(to).expect("bind"));
    let listener = bound.expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || {
        let client = TcpStream::connect(to).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        (client, server)
    };
    let come_and_go = || {
        for _ in 0..3 * FLOWS {
            let (mut client, server) = connect();
            // The server closes first, so that the client's port is free at once.
            drop(server);
            assert_eq!(client.read(&mut [0]).expect("closed"), 0);
        }
    };
    path.fixed.run(come_and_go).expect("enter");
    let status = daemon.status();
    assert_eq!(count(&status, ["kernel", "evicted"]), 0, "{status:#}");
    let stay = || (0..FLOWS + 10).map(|_| connect()).collect::<Vec<_>>();
    let _alive = path.fixed.run(stay).expect("enter");
    let status = daemon.status_when("ten that gave way", |status| {
        count(status, ["kernel", "evicted"]) == 10
    });
    assert!(count(&status, ["kernel", "flows"]) <= FLOWS as u64);
    let said = daemon.ask(&place, &["status"]);
    assert!(said.out.contains("cap reached   flows 10: "), "{said:?}");
    daemon.stop();
}
