//! The roles `home-agent` and `mobile-node` with addresses of IPv6, and `correspondent` (Mobile IPv6,
//! [`outlast_mobility::v6`]).
//!
//! Most kernels know nothing of Mobile IPv6, and refuse what bears its headers. A rule of nftables hands
//! over what comes with one, or in a tunnel, before the kernel reads it ([`queue`]). What is sent bears a
//! header of its own.
//!
//! Left out: a home network that is a link.

mod correspondent;
mod home_agent;
mod mobile_node;
mod queue;
mod settings;

pub(super) use correspondent::Peer;
pub(super) use home_agent::Home;
pub(super) use mobile_node::Mobile;
pub(super) use queue::ExtensionQueue;
pub(super) use settings::{
    CorrespondentSettings, HomeAgentSettings, MobileNodeSettings, is_of_ipv6,
};
