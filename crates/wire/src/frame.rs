//! From a captured frame to the IP packet in it, through link layers, tags and labels.
//!
//! A frame is a stack of layers. Each layer knows its own header and names the layer behind it;
//! [`ip_in_frame`] takes one off after the other until an IP packet lies open, and [`ips_in_frame`] gives all of them,
//! where a frame of 802.11 holds several (A-MSDU). Tunnels inside of IP lead through the same layers: see
//! [`crate::outline`].
//!
//! Left out: fragments of 802.11 and of PPP multilink, and what is encrypted or has compressed headers. [`NotIp`] says
//! which of them a frame is.

mod ethernet;
mod ieee80211;
pub mod link_type;
mod ppp;
mod taps;

use core::fmt;
use link_type as types;

/// Headers that are taken off, one after the other.
const DEEPEST: usize = 16;

/// Why no IP packet lies open in a frame.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum NotIp {
    /// A link type that is not known.
    LinkType(u16),
    /// An IP packet may be in it, but nobody without a key or a state can read it.
    Sealed(&'static str),
    /// A frame that its receiver drops, by its checksum.
    Damaged,
    /// Another protocol, or too short for its headers.
    Other,
}

impl NotIp {
    /// True where TCP may be hidden: what was not read may hold connections.
    #[must_use]
    pub const fn may_hide_tcp(self) -> bool {
        matches!(self, Self::LinkType(_) | Self::Sealed(_))
    }
}

impl fmt::Display for NotIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(number) => match types::name(*number) {
                Some(name) => write!(f, "link type {number} ({name})"),
                None => write!(f, "link type {number}"),
            },
            Self::Sealed(name) => f.write_str(name),
            Self::Damaged => f.write_str("frames with a wrong checksum"),
            Self::Other => f.write_str("other protocols than IP"),
        }
    }
}

/// Meaning of the next bytes of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Layer {
    /// An IP packet of either version.
    Ip,
    /// Two addresses of Ethernet, then a type or a length.
    Ethernet,
    /// Content that an Ethernet type announces.
    Type(u16),
    /// IEEE 802.2.
    Llc,
    /// A label stack.
    Mpls,
    /// PPP, with or without the framing of HDLC in front.
    Ppp,
    /// PPPoE, from its version on.
    PppOe,
    /// Cisco's HDLC.
    CiscoHdlc,
    /// A network service header (RFC 8300).
    ServiceHeader,
    /// A frame of 802.11; its header may be padded to four bytes.
    Wireless { is_padded: bool },
    /// Several frames in one of 802.11 (A-MSDU).
    Aggregate,
    /// A frame of this link type, as a capture file numbers it.
    Link(u16),
}

/// A layer and its bytes.
pub(crate) type Inner<'a> = (Layer, &'a [u8]);

/// The first IP packet in `frame` of an interface whose frames are of `link_type`.
///
/// # Errors
/// [`NotIp`], where no IP packet lies open.
pub fn ip_in_frame(link_type: u16, frame: &[u8]) -> Result<&[u8], NotIp> {
    ip_behind((Layer::Link(link_type), frame))
}

/// All IP packets in `frame`, which had `original_len` bytes before it was captured. One, but for aggregates.
#[must_use]
pub const fn ips_in_frame(link_type: u16, frame: &[u8], original_len: usize) -> IpsInFrame<'_> {
    IpsInFrame {
        rest: Rest::Frame(Layer::Link(link_type), frame, original_len),
    }
}

/// An IP packet in a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpInFrame<'a> {
    /// Its bytes, as many as were captured.
    pub bytes: &'a [u8],
    /// Its length in bytes before it was captured, with the frame's padding.
    pub original_len: usize,
}

/// The IP packets in a frame, made by [`ips_in_frame`].
#[derive(Clone, Copy, Debug)]
pub struct IpsInFrame<'a> {
    rest: Rest<'a>,
}

