//! Joining TCP segments that follow each other to super-segments, which a host's stack takes in one piece.
//!
//! The inverse of [`segment`](crate::segment), and what Linux calls GRO. A segment is joined only if it
//! differs from the one before in what differs between the segments of one super-segment: its sequence
//! number, its length if it is the last, PSH or FIN at the end. Its checksum has to be right: joined, it is
//! gone. IPv4 segments have DF set, or their identification would mean something (RFC 6864).

use crate::checksum::{Sum, pseudo_header};
use crate::ip::Protocol;
use crate::packet::{Body, Captured};
use crate::parse::payload_at;
use crate::tcp::TcpOptions;
use crate::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, tcp};
use alloc::vec::Vec;
use core::net::IpAddr;

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const DONT_FRAGMENT: u8 = 0x40;
/// As much as the length fields of IP say.
const MAX_LEN: usize = 65_535;

/// A TCP segment that is longer than a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SuperSegment<'b> {
    /// From the IP header on. TCP's checksum field has the sum of the pseudo-header alone, as for a
    /// network card.
    pub bytes: &'b [u8],
    /// Where the TCP header starts, in bytes.
    pub transport_at: u16,
    /// Where the payload starts, in bytes.
    pub payload_at: u16,
    /// Bytes of payload of each segment but the last.
    pub segment_size: u16,
}

/// What comes out of a [`Joiner`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Joined<'b> {
    /// A packet as it came.
    Packet(Packet),
    /// Segments that follow each other.
    SuperSegment(SuperSegment<'b>),
}

/// Joins segments that are pushed one after another. Packets come out in the order in which they went in.
#[derive(Debug, Default)]
pub struct Joiner {
    first: Option<First>,
    /// The super-segment under way; empty while there is only a first segment.
    bytes: Vec<u8>,
}

/// The segment that the next one may follow.
#[derive(Debug)]
struct First {
    packet: Packet,
    captured: Captured,
    payload_at: usize,
    /// Its payload in bytes.
    segment_size: usize,
    next_seq: SeqNumber,
    /// Joined, no other segment follows.
    is_closed: bool,
}

impl Packet {
    /// This TCP segment and `next`, which follows it, in one segment with the header of `next`.
    ///
    /// `None` unless both have payload and right checksums, `next` begins where this one ends, and their headers differ
    /// in numbers, window and timestamps only: no flags but ACK and PSH, no options but timestamps.
    #[must_use]
    pub fn joined_with(&self, next: &Self) -> Option<Self> {
        let (first, second) = (self.tcp()?, next.tcp()?);
        let follows = first.seq + self.header.payload_len == second.seq
            && (first.source_port, first.destination_port)
                == (second.source_port, second.destination_port)
            && [self, next].into_iter().all(is_plain_data)
            && next.header.ip
                == IpHeader {
                    identification: next.header.ip.identification,
                    ..self.header.ip
                };
        if !follows {
            return None;
        }
        let tcp = TcpHeader {
            seq: first.seq,
            flags: first.flags | second.flags,
            ..second.clone()
        };
        match (&self.body, &next.body) {
            (Body::Captured(_), Body::Captured(_)) => {
                let payload = [self.payload()?, next.payload()?].concat();
                Some(Self::tcp_segment(next.header.ip, tcp, &payload))
            }
            (Body::Modelled(one), Body::Modelled(other)) => {
                let payload_len = self.header.payload_len;
                let follows = *other
                    == ModelledPayload {
                        offset: one.offset + u64::from(payload_len),
                        ..*one
                    };
                let payload_len = payload_len + next.header.payload_len;
                follows.then(|| Self::modelled_tcp(next.header.ip, tcp, *one, payload_len))
            }
            _ => None,
        }
    }
}

/// Whether the packet is a TCP segment with payload, right checksums and headers without anything that belongs to it
/// alone.
fn is_plain_data(packet: &Packet) -> bool {
    let Some(tcp) = packet.tcp() else {
        return false;
    };
    let ip_len = match packet.header.ip.source {
        IpAddr::V4(_) => IPV4_HEADER,
        IpAddr::V6(_) => IPV6_HEADER,
    };
    let alone = TcpOptions {
        timestamps: tcp.options.timestamps,
        ..TcpOptions::default()
    };
    let header_len = ip_len + tcp::HEADER_LEN + alone.emitted_len();
    let is_protected = matches!(&packet.body, Body::Captured(captured) if captured.authenticated);
    packet.header.payload_len > 0
        && (tcp.flags == TcpFlags::ACK || tcp.flags == TcpFlags::ACK | TcpFlags::PSH)
        && tcp.options == alone
        // There are no options that are not read, nor extension headers.
        && packet.header.total_len as usize == header_len + packet.header.payload_len as usize
        && !is_protected
        && !packet.has_partial_checksum()
        && packet.checksums_ok()
}

