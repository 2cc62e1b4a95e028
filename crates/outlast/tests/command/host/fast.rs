//! `mechanism = "fast-retransmit"`: the agent retransmits fast after a hand-off, and sends duplicate acknowledgements
//! to peers without the agent (Cáceres and Iftode 1995, section IV).

use super::operating::{status, status_when};
use super::requests::Network;
use super::{AT_ONCE, Agent, Hosts, PATIENCE, pause, resume_of};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::sysctl;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const TABLE: &str = "[host]\nmechanism = \"fast-retransmit\"\nimmediate_retransmission = false\n";

/// Runs a few times, as other tests may keep the processors busy and a sender's own timer may be due at the link's
/// return: until the agent is in time and the control is not.
fn judge(what: &str, run: impl Fn() -> Option<([Duration; 2], Value)>) -> Option<Value> {
    let mut tried = Vec::new();
    for _ in 0..4 {
        let ([with, without], status) = run()?;
        if with <= AT_ONCE && without > AT_ONCE * 4 {
            return Some(status);
        }
        tried.push(([with, without], status["counters"].to_string()));
    }
    panic!("{what}: {tried:?}");
}

#[test]
fn an_upload_resumes_at_once_with_fast_retransmission() {
    let resumes = || {
        let (helped, alone) = (Hosts::new()?, Hosts::new()?);
        let place = Place::new();
        place.file("host.toml", TABLE);
        let _agent = Agent::start(&place, &helped.mobile, &["--config", "host.toml"]);
        let resumed = thread::scope(|scope| {
            let both = [&helped, &alone].map(|hosts| scope.spawn(|| hosts.resume()));
            both.map(|resumed| resumed.join().expect("it is measured"))
        });
        Some((resumed, status(&place)))
    };
    let Some(status) = judge("upload", resumes) else {
        return;
    };
    assert_eq!(status["mechanism"], "fast-retransmit");
    // The sender has SACK, and keeps the window that its timeout has left it.
    assert_ne!(status["counters"]["slow_starts"], 0, "{status:#}");
}

/// Nobody runs the agent at the remote host, whose sender has BBR.
#[test]
fn a_download_resumes_at_once_by_duplicate_acknowledgements() {
    let resumes = || {
        let networks = [Network::new(true)?, Network::new(true)?];
        let place = Place::new();
        place.file("host.toml", &format!("{TABLE}wakes_peers = true\n"));
        let _agent = Agent::start(&place, &networks[0].mobile, &["--config", "host.toml"]);
        let resumed = thread::scope(|scope| {
            let resume = |network: &Network| {
                let (cut, mend) = (|| network.cut(), || network.mend());
                resume_of("bbr", &network.remote, &network.mobile, cut, mend)
            };
            let both = networks.each_ref();
            let both = both.map(|network| scope.spawn(move || resume(network)));
            both.map(|resumed| resumed.join().expect("it is measured"))
        });
        Some((resumed, status(&place)))
    };
    let Some(status) = judge("download", resumes) else {
        return;
    };
    let sent = status["counters"]["duplicate_acks"].as_u64();
    assert!(sent >= Some(4), "{status:#}");
    assert_eq!(status["counters"]["path_mtus_lowered"], 0, "{status:#}");
}

/// What the kernel counts in a namespace.
fn counted(network: &Network, name: &str) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").expect("it is there");
    let text = network.mobile.run(read).expect("enter");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut next = || lines.next().expect("two lines").split_whitespace();
    let (names, values) = (next(), next());
    let mut pairs = names.zip(values);
    let (_, value) = pairs.find(|(one, _)| *one == name).expect("it counts");
    value.parse().expect("a number")
}

/// An outage shorter than the first timeout: the kernel's own fast retransmission repairs the loss.
#[test]
fn a_sender_without_sack_that_has_had_no_timeout_retransmits_fast() {
    let Some(network) = Network::new(false) else {
        return;
    };
    let tune = || sysctl::write("net.ipv4.tcp_congestion_control", "reno");
    network.mobile.run(tune).expect("enter").expect("reno");
    let place = Place::new();
    place.file("host.toml", TABLE);
    let _agent = Agent::start(&place, &network.mobile, &["--config", "host.toml"]);
    let listen = || TcpListener::bind("10.1.0.7:0").expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || TcpStream::connect(to).expect("it listens");
    let mut sender = network.mobile.run(connect).expect("enter");
    let (mut receiver, _) = listener.accept().expect("it comes");
    receiver.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut all = vec![0; 20 * 1_448];
    sender.write_all(&all).expect("it is open");
    receiver.read_exact(&mut all).expect("the link is up");
    let before = counted(&network, "TCPFastRetrans");
    network.cut();
    sender.write_all(&all[..8 * 1_448]).expect("it is open");
    pause(Duration::from_millis(120));
    network.mend();
    receiver
        .read_exact(&mut all[..8 * 1_448])
        .expect("it goes on");
    let status = status_when(&place, |status| status["counters"]["passes"] != 0);
    let fast = counted(&network, "TCPFastRetrans") - before;
    let timeouts = counted(&network, "TCPTimeouts");
    if timeouts > 0 {
        // A busy machine: the outage has lasted for longer than the first timeout.
        outlast_skip::skip(format!("{timeouts} timeouts: this machine is too busy"));
        return;
    }
    assert_eq!(status["counters"]["fast_retransmits"], 1, "{status:#}");
    assert!(fast >= 1, "{fast}: {status:#}");
}
