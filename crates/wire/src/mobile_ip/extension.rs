//! Extensions of registration messages, and messages under construction.

use super::{MessageError, UdpTunnelReply, UdpTunnelRequest, split, udp_tunnel};
use alloc::vec::Vec;

const ENCAPSULATING_DELIVERY: u8 = 130;
const SPI_LEN: usize = 4;

/// Who authenticates a message to whom (RFC 5944, section 3.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecuredPair {
    /// Mobile node and home agent: type 32.
    MobileHome,
    /// Mobile node and foreign agent: type 33.
    MobileForeign,
    /// Foreign agent and home agent: type 34.
    ForeignHome,
}

impl SecuredPair {
    const fn kind(self) -> u8 {
        match self {
            Self::MobileHome => 32,
            Self::MobileForeign => 33,
            Self::ForeignHome => 34,
        }
    }

    const fn of(kind: u8) -> Option<Self> {
        match kind {
            32 => Some(Self::MobileHome),
            33 => Some(Self::MobileForeign),
            34 => Some(Self::ForeignHome),
            _ => None,
        }
    }
}

/// An authentication extension (RFC 5944, section 3.5.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Authentication<'a> {
    /// Who authenticates.
    pub pair: SecuredPair,
    /// Names the security association.
    pub spi: u32,
    /// What is to be checked.
    pub authenticator: &'a [u8],
    /// The bytes that it covers: the message up to this extension's SPI.
    pub covered: &'a [u8],
}

/// An extension of a registration message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extension<'a> {
    /// Types 32 to 34.
    Authentication(Authentication<'a>),
    /// Type 130: the mobile node encapsulates what it sends to the foreign agent (RFC 3024).
    EncapsulatingDelivery,
    /// Type 144: the mobile node asks for a tunnel in UDP (RFC 3519).
    UdpTunnelRequest(UdpTunnelRequest),
    /// Type 44: the home agent answers it (RFC 3519).
    UdpTunnelReply(UdpTunnelReply),
    /// A skippable one (types 128 to 255) that is not known here, or has a form that is not.
    Skipped {
        /// Its type.
        kind: u8,
        /// What follows type and length.
        data: &'a [u8],
    },
}

/// The extensions of a message that was read: an iterator that cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Extensions<'a> {
    /// Checks all extensions of `message`, the first of which begins at `at`.
    pub(super) fn parse(message: &'a [u8], at: usize) -> Result<Self, MessageError> {
        let mut next = at;
        while next < message.len() {
            (_, next) = read(message, next)?;
        }
        Ok(Self { message, at })
    }

    /// The extensions by which `pair` authenticates the message, in order.
    pub fn authentications(self, pair: SecuredPair) -> impl Iterator<Item = Authentication<'a>> {
        self.filter_map(move |extension| match extension {
            Extension::Authentication(one) if one.pair == pair => Some(one),
            _ => None,
        })
    }

    /// The extension by which `pair` authenticates the message, if there is exactly one: RFC 5944,
    /// sections 3.7.2.1, 3.7.3.1 and 3.8.2.1, refuses more.
    #[must_use]
    pub fn only_authentication(self, pair: SecuredPair) -> Option<Authentication<'a>> {
        let mut all = self.authentications(pair);
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// The message up to the end of its last mobile-home authentication: what a foreign agent relays
    /// (RFC 5944, section 3.7.2.2). `None` if there is none.
    #[must_use]
    pub fn up_to_home_authentication(self) -> Option<&'a [u8]> {
        let message = self.message;
        let one = self.authentications(SecuredPair::MobileHome).last()?;
        message.get(..one.covered.len() + one.authenticator.len())
    }

    /// The extensions that the mobile-home authentication covers; none without one.
    #[must_use]
    pub fn covered_by_home_authentication(self) -> Self {
        let covered = self.up_to_home_authentication().unwrap_or_default();
        Self {
            message: covered,
            at: self.at,
        }
    }

    /// The extensions behind the mobile-home authentication, which are for the foreign agent.
    #[must_use]
    pub fn behind_home_authentication(self) -> Self {
        let at = self
            .up_to_home_authentication()
            .map_or(self.message.len(), <[u8]>::len);
        Self { at, ..self }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        if self.at >= self.message.len() {
            return None;
        }
        // All of them were read before.
        let (extension, next) = read(self.message, self.at).ok()?;
        self.at = next;
        Some(extension)
    }
}

