//! One segment at a time: made smaller, and restored.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use outlast_wire::Packet;
use outlast_wire::compressed::{CompressedSegment, CompressionMessage, OVERHEAD, PROTOCOL};

/// The protocol number of TCP.
const TCP: u8 = 6;

/// Compresses and restores segments; it keeps the memory that both take, some 400 KB.
pub struct Codec {
    deflate: Box<CompressorOxide>,
    inflate: Box<DecompressorOxide>,
    /// A compressed payload, or a restored segment.
    scratch: Vec<u8>,
    message: Vec<u8>,
}

/// Why a compressed segment cannot be restored.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RestoreError {
    /// The payload is no DEFLATE stream of the length that the message tells.
    #[error("the payload cannot be decompressed")]
    Payload,
    /// The restored segment is not the original.
    #[error("the check value does not fit")]
    Check,
    /// The restored packet is too long, or no TCP segment.
    #[error("it is no TCP segment")]
    Segment,
}

impl Default for Codec {
    fn default() -> Self {
        let mut deflate = Box::<CompressorOxide>::default();
        deflate.set_format_and_level(DataFormat::Raw, 1);
        Self {
            deflate,
            inflate: Box::default(),
            scratch: Vec::new(),
            message: Vec::new(),
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}

impl Codec {
    /// Compresses a TCP segment at `level`, from 1 (fast) to 9 (small); `None` if it does not become smaller.
    pub fn compress(&mut self, segment: &Packet, level: u8) -> Option<Packet> {
        let body = segment.tcp().and(segment.body())?;
        let payload = segment.payload()?;
        let payload_len = u16::try_from(payload.len()).ok()?;
        let header = body.get(..body.len().checked_sub(payload.len())?)?;
        let room = payload.len().checked_sub(OVERHEAD + 1)?;
        self.deflate.reset();
        self.deflate
            .set_format_and_level(DataFormat::Raw, level.clamp(1, 9));
        self.scratch.resize(room, 0);
        let (status, read, written) = compress(
            &mut self.deflate,
            payload,
            &mut self.scratch,
            TDEFLFlush::Finish,
        );
        if status != TDEFLStatus::Done || read != payload.len() {
            return None;
        }
        let compressed = self.scratch.get(..written)?;
        let message = CompressionMessage::Segment(CompressedSegment {
            check: crc32fast::hash(body),
            payload_len,
            header,
            compressed,
        });
        self.message.clear();
        message.write(&mut self.message);
        segment.carrying(PROTOCOL, &self.message)
    }

    /// Restores the segment that `packet` carries.
    ///
    /// # Errors
    /// [`RestoreError`], if the original does not come out.
    pub fn restore(
        &mut self,
        packet: &Packet,
        segment: &CompressedSegment<'_>,
    ) -> Result<Packet, RestoreError> {
        let header_len = segment.header.len();
        let length = header_len + usize::from(segment.payload_len);
        self.scratch.clear();
        self.scratch.extend_from_slice(segment.header);
        self.scratch.resize(length, 0);
        self.inflate.init();
        let (status, read, written) = decompress(
            &mut self.inflate,
            segment.compressed,
            &mut self.scratch,
            header_len,
            TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
        );
        let is_whole = read == segment.compressed.len() && header_len + written == length;
        if status != TINFLStatus::Done || !is_whole {
            return Err(RestoreError::Payload);
        }
        if crc32fast::hash(&self.scratch) != segment.check {
            return Err(RestoreError::Check);
        }
        packet
            .carrying(TCP, &self.scratch)
            .filter(|restored| restored.tcp().is_some())
            .ok_or(RestoreError::Segment)
    }
}
