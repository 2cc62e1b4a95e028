//! The command on this machine's kernel: what Outlast is for, seen by a user.
//!
//! Where the command says that this machine lacks what a lab needs, a test says so and ends.

use crate::support::{Place, Said};
use outlast_skip::skip;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

/// `outlast lab` with `text`; the run's result. `None`, and the test is to return, where this
/// machine lacks something.
#[track_caller]
fn run(text: &str) -> Option<Value> {
    let place = Place::new();
    place.file("tunnel.toml", text);
    let said = place.run(["lab", "tunnel.toml", "--json"]);
    result(&said)
}

#[track_caller]
fn result(said: &Said) -> Option<Value> {
    if said.code == Some(3) {
        skip(&said.err);
        return None;
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    // Fails if there is anything else on standard output.
    let document: Value = serde_json::from_str(&said.out).expect("one JSON document");
    let runs = document["runs"].as_array().expect("a list of runs");
    assert_eq!(runs.len(), 1);
    Some(runs[0].clone())
}

#[track_caller]
fn assert_sound(run: &Value) {
    let (completed, intact) = (&run["completed"], &run["intact"]);
    assert!(completed == true && intact == true, "{run:#}");
}

/// A bulk transfer of 2 s over a link that is down from 1 s on.
fn bulk(direction: &str, ip: &str, mechanism: &str, outage: &str) -> String {
    format!(
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 10\n\
         [link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"{outage}\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\ndirection = \"{direction}\"\n\
         [stack]\nip = \"{ip}\"\n\
         [outlast]\ngateway = \"{mechanism}\"\nmobile = \"{mechanism}\"\n\
         [run]\ndeadline = \"90 s\"\n"
    )
}

/// Seconds from link-up until new bytes came.
#[track_caller]
fn resume_s(run: &Value) -> f64 {
    assert_sound(run);
    let outages = run["outages"].as_array().expect("a list");
    assert_eq!(outages.len(), 1, "{run:#}");
    outages[0]["resume_s"]
        .as_f64()
        .expect("it completed, so it resumed")
}

/// Seconds from link-up until new bytes came, with `hold` and without it.
///
/// The third value tells whether the machine was late for what is measured. `None` where it lacks
/// something.
#[track_caller]
fn with_hold_and_without(direction: &str, ip: &str) -> Option<(f64, f64, bool)> {
    let run = |mechanism: &str| {
        let place = Place::new();
        place.file("tunnel.toml", &bulk(direction, ip, mechanism, "11 s"));
        let said = place.run(["lab", "tunnel.toml", "--json"]);
        Some((
            resume_s(&result(&said)?),
            said.err.contains("this machine is busy"),
        ))
    };
    let (plain, held) = std::thread::scope(|scope| {
        let plain = scope.spawn(|| run("none"));
        let held = run("hold");
        (plain.join().expect("its assertions hold"), held)
    });
    let ((plain, plain_late), (held, held_late)) = (plain?, held?);
    Some((held, plain, held_late || plain_late))
}

/// The timeouts double from 240 to 280 ms, so that one falls 7.4 to 8.7 s into the outage and the next
/// 15 s or later. On a machine that is late for the link's timers round trips are longer, and so may
/// those be; then it is tried again.
#[track_caller]
fn resumes_with_hold_and_stalls_without(direction: &str, ip: &str) {
    let mut tries = 0;
    loop {
        let Some((held, plain, is_late)) = with_hold_and_without(direction, ip) else {
            return;
        };
        tries += 1;
        let holds = plain >= 2.0 && held * 2.0 < plain;
        assert!(
            holds || (is_late && tries < 5),
            "{held} s with hold, {plain} s without"
        );
        if holds {
            return;
        }
    }
}

#[test]
fn a_download_resumes_at_once_with_hold_and_stalls_without() {
    resumes_with_hold_and_stalls_without("download", "ipv4");
}

#[test]
fn an_upload_resumes_at_once_with_hold_and_stalls_without() {
    resumes_with_hold_and_stalls_without("upload", "ipv4");
}

#[test]
fn a_download_over_ipv6_resumes_as_one_over_ipv4() {
    resumes_with_hold_and_stalls_without("download", "ipv6");
}

#[test]
fn what_a_hostile_link_delivers_is_intact() {
    let run = run("[link]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
         loss = 0.01\nduplicate = 0.02\nreorder = 0.05\n\
         [link.outages]\nprocess = \"exponential\"\nup = \"300 ms\"\ndown = \"300 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"2 min\"\n");
    let Some(run) = run else { return };
    assert_sound(&run);
    assert!(run["dropped_packets"]["loss"].as_u64() > Some(0), "{run:#}");
}

#[test]
fn the_example_of_a_handover_is_completed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
    let text = fs::read_to_string(format!("{directory}/handover.toml")).expect("the example");
    let Some(run) = run(&text) else { return };
    assert_sound(&run);
    assert_eq!(run["outages"].as_array().map(Vec::len), Some(1));
    assert_eq!(run["outages"][0]["length_s"], 5.0);
    assert!(run["outages"][0]["resume_s"].is_number(), "{run:#}");
    // At least the acknowledgements that close the sender's window.
    assert!(run["injected_packets"].as_u64() > Some(0), "{run:#}");
    assert!(run["injected_bytes"].as_u64() > Some(0), "{run:#}");
}

#[test]
fn an_interactive_session_sees_more_updates_with_hold() {
    let text = |mechanism: &str| {
        format!(
            "[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
             [link.outages]\nprocess = \"periodic\"\nup = \"1 s\"\ndown = \"2 s\"\n\
             [workload]\nkind = \"interactive\"\nduration = \"12 s\"\n\
             [outlast]\ngateway = \"{mechanism}\"\nmobile = \"{mechanism}\"\n"
        )
    };
    let (plain, held) = std::thread::scope(|scope| {
        let plain = scope.spawn(|| run(&text("none")));
        let held = run(&text("hold"));
        (plain.join().expect("its assertions hold"), held)
    });
    let (Some(plain), Some(held)) = (plain, held) else {
        return;
    };
    let updates = |run: &Value| {
        run["updates"]
            .as_u64()
            .expect("interactive runs count them")
    };
    assert!(updates(&plain) > 0, "{plain:#}");
    assert!(updates(&held) > updates(&plain), "{held:#}\n{plain:#}");
}

#[test]
fn requests_are_all_answered_across_outages() {
    let run = run("[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [link.outages]\nprocess = \"periodic\"\nup = \"500 ms\"\ndown = \"500 ms\"\n\
         [workload]\nkind = \"request-response\"\nrequests = 40\nresponse = \"10 kB\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"2 min\"\n");
    let Some(run) = run else { return };
    assert_sound(&run);
    assert_eq!(run["bytes_received"], 400_000, "{run:#}");
}

/// A scenario in which curl fetches a file from Python's web server.
const CURL: &str = r#"[link]
rate = "4 Mbit/s"
delay = "10 ms"
[link.outages]
process = "single"
start = "300 ms"
length = "1 s"
[workload]
kind = "command"
server = "exec python3 -m http.server --bind $OUTLAST_FIXED 8080"
client = "exec curl --silent --show-error --output received http://$OUTLAST_FIXED_HOST:8080/sent"
ready = 8080
sent = "sent"
received = "received"
[outlast]
gateway = "hold"
mobile = "hold"
[run]
deadline = "2 min"
"#;

/// Whether a program is there; names it if not.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let there = found.is_ok_and(|output| output.status.success());
    if !there {
        skip(format!("there is no {program}"));
    }
    there
}

