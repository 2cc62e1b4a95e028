//! Mobile IP as pure state machines: home agent, foreign agent and mobile node of Mobile IPv4 (RFC 5944);
//! Mobile IPv6 (RFC 6275) is in [`v6`].
//!
//! A [`MobileNode`] keeps its home address wherever it is. It hears agents' advertisements, decides by
//! a [`Detection`] that it has moved, and registers its care-of address with its [`HomeAgent`],
//! directly or through a [`ForeignAgent`]. The home agent then sends the mobile node's packets through
//! a tunnel. A completed registration is an event: it says that a link which was down is up.
//!
//! Each machine gets IP packets, link changes and the time, and asks for IP packets and ARP in the
//! order in which they have to happen. After each `handle_*` call the driver
//!
//! 1. carries out what `poll_transmit` gives, in that order,
//! 2. takes the events of `poll_event`,
//! 3. and arms its timer with `poll_timeout`.
//!
//! Beyond RFC 5944: reverse tunnels (RFC 3024), tunnels in UDP through address translators
//! (RFC 3519), HMAC-SHA-256 under a security parameter index of its own.
//!
//! Left out: minimal encapsulation and GRE (refused with codes 72 and 139), nonces instead of
//! timestamps, the home network's broadcasts, registration revocation, encapsulating delivery,
//! and a home agent's address found by broadcast.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod advertiser;
mod budget;
mod clock;
mod datagram;
mod foreign_agent;
mod home_agent;
mod mobile_node;
mod security;
mod transmit;
mod tunnel;
pub mod v6;

pub use advertiser::Advertising;
pub use clock::NtpClock;
pub use foreign_agent::{
    ForeignAgent, ForeignAgentConfig, ForeignCounters, ForeignEvent, ForeignLimits, ForeignTimeout,
};
pub use home_agent::{
    HomeAgent, HomeAgentConfig, HomeCounters, HomeEvent, HomeLimits, HomeTimeout, UdpTunnelOffer,
};
pub use mobile_node::{
    Attachment, CoLocation, Detection, MobileNode, MobileNodeConfig, NodeCounters, NodeEvent,
    NodeTimeout,
};
pub use security::{Algorithm, InvalidSpi, SecurityAssociation};
pub use transmit::{Arp, Arrival, LinkAddress, LinkId, Transmit, Verdict, Via};
pub use tunnel::PlainTunnel;

/// Whether an agent has reverse tunnels (RFC 3024).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReverseTunnels {
    /// It refuses them.
    Refused,
    /// Mobile nodes may ask for them.
    #[default]
    Offered,
    /// Mobile nodes have to ask for them.
    Demanded,
}
