//! The home address option and routing header type 2 (RFC 6275, sections 6.3 and 6.4).
//!
//! A packet between a mobile node's care-of address and its correspondent bears the home address in one
//! header of 24 bytes. Checksums of what it carries are those with the home address, so that both
//! headers come and go without a change behind them.

use super::MOBILITY_HEADER;
use crate::{IpHeader, Packet, ParseError};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv6Addr};

/// Bytes that each of the two headers adds.
pub const ROUTING_OVERHEAD: u32 = EXTENSION as u32;

const FIXED: usize = 40;
const EXTENSION: usize = 24;
/// The extension's length in units of eight bytes behind the first.
const EXTENSION_UNITS: u8 = 2;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;
const HOME_ADDRESS: u8 = 201;
const PAD1: u8 = 0;
const ROUTING_TYPE: u8 = 2;
const ADDRESS_LEN: usize = 16;
const NEXT_AT: usize = 6;
const SOURCE_AT: usize = 8;
const DESTINATION_AT: usize = 24;

/// Why a packet gets no such header.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderError {
    /// It is no IPv6 packet.
    #[error("the packet is not IPv6")]
    Family,
    /// It begins with a header that has to stay first.
    #[error("a hop-by-hop header has to stay first")]
    HopByHop,
    /// It would be longer than 65575 bytes.
    #[error("the packet would be too long")]
    TooLong,
    /// What is made is no packet.
    #[error("what is made is no packet: {0}")]
    Packet(#[from] ParseError),
}

