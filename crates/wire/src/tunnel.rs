//! Tunnels inside of IP: from what an IP packet carries to the IP packet in it.
//!
//! IP in IP (RFC 2003, RFC 2473, RFC 4213), GRE (RFC 2784, RFC 2890, RFC 2637) with ERSPAN and WCCP,
//! EtherIP (RFC 3378), MPLS in IP (RFC 4023) and UDP (RFC 7510), VXLAN (RFC 7348) and its generic
//! extension, Geneve (RFC 8926), GTP-U (3GPP TS 29.281), L2TP (RFC 2661), Teredo (RFC 4380), GUE,
//! LISP (RFC 9300), TZSP, and Mobile IP's UDP tunnels (RFC 3519). A tunnel of UDP is known by its
//! port, and by a header that fits.
//!
//! Left out: what is encrypted (ESP, WireGuard, OpenVPN), cannot be read without its set-up (L2TPv3,
//! CAPWAP) or rewrites headers (IPComp, minimal encapsulation). [`NotIp::Sealed`] names these.

use crate::frame::{Inner, Layer, NotIp, ip_at, ip_behind};
use crate::ip::Protocol;

/// Numbers of IP protocols, as IANA has them.
mod protocol {
    pub(super) const IP_IN_IP: u8 = 4;
    pub(super) const UDP: u8 = 17;
    pub(super) const IPV6_IN_IP: u8 = 41;
    pub(super) const GRE: u8 = 47;
    pub(super) const ESP: u8 = 50;
    pub(super) const MINIMAL: u8 = 55;
    pub(super) const ETHER_IP: u8 = 97;
    pub(super) const IP_COMP: u8 = 108;
    pub(super) const L2TP: u8 = 115;
    pub(super) const MPLS: u8 = 137;
    pub(super) const ETHERNET: u8 = 143;
}

/// Ports of UDP.
mod port {
    pub(super) const MOBILE_IP: u16 = 434;
    pub(super) const OPENVPN: u16 = 1_194;
    pub(super) const L2TP: u16 = 1_701;
    pub(super) const GTP_USER: u16 = 2_152;
    pub(super) const TEREDO: u16 = 3_544;
    pub(super) const LISP: u16 = 4_341;
    pub(super) const ESP: u16 = 4_500;
    pub(super) const GRE: u16 = 4_754;
    pub(super) const VXLAN: u16 = 4_789;
    pub(super) const VXLAN_GENERIC: u16 = 4_790;
    pub(super) const CAPWAP: u16 = 5_247;
    pub(super) const GUE: u16 = 6_080;
    pub(super) const GENEVE: u16 = 6_081;
    pub(super) const MPLS: u16 = 6_635;
    /// As Linux has it where nobody says otherwise.
    pub(super) const VXLAN_OF_LINUX: u16 = 8_472;
    pub(super) const TZSP: u16 = 37_008;
    pub(super) const WIREGUARD: [u16; 2] = [41_641, 51_820];
}

/// The IP packet in what a packet of IP `protocol` carries, of which perhaps only the beginning was
/// captured.
///
/// # Errors
/// [`NotIp`], where there is no tunnel, or none that can be looked into.
pub(crate) fn ip_within(protocol: Protocol, bytes: &[u8]) -> Result<&[u8], NotIp> {
    ip_behind(behind_protocol(protocol.0, bytes)?)
}

fn behind_protocol(protocol: u8, bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match protocol {
        protocol::IP_IN_IP | protocol::IPV6_IN_IP => Ok((Layer::Ip, bytes)),
        protocol::UDP => udp(bytes),
        protocol::GRE => gre(bytes),
        protocol::ETHER_IP => match bytes {
            [0x30, _, frame @ ..] => Ok((Layer::Ethernet, frame)),
            _ => Err(NotIp::Other),
        },
        protocol::MPLS => Ok((Layer::Mpls, bytes)),
        protocol::ETHERNET => Ok((Layer::Ethernet, bytes)),
        protocol::ESP => Err(NotIp::Sealed("ESP")),
        protocol::MINIMAL => Err(NotIp::Sealed("minimal encapsulation")),
        protocol::IP_COMP => Err(NotIp::Sealed("IPComp")),
        protocol::L2TP => Err(NotIp::Sealed("L2TPv3")),
        _ => Err(NotIp::Other),
    }
}

