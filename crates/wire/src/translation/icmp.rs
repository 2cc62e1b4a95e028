//! Translation of ICMP to ICMPv6 and back (RFC 7915, sections 4.2 and 5.2).

use super::header::{Extent, Fields};
use super::{DualAddress, Target, TranslationError};
use crate::checksum::{Sum, pseudo_header, updated};
use crate::icmp::{CHECKSUM_AT, HEADER_LEN};
use crate::ip::Protocol;
use alloc::vec::Vec;

/// What IPv6's header is longer than IPv4's: a packet may be so much longer on the other side.
const LONGER: u32 = 20;

/// Bytes of a packet that an error quotes at most: errors of IPv4 are 576 bytes long (RFC 1812, section 4.3.2.3).
const MOST_QUOTED: usize = 576 - 20 - HEADER_LEN;

/// Echo request and reply (RFC 792; RFC 4443, section 4).
const ECHO: [(u8, u8); 2] = [(8, 128), (0, 129)];

/// The first fields of an error: type, code, and the MTU where it says one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Error {
    kind: u8,
    code: u8,
    mtu: Option<u32>,
}

/// The message in the other family's form.
pub(super) fn translate(
    fields: &Fields<'_>,
    hosts: [DualAddress; 2],
    target: Target,
    extent: Extent,
) -> Result<Vec<u8>, TranslationError> {
    let message = fields.payload;
    let Some((&[kind, code, _, _, a, b, c, d], quotation)) =
        message.split_first_chunk::<HEADER_LEN>()
    else {
        return Err(TranslationError::Malformed);
    };
    if let Some(other) = echo(kind, target).filter(|_| code == 0) {
        return Ok(translate_echo(fields, hosts, target, other));
    }
    let unknown = TranslationError::Message { kind, code };
    let word = u32::from_be_bytes([a, b, c, d]);
    let error = match target {
        Target::V6 => to_v6(kind, code, word),
        Target::V4 => to_v4(kind, code, word),
    };
    // An error about an error is none (RFC 1122, section 3.2.2).
    let error = error.filter(|_| extent == Extent::Whole).ok_or(unknown)?;
    if !is_intact(fields, hosts, target.other()) {
        return Err(unknown);
    }
    let quoted = quoted_len(kind, target.other(), [a, b]);
    let quotation = quotation.get(..quoted).unwrap_or(quotation);
    let [sender, receiver] = hosts;
    let mut about = super::translate(quotation, [receiver, sender], target, Extent::Quoted)?;
    about.truncate(MOST_QUOTED);
    let mut out = Vec::with_capacity(HEADER_LEN + about.len());
    out.extend_from_slice(&[error.kind, error.code, 0, 0]);
    out.extend_from_slice(&error.mtu.unwrap_or(0).to_be_bytes());
    out.extend_from_slice(&about);
    let checksum = checksum_of(&out, hosts, target).checksum();
    if let Some(field) = out.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) {
        field.copy_from_slice(&checksum);
    }
    Ok(out)
}

/// The sum over a message and what its family has before it.
fn checksum_of(message: &[u8], hosts: [DualAddress; 2], family: Target) -> Sum {
    pseudo(hosts, family, message.len()).bytes(message)
}

/// The pseudo-header; ICMP of IPv4 has none.
fn pseudo(hosts: [DualAddress; 2], family: Target, length: usize) -> Sum {
    let [from, to] = hosts.map(|host| host.of(family));
    match family {
        Target::V4 => Sum::default(),
        Target::V6 => pseudo_header(from, to, Protocol::ICMPV6, length),
    }
}

fn is_intact(fields: &Fields<'_>, hosts: [DualAddress; 2], family: Target) -> bool {
    checksum_of(fields.payload, hosts, family).is_intact()
}

/// The other family's type of an echo.
fn echo(kind: u8, target: Target) -> Option<u8> {
    ECHO.into_iter().find_map(|(v4, v6)| match target {
        Target::V6 => Some(v6).filter(|_| kind == v4),
        Target::V4 => Some(v4).filter(|_| kind == v6),
    })
}

/// Another type, and a checksum that is as right as before.
fn translate_echo(
    fields: &Fields<'_>,
    hosts: [DualAddress; 2],
    target: Target,
    other: u8,
) -> Vec<u8> {
    let mut out = fields.payload.to_vec();
    if let Some(&mut [ref mut kind, _, ref mut high, ref mut low, ..]) =
        out.first_chunk_mut::<HEADER_LEN>()
    {
        let sum = |family, kind: u8| {
            pseudo(hosts, family, fields.declared).word(u16::from_be_bytes([kind, 0]))
        };
        let (old, new) = (sum(target.other(), *kind), sum(target, other));
        [*high, *low] = updated([*high, *low], old, new);
        *kind = other;
    }
    out
}

/// How much of what follows is quotation, where extensions follow it (RFC 4884, section 3).
fn quoted_len(kind: u8, family: Target, [a, b]: [u8; 2]) -> usize {
    let length = match (family, kind) {
        (Target::V4, 3 | 11) => usize::from(b) * 4,
        (Target::V6, 1 | 3) => usize::from(a) * 8,
        _ => 0,
    };
    if length == 0 { usize::MAX } else { length }
}

/// RFC 7915, section 4.2.
fn to_v6(kind: u8, code: u8, word: u32) -> Option<Error> {
    let (kind, code, mtu) = match (kind, code) {
        // A protocol that nobody speaks is a problem of the next header's field, at 6.
        (3, 2) => (4, 1, Some(6)),
        (3, 3) => (1, 4, None),
        // The lower half is the MTU (RFC 1191).
        (3, 4) => (2, 0, Some((word & 0xffff).max(68) + LONGER)),
        (3, 0 | 1 | 5..=8 | 11 | 12) => (1, 0, None),
        (3, 9 | 10 | 13 | 15) => (1, 1, None),
        (11, 0 | 1) => (3, code, None),
        _ => return None,
    };
    Some(Error { kind, code, mtu })
}

/// RFC 7915, section 5.2.
fn to_v4(kind: u8, code: u8, word: u32) -> Option<Error> {
    let (kind, code, mtu) = match (kind, code) {
        (1, 0 | 2 | 3) => (3, 1, None),
        (1, 1) => (3, 10, None),
        (1, 4) => (3, 3, None),
        (2, _) => (3, 4, Some(word.clamp(68 + LONGER, 0xffff) - LONGER)),
        (3, 0 | 1) => (11, code, None),
        (4, 1) => (3, 2, None),
        _ => return None,
    };
    Some(Error { kind, code, mtu })
}
