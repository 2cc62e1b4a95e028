//! One segment at a time: made smaller, and restored.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use outlast_wire::compressed::{CompressedSegment, CompressionMessage, OVERHEAD, PROTOCOL, Tag};
use outlast_wire::{Packet, TcpFlags};

/// The protocol number of TCP.
const TCP: u8 = 6;

/// A packet is at most so many times as long as the packet that it is restored from.
///
/// Packets that DEFLATE makes smaller than that are filled up. A link is not believed to gain more, either.
pub const LARGEST_RATIO: u32 = 8;

/// Offset of the flags in a TCP header, in bytes.
const FLAGS_AT: usize = 13;

/// Compresses and restores segments; it keeps the memory that both take, some 400 KB.
pub struct Codec {
    /// The longest packet that is compressed or restored, in bytes.
    longest: u32,
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
    /// The original is longer than the link carries, or than [`LARGEST_RATIO`] allows.
    #[error("the original is too long")]
    Length,
    /// The restored packet is no TCP segment that goes compressed.
    #[error("it is no TCP segment that goes compressed")]
    Segment,
}

impl Codec {
    /// A codec for packets of at most `longest` bytes.
    #[must_use]
    pub fn new(longest: u32) -> Self {
        let mut deflate = Box::<CompressorOxide>::default();
        deflate.set_format_and_level(DataFormat::Raw, 1);
        Self {
            longest,
            deflate,
            inflate: Box::default(),
            scratch: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Sets the length in bytes of the longest packet that is compressed or restored.
    pub const fn set_longest(&mut self, longest: u32) {
        self.longest = longest;
    }

    /// Compresses a TCP segment at `level`, from 1 (fast) to 9 (small).
    ///
    /// `None` if the segment does not become smaller, opens or aborts a connection, or is longer than the link carries.
    pub fn compress(&mut self, segment: &Packet, level: u8, tag: Tag) -> Option<Packet> {
        let tcp = segment.tcp()?;
        if stands_alone(tcp.flags) || segment.total_len() > self.longest {
            return None;
        }
        let body = segment.body()?;
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
        let around = segment.total_len() as usize - payload.len() + OVERHEAD;
        let least = segment.total_len().div_ceil(LARGEST_RATIO) as usize;
        let filled = written.max(least.saturating_sub(around));
        self.scratch.get_mut(written..filled)?.fill(0);
        let compressed = self.scratch.get(..filled)?;
        let message = CompressionMessage::Segment(CompressedSegment {
            tag,
            check: crc32fast::hash(body),
            payload_len,
            header,
            compressed,
        });
        self.message.clear();
        message.write(&mut self.message);
        segment.carrying(PROTOCOL, &self.message)
    }

    /// Restores the segment that `packet` carries, whose tag the caller has judged.
    ///
    /// # Errors
    /// [`RestoreError`], if the original does not come out. Nothing is decompressed that cannot be an original.
    pub fn restore(
        &mut self,
        packet: &Packet,
        segment: &CompressedSegment<'_>,
    ) -> Result<Packet, RestoreError> {
        let flags = segment.header.get(FLAGS_AT).copied();
        if flags.is_none_or(|flags| stands_alone(TcpFlags(flags))) {
            return Err(RestoreError::Segment);
        }
        let lacking = u32::from(segment.payload_len);
        let carried = OVERHEAD + segment.compressed.len();
        let original = (packet.total_len() + lacking).saturating_sub(carried as u32);
        if original > self.longest.min(packet.total_len() * LARGEST_RATIO) {
            return Err(RestoreError::Length);
        }
        let header_len = segment.header.len();
        let length = header_len + usize::from(segment.payload_len);
        self.scratch.clear();
        self.scratch.extend_from_slice(segment.header);
        self.scratch.resize(length, 0);
        self.inflate.init();
        let (status, _, written) = decompress(
            &mut self.inflate,
            segment.compressed,
            &mut self.scratch,
            header_len,
            TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
        );
        if status != TINFLStatus::Done || header_len + written != length {
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

/// True for a segment that opens or aborts a connection: it goes as it is, before every filter.
const fn stands_alone(flags: TcpFlags) -> bool {
    flags.intersects(TcpFlags::SYN.union(TcpFlags::RST))
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}
