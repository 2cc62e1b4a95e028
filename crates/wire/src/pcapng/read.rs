//! The reader.

use super::{Block, Direction, EnhancedPacket, Interface, InterfaceId, Section, code};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::time::Duration;

/// Why a capture file cannot be read on. Offsets count from its first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// The file does not start with a section header.
    #[error("this is no pcapng file")]
    NotPcapng,
    /// The file ends within a block, as that of a killed program does.
    #[error("the file ends within the block at byte {offset}")]
    Truncated {
        /// Where the block starts.
        offset: usize,
    },
    /// A block's length is none that a block can have, or not the same at its end.
    #[error("the block at byte {offset} has an impossible length of {length}")]
    BlockLength {
        /// Where the block starts.
        offset: usize,
        /// Its length as it says.
        length: u32,
    },
    /// A section of another major version.
    #[error("the section at byte {offset} has version {version}, only 1 is known")]
    Version {
        /// Where the section starts.
        offset: usize,
        /// Its major version.
        version: u16,
    },
    /// A block's fixed fields or its packet do not fit in it.
    #[error("the block at byte {offset} is too short for what it should hold")]
    BlockContent {
        /// Where the block starts.
        offset: usize,
    },
    /// A packet of an interface that was not described.
    #[error("the packet at byte {offset} is of interface {interface}, which is not described")]
    Interface {
        /// Where the packet's block starts.
        offset: usize,
        /// The interface that it names.
        interface: u32,
    },
}

/// Reads a capture block by block. The first error ends it; what came before stays good.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    file: &'a [u8],
    at: usize,
    big_endian: bool,
    clocks: Vec<Clock>,
    skipped: u64,
    failed: bool,
}

/// How the times of an interface count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// `if_tsresol`: a negative power of ten, or of two with the high bit set.
    pub(crate) resolution: u8,
    /// `if_tsoffset`, in seconds.
    pub(crate) offset: i64,
}

impl<'a> Reader<'a> {
    /// Reads `file`, the whole of it.
    #[must_use]
    pub const fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            at: 0,
            big_endian: false,
            clocks: Vec::new(),
            skipped: 0,
            failed: false,
        }
    }

    /// Blocks of other kinds that were passed over so far.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    fn read(&mut self) -> Result<Option<Block<'a>>, ReadError> {
        loop {
            let offset = self.at;
            if offset >= self.file.len() {
                return match offset {
                    0 => Err(ReadError::NotPcapng),
                    _ => Ok(None),
                };
            }
            let (kind, body) = self.block()?;
            let fields = Fields {
                rest: body,
                big_endian: self.big_endian,
            };
            let block = match kind {
                code::SECTION_HEADER => self.section(fields, offset)?.map(Block::Section),
                code::INTERFACE_DESCRIPTION => self.interface(fields).map(Block::Interface),
                code::ENHANCED_PACKET => self.packet(fields, offset)?.map(Block::Packet),
                _ => {
                    self.skipped += 1;
                    continue;
                }
            };
            return block.ok_or(ReadError::BlockContent { offset }).map(Some);
        }
    }

    /// Steps over the next block; its kind and what lies between its lengths.
    fn block(&mut self) -> Result<(u32, &'a [u8]), ReadError> {
        let offset = self.at;
        let truncated = ReadError::Truncated { offset };
        let rest = self.file.get(offset..).ok_or(truncated)?;
        // Reads the same in either byte order.
        let is_section = rest.first_chunk::<4>() == Some(&code::SECTION_HEADER.to_be_bytes());
        match rest.get(8..12) {
            _ if offset == 0 && !is_section => return Err(ReadError::NotPcapng),
            Some(magic) if is_section => {
                self.big_endian = match magic {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return Err(ReadError::NotPcapng),
                };
            }
            _ => {}
        }
        let mut fields = Fields {
            rest,
            big_endian: self.big_endian,
        };
        let kind = fields.u32().ok_or(truncated)?;
        let length = fields.u32().ok_or(truncated)?;
        let impossible = ReadError::BlockLength { offset, length };
        if length < 12 || length % 4 != 0 {
            return Err(impossible);
        }
        let length_usize = usize::try_from(length).map_err(|_| impossible)?;
        let block = rest.get(..length_usize).ok_or(truncated)?;
        let (body, trailer) = block
            .get(8..)
            .and_then(<[u8]>::split_last_chunk::<4>)
            .ok_or(impossible)?;
        if rest.get(4..8) != Some(trailer) {
            return Err(impossible);
        }
        self.at += length_usize;
        Ok((kind, body))
    }

    fn section(
        &mut self,
        mut fields: Fields<'a>,
        offset: usize,
    ) -> Result<Option<Section<'a>>, ReadError> {
        self.clocks.clear();
        fields.u32();
        let Some(version) = fields.u16() else {
            return Ok(None);
        };
        if version != 1 {
            return Err(ReadError::Version { offset, version });
        }
        // Minor version and length, which the blocks themselves tell.
        if fields.bytes(10).is_none() {
            return Ok(None);
        }
        let mut section = Section::default();
        for (code, value) in fields.options() {
            match code {
                code::SHB_HARDWARE => section.hardware = Some(text(value)),
                code::SHB_OS => section.os = Some(text(value)),
                code::SHB_APPLICATION => section.application = Some(text(value)),
                code::OPT_COMMENT => section.comment = Some(text(value)),
                _ => {}
            }
        }
        Ok(Some(section))
    }

    fn interface(&mut self, mut fields: Fields<'a>) -> Option<Interface<'a>> {
        let link_type = fields.u16()?;
        // Reserved, and the longest packet.
        fields.bytes(6)?;
        let mut clock = Clock {
            resolution: 6,
            offset: 0,
        };
        let mut name = None;
        let big_endian = fields.big_endian;
        for (code, value) in fields.options() {
            match (code, value) {
                (code::IF_NAME, value) => name = Some(text(value)),
                (code::IF_TSRESOL, &[resolution]) => clock.resolution = resolution,
                (code::IF_TSOFFSET, value) => {
                    let mut value = Fields {
                        rest: value,
                        big_endian,
                    };
                    clock.offset = value.u64().unwrap_or(0).cast_signed();
                }
                _ => {}
            }
        }
        // A block has at least 20 bytes: a file of 2^32 interfaces is not in memory.
        let id = InterfaceId(u32::try_from(self.clocks.len()).ok()?);
        self.clocks.push(clock);
        Some(Interface {
            id,
            link_type,
            name,
        })
    }

    fn packet(
        &self,
        mut fields: Fields<'a>,
        offset: usize,
    ) -> Result<Option<EnhancedPacket<'a>>, ReadError> {
        let Some([interface, high, low, captured_len, original_len]) = fields.u32s() else {
            return Ok(None);
        };
        let clock = usize::try_from(interface)
            .ok()
            .and_then(|id| self.clocks.get(id));
        let Some(clock) = clock else {
            return Err(ReadError::Interface { offset, interface });
        };
        let Some(data) = fields.padded(captured_len) else {
            return Ok(None);
        };
        let mut packet = EnhancedPacket {
            interface: InterfaceId(interface),
            time: clock.time(u64::from(high) << 32 | u64::from(low)),
            data,
            original_len,
            direction: Direction::Unknown,
            comment: None,
        };
        let big_endian = fields.big_endian;
        for (code, value) in fields.options() {
            match code {
                code::OPT_COMMENT => packet.comment = Some(text(value)),
                code::EPB_FLAGS => {
                    let flags = Fields {
                        rest: value,
                        big_endian,
                    }
                    .u32();
                    packet.direction = match flags.unwrap_or(0) & 3 {
                        1 => Direction::Inbound,
                        2 => Direction::Outbound,
                        _ => Direction::Unknown,
                    };
                }
                _ => {}
            }
        }
        Ok(Some(packet))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Block<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let block = self.read();
        self.failed = block.is_err();
        block.transpose()
    }
}

