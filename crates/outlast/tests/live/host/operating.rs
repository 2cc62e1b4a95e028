//! What `outlast status`, `notify`, `reload` and the metrics do with an agent beside a host's TCP, and
//! how little the unit of systemd leaves it.

use super::{AT_ONCE, Agent, Hosts, PATIENCE, ip};
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
use std::process::{Child, Stdio};
use std::thread;

/// What the agent is asked.
pub(super) fn asked(place: &Place, arguments: &[&str]) -> Said {
    place.run(arguments.iter().chain(&["--control", "host.sock"]))
}

pub(super) fn status(place: &Place) -> Value {
    status_at(&place.path().join("host.sock"))
}

/// The status once it is as wanted.
pub(super) fn status_when(place: &Place, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = clock::now();
    loop {
        let status = status(place);
        if is_wanted(&status) {
            return status;
        }
        assert!(clock::now() - begun < PATIENCE, "{status:#}");
        wait(OFTEN);
    }
}

/// What the agent serves to Prometheus.
fn metrics(place: &Place) -> String {
    let stream = UnixStream::connect(place.path().join("metrics")).expect("it listens");
    let (head, body) = ask(stream, "GET /metrics HTTP/1.1\r\nHost: host\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body
}

fn table(place: &Place) -> String {
    let at = place.path().join("metrics");
    format!("[host]\nmetrics = \"unix:{}\"\n", at.display())
}

/// The interface of the cable, as the status has it.
fn link(status: &Value) -> &Value {
    let all = status["interfaces"].as_array().expect("a list");
    let link = all.iter().find(|interface| interface["name"] == "link0");
    link.expect("it is watched")
}

/// A far end that nobody hears, although the carrier stays.
pub(super) fn deafen(hosts: &Hosts) {
    ip(&hosts.fixed, "link set link0 address 02:00:00:00:00:99");
}

pub(super) fn undeafen(hosts: &Hosts) {
    ip(&hosts.fixed, "link set link0 address 02:00:00:00:00:01");
}

#[test]
fn who_knows_better_tells_the_agent_and_the_upload_resumes() {
    let (Some(helped), Some(alone)) = (Hosts::new(), Hosts::new()) else {
        return;
    };
    let place = Place::new();
    place.file("host.toml", &table(&place));
    let agent = Agent::start(&place, &helped.mobile, &["--config", "host.toml"]);
    let before = status(&place);
    assert_eq!(before["role"], "host");
    assert_eq!(link(&before)["state"], "up", "{before:#}");
    assert_eq!(before["counters"]["returns"], 0, "{before:#}");
    let notify = |state: &str| {
        let said = asked(&place, &["notify", state, "--link", "link0"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let [with, without] = thread::scope(|scope| {
        let helped = scope.spawn(|| {
            let cut = || {
                deafen(&helped);
                notify("down");
                let status = status(&place);
                assert_eq!(link(&status)["state"], "down", "{status:#}");
                assert_eq!(link(&status)["by"], "notify", "{status:#}");
            };
            let mend = || {
                undeafen(&helped);
                notify("up");
            };
            helped.resume_after(cut, mend)
        });
        let alone = scope.spawn(|| alone.resume_after(|| deafen(&alone), || undeafen(&alone)));
        [helped, alone].map(|resumed| resumed.join().expect("it is measured"))
    });
    assert!(with <= AT_ONCE, "{with:?}: {}", agent.said());
    // Otherwise this shows nothing.
    assert!(without > AT_ONCE * 4, "{without:?} without the agent");

    let after = status(&place);
    let last = &after["returns"][0];
    assert_eq!(last["interface"], "link0", "{after:#}");
    assert_eq!(last["by"], "notify", "{after:#}");
    assert_eq!(last["stalled"], 1, "{after:#}");
    let away = last["away_s"].as_f64().expect("a number");
    assert!(away > 4.0 && away < 60.0, "{after:#}");
    let text = asked(&place, &["status"]).out;
    for words in [
        "role          host",
        "link0 up for ",
        "1 of 1 connection had stalled",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let said = metrics(&place);
    if let Some(samples) = judged(&place, &said) {
        for (metric, count) in [
            ("outlast_host_returns_total", "returns"),
            ("outlast_host_retransmissions_total", "retransmissions"),
            ("outlast_host_icmp_errors_total", "icmp_errors"),
        ] {
            let served = samples[metric].as_f64();
            assert_eq!(
                served,
                after["counters"][count].as_f64(),
                "{metric}: {said}"
            );
            assert!(served > Some(0.0), "{metric}: {said}");
        }
        assert_eq!(samples["outlast_link_uplink0"], 1.0, "{samples:#}");
    }

    // A neighbour alone, and those that are none.
    let peer = ["--peer", "10.1.0.1"];
    asked(&place, &[&["notify", "down"][..], &peer].concat());
    let status = status_when(&place, |status| {
        link(status)["peers_down"][0]["peer"] == peer[1]
    });
    assert_eq!(link(&status)["state"], "up", "{status:#}");
    asked(&place, &[&["notify", "up"][..], &peer].concat());
    let status = status_when(&place, |status| {
        link(status)["peers_down"] == Value::Array(vec![])
    });
    assert_eq!(status["returns"][0]["peer"], peer[1], "{status:#}");
    asked(&place, &["notify", "up", "--peer", "192.0.2.9"]).refuses(1, &["no neighbour", "link0"]);
    asked(&place, &["notify", "up", "--link", "wlan7"]).refuses(1, &["wlan7", "link0"]);
    asked(&place, &["status", "--flows"]).refuses(1, &["only gateways"]);
}

/// A child that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // The child is ours; one that has ended needs no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_unit_leaves_an_agent_is_all_that_it_needs() {
    const UNIT: &str = "outlast-host.service";
    if !is_superuser() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    // It puts the command where a stranger may run it.
    as_somebody(&place, STRANGER, STRANGER, &["status"]).refuses(2, &["no daemon"]);
    chown(place.path(), Some(STRANGER), Some(STRANGER)).expect("ours");
    let text = table(&place);
    place.file("host.toml", &text);
    let run = ["./outlast", "run", "--role", "host"];
    // Where it stands the file system cannot be written, but by this name it can.
    let control = place.path().join("host.sock");
    let control = control.to_str().expect("text");
    let options = ["--config", "host.toml", "--control", control];
    let arguments = [&run[..], &options].concat();
    let Some(mut command) = as_unit(&place, &hosts.mobile, UNIT, &arguments) else {
        return;
    };
    let told = place.path().join("notify.sock");
    let manager = UnixDatagram::bind(&told).expect("ours");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    set_permissions(&told, Permissions::from_mode(0o777)).expect("ours");
    command.env("NOTIFY_SOCKET", &told);
    // The dog bites after so many microseconds. While nobody reads what it is told, little has room.
    command.env("WATCHDOG_USEC", "2000000");
    let log = File::create(place.path().join("log")).expect("ours");
    command.stdout(Stdio::null()).stderr(log);
    let mut daemon = Killed(command.spawn().expect("it starts"));
    let ready = heard(&manager, "READY=1").pop().expect("the last one");
    assert!(ready.contains("STATUS=host agent on link0"), "{ready}");
    let id = daemon.0.id();
    for (name, expected) in [("CapEff", NETWORK), ("CapPrm", NETWORK), ("Seccomp", "2")] {
        assert_eq!(status_of(id, name), expected, "{name}");
    }
    // Signs of life go on while nothing happens.
    for _ in 0..3 {
        heard(&manager, "WATCHDOG=1");
    }
    // What is left is enough to list the connections and to wake one of them. Where other tests keep the
    // processors busy, a run may be late for their sake.
    let mut resumed = (0..3).map(|_| hosts.resume());
    let is_in_time = resumed.any(|resumed| resumed <= AT_ONCE);
    let log = std::fs::read_to_string(place.path().join("log")).expect("its log");
    assert!(is_in_time, "three times late: {log}");
    let status = status_when(&place, |status| status["returns"][0]["stalled"] == 1);
    assert!(
        status["counters"]["icmp_errors"].as_u64() > Some(0),
        "{status:#}"
    );

    place.file(
        "host.toml",
        &format!("{text}interfaces = [\"link0\"]\nburst = 9\n"),
    );
    let said = asked(&place, &["reload"]);
    assert_eq!(said.out, "Changed: interfaces, burst.\n", "{said:?}");
    heard(&manager, "RELOADING=1");
    heard(&manager, "READY=1");
    // The programs are there, whether or not they were wanted in the beginning.
    for (table, changed) in [
        ("advertise = \"2 h\"", true),
        ("per_peer = 9", true),
        ("per_peer = 9", false),
    ] {
        let text =
            format!("{text}interfaces = [\"link0\"]\nburst = 9\n[host.user_timeout]\n{table}\n");
        place.file("host.toml", &text);
        let said = asked(&place, &["reload"]);
        assert_eq!(
            said.out.contains("Changed: user_timeout"),
            changed,
            "{said:?}"
        );
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    // What was counted stays.
    let status = self::status(&place);
    assert_eq!(status["burst"], 9, "{status:#}");
    assert_eq!(status["returns"][0]["stalled"], 1, "{status:#}");
    place.file(
        "host.toml",
        &format!("{text}control = \"/run/elsewhere.sock\"\n"),
    );
    asked(&place, &["reload"]).refuses(1, &["control cannot change"]);
    place.file("host.toml", &format!("{text}burst = 0\n"));
    asked(&place, &["reload"]).refuses(1, &["burst = 0"]);
    let body = metrics(&place);
    for line in [
        "outlast_reloads_total{result=\"success\"} 4\n",
        "outlast_reloads_total{result=\"failure\"} 2\n",
        "outlast_config_last_reload_successful 0",
    ] {
        assert!(body.contains(line), "{body}");
    }
    // A manager reads all the time; the queue of one that does not is full after ten signs of life.
    manager.set_nonblocking(true).expect("a socket");
    while manager.recv(&mut [0; 4096]).is_ok() {}
    manager.set_nonblocking(false).expect("a socket");
    let pid = Pid::from_child(&daemon.0);
    kill_process(pid, Signal::TERM).expect("it runs");
    heard(&manager, "STOPPING=1");
    let ended = daemon.0.wait().expect("it ends");
    assert!(ended.success(), "{ended}");
    assert!(!place.path().join("host.sock").exists(), "left behind");
}
