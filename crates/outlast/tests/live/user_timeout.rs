//! `outlast run --role host` with `[host.user_timeout]`: the User Timeout Option (RFC 5482) on the wire and in force.
//!
//! Where this machine lacks what that needs, a test says so and ends.

mod hosts;
mod rules;

use crate::path::{skip, until};
use crate::support::{Place, again, has_kernel, status_at};
use hosts::{Agent, CLIENT, Hosts, SERVER, Seen, minutes, pause, timed};
use outlast_base::time::Duration;
use outlast_linux::sysctl;
use outlast_wire::TcpFlags;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

const SYN: u8 = TcpFlags::SYN.0;
const SYN_ACK: u8 = TcpFlags::SYN.0 | TcpFlags::ACK.0;

/// In seconds; zero: there is none.
fn timeout_of(socket: &TcpStream) -> f64 {
    f64::from(sockopt::tcp_user_timeout(socket).expect("a TCP socket")) / 1e3
}

/// Sends a little each way, and waits until it has come.
fn exchange(sockets: &[TcpStream; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        (&sockets[from]).write_all(b"hello").expect("it is open");
        (&sockets[to]).read_exact(&mut [0; 5]).expect("it comes");
    }
}

/// What the segments say that `end` has sent, with their flags.
fn told(seen: &[Seen], end: usize) -> Vec<(u8, Option<u64>)> {
    let own = seen.iter().filter(|seen| seen.from == end);
    own.map(|seen| (seen.header.flags.0, seen.told())).collect()
}

/// Lines that tshark prints of `fields` of the packets in `file` that match `filter`.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-o", "tcp.check_checksum:TRUE", "-Y", filter, "-r"]);
    command.arg(file).args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("tshark is not installed");
            None
        }
        output => {
            let output = output.expect("tshark can be started");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            let text = String::from_utf8_lossy(&output.stdout);
            Some(text.lines().map(str::to_owned).collect())
        }
    }
}

#[test]
fn both_ends_tell_each_other_and_the_longer_wish_is_adopted() {
    for is_v6 in [false, true] {
        let Some(hosts) = Hosts::new() else { return };
        let place = Place::new();
        let client = Agent::start(&place, &hosts.ends[CLIENT], "c", "advertise = \"10 min\"");
        let server = Agent::start(&place, &hosts.ends[SERVER], "s", "advertise = \"20 h\"");
        let (Some(client), Some(server)) = (client, server) else {
            return;
        };
        let listener = hosts.listen(is_v6);
        let sockets = hosts.connect(&listener);
        exchange(&sockets);
        assert_eq!(sockets.each_ref().map(timeout_of), [72_000.0, 72_000.0]);

        let seen = hosts.seen();
        let [own, peers] = [told(&seen, CLIENT), told(&seen, SERVER)];
        assert_eq!(own[0], (SYN, Some(600)), "{own:?}");
        assert_eq!(
            own[1].1,
            Some(600),
            "the first after the handshake: {own:?}"
        );
        assert_eq!(peers[0], (SYN_ACK, Some(72_000)), "{peers:?}");
        assert_eq!(peers[1].1, Some(72_000), "{peers:?}");
        judge(&place, &hosts, is_v6);

        // Once data that told is acknowledged, nothing tells any more.
        exchange(&sockets);
        hosts.forget();
        exchange(&sockets);
        let quiet = |seen: &[Seen]| seen.iter().all(|seen| seen.told().is_none());
        assert!(quiet(&hosts.seen()), "{:?}", hosts.seen());

        // Another wish is told at once, and who adopts it tells again.
        if !has_kernel(6, 12) {
            skip(
                "before Linux 6.12 connections that are there take no part in what a reload changes",
            );
            return;
        }
        hosts.forget();
        server.reload("advertise = \"30 h\"\nat_most = \"40 h\"");
        exchange(&[
            sockets[SERVER].try_clone().expect("a descriptor"),
            sockets[CLIENT].try_clone().expect("a descriptor"),
        ]);
        exchange(&sockets);
        assert_eq!(
            timeout_of(&sockets[CLIENT]),
            86_400.0,
            "no more than `at_most`"
        );
        assert_eq!(timeout_of(&sockets[SERVER]), 108_000.0);
        let seen = hosts.seen();
        let first = |end| told(&seen, end).iter().find_map(|(_, told)| *told);
        assert_eq!(first(SERVER), Some(108_000), "{seen:?}");
        assert_eq!(first(CLIENT), Some(600), "{seen:?}");
        assert!(client.end().contains("adopted=2"));
    }
}

