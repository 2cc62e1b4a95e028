//! Running a gateway: who may ask it what, what it tells of itself, and how little it may do. What it
//! measures is in `metrics.rs`.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::metrics::{METRICS, ask};
use crate::path::{Daemon, LINK, MOBILE, Path, Transfer, Version, skip, wait};
use crate::support::{Place, Said, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process;
use rustix::fd::AsFd;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const BYTES: usize = 6_000_000;
/// A user and a group that nobody is.
pub(crate) const STRANGER: u32 = 64_999;

/// Where the daemon of `place` listens.
fn socket(place: &Place) -> PathBuf {
    place.path().join("control.sock")
}

/// A daemon on the link that reads `gateway.toml`, in which `text` stands.
fn configured(place: &Place, namespace: &Namespace, text: &str) -> Option<Daemon> {
    place.file("gateway.toml", text);
    Daemon::begin(command(place, namespace), socket(place))
}

fn command(place: &Place, namespace: &Namespace) -> Command {
    let mut command = place.command(["run", "--interface", LINK, "--config", "gateway.toml"]);
    command.arg("--control").arg(socket(place));
    let network = namespace.as_fd().try_clone_to_owned().expect("descriptor");
    process::place(&mut command, None, network);
    command
}

#[test]
fn the_log_has_the_words_of_the_status_and_none_of_the_libraries() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let text = "[log]\nlevel = \"debug\"\nformat = \"json\"\n";
    let Some(daemon) = configured(&place, &path.gateway, text) else {
        return;
    };
    path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    let status = daemon.status_when("a link that is away", is_down);
    let before = daemon.introduction.clone();
    let told = before + &daemon.stop();
    let lines = told.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("one JSON document a line");
        line
    });
    let lines: Vec<Value> = lines.collect();
    let link = lines.iter().find(|line| line["message"] == "link");
    let link = link.expect("it tells of the link");
    assert_eq!(link["state"], "down", "{link}");
    assert_eq!(link["by"], status["link"]["by"], "{link}");
    assert!(!told.contains("relocat"), "a loader's own: {told}");
}

/// The command in a place that everybody may enter, to be run as somebody else.
pub(crate) fn as_somebody(place: &Place, user: u32, group: u32, arguments: &[&str]) -> Said {
    let copy = place.path().join("outlast");
    if !copy.exists() {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        // By another process: what a child of another test has open for writing is "Text file busy".
        let installed = Command::new("install")
            .args([std::path::Path::new(env!("CARGO_BIN_EXE_outlast")), &copy])
            .status()
            .expect("install");
        assert!(installed.success(), "{installed}");
    }
    let mut command = Command::new(copy);
    command.args(arguments).arg("--control").arg(socket(place));
    command.uid(user).gid(group).current_dir("/");
    Said::of(command.output().expect("a copy of the command"))
}

pub(crate) fn is_superuser() -> bool {
    let is_superuser = rustix::process::geteuid().is_root();
    if !is_superuser {
        skip("only the superuser can run programs as somebody else");
    }
    is_superuser
}

#[test]
fn the_control_socket_is_its_owner_s_and_its_group_s() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = configured(&place, &path.gateway, "") else {
        return;
    };
    let mode = |place: &Place| fs::metadata(socket(place)).expect("it listens").mode() & 0o777;
    assert_eq!(mode(&place), 0o600);
    daemon.stop();
    if !is_superuser() {
        return;
    }
    let text = format!("control_group = \"{STRANGER}\"\n");
    let daemon = configured(&place, &path.gateway, &text).expect("as before");
    assert_eq!(mode(&place), 0o660);
    assert_eq!(
        fs::metadata(socket(&place)).expect("it listens").gid(),
        STRANGER
    );
    let member = |arguments: &[&str]| as_somebody(&place, STRANGER, STRANGER, arguments);
    let stranger = |arguments: &[&str]| as_somebody(&place, STRANGER, STRANGER + 1, arguments);
    for arguments in [&["status"][..], &["notify", "up"], &["reload"]] {
        let said = member(arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
        stranger(arguments).refuses(2, &["not allowed to connect", "control_group"]);
    }
    daemon.stop();
    let text = format!("control_group = \"{STRANGER}\"\ncontrol_mode = \"0666\"\n");
    let daemon = configured(&place, &path.gateway, &text).expect("as before");
    assert_eq!(stranger(&["status"]).code, Some(0));
    for arguments in [&["notify", "down"][..], &["reload"]] {
        stranger(arguments).refuses(1, &["only the superuser", "members of its group"]);
    }
    assert_eq!(daemon.status()["link"]["state"], "up");
    daemon.stop();
}

