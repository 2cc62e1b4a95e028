//! Options of messages, and messages under construction (RFC 6275, section 6.2; RFC 4285).

use super::{MOBILITY_HEADER, MessageError, split};
use crate::checksum::pseudo_header;
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

/// Where the checksum lies in the Mobility Header.
pub(super) const CHECKSUM_AT: usize = 4;
const LENGTH_AT: usize = 1;
const UNIT: usize = 8;
/// The header's length is one byte.
const LONGEST: usize = 256 * UNIT;

const PAD1: u8 = 0;
const PADN: u8 = 1;
const REFRESH_ADVICE: u8 = 2;
const ALTERNATE_CARE_OF: u8 = 3;
const NONCE_INDICES: u8 = 4;
const AUTHORIZATION: u8 = 5;
const AUTHENTICATION: u8 = 9;
const TIMESTAMP: u8 = 10;
/// RFC 4285: between mobile node and home agent.
const MOBILE_HOME: u8 = 1;
/// Subtype and index in front of an authenticator.
const AUTHENTICATION_HEAD: usize = 5;
/// RFC 6275: the first 96 bits of an HMAC.
const AUTHORIZATION_LEN: usize = 12;

/// The bytes of a message that an authenticator covers; the checksum in there counts as zero.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Covered<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Covered<'a> {
    /// `message` up to the authenticator.
    fn of(message: &'a [u8]) -> Self {
        Self {
            head: message.get(..CHECKSUM_AT).unwrap_or_default(),
            tail: message.get(CHECKSUM_AT + 2..).unwrap_or_default(),
        }
    }

    /// The bytes in order, in pieces.
    #[must_use]
    pub const fn parts(&self) -> [&'a [u8]; 3] {
        [self.head, &[0, 0], self.tail]
    }
}

/// An authenticator in a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Authentication<'a> {
    /// Names the security association; `None` in an authorisation by return routability.
    pub spi: Option<u32>,
    /// What is to be checked.
    pub authenticator: &'a [u8],
    /// What of the message it covers.
    pub covered: Covered<'a>,
}

/// An option of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MobilityOption<'a> {
    /// Type 2: when the binding is to be renewed, in units of four seconds.
    RefreshAdvice(u16),
    /// Type 3: the care-of address, if it is not the packet's source.
    AlternateCareOfAddress(Ipv6Addr),
    /// Type 4: which nonces the binding key was made with.
    NonceIndices {
        /// Of the home test.
        home: u16,
        /// Of the care-of test.
        care_of: u16,
    },
    /// Type 5: made with the binding key of return routability.
    Authorization(Authentication<'a>),
    /// Type 9, subtype 1: between mobile node and home agent (RFC 4285).
    Authentication(Authentication<'a>),
    /// Type 10: when the message was made, in NTP's format (RFC 4285).
    Timestamp(u64),
    /// One that is not known here.
    Skipped {
        /// Its type.
        kind: u8,
        /// What follows type and length.
        data: &'a [u8],
    },
}

/// The options of a message that was read: an iterator that cannot fail, without padding.
#[derive(Clone, Copy, Debug)]
pub struct MobilityOptions<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> MobilityOptions<'a> {
    /// Checks all options of `message`, the first of which begins at `at`.
    pub(super) fn parse(message: &'a [u8], at: usize) -> Result<Self, MessageError> {
        let mut next = at;
        while next < message.len() {
            (_, next) = read(message, next)?;
        }
        Ok(Self { message, at })
    }

    /// The care-of address, if an option names one.
    #[must_use]
    pub fn alternate_care_of_address(mut self) -> Option<Ipv6Addr> {
        self.find_map(|option| match option {
            MobilityOption::AlternateCareOfAddress(address) => Some(address),
            _ => None,
        })
    }

    /// The nonce indices of home and care-of test.
    #[must_use]
    pub fn nonce_indices(mut self) -> Option<(u16, u16)> {
        self.find_map(|option| match option {
            MobilityOption::NonceIndices { home, care_of } => Some((home, care_of)),
            _ => None,
        })
    }

    /// The authorisation by return routability; it has to be the last option.
    #[must_use]
    pub fn authorization(self) -> Option<Authentication<'a>> {
        match self.last() {
            Some(MobilityOption::Authorization(one)) => Some(one),
            _ => None,
        }
    }

    /// The authentication between mobile node and home agent.
    #[must_use]
    pub fn authentication(mut self) -> Option<Authentication<'a>> {
        self.find_map(|option| match option {
            MobilityOption::Authentication(one) => Some(one),
            _ => None,
        })
    }

    /// When the message was made.
    #[must_use]
    pub fn timestamp(mut self) -> Option<u64> {
        self.find_map(|option| match option {
            MobilityOption::Timestamp(time) => Some(time),
            _ => None,
        })
    }
}

