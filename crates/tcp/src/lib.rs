//! A TCP endpoint without I/O, with the constants of real stacks.
//!
//! An [`Endpoint`] is one end of one connection. Its driver shows it the packets that arrive and
//! the time, and sends what it asks for; the application side writes and reads a *modelled* byte
//! stream, which has an identity and a length but no bytes. What arrives is checked to be the
//! right stretch of the peer's stream, so a transfer that ends without an error was intact.
//!
//! How the endpoint behaves is the matter of a [`Profile`](profile::Profile): timers, estimator,
//! loss recovery, congestion control and quirks of one stack, each constant with its source.
//!
//! # What is not modelled
//!
//! Bursts: segments leave one by one, also where a stack would hand them to the network card as one
//! buffer. Memory overhead of receive buffers: they count payload. ECN, TCP Fast Open, authentication, path MTU discovery and urgent data. The checksum: a packet that arrives is
//! intact, or is not of the peer's stream.
//!
//! # Example
//!
//! ```
//! use outlast_base::time::Instant;
//! use outlast_tcp::{Config, Endpoint, Event};
//!
//! let client = Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
//! let server = client.mirrored();
//! let now = Instant::ZERO;
//! let mut client = Endpoint::connect(now, client);
//! let mut server = Endpoint::listen(server);
//! let mut unsent = 1_000_000;
//!
//! // A network without delay.
//! loop {
//!     let mut quiet = true;
//!     unsent -= client.send(now, unsent);
//!     while let Some(packet) = client.poll_transmit(now) {
//!         server.handle_packet(now, &packet);
//!         quiet = false;
//!     }
//!     let _ = server.recv(now, u64::MAX);
//!     while let Some(packet) = server.poll_transmit(now) {
//!         client.handle_packet(now, &packet);
//!         quiet = false;
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//! assert_eq!(client.poll_event(), Some(Event::Connected));
//! assert_eq!(server.received(), 1_000_000);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod congestion;
mod endpoint;
mod keepalive;
mod options;
mod outbox;
mod persist;
pub mod profile;
mod receiver;
mod rto;
mod sender;
mod timer;
mod user_timeout;

pub use config::Config;
pub use endpoint::control::Summary;
pub use endpoint::{Counters, Endpoint, Error, Event, Reason, State, Trace};
pub use outlast_host::user_timeout::UserTimeoutOption;
pub use sender::WriteFlags;
pub use timer::TimerModel;
