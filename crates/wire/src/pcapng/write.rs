//! The encoder.

use super::{Direction, EnhancedPacket, InterfaceId, MAX_CAPTURED_LEN, RAW, Section, code};
use alloc::vec::Vec;

/// Encodes a capture of raw IP packets, one section, into bytes that the caller writes where it
/// likes. Little-endian on every machine: same capture, same bytes.
#[derive(Clone, Debug)]
pub struct Encoder {
    out: Vec<u8>,
    interfaces: u32,
}

impl Encoder {
    /// Starts a section.
    #[must_use]
    pub fn new(section: &Section<'_>) -> Self {
        let mut encoder = Self {
            out: Vec::new(),
            interfaces: 0,
        };
        encoder.block(code::SECTION_HEADER, |out| {
            out.extend_from_slice(&code::BYTE_ORDER_MAGIC.to_le_bytes());
            // Version 1.0, of unknown length: packets are still to come.
            out.extend_from_slice(&[1, 0, 0, 0]);
            out.extend_from_slice(&(-1_i64).to_le_bytes());
            text(out, code::SHB_HARDWARE, section.hardware.as_deref());
            text(out, code::SHB_OS, section.os.as_deref());
            text(out, code::SHB_APPLICATION, section.application.as_deref());
            text(out, code::OPT_COMMENT, section.comment.as_deref());
        });
        encoder
    }

    /// Describes the next interface. It may come at any time before its first packet.
    pub fn interface(&mut self, name: &str) -> InterfaceId {
        self.block(code::INTERFACE_DESCRIPTION, |out| {
            out.extend_from_slice(&RAW.to_le_bytes());
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&(MAX_CAPTURED_LEN as u32).to_le_bytes());
            text(out, code::IF_NAME, Some(name));
            // Nanoseconds.
            option(out, code::IF_TSRESOL, &[9]);
        });
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        id
    }

    /// Adds a packet. Of more than [`MAX_CAPTURED_LEN`] bytes the first are written; the time is
    /// at most 2^64-1 ns, a comment at most 65535 bytes.
    ///
    /// The interface must be one of [`Encoder::interface`]; readers refuse others.
    pub fn packet(&mut self, packet: &EnhancedPacket<'_>) {
        let data = packet.data.get(..MAX_CAPTURED_LEN).unwrap_or(packet.data);
        let time = u64::try_from(packet.time.as_nanos()).unwrap_or(u64::MAX);
        self.block(code::ENHANCED_PACKET, |out| {
            out.extend_from_slice(&packet.interface.0.to_le_bytes());
            out.extend_from_slice(&((time >> 32) as u32).to_le_bytes());
            out.extend_from_slice(&(time as u32).to_le_bytes());
            out.extend_from_slice(&(data.len() as u32).to_le_bytes());
            out.extend_from_slice(&packet.original_len.to_le_bytes());
            out.extend_from_slice(data);
            pad(out);
            let flags: u32 = match packet.direction {
                Direction::Unknown => 0,
                Direction::Inbound => 1,
                Direction::Outbound => 2,
            };
            if flags != 0 {
                option(out, code::EPB_FLAGS, &flags.to_le_bytes());
            }
            text(out, code::OPT_COMMENT, packet.comment.as_deref());
        });
    }

    /// What was encoded since the last call, to be written.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    /// Bytes that wait for [`Encoder::take`].
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.out.len()
    }

    /// Writes a block around what `body` writes.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&kind.to_le_bytes());
        self.out.extend_from_slice(&[0; 4]);
        body(&mut self.out);
        // The end of the options, of which there may be none.
        option(&mut self.out, code::OPT_END, &[]);
        // A packet and four texts are much shorter than 2^32 bytes.
        let length = ((self.out.len() - start + 4) as u32).to_le_bytes();
        self.out[start + 4..start + 8].copy_from_slice(&length);
        self.out.extend_from_slice(&length);
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Texts are cut before.
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(value);
    pad(out);
}

/// Writes a text of at most 65535 bytes, whole characters.
fn text(out: &mut Vec<u8>, code: u16, value: Option<&str>) {
    if let Some(value) = value {
        let longest = value.len().min(usize::from(u16::MAX));
        let end = (0..=longest)
            .rfind(|&at| value.is_char_boundary(at))
            .unwrap_or(0);
        option(out, code, &value.as_bytes()[..end]);
    }
}

/// Pads to 32 bits: blocks start at such offsets, as everything before is padded too.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
