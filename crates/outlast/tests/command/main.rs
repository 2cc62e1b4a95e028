//! The command as users run it: each module is about one side of it.
//!
//! They are one program, so that what waits for outages and timers of the kernel waits together.

mod path;
mod roaming;
mod support;

mod agents;
mod agents_reload;
mod aggregates;
mod amid;
mod cli;
mod compression;
mod containers;
mod crashing;
mod fallback;
mod gateway;
mod gateway_ebpf;
mod hip;
mod hooks;
mod host;
mod idle;
mod indicators;
mod kernels;
mod killing;
mod live;
mod manual;
mod memory;
mod metrics;
mod mobile_ip;
mod nat;
mod noticed_late;
mod operating;
mod packaging;
mod ports;
mod queues;
mod reload;
mod renaming;
mod resizing;
mod silent_peer;
mod stopped;
mod supervisor;
mod supervisors;
mod sweep;
mod tagged;
mod trace;
mod trace_lab;
mod tunnels;
mod typing;
mod user_timeout;
mod without_sack;
