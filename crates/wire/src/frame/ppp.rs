//! PPP (RFC 1661, RFC 1662), PPPoE (RFC 2516), multilink (RFC 1990), and Cisco's HDLC (RFC 1547).

use super::{Inner, Layer, NotIp, from, u16_at};

pub(super) fn ppp(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    // The last byte of the protocol is odd; a first byte that is odd is the last.
    let first = *bytes.first().ok_or(NotIp::Other)?;
    let (protocol, rest) = match first & 1 {
        1 => (first.into(), from(bytes, 1)?),
        _ => (u16_at(bytes, 0)?, from(bytes, 2)?),
    };
    match protocol {
        0x0021 | 0x0057 => Ok((Layer::Ip, rest)),
        0x0281 | 0x0283 => Ok((Layer::Mpls, rest)),
        // Beginning and end in one piece, behind which the sequence number ends.
        0x003d if rest.first().is_some_and(|flags| flags & 0xc0 == 0xc0) => {
            Ok((Layer::Ppp, from(rest, 4)?))
        }
        0x003d => Err(NotIp::Sealed("fragments of PPP multilink")),
        0x002d | 0x002f | 0x0003 | 0x0005 | 0x0061 | 0x0063 | 0x0065 | 0x0067 | 0x0069 | 0x2063
        | 0x2065 | 0x2067 | 0x2069 => Err(NotIp::Sealed("PPP with compressed headers")),
        0x00fb | 0x00fd => Err(NotIp::Sealed("compressed PPP")),
        0x0053 | 0x0055 => Err(NotIp::Sealed("encrypted PPP")),
        _ => Err(NotIp::Other),
    }
}

/// PPP behind the header of PPPoE: version, code, session and length.
pub(super) fn over_ethernet(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        [0x11, 0, _, _, _, _, ppp @ ..] => Ok((Layer::Ppp, ppp)),
        _ => Err(NotIp::Other),
    }
}

/// The frame behind Cisco's address, control byte and type.
pub(super) fn cisco_hdlc(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    match bytes {
        [0x0f | 0x8f, 0, _, _, rest @ ..] => Ok((Layer::Type(u16_at(bytes, 2)?), rest)),
        _ => Err(NotIp::Other),
    }
}
