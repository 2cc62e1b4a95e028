//! Capture files piece by piece: pcap and pcapng in constant memory, without I/O.
//!
//! A [`Decoder`] is shown the next bytes of a file and says what they are, and how many of them it
//! is done with. Its driver keeps the rest and reads on. The format is found out from the first bytes.
//!
//! pcap (draft-ietf-opsawg-pcap): either byte order, microseconds and nanoseconds, and the longer records of a modified
//! pcap that Linux distributions had about the year 2000. pcapng: several
//! sections and interfaces, each with its clock; enhanced and obsolete packet blocks. Packets
//! without a time (simple packet blocks) are counted and left out. So are packets that the capturing
//! program says it has lost.
//!
//! ```
//! use outlast_wire::capture::{Decoder, Step};
//! use outlast_wire::pcapng::{Encoder, EnhancedPacket, Section};
//!
//! let mut encoder = Encoder::new(&Section::of_application("outlast"));
//! let link = encoder.interface("mobile");
//! let time = core::time::Duration::from_millis(1500);
//! encoder.packet(&EnhancedPacket::new(link, time, b"an IP packet"));
//! let file = encoder.take();
//!
//! let mut decoder = Decoder::default();
//! let (mut at, mut times) = (0, Vec::new());
//! while at < file.len() {
//!     at += match decoder.decode(&file[at..])? {
//!         Step::Packet { consumed, packet } => {
//!             times.push(packet.time);
//!             consumed
//!         }
//!         Step::Passed { consumed } => consumed as usize,
//!         Step::Need { .. } => break,
//!     };
//! }
//! decoder.end(file.len() - at)?;
//! assert_eq!(times, [time]);
//! # Ok::<(), outlast_wire::capture::CaptureError>(())
//! ```

use crate::frame::link_type::{LINUX_SLL, LINUX_SLL2};
use crate::pcapng::{Clock, Direction, MAX_CAPTURED_LEN, code};
use alloc::vec::Vec;
use core::time::Duration;

/// Interfaces of a section at most: more are no capture but damage.
const MOST_INTERFACES: usize = 65_536;
/// A packet block has options, too.
const MAX_PACKET_BLOCK: usize = MAX_CAPTURED_LEN + 65_536;
/// The fixed part of an interface description is read, and as much of its options.
const MAX_DESCRIPTION: usize = 65_536;

/// Why a capture cannot be read on. Offsets count from its first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CaptureError {
    /// The first bytes are those of no capture format that is known.
    #[error(
        "neither pcap nor pcapng: the first bytes are {0:02x?}; `tshark -F pcapng -r FILE -w -` converts most formats"
    )]
    Format([u8; 4]),
    /// The file is compressed.
    #[error("the file is compressed; unpack it first, as in `xz -dc FILE | outlast trace -`")]
    Compressed,
    /// There are no bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The file ends within a header, a block or a packet.
    #[error("the file ends within the packet or block at byte {offset}")]
    Truncated {
        /// Where it starts.
        offset: u64,
    },
    /// A length that none can have.
    #[error("the packet or block at byte {offset} has an impossible length of {length} bytes")]
    Length {
        /// Where it starts.
        offset: u64,
        /// Its length as it says.
        length: u32,
    },
    /// A block whose fields do not fit in it.
    #[error("the block at byte {offset} is too short for what it should hold")]
    Content {
        /// Where it starts.
        offset: u64,
    },
    /// A format version that is not known.
    #[error("the header at byte {offset} has version {version}, which is not known")]
    Version {
        /// Where the header starts.
        offset: u64,
        /// The major version.
        version: u16,
    },
    /// A packet of an interface that was not described, or too many interfaces.
    #[error("the packet at byte {offset} is of interface {interface}, which is not described")]
    Interface {
        /// Where the packet's block starts.
        offset: u64,
        /// The interface.
        interface: u32,
    },
}

/// What the next bytes of a capture are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step<'a> {
    /// A packet.
    Packet {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// The packet.
        packet: CapturedPacket<'a>,
    },
    /// Nothing for the caller.
    Passed {
        /// Bytes that are done with; more than the input has if the following are to be skipped.
        consumed: u64,
    },
    /// More bytes are needed to tell.
    Need {
        /// Bytes from the start of the input.
        bytes: usize,
    },
}

/// A packet as it stands in a capture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapturedPacket<'a> {
    /// The interface, counted from zero over the whole file; in a pcap file 0, or its number on the capturing host in a
    /// modified one.
    pub interface: u32,
    /// The link type of its frames.
    pub link_type: u16,
    /// When it was captured, since the Unix epoch or the origin of a simulation.
    pub time: Duration,
    /// The frame, as much of it as was captured.
    pub data: &'a [u8],
    /// The frame's length on the wire in bytes.
    pub original_len: u32,
    /// Which way it went, if the block or the frame tells.
    pub direction: Direction,
}