impl Joiner {
    /// Takes a packet; `out` gets what it does not join.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn push<E>(
        &mut self,
        packet: Packet,
        mut out: impl FnMut(Joined<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.join(&packet) {
            return Ok(());
        }
        self.finish(&mut out)?;
        match First::of(&packet) {
            Some(first) => self.first = Some(first),
            None => out(Joined::Packet(packet))?,
        }
        Ok(())
    }

    /// Nothing more comes for now; `out` gets what is left.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn finish<E>(&mut self, mut out: impl FnMut(Joined<'_>) -> Result<(), E>) -> Result<(), E> {
        let Some(first) = self.first.take() else {
            return Ok(());
        };
        if self.bytes.is_empty() {
            return out(Joined::Packet(first.packet));
        }
        first.complete(&mut self.bytes);
        let said = out(Joined::SuperSegment(SuperSegment {
            bytes: &self.bytes,
            // Headers and a segment are shorter than a packet.
            transport_at: first.captured.transport_at as u16,
            payload_at: first.payload_at as u16,
            segment_size: first.segment_size as u16,
        }));
        self.bytes.clear();
        said
    }

    fn join(&mut self, packet: &Packet) -> bool {
        let Some(first) = &mut self.first else {
            return false;
        };
        let payload = packet.header.payload_len as usize;
        let length = match self.bytes.len() {
            0 => first.captured.bytes.len(),
            length => length,
        };
        let (Some(tcp), Body::Captured(next)) = (packet.tcp(), &packet.body) else {
            return false;
        };
        let follows = !first.is_closed
            && tcp.seq == first.next_seq
            && payload > 0
            && payload <= first.segment_size
            && length + payload <= MAX_LEN
            && first.has_headers_of(next, packet.header.total_len as usize - payload)
            && packet.checksums_ok();
        if !follows {
            return false;
        }
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&first.captured.bytes);
        }
        let start = packet.header.total_len as usize - payload;
        let data = next.bytes.get(start..).unwrap_or_default();
        self.bytes.extend_from_slice(data);
        first.next_seq += packet.header.payload_len;
        let is_last = TcpFlags::PSH | TcpFlags::FIN;
        first.is_closed = payload < first.segment_size || tcp.flags.intersects(is_last);
        let at = first.captured.transport_at as usize + 13;
        self.bytes[at] |= tcp.flags.0 & is_last.0;
        true
    }
}

impl First {
    /// `None` if no segment can follow the packet.
    fn of(packet: &Packet) -> Option<Self> {
        let Body::Captured(captured) = &packet.body else {
            return None;
        };
        let tcp = packet.tcp()?;
        let payload_at = payload_at(&packet.header, captured.transport_at as usize);
        let segment_size = packet.header.payload_len as usize;
        let is_plain = tcp.flags == TcpFlags::ACK && tcp.urgent == 0 && !captured.authenticated;
        let is_whole = captured.bytes.len() == packet.header.total_len as usize;
        let has_plain_ip = match packet.header.ip.source {
            IpAddr::V4(_) => {
                let header = captured.bytes.get(..IPV4_HEADER)?;
                captured.transport_at as usize == IPV4_HEADER
                    && header[6] & DONT_FRAGMENT != 0
                    && Sum::default().bytes(header).is_intact()
            }
            IpAddr::V6(_) => captured.transport_at as usize == IPV6_HEADER,
        };
        let can_be_first = is_plain
            && is_whole
            && has_plain_ip
            && (1..MAX_LEN).contains(&segment_size)
            && packet.checksums_ok();
        can_be_first.then(|| Self {
            packet: packet.clone(),
            captured: captured.clone(),
            payload_at,
            segment_size,
            next_seq: tcp.seq + packet.header.payload_len,
            is_closed: false,
        })
    }

