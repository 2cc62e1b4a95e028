//! Registration requests and replies (RFC 5944, sections 3.3 and 3.4).

use super::{Extensions, MessageBuilder, MessageError, split};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;
use core::ops::BitOr;
use core::time::Duration;

const REQUEST: u8 = 1;
const REPLY: u8 = 3;

/// A registration's lifetime in seconds; 0 ends it, 65535 says that it has no end.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Lifetime(pub u16);

impl Lifetime {
    /// Ends a registration.
    pub const DEREGISTRATION: Self = Self(0);
    /// Has no end.
    pub const INFINITE: Self = Self(0xffff);

    /// The lifetime as a duration; `None` if it has no end.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::INFINITE => None,
            Self(seconds) => Some(Duration::from_secs(seconds as u64)),
        }
    }
}

/// The flags of a registration request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestFlags(pub u8);

impl RequestFlags {
    /// S: keep the other bindings (section 3.6.1.2).
    pub const SIMULTANEOUS_BINDINGS: Self = Self(0x80);
    /// B: tunnel the home network's broadcasts, too.
    pub const BROADCASTS: Self = Self(0x40);
    /// D: the mobile node decapsulates itself: its care-of address is co-located.
    pub const DECAPSULATES: Self = Self(0x20);
    /// M: minimal encapsulation (RFC 2004).
    pub const MINIMAL_ENCAPSULATION: Self = Self(0x10);
    /// G: generic routing encapsulation.
    pub const GRE: Self = Self(0x08);
    /// T: tunnel what the mobile node sends back to the home agent (RFC 3024).
    pub const REVERSE_TUNNEL: Self = Self(0x02);
    /// The bits that nobody may set.
    pub const RESERVED: Self = Self(0x05);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn has_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for RequestFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fixed part of a registration request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegistrationRequest {
    /// Flags.
    pub flags: RequestFlags,
    /// How long the registration is to last.
    pub lifetime: Lifetime,
    /// The mobile node's lasting address.
    pub home_address: Ipv4Addr,
    /// The home agent's address.
    pub home_agent: Ipv4Addr,
    /// The tunnel's other end.
    pub care_of_address: Ipv4Addr,
    /// Matches requests with replies, and tells a recorded request (section 5.7).
    pub identification: u64,
}

/// The fixed part of a registration reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegistrationReply {
    /// What became of the request.
    pub code: ReplyCode,
    /// How long the registration lasts, counted from when the request was sent.
    pub lifetime: Lifetime,
    /// The mobile node's lasting address.
    pub home_address: Ipv4Addr,
    /// The home agent's address.
    pub home_agent: Ipv4Addr,
    /// Low half: that of the request. High half: the home agent's clock after code 133.
    pub identification: u64,
}

impl RegistrationRequest {
    /// Length of the fixed part in bytes.
    pub const LEN: usize = 24;

    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if it is no request, or its extensions cannot be read.
    pub fn parse(payload: &[u8]) -> Result<(Self, Extensions<'_>), MessageError> {
        let (fixed, _) = split::<{ Self::LEN }>(payload)?;
        let &[
            kind,
            flags,
            l0,
            l1,
            h0,
            h1,
            h2,
            h3,
            a0,
            a1,
            a2,
            a3,
            c0,
            c1,
            c2,
            c3,
            ref id @ ..,
        ] = fixed;
        if kind != REQUEST {
            return Err(MessageError::Kind(kind));
        }
        let request = Self {
            flags: RequestFlags(flags),
            lifetime: Lifetime(u16::from_be_bytes([l0, l1])),
            home_address: Ipv4Addr::new(h0, h1, h2, h3),
            home_agent: Ipv4Addr::new(a0, a1, a2, a3),
            care_of_address: Ipv4Addr::new(c0, c1, c2, c3),
            identification: u64::from_be_bytes(*id),
        };
        Ok((request, Extensions::parse(payload, Self::LEN)?))
    }

