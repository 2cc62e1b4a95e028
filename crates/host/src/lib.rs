//! The host agent: restarts a host's TCP connections when its link is back.
//!
//! [`Host`] stands beside a TCP stack and owns endpoint mechanisms. It hears from indicators that
//! connectivity was lost or restored, and acts on the stack through one trait,
//! [`EndpointControl`](control::EndpointControl). It does no I/O and reads no clock.
//!
//! | module | what lives there |
//! |---|---|
//! | [`control`] | what a mechanism may do to a TCP stack |
//! | `freezing` | which connections M-TCP has frozen |
//! | [`host`] | the machine: indicators in, actions on the stack out |
//! | [`indicator`] | when a link counts as restored |
//! | `silence` | which peers have fallen silent |
//! | [`budget`] | how many actions a second |
//! | [`user_timeout`] | which user timeout a connection adopts (RFC 5482) |
//!
//! Sources: S. Schütz and others, "Protocol Enhancements for Intermittently Connected Hosts",
//! 2005, section 3; R. Cáceres and L. Iftode, 1995, section IV; K. Brown and S. Singh, 1997, section 4.2; RFC 5482.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
pub mod control;
mod freezing;
pub mod host;
pub mod indicator;
mod silence;
pub mod user_timeout;

pub use host::{Counters, Event, Host, HostConfig, Limits, Mechanism, Reason};
pub use indicator::{Kind, Network, Restored};
pub use silence::Watch;
