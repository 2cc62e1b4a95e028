//! The Host Identity Protocol, version 2: base exchange (RFC 7401), ESP (RFC 7402), readdressing
//! (RFC 8046) and rendezvous (RFC 8003, RFC 8004), as a pure state machine.
//!
//! A [`Host`] is one host's part. Applications use its peers' tags, IPv6 addresses that stay when
//! hosts move, or local-scope identifiers ([`LocalScope`]), addresses of IPv4 that stand for tags; the host seals
//! their packets and sends them to where the peer is now. After each `handle_*` call the driver sends what
//! [`Host::poll_transmit`] gives, delivers what [`Host::poll_delivery`] gives, hears [`Host::poll_event`], and arms
//! its timer with [`Host::poll_timeout`]. [`Event::Readdressed`] is the symmetric connectivity indicator that a
//! retransmission trigger waits for.
//!
//! Not here: LOCATOR_SET in R1 and I2, certificates, NAT traversal, and HIP_CIPHER without encryption.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod addresses;
mod association;
mod backoff;
mod beet;
pub mod cipher;
mod config;
mod context;
mod effort;
mod event;
mod first_flight;
pub mod group;
mod host;
pub mod identity;
mod initiator;
pub mod keymat;
mod liveness;
mod local_scope;
mod path_mtu;
pub mod puzzle;
mod rate;
mod recent;
mod rekey;
mod rendezvous;
mod responder;
mod revival;
pub mod rhash;
mod sa;
mod session;
pub mod suite;
mod update;
mod volume;
mod watch;

pub use addresses::{AddressState, PeerAddress};
pub use association::StateName;
pub use config::{Admission, Config, Limits, Peer, Rekeying, Retransmission};
pub use event::{Counters, Event, Failure, Protocol, Reason, Refusal, Transmit};
pub use host::{Host, View, stand_in};
pub use local_scope::{Conversation, Family, LONGER, LocalScope};
pub use volume::{Readdressing, Volume};
