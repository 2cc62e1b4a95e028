//! TCP options: MSS (RFC 9293), window scale and timestamps (RFC 7323), SACK (RFC 2018), user
//! timeout (RFC 5482) and the shared experimental kinds (RFC 6994).

use crate::SeqNumber;
use arrayvec::ArrayVec;
use core::time::Duration;

/// Option kinds (IANA, "TCP Option Kind Numbers").
pub mod kind {
    /// End of the option list.
    pub const END: u8 = 0;
    /// No operation: padding between options.
    pub const NOP: u8 = 1;
    /// Maximum segment size.
    pub const MSS: u8 = 2;
    /// Window scale.
    pub const WINDOW_SCALE: u8 = 3;
    /// SACK permitted.
    pub const SACK_PERMITTED: u8 = 4;
    /// SACK.
    pub const SACK: u8 = 5;
    /// Timestamps.
    pub const TIMESTAMPS: u8 = 8;
    /// User timeout.
    pub const USER_TIMEOUT: u8 = 28;
    /// The first shared experimental kind.
    pub const EXPERIMENT_1: u8 = 253;
    /// The second shared experimental kind.
    pub const EXPERIMENT_2: u8 = 254;
}

/// Room for options in a TCP header, in bytes: the data offset counts at most fifteen words.
pub const MAX_OPTIONS_LEN: usize = 40;

/// The experiment of the Immediate Retransmission Option.
const IMMEDIATE_RETRANSMISSION: [u8; 4] = *b"OLIR";

/// Timestamps with their padding, in bytes.
const TIMESTAMPS_LEN: usize = 12;

/// The options of one segment, as far as Outlast reads them.
///
/// Of an option that occurs twice the last counts, as in Linux (`tcp_parse_options`); of
/// experimental ones, which differ by what follows their kind, the first.
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
    /// Something could not be read: an option of a known kind with a length that this kind does
    /// not have, which was skipped, or a length below two or behind the header's end, where
    /// reading stopped. Builders write nothing for it.
    pub malformed: bool,
}

impl TcpOptions {
    /// Reads the options behind the fixed part of a TCP header. An illegal length is survived
    /// (RFC 9293, MUST-7), unknown kinds are skipped (MUST-6): see [`Self::malformed`].
    #[must_use]
    #[inline]
    pub fn parse(mut area: &[u8]) -> Self {
        let mut options = Self::default();
        // What nearly every segment of a running connection carries, and nothing else.
        if let &[
            kind::NOP,
            kind::NOP,
            kind::TIMESTAMPS,
            10,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ] = area
        {
            options.timestamps = Some(Timestamps::from_bytes([a, b, c, d, e, f, g, h]));
            return options;
        }
        while let Some((&kind, rest)) = area.split_first() {
            match kind {
                kind::END => break,
                kind::NOP => area = rest,
                _ => {
                    let Some((data, behind)) = split_option(area) else {
                        options.malformed = true;
                        break;
                    };
                    options.read(kind, data);
                    area = behind;
                }
            }
        }
        options
    }

