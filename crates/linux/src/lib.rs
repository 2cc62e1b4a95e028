//! What Outlast needs of Linux: clocks, namespaces, TUN devices, sockets, and what can be had of
//! them on this machine.
//!
//! Nothing here decides anything about TCP. Every function that makes or changes a network
//! object does so in the network namespace of the calling thread, so that a caller who stays
//! inside [`namespace::Namespace::run`] cannot touch the host's own network.
//!
//! All `unsafe` code is in the private module `sys`; the rest of the crate denies it.
#![deny(unsafe_code)]

pub mod capability;
mod causes;
mod cgroup;
pub mod clock;
pub mod counters;
pub mod diag;
pub mod frames;
pub mod guardian;
pub mod immediate_retransmission;
mod ipsec;
pub mod lack;
pub mod lookup;
pub mod memory;
pub mod monitor;
pub mod namespace;
pub mod netfilter;
pub mod netlink;
pub mod offload;
pub mod peer;
pub mod poller;
pub mod priority;
pub mod privilege;
pub mod process;
pub mod protocol;
pub mod raw;
pub mod signal;
pub mod silence;
pub mod socket;
pub mod solicitation;
pub mod stack;
#[expect(
    unsafe_code,
    reason = "the one place that speaks to the kernel past rustix and std"
)]
mod sys;
pub mod sysctl;
#[cfg(test)]
mod testing;
pub mod ticks;
pub mod timer;
pub mod tracker;
mod traffic_control;
pub mod tun;
pub mod tunnels;
pub mod user_namespace;
pub mod user_timeout;
pub mod waker;
pub mod window;

/// The release of the running kernel, as `uname -r` tells it.
#[must_use]
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}
