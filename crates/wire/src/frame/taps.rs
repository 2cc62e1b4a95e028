//! The link types of capture files: which layer a frame begins with.
//!
//! Numbers and layouts as the registry of link types has them (draft-ietf-opsawg-pcaplinktype).

use super::link_type::*;
use super::{Inner, Layer, NotIp, ethernet, from, ieee80211, ip_at, u16_at};

/// The hardware type of Linux' monitor of netlink, whose protocols are none of Ethernet's.
const HARDWARE_NETLINK: u16 = 824;
/// That of radiotap headers.
const HARDWARE_RADIOTAP: u16 = 803;

pub(super) fn frame(link_type: u16, bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match link_type {
        RAW | RAW_OF_BSD | RAW_OF_OPENBSD | IPV4 | IPV6 => Ok((Layer::Ip, bytes)),
        // A family, in the byte order of the capturing host or the network's; the packet's version tells it, too.
        NULL | LOOP => ip_at(bytes, 4),
        // Family, security parameters index, flags.
        ENC => ip_at(bytes, 12),
        ETHERNET => Ok((Layer::Ethernet, bytes)),
        NETANALYZER => Ok((Layer::Ethernet, from(bytes, 4)?)),
        // Preambles.
        NETANALYZER_TRANSPARENT => Ok((Layer::Ethernet, from(bytes, 12)?)),
        ETHERNET_MPACKET => Ok((Layer::Ethernet, from(bytes, 8)?)),
        LINUX_SLL => cooked(bytes, u16_at(bytes, 2)?, u16_at(bytes, 14)?, 16),
        LINUX_SLL2 => cooked(bytes, u16_at(bytes, 8)?, u16_at(bytes, 0)?, 20),
        PPP => Ok((Layer::Ppp, bytes)),
        PPP_HDLC => match bytes.first() {
            Some(0x0f | 0x8f) => Ok((Layer::CiscoHdlc, bytes)),
            _ => Ok((Layer::Ppp, bytes)),
        },
        PPP_ETHER => Ok((Layer::PppOe, bytes)),
        // The direction.
        PPP_PPPD | PPP_WITH_DIR => Ok((Layer::Ppp, from(bytes, 1)?)),
        C_HDLC => Ok((Layer::CiscoHdlc, bytes)),
        C_HDLC_WITH_DIR => Ok((Layer::CiscoHdlc, from(bytes, 1)?)),
        FRAME_RELAY => frame_relay(bytes),
        FRAME_RELAY_WITH_DIR => frame_relay(from(bytes, 1)?),
        IEEE802_11 => Ok((Layer::Wireless { is_padded: false }, bytes)),
        IEEE802_11_RADIOTAP => ieee80211::radiotap(bytes),
        IEEE802_11_PRISM => ieee80211::prism(bytes),
        IEEE802_11_AVS => ieee80211::avs(bytes),
        PPI => per_packet_information(bytes),
        FDDI => Ok((Layer::Llc, from(bytes, 13)?)),
        TOKEN_RING => token_ring(bytes),
        ATM_RFC1483 | RFC1483_OF_BSD => match bytes {
            [0xaa | 0xfe | 0x06, _, 0x03, ..] => Ok((Layer::Llc, bytes)),
            _ => ip_at(bytes, 0),
        },
        ATM_CLIP => match bytes.first() {
            Some(0xaa) => Ok((Layer::Llc, bytes)),
            _ => ip_at(bytes, 0),
        },
        SUN_ATM => Ok((Layer::Llc, from(bytes, 4)?)),
        IP_OVER_FIREWIRE => ethernet::typed(bytes, 16),
        IP_OVER_FIBRE_CHANNEL => Ok((Layer::Llc, from(bytes, 16)?)),
        NFLOG => netfilter_log(bytes),
        PKTAP => packet_tap(bytes),
        // As which Darwin's tcpdump writes it; others use the number for their own purposes.
        USER2 => packet_tap(bytes).map_err(|_| NotIp::LinkType(link_type)),
        ERF => endace(bytes),
        _ => Err(NotIp::LinkType(link_type)),
    }
}

