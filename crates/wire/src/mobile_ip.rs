//! Mobile IPv4 messages: agent discovery, registration, tunnels (RFC 5944, 2003, 3024, 3519).
//!
//! Each `parse` turns bytes into a value that can only be legal, and never panics. Each `emit`
//! writes what `parse` reads. Nothing here computes an authenticator: a parsed
//! [`Authentication`] names the bytes that it covers, and [`MessageBuilder::authenticate`] asks
//! its caller for the authenticator.
//!
//! Left out: minimal encapsulation (RFC 2004) and GRE, registration revocation (RFC 3543),
//! network access identifiers (RFC 2794), and the generalised authentication of RFC 4721. Their
//! skippable extensions are skipped; a message with one that is not skippable is refused, as RFC 5944,
//! section 1.10, demands.
//!
//! ```
//! use outlast_wire::mobile_ip::{Lifetime, RegistrationRequest, RequestFlags};
//!
//! let request = RegistrationRequest {
//!     flags: RequestFlags::REVERSE_TUNNEL,
//!     lifetime: Lifetime(300),
//!     home_address: [10, 1, 0, 5].into(),
//!     home_agent: [10, 1, 0, 1].into(),
//!     care_of_address: [10, 2, 0, 1].into(),
//!     identification: 0xe800_0000_1234_5678,
//! };
//! let bytes = request.emit().finish();
//! let (parsed, extensions) = RegistrationRequest::parse(&bytes)?;
//! assert_eq!(parsed, request);
//! assert_eq!(extensions.count(), 0);
//! # Ok::<(), outlast_wire::mobile_ip::MessageError>(())
//! ```

mod discovery;
mod encapsulation;
mod extension;
mod registration;
mod udp_tunnel;

pub use discovery::{
    AgentAdvertisement, AgentFlags, Preference, RouterAddress, solicitation, solicitation_is_valid,
};
pub use encapsulation::{
    EncapsulationError, OuterHeader, QuotedContent, TunnelQuote, decapsulate, encapsulate,
    identification_base, relay_error,
};
pub use extension::{Authentication, Extension, Extensions, MessageBuilder, SecuredPair};
pub use registration::{Lifetime, RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags};
pub use udp_tunnel::{TunnelData, UdpTunnelReply, UdpTunnelRequest};

/// The UDP port of home and foreign agents (RFC 5944, section 3.1).
pub const PORT: u16 = 434;

/// Why bytes are no Mobile IP message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MessageError {
    /// The message, or an extension of it, ends too soon.
    #[error("needs {needed} bytes, there are {available}")]
    Truncated {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// The message is of another type.
    #[error("type {0} is another message")]
    Kind(u8),
    /// The ICMP code of an advertisement is neither 0 nor 16.
    #[error("no agent advertises with code {0}")]
    Code(u8),
    /// The ICMP checksum does not fit.
    #[error("the checksum is wrong")]
    Checksum,
    /// A field has a length that it never has.
    #[error("extension {kind} of {length} bytes")]
    Length {
        /// The extension's type; zero for router addresses.
        kind: u8,
        /// Its length.
        length: u8,
    },
    /// The extension may not be skipped, and is not known (RFC 5944, section 1.10).
    #[error("extension {0} is not known")]
    UnknownExtension(u8),
    /// The advertisement is a plain router's (RFC 1256).
    #[error("no mobility agent advertises itself")]
    NoAgent,
    /// The agent's flags contradict each other (RFC 5944, section 2.1.1).
    #[error("the agent's flags contradict each other")]
    Flags,
    /// A field is not zero that must be.
    #[error("a reserved field is not zero")]
    Reserved,
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
