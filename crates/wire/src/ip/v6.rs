//! IPv6 headers and extension headers (RFC 8200), jumbograms (RFC 2675).

use super::{Extent, Network, Protocol, address_v6};
use crate::IpHeader;
use crate::error::{ParseError, Part};
use alloc::vec::Vec;
use core::net::Ipv6Addr;

const HEADER_LEN: usize = 40;
/// A hop-by-hop header that holds a jumbo payload option and nothing else.
const JUMBO_HEADER_LEN: usize = 8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;

const OPTION_PAD1: u8 = 0;
const OPTION_PADN: u8 = 1;
const OPTION_JUMBO: u8 = 0xc2;

/// Makes the header in front of a packet say that it carries another protocol, and how long the packet is.
///
/// `None` if there are extension headers, or the packet is too long for its length field.
pub(crate) fn relabel(
    packet: &mut [u8],
    header_len: usize,
    [was, protocol]: [Protocol; 2],
) -> Option<()> {
    let payload_len = u16::try_from(packet.len().checked_sub(HEADER_LEN)?).ok()?;
    let next = packet.get_mut(6).filter(|next| **next == was.0)?;
    if header_len != HEADER_LEN {
        return None;
    }
    *next = protocol.0;
    packet
        .get_mut(4..6)?
        .copy_from_slice(&payload_len.to_be_bytes());
    Some(())
}

#[inline]
pub(super) fn parse(data: &[u8], extent: Extent) -> Result<Network, ParseError> {
    let truncated = |needed| ParseError::Truncated {
        part: Part::Ipv6,
        needed,
        available: data.len(),
    };
    let Some(fixed) = data.first_chunk::<HEADER_LEN>() else {
        return Err(truncated(HEADER_LEN));
    };
    let &[
        v0,
        v1,
        _,
        _,
        len_high,
        len_low,
        next,
        hop_limit,
        ref addresses @ ..,
    ] = fixed;
    let Some((source, destination)) = addresses.split_first_chunk::<16>() else {
        return Err(truncated(HEADER_LEN));
    };
    let Some(destination) = destination.first_chunk::<16>() else {
        return Err(truncated(HEADER_LEN));
    };
    let payload_len = match usize::from(u16::from_be_bytes([len_high, len_low])) {
        0 if next == NO_NEXT_HEADER => 0,
        0 => jumbo_len(data, next).unwrap_or(data.len() - HEADER_LEN),
        payload_len => payload_len,
    };
    let declared = HEADER_LEN.saturating_add(payload_len);
    if extent == Extent::Whole && declared > data.len() {
        return Err(truncated(declared));
    }
    let end = declared.min(data.len());
    let mut network = Network {
        header: IpHeader {
            source: address_v6(source),
            destination: address_v6(destination),
            hop_limit,
            traffic_class: v0 << 4 | v1 >> 4,
            identification: 0,
        },
        protocol: Protocol(next),
        fragment: false,
        first: true,
        authenticated: false,
        transport_at: HEADER_LEN,
        end,
    };
    match network.skip_extensions(data.get(..end).unwrap_or(data)) {
        Err(error) if extent == Extent::Whole => Err(error),
        // What is quoted ends within the extension headers: their kind is all that is known.
        _ => Ok(network),
    }
}

impl Network {
    /// Walks from the fixed header to the first header that is none of the known extensions.
    #[inline]
    fn skip_extensions(&mut self, packet: &[u8]) -> Result<(), ParseError> {
        loop {
            let rest = packet.get(self.transport_at..).unwrap_or_default();
            let truncated = |needed| ParseError::Truncated {
                part: Part::Extension,
                needed,
                available: rest.len(),
            };
            let fixed = |at: usize| rest.get(at).copied().map(usize::from).ok_or(truncated(8));
            let length = match self.protocol.0 {
                // Anywhere else a hop-by-hop header is an error (RFC 8200, section 4.1).
                HOP_BY_HOP if self.transport_at == HEADER_LEN => (fixed(1)? + 1) * 8,
                // Not yet at its final destination, see the module.
                ROUTING if fixed(3)? != 0 => return Ok(()),
                ROUTING | DESTINATION_OPTIONS => (fixed(1)? + 1) * 8,
                AUTHENTICATION => (fixed(1)? + 2) * 4,
                FRAGMENT => 8,
                _ => return Ok(()),
            };
            let Some((header, _)) = rest.split_at_checked(length) else {
                return Err(truncated(length));
            };
            match self.protocol.0 {
                AUTHENTICATION => self.authenticated = true,
                FRAGMENT => {
                    if let &[_, _, high, low, ..] = header {
                        let field = u16::from_be_bytes([high, low]);
                        // Offset 0 and no more: a whole packet (RFC 6946, section 3).
                        self.fragment = field & 0xfff9 != 0;
                        self.first = field & 0xfff8 == 0;
                    }
                }
                _ => {}
            }
            self.protocol = Protocol(header.first().copied().unwrap_or(NO_NEXT_HEADER));
            self.transport_at += length;
            if self.fragment {
                // What follows belongs to the whole packet, or is not even a header.
                return Ok(());
            }
        }
    }
}

