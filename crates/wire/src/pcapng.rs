//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng): an encoder that does no I/O, and
//! a reader of the same subset that survives any bytes.
//!
//! The subset: section header, interface description and enhanced packet blocks with comments
//! and packet flags. The encoder writes raw IP packets with times in nanoseconds; the reader
//! takes either byte order, any link type and resolution, and skips other blocks.
//!
//! ```
//! use core::time::Duration;
//! use outlast_wire::pcapng::{self, Block, Direction, EnhancedPacket, Encoder, Section};
//!
//! let mut encoder = Encoder::new(&Section::of_application("outlast"));
//! let link = encoder.interface("mobile");
//! encoder.packet(&EnhancedPacket {
//!     direction: Direction::Outbound,
//!     comment: Some("re-sent at link-up".into()),
//!     ..EnhancedPacket::new(link, Duration::from_millis(1500), b"an IP packet")
//! });
//! let file = encoder.take();
//!
//! let packets = pcapng::Reader::new(&file).filter_map(|block| match block {
//!     Ok(Block::Packet(packet)) => Some(packet.time),
//!     _ => None,
//! });
//! assert_eq!(packets.collect::<Vec<_>>(), [Duration::from_millis(1500)]);
//! ```

mod link_type;
mod read;
mod write;

pub use link_type::{ETHERNET, RAW, ip_in_frame, ip_packet};
pub(crate) use read::Clock;
pub use read::{ReadError, Reader};
pub use write::Encoder;

use alloc::borrow::Cow;
use core::time::Duration;

/// Block and option codes, as the format names them.
pub(crate) mod code {
    pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(crate) const PACKET: u32 = 2;
    pub(crate) const SIMPLE_PACKET: u32 = 3;
    pub(crate) const INTERFACE_STATISTICS: u32 = 5;
    pub(crate) const ENHANCED_PACKET: u32 = 6;

    pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

    pub(crate) const OPT_END: u16 = 0;
    pub(crate) const OPT_COMMENT: u16 = 1;
    pub(crate) const SHB_HARDWARE: u16 = 2;
    pub(crate) const SHB_OS: u16 = 3;
    pub(crate) const SHB_APPLICATION: u16 = 4;
    pub(crate) const IF_NAME: u16 = 2;
    pub(crate) const IF_TSRESOL: u16 = 9;
    pub(crate) const IF_TSOFFSET: u16 = 14;
    pub(crate) const EPB_FLAGS: u16 = 2;
    pub(crate) const EPB_DROP_COUNT: u16 = 4;
    pub(crate) const ISB_INTERFACE_DROPS: u16 = 5;
    pub(crate) const ISB_SYSTEM_DROPS: u16 = 7;
}

/// As much of a packet as is written: what Wireshark takes at most
/// (`WTAP_MAX_PACKET_SIZE_STANDARD`), in bytes.
pub const MAX_CAPTURED_LEN: usize = 262_144;

/// A block of a capture file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Block<'a> {
    /// A section begins; interfaces are counted anew.
    Section(Section<'a>),
    /// The next interface of the section.
    Interface(Interface<'a>),
    /// A packet.
    Packet(EnhancedPacket<'a>),
}

/// What a section header says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Section<'a> {
    /// The hardware that captured.
    pub hardware: Option<Cow<'a, str>>,
    /// The operating system that captured.
    pub os: Option<Cow<'a, str>>,
    /// The program that captured.
    pub application: Option<Cow<'a, str>>,
    /// A comment.
    pub comment: Option<Cow<'a, str>>,
}

impl<'a> Section<'a> {
    /// A section that only names the program that captures.
    #[must_use]
    pub fn of_application(application: &'a str) -> Self {
        Self {
            application: Some(application.into()),
            ..Self::default()
        }
    }
}

/// Which interface of its section a packet was captured on, counted from zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InterfaceId(pub u32);

/// What an interface description says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Interface<'a> {
    /// Its number in the section.
    pub id: InterfaceId,
    /// What its packets start with: [`RAW`], [`ETHERNET`] or another of the registry of link
    /// types; see [`ip_packet`].
    pub link_type: u16,
    /// Its name.
    pub name: Option<Cow<'a, str>>,
}

/// A captured packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EnhancedPacket<'a> {
    /// Where it was captured.
    pub interface: InterfaceId,
    /// When, since the Unix epoch or the origin of a simulation.
    pub time: Duration,
    /// Its bytes, as many as were captured.
    pub data: &'a [u8],
    /// Its length on the wire in bytes.
    pub original_len: u32,
    /// Which way it went.
    pub direction: Direction,
    /// A comment.
    pub comment: Option<Cow<'a, str>>,
}

impl<'a> EnhancedPacket<'a> {
    /// A whole packet without flags or comment.
    #[must_use]
    pub fn new(interface: InterfaceId, time: Duration, data: &'a [u8]) -> Self {
        Self {
            interface,
            time,
            data,
            original_len: u32::try_from(data.len()).unwrap_or(u32::MAX),
            direction: Direction::Unknown,
            comment: None,
        }
    }
}

/// Which way a packet went, from the point of view of the machine that captured it
/// (`epb_flags`, bits 0 and 1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Direction {
    /// Not told.
    #[default]
    Unknown,
    /// It arrived.
    Inbound,
    /// It left.
    Outbound,
}