    /// Whether the headers of another packet say the same but for what may differ. They end at
    /// `payload_at`.
    fn has_headers_of(&self, other: &Captured, payload_at: usize) -> bool {
        let transport_at = self.captured.transport_at as usize;
        let is_alike = other.transport_at == self.captured.transport_at
            && payload_at == self.payload_at
            && !other.authenticated;
        if !is_alike {
            return false;
        }
        let ours = self.captured.bytes.get(..payload_at).unwrap_or_default();
        let Some(theirs) = other.bytes.get(..payload_at) else {
            return false;
        };
        let (our_ip, our_tcp) = ours.split_at(transport_at);
        let (their_ip, their_tcp) = theirs.split_at(transport_at);
        let has_same_ip = match transport_at {
            // All but length, identification and checksum.
            IPV4_HEADER => {
                our_ip[..2] == their_ip[..2]
                    && our_ip[6..10] == their_ip[6..10]
                    && our_ip[12..] == their_ip[12..]
            }
            // All but the length.
            _ => our_ip[..4] == their_ip[..4] && our_ip[6..] == their_ip[6..],
        };
        let may_differ = (TcpFlags::PSH | TcpFlags::FIN).0;
        // All but sequence number, these flags and the checksum.
        has_same_ip
            && our_tcp[..4] == their_tcp[..4]
            && our_tcp[8..13] == their_tcp[8..13]
            && our_tcp[13] == their_tcp[13] & !may_differ
            && our_tcp[14..16] == their_tcp[14..16]
            && our_tcp[18..] == their_tcp[18..]
    }

    /// Writes the lengths and checksums of the super-segment `bytes`.
    fn complete(&self, bytes: &mut [u8]) {
        let transport_at = self.captured.transport_at as usize;
        let ip = self.packet.header.ip;
        let length = bytes.len();
        match ip.source {
            IpAddr::V4(_) => {
                // At most `MAX_LEN`.
                bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                bytes[10..12].fill(0);
                let checksum = Sum::default().bytes(&bytes[..transport_at]).checksum();
                bytes[10..12].copy_from_slice(&checksum);
            }
            IpAddr::V6(_) => {
                let payload = (length - IPV6_HEADER) as u16;
                bytes[4..6].copy_from_slice(&payload.to_be_bytes());
            }
        }
        let pseudo = pseudo_header(
            ip.source,
            ip.destination,
            Protocol::TCP,
            length - transport_at,
        );
        let at = transport_at + tcp::CHECKSUM_AT;
        // The sum itself, where a finished checksum is its complement.
        let sum = pseudo.checksum().map(|byte| !byte);
        bytes[at..at + 2].copy_from_slice(&sum);
    }
}