/// Wireshark finds the options where they should be, and nothing wrong.
fn judge(place: &Place, hosts: &Hosts, is_v6: bool) {
    let file = place.path().join("capture.pcapng");
    std::fs::write(&file, hosts.capture()).expect("a file in a directory of ours");
    let fields = [
        "tcp.flags",
        "tcp.options.user_to_granularity",
        "tcp.options.user_to_val",
    ];
    let Some(told) = tshark(&file, "tcp.options.user_to_val", &fields) else {
        return;
    };
    let ours = hosts.seen();
    let ours = ours.iter().filter(|seen| seen.told().is_some()).count();
    assert_eq!(told.len(), ours, "{told:?}");
    assert!(told[0].ends_with("0x0002\t0\t600"), "{is_v6}: {told:?}");
    assert!(told[1].ends_with("0x0012\t1\t1200"), "{told:?}");
    let odd = "_ws.malformed || tcp.checksum.status == \"Bad\"";
    assert_eq!(tshark(&file, odd, &["frame.number"]), Some(Vec::new()));
}

#[test]
fn an_application_with_a_timeout_of_its_own_is_left_alone() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let client = Agent::start(&place, &hosts.ends[CLIENT], "c", "");
    let server = Agent::start(&place, &hosts.ends[SERVER], "s", "advertise = \"2 h\"");
    let (Some(client), Some(_server)) = (client, server) else {
        return;
    };
    let listener = hosts.listen(false);
    // Before it connects.
    let to = listener.local_addr().expect("bound");
    let connect = || {
        let (kind, protocol) = (socket2::Type::STREAM, Some(socket2::Protocol::TCP));
        let socket = socket2::Socket::new(socket2::Domain::IPV4, kind, protocol);
        let socket = socket.expect("a socket");
        sockopt::set_tcp_user_timeout(&socket, 7_000).expect("a TCP socket");
        socket.connect(&to.into()).expect("the server listens");
        TcpStream::from(socket)
    };
    let early = hosts.ends[CLIENT].run(connect).expect("enter");
    let (server, _) = listener.accept().expect("the client comes");
    let early = [early, server];
    exchange(&early);
    exchange(&early);
    assert_eq!(timeout_of(&early[CLIENT]), 7.0);
    let seen = told(&hosts.seen(), CLIENT);
    assert!(seen.iter().all(|(_, told)| told.is_none()), "{seen:?}");

    // And afterwards.
    hosts.forget();
    let late = hosts.connect(&listener);
    sockopt::set_tcp_user_timeout(&late[CLIENT], 9_000).expect("a TCP socket");
    exchange(&late);
    exchange(&late);
    assert_eq!(timeout_of(&late[CLIENT]), 9.0);
    let seen = told(&hosts.seen(), CLIENT);
    assert_eq!(seen[0], (SYN, Some(3_600)), "{seen:?}");
    assert_eq!(seen.last().expect("some").1, None, "{seen:?}");
    let said = client.end();
    assert!(said.contains("left_alone=2"), "{said}");
    assert_eq!(timeout_of(&late[CLIENT]), 9.0, "not taken back either");
}

#[test]
fn a_syn_that_nobody_answers_is_repeated_without_the_option() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let Some(_agent) = Agent::start(&place, &hosts.ends[CLIENT], "c", "") else {
        return;
    };
    let listener = hosts.listen(false);
    hosts.cut(true);
    let to = listener.local_addr().expect("bound");
    let patience = Duration::from_secs(4);
    let connect = || TcpStream::connect_timeout(&to, patience);
    let connected = hosts.ends[CLIENT].run(connect).expect("enter");
    assert!(connected.is_err());
    let told: Vec<_> = told(&hosts.seen(), CLIENT)
        .iter()
        .map(|(_, told)| *told)
        .collect();
    // After one second and after two or three.
    assert_eq!(told[..3], [Some(3_600), Some(3_600), None]);
}

/// What the client of a connection finds that is cut after it was opened, the server's wish being eight
/// seconds, and its own two: three of them.
struct Fate {
    /// Data sent in an outage of six seconds: when the write after it failed, if it did.
    passing: io::Result<()>,
    /// An idle connection with keepalive, in the same outage.
    idle: io::Result<()>,
    /// Data sent in an outage that does not end: how long until the connection was given up.
    given_up: Duration,
}

