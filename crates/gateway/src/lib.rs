//! The protocol core: what passes a disconnecting link, what is kept, and what is sent when the
//! link is back. It does no I/O, reads no clock and starts no thread.
//!
//! A [`gateway::Gateway`] sits at one end of disconnecting links. Its driver shows it every
//! packet that crosses and every change of a link, and sends what it asks for:
//!
//! ```
//! use outlast_gateway::gateway::{Gateway, GatewayConfig};
//! use outlast_gateway::links::{
//!     Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState,
//! };
//! use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason, Verdict};
//! use outlast_base::time::Instant;
//! use outlast_wire::{IpHeader, Packet, UdpHeader};
//!
//! let mut gateway = Gateway::new(GatewayConfig {
//!     mechanism: PathMechanismKind::Hold,
//!     ..GatewayConfig::default()
//! });
//! let link = LinkId::of_interface(InterfaceId(0));
//! gateway.add_link(Instant::ZERO, link.interface, LinkConfig::default());
//!
//! let change = |state| LinkEvent { link, state, indicator: Indicator::Carrier };
//! gateway.handle_link(Instant::from_millis(1), change(LinkState::Down));
//!
//! let ip = IpHeader {
//!     source: [192, 0, 2, 1].into(),
//!     destination: [192, 0, 2, 2].into(),
//!     hop_limit: 64,
//!     traffic_class: 0,
//!     identification: 0,
//! };
//! let udp = UdpHeader { source_port: 4433, destination_port: 443 };
//! let datagram = Packet::udp_datagram(ip, udp, b"hello");
//! let verdict = gateway.handle_packet(Instant::from_millis(2), link, Direction::ToLink, &datagram);
//! assert_eq!(verdict, Verdict::Taken(TakeReason::LinkDown));
//! assert!(gateway.poll_transmit().is_none());
//!
//! gateway.handle_link(Instant::from_millis(900), change(LinkState::Up));
//! let sent = gateway.poll_transmit().expect("what was kept goes out");
//! assert_eq!(sent.packet, datagram);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adoption;
mod connections;
pub mod counters;
mod custody;
mod event;
mod flows;
pub mod gateway;
pub mod limits;
mod link_changes;
pub mod links;
mod mechanism_calls;
pub mod mechanisms;
mod neighbours;
mod passing;
mod release;
mod report;
mod rivals;
pub mod sender_timer;
mod sending;
mod service;
mod takeover;
mod timers;
pub mod tracking;
mod unserved;