#[test]
fn everyday_programs_fetch_a_file_across_an_outage() {
    if !is_there("curl") || !is_there("python3") {
        return;
    }
    let place = Place::new();
    let content: Vec<u8> = (0..500_000_u32)
        .flat_map(|n| [n as u8, (n >> 8) as u8])
        .collect();
    fs::write(place.path().join("sent"), &content).expect("a file of ours");
    for ip in ["ipv4", "ipv6"] {
        let text = format!("{CURL}[stack]\nip = \"{ip}\"\n");
        place.file("tunnel.toml", &text);
        let said = place.run(["lab", "tunnel.toml", "--json"]);
        let Some(run) = result(&said) else { return };
        assert_sound(&run);
        assert_eq!(run["outages"].as_array().map(Vec::len), Some(1), "{run:#}");
        let received = fs::read(place.path().join("received")).expect("curl wrote it");
        assert!(received == content, "{} bytes over {ip}", received.len());
    }
}

#[test]
fn a_command_that_fails_says_why() {
    if !is_there("python3") {
        return;
    }
    let place = Place::new();
    let client = "client = \"echo the client is unhappy >&2; exit 9\"";
    let text = CURL.lines().map(|line| {
        if line.starts_with("client") {
            client
        } else {
            line
        }
    });
    let text: Vec<_> = text
        .filter(|l| !l.starts_with("sent") && !l.starts_with("rec"))
        .collect();
    place.file("tunnel.toml", &text.join("\n"));
    let said = place.run(["lab", "tunnel.toml"]);
    if said.code == Some(3) {
        return skip(&said.err);
    }
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("the client is unhappy"), "{said:?}");
    assert!(said.err.contains("mobile host"), "{said:?}");
}

