//! IEEE 802.11, and the headers that capturing drivers put in front of it: radiotap, Prism, AVS.

use super::{Inner, Layer, NotIp, from, u16_at};

/// Bits of the second byte of the frame control field.
mod flag {
    pub(super) const TO_SYSTEM: u8 = 0x01;
    pub(super) const FROM_SYSTEM: u8 = 0x02;
    pub(super) const PROTECTED: u8 = 0x40;
    pub(super) const ORDER: u8 = 0x80;
}

/// Bits of radiotap's flags.
mod radiotap_flag {
    pub(super) const PADDED: u8 = 0x20;
    pub(super) const DAMAGED: u8 = 0x40;
}

const DATA: u8 = 2;
/// Subtypes of data frames with this bit carry none.
const NO_DATA: u8 = 4;
const QUALITY_OF_SERVICE: u8 = 8;
/// The bit of the quality of service by which several frames are in one.
const AGGREGATED: u8 = 0x80;
const PRISM_LEN: usize = 144;
const AVS_MAGIC: [u8; 3] = [0x80, 0x21, 0x10];

pub(super) fn frame(bytes: &[u8], is_padded: bool) -> Result<Inner<'_>, NotIp> {
    let &[control, flags, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let (version, kind, subtype) = (control & 3, control >> 2 & 3, control >> 4);
    if version != 0 || kind != DATA || subtype & NO_DATA != 0 {
        return Err(NotIp::Other);
    }
    let fragment = bytes.get(22).ok_or(NotIp::Other)? & 0x0f;
    if fragment != 0 {
        return Err(NotIp::Sealed("fragments of 802.11"));
    }
    let has_four_addresses = flags & flag::TO_SYSTEM != 0 && flags & flag::FROM_SYSTEM != 0;
    let mut at = if has_four_addresses { 30 } else { 24 };
    let mut is_aggregated = false;
    if subtype & QUALITY_OF_SERVICE != 0 {
        is_aggregated = bytes.get(at).ok_or(NotIp::Other)? & AGGREGATED != 0;
        at += 2;
        if flags & flag::ORDER != 0 {
            at += 4;
        }
    }
    if is_padded {
        at = at.next_multiple_of(4);
    }
    let body = from(bytes, at)?;
    // Some cards decrypt and leave the mark.
    if flags & flag::PROTECTED != 0 && !body.starts_with(&[0xaa, 0xaa, 0x03]) {
        return Err(NotIp::Sealed("encrypted 802.11"));
    }
    // Some drivers give the frames of an aggregate one by one and leave the mark.
    match is_aggregated && !body.starts_with(&[0xaa, 0xaa, 0x03]) {
        true => Ok((Layer::Aggregate, body)),
        false => Ok((Layer::Llc, body)),
    }
}

/// A frame of an aggregate, and the frames behind it.
pub(super) struct Part<'a> {
    /// From its LLC header on, as much as was captured.
    pub(super) bytes: &'a [u8],
    pub(super) original_len: usize,
    pub(super) rest: &'a [u8],
}

/// The first frame of an aggregate (IEEE 802.11, A-MSDU format); `None` where what is left is no frame.
///
/// Each has two addresses and its length in front, and is padded to four bytes, but for the last one.
pub(super) fn first_of(frames: &[u8]) -> Option<Part<'_>> {
    const HEADER: usize = 14;
    let original_len = usize::from(u16_at(frames, HEADER - 2).ok()?);
    let behind = frames.get(HEADER..)?;
    let bytes = behind.get(..original_len).unwrap_or(behind);
    let next = (HEADER + original_len).next_multiple_of(4);
    Some(Part {
        bytes,
        original_len,
        rest: frames.get(next..).unwrap_or_default(),
    })
}

/// The frame behind a radiotap header, whose numbers are little-endian.
pub(super) fn radiotap(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[0, _, low, high, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let flags = radiotap_flags(bytes.get(..length).ok_or(NotIp::Other)?).unwrap_or(0);
    if flags & radiotap_flag::DAMAGED != 0 {
        return Err(NotIp::Damaged);
    }
    let is_padded = flags & radiotap_flag::PADDED != 0;
    Ok((Layer::Wireless { is_padded }, from(bytes, length)?))
}

/// The flags of a radiotap header: the first field but for a time of eight bytes.
fn radiotap_flags(header: &[u8]) -> Option<u8> {
    const HAS_TIME: u8 = 1;
    const HAS_FLAGS: u8 = 2;
    let present = *header.get(4)?;
    // Further words announce more fields as long as the highest bit says so.
    let words = header.get(4..)?.chunks_exact(4);
    let more = words.take_while(|word| word[3] & 0x80 != 0).count();
    let mut at = 4 + 4 * (more + 1);
    if present & HAS_TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    header.get(at).copied().filter(|_| present & HAS_FLAGS != 0)
}

/// The frame behind a header of Prism II cards, or one of AVS in its place.
pub(super) fn prism(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    if bytes.starts_with(&AVS_MAGIC) {
        return avs(bytes);
    }
    Ok((
        Layer::Wireless { is_padded: false },
        from(bytes, PRISM_LEN)?,
    ))
}

pub(super) fn avs(bytes: &[u8]) -> Result<Inner<'_>, NotIp> {
    let &[_, _, _, _, a, b, c, d, ..] = bytes else {
        return Err(NotIp::Other);
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    let at = usize::try_from(length).map_err(|_| NotIp::Other)?;
    Ok((Layer::Wireless { is_padded: false }, from(bytes, at)?))
}