impl<'a> Iterator for MobilityOptions<'a> {
    type Item = MobilityOption<'a>;

    fn next(&mut self) -> Option<MobilityOption<'a>> {
        while self.at < self.message.len() {
            // All of them were read before.
            let (option, next) = read(self.message, self.at).ok()?;
            self.at = next;
            if option.is_some() {
                return option;
            }
        }
        None
    }
}

/// Reads the option at `at`, and where the next one begins; padding is none.
fn read(message: &[u8], at: usize) -> Result<(Option<MobilityOption<'_>>, usize), MessageError> {
    let rest = message.get(at..).unwrap_or_default();
    if rest.first() == Some(&PAD1) {
        return Ok((None, at + 1));
    }
    let (&[kind, length], body) = split(rest)?;
    let data = body
        .get(..usize::from(length))
        .ok_or(MessageError::Truncated {
            needed: usize::from(length),
            available: body.len(),
        })?;
    let wrong = MessageError::Option { kind, length };
    let covered = |head: usize| Covered::of(message.get(..at + 2 + head).unwrap_or_default());
    let option = match kind {
        PADN => None,
        REFRESH_ADVICE => Some(MobilityOption::RefreshAdvice(u16::from_be_bytes(
            *exactly(data).ok_or(wrong)?,
        ))),
        ALTERNATE_CARE_OF => {
            let address: &[u8; 16] = exactly(data).ok_or(wrong)?;
            Some(MobilityOption::AlternateCareOfAddress(Ipv6Addr::from(
                *address,
            )))
        }
        NONCE_INDICES => {
            let &[h0, h1, c0, c1] = exactly(data).ok_or(wrong)?;
            Some(MobilityOption::NonceIndices {
                home: u16::from_be_bytes([h0, h1]),
                care_of: u16::from_be_bytes([c0, c1]),
            })
        }
        AUTHORIZATION => {
            let authenticator: &[u8; AUTHORIZATION_LEN] = exactly(data).ok_or(wrong)?;
            Some(MobilityOption::Authorization(Authentication {
                spi: None,
                authenticator,
                covered: covered(0),
            }))
        }
        AUTHENTICATION => {
            let (&[subtype, ref spi @ ..], authenticator) =
                split::<AUTHENTICATION_HEAD>(data).map_err(|_| wrong)?;
            let spi = spi.first_chunk::<4>().ok_or(wrong)?;
            match subtype {
                MOBILE_HOME => Some(MobilityOption::Authentication(Authentication {
                    spi: Some(u32::from_be_bytes(*spi)),
                    authenticator,
                    covered: covered(AUTHENTICATION_HEAD),
                })),
                _ => Some(MobilityOption::Skipped { kind, data }),
            }
        }
        TIMESTAMP => Some(MobilityOption::Timestamp(u64::from_be_bytes(
            *exactly(data).ok_or(wrong)?,
        ))),
        _ => Some(MobilityOption::Skipped { kind, data }),
    };
    Ok((option, at + 2 + data.len()))
}

/// `data`, if it has exactly so many bytes.
fn exactly<const N: usize>(data: &[u8]) -> Option<&[u8; N]> {
    data.try_into().ok()
}

/// A message under construction: options are appended in order.
///
/// An option that makes the message longer than 2048 bytes is left out.
#[derive(Clone, Debug)]
pub struct MessageBuilder {
    bytes: Vec<u8>,
}

impl MessageBuilder {
    pub(super) const fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Appends an option of any type. At most 255 bytes of `data` are used.
    #[must_use]
    pub fn option(self, kind: u8, data: &[u8]) -> Self {
        self.append(kind, (1, 0), data)
    }

    /// Names a care-of address.
    #[must_use]
    pub fn alternate_care_of_address(self, address: Ipv6Addr) -> Self {
        self.append(ALTERNATE_CARE_OF, (8, 6), &address.octets())
    }

    /// Names the nonces of home and care-of test.
    #[must_use]
    pub fn nonce_indices(self, home: u16, care_of: u16) -> Self {
        let ([h0, h1], [c0, c1]) = (home.to_be_bytes(), care_of.to_be_bytes());
        self.append(NONCE_INDICES, (2, 0), &[h0, h1, c0, c1])
    }