    fn read(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (kind::MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::SACK, blocks) => match blocks.as_chunks::<8>() {
                (blocks @ [_, ..], []) => {
                    self.sack = blocks.iter().map(SackBlock::from_bytes).take(4).collect();
                }
                _ => self.malformed = true,
            },
            (kind::TIMESTAMPS, data) => match data.try_into() {
                Ok(data) => self.timestamps = Some(Timestamps::from_bytes(data)),
                Err(_) => self.malformed = true,
            },
            (kind::USER_TIMEOUT, &[a, b]) => {
                // A value of zero is ignored (RFC 5482, section 3).
                self.user_timeout = UserTimeout::from_bits(u16::from_be_bytes([a, b]));
            }
            (kind::MSS | kind::WINDOW_SCALE | kind::SACK_PERMITTED | kind::USER_TIMEOUT, _) => {
                self.malformed = true;
            }
            (kind::EXPERIMENT_1 | kind::EXPERIMENT_2, data) if self.experimental.is_none() => {
                // 38 bytes are all that a header can hold; a longer area is not a header's.
                match ArrayVec::try_from(data) {
                    Ok(data) => self.experimental = Some(Experimental { kind, data }),
                    Err(_) => self.malformed = true,
                }
            }
            _ => {}
        }
    }

    /// Leaves nothing.
    #[inline]
    pub(crate) fn clear_all(&mut self) {
        let Self {
            mss,
            window_scale,
            sack_permitted,
            sack,
            timestamps,
            user_timeout,
            experimental,
            malformed,
        } = self;
        *mss = None;
        *window_scale = None;
        *sack_permitted = false;
        sack.clear();
        *timestamps = None;
        *user_timeout = None;
        *experimental = None;
        *malformed = false;
    }

    /// Leaves nothing but `timestamps`; returns the length of what [`Self::emit`] writes.
    #[inline]
    pub(crate) fn become_timestamps(&mut self, timestamps: Option<Timestamps>) -> usize {
        self.clear_all();
        self.timestamps = timestamps;
        timestamps.map_or(0, |_| TIMESTAMPS_LEN)
    }

    /// These options without what [`Self::emit`] would not write.
    #[must_use]
    pub fn fitted(mut self) -> Self {
        self.fit();
        self
    }

    /// Leaves out what [`Self::emit`] would not write; returns the length of what it does.
    #[inline]
    pub(crate) fn fit(&mut self) -> usize {
        self.malformed = false;
        if self.has_only_timestamps() {
            return self.timestamps.map_or(0, |_| TIMESTAMPS_LEN);
        }
        self.fit_others()
    }

    /// Whether there are timestamps or nothing: what nearly every segment of a running connection
    /// carries.
    #[inline]
    #[must_use]
    pub fn has_only_timestamps(&self) -> bool {
        let Self {
            mss: None,
            window_scale: None,
            sack_permitted: false,
            sack,
            timestamps: _,
            user_timeout: None,
            experimental: None,
            malformed: _,
        } = self
        else {
            return false;
        };
        sack.is_empty()
    }

    fn fit_others(&mut self) -> usize {
        let layout = self.layout();
        if !layout.user_timeout {
            self.user_timeout = None;
        }
        if !layout.experimental {
            self.experimental = None;
        }
        self.sack.truncate(layout.sack_blocks);
        layout.len
    }

    /// Bytes that [`Self::emit`] writes, a multiple of four.
    #[must_use]
    pub fn emitted_len(&self) -> usize {
        self.layout().len
    }

    /// Decides what of the options is written.
    fn layout(&self) -> Layout {
        let user_timeout = self.user_timeout.is_some_and(UserTimeout::is_legal);
        let four = |there: bool| if there { 4 } else { 0 };
        let mut len = four(self.mss.is_some())
            + four(self.window_scale.is_some())
            + four(user_timeout)
            + if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 }
            // In front of timestamps it takes the place of their padding.
            + four(self.sack_permitted && self.timestamps.is_none());
        let experimental_len = match &self.experimental {
            Some(option) if option.is_legal() => (2 + option.data.len()).next_multiple_of(4),
            _ => 0,
        };
        let experimental = experimental_len > 0 && len + experimental_len <= MAX_OPTIONS_LEN;
        if experimental {
            len += experimental_len;
        }
        // Two bytes of padding and two of kind and length come before the blocks.
        let room = (MAX_OPTIONS_LEN - len).saturating_sub(4) / 8;
        let sack_blocks = self.sack.len().min(room);
        if sack_blocks > 0 {
            len += 4 + 8 * sack_blocks;
        }
        Layout {
            user_timeout,
            experimental,
            sack_blocks,
            len,
        }
    }

    /// The options as they stand in a header: in the order and with the padding of Linux, a
    /// multiple of four bytes.
    ///
    /// What cannot be said is left out: a user timeout of zero or above 32767, an experimental
    /// option of another kind. So is what does not fit in 40 bytes: first SACK blocks, the last
    /// first, then the experimental option.
    #[must_use]
    pub fn emit(&self) -> ArrayVec<u8, MAX_OPTIONS_LEN> {
        let mut out = ArrayVec::new();
        self.write(|bytes| {
            out.try_extend_from_slice(bytes)
                .expect("the layout has at most 40 bytes");
        });
        out
    }

    /// Writes what [`Self::emit`] describes, piece by piece.
    pub(crate) fn write(&self, mut put: impl FnMut(&[u8])) {
        let layout = self.layout();
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            put(&[kind::MSS, 4, a, b]);
        }
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => put(&[kind::SACK_PERMITTED, 2]),
            (true, None) => put(&[kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2]),
            (false, Some(_)) => put(&[kind::NOP, kind::NOP]),
            (false, None) => {}
        }
        if let Some(timestamps) = self.timestamps {
            put(&[kind::TIMESTAMPS, 10]);
            put(&timestamps.to_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
        }
        if layout.sack_blocks > 0 {
            // At most four blocks.
            put(&[
                kind::NOP,
                kind::NOP,
                kind::SACK,
                2 + 8 * layout.sack_blocks as u8,
            ]);
            for block in self.sack.iter().take(layout.sack_blocks) {
                put(&block.to_bytes());
            }
        }
        if let Some(timeout) = self.user_timeout.filter(|_| layout.user_timeout) {
            let [a, b] = timeout.to_bits().to_be_bytes();
            put(&[kind::USER_TIMEOUT, 4, a, b]);
        }
        if let Some(option) = self.experimental.as_ref().filter(|_| layout.experimental) {
            let bytes = option.to_bytes();
            put(&bytes);
            put(&[kind::NOP; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
        }
    }

    /// Puts `option` into its field.
    pub(crate) fn set(&mut self, option: &TcpOption) {
        match option {
            TcpOption::Mss(mss) => self.mss = Some(*mss),
            TcpOption::WindowScale(shift) => self.window_scale = Some(*shift),
            TcpOption::SackPermitted => self.sack_permitted = true,
            TcpOption::Sack(blocks) => self.sack.clone_from(blocks),
            TcpOption::Timestamps(timestamps) => self.timestamps = Some(*timestamps),
            TcpOption::UserTimeout(timeout) => self.user_timeout = Some(*timeout),
            TcpOption::Experimental(option) => self.experimental = Some(option.clone()),
        }
    }

    /// Empties the field of this kind, and tells whether something was in it.
    pub(crate) fn clear(&mut self, kind: u8) -> bool {
        match kind {
            kind::MSS => self.mss.take().is_some(),
            kind::WINDOW_SCALE => self.window_scale.take().is_some(),
            kind::SACK_PERMITTED => core::mem::take(&mut self.sack_permitted),
            kind::SACK => !core::mem::take(&mut self.sack).is_empty(),
            kind::TIMESTAMPS => self.timestamps.take().is_some(),
            kind::USER_TIMEOUT => self.user_timeout.take().is_some(),
            _ => self
                .experimental
                .take_if(|option| option.kind == kind)
                .is_some(),
        }
    }
}

/// What of some options is written, see [`TcpOptions::emit`].
struct Layout {
    user_timeout: bool,
    experimental: bool,
    sack_blocks: usize,
    /// Bytes in all.
    len: usize,
}

/// One option, to be set by [`Edit::set_option`](crate::edit::Edit::set_option).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TcpOption {
    /// Maximum segment size in bytes.
    Mss(u16),
    /// Shift of the window field.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks, at least one.
    Sack(ArrayVec<SackBlock, 4>),
    /// Timestamps.
    Timestamps(Timestamps),
    /// User timeout.
    UserTimeout(UserTimeout),
    /// An experimental option.
    Experimental(Experimental),
}