/// Reads a capture piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    format: Format,
    offset: u64,
    tally: Tally,
}

/// Packets that a capture speaks of and does not show.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    untimed: u64,
    /// Lost before a packet, as the packets' blocks say.
    lost_before_packets: u64,
    /// Lost on the interfaces of earlier sections, as their statistics say.
    lost_in_sections: u64,
}

#[derive(Clone, Debug, Default)]
enum Format {
    #[default]
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
}

#[derive(Clone, Copy, Debug)]
struct Pcap {
    order: Order,
    records: Records,
    link_type: u16,
}

/// Kinds of records in a pcap file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Records {
    Microseconds,
    Nanoseconds,
    /// Microseconds; interface, protocol and packet type follow the lengths (Kuznetzov's patch).
    Modified,
}

#[derive(Clone, Debug)]
struct Pcapng {
    order: Order,
    /// Those of earlier sections.
    before: u32,
    interfaces: Vec<Described>,
}

/// An interface of a section.
#[derive(Clone, Copy, Debug)]
struct Described {
    link_type: u16,
    clock: Clock,
    /// Packets lost since it was opened.
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        })
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(match self {
            Self::Big => u64::from_be_bytes(bytes),
            Self::Little => u64::from_le_bytes(bytes),
        })
    }
}

impl Decoder {
    /// Says what the bytes are that follow those which are done with.
    ///
    /// # Errors
    /// When the capture cannot be read on; what came before stays good.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        let step = match &mut self.format {
            Format::Unknown => self.begin(input),
            Format::Pcap(pcap) => pcap.decode(input, self.offset),
            Format::Pcapng(pcapng) => pcapng.decode(input, self.offset, &mut self.tally),
        }?;
        self.offset += match step {
            Step::Packet { consumed, .. } => consumed as u64,
            Step::Passed { consumed } => consumed,
            Step::Need { .. } => 0,
        };
        Ok(step)
    }

    /// Whether the capture may end here, with `left` bytes that are not done with.
    ///
    /// # Errors
    /// When something is cut off, or nothing was there.
    pub const fn end(&self, left: usize) -> Result<(), CaptureError> {
        match (&self.format, left) {
            (Format::Unknown, 0) => Err(CaptureError::Empty),
            (_, 0) => Ok(()),
            _ => Err(CaptureError::Truncated {
                offset: self.offset,
            }),
        }
    }

    /// Bytes that are done with.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Packets without a time, which were left out.
    #[must_use]
    pub const fn untimed(&self) -> u64 {
        self.tally.untimed
    }

    /// Packets that the capturing program lost, as it says itself.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let open = match &self.format {
            Format::Pcapng(pcapng) => pcapng.lost(),
            _ => 0,
        };
        let of_interfaces = self.tally.lost_in_sections.saturating_add(open);
        // Both count the same packets.
        self.tally.lost_before_packets.max(of_interfaces)
    }

    fn begin<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        const PCAP_HEADER: usize = 24;
        let Some(magic) = input.first_chunk::<4>() else {
            return Ok(Step::Need { bytes: 4 });
        };
        let (order, records) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, Records::Microseconds),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, Records::Microseconds),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, Records::Nanoseconds),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, Records::Nanoseconds),
            [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, Records::Modified),
            [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, Records::Modified),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                // The byte order follows with the section header itself.
                self.format = Format::Pcapng(Pcapng {
                    order: Order::Little,
                    before: 0,
                    interfaces: Vec::new(),
                });
                return Ok(Step::Passed { consumed: 0 });
            }
            // gzip, zstd, LZ4, xz and bzip2.
            [0x1f, 0x8b, ..]
            | [0x28, 0xb5, 0x2f, 0xfd]
            | [0x04, 0x22, 0x4d, 0x18]
            | [0xfd, b'7', b'z', b'X']
            | [b'B', b'Z', b'h', _] => {
                return Err(CaptureError::Compressed);
            }
            _ => return Err(CaptureError::Format(*magic)),
        };
        let fields = order.u16(input, 4).zip(order.u32(input, 20));
        let Some((version, link_type)) = fields else {
            return Ok(Step::Need { bytes: PCAP_HEADER });
        };
        if version != 2 {
            return Err(CaptureError::Version { offset: 0, version });
        }
        self.format = Format::Pcap(Pcap {
            order,
            records,
            // The upper half tells of frame check sequences.
            link_type: (link_type & 0xffff) as u16,
        });
        Ok(Step::Passed {
            consumed: PCAP_HEADER as u64,
        })
    }
}

