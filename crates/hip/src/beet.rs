//! Inner packets: IPv6 between HITs, whose header ESP does not carry (RFC 7402, appendix B).

use alloc::vec::Vec;
use outlast_wire::hip::Hit;

/// Length of an IPv6 header.
pub(crate) const HEADER_LEN: usize = 40;

/// Hop limit of a delivered packet: it has crossed one link, as its application sees it.
const HOP_LIMIT: u8 = 64;

/// A packet of an application, taken apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Inner<'a> {
    pub(crate) source: Hit,
    pub(crate) destination: Hit,
    pub(crate) next: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Inner<'a> {
    /// Takes `packet` apart; nothing if it is no IPv6 packet.
    pub(crate) fn parse(packet: &'a [u8]) -> Option<Self> {
        let (header, rest) = packet.split_first_chunk::<HEADER_LEN>()?;
        let [version, _, _, _, high, low, next, ..] = *header;
        if version >> 4 != 6 {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        let hit = |at: usize| header.get(at..at + 16)?.first_chunk().copied().map(Hit);
        Some(Self {
            source: hit(8)?,
            destination: hit(24)?,
            next,
            payload: rest.get(..length)?,
        })
    }

    /// The packet, with a header made anew.
    pub(crate) fn emit(&self) -> Option<Vec<u8>> {
        let length = u16::try_from(self.payload.len()).ok()?;
        let mut packet = Vec::with_capacity(HEADER_LEN + self.payload.len());
        packet.extend_from_slice(&[0x60, 0, 0, 0]);
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[self.next, HOP_LIMIT]);
        packet.extend_from_slice(&self.source.0);
        packet.extend_from_slice(&self.destination.0);
        packet.extend_from_slice(self.payload);
        Some(packet)
    }
}
