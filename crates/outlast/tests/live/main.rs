//! The command among links, hosts and programs, in namespaces and in time: each module is about one side of it.
//!
//! `in-guest` runs each of these tests in a guest of its own, in virtual time. Without it they run on this machine's
//! kernel; they are one program, so that what waits for outages and timers of the kernel waits together.

#[path = "../place/mod.rs"]
mod place;

mod path;
mod path_mtu;
mod roaming;
mod support;

mod agents;
mod agents_reload;
mod aggregates;
mod amid;
mod compression;
mod containers;
mod crashing;
mod fallback;
mod firewalls;
mod gateway;
mod gateway_ebpf;
mod hip;
mod hooks;
mod host;
mod idle;
mod indicators;
mod killing;
mod links;
mod live;
mod memory;
mod metrics;
mod mobile_ip;
mod nat;
mod neighbours;
mod noticed_late;
mod operating;
mod outages;
mod ports;
mod queues;
mod reload;
mod renaming;
mod resizing;
mod silence_noticed;
mod silent_peer;
mod stopped;
mod supervisor;
mod supervisors;
mod tagged;
mod trace_lab;
mod tunnels;
mod typing;
mod user_timeout;
mod without_sack;