fn udp(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[a, b, c, d, _, _, _, _, ref payload @ ..] = bytes else {
        return Err(NotIp::Other);
    };
    let ports = [[c, d], [a, b]].map(u16::from_be_bytes);
    let found = ports.map(|port| behind_port(port, payload));
    let [to, from] = found;
    match to {
        Err(NotIp::Other) => from,
        to => to,
    }
}

fn behind_port(port: u16, bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match port {
        port::VXLAN | port::VXLAN_OF_LINUX => match bytes {
            // The network identifier is valid; the other flag is of group policies.
            [flags, ..] if flags & 0x7f == 0x08 => skip(bytes, 8, Layer::Ethernet),
            _ => Err(NotIp::Other),
        },
        port::VXLAN_GENERIC => vxlan_generic(bytes),
        port::GENEVE => geneve(bytes),
        port::GTP_USER => gtp_user(bytes),
        port::L2TP => l2tp(bytes),
        port::TEREDO => teredo(bytes),
        port::GRE => gre(bytes),
        port::MPLS => Ok((Layer::Mpls, bytes)),
        port::GUE => gue(bytes),
        port::LISP => ip_at(bytes, 8),
        port::TZSP => tzsp(bytes),
        port::MOBILE_IP => match bytes {
            // Tunnel data, with the protocol in it.
            [4, protocol, 0, 0, rest @ ..] => behind_protocol(*protocol, rest),
            _ => Err(NotIp::Other),
        },
        // Zeros, or a single byte, are the key exchange's.
        port::ESP => match bytes {
            [0, 0, 0, 0, ..] | [] | [_] => Err(NotIp::Other),
            _ => Err(NotIp::Sealed("ESP")),
        },
        port if port::WIREGUARD.contains(&port) => match bytes {
            [1..=4, 0, 0, 0, ..] => Err(NotIp::Sealed("WireGuard")),
            _ => Err(NotIp::Other),
        },
        port::OPENVPN => match bytes.first().map(|byte| byte >> 3) {
            Some(1..=11) => Err(NotIp::Sealed("OpenVPN")),
            _ => Err(NotIp::Other),
        },
        port::CAPWAP => Err(NotIp::Sealed("CAPWAP")),
        _ => Err(NotIp::Other),
    }
}

fn gre(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[flags, version, a, b, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let optional = |bits: u8, bit: u8| usize::from(bits & bit != 0) * 4;
    let kind = u16::from_be_bytes([a, b]);
    match version & 0x07 {
        // Routing (RFC 1701) is not in use.
        0 if flags & 0x40 == 0 => {}
        // Of PPTP: a length and a call, then sequence and acknowledgement number.
        1 => {
            let at = 8 + optional(flags, 0x10) + optional(version, 0x80);
            return skip(bytes, at, Layer::Type(kind));
        }
        _ => return Err(NotIp::Other),
    }
    let has_number = flags & 0x10 != 0;
    // Checksum, key and sequence number.
    let at = 4 + optional(flags, 0x80) + optional(flags, 0x20) + optional(flags, 0x10);
    match kind {
        // ERSPAN; its first version has neither a number nor a header.
        0x88be => skip(bytes, at + if has_number { 8 } else { 0 }, Layer::Ethernet),
        0x22eb => {
            let last = *bytes.get(at + 11).ok_or(NotIp::Other)?;
            skip(bytes, at + 12 + usize::from(last & 1) * 8, Layer::Ethernet)
        }
        // WCCP; its second version has a header.
        0x883e => ip_at(bytes, at).or_else(|_| ip_at(bytes, at + 4)),
        kind => skip(bytes, at, Layer::Type(kind)),
    }
}

fn vxlan_generic(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        [_, _, _, 1 | 2, ..] => ip_at(bytes, 8),
        [_, _, _, 3, ..] => skip(bytes, 8, Layer::Ethernet),
        [_, _, _, 4, ..] => skip(bytes, 8, Layer::ServiceHeader),
        [_, _, _, 5, ..] => skip(bytes, 8, Layer::Mpls),
        _ => Err(NotIp::Other),
    }
}

