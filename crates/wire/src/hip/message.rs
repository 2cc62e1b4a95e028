//! The header of a HIP packet and the walk over its parameters (RFC 7401, sections 5.1 and 5.2.1).

use crate::checksum::pseudo_header;
use crate::hip::{HIP_PROTOCOL, HipError};
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 40;

/// Bytes of the longest HIP packet: the length field has eight bits.
pub const LONGEST: usize = 256 * 8;

/// Next header: nothing follows.
const NO_NEXT_HEADER: u8 = 59;

/// Where the checksum lies.
pub(super) const CHECKSUM_AT: usize = 4;

/// A Host Identity Tag: 128 bits that stand for a host's public key (RFC 7343).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Hit(pub [u8; 16]);

impl Hit {
    /// The null tag of an opportunistic I1.
    pub const NULL: Self = Self([0; 16]);

    /// The tag as applications see it: an IPv6 address.
    #[must_use]
    pub const fn address(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(u128::from_be_bytes(self.0))
    }

    /// The number of the HIT suite, if the tag lies in `2001:20::/28`.
    #[must_use]
    pub const fn suite(self) -> Option<u8> {
        match self.0 {
            [0x20, 0x01, 0x00, last, ..] if last >> 4 == 2 => Some(last & 0x0f),
            _ => None,
        }
    }
}

impl From<Ipv6Addr> for Hit {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// A packet type (RFC 7401, table 11).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PacketType {
    /// Opens a base exchange.
    I1,
    /// Puzzle, key and offers of the Responder.
    R1,
    /// Solution, key and choices of the Initiator.
    I2,
    /// Ends a base exchange.
    R2,
    /// Changes an association.
    Update,
    /// Says what went wrong.
    Notify,
    /// Ends an association.
    Close,
    /// Agrees to its end.
    CloseAck,
}

impl PacketType {
    const ALL: [(Self, u8); 8] = [
        (Self::I1, 1),
        (Self::R1, 2),
        (Self::I2, 3),
        (Self::R2, 4),
        (Self::Update, 16),
        (Self::Notify, 17),
        (Self::Close, 18),
        (Self::CloseAck, 19),
    ];

    /// The number in the header.
    #[must_use]
    pub fn number(self) -> u8 {
        let found = Self::ALL.iter().find(|(known, _)| *known == self);
        found.map_or(0, |(_, number)| *number)
    }

    fn from_number(number: u8) -> Result<Self, HipError> {
        let found = Self::ALL.iter().find(|(_, known)| *known == number);
        found
            .map(|(known, _)| *known)
            .ok_or(HipError::PacketType(number))
    }
}

/// One parameter of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parameter<'a> {
    /// Its type.
    pub kind: u16,
    /// Its contents, without padding.
    pub contents: &'a [u8],
    /// Where it begins, in bytes from the start of the packet.
    pub offset: usize,
}

impl Parameter<'_> {
    /// Whether a receiver that does not know it must drop the packet.
    #[must_use]
    pub const fn is_critical(&self) -> bool {
        self.kind & 1 == 1
    }
}

/// The parameters of a packet, or those inside ENCRYPTED, in wire order.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    bytes: &'a [u8],
    offset: usize,
    last_kind: u16,
}

impl<'a> Parameters<'a> {
    /// The parameters that `bytes` hold from `offset` on.
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            bytes,
            offset,
            last_kind: 0,
        }
    }

    fn read(&mut self) -> Result<Parameter<'a>, HipError> {
        let offset = self.offset;
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let Some(&[a, b, c, d]) = rest.first_chunk::<4>() else {
            return Err(HipError::Truncated {
                needed: 4,
                available: rest.len(),
            });
        };
        let kind = u16::from_be_bytes([a, b]);
        let length = usize::from(u16::from_be_bytes([c, d]));
        let padded = padded_len(length);
        let Some(contents) = rest.get(4..4 + length).filter(|_| padded <= rest.len()) else {
            return Err(HipError::Truncated {
                needed: padded,
                available: rest.len(),
            });
        };
        if kind < self.last_kind {
            return Err(HipError::Order(kind));
        }
        self.last_kind = kind;
        self.offset = offset + padded;
        Ok(Parameter {
            kind,
            contents,
            offset,
        })
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Result<Parameter<'a>, HipError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.bytes.len() {
            return None;
        }
        let parameter = self.read();
        if parameter.is_err() {
            self.offset = self.bytes.len();
        }
        Some(parameter)
    }
}