    /// Says when the binding is to be renewed, in units of four seconds.
    #[must_use]
    pub fn refresh_advice(self, units: u16) -> Self {
        self.append(REFRESH_ADVICE, (2, 0), &units.to_be_bytes())
    }

    /// Says when the message was made, in NTP's format (RFC 4285, section 6).
    #[must_use]
    pub fn timestamp(self, ntp: u64) -> Self {
        self.append(TIMESTAMP, (8, 2), &ntp.to_be_bytes())
    }

    /// Appends an authorisation by return routability as the last option. `compute` gets the bytes
    /// that it covers.
    #[must_use]
    pub fn authorize(self, compute: impl FnOnce(Covered<'_>) -> [u8; AUTHORIZATION_LEN]) -> Self {
        self.authenticated(AUTHORIZATION, (8, 2), &[], AUTHORIZATION_LEN, compute)
    }

    /// Appends the authentication between mobile node and home agent as the last option (RFC 4285,
    /// section 5). `compute` gets the bytes that it covers and returns `length` bytes, at most 250.
    #[must_use]
    pub fn authenticate<A: AsRef<[u8]>>(
        self,
        spi: u32,
        length: usize,
        compute: impl FnOnce(Covered<'_>) -> A,
    ) -> Self {
        let [s0, s1, s2, s3] = spi.to_be_bytes();
        let head = [MOBILE_HOME, s0, s1, s2, s3];
        self.authenticated(AUTHENTICATION, (4, 1), &head, length, compute)
    }

    fn authenticated<A: AsRef<[u8]>>(
        mut self,
        kind: u8,
        alignment: (usize, usize),
        head: &[u8],
        length: usize,
        compute: impl FnOnce(Covered<'_>) -> A,
    ) -> Self {
        let length = length.min(255 - AUTHENTICATION_HEAD);
        self.align(alignment);
        let end = self.bytes.len() + 2 + head.len() + length;
        if end.next_multiple_of(UNIT) > LONGEST {
            return self;
        }
        // At most 255.
        self.bytes
            .extend_from_slice(&[kind, (head.len() + length) as u8]);
        self.bytes.extend_from_slice(head);
        set_length(&mut self.bytes, end.next_multiple_of(UNIT));
        let authenticator = compute(Covered::of(&self.bytes));
        self.bytes
            .extend(authenticator.as_ref().iter().take(length));
        self.bytes.resize(end, 0);
        self
    }

    fn append(mut self, kind: u8, alignment: (usize, usize), data: &[u8]) -> Self {
        let data = &data[..data.len().min(255)];
        self.align(alignment);
        if (self.bytes.len() + 2 + data.len()).next_multiple_of(UNIT) > LONGEST {
            return self;
        }
        // At most 255.
        self.bytes.extend_from_slice(&[kind, data.len() as u8]);
        self.bytes.extend_from_slice(data);
        self
    }

    /// Pads until the next option begins at a multiple of `unit` and `rest`.
    fn align(&mut self, (unit, rest): (usize, usize)) {
        let missing = (rest + unit - self.bytes.len() % unit) % unit;
        self.pad(missing);
    }

    fn pad(&mut self, missing: usize) {
        match missing {
            0 => {}
            1 => self.bytes.push(PAD1),
            _ => {
                let zeros = missing - 2;
                // Fewer than eight.
                self.bytes.extend_from_slice(&[PADN, zeros as u8]);
                self.bytes.resize(self.bytes.len() + zeros, 0);
            }
        }
    }

    /// The Mobility Header, whole, with its checksum; the addresses are those that [`Message::parse`]
    /// gets.
    ///
    /// [`Message::parse`]: super::Message::parse
    #[must_use]
    pub fn finish(mut self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let end = self.bytes.len().next_multiple_of(UNIT);
        self.pad(end - self.bytes.len());
        set_length(&mut self.bytes, end);
        let protocol = Protocol(MOBILITY_HEADER);
        let pseudo = pseudo_header(source.into(), destination.into(), protocol, end);
        let checksum = pseudo.bytes(&self.bytes).checksum();
        if let Some(field) = self.bytes.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) {
            field.copy_from_slice(&checksum);
        }
        self.bytes
    }
}

/// Writes the header's length; `end` is a multiple of eight and at most [`LONGEST`].
fn set_length(bytes: &mut [u8], end: usize) {
    if let Some(field) = bytes.get_mut(LENGTH_AT) {
        *field = (end / UNIT).saturating_sub(1) as u8;
    }
}