impl TcpOption {
    /// Whether the option may be sent.
    pub(crate) fn is_legal(&self) -> bool {
        match self {
            Self::Sack(blocks) => !blocks.is_empty(),
            Self::UserTimeout(timeout) => timeout.is_legal(),
            Self::Experimental(option) => option.is_legal(),
            Self::Mss(_) | Self::WindowScale(_) | Self::SackPermitted | Self::Timestamps(_) => true,
        }
    }

    /// Kind, length and data.
    pub(crate) fn to_bytes(&self) -> ArrayVec<u8, MAX_OPTIONS_LEN> {
        match self {
            Self::Mss(mss) => option_bytes(kind::MSS, &mss.to_be_bytes()),
            Self::WindowScale(shift) => option_bytes(kind::WINDOW_SCALE, &[*shift]),
            Self::SackPermitted => option_bytes(kind::SACK_PERMITTED, &[]),
            Self::Sack(blocks) => {
                let mut data = [0; 32];
                for (out, block) in data.as_chunks_mut::<8>().0.iter_mut().zip(blocks) {
                    *out = block.to_bytes();
                }
                option_bytes(kind::SACK, &data[..8 * blocks.len()])
            }
            Self::Timestamps(timestamps) => option_bytes(kind::TIMESTAMPS, &timestamps.to_bytes()),
            Self::UserTimeout(timeout) => {
                option_bytes(kind::USER_TIMEOUT, &timeout.to_bits().to_be_bytes())
            }
            Self::Experimental(option) => option.to_bytes(),
        }
    }
}