/// A lab that would go on for an hour, once it runs; `None` where this machine lacks something.
fn endless(place: &Place) -> Option<Child> {
    place.file(
        "endless.toml",
        "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 GB\"\n[run]\ndeadline = \"1 h\"\n",
    );
    let mut child = place.start(["lab", "endless.toml", "-vv"]);
    // Whoever has written its entry has its hosts; one that lacks something ends.
    loop {
        if entries(place) == 1 {
            return Some(child);
        }
        if child.try_wait().expect("a child of ours").is_some() {
            let said = Said::of(child.wait_with_output().expect("ended"));
            assert_eq!(said.code, Some(3), "{said:?}");
            skip(&said.err);
            return None;
        }
        pause();
    }
}

/// Labs that are registered.
fn entries(place: &Place) -> usize {
    let Ok(entries) = fs::read_dir(place.registry()) else {
        return 0;
    };
    let is_entry = |path: &std::path::Path| path.extension().is_some_and(|e| e == "json");
    entries
        .flatten()
        .filter(|entry| is_entry(&entry.path()))
        .count()
}

#[expect(
    clippy::disallowed_methods,
    reason = "nobody tells strangers of a new file"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// The network namespace of a host of the lab that runs.
fn namespace(place: &Place, host: &str) -> String {
    let arguments = [
        "lab",
        "shell",
        "--host",
        host,
        "--",
        "readlink",
        "/proc/self/ns/net",
    ];
    let said = place.run(arguments);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.out.trim().to_owned()
}

/// Whether a process is in, or holds, `namespace`.
fn is_used(namespace: &str) -> bool {
    let links = |directory: std::path::PathBuf| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok())
    };
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    processes
        .map(|process| process.path())
        .flat_map(|path| links(path.join("fd")).chain(links(path.join("ns"))))
        .any(|link| link.to_str() == Some(namespace))
}

/// Waits until nobody is in, or holds, any of `namespaces`, or what has got its number since: that of
/// another test, which ends as well.
#[track_caller]
fn wait_until_unused(namespaces: &[String]) {
    let began = outlast_linux::clock::now();
    while namespaces.iter().any(|namespace| is_used(namespace)) {
        let waited = outlast_linux::clock::now().since(began);
        assert!(waited < Duration::from_secs(120), "{namespaces:?} are left");
        pause();
    }
}

