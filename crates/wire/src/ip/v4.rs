//! IPv4 headers (RFC 791).

use super::{Extent, Network, Protocol, address_v4};
use crate::IpHeader;
use crate::checksum::Sum;
use crate::error::{ParseError, Part};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// Length of a header without options.
pub(super) const HEADER_LEN: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

#[inline]
pub(super) fn parse(data: &[u8], extent: Extent) -> Result<Network, ParseError> {
    let truncated = |needed| ParseError::Truncated {
        part: Part::Ipv4,
        needed,
        available: data.len(),
    };
    let Some(fixed) = data.first_chunk::<HEADER_LEN>() else {
        return Err(truncated(HEADER_LEN));
    };
    let &[
        version_and_length,
        traffic_class,
        total_high,
        total_low,
        id_high,
        id_low,
        fragment_high,
        fragment_low,
        hop_limit,
        protocol,
        _,
        _,
        ref addresses @ ..,
    ] = fixed;
    let header_len = usize::from(version_and_length & 0x0f) * 4;
    if header_len < HEADER_LEN {
        return Err(ParseError::HeaderLength {
            part: Part::Ipv4,
            length: header_len,
        });
    }
    let Some(header) = data.get(..header_len) else {
        return Err(truncated(header_len));
    };
    let total_len = match usize::from(u16::from_be_bytes([total_high, total_low])) {
        0 => data.len(),
        total_len => total_len,
    };
    if total_len < header_len {
        return Err(ParseError::HeaderLength {
            part: Part::Ipv4,
            length: total_len,
        });
    }
    if extent == Extent::Whole {
        if total_len > data.len() {
            return Err(truncated(total_len));
        }
        if !Sum::default().bytes(header).is_intact() {
            return Err(ParseError::Ipv4Checksum);
        }
    }
    let fragment = u16::from_be_bytes([fragment_high, fragment_low]);
    let &[s0, s1, s2, s3, ref destination @ ..] = addresses;
    Ok(Network {
        header: IpHeader {
            source: address_v4(&[s0, s1, s2, s3]),
            destination: address_v4(destination),
            hop_limit,
            traffic_class,
            identification: u16::from_be_bytes([id_high, id_low]),
        },
        protocol: Protocol(protocol),
        fragment: fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0,
        first: fragment & FRAGMENT_OFFSET == 0,
        authenticated: false,
        transport_at: header_len,
        end: total_len.min(data.len()),
    })
}

/// Makes the header in front of a packet say that it carries `protocol`, and how long the packet is.
///
/// `header_len` is in bytes, options included. `None` if the packet is too long for its length field.
pub(crate) fn relabel(packet: &mut [u8], header_len: usize, protocol: Protocol) -> Option<()> {
    let total_len = u16::try_from(packet.len()).ok()?;
    let header = packet.get_mut(..header_len)?;
    header
        .get_mut(2..4)?
        .copy_from_slice(&total_len.to_be_bytes());
    *header.get_mut(9)? = protocol.0;
    header.get_mut(10..12)?.fill(0);
    let checksum = Sum::default().bytes(header).checksum();
    header.get_mut(10..12)?.copy_from_slice(&checksum);
    Some(())
}

/// Writes a header as Linux does for TCP: without options, not to be fragmented.
pub(super) fn write(
    ip: &IpHeader,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: Protocol,
    body_len: usize,
    out: &mut Vec<u8>,
) {
    // Zero for what does not fit, as in a super-segment of Linux.
    let total_len = u16::try_from(HEADER_LEN + body_len).unwrap_or(0);
    let mut header = [0; HEADER_LEN];
    header[0] = 0x45;
    header[1] = ip.traffic_class;
    header[2..4].copy_from_slice(&total_len.to_be_bytes());
    header[4..6].copy_from_slice(&ip.identification.to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = ip.hop_limit;
    header[9] = protocol.0;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let checksum = Sum::default().bytes(&header).checksum();
    header[10..12].copy_from_slice(&checksum);
    out.extend_from_slice(&header);
}
