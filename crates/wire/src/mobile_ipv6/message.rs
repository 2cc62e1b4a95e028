//! The fixed parts of messages (RFC 6275, sections 6.1.2 to 6.1.9).

use super::option::{CHECKSUM_AT, MessageBuilder, MobilityOptions};
use super::{MOBILITY_HEADER, MessageError, split};
use crate::checksum::pseudo_header;
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::ops::BitOr;
use core::time::Duration;

/// "No next header".
const NOTHING_FOLLOWS: u8 = 59;
/// Payload protocol, length, type, reserved, checksum.
const HEADER_LEN: usize = 6;
/// The header's length counts units of eight bytes behind the first.
const UNIT: usize = 8;

/// A binding's lifetime in units of four seconds; 0 ends a binding.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct UpdateLifetime(pub u16);

impl UpdateLifetime {
    /// Ends a binding.
    pub const DEREGISTRATION: Self = Self(0);
    const UNIT_S: u64 = 4;

    /// The lifetime as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64 * Self::UNIT_S)
    }

    /// The longest lifetime that is not above `duration`.
    #[must_use]
    pub fn at_most(duration: Duration) -> Self {
        Self(u16::try_from(duration.as_secs() / Self::UNIT_S).unwrap_or(u16::MAX))
    }
}

/// The flags of a binding update.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UpdateFlags(pub u16);

impl UpdateFlags {
    /// A: an acknowledgement is asked for.
    pub const ACKNOWLEDGE: Self = Self(0x8000);
    /// H: the receiver is to be the home agent.
    pub const HOME_REGISTRATION: Self = Self(0x4000);
    /// L: the link-local address has the home address's interface identifier.
    pub const LINK_LOCAL: Self = Self(0x2000);
    /// K: the keys of IPsec follow the mobile node.
    pub const KEY_MANAGEMENT: Self = Self(0x1000);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for UpdateFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The flags of a binding acknowledgement.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AcknowledgementFlags(pub u8);

/// What became of a binding update (RFC 6275, section 6.1.8; RFC 4285, section 7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status(pub u8);

impl Status {
    /// Accepted.
    pub const ACCEPTED: Self = Self(0);
    /// The reason is not said.
    pub const UNSPECIFIED: Self = Self(128);
    /// The receiver has no room.
    pub const RESOURCES: Self = Self(130);
    /// The receiver is no home agent.
    pub const NO_HOME_REGISTRATION: Self = Self(131);
    /// The receiver is not this mobile node's home agent.
    pub const NOT_ITS_HOME_AGENT: Self = Self(133);
    /// The sequence number is not above the last one, which the acknowledgement names.
    pub const SEQUENCE: Self = Self(135);
    /// The home nonce is too old.
    pub const HOME_NONCE: Self = Self(136);
    /// The care-of nonce is too old.
    pub const CARE_OF_NONCE: Self = Self(137);
    /// Both nonces are too old.
    pub const NONCES: Self = Self(138);
    /// A home registration became another one, or the other way round.
    pub const TYPE_CHANGE: Self = Self(139);
    /// The timestamp is not near the home agent's clock, or not above the last one (RFC 4285).
    pub const TIMESTAMP: Self = Self(144);
    /// The home agent demands a timestamp (RFC 4285).
    pub const TIMESTAMP_MISSING: Self = Self(145);
    /// The authenticator is wrong (RFC 4285).
    pub const AUTHENTICATION: Self = Self(146);
    /// The care-of address cannot be one.
    pub const CARE_OF_ADDRESS: Self = Self(174);

    /// Whether the update was accepted.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.0 < 128
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self(1) => "accepted, prefix discovery needed",
            Self(0..=127) => "accepted",
            Self(129) => "prohibited",
            Self::RESOURCES => "insufficient resources",
            Self::NO_HOME_REGISTRATION => "home registration not supported",
            Self(132) => "not home subnet",
            Self::NOT_ITS_HOME_AGENT => "not home agent for this mobile node",
            Self(134) => "duplicate address detection failed",
            Self::SEQUENCE => "sequence number out of window",
            Self::HOME_NONCE => "expired home nonce index",
            Self::CARE_OF_NONCE => "expired care-of nonce index",
            Self::NONCES => "expired nonces",
            Self::TYPE_CHANGE => "registration type change disallowed",
            Self::TIMESTAMP => "timestamp mismatch",
            Self::TIMESTAMP_MISSING => "timestamp required",
            Self::AUTHENTICATION => "authentication failed",
            Self::CARE_OF_ADDRESS => "invalid care-of address",
            _ => "reason unspecified",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.meaning())
    }
}

