//! Payload compression between the two ends of a disconnecting link.
//!
//! It models "Compressed M-TCP" (K. Brown and S. Singh, "M-TCP: TCP for mobile cellular networks", 1997,
//! sections 4.2.1 and 6.3). Each packet is compressed by itself with DEFLATE (RFC 1951), so that a packet that is lost
//! or overtaken costs no other packet. The messages are those of [`outlast_wire::compressed`].
//!
//! A [`Compression`] stands between a gateway and the link, at either end. It is shown what the gateway
//! sends towards the link, and what comes from the link before the gateway sees it:
//!
//! ```
//! use outlast_base::time::Instant;
//! use outlast_compression::{Arrival, Compression, Config, Part};
//! use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};
//!
//! let end = |part| Compression::new(Config { part, ..Config::default() });
//! let (mut supervisor, mut mobile) = (end(Part::Offers), end(Part::Accepts));
//! let ip = IpHeader::new([192, 0, 2, 1].into(), [192, 0, 2, 9].into());
//! let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
//! let segment = Packet::tcp_segment(ip, tcp, &[b'a'; 1000]);
//!
//! // The mobile answers offers of hosts that it speaks with.
//! let now = Instant::ZERO;
//! let back = IpHeader::new(ip.destination, ip.source);
//! let opening = Packet::tcp_segment(back, TcpHeader::default(), &[]);
//! assert_eq!(mobile.handle_to_link(now, &opening), None);
//! // The first packet goes as it is, and an offer beside it.
//! assert_eq!(supervisor.handle_to_link(now, &segment), None);
//! let offer = supervisor.poll_transmit().expect("an offer");
//! assert_eq!(mobile.handle_from_link(now, &offer), Arrival::Consumed);
//! let acceptance = mobile.poll_transmit().expect("an answer");
//! assert_eq!(supervisor.handle_from_link(now, &acceptance), Arrival::Consumed);
//!
//! let smaller = supervisor.handle_to_link(now, &segment).expect("it compresses");
//! assert!(smaller.total_len() < segment.total_len());
//! assert_eq!(mobile.handle_from_link(now, &smaller), Arrival::Restored(segment));
//! ```
//!
//! What it cannot do is done as if it were not there: a segment that does not become smaller, or that is no plain TCP
//! segment, goes as it is. Nothing that comes from the link makes it panic. Nothing is restored that does not show the
//! agreement's tag, and nothing restored is longer than [`Config::longest`], or than [`LARGEST_RATIO`] times the packet
//! that it came in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod codec;
mod compression;
mod flow;
mod gain;
mod pair;
mod secret;
mod spoken;
mod table;

pub use codec::{Codec, LARGEST_RATIO, RestoreError};
pub use compression::{Arrival, Compression, Config, Counters, Level, Part};
