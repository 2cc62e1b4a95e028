//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use crate::ip::Protocol;
use core::net::IpAddr;

/// A one's complement sum that is not yet folded.
///
/// Words are added as they lie in memory: the sum does not depend on byte order (RFC 1071,
/// section 2, B), so nothing is swapped before [`Sum::checksum`] writes it back the same way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds `data`, which starts at an even offset of what is summed; an odd end is padded.
    pub(crate) fn bytes(mut self, data: &[u8]) -> Self {
        // Eight bytes a turn, in two 32-bit words that cannot overflow 64 bits before 2^32 turns.
        let (chunks, rest) = data.as_chunks::<8>();
        for &[a, b, c, d, e, f, g, h] in chunks {
            self.0 += u64::from(u32::from_ne_bytes([a, b, c, d]));
            self.0 += u64::from(u32::from_ne_bytes([e, f, g, h]));
        }
        let (words, odd) = rest.as_chunks::<2>();
        for &word in words {
            self.0 += u64::from(u16::from_ne_bytes(word));
        }
        if let [last] = *odd {
            self.0 += u64::from(u16::from_ne_bytes([last, 0]));
        }
        self
    }

    /// Adds a 16-bit value.
    pub(crate) fn word(self, value: u16) -> Self {
        Self(self.0 + u64::from(value.to_be()))
    }

    /// Adds the one's complement of a sum: subtracts it.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0 + u64::from(!other.fold()))
    }

    /// Adds another sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0 + u64::from(other.fold()))
    }

    /// The sum in 16 bits, in memory order.
    fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        // The loop left at most 16 bits.
        sum as u16
    }

    /// The checksum field over what was summed.
    pub(crate) fn checksum(self) -> [u8; 2] {
        (!self.fold()).to_ne_bytes()
    }

    /// Whether data that was summed with its checksum field in place is intact.
    pub(crate) fn is_intact(self) -> bool {
        self.fold() == 0xffff
    }
}

/// The pseudo-header of TCP, UDP and ICMPv6 (RFC 9293, section 3.1; RFC 8200, section 8.1).
pub(crate) fn pseudo_header(
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    length: usize,
) -> Sum {
    // A jumbogram's length has a high half (RFC 2675, section 4); for IPv4 it is zero.
    let sum = Sum::default()
        .word((length >> 16) as u16)
        .word(length as u16)
        .word(u16::from(protocol.0));
    address(address(sum, source), destination)
}

/// Adds an address.
pub(crate) fn address(sum: Sum, address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(address) => sum.bytes(&address.octets()),
        IpAddr::V6(address) => sum.bytes(&address.octets()),
    }
}

/// The checksum field after part of what it covers changed from `old` to `new`
/// (RFC 1624, equation 3).
pub(crate) fn updated(field: [u8; 2], old: Sum, new: Sum) -> [u8; 2] {
    Sum::default()
        .word(!u16::from_be_bytes(field))
        .minus(old)
        .plus(new)
        .checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(
            Sum::default().bytes(&data).checksum(),
            (!0xddf2_u16).to_be_bytes()
        );
    }

    #[test]
    fn example_of_rfc_1624_section_4() {
        // The case that equation 4 of RFC 1141 gets wrong: 0xffff instead of 0x0000.
        let (old, new) = (Sum::default().word(0x5555), Sum::default().word(0x3285));
        assert_eq!(updated([0xdd, 0x2f], old, new), [0x00, 0x00]);
    }

    #[test]
    fn odd_length_is_padded_with_zero() {
        let odd = Sum::default().bytes(&[1, 2, 3]);
        assert_eq!(
            odd.checksum(),
            Sum::default().bytes(&[1, 2, 3, 0]).checksum()
        );
    }
}