/// An option with `data` of at most 38 bytes.
fn option_bytes(kind: u8, data: &[u8]) -> ArrayVec<u8, MAX_OPTIONS_LEN> {
    let mut out = ArrayVec::new();
    out.push(kind);
    out.push(2 + data.len() as u8);
    out.try_extend_from_slice(data)
        .expect("no option has more than 38 bytes of data");
    out
}

/// The data of the option that starts `area`, and what follows it; `None` if its length is
/// impossible.
pub(crate) fn split_option(area: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(*area.get(1)?);
    let (option, behind) = area.split_at_checked(length)?;
    Some((option.get(2..)?, behind))
}

/// One SACK block: the bytes from `left` up to, not including, `right`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNumber,
    /// The number behind its last.
    pub right: SeqNumber,
}

impl SackBlock {
    fn from_bytes(&[a, b, c, d, e, f, g, h]: &[u8; 8]) -> Self {
        Self {
            left: SeqNumber(u32::from_be_bytes([a, b, c, d])),
            right: SeqNumber(u32::from_be_bytes([e, f, g, h])),
        }
    }

    fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.left.0) << 32 | u64::from(self.right.0)).to_be_bytes()
    }
}

/// TSval and TSecr (RFC 7323, section 3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

impl Timestamps {
    /// Whether a value is older than another one of the same clock (RFC 7323, section 5.2).
    #[must_use]
    pub const fn is_older(value: u32, than: u32) -> bool {
        value.wrapping_sub(than).cast_signed() < 0
    }

    fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self {
            value: u32::from_be_bytes([a, b, c, d]),
            echo: u32::from_be_bytes([e, f, g, h]),
        }
    }

    fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.value) << 32 | u64::from(self.echo)).to_be_bytes()
    }
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
    const MINUTES: u16 = 0x8000;

    fn from_bits(bits: u16) -> Option<Self> {
        let timeout = Self {
            minutes: bits & Self::MINUTES != 0,
            value: bits & !Self::MINUTES,
        };
        timeout.is_legal().then_some(timeout)
    }

    /// What the option says of `timeout`, rounded up: at least a second, whole seconds up to nine
    /// hours, then whole minutes, at most 32767 of them.
    #[must_use]
    pub fn rounded_up(timeout: Duration) -> Self {
        let most = u64::from(Self::MINUTES - 1);
        let part = u64::from(timeout.subsec_nanos() > 0);
        let seconds = timeout.as_secs().saturating_add(part).max(1);
        let minutes = seconds > most;
        let value = match minutes {
            true => seconds.div_ceil(60).min(most),
            false => seconds,
        };
        Self {
            minutes,
            // At most 32767.
            value: value as u16,
        }
    }

    /// The two bytes that follow kind and length, as a number.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.value | if self.minutes { Self::MINUTES } else { 0 }
    }

    pub(crate) fn is_legal(self) -> bool {
        (1..Self::MINUTES).contains(&self.value)
    }

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

impl Experimental {
    /// The Immediate Retransmission Option (Schütz and others 2005, section 3.3.2): its sender's link is back, and
    /// what was in flight is lost. M-TCP's acknowledgement that is marked as a reconnection bears it, too (Brown and
    /// Singh 1997, section 5.2). The experiment `OLIR` is not registered.
    #[must_use]
    pub fn immediate_retransmission() -> Self {
        let mut data = ArrayVec::new();
        data.extend(IMMEDIATE_RETRANSMISSION);
        Self {
            kind: kind::EXPERIMENT_1,
            data,
        }
    }

    /// Whether this is [`Self::immediate_retransmission`].
    #[must_use]
    pub fn is_immediate_retransmission(&self) -> bool {
        self.kind == kind::EXPERIMENT_1 && self.data[..] == IMMEDIATE_RETRANSMISSION
    }

    pub(crate) fn to_bytes(&self) -> ArrayVec<u8, MAX_OPTIONS_LEN> {
        option_bytes(self.kind, &self.data)
    }

    pub(crate) fn is_legal(&self) -> bool {
        matches!(self.kind, kind::EXPERIMENT_1 | kind::EXPERIMENT_2)
    }
}