/// The frame behind a header of Linux' cooked mode that is so long.
fn cooked(bytes: &[u8], hardware: u16, protocol: u16, length: usize) -> Result<Inner<'_>, NotIp> {
    let rest = from(bytes, length)?;
    match (hardware, protocol) {
        (HARDWARE_NETLINK, _) => Err(NotIp::Other),
        (HARDWARE_RADIOTAP, _) => ieee80211::radiotap(rest),
        // Novell's frames, frames of 802.2, and further ones of Linux' own.
        (_, ..0x0600) => Ok((Layer::Llc, rest)),
        (_, kind) => Ok((Layer::Type(kind), rest)),
    }
}

/// Frame relay: an address of two to four bytes, the last of which is odd, then RFC 2427 or an
/// Ethernet type.
fn frame_relay(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let last = bytes.iter().take(4).position(|byte| byte & 1 == 1);
    let rest = from(bytes, last.ok_or(NotIp::Other)? + 1)?;
    match rest {
        [0x03, 0xcc | 0x8e, ip @ ..] => ip_at(ip, 0),
        [0x03, 0x00, 0x80, 0, 0, 0, ..] => ethernet::typed(rest, 6),
        [0x03, 0x80, 0, 0, 0, ..] => ethernet::typed(rest, 5),
        [0x03, 0x00, 0x80, 0, 0x80, 0xc2, ..] => Ok((Layer::Ethernet, from(rest, 8)?)),
        [0x03, ..] => Err(NotIp::Other),
        _ => ethernet::typed(rest, 0),
    }
}

/// Token Ring: addresses, a route if the source's first bit says so, then 802.2.
fn token_ring(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let is_routed = bytes.get(8).ok_or(NotIp::Other)? & 0x80 != 0;
    let route = match is_routed {
        true => usize::from(bytes.get(14).ok_or(NotIp::Other)? & 0x1f),
        false => 0,
    };
    Ok((Layer::Llc, from(bytes, 14 + route)?))
}

/// The header of PPI: its length, and the link type of what follows, little-endian.
fn per_packet_information(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[_, _, a, b, c, d, e, f, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let rest = from(bytes, u16::from_le_bytes([a, b]).into())?;
    inner_link(u32::from_le_bytes([c, d, e, f]), rest)
}

/// The header of Darwin's packet taps: its length, a type and the link type of what follows, little-endian.
fn packet_tap(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    const SHORTEST: usize = 108;
    const LONGEST: usize = 1_024;
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let fields = word(0).zip(word(8)).ok_or(NotIp::Other)?;
    let length = usize::try_from(fields.0).map_err(|_| NotIp::Other)?;
    if !(SHORTEST..=LONGEST).contains(&length) {
        return Err(NotIp::Other);
    }
    inner_link(fields.1, from(bytes, length)?)
}

/// A frame of another link type.
fn inner_link(link_type: u32, bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let number = u16::try_from(link_type).map_err(|_| NotIp::Other)?;
    Ok((Layer::Link(number), bytes))
}

/// The payload among the attributes of a message of Linux' netfilter log.
fn netfilter_log(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    const PAYLOAD: u16 = 9;
    let attributes = from(bytes, 4)?;
    // They are in the byte order of the host that captured, which the file does not tell.
    let payload = |number: fn([u8; 2]) -> u16| {
        let mut rest = attributes;
        loop {
            let &[a, b, c, d, ..] = rest else { return None };
            let length = usize::from(number([a, b]));
            let value = rest.get(4..length)?;
            if number([c, d]) & 0x7fff == PAYLOAD {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
    };
    let found = payload(u16::from_le_bytes).or_else(|| payload(u16::from_be_bytes));
    ip_at(found.ok_or(NotIp::Other)?, 0)
}

/// A record of Endace's cards: a time, the kind of record, lengths, and further headers if its first bit says so.
fn endace(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    const HEADER: usize = 16;
    let mut kind = *bytes.get(8).ok_or(NotIp::Other)?;
    let record = kind & 0x7f;
    let mut at = HEADER;
    while kind & 0x80 != 0 {
        kind = *bytes.get(at).ok_or(NotIp::Other)?;
        at += 8;
    }
    match record {
        1 => Ok((Layer::Link(PPP_HDLC), from(bytes, at)?)),
        // An offset and a byte of padding.
        2 | 11 | 16 => Ok((Layer::Ethernet, from(bytes, at + 2)?)),
        22 | 23 => ip_at(bytes, at),
        _ => Err(NotIp::Other),
    }
}