/// What a binding error is about (RFC 6275, section 6.1.9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BindingErrorStatus(pub u8);

impl BindingErrorStatus {
    /// A packet bore a home address, and there is no binding for it.
    pub const NO_BINDING: Self = Self(1);
    /// A message was of a type that the receiver does not know.
    pub const UNKNOWN_MESSAGE: Self = Self(2);
}

/// A home test or a care-of test: the correspondent's part of return routability.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Test {
    /// Which of the correspondent's nonces the token was made with.
    pub nonce_index: u16,
    /// That of the message that it answers.
    pub cookie: u64,
    /// One half of what the binding key is made of.
    pub keygen_token: u64,
}

/// The fixed part of a binding update.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BindingUpdate {
    /// Greater than that of the update before, modulo 2^16.
    pub sequence: u16,
    /// Flags.
    pub flags: UpdateFlags,
    /// How long the binding is to last.
    pub lifetime: UpdateLifetime,
}

/// The fixed part of a binding acknowledgement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BindingAcknowledgement {
    /// What became of the update.
    pub status: Status,
    /// Flags.
    pub flags: AcknowledgementFlags,
    /// That of the update, or the last accepted one's after [`Status::SEQUENCE`].
    pub sequence: u16,
    /// How long the binding lasts.
    pub lifetime: UpdateLifetime,
}

/// A message of the Mobility Header, without its options.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message {
    /// Type 0: a correspondent asks for an update.
    BindingRefreshRequest,
    /// Type 1: a mobile node asks for a home keygen token, through its home agent.
    HomeTestInit {
        /// Comes back in the answer.
        cookie: u64,
    },
    /// Type 2: a mobile node asks for a care-of keygen token.
    CareOfTestInit {
        /// Comes back in the answer.
        cookie: u64,
    },
    /// Type 3: the answer to type 1.
    HomeTest(Test),
    /// Type 4: the answer to type 2.
    CareOfTest(Test),
    /// Type 5: a mobile node says where it is.
    BindingUpdate(BindingUpdate),
    /// Type 6: the answer to type 5.
    BindingAcknowledgement(BindingAcknowledgement),
    /// Type 7: something cannot be understood without a binding, or at all.
    BindingError {
        /// What it is about.
        status: BindingErrorStatus,
        /// The home address of the packet that it is about; unspecified if that bore none.
        home_address: Ipv6Addr,
    },
}

impl Message {
    /// Reads a whole Mobility Header that goes from `source` to `destination`: where the packet bears a
    /// home address or a routing header, these are the addresses in there.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if it is none that is known, damaged, or its options cannot be read.
    pub fn parse(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        bytes: &[u8],
    ) -> Result<(Self, MobilityOptions<'_>), MessageError> {
        let (&[payload, length, kind, _, _, _], body) = split::<HEADER_LEN>(bytes)?;
        let declared = (usize::from(length) + 1) * UNIT;
        if declared != bytes.len() {
            return Err(MessageError::Length { declared });
        }
        let protocol = Protocol(MOBILITY_HEADER);
        let pseudo = pseudo_header(source.into(), destination.into(), protocol, bytes.len());
        if !pseudo.bytes(bytes).is_intact() {
            return Err(MessageError::Checksum);
        }
        if payload != NOTHING_FOLLOWS {
            return Err(MessageError::Payload(payload));
        }
        let (message, options_at) = Self::read(kind, body).map_err(|error| match error {
            MessageError::Truncated { .. } => MessageError::Length { declared },
            other => other,
        })?;
        Ok((message, MobilityOptions::parse(bytes, options_at)?))
    }