/// Longer than the control's connections live, and than two seconds.
const PASSING: Duration = Duration::from_secs(6);

/// Before the second outage `is_settled`: an agent that still tries to wake a connection would leave the error of its try.
fn fate(hosts: &Hosts, is_settled: impl FnMut() -> bool) -> Fate {
    for (name, value) in [
        // Given up at the fourth timeout, the first being of 0.2 s: after 3.0 s.
        ("net.ipv4.tcp_retries2", "2"),
        ("net.ipv4.tcp_keepalive_time", "1"),
        ("net.ipv4.tcp_keepalive_intvl", "1"),
        ("net.ipv4.tcp_keepalive_probes", "2"),
    ] {
        let write = || sysctl::write(name, value).expect("sysctl");
        hosts.ends[CLIENT].run(write).expect("enter");
    }
    let listener = hosts.listen(false);
    let [passing, idle, lasting] = [(); 3].map(|()| hosts.connect(&listener));
    sockopt::set_socket_keepalive(&idle[CLIENT], true).expect("a socket");
    for sockets in [&passing, &idle, &lasting] {
        exchange(sockets);
        exchange(sockets);
    }
    hosts.cut(true);
    (&passing[CLIENT]).write_all(b"hello").expect("it is open");
    pause(PASSING);
    hosts.cut(false);
    let outcome = |sockets: &[TcpStream; 2]| match sockets[CLIENT].take_error() {
        Ok(None) => {
            (&sockets[CLIENT]).write_all(b"again")?;
            let patience = Some(Duration::from_secs(20));
            sockets[SERVER]
                .set_read_timeout(patience)
                .expect("a socket");
            (&sockets[SERVER]).read_exact(&mut [0; 5])
        }
        Ok(Some(error)) | Err(error) => Err(error),
    };
    let (passing, idle) = (outcome(&passing), outcome(&idle));
    until("nothing is restarted any more", is_settled);
    hosts.cut(true);
    (&lasting[CLIENT]).write_all(b"hello").expect("it is open");
    let patience = Some(Duration::from_secs(60));
    lasting[CLIENT]
        .set_read_timeout(patience)
        .expect("a socket");
    let (read, given_up) = timed(|| again(|| (&lasting[CLIENT]).read(&mut [0; 5])));
    let error = read.expect_err("nothing comes");
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    Fate {
        passing,
        idle,
        given_up,
    }
}

#[test]
fn a_connection_lives_as_long_as_its_peer_asks_for_and_no_longer() {
    let (Some(helped), Some(alone)) = (Hosts::new(), Hosts::new()) else {
        return;
    };
    let place = Place::new();
    // A try of a silent peer would leave its error with the connection.
    let limits = "at_least = \"1 s\"\n[host]\nprobes_silent_peers = false";
    let [client, server] = [(CLIENT, "2 s"), (SERVER, "8 s")].map(|(end, wish)| {
        let table = format!("advertise = \"{wish}\"\n{limits}");
        Agent::start(&place, &helped.ends[end], wish, &table)
    });
    let (Some(_client), Some(_server)) = (client, server) else {
        return;
    };
    let control = place.path().join("2 s.sock");
    let is_settled = || status_at(&control)["pending"] == 0;
    let [with, without] = thread::scope(|scope| {
        let with = scope.spawn(|| fate(&helped, is_settled));
        let without = scope.spawn(|| fate(&alone, || true));
        [with, without].map(|fate| fate.join().expect("it is measured"))
    });
    with.passing.expect("it outlives the outage");
    with.idle.expect("keepalive waits longer");
    let given_up = with.given_up.as_secs_f64();
    // From the first retransmission on.
    assert!((7.9..11.0).contains(&given_up), "{given_up} s");
    // Otherwise this shows nothing.
    assert!(without.passing.is_err() && without.idle.is_err());
    let given_up = without.given_up.as_secs_f64();
    assert!(given_up < 6.0, "{given_up} s without the agent");
}