/// The packet of a message between `source` and `destination`.
#[must_use]
pub fn mobility_packet(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Packet {
    let ip = IpHeader::new(source.into(), destination.into());
    Packet::of_protocol(ip, MOBILITY_HEADER, message)
}

/// Moves the source, a home address, into an option, and sends from the care-of address instead.
///
/// # Errors
///
/// [`HeaderError`] if the packet has no room for it.
pub fn add_home_address(packet: &Packet, care_of_address: Ipv6Addr) -> Result<Packet, HeaderError> {
    let IpAddr::V6(home_address) = packet.header.ip.source else {
        return Err(HeaderError::Family);
    };
    let mut header = [0; EXTENSION];
    header[1] = EXTENSION_UNITS;
    // Four bytes of padding: the option begins at a multiple of eight and six.
    header[2..8].copy_from_slice(&[1, 2, 0, 0, HOME_ADDRESS, ADDRESS_LEN as u8]);
    header[8..].copy_from_slice(&home_address.octets());
    insert(
        packet,
        DESTINATION_OPTIONS,
        header,
        SOURCE_AT,
        care_of_address,
    )
}

/// Moves the destination, a home address, into a routing header, and sends to the care-of address
/// instead.
///
/// # Errors
///
/// [`HeaderError`] if the packet has no room for it.
pub fn add_routing_header(
    packet: &Packet,
    care_of_address: Ipv6Addr,
) -> Result<Packet, HeaderError> {
    let IpAddr::V6(home_address) = packet.header.ip.destination else {
        return Err(HeaderError::Family);
    };
    let mut header = [0; EXTENSION];
    // One segment is left: the home address.
    header[1..4].copy_from_slice(&[EXTENSION_UNITS, ROUTING_TYPE, 1]);
    header[8..].copy_from_slice(&home_address.octets());
    insert(packet, ROUTING, header, DESTINATION_AT, care_of_address)
}

/// The home address that a packet bears in its first header, an option.
#[must_use]
pub fn home_address_of(packet: &Packet) -> Option<Ipv6Addr> {
    let bytes = packet.bytes()?;
    let header = first_header(bytes, DESTINATION_OPTIONS)?;
    home_address_option(header)
}

/// Puts the home address of a packet's option back into its source. `None` if the packet's first
/// header is no such option alone.
#[must_use]
pub fn take_home_address(packet: &Packet) -> Option<Packet> {
    let home_address = home_address_of(packet)?;
    remove(packet, SOURCE_AT, home_address)
}

/// Puts the home address of a routing header of type 2 back into a packet's destination. `None` if
/// the packet's first header is none, or has no segment left.
#[must_use]
pub fn take_routing_header(packet: &Packet) -> Option<Packet> {
    let bytes = packet.bytes()?;
    let header = first_header(bytes, ROUTING)?;
    let (&[_, units, kind, left, _, _, _, _], address) = header.split_first_chunk::<8>()?;
    if (units, kind, left) != (EXTENSION_UNITS, ROUTING_TYPE, 1) {
        return None;
    }
    let address = address.first_chunk::<ADDRESS_LEN>()?;
    remove(packet, DESTINATION_AT, Ipv6Addr::from(*address))
}

/// The 24 bytes of the first extension header, if it is of this kind and so long.
fn first_header(bytes: &[u8], kind: u8) -> Option<&[u8; EXTENSION]> {
    let is_of_kind = bytes.first()? >> 4 == 6 && *bytes.get(NEXT_AT)? == kind;
    let header = bytes.get(FIXED..)?.first_chunk::<EXTENSION>()?;
    (is_of_kind && header[1] == EXTENSION_UNITS).then_some(header)
}

/// The home address in a header of destination options that has no other option.
fn home_address_option(header: &[u8; EXTENSION]) -> Option<Ipv6Addr> {
    let mut found = None;
    let mut options = header.get(2..)?;
    while let Some((&kind, rest)) = options.split_first() {
        if kind == PAD1 {
            options = rest;
            continue;
        }
        let (&length, rest) = rest.split_first()?;
        let (data, after) = rest.split_at_checked(usize::from(length))?;
        match kind {
            HOME_ADDRESS if found.is_none() => {
                let address: &[u8; ADDRESS_LEN] = data.try_into().ok()?;
                found = Some(Ipv6Addr::from(*address));
            }
            1 => {}
            _ => return None,
        }
        options = after;
    }
    found
}

/// Puts `header` behind the fixed one, and `address` into that.
fn insert(
    packet: &Packet,
    kind: u8,
    mut header: [u8; EXTENSION],
    address_at: usize,
    address: Ipv6Addr,
) -> Result<Packet, HeaderError> {
    let bytes = packet.to_bytes();
    let (fixed, rest) = bytes
        .split_first_chunk::<FIXED>()
        .ok_or(HeaderError::Family)?;
    if fixed[NEXT_AT] == HOP_BY_HOP {
        return Err(HeaderError::HopByHop);
    }
    let length = u16::try_from(rest.len() + EXTENSION).map_err(|_| HeaderError::TooLong)?;
    header[0] = fixed[NEXT_AT];
    let mut out = Vec::with_capacity(bytes.len() + EXTENSION);
    out.extend_from_slice(fixed);
    out[4..NEXT_AT].copy_from_slice(&length.to_be_bytes());
    out[NEXT_AT] = kind;
    out[address_at..address_at + ADDRESS_LEN].copy_from_slice(&address.octets());
    out.extend_from_slice(&header);
    out.extend_from_slice(rest);
    Ok(Packet::parse(Bytes::from(out))?)
}

/// Takes the first extension header of 24 bytes away, and puts `address` into the fixed one.
fn remove(packet: &Packet, address_at: usize, address: Ipv6Addr) -> Option<Packet> {
    let bytes = packet.bytes()?;
    let (fixed, rest) = bytes.split_first_chunk::<FIXED>()?;
    let (header, rest) = rest.split_first_chunk::<EXTENSION>()?;
    let mut out = Vec::with_capacity(FIXED + rest.len());
    out.extend_from_slice(fixed);
    out[4..NEXT_AT].copy_from_slice(&u16::try_from(rest.len()).ok()?.to_be_bytes());
    out[NEXT_AT] = header[0];
    out[address_at..address_at + ADDRESS_LEN].copy_from_slice(&address.octets());
    out.extend_from_slice(rest);
    Packet::parse(Bytes::from(out)).ok()
}
