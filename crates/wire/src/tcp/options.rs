//! TCP options: MSS, window scale and timestamps (RFC 7323), SACK (RFC 2018), user timeout
//! (RFC 5482) and the shared experimental kinds (RFC 6994).

use crate::SeqNumber;
use arrayvec::ArrayVec;
use core::time::Duration;

/// The options of one segment, as far as Outlast reads them.
///
/// Of an option that occurs twice the first counts, as in Linux.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2), in bytes.
    pub mss: Option<u16>,
    /// Shift of the window field (kind 3), as on the wire: more than 14 means 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4).
    pub sack_permitted: bool,
    /// SACK blocks (kind 5), at most four, the most recent first (a DSACK leads).
    pub sack: ArrayVec<SackBlock, 4>,
    /// Timestamps (kind 8).
    pub timestamps: Option<Timestamps>,
    /// User timeout (kind 28).
    pub user_timeout: Option<UserTimeout>,
    /// The first experimental option (kinds 253 and 254).
    pub experimental: Option<Experimental>,
}

/// One SACK block: the bytes from `left` up to, not including, `right`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNumber,
    /// The number behind its last.
    pub right: SeqNumber,
}

/// TSval and TSecr (RFC 7323, section 3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

/// The user timeout option (RFC 5482, section 3): 15 bits of seconds or minutes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UserTimeout {
    /// The G bit: the value counts minutes.
    pub minutes: bool,
    /// The value, 1..=32767; zero is reserved and never sent.
    pub value: u16,
}

impl UserTimeout {
    /// The timeout as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.value as u64 * if self.minutes { 60 } else { 1 })
    }
}

/// An experimental option (RFC 6994): kind 253 or 254 and an experiment identifier.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Experimental {
    /// 253 or 254.
    pub kind: u8,
    /// Identifier and data, as on the wire: a 16- or 32-bit ExID comes first.
    pub data: ArrayVec<u8, 38>,
}
