//! Metrics of a running gateway: where they are served, and that they are what Prometheus reads.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::metrics::{METRICS, METRICS_PORT, ask};
use crate::path::wiring::inside;
use crate::path::{Daemon, MOBILE, Path, Transfer, Version, skip};
use crate::support::Place;
use outlast_linux::netlink::Prefix;
use serde_json::Value;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

const BYTES: usize = 6_000_000;

/// What the reference parser of OpenMetrics makes of a text: each sample's value; `None`, with the
/// reason, where it is not there.
pub(crate) fn judged(place: &Place, text: &str) -> Option<Value> {
    const JUDGE: &str = "import json, sys\n\
         from prometheus_client.openmetrics.parser import text_string_to_metric_families\n\
         families = text_string_to_metric_families(open(sys.argv[1]).read())\n\
         print(json.dumps({s.name + ''.join(sorted(s.labels.values())): s.value\n\
         \x20   for f in families for s in f.samples}))\n";
    let is_there = Command::new("/usr/bin/python3")
        .args(["-c", "import prometheus_client"])
        .output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        skip("there is no python3-prometheus-client");
        return None;
    }
    let file = place.file("metrics.txt", text);
    let mut command = Command::new("/usr/bin/python3");
    let output = command
        .args(["-c", JUDGE])
        .arg(file)
        .output()
        .expect("Python");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn metrics_are_served_at_an_address_that_comes_later() {
    const LATER: &str = "192.0.2.99";
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let at = format!("{LATER}:{METRICS_PORT}");
    let text = format!("metrics = \"{at}\"\n");
    let Some(mut daemon) = Daemon::configured(&place, &path.gateway, &text) else {
        return;
    };
    let told = daemon.introduction.contains(LATER) || daemon.has_said(LATER);
    assert!(told, "{}", daemon.introduction);
    inside(&path.gateway, |route| {
        let interface = route.interface("fixed0").expect("made");
        let address = LATER.parse().expect("literal");
        let address = Prefix {
            address,
            length: 24,
        };
        route.add_address(interface, address).expect("address");
    });
    let get = || TcpStream::connect(&at).expect("it listens");
    let stream = path.fixed.run(get).expect("enter");
    let (_, body) = ask(stream, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(body.contains("outlast_link_up 1"), "{body}");
    daemon.stop();
}

#[test]
fn metrics_are_what_prometheus_reads_and_what_status_says() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    // A machine that is too busy to answer in time would make the link silent, too.
    let text = format!("metrics = \"{METRICS}\"\n[indicators]\nsilence = false\n");
    let Some(daemon) = Daemon::configured(&place, &path.gateway, &text) else {
        return;
    };
    let mut transfer =
        Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), BYTES / 2);
    transfer.wait_for(BYTES / 6);
    path.cut();
    // What the link had been given before the cut may have arrived: then nothing has to resume.
    daemon.status_when("something that was sent in the outage", |status| {
        status["counters"]["taken"].as_u64() > Some(0)
    });
    path.mend();
    transfer.finish();
    place.file("gateway.toml", "mechanism = 3\n");
    daemon.ask(&place, &["reload"]).refuses(1, &["mechanism"]);
    place.file("gateway.toml", &text);
    let get = |request: &str| {
        let asked = || ask(TcpStream::connect(METRICS).expect("it listens"), request);
        path.fixed.run(asked).expect("enter")
    };
    // Nothing counts in between, or else both are asked for anew.
    let (status, (head, body)) = crate::path::seen("counters that stand still", || {
        let status = daemon.status();
        let answer = get("GET /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n");
        let is_so_still = daemon.status()["counters"] == status["counters"];
        is_so_still.then_some((status, answer))
    });
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    if let Some(samples) = judged(&place, &body) {
        for name in ["resumes", "taken", "resent", "kicks_repeated", "fallbacks"] {
            let (sample, told) = (
                &samples[format!("outlast_{name}_total")],
                &status["counters"][name],
            );
            assert_eq!(sample.as_f64(), told.as_f64(), "{name}: {samples:#}");
        }
        let is = |name: &str, value: f64| assert_eq!(samples[name], value, "{name}: {samples:#}");
        is("outlast_resume_seconds_count", 1.0);
        is("outlast_link_up", 1.0);
        is("outlast_config_last_reload_successful", 0.0);
        is("outlast_reloads_totalfailure", 1.0);
        is("outlast_link_changes_totalcarrierdowninterface", 1.0);
    }
    let (head, body) = get("HEAD /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(),
        "{head}{body}"
    );
    assert!(get("GET / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404"));
    assert!(
        get("POST /metrics HTTP/1.1\r\n\r\n")
            .0
            .starts_with("HTTP/1.1 405")
    );
    // A reload moves it.
    let listens = || {
        let sockets = || fs::read_to_string("/proc/thread-self/net/tcp").expect("the kernel tells");
        let sockets = path.gateway.run(sockets).expect("enter");
        sockets.contains(&format!(":{METRICS_PORT:04X} 00000000:0000 0A"))
    };
    assert!(listens());
    let unix = place.path().join("metrics.sock");
    place.file(
        "gateway.toml",
        &text.replace(METRICS, &format!("unix:{}", unix.display())),
    );
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!(said.out, "Changed: metrics.\n", "{said:?}");
    let stream = UnixStream::connect(&unix).expect("it listens");
    let (_, body) = ask(stream, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(!listens(), "the former place is still served");
    daemon.stop();
    assert!(!unix.exists(), "the socket is left behind");
}

/// Who listens at all addresses, and who listens at one, keep each other from the port.
#[test]
fn a_reload_moves_metrics_between_addresses_of_one_port() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let text = |address: &str| format!("metrics = \"{address}:{METRICS_PORT}\"\n");
    let Some(daemon) = Daemon::configured(&place, &path.gateway, &text("192.0.2.1")) else {
        return;
    };
    let move_to = |address: &str| {
        place.file("gateway.toml", &text(address));
        daemon.ask(&place, &["reload"])
    };
    let connect = |address: &str| {
        let connect = || TcpStream::connect((address, METRICS_PORT));
        path.fixed.run(connect).expect("enter")
    };
    let is_served = |address: &str| {
        let stream = connect(address).expect("it listens");
        let (head, _) = ask(stream, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    };
    let is_refused = |address: &str| {
        let refused = connect(address).expect_err("nobody listens");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    };
    let said = move_to("0.0.0.0");
    assert_eq!(said.out, "Changed: metrics.\n", "{said:?}");
    is_served("192.0.2.1");
    is_served("198.51.100.1");
    let said = move_to("198.51.100.1");
    assert_eq!(said.out, "Changed: metrics.\n", "{said:?}");
    is_served("198.51.100.1");
    is_refused("192.0.2.1");
    // A stranger has what is asked for: then all stays as it was.
    let strange = || TcpListener::bind(("192.0.2.1", METRICS_PORT));
    let stranger = path.gateway.run(strange).expect("enter").expect("bind");
    move_to("0.0.0.0").refuses(1, &["0.0.0.0:9464", "in use"]);
    is_served("198.51.100.1");
    drop(stranger);
    let said = move_to("0.0.0.0");
    assert_eq!(said.out, "Changed: metrics.\n", "{said:?}");
    daemon.stop();
}