#[test]
fn what_a_hostile_peer_says_stays_within_the_limits() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let limits = "advertise = \"200 s\"\nat_most = \"2 h\"\nper_peer = 2";
    let client = Agent::start(&place, &hosts.ends[CLIENT], "c", limits);
    let server = Agent::start(&place, &hosts.ends[SERVER], "s", "");
    let (Some(client), Some(_server)) = (client, server) else {
        return;
    };
    let listener = hosts.listen(false);
    let with = |value| {
        hosts.forge(value);
        let sockets = hosts.connect(&listener);
        exchange(&sockets);
        sockets
    };
    // Zero is reserved, in seconds as in minutes, and a second is less than this host wants.
    for value in [0, minutes(0), 1] {
        assert_eq!(timeout_of(&with(value)[CLIENT]), 200.0, "{value}");
    }
    // The longest there is, three weeks: no more than two hours, and for no more than two connections.
    let longest = minutes(0x7fff);
    let held = [longest; 2].map(with);
    assert_eq!(
        held.each_ref().map(|s| timeout_of(&s[CLIENT])),
        [7_200.0; 2]
    );
    let third = with(longest);
    assert_eq!(timeout_of(&third[CLIENT]), 200.0);
    // One that ends makes room, and so does one whose peer asks for less.
    let [first, second] = held;
    drop(first);
    until("there is room again", || {
        timeout_of(&with(longest)[CLIENT]) == 7_200.0
    });
    drop(second);
    let said = client.end();
    assert!(
        said.contains("zeros=") && !said.contains(" refused=0"),
        "{said}"
    );
    assert!(said.contains("failures=0"), "{said}");
    // A long timeout does not outlive the agent that was ended.
    assert_eq!(timeout_of(&third[CLIENT]), 0.0);
}

/// The numbers of the programs, links and maps of the kernel that a process holds.
pub(crate) fn kernel_objects(process: u32) -> Vec<(String, u32)> {
    let directory = format!("/proc/{process}/fdinfo");
    let entries = std::fs::read_dir(directory).expect("it runs");
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let lines: Vec<_> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let numbers = lines.iter().filter_map(|line| {
        let (name, number) = line.split_once(":\t")?;
        let is_one = matches!(name, "prog_id" | "link_id" | "map_id");
        is_one.then(|| (name.to_owned(), number.trim().parse().expect("a number")))
    });
    numbers.collect()
}

/// Whether the kernel has none of these any more.
pub(crate) fn are_gone(objects: &[(String, u32)]) -> bool {
    let programs = aya::programs::loaded_programs().filter_map(Result::ok);
    let programs: Vec<u32> = programs.map(|program| program.id()).collect();
    let maps = aya::maps::loaded_maps().filter_map(Result::ok);
    let maps: Vec<u32> = maps.map(|map| map.id()).collect();
    let links = aya::programs::loaded_links().filter_map(Result::ok);
    let links: Vec<u32> = links.map(|link| link.id()).collect();
    objects.iter().all(|(name, number)| match name.as_str() {
        "prog_id" => !programs.contains(number),
        "map_id" => !maps.contains(number),
        _ => !links.contains(number),
    })
}

#[test]
fn an_agent_that_is_killed_leaves_sockets_that_work_and_nothing_in_the_kernel() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let Some(mut agent) = Agent::start(&place, &hosts.ends[CLIENT], "c", "") else {
        return;
    };
    let listener = hosts.listen(false);
    let sockets = hosts.connect(&listener);
    exchange(&sockets);
    let told_before = told(&hosts.seen(), CLIENT);
    assert_eq!(told_before[0], (SYN, Some(3_600)), "{told_before:?}");
    let objects = kernel_objects(agent.child.id());
    let count = |what: &str| objects.iter().filter(|(name, _)| name == what).count();
    assert!(count("prog_id") >= 1 && count("map_id") >= 1, "{objects:?}");
    assert!(!are_gone(&objects));
    agent.child.kill().expect("it runs");
    agent.child.wait().expect("it ends");
    until("the kernel has let go of its programs", || {
        are_gone(&objects)
    });
    hosts.forget();
    for _ in 0..3 {
        exchange(&sockets);
    }
    let new = hosts.connect(&listener);
    exchange(&new);
    assert!(hosts.seen().iter().all(|seen| seen.told().is_none()));
    assert_eq!(timeout_of(&new[CLIENT]), 0.0);
}