fn geneve(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        &[options, _, a, b, ..] if options & 0xc0 == 0 => {
            let kind = Layer::Type(u16::from_be_bytes([a, b]));
            skip(bytes, 8 + 4 * usize::from(options & 0x3f), kind)
        }
        _ => Err(NotIp::Other),
    }
}

/// A packet of a user (G-PDU), behind optional fields and extension headers.
fn gtp_user(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    const USER_PACKET: u8 = 255;
    let &[flags, USER_PACKET, ..] = bytes else {
        return Err(NotIp::Other);
    };
    // Version 1 of GTP, not of its charging.
    if flags & 0xf0 != 0x30 {
        return Err(NotIp::Other);
    }
    let mut at = 8;
    if flags & 0x07 != 0 {
        let mut next = *bytes.get(11).ok_or(NotIp::Other)?;
        at = 12;
        while flags & 0x04 != 0 && next != 0 {
            let length = 4 * usize::from(*bytes.get(at).ok_or(NotIp::Other)?);
            if length == 0 {
                return Err(NotIp::Other);
            }
            at += length;
            next = *bytes.get(at - 1).ok_or(NotIp::Other)?;
        }
    }
    ip_at(bytes, at)
}

/// A message with data, of version 2.
fn l2tp(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[flags, version, ..] = bytes else {
        return Err(NotIp::Other);
    };
    if flags & 0x80 != 0 || version & 0x0f != 2 {
        return Err(NotIp::Other);
    }
    let optional = |bit: u8, length: usize| if flags & bit != 0 { length } else { 0 };
    // A length, tunnel and session, sequence numbers.
    let mut at = 2 + optional(0x40, 2) + 4 + optional(0x08, 4);
    if flags & 0x02 != 0 {
        let offset = bytes
            .get(at..)
            .and_then(<[u8]>::first_chunk)
            .ok_or(NotIp::Other)?;
        at += 2 + usize::from(u16::from_be_bytes(*offset));
    }
    skip(bytes, at, Layer::Ppp)
}

/// An IPv6 packet, behind an authentication and an origin, if they are there.
fn teredo(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let mut at = 0;
    if let [0, 1, client, value, ..] = bytes {
        at += 13 + usize::from(*client) + usize::from(*value);
    }
    if bytes
        .get(at..)
        .is_some_and(|rest| rest.starts_with(&[0, 0]))
    {
        at += 8;
    }
    ip_at(bytes, at)
}

/// A protocol of IP behind a header of variable length, or an IP packet without one.
fn gue(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        &[first, protocol, ..] if first & 0xe0 == 0 => {
            let at = 4 + 4 * usize::from(first & 0x1f);
            let inner = bytes.get(at..).ok_or(NotIp::Other)?;
            match protocol {
                // One in the other without end is none.
                protocol::UDP => Err(NotIp::Other),
                protocol => behind_protocol(protocol, inner),
            }
        }
        _ => ip_at(bytes, 0),
    }
}

/// A captured frame, behind tags.
fn tzsp(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let &[1, _, 0, kind, ref tags @ ..] = bytes else {
        return Err(NotIp::Other);
    };
    let mut rest = tags;
    let frame = loop {
        match rest {
            [END, frame @ ..] => break frame,
            [PADDING, further @ ..] => rest = further,
            [_, length, value @ ..] => {
                rest = value.get(usize::from(*length)..).ok_or(NotIp::Other)?;
            }
            _ => return Err(NotIp::Other),
        }
    };
    match kind {
        1 => Ok((Layer::Ethernet, frame)),
        0x12 => Ok((Layer::Wireless { is_padded: false }, frame)),
        _ => Err(NotIp::Other),
    }
}

fn skip(bytes: &[u8], at: usize, layer: Layer) -> Result<Inner<'_>, NotIp> {
    Ok((layer, bytes.get(at..).ok_or(NotIp::Other)?))
}