/// Bytes that a parameter with `length` bytes of contents takes.
pub(super) const fn padded_len(length: usize) -> usize {
    (4 + length).next_multiple_of(8)
}

/// A HIP packet whose header and order of parameters have been checked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message<'a> {
    bytes: &'a [u8],
    kind: PacketType,
}

impl<'a> Message<'a> {
    /// Checks `bytes`, all that the IP header carries. The checksum needs addresses and is checked
    /// by [`Self::checksum_ok`].
    ///
    /// # Errors
    /// [`HipError`] says what is malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HipError> {
        let Some(&[next, units, kind, version, ..]) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(HipError::Truncated {
                needed: HEADER_LEN,
                available: bytes.len(),
            });
        };
        if version >> 4 != 2 {
            return Err(HipError::Version(version >> 4));
        }
        if next != NO_NEXT_HEADER || kind & 0x80 != 0 || version & 1 != 1 {
            return Err(HipError::FixedField);
        }
        let declared = (usize::from(units) + 1) * 8;
        if declared != bytes.len() {
            return Err(HipError::Length {
                declared,
                available: bytes.len(),
            });
        }
        let message = Self {
            bytes,
            kind: PacketType::from_number(kind)?,
        };
        for parameter in Parameters::new(bytes, HEADER_LEN) {
            parameter?;
        }
        Ok(message)
    }

    /// What kind of packet it is.
    #[must_use]
    pub const fn kind(&self) -> PacketType {
        self.kind
    }

    /// The sender's tag.
    #[must_use]
    pub fn sender(&self) -> Hit {
        self.hit(8)
    }

    /// The receiver's tag; null in an opportunistic I1.
    #[must_use]
    pub fn receiver(&self) -> Hit {
        self.hit(24)
    }

    fn hit(&self, at: usize) -> Hit {
        let found = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        Hit(found.copied().unwrap_or_default())
    }

    /// The packet's bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the checksum fits the packet between these addresses.
    #[must_use]
    pub fn checksum_ok(&self, source: IpAddr, destination: IpAddr) -> bool {
        let length = self.bytes.len();
        let sum = pseudo_header(source, destination, Protocol(HIP_PROTOCOL), length);
        sum.bytes(self.bytes).is_intact()
    }

    /// Its parameters in wire order.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        // `parse` has walked over all of them.
        Parameters::new(self.bytes, HEADER_LEN).map_while(Result::ok)
    }

    /// The first parameter of the type `kind`.
    #[must_use]
    pub fn find(&self, kind: u16) -> Option<Parameter<'a>> {
        self.parameters().find(|parameter| parameter.kind == kind)
    }

    /// The bytes that a MAC or a signature at `parameter` covers: those before it, with a length
    /// as if the packet ended there and no checksum (RFC 7401, sections 6.4.1 and 6.4.2).
    #[must_use]
    pub fn covered_before(&self, parameter: &Parameter<'_>) -> Vec<u8> {
        let mut covered = self
            .bytes
            .get(..parameter.offset)
            .unwrap_or_default()
            .to_vec();
        set_length_and_no_checksum(&mut covered);
        covered
    }
}

/// Makes the header of `packet` declare its present length, and zeroes its checksum.
pub(super) fn set_length_and_no_checksum(packet: &mut [u8]) {
    let units = u8::try_from((packet.len() / 8).saturating_sub(1)).unwrap_or(u8::MAX);
    if let Some(header) = packet.first_chunk_mut::<HEADER_LEN>() {
        header[1] = units;
        header[CHECKSUM_AT] = 0;
        header[CHECKSUM_AT + 1] = 0;
    }
}

/// Writes a header without length and checksum.
pub(super) fn write_header(out: &mut Vec<u8>, kind: PacketType, sender: Hit, receiver: Hit) {
    out.extend_from_slice(&[NO_NEXT_HEADER, 0, kind.number(), 0x21, 0, 0, 0, 0]);
    out.extend_from_slice(&sender.0);
    out.extend_from_slice(&receiver.0);
}