impl Packet {
    /// A segment that a network card has put together, as one for a host's stack; `None` if it is shorter
    /// than `mtu` or no such segment. Its bytes are copied to `buffer`.
    ///
    /// Of what size its segments were is not known: they fit in `mtu`.
    pub fn as_super_segment<'b>(
        &self,
        mtu: u32,
        buffer: &'b mut Vec<u8>,
    ) -> Option<SuperSegment<'b>> {
        let Body::Captured(captured) = &self.body else {
            return None;
        };
        let tcp = self.tcp()?;
        let payload_at = payload_at(&self.header, captured.transport_at as usize);
        let size = (mtu as usize).checked_sub(payload_at)?;
        let unfit = TcpFlags::SYN | TcpFlags::RST | TcpFlags::URG;
        let is_fit = self.header.total_len > mtu
            && self.header.total_len as usize <= MAX_LEN
            && captured.bytes.len() == self.header.total_len as usize
            && size > 0
            && !captured.authenticated
            && !tcp.flags.intersects(unfit)
            && (self.has_partial_checksum() || self.checksums_ok());
        if !is_fit {
            return None;
        }
        buffer.clear();
        buffer.extend_from_slice(&captured.bytes);
        let first = First {
            packet: self.clone(),
            captured: captured.clone(),
            payload_at,
            segment_size: size,
            next_seq: tcp.seq,
            is_closed: true,
        };
        first.complete(buffer);
        Some(SuperSegment {
            bytes: buffer,
            transport_at: captured.transport_at as u16,
            payload_at: payload_at as u16,
            segment_size: size as u16,
        })
    }

    /// The packet with its transport's checksum, which was left to a network card.
    #[must_use]
    pub fn with_checksum(self) -> Self {
        let mut edit = self.edit();
        edit.fill_checksums();
        edit.finish()
    }

    /// The packet with its transport's checksum, if that [was left](Self::has_partial_checksum) to a network
    /// card. A packet whose checksum is right, or wrong in any other way, stays as it is, and so does one with
    /// a damaged IP header.
    #[must_use]
    pub fn with_completed_checksum(self) -> Self {
        // A packet that waits for nothing can look as if it did; its checksum is right then.
        match self.has_partial_checksum() && !self.checksums_ok() && self.has_intact_header() {
            true => self.with_checksum(),
            false => self,
        }
    }

    /// Whether the checksum of the IPv4 header is right; IPv6 has none.
    fn has_intact_header(&self) -> bool {
        let Body::Captured(captured) = &self.body else {
            return true;
        };
        let header = captured.bytes.get(..captured.transport_at as usize);
        self.header.ip.source.is_ipv6()
            || header.is_some_and(|header| Sum::default().bytes(header).is_intact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SegmentError;
    use crate::{IpHeader, ModelledPayload, TcpHeader};
    use bytes::Bytes;
    use core::convert::Infallible;
    use core::net::{Ipv4Addr, Ipv6Addr};

    /// A segment with bytes, as a host with DF sends it.
    fn whole(source: IpAddr, destination: IpAddr, length: u32, flags: TcpFlags) -> Packet {
        let header = TcpHeader {
            source_port: 80,
            destination_port: 4000,
            seq: SeqNumber(u32::MAX - 100),
            ack: SeqNumber(7),
            flags,
            window: 1000,
            ..TcpHeader::default()
        };
        let payload = ModelledPayload::default();
        let ip = IpHeader::new(source, destination);
        let modelled = Packet::modelled_tcp(ip, header, payload, length);
        let mut bytes = modelled.to_bytes().to_vec();
        if source.is_ipv4() {
            bytes[6] = DONT_FRAGMENT;
        }
        let packet = Packet::parse(Bytes::from(bytes)).expect("a packet");
        packet.with_checksum()
    }

    const V4: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)),
    ];
    const V6: [IpAddr; 2] = [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
    ];

    /// What comes out for these packets: the bytes of each, and the size of its segments.
    fn joined(packets: impl IntoIterator<Item = Packet>) -> Vec<(Vec<u8>, Option<u16>)> {
        let mut joiner = Joiner::default();
        let mut all = Vec::new();
        let mut note = |one: Joined<'_>| {
            all.push(match one {
                Joined::Packet(packet) => (packet.to_bytes().to_vec(), None),
                Joined::SuperSegment(one) => (one.bytes.to_vec(), Some(one.segment_size)),
            });
            Ok::<_, Infallible>(())
        };
        for packet in packets {
            joiner.push(packet, &mut note).expect("infallible");
        }
        joiner.finish(&mut note).expect("infallible");
        all
    }

    fn segments(packet: &Packet, size: u16) -> Result<Vec<Packet>, SegmentError> {
        Ok(packet.segment_by(size)?.collect())
    }

    #[test]
    fn what_is_cut_is_joined_again_and_cut_again() {
        for [source, destination] in [V4, V6] {
            for flags in [TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH] {
                let whole = whole(source, destination, 5_000, flags);
                let cut = segments(&whole, 1_400).expect("TCP");
                assert_eq!(cut.len(), 4);
                let all = joined(cut.clone());
                let [(bytes, Some(1_400))] = &all[..] else {
                    panic!("{all:?}");
                };
                let super_segment = Packet::parse(Bytes::from(bytes.clone())).expect("a packet");
                assert!(super_segment.has_partial_checksum());
                assert_eq!(segments(&super_segment, 1_400).expect("TCP"), cut);
            }
        }
    }

    #[test]
    fn what_differs_is_not_joined_and_stays_in_order() {
        let [source, destination] = V4;
        let cut = segments(&whole(source, destination, 2_800, TcpFlags::ACK), 1_400).expect("TCP");
        let edit = |packet: &Packet, change: &dyn Fn(&mut crate::edit::Edit)| {
            let mut edit = packet.clone().edit();
            change(&mut edit);
            edit.finish()
        };
        let changed = [
            edit(&cut[1], &|edit| {
                edit.set_window(999).expect("TCP");
            }),
            edit(&cut[1], &|edit| {
                edit.set_ack(SeqNumber(8)).expect("TCP");
            }),
            edit(&cut[1], &|edit| {
                edit.set_seq(SeqNumber(8)).expect("TCP");
            }),
            edit(&cut[1], &|edit| {
                edit.decrement_hop_limit().expect("hops");
            }),
            edit(&cut[1], &|edit| {
                edit.set_source_port(81).expect("TCP");
            }),
        ];
        for second in changed {
            let both = [cut[0].clone(), second];
            let expected: Vec<_> = both
                .iter()
                .map(|one| (one.to_bytes().to_vec(), None))
                .collect();
            assert_eq!(joined(both), expected);
        }
    }

    #[test]
    fn a_damaged_segment_is_not_joined() {
        let [source, destination] = V4;
        let cut = segments(&whole(source, destination, 2_800, TcpFlags::ACK), 1_400).expect("TCP");
        let mut bytes = cut[1].to_bytes().to_vec();
        *bytes.last_mut().expect("bytes") ^= 1;
        let damaged = Packet::parse(Bytes::from(bytes)).expect("a packet");
        let all = joined([cut[0].clone(), damaged.clone()]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].0, damaged.to_bytes());
    }

    #[test]
    fn nothing_follows_a_short_or_pushed_segment_and_nothing_grows_too_long() {
        let [source, destination] = V4;
        let long = whole(source, destination, 60_000, TcpFlags::ACK);
        let cut = segments(&long, 1_400).expect("TCP");
        let twice = whole(source, destination, 1_000, TcpFlags::ACK | TcpFlags::PSH);
        let all = joined([cut[0].clone(), twice.clone()]);
        assert_eq!(all.len(), 2, "the sequence number is another one");
        let all = joined(cut.iter().cloned().chain([cut[0].clone()]));
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|(bytes, _)| bytes.len() <= MAX_LEN));
    }

    #[test]
    fn two_segments_become_one_with_the_header_of_the_second() {
        for [source, destination] in [V4, V6] {
            let long = whole(source, destination, 1_500, TcpFlags::ACK | TcpFlags::PSH);
            let cut = segments(&long, 1_000).expect("TCP");
            let one = cut[0].joined_with(&cut[1]).expect("they follow each other");
            assert_eq!(one.tcp(), long.tcp());
            assert_eq!(one.payload(), long.payload());
            assert!(one.checksums_ok());
            assert_eq!(cut[1].joined_with(&cut[0]), None);
            assert_eq!(cut[0].joined_with(&cut[0]), None);
        }
        let [source, destination] = V4;
        let modelled = |offset: u32| {
            let header = TcpHeader {
                seq: SeqNumber(offset),
                flags: TcpFlags::ACK,
                ..TcpHeader::default()
            };
            let payload = ModelledPayload {
                stream: 3,
                offset: offset.into(),
            };
            Packet::modelled_tcp(IpHeader::new(source, destination), header, payload, 10)
        };
        let one = modelled(5).joined_with(&modelled(15)).expect("they follow");
        assert_eq!(one.header().payload_len, 20);
        assert_eq!(one.modelled(), modelled(5).modelled());
        assert_eq!(modelled(5).joined_with(&modelled(16)), None);
    }

    #[test]
    fn what_belongs_to_one_segment_alone_is_not_joined() {
        let [source, destination] = V4;
        let cut = segments(&whole(source, destination, 2_800, TcpFlags::ACK), 1_400).expect("TCP");
        let change = |flags| {
            let mut edit = cut[1].clone().edit();
            edit.set_flags(flags).expect("TCP");
            edit.finish()
        };
        for flag in [TcpFlags::FIN, TcpFlags::SYN, TcpFlags::RST, TcpFlags::URG] {
            assert_eq!(cut[0].joined_with(&change(TcpFlags::ACK | flag)), None);
        }
        let mut bytes = cut[1].to_bytes().to_vec();
        *bytes.last_mut().expect("bytes") ^= 1;
        let damaged = Packet::parse(Bytes::from(bytes)).expect("a packet");
        assert_eq!(cut[0].joined_with(&damaged), None, "its checksum is wrong");
    }

    #[test]
    fn what_a_card_has_put_together_is_a_super_segment() {
        let [source, destination] = V6;
        let long = whole(source, destination, 5_000, TcpFlags::ACK);
        let mut buffer = Vec::new();
        assert_eq!(long.as_super_segment(9_000, &mut buffer), None);
        let one = long.as_super_segment(1_440, &mut buffer).expect("long");
        assert_eq!(one.segment_size, 1_440 - 60);
        let again = Packet::parse(Bytes::copy_from_slice(one.bytes)).expect("a packet");
        assert_eq!(again.with_checksum(), long);
    }
}