#[test]
fn sockets_that_are_there_before_are_taken_over_and_given_back() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let listener = hosts.listen(true);
    let old = hosts.connect(&listener);
    exchange(&old);
    let [client, server] = [CLIENT, SERVER].map(|end| {
        let wish = ["\"1 h\"", "\"2 h\""][end];
        let table = format!("advertise = {wish}");
        Agent::start(&place, &hosts.ends[end], ["c", "s"][end], &table)
    });
    let (Some(client), Some(server)) = (client, server) else {
        return;
    };
    assert!(client.said().contains("sockets=1"), "{}", client.said());
    assert!(server.said().contains("sockets=2"), "{}", server.said());
    if client.said().contains("6.12") {
        return skip("the kernel cannot take over sockets (Linux 6.12)");
    }
    // What was open before tells with its next data, and so does who listened before.
    exchange(&old);
    exchange(&old);
    assert_eq!(old.each_ref().map(timeout_of), [7_200.0; 2]);
    let new = hosts.connect(&listener);
    exchange(&new);
    assert_eq!(new.each_ref().map(timeout_of), [7_200.0; 2]);
    for agent in [client, server] {
        agent.end();
    }
    for sockets in [&old, &new] {
        assert_eq!(sockets.each_ref().map(timeout_of), [0.0; 2]);
        hosts.forget();
        exchange(sockets);
        assert!(hosts.seen().iter().all(|seen| seen.told().is_none()));
    }
}

/// Where cgroup v2 is mounted.
fn cgroups() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("proc is mounted");
    let line = mounts.lines().find(|line| line.contains(" cgroup2 "))?;
    line.split(' ').nth(1).map(PathBuf::from)
}

/// A cgroup of a test's own.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Option<Self> {
        let Some(root) = cgroups() else {
            skip("cgroup v2 is not mounted");
            return None;
        };
        let path = root.join(format!("outlast-test-{}-{name}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                skip(error);
                None
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let removed = std::fs::remove_dir(&self.0);
        assert!(thread::panicking() || removed.is_ok(), "{removed:?}");
    }
}

/// Has a shell connect, in the cgroup if there is one, and send a line.
fn shell_connects(hosts: &Hosts, listener: &TcpListener, cgroup: Option<&Cgroup>) {
    let to: SocketAddr = listener.local_addr().expect("bound");
    let join = match cgroup {
        Some(Cgroup(path)) => format!("echo $$ > {}/cgroup.procs;", path.display()),
        None => String::new(),
    };
    let script = format!(
        "{join} exec 3<>/dev/tcp/{}/{}; echo hello >&3",
        to.ip(),
        to.port()
    );
    let run = || Command::new("bash").args(["-c", &script]).status();
    let status = hosts.ends[CLIENT].run(run).expect("enter");
    assert!(status.expect("bash is installed").success());
    let (mut server, _) = listener.accept().expect("the client comes");
    server.read_to_end(&mut Vec::new()).expect("it comes");
}

#[test]
fn only_the_sockets_of_the_chosen_cgroups_are_meant() {
    let Some(hosts) = Hosts::new() else { return };
    let Some(cgroup) = Cgroup::new("chosen") else {
        return;
    };
    let place = Place::new();
    let table = format!("cgroups = [\"{}\"]", cgroup.0.display());
    let Some(_agent) = Agent::start(&place, &hosts.ends[CLIENT], "c", &table) else {
        return;
    };
    let listener = hosts.listen(false);
    for (cgroup, expected) in [(None, None), (Some(&cgroup), Some(3_600))] {
        hosts.forget();
        shell_connects(&hosts, &listener, cgroup);
        // The last acknowledgement of the connection before may come late.
        let told = told(&hosts.seen(), CLIENT);
        let syn = told.iter().find(|(flags, _)| *flags == SYN);
        assert_eq!(syn, Some(&(SYN, expected)));
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let place = Place::new();
    let check = [
        "run",
        "--role",
        "host",
        "--check-config",
        "--config",
        "host.toml",
    ];
    place.file("host.toml", "[host.user_timeout]\nadvertise = \"2 h\"\n");
    let said = place.run(check);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("user timeout  7200 s"), "{}", said.out);
    for (table, words) in [
        ("advertise = \"2\"", ["advertise", "1 s"]),
        (
            "advertise = \"30 h\"",
            ["advertise = \"30 h\"", "at_most = \"24 h\""],
        ),
        ("cgroup = []", ["cgroup", "cgroups"]),
    ] {
        place.file("host.toml", &format!("[host.user_timeout]\n{table}\n"));
        place.run(check).refuses(2, &words);
    }
    place.file("host.toml", "[host.user_timeout]\ncgroups = [\"/proc\"]\n");
    let Some(hosts) = Hosts::new() else { return };
    let run = || place.run(["run", "--role", "host", "--config", "host.toml"]);
    let said = hosts.ends[CLIENT].run(run).expect("enter");
    said.refuses(
        3,
        &["/proc is no cgroup of version 2", "[host.user_timeout]"],
    );
}
