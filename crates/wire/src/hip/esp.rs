//! ESP's header and its 64-bit sequence numbers (RFC 4303, sections 2 and 2.2.1; RFC 7402).

use crate::hip::HipError;
use alloc::vec::Vec;

/// Packets below the highest one received that a receiver still accepts.
pub const REPLAY_WINDOW: u64 = 1024;

/// What every ESP packet begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EspHeader {
    /// The receiver's index of the security association.
    pub spi: u32,
    /// The lower half of the sequence number.
    pub sequence_low: u32,
}

impl EspHeader {
    /// Length in bytes.
    pub const LEN: usize = 8;

    /// Reads the header of `packet`, and what follows it.
    ///
    /// # Errors
    /// [`HipError::Truncated`] below eight bytes.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), HipError> {
        let Some((&[a, b, c, d, e, f, g, h], rest)) = packet.split_first_chunk() else {
            return Err(HipError::Truncated {
                needed: Self::LEN,
                available: packet.len(),
            });
        };
        let header = Self {
            spi: u32::from_be_bytes([a, b, c, d]),
            sequence_low: u32::from_be_bytes([e, f, g, h]),
        };
        Ok((header, rest))
    }

    /// Appends the header.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.spi.to_be_bytes());
        out.extend_from_slice(&self.sequence_low.to_be_bytes());
    }
}

/// The whole sequence number of a packet that carries only the lower half, for a receiver whose
/// highest authentic number is `highest` (RFC 4303, appendix A2.2).
///
/// Nothing for a number that would lie before the first one.
#[must_use]
pub const fn full_sequence(low: u32, highest: u64) -> Option<u64> {
    let (top_low, top_high) = (highest as u32, highest >> 32);
    let bottom = top_low.wrapping_sub(REPLAY_WINDOW as u32 - 1);
    let high = if top_low >= REPLAY_WINDOW as u32 - 1 {
        // The window lies within one subspace.
        if low >= bottom {
            Some(top_high)
        } else {
            top_high.checked_add(1)
        }
    } else if low >= bottom {
        // The window reaches back into the subspace before.
        top_high.checked_sub(1)
    } else {
        Some(top_high)
    };
    match high {
        Some(high) if high <= u32::MAX as u64 => Some(high << 32 | low as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_follows_the_window() {
        assert_eq!(full_sequence(1, 0), Some(1));
        assert_eq!(full_sequence(5_000, 100), Some(5_000));
        // Far below the window: it can only be of the next subspace.
        assert_eq!(full_sequence(1, 0xffff_fff0), Some(0x1_0000_0001));
        // The window reaches back over the border.
        assert_eq!(full_sequence(0xffff_fff0, 0x1_0000_0005), Some(0xffff_fff0));
        assert_eq!(full_sequence(0x20, 0x1_0000_0005), Some(0x1_0000_0020));
        // Before the first subspace there is nothing.
        assert_eq!(full_sequence(0xffff_fff0, 5), None);
    }
}
