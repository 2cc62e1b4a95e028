//! Safe functions around the few system calls that rustix and std do not offer.
//!
//! Each `unsafe` block states why it is sound; nothing in here is exported from the crate.

pub(crate) mod bpf;
pub(crate) mod child;
pub(crate) mod cookie;
pub(crate) mod ethernet;
pub(crate) mod ethtool;
pub(crate) mod map;
pub(crate) mod peer;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod struct_ops;
pub(crate) mod tcp_info;
pub(crate) mod thread;
pub(crate) mod tun;
pub(crate) mod window;