#[test]
fn the_umask_of_who_starts_the_daemon_shuts_nobody_out() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let control = place.path().join("run").join("control.sock");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_outlast"), "run", "--interface", LINK]);
    command.arg("--control").arg(&control);
    let network = path.gateway.as_fd().try_clone_to_owned();
    process::place(&mut command, None, network.expect("descriptor"));
    let Some(daemon) = Daemon::begin(command, control.clone()) else {
        return;
    };
    let mode = |path: &std::path::Path| fs::metadata(path).expect("made").mode() & 0o777;
    assert_eq!(mode(control.parent().expect("a directory")), 0o755);
    assert_eq!(mode(&control), 0o600);
    daemon.stop();
}

/// Hooks tell of each station that comes and goes: to count every connection each time would take long.
#[test]
fn who_tells_of_a_link_hears_what_holds_of_it_and_no_more() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = configured(&place, &path.gateway, "") else {
        return;
    };
    let tell = |state: &str, peer: &str| {
        let mut client = UnixStream::connect(socket(&place)).expect("it listens");
        let request = format!("{{\"notify\":{{\"state\":\"{state}\",\"peer\":{peer}}}}}\n");
        client.write_all(request.as_bytes()).expect("room");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("text");
        answer
    };
    let down = "{\"done\":{\"state\":\"down\"}}\n";
    let peer = "\"198.51.100.2\"";
    assert_eq!(tell("down", peer), down);
    assert_eq!(tell("up", peer), "{\"done\":{\"state\":\"up\"}}\n");
    path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    daemon.status_when("a link that is away", is_down);
    assert_eq!(tell("up", "null"), down, "there is no carrier");
    daemon.stop();
}

/// Allows a process no descriptors beside those that it has, or as many as before.
fn limit_descriptors(process: u32, is_limited: bool) {
    let had = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs");
    let had: Vec<u64> = had
        .map(|entry| entry.expect("it runs").file_name())
        .map(|name| name.to_string_lossy().parse().expect("a number"))
        .collect();
    let first_free = (0..).find(|number| !had.contains(number));
    let process = Pid::from_raw(process.cast_signed());
    let limits = prlimit(process, Resource::Nofile, getrlimit(Resource::Nofile));
    let maximum = limits.expect("ours").maximum;
    let current = if is_limited { first_free } else { maximum };
    prlimit(process, Resource::Nofile, Rlimit { current, maximum }).expect("ours");
}

#[test]
fn who_connects_when_there_are_no_descriptors_is_sent_away() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = configured(&place, &path.gateway, "") else {
        return;
    };
    limit_descriptors(daemon.id(), true);
    for _ in 0..3 {
        let mut client = UnixStream::connect(socket(&place)).expect("it listens");
        let patience = Some(Duration::from_secs(30));
        client.set_read_timeout(patience).expect("a socket");
        assert_eq!(again(|| client.read(&mut [0])).expect("closed"), 0);
    }
    limit_descriptors(daemon.id(), false);
    assert_eq!(daemon.status()["link"]["state"], "up");
    let said = daemon.stop();
    assert_eq!(said.matches("cannot accept a client").count(), 3, "{said}");
}

/// As on a host whose last descriptor somebody else is faster to take.
#[test]
fn who_can_be_neither_let_in_nor_sent_away_waits_and_costs_little() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(mut daemon) = configured(&place, &path.gateway, "") else {
        return;
    };
    let pid = Pid::from_raw(daemon.id().cast_signed());
    let had = prlimit(pid, Resource::Nofile, getrlimit(Resource::Nofile)).expect("ours");
    let none = Rlimit {
        current: Some(0),
        ..had
    };
    prlimit(pid, Resource::Nofile, none).expect("ours");
    let mut client = UnixStream::connect(socket(&place)).expect("it listens");
    client.write_all(b"\"status\"\n").expect("room");
    let began = clock::now();
    crate::path::until("a client that is not let in", || {
        daemon.has_said("cannot accept a client")
    });
    wait(Duration::from_secs(2));
    prlimit(pid, Resource::Nofile, had).expect("ours");
    let seconds = clock::now().since(began).as_secs() as usize;
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("{\"done\":{"), "{answer}");
    let said = daemon.stop();
    let times = said.matches("cannot accept a client").count();
    assert!(times <= seconds + 2, "{times} times in {seconds} s");
}

