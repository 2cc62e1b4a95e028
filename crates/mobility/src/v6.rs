//! Mobile IPv6 (RFC 6275): home agent, mobile node and correspondent as pure state machines.
//!
//! A [`MobileNode`] is told where it is by its driver, and tells its [`HomeAgent`] by binding updates.
//! The home agent then sends the mobile node's packets through a tunnel (RFC 2473), and takes what comes
//! back by the tunnel. With a [`Correspondent`] beside the other host's stack, both leave the home
//! agent's way: the mobile node proves by return routability that both its addresses are its own.
//!
//! Mobile node and home agent authenticate each other by options (RFC 4285). RFC 6275 itself demands
//! IPsec, which is the kernel's and a whole system's configuration; the options need a shared key alone,
//! and Mobile IPv4's keys do. Replays are refused by sequence numbers and timestamps.
//!
//! The grammar is that of the crate: after each `handle_*` call the driver drains `poll_transmit`, then
//! `poll_event`, and arms its timer with `poll_timeout`.
//!
//! Left out: IPsec between mobile node and home agent, discovery of home agents and prefixes (sections
//! 6.5 to 6.8), multicast, a home network that is a link (proxy neighbour discovery), packets that bear a
//! routing header and a home address at once (two mobile nodes that optimise towards each other).

mod correspondent;
mod home_agent;
mod message;
mod mobile_node;
mod reassembly;
mod return_routability;
mod tunnel;

pub use correspondent::{
    Correspondent, CorrespondentConfig, CorrespondentCounters, CorrespondentEvent,
    CorrespondentLimits, CorrespondentTimeout,
};
pub use home_agent::{HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits, HomeTimeout};
pub use mobile_node::{
    Attachment, MobileNode, MobileNodeConfig, NodeCounters, NodeEvent, NodeTimeout,
};
pub use reassembly::{Reassembled, Reassembly};
