//! Packet formats of the disconnecting path: checked views, builders, in-place edits.
//!
//! Nothing in this crate panics on any input.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod packet;
mod seq;
pub mod tcp;

pub use packet::{Header, IpHeader, ModelledPayload, Packet, Transport};
pub use seq::SeqNumber;
pub use tcp::{TcpFlags, TcpHeader};

/// A UDP header (RFC 768).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UdpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// An ICMP or ICMPv6 error (RFC 792, RFC 4443).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IcmpError {
    /// Type on the wire.
    pub kind: u8,
    /// Code on the wire.
    pub code: u8,
}
