//! While nothing happens an agent sleeps, however many connections there are.

use super::{Agent, Hosts, pause};
use crate::support::Place;
use outlast_base::time::Duration;
use std::net::{TcpListener, TcpStream};

/// Connections that say nothing.
const CONNECTIONS: usize = 10_000;
/// With both ends of each, and a little more.
const DESCRIPTORS: u64 = 2 * CONNECTIONS as u64 + 500;
/// At this time a timer of each connection or of the agent would have run.
const WHILE: Duration = Duration::from_secs(4);

/// How often a process has slept and woken so far, over all its threads.
fn wakeups(id: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    let of = |task: std::io::Result<std::fs::DirEntry>| -> u64 {
        let status = task.expect("an entry").path().join("status");
        let text = std::fs::read_to_string(status).expect("it runs");
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count
            .and_then(|count| count.trim().parse().ok())
            .expect("a count")
    };
    tasks.map(of).sum()
}

#[test]
fn ten_thousand_idle_connections_never_wake_it() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Some(hosts) = Hosts::new() else { return };
    let had = getrlimit(Resource::Nofile);
    if had.maximum.is_some_and(|most| most < DESCRIPTORS) {
        return super::skip("so many descriptors are not allowed");
    }
    let wanted = Rlimit {
        current: had.current.map(|current| current.max(DESCRIPTORS)),
        ..had
    };
    setrlimit(Resource::Nofile, wanted).expect("it is allowed");
    let place = Place::new();
    let agent = Agent::start(&place, &hosts.mobile, &[]);
    let listen = || TcpListener::bind("10.1.0.1:0").expect("a port");
    let listener = hosts.fixed.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || -> Vec<(TcpStream, TcpStream)> {
        let pairs = (0..CONNECTIONS).map(|_| {
            let near = TcpStream::connect(to).expect("the fixed host listens");
            (near, listener.accept().expect("it has come").0)
        });
        pairs.collect()
    };
    let pairs = hosts.mobile.run(connect).expect("enter");
    assert_eq!(pairs.len(), CONNECTIONS);
    let before = wakeups(agent.child.id());
    pause(WHILE);
    let after = wakeups(agent.child.id());
    assert_eq!(after - before, 0, "{}", agent.said());
}