/// How many lines a gateway has said of a transfer of so many segments across an outage, at this
/// level, and of how many packets.
fn told(level: &str, segments: usize) -> Option<(usize, u64)> {
    let place = Place::new();
    let path = Path::new()?;
    // All of them come by.
    let text = format!("data_path = \"nfqueue\"\n[log]\nlevel = \"{level}\"\n");
    let daemon = configured(&place, &path.gateway, &text)?;
    let length = segments * 1_448;
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V4), length);
    transfer.wait_for(length / 2);
    path.cut();
    wait(Duration::from_millis(700));
    path.mend();
    transfer.finish();
    let packets = daemon.status()["counters"]["packets"].as_u64();
    Some((daemon.stop().lines().count(), packets.expect("a count")))
}

#[test]
fn the_log_tells_nothing_of_single_packets_unless_asked() {
    let Some((lines, packets)) = told("info", 10_000) else {
        return;
    };
    assert!(packets > 10_000, "{packets}");
    // Down, up, and the end; a little more if the link is silent on a busy machine.
    assert!(
        lines >= 3 && (lines as u64) * 100 < packets,
        "{lines} lines of {packets} packets"
    );
    let (lines, packets) = told("trace", 100).expect("as before");
    assert!(lines as u64 > packets, "{lines} lines of {packets} packets");
}

/// What a daemon tells the service manager until it says something that begins with `last`.
pub(crate) fn heard(manager: &UnixDatagram, last: &str) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let mut message = [0; 4096];
        let length = again(|| manager.recv(&mut message)).expect("it goes on");
        let message = std::str::from_utf8(&message[..length]).expect("text");
        heard.push(message.to_owned());
        if message.starts_with(last) {
            return heard;
        }
    }
}

#[test]
fn the_service_manager_is_told_of_everything() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    place.file("gateway.toml", "");
    let told = place.path().join("notify.sock");
    let manager = UnixDatagram::bind(&told).expect("ours");
    let mut command = command(&place, &path.gateway);
    command.env("NOTIFY_SOCKET", &told);
    // The dog bites after so many microseconds.
    command.env("WATCHDOG_USEC", "400000");
    let Some(daemon) = Daemon::begin(command, socket(&place)) else {
        return;
    };
    let ready = heard(&manager, "READY=1").pop().expect("the last one");
    assert!(ready.contains("STATUS=hold on link0 (link up)"), "{ready}");
    // Signs of life go on while nothing happens.
    for _ in 0..3 {
        heard(&manager, "WATCHDOG=1");
    }
    daemon.ask(&place, &["reload"]);
    let reloading = heard(&manager, "RELOADING=1").pop().expect("the last one");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    heard(&manager, "READY=1");
    daemon.stop();
    heard(&manager, "STOPPING=1");
}

#[test]
fn a_service_manager_that_reads_nothing_stops_nobody() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    place.file("gateway.toml", "");
    let told = place.path().join("notify.sock");
    let manager = UnixDatagram::bind(&told).expect("ours");
    let mut command = command(&place, &path.gateway);
    command.env("NOTIFY_SOCKET", &told);
    command.env("WATCHDOG_USEC", "400000");
    let Some(daemon) = Daemon::begin(command, socket(&place)) else {
        return;
    };
    let crowd = UnixDatagram::unbound().expect("a socket");
    crowd.set_nonblocking(true).expect("a socket");
    let full = loop {
        if let Err(error) = crowd.send_to(b"CROWD=1", &told) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock, "{full}");
    daemon.ask(&place, &["reload"]);
    daemon.ask(&place, &["status"]);
    // What found no room comes when there is some, in order.
    heard(&manager, "RELOADING=1");
    heard(&manager, "READY=1");
    heard(&manager, "WATCHDOG=1");
    daemon.stop();
}

#[test]
fn the_log_can_be_read_by_machines() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let text = "[log]\nformat = \"json\"\n";
    let Some(daemon) = configured(&place, &path.gateway, text) else {
        return;
    };
    let introduction = daemon.introduction.clone();
    let peer = MOBILE.of(Version::V4).to_string();
    daemon.ask(&place, &["notify", "down", "--peer", &peer]);
    let said = daemon.stop();
    let lines: Vec<Value> = introduction
        .lines()
        .chain(said.lines())
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect();
    assert!(
        lines.iter().all(|line| line["level"] == "INFO"),
        "{lines:#?}"
    );
    let link = lines.iter().find(|line| line["message"] == "link");
    let link = link.expect("the link's changes are told");
    assert_eq!(
        (&link["peer"], &link["state"]),
        (&peer.into(), &"down".into())
    );
}