impl FusedIterator for Reader<'_> {}

impl Clock {
    /// The time that `ticks` tell; zero if it is before the epoch.
    pub(crate) fn time(self, ticks: u64) -> Duration {
        const NANOS: u128 = 1_000_000_000;
        let exponent = u32::from(self.resolution & 0x7f);
        let per_second = match self.resolution & 0x80 {
            // Finer than any power that fits: 2^64 ticks are less than a nanosecond.
            0 => 10_u128.checked_pow(exponent).unwrap_or(u128::MAX),
            _ => 1 << exponent,
        };
        let nanos = u128::from(ticks) * NANOS / per_second;
        // At most 2^64 seconds less a bit, and that only with whole seconds for ticks.
        let since = Duration::new((nanos / NANOS) as u64, (nanos % NANOS) as u32);
        let offset = Duration::from_secs(self.offset.unsigned_abs());
        match self.offset {
            0.. => since.saturating_add(offset),
            _ => since.saturating_sub(offset),
        }
    }
}

/// Reads the fields of a block in its byte order.
struct Fields<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut chunk = *self.bytes(N)?.first_chunk::<N>()?;
        if self.big_endian {
            chunk.reverse();
        }
        Some(chunk)
    }

    fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn u32s<const N: usize>(&mut self) -> Option<[u32; N]> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.u32()?;
        }
        Some(values)
    }

    /// Bytes that are padded to 32 bits.
    fn padded(&mut self, length: u32) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let value = self.bytes(length)?;
        self.bytes(length.checked_next_multiple_of(4)? - length)?;
        Some(value)
    }

    /// The options that follow, up to the end or to one that does not fit.
    fn options(mut self) -> impl Iterator<Item = (u16, &'a [u8])> {
        core::iter::from_fn(move || {
            let code = self.u16().filter(|&code| code != code::OPT_END)?;
            let length = self.u16()?;
            Some((code, self.padded(length.into())?))
        })
    }
}

fn text(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}