/// Reads the extension at `at`, and where the next one begins.
fn read(message: &[u8], at: usize) -> Result<(Extension<'_>, usize), MessageError> {
    let rest = message.get(at..).unwrap_or_default();
    let (&[kind, length], body) = split(rest)?;
    let data = body
        .get(..usize::from(length))
        .ok_or(MessageError::Truncated {
            needed: usize::from(length),
            available: body.len(),
        })?;
    let wrong_length = MessageError::Length { kind, length };
    let extension = match kind {
        32..=34 => {
            let (spi, authenticator) = split::<SPI_LEN>(data).map_err(|_| wrong_length)?;
            Extension::Authentication(Authentication {
                pair: SecuredPair::of(kind).ok_or(MessageError::UnknownExtension(kind))?,
                spi: u32::from_be_bytes(*spi),
                authenticator,
                covered: message.get(..at + 2 + SPI_LEN).unwrap_or_default(),
            })
        }
        ENCAPSULATING_DELIVERY if data.is_empty() => Extension::EncapsulatingDelivery,
        ENCAPSULATING_DELIVERY => return Err(wrong_length),
        udp_tunnel::REQUEST => match UdpTunnelRequest::parse(data)? {
            Some(request) => Extension::UdpTunnelRequest(request),
            None => Extension::Skipped { kind, data },
        },
        udp_tunnel::REPLY => Extension::UdpTunnelReply(UdpTunnelReply::parse(data)?),
        128.. => Extension::Skipped { kind, data },
        unknown => return Err(MessageError::UnknownExtension(unknown)),
    };
    Ok((extension, at + 2 + data.len()))
}

/// A registration message under construction: extensions are appended in order.
#[derive(Clone, Debug)]
pub struct MessageBuilder {
    bytes: Vec<u8>,
}

impl MessageBuilder {
    pub(super) const fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Goes on with what [`Extensions::up_to_home_authentication`] gave.
    #[must_use]
    pub fn resume(message: &[u8]) -> Self {
        Self::new(message.to_vec())
    }

    /// Appends an extension of any type. At most 255 bytes of `data` are used.
    #[must_use]
    pub fn extension(mut self, kind: u8, data: &[u8]) -> Self {
        let data = &data[..data.len().min(255)];
        // At most 255.
        self.bytes.extend_from_slice(&[kind, data.len() as u8]);
        self.bytes.extend_from_slice(data);
        self
    }

    /// Asks for encapsulating delivery (RFC 3024, section 3.3).
    #[must_use]
    pub fn encapsulating_delivery(self) -> Self {
        self.extension(ENCAPSULATING_DELIVERY, &[])
    }

    /// Asks for a tunnel in UDP.
    #[must_use]
    pub fn udp_tunnel_request(self, request: UdpTunnelRequest) -> Self {
        self.extension(udp_tunnel::REQUEST, &request.emit())
    }

    /// Answers the question for a tunnel in UDP.
    #[must_use]
    pub fn udp_tunnel_reply(self, reply: UdpTunnelReply) -> Self {
        self.extension(udp_tunnel::REPLY, &reply.emit())
    }

    /// Appends an authentication extension. `compute` gets the bytes that it covers and returns
    /// the authenticator of `length` bytes, at most 251.
    #[must_use]
    pub fn authenticate<A: AsRef<[u8]>>(
        mut self,
        pair: SecuredPair,
        spi: u32,
        length: usize,
        compute: impl FnOnce(&[u8]) -> A,
    ) -> Self {
        let length = length.min(255 - SPI_LEN);
        // At most 255.
        self.bytes
            .extend_from_slice(&[pair.kind(), (SPI_LEN + length) as u8]);
        self.bytes.extend_from_slice(&spi.to_be_bytes());
        let authenticator = compute(&self.bytes);
        let end = self.bytes.len() + length;
        self.bytes
            .extend(authenticator.as_ref().iter().take(length));
        self.bytes.resize(end, 0);
        self
    }

    /// The payload of the UDP datagram.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