impl Pcap {
    fn decode<'a>(&self, input: &'a [u8], offset: u64) -> Result<Step<'a>, CaptureError> {
        let header_len = match self.records {
            Records::Microseconds | Records::Nanoseconds => 16,
            Records::Modified => 24,
        };
        let Some(header) = input.get(..header_len) else {
            return Ok(Step::Need { bytes: header_len });
        };
        let field = |at| self.order.u32(header, at);
        let fields = (field(0), field(4), field(8), field(12));
        let (Some(seconds), Some(fraction), Some(length), Some(original_len)) = fields else {
            return Ok(Step::Need { bytes: header_len });
        };
        let captured_len = usize::try_from(length).unwrap_or(usize::MAX);
        if captured_len > MAX_CAPTURED_LEN {
            return Err(CaptureError::Length { offset, length });
        }
        let consumed = header_len + captured_len;
        let Some(data) = input.get(header_len..consumed) else {
            return Ok(Step::Need { bytes: consumed });
        };
        let unit = match self.records {
            Records::Microseconds | Records::Modified => 1_000,
            Records::Nanoseconds => 1,
        };
        let fraction = Duration::from_nanos(u64::from(fraction) * unit);
        let (interface, direction) = match self.records {
            Records::Microseconds | Records::Nanoseconds => (0, of_cooked(self.link_type, data)),
            Records::Modified => {
                let direction = header.get(22).map(|kind| of_packet_type(*kind));
                let direction = direction.unwrap_or(Direction::Unknown);
                (field(16).unwrap_or(0), direction)
            }
        };
        let packet = CapturedPacket {
            interface,
            link_type: self.link_type,
            time: Duration::from_secs(seconds.into()) + fraction,
            data,
            original_len,
            direction,
        };
        Ok(Step::Packet { consumed, packet })
    }
}

