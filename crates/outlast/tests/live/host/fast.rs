//! `mechanism = "fast-retransmit"`: the agent retransmits fast after a hand-off, and sends duplicate acknowledgements
//! to peers without the agent (Cáceres and Iftode 1995, section IV).

use super::operating::{asked, deafen, status, status_when, undeafen};
use super::{AT_ONCE, Agent, Hosts, PATIENCE, ip, pause};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use outlast_linux::sysctl;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const TABLE: &str = "[host]\nmechanism = \"fast-retransmit\"\nimmediate_retransmission = false\n";

/// Bytes of a full segment.
const SEGMENT: usize = 1_448;
/// More than the three that must be counted.
const LOST: usize = 8 * SEGMENT;
/// With what it takes to tell of it, shorter than the least timeout of Linux, 0.2 s.
const SHORT: Duration = Duration::from_millis(60);
/// A busy machine may make the outage longer than the first timeout.
const TRIES: u32 = 4;

/// Resume times of an upload with the agent and without, over an outage that the carrier does not tell of: packets
/// vanish on the way, and a timeout that looks spurious would give the sender its window back.
fn resumes() -> Option<([Duration; 2], Value)> {
    let (helped, alone) = (Hosts::new()?, Hosts::new()?);
    let place = Place::new();
    place.file("host.toml", TABLE);
    let _agent = Agent::start(&place, &helped.mobile, &["--config", "host.toml"]);
    let notify = |state: &str| {
        let said = asked(&place, &["notify", state, "--link", "link0"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let resumed = thread::scope(|scope| {
        let helped = scope.spawn(|| {
            let cut = || {
                deafen(&helped);
                notify("down");
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
    Some((resumed, status(&place)))
}

#[test]
fn an_upload_resumes_at_once_and_keeps_the_window_that_its_timeout_left() {
    let mut tried = Vec::new();
    for _ in 0..TRIES {
        let Some(([with, without], status)) = resumes() else {
            return;
        };
        assert_eq!(status["mechanism"], "fast-retransmit");
        let acted = status["counters"]["slow_starts"] != 0;
        if acted && with <= AT_ONCE && without > AT_ONCE * 4 {
            return;
        }
        tried.push((acted, [with, without]));
    }
    panic!("{tried:?}");
}

/// Retransmissions that the kernel calls fast.
const FAST: &str = "TCPFastRetrans";

/// What the kernel counts in a namespace.
fn counted(host: &Namespace, name: &str) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").expect("it is there");
    let text = host.run(read).expect("enter");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut next = || lines.next().expect("two lines").split_whitespace();
    let (names, values) = (next(), next());
    let mut pairs = names.zip(values);
    let (_, value) = pairs.find(|(one, _)| *one == name).expect("it counts");
    value.parse().expect("a number")
}

/// Which host of two sends, and what makes the other one deaf, and hear again.
struct Way {
    counter: &'static str,
    least: u64,
    at: &'static str,
    own_hardware: &'static str,
}

const UPLOAD: Way = Way {
    counter: "fast_retransmits",
    least: 1,
    at: "10.1.0.1:0",
    own_hardware: "02:00:00:00:00:01",
};

const DOWNLOAD: Way = Way {
    counter: "duplicate_acks",
    least: 4,
    at: "10.1.0.7:0",
    own_hardware: "02:00:00:00:00:07",
};

/// Fast retransmissions of the sender over a short outage, and what the agent of the mobile host says. `None` where the
/// sender's own timer was faster, although the agent `helps`.
fn fast_over_short_outage(way: &Way, helps: bool) -> Option<(u64, Option<Value>)> {
    let hosts = Hosts::new()?;
    for host in [&hosts.mobile, &hosts.fixed] {
        let tune = || sysctl::write("net.ipv4.tcp_sack", "0");
        host.run(tune).expect("enter").expect("a sysctl");
    }
    let (sender, receiver) = match way.at {
        "10.1.0.1:0" => (&hosts.mobile, &hosts.fixed),
        _ => (&hosts.fixed, &hosts.mobile),
    };
    let place = Place::new();
    place.file("host.toml", &format!("{TABLE}wakes_peers = true\n"));
    let config = ["--config", "host.toml"];
    let agent = helps.then(|| Agent::start(&place, &hosts.mobile, &config));
    let notify = |state: &str| {
        if helps {
            let said = asked(&place, &["notify", state, "--link", "link0"]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    };
    let hear_as = |hardware: &str| ip(receiver, &format!("link set link0 address {hardware}"));
    let listen = || TcpListener::bind(way.at).expect("a port");
    let listener = receiver.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || TcpStream::connect(to).expect("it listens");
    let mut from = sender.run(connect).expect("enter");
    let (mut into, _) = listener.accept().expect("it comes");
    into.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut all = vec![0; 20 * SEGMENT];
    from.write_all(&all).expect("it is open");
    into.read_exact(&mut all).expect("the link is up");
    let before = counted(sender, FAST);
    hear_as("02:00:00:00:00:99");
    notify("down");
    from.write_all(&all[..LOST]).expect("it is open");
    pause(SHORT);
    hear_as(way.own_hardware);
    notify("up");
    into.read_exact(&mut all[..LOST]).expect("it goes on");
    let is_passed = |status: &Value| status["counters"]["passes"] != 0;
    let status = agent.map(|_agent| status_when(&place, is_passed));
    let fast = counted(sender, FAST) - before;
    (!helps || fast > 0).then_some((fast, status))
}

/// An outage shorter than the first timeout, of a sender without SACK: duplicate acknowledgements make the kernel
/// retransmit as it does after any loss.
#[test]
fn a_sender_that_has_had_no_timeout_retransmits_fast_at_either_end() {
    for way in [UPLOAD, DOWNLOAD] {
        let counter = way.counter;
        // Nothing but the agent brings them about.
        let Some((fast, _)) = fast_over_short_outage(&way, false) else {
            return;
        };
        assert_eq!(fast, 0, "{counter}");
        let mut tries = (0..TRIES).filter_map(|_| fast_over_short_outage(&way, true));
        let Some((_, Some(status))) = tries.next() else {
            panic!("{counter}: in all runs the sender's own timer was faster");
        };
        let count = status["counters"][counter].as_u64();
        assert!(count >= Some(way.least), "{counter}: {status:#}");
    }
}
