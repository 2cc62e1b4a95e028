//! Mobile IPv6: messages of the Mobility Header, and the headers by which a packet bears two addresses
//! of a mobile node (RFC 6275, section 6; RFC 4285).
//!
//! Each `parse` turns bytes into a value that can only be legal, and never panics. Each `emit`
//! writes what `parse` reads. Nothing here computes an authenticator: a parsed [`Authentication`]
//! names the bytes that it covers, and a [`MessageBuilder`] asks its caller for the authenticator.
//!
//! Left out: prefix discovery and home agent discovery (ICMPv6 types 144 to 147), and the messages and
//! options of Proxy Mobile IPv6 (RFC 5213) and of other extensions, which are skipped.
//!
//! ```
//! use outlast_wire::mobile_ipv6::{BindingUpdate, Message, UpdateFlags, UpdateLifetime};
//!
//! let (care_of, agent) = ("2001:db8:2::9".parse()?, "2001:db8:1::1".parse()?);
//! let update = Message::BindingUpdate(BindingUpdate {
//!     sequence: 7,
//!     flags: UpdateFlags::ACKNOWLEDGE | UpdateFlags::HOME_REGISTRATION,
//!     lifetime: UpdateLifetime(75),
//! });
//! let bytes = update.emit().finish(care_of, agent);
//! let (parsed, options) = Message::parse(care_of, agent, &bytes)?;
//! assert_eq!(parsed, update);
//! assert_eq!(options.count(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod headers;
mod message;
mod option;
mod tunnel;

pub use headers::{
    HeaderError, ROUTING_OVERHEAD, add_home_address, add_routing_header, home_address_of,
    mobility_packet, take_home_address, take_routing_header,
};
pub use message::{
    AcknowledgementFlags, BindingAcknowledgement, BindingErrorStatus, BindingUpdate, Message,
    Status, Test, UpdateFlags, UpdateLifetime,
};
pub use option::{Authentication, Covered, MessageBuilder, MobilityOption, MobilityOptions};
pub use tunnel::{TUNNEL_OVERHEAD, TunnelError, decapsulate, encapsulate, relay_error};

/// The protocol number of the Mobility Header (RFC 6275, section 6.1.1).
pub const MOBILITY_HEADER: u8 = 135;

/// Why bytes are no message of the Mobility Header.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MessageError {
    /// The message, or an option of it, ends too soon.
    #[error("needs {needed} bytes, there are {available}")]
    Truncated {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// The header's length is not that of the message, or too short for its type.
    #[error("the header declares {declared} bytes")]
    Length {
        /// Bytes by the header.
        declared: usize,
    },
    /// Something follows the Mobility Header (RFC 6275, section 6.1.1, demands that nothing does).
    #[error("protocol {0} follows the Mobility Header")]
    Payload(u8),
    /// The checksum does not fit the message and its addresses.
    #[error("the checksum is wrong")]
    Checksum,
    /// Nobody knows a message of this type here.
    #[error("message type {0} is not known")]
    Kind(u8),
    /// An option has a length that it never has.
    #[error("option {kind} of {length} bytes")]
    Option {
        /// The option's type.
        kind: u8,
        /// Its length.
        length: u8,
    },
}

/// The first `N` bytes, and what follows.
fn split<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), MessageError> {
    bytes
        .split_first_chunk::<N>()
        .ok_or(MessageError::Truncated {
            needed: N,
            available: bytes.len(),
        })
}