impl Pcapng {
    fn decode<'a>(
        &mut self,
        input: &'a [u8],
        offset: u64,
        tally: &mut Tally,
    ) -> Result<Step<'a>, CaptureError> {
        // Kind and length, and the byte order of a section.
        const BEGINNING: usize = 12;
        let Some(beginning) = input.first_chunk::<BEGINNING>() else {
            return Ok(Step::Need { bytes: BEGINNING });
        };
        // Reads the same in either byte order.
        let is_section = beginning.starts_with(&code::SECTION_HEADER.to_be_bytes());
        if is_section {
            self.order = match beginning.last_chunk::<4>() {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => Order::Big,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => Order::Little,
                _ => return Err(CaptureError::Content { offset }),
            };
        }
        let order = self.order;
        let fields = order.u32(input, 0).zip(order.u32(input, 4));
        let Some((kind, length)) = fields else {
            return Ok(Step::Need { bytes: BEGINNING });
        };
        let impossible = CaptureError::Length { offset, length };
        let block_len = usize::try_from(length).map_err(|_| impossible)?;
        if length < 12 || length % 4 != 0 {
            return Err(impossible);
        }
        let passed = Step::Passed {
            consumed: length.into(),
        };
        let most = match kind {
            code::ENHANCED_PACKET | code::PACKET => MAX_PACKET_BLOCK,
            code::SECTION_HEADER | code::INTERFACE_DESCRIPTION | code::INTERFACE_STATISTICS => {
                MAX_DESCRIPTION
            }
            code::SIMPLE_PACKET => {
                tally.untimed += 1;
                return Ok(passed);
            }
            _ => return Ok(passed),
        };
        if block_len > most {
            return Err(impossible);
        }
        let Some(block) = input.get(..block_len) else {
            return Ok(Step::Need { bytes: block_len });
        };
        if order.u32(block, block_len - 4) != Some(length) {
            return Err(impossible);
        }
        let body = block.get(8..block_len - 4).unwrap_or_default();
        match kind {
            code::SECTION_HEADER | code::INTERFACE_DESCRIPTION => {
                self.describe(kind, body, offset, tally)?;
                Ok(passed)
            }
            code::INTERFACE_STATISTICS => {
                self.note_statistics(body);
                Ok(passed)
            }
            _ => Ok(Step::Packet {
                consumed: block_len,
                packet: self.packet(kind, body, offset, tally)?,
            }),
        }
    }

    /// Packets lost on the interfaces of this section.
    fn lost(&self) -> u64 {
        let losses = self.interfaces.iter().map(|interface| interface.lost);
        losses.fold(0, u64::saturating_add)
    }

    /// Takes note of the losses in an interface's statistics, which count from its beginning.
    fn note_statistics(&mut self, body: &[u8]) {
        let order = self.order;
        let number = order.u32(body, 0).and_then(|it| usize::try_from(it).ok());
        let described = number.and_then(|number| self.interfaces.get_mut(number));
        let (Some(interface), Some(described_as)) = (described, body.get(12..)) else {
            return;
        };
        let counts = options(order, described_as).filter(|(option, _)| {
            matches!(*option, code::ISB_INTERFACE_DROPS | code::ISB_SYSTEM_DROPS)
        });
        let losses = counts.filter_map(|(_, value)| order.u64(value, 0));
        interface.lost = losses.fold(0, u64::saturating_add);
    }

    /// Takes note of a section or an interface.
    fn describe(
        &mut self,
        kind: u32,
        body: &[u8],
        offset: u64,
        tally: &mut Tally,
    ) -> Result<(), CaptureError> {
        let content = CaptureError::Content { offset };
        let order = self.order;
        if kind == code::SECTION_HEADER {
            let version = order.u16(body, 4).ok_or(content)?;
            if version != 1 {
                return Err(CaptureError::Version { offset, version });
            }
            let count = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
            self.before = self.before.saturating_add(count);
            tally.lost_in_sections = tally.lost_in_sections.saturating_add(self.lost());
            self.interfaces.clear();
            return Ok(());
        }
        if self.interfaces.len() >= MOST_INTERFACES {
            let interface = MOST_INTERFACES as u32;
            return Err(CaptureError::Interface { offset, interface });
        }
        let link_type = order.u16(body, 0).ok_or(content)?;
        let options = body.get(8..).ok_or(content)?;
        self.interfaces.push(Described {
            link_type,
            clock: clock(order, options),
            lost: 0,
        });
        Ok(())
    }

    fn packet<'a>(
        &self,
        kind: u32,
        body: &'a [u8],
        offset: u64,
        tally: &mut Tally,
    ) -> Result<CapturedPacket<'a>, CaptureError> {
        let content = CaptureError::Content { offset };
        let order = self.order;
        let interface = match kind {
            // Followed by a count of drops, of 16 bits, too.
            code::PACKET => order.u16(body, 0).map(u32::from),
            _ => order.u32(body, 0),
        };
        let interface = interface.ok_or(content)?;
        let field = |at| order.u32(body, at).ok_or(content);
        let (high, low) = (field(4)?, field(8)?);
        let (captured_len, original_len) = (field(12)?, field(16)?);
        let place = usize::try_from(interface).ok();
        let Some(described) = place.and_then(|place| self.interfaces.get(place)) else {
            return Err(CaptureError::Interface { offset, interface });
        };
        let Described {
            link_type, clock, ..
        } = described;
        let captured_len = usize::try_from(captured_len).map_err(|_| content)?;
        let data = body.get(20..).and_then(|rest| rest.get(..captured_len));
        let data = data.ok_or(content)?;
        let padded = captured_len.next_multiple_of(4);
        let mut direction = of_cooked(*link_type, data);
        for (option, value) in options(order, body.get(20 + padded..).unwrap_or_default()) {
            match option {
                code::EPB_FLAGS => {
                    direction = match order.u32(value, 0).unwrap_or(0) & 3 {
                        1 => Direction::Inbound,
                        2 => Direction::Outbound,
                        _ => direction,
                    };
                }
                code::EPB_DROP_COUNT => {
                    let lost = order.u64(value, 0).unwrap_or(0);
                    tally.lost_before_packets = tally.lost_before_packets.saturating_add(lost);
                }
                _ => {}
            }
        }
        Ok(CapturedPacket {
            interface: self.before.saturating_add(interface),
            link_type: *link_type,
            time: clock.time(u64::from(high) << 32 | u64::from(low)),
            data,
            original_len,
            direction,
        })
    }
}

/// The options of a block, up to the end or to one that does not fit.
fn options(order: Order, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let option = order.u16(rest, 0).filter(|&code| code != code::OPT_END)?;
        let length = usize::from(order.u16(rest, 2)?);
        let value = rest.get(4..4 + length)?;
        rest = rest
            .get(4 + length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some((option, value))
    })
}

/// How the times of an interface with these options count.
fn clock(order: Order, described: &[u8]) -> Clock {
    let mut clock = Clock {
        resolution: 6,
        offset: 0,
    };
    for (option, value) in options(order, described) {
        match (option, value) {
            (code::IF_TSRESOL, &[resolution]) => clock.resolution = resolution,
            (code::IF_TSOFFSET, value) => {
                clock.offset = order.u64(value, 0).unwrap_or(0).cast_signed();
            }
            _ => {}
        }
    }
    clock
}

/// Direction that the packet type of a frame in Linux' cooked mode says.
fn of_cooked(link_type: u16, frame: &[u8]) -> Direction {
    let packet_type = match link_type {
        LINUX_SLL => frame.get(1),
        LINUX_SLL2 => frame.get(10),
        _ => None,
    };
    packet_type.map_or(Direction::Unknown, |kind| of_packet_type(*kind))
}

/// Direction of a packet that Linux gave this type.
const fn of_packet_type(kind: u8) -> Direction {
    const OUTGOING: u8 = 4;
    match kind {
        OUTGOING => Direction::Outbound,
        _ => Direction::Inbound,
    }
}
