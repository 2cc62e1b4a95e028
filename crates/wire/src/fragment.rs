//! Cuts an IPv4 packet into fragments (RFC 791, section 3.2), as a router does in front of a link
//! with a smaller MTU, where the sender has not forbidden it; and an IPv6 packet, as its sender does
//! (RFC 8200, section 4.5).

use crate::Packet;
use crate::checksum::Sum;
use crate::packet::Body;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;

/// Why a packet is not cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FragmentError {
    /// The sender wants to be told instead: IPv4 with DF, or IPv6 (RFC 8200, section 5). Packets
    /// without bytes are such, too, and fragments of what is longer than a packet can be.
    #[error("the packet may not be fragmented on its way")]
    Forbidden,
    /// No payload fits behind the header.
    #[error("a header of {header} bytes leaves no room for payload")]
    NoRoom {
        /// Length of the IP header in bytes.
        header: u32,
    },
}

const FIXED: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
/// Offsets count in units of eight bytes.
const OFFSET: u16 = 0x1fff;
const UNIT: usize = 8;
const FIXED_V6: usize = 40;
const NEXT_HEADER_V6_AT: usize = 6;
const FRAGMENT_HEADER: u8 = 44;
const FRAGMENT_HEADER_LEN: usize = 8;
/// Hop-by-hop options, routing, fragment and destination options: these may have to come before a fragment header.
const FIRST_HEADERS_V6: [u8; 4] = [0, 43, FRAGMENT_HEADER, 60];
/// In an option's kind: every fragment carries it.
const COPIED: u8 = 0x80;

impl Packet {
    /// Cuts an IPv4 packet, which may be a fragment itself, into fragments of at most `mtu` bytes, IP
    /// header included; one that fits is given back as it is. They bear the packet's identification,
    /// or `identification` where that is zero, which says nothing.
    ///
    /// # Errors
    ///
    /// See [`FragmentError`].
    pub fn fragment(&self, mtu: u32, identification: u16) -> Result<Vec<Self>, FragmentError> {
        if self.total_len() <= mtu {
            return Ok(Vec::from([self.clone()]));
        }
        let (Body::Captured(captured), IpAddr::V4(_)) = (&self.body, self.header.ip.source) else {
            return Err(FragmentError::Forbidden);
        };
        let bytes = &captured.bytes;
        // Parsed: a whole header is there.
        let header_len = usize::from(bytes[0] & 0xf) * 4;
        let (header, payload) = bytes.split_at(header_len);
        let field = u16::from_be_bytes([header[6], header[7]]);
        // What is longer than a packet can be stands for several, and what ends beyond one is of none.
        let end = header_len + usize::from(field & OFFSET) * UNIT + payload.len();
        if field & DONT_FRAGMENT != 0 || end > usize::from(u16::MAX) {
            return Err(FragmentError::Forbidden);
        }
        let room = (mtu as usize).saturating_sub(header_len) / UNIT * UNIT;
        if room == 0 {
            return Err(FragmentError::NoRoom {
                header: header_len as u32,
            });
        }
        let identification = match self.header.ip.identification {
            0 => identification,
            own => own,
        };
        let mut pieces = payload.chunks(room).enumerate().peekable();
        let mut fragments = Vec::new();
        while let Some((number, piece)) = pieces.next() {
            // Both fit: the whole packet's did.
            let offset = (field & OFFSET) + (number * room / UNIT) as u16;
            let more = match pieces.peek() {
                Some(_) => MORE_FRAGMENTS,
                None => field & MORE_FRAGMENTS,
            };
            let mut out = Vec::with_capacity(header_len + piece.len());
            match number {
                0 => out.extend_from_slice(header),
                _ => write_copied(header, &mut out),
            }
            complete(
                &mut out,
                piece.len(),
                identification,
                offset & OFFSET | more,
            );
            out.extend_from_slice(piece);
            let fragment = Self::parse(Bytes::from(out));
            // A header of ours, with its checksum.
            fragments.extend(fragment);
        }
        Ok(fragments)
    }
}

