//! While nothing happens an agent sleeps, however many connections there are.

use super::{Agent, Hosts, pause};
use crate::support::{Place, allow_descriptors};
use outlast_base::time::Duration;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Connections that say nothing.
const CONNECTIONS: usize = 10_000;
/// The far ends are left in the queues of so many listening sockets, where they cost no descriptors.
const LISTENERS: usize = 100;
/// And a few more.
const DESCRIPTORS: u64 = (CONNECTIONS + LISTENERS) as u64 + 500;
/// Wake-ups that have nothing to do with connections: the interface's address of IPv6 is ready.
const FEW: u64 = 3;
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
fn ten_thousand_idle_connections_do_not_wake_it() {
    let Some(hosts) = Hosts::new() else { return };
    if !allow_descriptors(DESCRIPTORS) {
        return;
    }
    let place = Place::new();
    let agent = Agent::start(&place, &hosts.mobile, &[]);
    let listen = |_| TcpListener::bind("10.1.0.1:0").expect("a port");
    let listen_all = || -> Vec<TcpListener> { (0..LISTENERS).map(listen).collect() };
    let listeners = hosts.fixed.run(listen_all).expect("enter");
    let to = listeners.iter().map(|one| one.local_addr().expect("bound"));
    let to: Vec<SocketAddr> = to.collect();
    let connect = |n: usize| TcpStream::connect(to[n % LISTENERS]).expect("it listens");
    let connect_all = || -> Vec<TcpStream> { (0..CONNECTIONS).map(connect).collect() };
    let streams = hosts.mobile.run(connect_all).expect("enter");
    assert_eq!(streams.len(), CONNECTIONS);
    let before = wakeups(agent.child.id());
    pause(WHILE);
    let after = wakeups(agent.child.id());
    assert!(
        after - before <= FEW,
        "{}: {}",
        after - before,
        agent.said()
    );
}
