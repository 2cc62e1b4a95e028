//! Ethernet, its types, tags and labels, and IEEE 802.2 behind any link layer.

use super::{Inner, Layer, NotIp, from, ip_at, u16_at};

/// Ethernet types, as IANA and the IEEE list them.
pub(super) mod types {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const TRANSPARENT_ETHERNET: u16 = 0x6558;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const PPP: u16 = 0x880b;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const MPLS_MULTICAST: u16 = 0x8848;
    pub(crate) const PPPOE: u16 = 0x8864;
    pub(crate) const VLAN_SERVICE: u16 = 0x88a8;
    pub(crate) const MACSEC: u16 = 0x88e5;
    pub(crate) const BACKBONE: u16 = 0x88e7;
    pub(crate) const SEAMLESS_RING: u16 = 0x892f;
    pub(crate) const SERVICE_HEADER: u16 = 0x894f;
    /// Of service tags before IEEE 802.1ad.
    pub(crate) const VLAN_OLD: [u16; 3] = [0x9100, 0x9200, 0x9300];
}

/// Smaller numbers are lengths (IEEE 802.3).
const LEAST_TYPE: u16 = 0x0600;
/// Two addresses of Ethernet.
const ADDRESSES: usize = 12;

/// Numbers by which a bridge protocol names Ethernet frames, with and without their checksum.
const BRIDGED_ETHERNET: [u16; 2] = [1, 7];

pub(super) fn frame(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    typed(bytes, ADDRESSES)
}

/// Content behind the type or length at `at`.
pub(super) fn typed(bytes: &[u8], at: usize) -> Result<Inner<'_>, NotIp> {
    let kind = u16_at(bytes, at)?;
    let rest = from(bytes, at + 2)?;
    Ok(match kind {
        ..LEAST_TYPE => (Layer::Llc, rest),
        kind => (Layer::Type(kind), rest),
    })
}

pub(super) fn behind_type(kind: u16, bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match kind {
        types::IPV4 | types::IPV6 => Ok((Layer::Ip, bytes)),
        // Two bytes of tag, then the type of what follows.
        types::VLAN | types::VLAN_SERVICE => typed(bytes, 2),
        kind if types::VLAN_OLD.contains(&kind) => typed(bytes, 2),
        types::MPLS | types::MPLS_MULTICAST => Ok((Layer::Mpls, bytes)),
        types::PPPOE => Ok((Layer::PppOe, bytes)),
        types::PPP => Ok((Layer::Ppp, bytes)),
        types::TRANSPARENT_ETHERNET => Ok((Layer::Ethernet, bytes)),
        // A service identifier of four bytes.
        types::BACKBONE => Ok((Layer::Ethernet, from(bytes, 4)?)),
        // Length and sequence number.
        types::SEAMLESS_RING => typed(bytes, 4),
        types::SERVICE_HEADER => Ok((Layer::ServiceHeader, bytes)),
        types::MACSEC => Err(NotIp::Sealed("MACsec")),
        _ => Err(NotIp::Other),
    }
}

pub(super) fn llc(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        // A subnetwork access protocol: who numbers, and the number.
        [0xaa, 0xaa, 0x03, owner @ ..] => match owner {
            [0, 0, 0 | 0xf8, ..] => typed(owner, 3),
            [0, 0x80, 0xc2, ..] if BRIDGED_ETHERNET.contains(&u16_at(owner, 3)?) => {
                Ok((Layer::Ethernet, from(owner, 5)?))
            }
            _ => Err(NotIp::Other),
        },
        [0x06, 0x06, 0x03, ..] => ip_at(bytes, 3),
        // The network layer protocol identifier of IPv4.
        [0xfe, 0xfe, 0x03, 0xcc, ..] => ip_at(bytes, 4),
        _ => Err(NotIp::Other),
    }
}

/// A label stack (RFC 3032), and behind it an IP packet or a pseudowire's frame (RFC 4448).
pub(super) fn mpls(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let is_last = |label: &&[u8]| label.get(2).is_some_and(|byte| byte & 1 == 1);
    let labels = bytes.chunks(4).position(|label| is_last(&label));
    let inner = from(bytes, 4 * (labels.ok_or(NotIp::Other)? + 1))?;
    match inner.first().map(|byte| byte >> 4) {
        Some(4 | 6) => Ok((Layer::Ip, inner)),
        // A control word.
        Some(0) => Ok((Layer::Ethernet, from(inner, 4)?)),
        _ => Ok((Layer::Ethernet, inner)),
    }
}

pub(super) fn service_header(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[_, length, _, next, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let inner = from(bytes, 4 * usize::from(length & 0x3f))?;
    match next {
        1 | 2 => ip_at(inner, 0),
        3 => Ok((Layer::Ethernet, inner)),
        5 => Ok((Layer::Mpls, inner)),
        _ => Err(NotIp::Other),
    }
}