impl Packet {
    /// Cuts an IPv6 packet of this host's own into fragments of at most `mtu` bytes, IP header included; one
    /// that fits is given back as it is.
    ///
    /// # Errors
    ///
    /// [`FragmentError::Forbidden`] of IPv4, of a fragment, of what is too long, and of extension headers that have
    /// to be in each fragment; [`FragmentError::NoRoom`].
    pub fn fragment_at_source(
        &self,
        mtu: u32,
        identification: u32,
    ) -> Result<Vec<Self>, FragmentError> {
        if self.total_len() <= mtu {
            return Ok(Vec::from([self.clone()]));
        }
        let (Body::Captured(captured), IpAddr::V6(_)) = (&self.body, self.header.ip.source) else {
            return Err(FragmentError::Forbidden);
        };
        // Parsed: a whole header is there.
        let (header, payload) = captured.bytes.split_at(FIXED_V6);
        let next_header = header[NEXT_HEADER_V6_AT];
        // The last offset that the field can bear is followed by one unit.
        let is_too_long = payload.len() > usize::from(u16::MAX);
        if FIRST_HEADERS_V6.contains(&next_header) || is_too_long {
            return Err(FragmentError::Forbidden);
        }
        let room = (mtu as usize).saturating_sub(FIXED_V6 + FRAGMENT_HEADER_LEN) / UNIT * UNIT;
        if room == 0 {
            return Err(FragmentError::NoRoom {
                header: (FIXED_V6 + FRAGMENT_HEADER_LEN) as u32,
            });
        }
        let pieces = payload.chunks(room);
        let last = pieces.len() - 1;
        let fragments = pieces.enumerate().filter_map(|(number, piece)| {
            // Units of eight bytes, three bits further up.
            let field = (number * room) as u16 | u16::from(number != last);
            let mut out = Vec::with_capacity(FIXED_V6 + FRAGMENT_HEADER_LEN + piece.len());
            out.extend_from_slice(header);
            let length = (FRAGMENT_HEADER_LEN + piece.len()) as u16;
            out[4..6].copy_from_slice(&length.to_be_bytes());
            out[NEXT_HEADER_V6_AT] = FRAGMENT_HEADER;
            out.extend_from_slice(&[next_header, 0]);
            out.extend_from_slice(&field.to_be_bytes());
            out.extend_from_slice(&identification.to_be_bytes());
            out.extend_from_slice(piece);
            // Headers of ours.
            Self::parse(Bytes::from(out)).ok()
        });
        Ok(fragments.collect())
    }
}

/// The header of a later fragment: of the options only those that every fragment carries.
fn write_copied(header: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header[..FIXED]);
    let mut options = &header[FIXED..];
    loop {
        options = match options {
            // No operation.
            [1, rest @ ..] => rest,
            &[kind, length, ..] if kind > 1 => {
                let length = usize::from(length).max(2);
                let Some((option, rest)) = options.split_at_checked(length) else {
                    break;
                };
                if kind & COPIED != 0 {
                    out.extend_from_slice(option);
                }
                rest
            }
            _ => break,
        };
    }
    out.resize(out.len().next_multiple_of(4), 0);
    // At most 15 words: the whole header has no more.
    out[0] = 0x40 | (out.len() / 4) as u8;
}

