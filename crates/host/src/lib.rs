//! The host agent: restarts a host's TCP connections when its link is back.
//!
//! [`Host`] stands beside a TCP stack and owns endpoint mechanisms. It hears from indicators that
//! connectivity was lost or restored, and acts on the stack through one trait,
//! [`EndpointControl`](control::EndpointControl). It does no I/O and reads no clock.
//!
//! | module | what lives there |
//! |---|---|
//! | [`host`] | the machine: indicators in, actions on the stack out |
//! | [`control`] | what a mechanism may do to a TCP stack |
//! | [`indicator`] | when a link counts as restored |
//! | `passes` | when the connections are looked through because links are back |
//! | `concern` | which connections a return concerns, and what it asks for each of them |
//! | `restarts`, `entry` | the connections to be restarted, and when each of those that were is looked at |
//! | `requests` | peers that ask for an immediate retransmission |
//! | `silence` | which peers have fallen silent |
//! | `probing` | when a silent peer is tried, and by which connection |
//! | `freezing` | which connections M-TCP has frozen |
//! | [`budget`] | how many actions a second |
//! | [`config`], [`counters`], [`event`] | what the agent is told, and what it tells |
//! | [`user_timeout`] | which user timeout a connection adopts (RFC 5482) |
//!
//! Sources: S. Schütz and others, "Protocol Enhancements for Intermittently Connected Hosts",
//! 2005, section 3; R. Cáceres and L. Iftode, 1995, section IV; K. Brown and S. Singh, 1997, section 4.2; RFC 5482.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
mod concern;
pub mod config;
pub mod control;
pub mod counters;
mod entry;
pub mod event;
mod freezing;
pub mod host;
pub mod indicator;
mod passes;
mod probing;
mod requests;
mod restarts;
mod silence;
pub mod user_timeout;

pub use config::{HostConfig, Limits, Mechanism};
pub use counters::Counters;
pub use event::Event;
pub use host::{Host, Reason};
pub use indicator::{Kind, Network, Restored};
pub use silence::Watch;
