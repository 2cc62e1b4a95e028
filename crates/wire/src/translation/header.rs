//! The fields of an IP header that a translation carries over.

use super::{DualAddress, Target, TranslationError};
use crate::checksum::Sum;
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of IPv4's header without options, of IPv6's header, and of its fragment header.
const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const FRAGMENT_LEN: usize = 8;

/// What a packet grows by at most: another header, a fragment header.
pub(super) const MOST_ADDED: usize = V6_LEN - V4_LEN + FRAGMENT_LEN;

/// The protocol number of IPv6's fragment header.
const FRAGMENT: u8 = 44;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// How much of a packet the bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Its beginning, as an ICMP error quotes it.
    Quoted,
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Fragment {
    id: u32,
    /// In units of 8 bytes.
    offset: u16,
    has_more: bool,
}

/// What an IP header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) addresses: [IpAddr; 2],
    pub(super) protocol: Protocol,
    traffic_class: u8,
    hop_limit: u8,
    pub(super) fragment: Option<Fragment>,
    /// What follows the header, as far as it is there.
    pub(super) payload: &'a [u8],
    /// How long that is by the header.
    pub(super) declared: usize,
}

/// The payload of which the header says that it is so long.
fn cut(rest: &[u8], declared: usize, extent: Extent) -> Option<&[u8]> {
    match extent {
        Extent::Whole => rest.get(..declared),
        Extent::Quoted => Some(rest.get(..declared).unwrap_or(rest)),
    }
}

impl<'a> Fields<'a> {
    /// Reads an IPv4 packet; nothing if it is none, or too short.
    pub(super) fn parse_v4(packet: &'a [u8], extent: Extent) -> Option<Self> {
        let header: &[u8; V4_LEN] = packet.first_chunk()?;
        let [
            first,
            traffic_class,
            l0,
            l1,
            i0,
            i1,
            f0,
            f1,
            hop_limit,
            protocol,
            ..,
        ] = *header;
        let length = usize::from(first & 0xf) * 4;
        if first >> 4 != 4 || length < V4_LEN {
            return None;
        }
        let declared = usize::from(u16::from_be_bytes([l0, l1])).checked_sub(length)?;
        let address = |at: usize| {
            let octets: [u8; 4] = *header.get(at..)?.first_chunk()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        };
        let flags = u16::from_be_bytes([f0, f1]);
        let fragment = Fragment {
            id: u32::from(u16::from_be_bytes([i0, i1])),
            offset: flags & OFFSET,
            has_more: flags & MORE_FRAGMENTS != 0,
        };
        let is_fragment = fragment.offset != 0 || fragment.has_more;
        Some(Self {
            addresses: [address(12)?, address(16)?],
            protocol: Protocol(protocol),
            traffic_class,
            hop_limit,
            fragment: Some(fragment).filter(|_| is_fragment),
            payload: cut(packet.get(length..)?, declared, extent)?,
            declared,
        })
    }

    /// Reads an IPv6 packet; nothing if it is none, or too short.
    pub(super) fn parse_v6(packet: &'a [u8], extent: Extent) -> Option<Self> {
        let (header, rest) = packet.split_first_chunk::<V6_LEN>()?;
        let [first, second, _, _, l0, l1, next, hop_limit, ..] = *header;
        if first >> 4 != 6 {
            return None;
        }
        let address = |at: usize| {
            let octets: [u8; 16] = *header.get(at..)?.first_chunk()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        };
        let declared = usize::from(u16::from_be_bytes([l0, l1]));
        let whole = Self {
            addresses: [address(8)?, address(24)?],
            protocol: Protocol(next),
            traffic_class: first << 4 | second >> 4,
            hop_limit,
            fragment: None,
            payload: cut(rest, declared, extent)?,
            declared,
        };
        if next == FRAGMENT {
            return whole.within_fragment();
        }
        Some(whole)
    }

    /// Reads the fragment header in front of the payload.
    fn within_fragment(self) -> Option<Self> {
        let (header, payload) = self.payload.split_first_chunk::<FRAGMENT_LEN>()?;
        let [next, _, o0, o1, i0, i1, i2, i3] = *header;
        let offset = u16::from_be_bytes([o0, o1]);
        let fragment = Fragment {
            id: u32::from_be_bytes([i0, i1, i2, i3]),
            offset: offset >> 3,
            has_more: offset & 1 == 1,
        };
        // One that holds all of its packet is none (RFC 6946).
        let is_fragment = fragment.offset != 0 || fragment.has_more;
        Some(Self {
            protocol: Protocol(next),
            fragment: Some(fragment).filter(|_| is_fragment),
            payload,
            declared: self.declared.checked_sub(FRAGMENT_LEN)?,
            ..self
        })
    }

    /// Whether the transport header lies here.
    pub(super) fn is_first(&self) -> bool {
        self.fragment.is_none_or(|fragment| fragment.offset == 0)
    }

    /// Writes the header of the other family, for a payload of this protocol and length.
    pub(super) fn write(
        &self,
        target: Target,
        hosts: [DualAddress; 2],
        (protocol, length): (Protocol, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TranslationError> {
        match target {
            Target::V4 => self.write_v4(hosts, (protocol, length), out),
            Target::V6 => self.write_v6(hosts, (protocol, length), out),
        }
    }

    fn write_v4(
        &self,
        [source, destination]: [DualAddress; 2],
        (protocol, length): (Protocol, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TranslationError> {
        let total = u16::try_from(V4_LEN + length).map_err(|_| TranslationError::TooLong)?;
        // RFC 7915, section 5.1.1: the lower half of the number.
        let (id, flags) = match self.fragment {
            Some(fragment) if fragment.has_more => (fragment.id, fragment.offset | MORE_FRAGMENTS),
            Some(fragment) => (fragment.id, fragment.offset),
            None => (0, DONT_FRAGMENT),
        };
        let [_, _, i0, i1] = id.to_be_bytes();
        let ([t0, t1], [f0, f1]) = (total.to_be_bytes(), flags.to_be_bytes());
        let [s0, s1, s2, s3] = source.v4.octets();
        let [d0, d1, d2, d3] = destination.v4.octets();
        let mut header: [u8; V4_LEN] = [
            0x45,
            self.traffic_class,
            t0,
            t1,
            i0,
            i1,
            f0,
            f1,
            self.hop_limit,
            protocol.0,
            0,
            0,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ];
        let checksum = Sum::default().bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum);
        out.extend_from_slice(&header);
        Ok(())
    }

    fn write_v6(
        &self,
        [source, destination]: [DualAddress; 2],
        (protocol, length): (Protocol, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TranslationError> {
        let added = self.fragment.map_or(0, |_| FRAGMENT_LEN);
        let length = u16::try_from(length + added).map_err(|_| TranslationError::TooLong)?;
        let next = self.fragment.map_or(protocol.0, |_| FRAGMENT);
        out.extend_from_slice(&[
            0x60 | self.traffic_class >> 4,
            self.traffic_class << 4,
            0,
            0,
        ]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[next, self.hop_limit]);
        out.extend_from_slice(&source.v6.octets());
        out.extend_from_slice(&destination.v6.octets());
        if let Some(fragment) = self.fragment {
            let offset = fragment.offset << 3 | u16::from(fragment.has_more);
            out.extend_from_slice(&[protocol.0, 0]);
            out.extend_from_slice(&offset.to_be_bytes());
            out.extend_from_slice(&fragment.id.to_be_bytes());
        }
        Ok(())
    }
}
