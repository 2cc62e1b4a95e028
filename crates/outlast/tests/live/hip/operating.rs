//! What `outlast status` and the metrics tell of a host that moves, and how little the unit of
//! systemd leaves it.

use super::{Daemon, Hosts, PATIENCE, PLACES, Sender, connect, read, start, table};
use crate::metrics::judged;
use crate::operating::{NETWORK, STRANGER, as_somebody, as_unit, heard, is_superuser, status_of};
use crate::path::metrics::ask;
use crate::path::{OFTEN, wait};
use crate::support::{Place, Said, status_at};
use outlast_linux::clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Stdio;
use std::sync::atomic::Ordering;

/// What a daemon is asked.
fn asked(place: &Place, name: &str, arguments: &[&str]) -> Said {
    let socket = format!("{name}.sock");
    let control = ["--control", &socket];
    place.run(arguments.iter().chain(&control))
}

pub(super) fn status(place: &Place, name: &str) -> Value {
    status_at(&place.path().join(format!("{name}.sock")))
}

/// The status once it is as wanted.
fn status_when(place: &Place, name: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = clock::now();
    loop {
        let status = status(place, name);
        if is_wanted(&status) {
            return status;
        }
        assert!(clock::now() - begun < PATIENCE, "{status:#}");
        wait(OFTEN);
    }
}

/// What a daemon serves to Prometheus.
fn metrics(place: &Place, name: &str) -> String {
    let at = place.path().join(name).with_extension("metrics");
    let stream = UnixStream::connect(at).expect("it listens");
    let (head, body) = ask(stream, "GET /metrics HTTP/1.1\r\nHost: host\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body
}

/// The only association of a status.
fn association(status: &Value) -> &Value {
    let all = status["associations"].as_array().expect("a list");
    assert_eq!(all.len(), 1, "{status:#}");
    &all[0]
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("no number: {value}"))
}

/// Each count of an association, and the metric that has it.
const COUNTS: [(&str, &str); 4] = [
    ("sent_packets", "outlast_hip_sent_packets_total"),
    ("sent_bytes", "outlast_hip_sent_bytes_total"),
    ("received_packets", "outlast_hip_received_packets_total"),
    ("received_bytes", "outlast_hip_received_bytes_total"),
];

/// The status, the metrics, and the status again, without a readdressing between them.
fn snapshot(place: &Place, name: &str) -> (Value, String, Value) {
    let begun = clock::now();
    loop {
        let before = status(place, name);
        let text = metrics(place, name);
        let after = status(place, name);
        let times = |status| number(&association(status)["readdressings"]);
        if times(&before) == times(&after) {
            return (before, text, after);
        }
        assert!(clock::now() - begun < PATIENCE, "{before:#}\n{after:#}");
    }
}

/// Checks that the metrics lie between what the status says before and after them.
fn assert_agree(place: &Place, name: &str) -> Value {
    let (before, text, after) = snapshot(place, name);
    if let Some(samples) = judged(place, &text) {
        let peer = association(&after)["peer"].as_str().expect("a tag");
        let sample = |metric: &str| number(&samples[format!("{metric}{peer}")]);
        for (count, metric) in COUNTS {
            let least = number(&association(&before)[count]);
            let most = number(&association(&after)[count]);
            let served = sample(metric);
            assert!((least..=most).contains(&served), "{metric}: {samples:#}");
        }
        assert_eq!(samples["outlast_hip_associationsestablished"], 1.0);
        let told = &association(&after)["readdressings"];
        let served = sample("outlast_hip_readdressings_total");
        assert_eq!(served, number(told), "{samples:#}");
        if served > 0.0 {
            let took = &association(&after)["last_readdressing"]["took_s"];
            let served = sample("outlast_hip_last_readdressing_seconds");
            assert_eq!(served, number(took), "{samples:#}");
        }
    }
    after
}