#[test]
fn a_shell_opens_in_either_host_of_a_running_lab() {
    let place = Place::new();
    let Some(child) = endless(&place) else { return };
    let said = place.run(["lab", "shell", "--", "cat", "/proc/net/dev"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("link0:"), "{said:?}");
    let hosts = ["mobile", "fixed"].map(|host| namespace(&place, host));
    let own = fs::read_link("/proc/self/ns/net").expect("proc");
    assert_ne!(hosts[0], hosts[1]);
    assert!(hosts.iter().all(|host| own.to_str() != Some(host)));

    let seven = place.run([
        "lab", "shell", "--lab", "endless", "--", "sh", "-c", "exit 7",
    ]);
    assert_eq!(seven.code, Some(7), "{seven:?}");
    let other = place.run(["lab", "shell", "--lab", "tunnel", "--", "true"]);
    other.refuses(2, &["\"tunnel\"", "\"endless\""]);
    let nothing = place.run(["lab", "shell", "--", "/no/such/program"]);
    nothing.refuses(1, &["/no/such/program"]);
    interrupt(child);
}

/// Ctrl-C; what the command then says.
fn interrupt(child: Child) -> Said {
    kill_process(Pid::from_child(&child), Signal::INT).expect("it still runs");
    Said::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn an_interrupted_lab_ends_with_code_1_and_leaves_nothing() {
    let place = Place::new();
    let Some(child) = endless(&place) else { return };
    let hosts = ["mobile", "fixed"].map(|host| namespace(&place, host));
    let said = interrupt(child);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("cancelled"), "{said:?}");
    assert_eq!(entries(&place), 0);
    wait_until_unused(&hosts);
}

#[test]
fn a_killed_lab_leaves_no_process_and_no_namespace() {
    let place = Place::new();
    let Some(mut child) = endless(&place) else {
        return;
    };
    let hosts = ["mobile", "fixed"].map(|host| namespace(&place, host));
    assert!(hosts.iter().all(|host| is_used(host)));
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
    // The kernel takes down what the process held before its parent hears of its end.
    wait_until_unused(&hosts);
    let said = place.run(["lab", "shell", "--", "true"]);
    said.refuses(2, &["no lab is running"]);
    assert_eq!(
        entries(&place),
        0,
        "what it left is removed by the next one who looks"
    );
}

#[test]
fn finished_runs_are_shown_when_a_later_one_is_interrupted() {
    let place = Place::new();
    place.file(
        "endless.toml",
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"10 kB\"\n[run]\nrepeat = 100000\n",
    );
    let mut child = place.start(["lab", "endless.toml"]);
    let mut first = String::new();
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    err.read_line(&mut first).expect("text");
    if !first.contains("run 1: done") {
        let said = Said::of(child.wait_with_output().expect("ends"));
        assert_eq!(said.code, Some(3), "{said:?}, {first}");
        return skip(&first);
    }
    let drain = std::thread::spawn(move || err.lines().map_while(Result::ok).last());
    let said = interrupt(child);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.lines().count() >= 3,
        "a table with a run: {said:?}"
    );
    let last = drain.join().expect("reads").expect("a message");
    assert!(
        last.contains("of 100000 runs") && last.contains("cancelled"),
        "{last}"
    );
}

#[test]
fn captures_and_report_are_where_they_were_asked_for() {
    let place = Place::new();
    let text = bulk("download", "ipv4", "hold", "100 ms");
    place.file("tunnel.toml", &text.replace("1 MB", "600 kB"));
    let said = place.run([
        "lab",
        "tunnel.toml",
        "--capture",
        "a/b",
        "--report",
        "c/report.html",
    ]);
    if said.code == Some(3) {
        return skip(&said.err);
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    for name in [
        "a/b/tunnel-1.fixed.pcapng",
        "a/b/tunnel-1.mobile.pcapng",
        "c/report.html",
    ] {
        assert!(said.err.contains(name), "{name} is not told: {said:?}");
        let file = fs::read(place.path().join(name)).expect("it was written");
        assert!(file.len() > 1_000, "{name}");
    }
}