/// A line of a process's status.
pub(crate) fn status_of(process: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("the kernel tells it").trim().to_owned()
}

/// `CAP_NET_ADMIN` and `CAP_NET_RAW`, as the kernel writes them.
pub(crate) const NETWORK: &str = "0000000000003000";
const NONE: &str = "0000000000000000";

#[test]
fn once_it_runs_it_has_two_capabilities_and_can_gain_none() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let Some(daemon) = configured(&place, &path.gateway, "") else {
        return;
    };
    for (name, expected) in [
        ("CapEff", NETWORK),
        ("CapPrm", NETWORK),
        ("CapInh", NONE),
        ("CapBnd", NONE),
        ("CapAmb", NONE),
        ("NoNewPrivs", "1"),
    ] {
        assert_eq!(status_of(daemon.id(), name), expected, "{name}");
    }
    daemon.stop();
}

/// `arguments` to be run as a unit of systemd would in `namespace`, but as a stranger; `None`,
/// with the reason, where this machine lacks something.
pub(crate) fn as_unit(
    place: &Place,
    namespace: &Namespace,
    unit: &str,
    arguments: &[&str],
) -> Option<Command> {
    let packaging = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for (program, argument) in [
        ("setpriv", "--version"),
        ("unshare", "--version"),
        ("systemd-analyze", "--version"),
        ("/usr/bin/python3", "-cimport seccomp"),
    ] {
        let output = Command::new(program).arg(argument).output();
        if !output.is_ok_and(|output| output.status.success()) {
            skip(format!("{program} {argument} does not work here"));
            return None;
        }
    }
    let mut command = Command::new(packaging.join("as-unit"));
    command
        .arg(format!("--user={STRANGER}"))
        .arg("--writable")
        .arg(place.path());
    command
        .arg(packaging.join("systemd").join(unit))
        .args(arguments);
    command.current_dir(place.path());
    let network = namespace.as_fd().try_clone_to_owned().expect("descriptor");
    process::place(&mut command, None, network);
    Some(command)
}

/// The gateway's unit.
const UNIT: &str = "outlast@.service";

#[test]
fn what_the_unit_leaves_it_is_all_that_it_needs() {
    if !is_superuser() {
        return;
    }
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let said = as_somebody(&place, STRANGER, STRANGER, &["status"]);
    said.refuses(2, &["no daemon"]);
    std::os::unix::fs::chown(place.path(), Some(STRANGER), Some(STRANGER)).expect("ours");
    // The sandbox bites: the same command may not do what it need not.
    let outside = "touch /etc/outlast-test || unshare --net true || setpriv --reuid=0 true";
    let Some(mut command) = as_unit(&place, &path.gateway, UNIT, &["sh", "-c", outside]) else {
        return;
    };
    let said = Said::of(command.output().expect("it starts"));
    assert!(said.code != Some(0), "{said:?}");
    let text = format!("metrics = \"{METRICS}\"\ncontrol_group = \"{STRANGER}\"\n");
    place.file("gateway.toml", &text);
    let socket = socket(&place).display().to_string();
    let arguments = [
        "./outlast",
        "run",
        "--interface",
        LINK,
        "--config",
        "gateway.toml",
        "--control",
        &socket,
    ];
    let command = as_unit(&place, &path.gateway, UNIT, &arguments).expect("as before");
    let daemon = Daemon::begin(command, socket.into()).expect("it needs no more");
    assert_eq!(status_of(daemon.id(), "CapEff"), NETWORK);
    assert_eq!(status_of(daemon.id(), "Seccomp"), "2");
    let user = status_of(daemon.id(), "Uid");
    assert!(user.starts_with(&STRANGER.to_string()), "{user}");
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, MOBILE.of(Version::V6), BYTES);
    transfer.wait_for(BYTES / 6);
    path.cut();
    let by_itself = transfer.wait_for_long_timeout();
    let up = path.mend();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    place.file(
        "gateway.toml",
        &format!("{text}mechanism = \"smart-link-3\"\n"),
    );
    let said = daemon.ask(&place, &["reload"]);
    assert_eq!(said.out, "Changed: mechanism.\n", "{said:?}");
    let get = || TcpStream::connect(METRICS).expect("it listens");
    let stream = path.fixed.run(get).expect("enter");
    assert!(
        ask(stream, "GET /metrics HTTP/1.1\r\n\r\n")
            .1
            .contains("outlast_resumes_total 1")
    );
    daemon.stop();
}