/// The jumbo payload length of a packet whose payload length is zero.
fn jumbo_len(data: &[u8], next: u8) -> Option<usize> {
    let at = jumbo_option(data, next)?;
    let length = data.get(at + 2..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Where the jumbo payload option of a packet lies.
fn jumbo_option(data: &[u8], next: u8) -> Option<usize> {
    if next != HOP_BY_HOP {
        return None;
    }
    let length = (usize::from(*data.get(HEADER_LEN + 1)?) + 1) * 8;
    let end = HEADER_LEN + length;
    let mut at = HEADER_LEN + 2;
    while at < end {
        match *data.get(at)? {
            OPTION_PAD1 => at += 1,
            kind => {
                let length = *data.get(at + 1)?;
                // It must end within the header, as nothing behind it is an option.
                if kind == OPTION_JUMBO && length == 4 && at + 6 <= end {
                    return Some(at);
                }
                at += 2 + usize::from(length);
            }
        }
    }
    None
}

/// Replaces the length in the jumbo payload option, if `packet` has one.
pub(crate) fn write_jumbo_len(packet: &mut [u8], length: u32) {
    let Some(&next) = packet.get(6) else { return };
    let Some(at) = jumbo_option(packet, next) else {
        return;
    };
    if let Some(field) = packet.get_mut(at + 2..at + 6) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Takes the jumbo payload option out of a packet's headers, which start `headers`: what is left
/// is right for a packet that needs none.
pub(crate) fn strip_jumbo(headers: &mut Vec<u8>) {
    let Some(&next) = headers.get(6) else { return };
    let Some(at) = jumbo_option(headers, next) else {
        return;
    };
    let alone = at == HEADER_LEN + 2 && headers.get(HEADER_LEN + 1) == Some(&0);
    if alone && headers.len() >= HEADER_LEN + JUMBO_HEADER_LEN {
        headers[6] = headers[HEADER_LEN];
        headers.drain(HEADER_LEN..HEADER_LEN + JUMBO_HEADER_LEN);
    } else if let Some(option) = headers.get_mut(at..at + 6) {
        option.copy_from_slice(&[OPTION_PADN, 4, 0, 0, 0, 0]);
    }
}

pub(super) fn headers_len(body_len: usize) -> usize {
    if is_jumbo(body_len) {
        HEADER_LEN + JUMBO_HEADER_LEN
    } else {
        HEADER_LEN
    }
}

fn is_jumbo(body_len: usize) -> bool {
    body_len > usize::from(u16::MAX)
}

pub(super) fn write(
    ip: &IpHeader,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: Protocol,
    body_len: usize,
    out: &mut Vec<u8>,
) {
    let jumbo = is_jumbo(body_len);
    out.push(0x60 | ip.traffic_class >> 4);
    out.push(ip.traffic_class << 4);
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&u16::try_from(body_len).unwrap_or(0).to_be_bytes());
    out.push(if jumbo { HOP_BY_HOP } else { protocol.0 });
    out.push(ip.hop_limit);
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
    if jumbo {
        let length = u32::try_from(JUMBO_HEADER_LEN + body_len).unwrap_or(u32::MAX);
        out.extend_from_slice(&[protocol.0, 0, OPTION_JUMBO, 4]);
        out.extend_from_slice(&length.to_be_bytes());
    }
}