#[test]
fn status_and_metrics_follow_a_move() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_mobile, _fixed, tag) = start(&place, &hosts);
    let sender = Sender::start(&hosts.fixed);
    let mut stream = connect(&hosts.mobile, tag, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 100_000), "before any move");
    let before = assert_agree(&place, "mobile");
    let fixed_before = assert_agree(&place, "fixed");
    assert_eq!(before["role"], "hip");
    assert_eq!(association(&before)["peer"], tag.to_string());
    assert_eq!(before["addresses"][0], "10.1.0.7", "{before:#}");
    let first = &association(&fixed_before)["addresses"][0];
    assert_eq!(first["address"], "10.1.0.7", "{fixed_before:#}");

    // The control: without a move counts grow, and nothing else changes.
    assert!(read(&mut stream, &mut at, 100_000), "before any move");
    let meanwhile = status(&place, "fixed");
    let (former, now) = (association(&fixed_before), association(&meanwhile));
    for (count, _) in COUNTS {
        assert!(number(&now[count]) > number(&former[count]), "{count}");
    }
    for same in ["readdressings", "addresses"] {
        assert_eq!(now[same], former[same], "{same}");
    }

    hosts.place(PLACES[1]);
    assert!(read(&mut stream, &mut at, 200_000), "after the move");
    status_when(&place, "fixed", |status| {
        let first = &association(status)["addresses"][0];
        first["address"] == "fd01::7" && first["state"] == "active"
    });
    for (name, former) in [("mobile", &before), ("fixed", &meanwhile)] {
        let after = assert_agree(&place, name);
        let (former, now) = (association(former), association(&after));
        let times = number(&now["readdressings"]);
        assert!(times > number(&former["readdressings"]), "{after:#}");
        let last = &now["last_readdressing"];
        let (took, ago) = (number(&last["took_s"]), number(&last["ago_s"]));
        assert!(took > 0.0 && took < 10.0, "{name}: {after:#}");
        assert!((0.0..60.0).contains(&ago), "{name}: {after:#}");
        for (count, _) in COUNTS {
            assert!(number(&now[count]) > number(&former[count]), "{count}");
        }
    }
    let status = status(&place, "mobile");
    assert_eq!(status["addresses"][0], "fd01::7", "{status:#}");
    let text = asked(&place, "mobile", &["status"]).out;
    for words in ["role          hip on hip0", "readdressed ", "(active)"] {
        assert!(text.contains(words), "{text}");
    }
    sender.is_over.store(true, Ordering::Relaxed);
    while read(&mut stream, &mut at, 1 << 20) {}
    sender.thread.join().expect("the sender ends");
}

#[test]
fn what_the_unit_leaves_a_host_is_all_that_it_needs() {
    const UNIT: &str = "outlast-hip@.service";
    if !is_superuser() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    // It puts the command where a stranger may run it.
    as_somebody(&place, STRANGER, STRANGER, &["status"]).refuses(2, &["no daemon"]);
    let key = place.run(["hip", "key", "mobile.key"]);
    let tag = key.out.trim().to_owned();
    for path in [place.path(), &place.path().join("mobile.key")] {
        chown(path, Some(STRANGER), Some(STRANGER)).expect("ours");
    }
    let text = table(&place, "mobile");
    place.file("mobile.toml", &text);
    let run = ["./outlast", "run", "--role", "hip"];
    let arguments = [&run[..], &["--config", "mobile.toml"]].concat();
    let Some(mut command) = as_unit(&place, &hosts.mobile, UNIT, &arguments) else {
        return;
    };
    let told = place.path().join("notify.sock");
    let manager = UnixDatagram::bind(&told).expect("ours");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    set_permissions(&told, Permissions::from_mode(0o777)).expect("ours");
    command.env("NOTIFY_SOCKET", &told);
    // The dog bites after so many microseconds.
    command.env("WATCHDOG_USEC", "400000");
    let log = File::create(place.path().join("log")).expect("ours");
    command.stdout(Stdio::null()).stderr(log);
    let mut daemon = Daemon(command.spawn().expect("it starts"));
    let ready = heard(&manager, "READY=1").pop().expect("the last one");
    let introduction = format!("STATUS=hip on hip0: {tag}");
    assert!(ready.contains(&introduction), "{ready}");
    let id = daemon.0.id();
    for (name, expected) in [("CapEff", NETWORK), ("CapPrm", NETWORK), ("Seccomp", "2")] {
        assert_eq!(status_of(id, name), expected, "{name}");
    }
    // Signs of life go on while nothing happens.
    for _ in 0..3 {
        heard(&manager, "WATCHDOG=1");
    }
    // An address that comes needs sockets of its own.
    hosts.place(PLACES[0]);
    let (address, _) = PLACES[0].0.split_once('/').expect("a prefix");
    status_when(&place, "mobile", |status| status["addresses"][0] == address);

    let peer = "[[hip.peers]]\ntag = \"2001:22:9a41:52b4:b4fe:7d2f:2b17:9f13\"\n";
    place.file("mobile.toml", &format!("{text}{peer}"));
    let said = asked(&place, "mobile", &["reload"]);
    assert_eq!(said.out, "Changed: peers.\n", "{said:?}");
    heard(&manager, "RELOADING=1");
    heard(&manager, "READY=1");
    place.file("mobile.toml", &format!("{text}mtu = 1300\n"));
    asked(&place, "mobile", &["reload"]).refuses(1, &["mtu cannot change"]);
    let body = metrics(&place, "mobile");
    for line in [
        "outlast_reloads_total{result=\"success\"} 1\n",
        "outlast_reloads_total{result=\"failure\"} 1\n",
        "outlast_config_last_reload_successful 0",
    ] {
        assert!(body.contains(line), "{body}");
    }
    asked(&place, "mobile", &["status", "--flows"]).refuses(1, &["only gateways"]);
    let pid = Pid::from_child(&daemon.0);
    kill_process(pid, Signal::TERM).expect("it runs");
    heard(&manager, "STOPPING=1");
    let ended = daemon.0.wait().expect("it ends");
    assert!(ended.success(), "{ended}");
    assert!(!place.path().join("mobile.sock").exists(), "left behind");
}