    /// Reads what follows the checksum, and tells where the options begin.
    fn read(kind: u8, body: &[u8]) -> Result<(Self, usize), MessageError> {
        let message = match kind {
            0 => {
                split::<2>(body)?;
                (Self::BindingRefreshRequest, 2)
            }
            1 | 2 => {
                let (_, rest) = split::<2>(body)?;
                let (cookie, _) = split::<8>(rest)?;
                let cookie = u64::from_be_bytes(*cookie);
                let message = match kind {
                    1 => Self::HomeTestInit { cookie },
                    _ => Self::CareOfTestInit { cookie },
                };
                (message, 10)
            }
            3 | 4 => {
                let (index, rest) = split::<2>(body)?;
                let (cookie, rest) = split::<8>(rest)?;
                let (token, _) = split::<8>(rest)?;
                let test = Test {
                    nonce_index: u16::from_be_bytes(*index),
                    cookie: u64::from_be_bytes(*cookie),
                    keygen_token: u64::from_be_bytes(*token),
                };
                let message = match kind {
                    3 => Self::HomeTest(test),
                    _ => Self::CareOfTest(test),
                };
                (message, 18)
            }
            5 => {
                let (&[s0, s1, f0, f1, l0, l1], _) = split(body)?;
                let update = BindingUpdate {
                    sequence: u16::from_be_bytes([s0, s1]),
                    flags: UpdateFlags(u16::from_be_bytes([f0, f1])),
                    lifetime: UpdateLifetime(u16::from_be_bytes([l0, l1])),
                };
                (Self::BindingUpdate(update), 6)
            }
            6 => {
                let (&[status, flags, s0, s1, l0, l1], _) = split(body)?;
                let acknowledgement = BindingAcknowledgement {
                    status: Status(status),
                    flags: AcknowledgementFlags(flags),
                    sequence: u16::from_be_bytes([s0, s1]),
                    lifetime: UpdateLifetime(u16::from_be_bytes([l0, l1])),
                };
                (Self::BindingAcknowledgement(acknowledgement), 6)
            }
            7 => {
                let (&[status, _], rest) = split(body)?;
                let (home_address, _) = split::<16>(rest)?;
                let message = Self::BindingError {
                    status: BindingErrorStatus(status),
                    home_address: Ipv6Addr::from(*home_address),
                };
                (message, 18)
            }
            unknown => return Err(MessageError::Kind(unknown)),
        };
        Ok((message.0, HEADER_LEN + message.1))
    }

    /// Begins the message; options follow.
    #[must_use]
    pub fn emit(&self) -> MessageBuilder {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&[NOTHING_FOLLOWS, 0, self.kind(), 0, 0, 0]);
        debug_assert_eq!(bytes.len(), CHECKSUM_AT + 2);
        match self {
            Self::BindingRefreshRequest => bytes.extend_from_slice(&[0, 0]),
            Self::HomeTestInit { cookie } | Self::CareOfTestInit { cookie } => {
                bytes.extend_from_slice(&[0, 0]);
                bytes.extend_from_slice(&cookie.to_be_bytes());
            }
            Self::HomeTest(test) | Self::CareOfTest(test) => {
                bytes.extend_from_slice(&test.nonce_index.to_be_bytes());
                bytes.extend_from_slice(&test.cookie.to_be_bytes());
                bytes.extend_from_slice(&test.keygen_token.to_be_bytes());
            }
            Self::BindingUpdate(update) => {
                bytes.extend_from_slice(&update.sequence.to_be_bytes());
                bytes.extend_from_slice(&update.flags.0.to_be_bytes());
                bytes.extend_from_slice(&update.lifetime.0.to_be_bytes());
            }
            Self::BindingAcknowledgement(one) => {
                bytes.extend_from_slice(&[one.status.0, one.flags.0]);
                bytes.extend_from_slice(&one.sequence.to_be_bytes());
                bytes.extend_from_slice(&one.lifetime.0.to_be_bytes());
            }
            Self::BindingError {
                status,
                home_address,
            } => {
                bytes.extend_from_slice(&[status.0, 0]);
                bytes.extend_from_slice(&home_address.octets());
            }
        }
        MessageBuilder::new(bytes)
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::BindingRefreshRequest => 0,
            Self::HomeTestInit { .. } => 1,
            Self::CareOfTestInit { .. } => 2,
            Self::HomeTest(_) => 3,
            Self::CareOfTest(_) => 4,
            Self::BindingUpdate(_) => 5,
            Self::BindingAcknowledgement(_) => 6,
            Self::BindingError { .. } => 7,
        }
    }
}
