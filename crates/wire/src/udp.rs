//! UDP (RFC 768): the header as a value.

use crate::error::{ParseError, Part};

/// Length of a UDP header in bytes.
pub(crate) const HEADER_LEN: usize = 8;

/// Where the checksum lies in the header.
pub(crate) const CHECKSUM_AT: usize = 6;

/// A UDP header (RFC 768).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UdpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl UdpHeader {
    /// Reads the header of `datagram`, all that the IP header carries, and the payload's length.
    pub(crate) fn parse(datagram: &[u8]) -> Result<(Self, usize), ParseError> {
        let Some(&[a, b, c, d, e, f, _, _]) = datagram.first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated {
                part: Part::Udp,
                needed: HEADER_LEN,
                available: datagram.len(),
            });
        };
        let length = match usize::from(u16::from_be_bytes([e, f])) {
            // A jumbogram (RFC 2675, section 4): the length is what the IP header says.
            0 if datagram.len() > usize::from(u16::MAX) => datagram.len(),
            length => length,
        };
        if length > datagram.len() {
            return Err(ParseError::Truncated {
                part: Part::Udp,
                needed: length,
                available: datagram.len(),
            });
        }
        let Some(payload_len) = length.checked_sub(HEADER_LEN) else {
            return Err(ParseError::HeaderLength {
                part: Part::Udp,
                length,
            });
        };
        let header = Self {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
        };
        Ok((header, payload_len))
    }

    /// Writes the header, its checksum zero.
    pub(crate) fn write(self, out: &mut alloc::vec::Vec<u8>, payload_len: usize) {
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        let length = u16::try_from(HEADER_LEN + payload_len).unwrap_or(0);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    }
}
