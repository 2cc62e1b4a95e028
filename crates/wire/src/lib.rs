//! Packet formats of the disconnecting path: checked views, builders, in-place edits.
//!
//! Nothing in this crate panics on any input.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod build;
mod checksum;
pub mod edit;
mod error;
mod icmp;
mod ip;
mod packet;
mod parse;
pub mod pattern;
pub mod pcapng;
pub mod segment;
mod seq;
pub mod tcp;
mod udp;

pub use error::{ParseError, Part};
pub use icmp::{IcmpError, IcmpExtension, IcmpNotice, IcmpRefusal, QuotedPacket};
pub use packet::{Header, IpHeader, ModelledPayload, Packet, Transport};
pub use seq::SeqNumber;
pub use tcp::{TcpFlags, TcpHeader};
pub use udp::UdpHeader;
