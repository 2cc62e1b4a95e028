//! An agent that is killed or ended while it wakes connections, and one that is stopped (SIGSTOP) amid an outage:
//! the connections go on by the kernel's own timers, and nothing stays in the kernel.

use super::operating::{status, status_when};
use super::requests::{Network, REMOTE};
use super::{AT_ONCE, Agent, Hosts, PATIENCE, pause};
use crate::path::until;
use crate::support::Place;
use crate::user_timeout::{are_gone, kernel_objects};
use outlast_base::time::Duration;
use outlast_linux::namespace::Namespace;
use outlast_linux::sysctl;
use rustix::net::sockopt;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

/// They take four seconds to be woken.
const CONNECTIONS: usize = 80;
const TABLE: &str = "[host]\nper_second = 20\nburst = 1\n[host.user_timeout]\n";

/// What is pinned in the kernel's file system for BPF.
fn pinned() -> Vec<OsString> {
    match std::fs::read_dir("/sys/fs/bpf") {
        Ok(entries) => {
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name())
                .collect();
            names.sort();
            names
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// The congestion controls that a host's sockets may choose.
fn congestion_controls(host: &Namespace) -> String {
    let read = || sysctl::read("net.ipv4.tcp_available_congestion_control");
    host.run(read).expect("enter").expect("a sysctl")
}

#[test]
fn an_agent_that_is_killed_while_it_wakes_connections_leaves_them_to_their_timers() {
    leaves_nothing(Signal::KILL);
}

#[test]
fn an_agent_that_is_ended_while_it_wakes_connections_leaves_them_to_their_timers() {
    leaves_nothing(Signal::TERM);
}

fn leaves_nothing(signal: Signal) {
    let Some(network) = Network::new(true) else {
        return;
    };
    let place = Place::new();
    place.file("host.toml", TABLE);
    let pinned_before = pinned();
    let mut agent = Agent::start(&place, &network.mobile, &["--config", "host.toml"]);
    let listen = || TcpListener::bind((REMOTE, 0)).expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || TcpStream::connect(to).expect("it listens");
    let connect_all = || [(); CONNECTIONS].map(|()| connect());
    let mut near = network.mobile.run(connect_all).expect("enter");
    let mut far = [(); CONNECTIONS].map(|()| listener.accept().expect("it comes").0);
    let usual = congestion_of(&near[0]);
    network.cut();
    for sender in &mut near {
        sender.write_all(&[7; 512]).expect("it is open");
    }
    // All have had timeouts, and the next ones are a second away.
    pause(Duration::from_millis(1_800));
    let objects = kernel_objects(agent.child.id());
    let of = |what: &str| objects.iter().filter(|(name, _)| name == what).count();
    assert!(
        of("prog_id") >= 1 && of("map_id") >= 1 && of("link_id") >= 1,
        "{objects:?}"
    );
    assert!(!are_gone(&objects));
    // Where this kernel takes one.
    let begun = status(&place);
    let control = begun["new_path"]["congestion_control"].as_str();
    if let Some(control) = control {
        let offered = congestion_controls(&network.mobile);
        assert!(offered.contains(control), "{control}: {offered}");
    }
    network.mend();
    let status = status_when(&place, |status| {
        status["counters"]["retransmissions"].as_u64() > Some(2)
    });
    // Otherwise it is not in the middle of it.
    assert!(
        status["pending"].as_u64() > Some(CONNECTIONS as u64 / 4),
        "{status:#}"
    );
    kill_process(Pid::from_child(&agent.child), signal).expect("it runs");
    let ended = agent.child.wait().expect("it ends");
    assert_eq!(ended.success(), signal == Signal::TERM, "{ended}");
    until("the kernel has let go of the agent's programs", || {
        are_gone(&objects)
    });
    assert_eq!(pinned(), pinned_before);
    if let Some(control) = control {
        until("the agent's congestion control is gone", || {
            !congestion_controls(&network.mobile).contains(control)
        });
    }
    for (sender, receiver) in near.iter_mut().zip(&mut far) {
        exchange(sender, receiver);
        assert_eq!(congestion_of(sender), usual, "a connection has another one");
    }
    // Others, too, and with another agent as before.
    let mut new = network.mobile.run(connect).expect("enter");
    let (mut accepted, _) = listener.accept().expect("it comes");
    new.write_all(&[7; 512]).expect("it is open");
    exchange(&mut new, &mut accepted);
    drop(agent);
    let _another = Agent::start(&place, &network.mobile, &["--config", "host.toml"]);
    assert_eq!(self::status(&place)["role"], "host");
}

/// The congestion control of a socket.
fn congestion_of(socket: &TcpStream) -> String {
    sockopt::tcp_congestion(socket).expect("a socket of TCP")
}

/// What was sent arrives, and so does an answer.
fn exchange(sender: &mut TcpStream, receiver: &mut TcpStream) {
    for end in [&*sender, &*receiver] {
        end.set_read_timeout(Some(PATIENCE)).expect("a socket");
    }
    let mut all = [0; 512];
    receiver.read_exact(&mut all).expect("it arrives");
    assert_eq!(all, [7; 512]);
    receiver.write_all(b"hello").expect("it is open");
    sender.read_exact(&mut [0; 5]).expect("it arrives");
}

#[test]
fn an_agent_that_was_stopped_amid_an_outage_wakes_connections_when_it_goes_on() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let mut agent = Agent::start(&place, &hosts.mobile, &[]);
    let pid = Pid::from_child(&agent.child);
    let signal = |signal| kill_process(pid, signal).expect("it runs");
    let port = |state: &str| super::ip(&hosts.fixed, &format!("link set link0 {state}"));
    // Stopped while the link returns: as without an agent.
    let cut = || {
        port("down");
        signal(Signal::STOP);
    };
    let alone = hosts.resume_after(cut, || port("up"));
    // Otherwise this shows nothing.
    assert!(alone > AT_ONCE * 4, "{alone:?} without the agent");
    signal(Signal::CONT);
    status_when(&place, |status| status["counters"]["returns"] != 0);
    // It goes on before the link returns. Where other tests keep the processors busy, a run may be late
    // for their sake.
    let mut resumed = (0..3).map(|_| {
        let mend = || {
            signal(Signal::CONT);
            port("up");
        };
        hosts.resume_after(cut, mend)
    });
    let is_in_time = resumed.any(|resumed| resumed <= AT_ONCE);
    assert!(is_in_time, "three times late: {}", agent.said());
    agent.wait_for("stalled=1");
}