/// The part of a frame that was not looked at yet.
#[derive(Clone, Copy, Debug)]
enum Rest<'a> {
    /// A layer, its bytes, and its length before it was captured.
    Frame(Layer, &'a [u8], usize),
    /// The frames of an aggregate.
    Frames(&'a [u8]),
}

impl<'a> Iterator for IpsInFrame<'a> {
    type Item = Result<IpInFrame<'a>, NotIp>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Rest::Frame(layer, bytes, original_len) = self.rest {
            self.rest = Rest::Frames(&[]);
            match open((layer, bytes)) {
                Ok((Layer::Aggregate, frames)) => self.rest = Rest::Frames(frames),
                opened => return Some(ip_of(opened, bytes.len(), original_len)),
            }
        }
        let Rest::Frames(frames) = self.rest else {
            return None;
        };
        let part = ieee80211::first_of(frames)?;
        self.rest = Rest::Frames(part.rest);
        let opened = open((Layer::Llc, part.bytes));
        Some(ip_of(opened, part.bytes.len(), part.original_len))
    }
}

/// The opened IP packet of a frame of which `captured_len` of `original_len` bytes are there.
fn ip_of(
    opened: Result<Inner<'_>, NotIp>,
    captured_len: usize,
    original_len: usize,
) -> Result<IpInFrame<'_>, NotIp> {
    match opened? {
        (Layer::Ip, bytes) => Ok(IpInFrame {
            bytes,
            original_len: original_len.saturating_sub(captured_len - bytes.len()),
        }),
        _ => Err(NotIp::Other),
    }
}

/// The first IP packet behind the headers that start with `inner`.
pub(crate) fn ip_behind(inner: Inner<'_>) -> Result<&[u8], NotIp> {
    let mut opened = open(inner)?;
    if let (Layer::Aggregate, frames) = opened {
        let part = ieee80211::first_of(frames).ok_or(NotIp::Other)?;
        opened = open((Layer::Llc, part.bytes))?;
    }
    match opened {
        (Layer::Ip, bytes) => Ok(bytes),
        _ => Err(NotIp::Other),
    }
}

/// The IP packet or the aggregate behind the headers that start with `inner`.
fn open(inner: Inner<'_>) -> Result<Inner<'_>, NotIp> {
    let (mut layer, mut bytes) = inner;
    for _ in 0..DEEPEST {
        (layer, bytes) = match layer {
            Layer::Ip | Layer::Aggregate => return Ok((layer, bytes)),
            Layer::Ethernet => ethernet::frame(bytes),
            Layer::Type(kind) => ethernet::behind_type(kind, bytes),
            Layer::Llc => ethernet::llc(bytes),
            Layer::Mpls => ethernet::mpls(bytes),
            Layer::ServiceHeader => ethernet::service_header(bytes),
            Layer::Ppp => ppp::ppp(bytes),
            Layer::PppOe => ppp::over_ethernet(bytes),
            Layer::CiscoHdlc => ppp::cisco_hdlc(bytes),
            Layer::Wireless { is_padded } => ieee80211::frame(bytes, is_padded),
            Layer::Link(number) => taps::frame(number, bytes),
        }?;
    }
    Err(NotIp::Other)
}

/// The bytes from `at` on.
fn from(bytes: &[u8], at: usize) -> Result<&[u8], NotIp> {
    bytes.get(at..).ok_or(NotIp::Other)
}

/// The number in network byte order at `at`.
fn u16_at(bytes: &[u8], at: usize) -> Result<u16, NotIp> {
    let bytes = from(bytes, at)?.first_chunk::<2>();
    bytes
        .map(|two| u16::from_be_bytes(*two))
        .ok_or(NotIp::Other)
}

/// The IP packet at `at`, if its first byte has a version of IP.
pub(crate) fn ip_at(bytes: &[u8], at: usize) -> Result<Inner<'_>, NotIp> {
    let packet = from(bytes, at)?;
    match packet.first().map(|byte| byte >> 4) {
        Some(4 | 6) => Ok((Layer::Ip, packet)),
        _ => Err(NotIp::Other),
    }
}