/// Fills in what differs among fragments.
fn complete(header: &mut [u8], payload_len: usize, identification: u16, field: u16) {
    let total_len = (header.len() + payload_len) as u16;
    header[2..4].copy_from_slice(&total_len.to_be_bytes());
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[6..8].copy_from_slice(&field.to_be_bytes());
    header[10..12].fill(0);
    let checksum = Sum::default().bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IpHeader, Transport, UdpHeader};
    use alloc::vec;

    fn datagram(length: usize) -> Vec<u8> {
        let ip = IpHeader {
            source: [192, 0, 2, 2].into(),
            destination: [198, 51, 100, 2].into(),
            hop_limit: 64,
            traffic_class: 0,
            identification: 77,
        };
        let udp = UdpHeader {
            source_port: 1000,
            destination_port: 2000,
        };
        let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
        Packet::udp_datagram(ip, udp, &payload).to_bytes().to_vec()
    }

    /// With another flags field and these options.
    fn altered(bytes: &[u8], field: u16, options: &[u8]) -> Packet {
        let mut out = bytes[..FIXED].to_vec();
        out.extend_from_slice(options);
        out[0] = 0x40 | (out.len() / 4) as u8;
        complete(&mut out, bytes.len() - FIXED, 77, field);
        out.extend_from_slice(&bytes[FIXED..]);
        Packet::parse(out.into()).expect("a packet")
    }

    /// What the receiver puts together.
    fn assembled(fragments: &[Packet]) -> Vec<u8> {
        let mut payload = vec![];
        for (number, fragment) in fragments.iter().enumerate() {
            let bytes = fragment.to_bytes();
            let field = u16::from_be_bytes([bytes[6], bytes[7]]);
            assert_eq!(usize::from(field & OFFSET) * UNIT, payload.len());
            assert_eq!(field & MORE_FRAGMENTS == 0, number + 1 == fragments.len());
            let is_part = matches!(
                fragment.header().transport,
                Transport::Other { fragment: true, .. }
            );
            assert!(is_part, "{fragment:?}");
            payload.extend_from_slice(&bytes[usize::from(bytes[0] & 0xf) * 4..]);
        }
        payload
    }

    #[test]
    fn a_packet_that_may_be_cut_is_whole_again_at_its_receiver() {
        let bytes = datagram(3000);
        let packet = altered(&bytes, 0, &[]);
        for mtu in [28, 29, 576, 1400, 1500, 3027] {
            let fragments = packet.fragment(mtu, 1).expect("it may be cut");
            assert!(fragments.iter().all(|fragment| fragment.total_len() <= mtu));
            let ids = fragments
                .iter()
                .map(|fragment| fragment.header().ip.identification);
            assert!(ids.into_iter().all(|id| id == 77));
            assert_eq!(assembled(&fragments), bytes[FIXED..], "{mtu}");
        }
        assert_eq!(packet.fragment(3028, 1), Ok(vec![packet.clone()]));
        assert_eq!(
            packet.fragment(27, 1),
            Err(FragmentError::NoRoom { header: 20 })
        );
    }

    #[test]
    fn a_fragment_is_cut_once_more() {
        let whole = altered(&datagram(3000), 0, &[]);
        let mut parts = whole.fragment(1500, 1).expect("it may be cut");
        let second = parts[1].fragment(800, 1).expect("it, too");
        parts.splice(1..2, second);
        assert_eq!(assembled(&parts), whole.to_bytes()[FIXED..]);
    }

    /// Past the largest packet there is, a piece's offset would name the beginning of another one.
    #[test]
    fn a_fragment_that_ends_where_no_packet_does_is_not_cut() {
        let last = altered(&datagram(3000), OFFSET, &[]);
        assert_eq!(last.fragment(576, 1), Err(FragmentError::Forbidden));
        let bytes = datagram(1000);
        // Behind them there is room for a header without options.
        let field = ((usize::from(u16::MAX) - bytes.len()) / UNIT) as u16;
        let parts = altered(&bytes, field, &[]).fragment(576, 1);
        let parts = parts.expect("it ends within");
        let offset = |part: &Packet| {
            let bytes = part.to_bytes();
            u16::from_be_bytes([bytes[6], bytes[7]]) & OFFSET
        };
        assert!(parts.iter().map(offset).is_sorted());
    }

    #[test]
    fn later_fragments_have_the_options_that_are_for_all() {
        // A router alert, which is for all, behind a record route, which is not, and padding.
        let options = [7, 7, 4, 0, 0, 0, 0, 1, 0x94, 4, 0, 0];
        let packet = altered(&datagram(1000), 0, &options);
        let fragments = packet.fragment(576, 1).expect("it may be cut");
        let headers: Vec<Vec<u8>> = fragments
            .iter()
            .map(|fragment| fragment.to_bytes()[FIXED..][..4].to_vec())
            .collect();
        assert_eq!(headers, [[7, 7, 4, 0], [0x94, 4, 0, 0]]);
        assert_eq!(fragments[1].to_bytes()[0], 0x46);
    }

    #[test]
    fn who_wants_to_be_told_is_not_cut() {
        let bytes = datagram(1000);
        let packet = altered(&bytes, DONT_FRAGMENT, &[]);
        assert_eq!(packet.fragment(576, 1), Err(FragmentError::Forbidden));
    }

    #[test]
    fn an_identification_of_zero_is_replaced() {
        let mut bytes = altered(&datagram(1000), 0, &[]).to_bytes().to_vec();
        complete(&mut bytes[..FIXED], 1008, 0, 0);
        let packet = Packet::parse(bytes.into()).expect("a packet");
        let fragments = packet.fragment(576, 9).expect("it may be cut");
        assert!(
            fragments
                .iter()
                .all(|fragment| fragment.header().ip.identification == 9)
        );
    }
}