    /// Starts a message with this fixed part.
    #[must_use]
    pub fn emit(&self) -> MessageBuilder {
        let mut out = Vec::with_capacity(Self::LEN + 32);
        out.extend_from_slice(&[REQUEST, self.flags.0]);
        out.extend_from_slice(&self.lifetime.0.to_be_bytes());
        out.extend_from_slice(&self.home_address.octets());
        out.extend_from_slice(&self.home_agent.octets());
        out.extend_from_slice(&self.care_of_address.octets());
        out.extend_from_slice(&self.identification.to_be_bytes());
        MessageBuilder::new(out)
    }

    /// Whether the request ends a registration.
    #[must_use]
    pub fn is_deregistration(&self) -> bool {
        self.lifetime == Lifetime::DEREGISTRATION
    }
}

impl RegistrationReply {
    /// Length of the fixed part in bytes.
    pub const LEN: usize = 20;

    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if it is no reply, or its extensions cannot be read.
    pub fn parse(payload: &[u8]) -> Result<(Self, Extensions<'_>), MessageError> {
        let (fixed, _) = split::<{ Self::LEN }>(payload)?;
        let &[
            kind,
            code,
            l0,
            l1,
            h0,
            h1,
            h2,
            h3,
            a0,
            a1,
            a2,
            a3,
            ref id @ ..,
        ] = fixed;
        if kind != REPLY {
            return Err(MessageError::Kind(kind));
        }
        let reply = Self {
            code: ReplyCode(code),
            lifetime: Lifetime(u16::from_be_bytes([l0, l1])),
            home_address: Ipv4Addr::new(h0, h1, h2, h3),
            home_agent: Ipv4Addr::new(a0, a1, a2, a3),
            identification: u64::from_be_bytes(*id),
        };
        Ok((reply, Extensions::parse(payload, Self::LEN)?))
    }

    /// Starts a message with this fixed part.
    #[must_use]
    pub fn emit(&self) -> MessageBuilder {
        let mut out = Vec::with_capacity(Self::LEN + 32);
        out.extend_from_slice(&[REPLY, self.code.0]);
        out.extend_from_slice(&self.lifetime.0.to_be_bytes());
        out.extend_from_slice(&self.home_address.octets());
        out.extend_from_slice(&self.home_agent.octets());
        out.extend_from_slice(&self.identification.to_be_bytes());
        MessageBuilder::new(out)
    }
}

/// The code of a registration reply (RFC 5944, section 3.4).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ReplyCode(pub u8);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $meaning:literal;)*) => {
        impl ReplyCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// What the code means, in a few words.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self.0 {
                    $($value => $meaning,)*
                    _ => "unknown code",
                }
            }
        }
    };
}

