//! Packets of the Host Identity Protocol, version 2 (RFC 7401, section 5), and ESP's framing.
//!
//! A [`Message`] is checked once: length, version, order of its parameters. Each parameter then
//! has a type of its own with `parse` and `write`. [`Builder`] makes a packet in the same order.
//! Nothing here knows of keys: [`Message::covered_before`] and [`Builder::covered`] give the bytes
//! that a MAC or a signature is made over.

mod builder;
mod esp;
mod locator;
mod message;
mod parameter;
mod registration;

pub use builder::{Builder, append_parameter};
pub use esp::{EspHeader, REPLAY_WINDOW, full_sequence};
pub use locator::{Locator, LocatorSet, Traffic};
pub use message::{HEADER_LEN, Hit, LONGEST, Message, PacketType, Parameter, Parameters};
pub use parameter::{
    DiffieHellman, EspInfo, HostId, Notification, Puzzle, Signature, Solution, kind, u16_list,
    u32_list,
};
pub use registration::{RegInfo, RegItems, from_address, write_from_address};

/// Protocol number of HIP in an IP header.
pub const HIP_PROTOCOL: u8 = 139;

/// Protocol number of ESP in an IP header.
pub const ESP_PROTOCOL: u8 = 50;

/// Why bytes are no HIP packet, or no parameter of the kind that they claim to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HipError {
    /// A header or a parameter does not end within the bytes.
    #[error("{needed} bytes are needed, there are {available}")]
    Truncated {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// The header's length differs from the packet's.
    #[error("the header declares {declared} bytes, the packet has {available}")]
    Length {
        /// Bytes by the header.
        declared: usize,
        /// Bytes of the packet.
        available: usize,
    },
    /// Another protocol version than 2.
    #[error("HIP version {0} is not known")]
    Version(u8),
    /// Another packet type than those of RFC 7401.
    #[error("packet type {0} is not known")]
    PacketType(u8),
    /// A fixed bit or a next header that no HIP packet has.
    #[error("a fixed field of the header has another value")]
    FixedField,
    /// A parameter comes after one with a greater type (RFC 7401, section 5.2.1).
    #[error("parameter {0} is out of order")]
    Order(u16),
    /// A parameter's contents have an impossible length.
    #[error("parameter {0} has an impossible length")]
    ParameterLength(u16),
    /// A field of a parameter has a value that it never has.
    #[error("parameter {0} has a field that is not legal")]
    ParameterField(u16),
    /// The checksum does not fit the packet and its addresses.
    #[error("the checksum is wrong")]
    Checksum,
}