codes! {
    /// The home agent accepts.
    ACCEPTED = 0, "accepted";
    /// The home agent accepts, but keeps one binding only.
    ACCEPTED_WITHOUT_SIMULTANEOUS_BINDINGS = 1, "accepted without simultaneous bindings";
    /// The foreign agent gives no reason.
    FOREIGN_UNSPECIFIED = 64, "refused by the foreign agent";
    /// The foreign agent forbids it.
    FOREIGN_PROHIBITED = 65, "prohibited by the foreign agent";
    /// The foreign agent has no room.
    FOREIGN_RESOURCES = 66, "the foreign agent lacks resources";
    /// The mobile node failed the foreign agent's authentication.
    FOREIGN_MOBILE_AUTHENTICATION = 67, "the foreign agent could not authenticate the mobile node";
    /// The home agent failed the foreign agent's authentication.
    FOREIGN_HOME_AUTHENTICATION = 68, "the foreign agent could not authenticate the home agent";
    /// The lifetime is too long; the reply tells the longest.
    FOREIGN_LIFETIME = 69, "the requested lifetime is too long";
    /// The foreign agent cannot read the request.
    FOREIGN_POORLY_FORMED_REQUEST = 70, "poorly formed request at the foreign agent";
    /// The foreign agent cannot read the home agent's reply.
    FOREIGN_POORLY_FORMED_REPLY = 71, "poorly formed reply at the foreign agent";
    /// The foreign agent does not have the encapsulation.
    FOREIGN_ENCAPSULATION = 72, "encapsulation not available at the foreign agent";
    /// The foreign agent has no reverse tunnel (RFC 3024).
    FOREIGN_REVERSE_TUNNEL = 74, "no reverse tunnel at the foreign agent";
    /// The foreign agent demands a reverse tunnel (RFC 3024).
    FOREIGN_REVERSE_TUNNEL_MANDATORY = 75, "the foreign agent demands a reverse tunnel";
    /// The TTL tells that the mobile node is not on the foreign agent's link (RFC 3024).
    FOREIGN_TOO_DISTANT = 76, "the mobile node is too distant";
    /// The care-of address is not the foreign agent's.
    FOREIGN_CARE_OF_ADDRESS = 77, "invalid care-of address";
    /// The home agent did not answer in time.
    FOREIGN_TIMEOUT = 78, "registration timeout";
    /// The foreign agent does not have the delivery style (RFC 3024).
    FOREIGN_DELIVERY_STYLE = 79, "delivery style not available";
    /// The home network cannot be reached.
    FOREIGN_HOME_NETWORK_UNREACHABLE = 80, "home network unreachable";
    /// The home agent cannot be reached.
    FOREIGN_HOME_AGENT_UNREACHABLE = 81, "home agent unreachable";
    /// No home agent listens there.
    FOREIGN_PORT_UNREACHABLE = 82, "home agent's port unreachable";
    /// Another ICMP error came back.
    FOREIGN_UNREACHABLE = 88, "home agent unreachable for another reason";
    /// The home agent gives no reason.
    HOME_UNSPECIFIED = 128, "refused by the home agent";
    /// The home agent forbids it.
    HOME_PROHIBITED = 129, "prohibited by the home agent";
    /// The home agent has no room.
    HOME_RESOURCES = 130, "the home agent lacks resources";
    /// The mobile node failed the home agent's authentication.
    HOME_MOBILE_AUTHENTICATION = 131, "the home agent could not authenticate the mobile node";
    /// The foreign agent failed the home agent's authentication.
    HOME_FOREIGN_AUTHENTICATION = 132, "the home agent could not authenticate the foreign agent";
    /// The identification is not right: the clocks differ, or the request is a replay.
    HOME_IDENTIFICATION = 133, "registration identification mismatch";
    /// The home agent cannot read the request.
    HOME_POORLY_FORMED = 134, "poorly formed request at the home agent";
    /// Too many simultaneous bindings.
    HOME_TOO_MANY_BINDINGS = 135, "too many simultaneous bindings";
    /// The home agent's address is another one.
    HOME_UNKNOWN_AGENT = 136, "unknown home agent address";
    /// The home agent has no reverse tunnel (RFC 3024).
    HOME_REVERSE_TUNNEL = 137, "no reverse tunnel at the home agent";
    /// The home agent demands a reverse tunnel (RFC 3024).
    HOME_REVERSE_TUNNEL_MANDATORY = 138, "the home agent demands a reverse tunnel";
    /// The home agent does not have the encapsulation (RFC 3024).
    HOME_ENCAPSULATION = 139, "encapsulation not available at the home agent";
    /// The home agent does not have the encapsulation in UDP (RFC 3519).
    HOME_UDP_ENCAPSULATION = 142, "UDP encapsulation not available at the home agent";
    /// The home agent's address in the request is no unicast address.
    FOREIGN_INVALID_HOME_AGENT = 194, "invalid home agent address";
}

impl ReplyCode {
    /// Whether the registration is accepted.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.0 <= 1
    }

    /// Whether the foreign agent gave it: codes 64 to 127, and 194.
    #[must_use]
    pub const fn is_from_foreign_agent(self) -> bool {
        matches!(self.0, 64..=127 | 194)
    }
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.meaning())
    }
}
