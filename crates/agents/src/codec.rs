//! Bytes of what agents tell each other and write down: big-endian, without padding, and strict.
//! Whatever is not exactly what an encoder writes is refused.

use crate::message::FreezeId;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use outlast_gateway::tracking::{
    Acquaintance, FlowKey, FrozenFlow, FrozenNumbers, Half, SupervisedFlow, ToldWindow,
};
use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, SeqNumber};

/// The largest shift of RFC 7323, section 2.3.
const MAX_WINDOW_SCALE: u8 = 14;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// They end too soon.
    #[error("ends too soon")]
    Truncated,
    /// Something follows.
    #[error("{0} bytes too many")]
    Trailing(usize),
    /// Longer than anything that an agent sends.
    #[error("{0} bytes long")]
    TooLong(usize),
    /// No message begins like this.
    #[error("unknown kind {0}")]
    UnknownKind(u8),
    /// A field has a value that it never has.
    #[error("no {0} is {1}")]
    BadValue(&'static str, u8),
    /// The segment is no whole IP packet.
    #[error("the segment is no IP packet")]
    BadSegment,
    /// Another version of the protocol.
    #[error("version {0} of the protocol")]
    Version(u8),
    /// A message that is not allowed at this point.
    #[error("out of order")]
    OutOfOrder,
    /// More than an agent has to hear from one that takes nothing of what is said to it.
    #[error("asks on, and does not read the answers")]
    Unread,
}

/// Takes bytes apart.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Nothing may be left.
    pub(crate) const fn end(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(DecodeError::Trailing(more)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    fn seq(&mut self) -> Result<SeqNumber, DecodeError> {
        self.u32().map(SeqNumber)
    }

    pub(crate) fn is_present(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::BadValue("presence", other)),
        }
    }

    pub(crate) fn id(&mut self) -> Result<FreezeId, DecodeError> {
        Ok(FreezeId {
            instance: self.u64()?,
            number: self.u64()?,
        })
    }

    pub(crate) fn socket(&mut self) -> Result<SocketAddr, DecodeError> {
        let address = self.address()?;
        Ok(SocketAddr::new(address, self.u16()?))
    }

    pub(crate) fn address(&mut self) -> Result<IpAddr, DecodeError> {
        Ok(match self.u8()? {
            4 => Ipv4Addr::from(self.array::<4>()?).into(),
            6 => Ipv6Addr::from(self.array::<16>()?).into(),
            other => return Err(DecodeError::BadValue("version of IP", other)),
        })
    }

    pub(crate) fn supervised(&mut self) -> Result<SupervisedFlow, DecodeError> {
        Ok(SupervisedFlow {
            flow: FlowKey {
                near: self.socket()?,
                far: self.socket()?,
            },
            near: self.half()?,
            far: self.half()?,
            clock: match self.is_present()? {
                true => Some(self.u32()?),
                false => None,
            },
            echo: self.u32()?,
            told: self.seq()?,
            window: match self.u8()? {
                0 => ToldWindow::Open,
                1 => ToldWindow::Shrunk,
                2 => ToldWindow::Recovering {
                    sent_before: self.seq()?,
                    sent_since: self.seq()?,
                },
                other => return Err(DecodeError::BadValue("window", other)),
            },
            is_refuted: self.is_present()?,
        })
    }

    pub(crate) fn numbers(&mut self) -> Result<FrozenNumbers, DecodeError> {
        let flow = FlowKey {
            near: self.socket()?,
            far: self.socket()?,
        };
        Ok(FrozenNumbers {
            flow,
            acked: self.seq()?,
            until: self.seq()?,
            far_next: self.seq()?,
            stamps: match self.is_present()? {
                true => Some(Timestamps {
                    value: self.u32()?,
                    echo: self.u32()?,
                }),
                false => None,
            },
        })
    }

    pub(crate) fn flow(&mut self) -> Result<FrozenFlow, DecodeError> {
        Ok(FrozenFlow {
            near: self.half()?,
            far: self.half()?,
            clock: match self.is_present()? {
                true => Some(self.u32()?),
                false => None,
            },
            segment: self.segment()?,
        })
    }

    fn half(&mut self) -> Result<Half, DecodeError> {
        let acquaintance = match self.u8()? {
            0 => Acquaintance::None,
            1 => Acquaintance::ByPeer,
            2 => Acquaintance::Seen,
            other => return Err(DecodeError::BadValue("acquaintance", other)),
        };
        Ok(Half {
            acquaintance,
            next: self.seq()?,
            acked: self.seq()?,
            largest_window: self.u32()?,
            allowed: match self.is_present()? {
                true => Some(self.seq()?),
                false => None,
            },
            window_scale: match self.is_present()? {
                true => match self.u8()? {
                    scale if scale <= MAX_WINDOW_SCALE => Some(scale),
                    other => return Err(DecodeError::BadValue("window scale", other)),
                },
                false => None,
            },
            permits_sack: None,
            fin: match self.is_present()? {
                true => Some(self.seq()?),
                false => None,
            },
        })
    }

    fn segment(&mut self) -> Result<Packet, DecodeError> {
        let length = usize::from(self.u16()?);
        let bytes = Bytes::copy_from_slice(self.bytes(length)?);
        let packet = Packet::parse(bytes).map_err(|_| DecodeError::BadSegment)?;
        let is_whole = usize::try_from(packet.total_len()) == Ok(length);
        if is_whole && packet.tcp().is_some() {
            Ok(packet)
        } else {
            Err(DecodeError::BadSegment)
        }
    }
}

/// Puts bytes together.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn maybe(&mut self, value: Option<u32>) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            self.u32(value);
        }
    }

    pub(crate) fn id(&mut self, id: FreezeId) {
        self.u64(id.instance);
        self.u64(id.number);
    }

    pub(crate) fn socket(&mut self, socket: SocketAddr) {
        self.address(socket.ip());
        self.u16(socket.port());
    }

    pub(crate) fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.u8(4);
                self.bytes.extend(address.octets());
            }
            IpAddr::V6(address) => {
                self.u8(6);
                self.bytes.extend(address.octets());
            }
        }
    }

    /// At most 111 bytes.
    pub(crate) fn supervised(&mut self, supervised: &SupervisedFlow) {
        self.socket(supervised.flow.near);
        self.socket(supervised.flow.far);
        self.half(&supervised.near);
        self.half(&supervised.far);
        self.maybe(supervised.clock);
        self.u32(supervised.echo);
        self.u32(supervised.told.0);
        match supervised.window {
            ToldWindow::Open => self.u8(0),
            ToldWindow::Shrunk => self.u8(1),
            ToldWindow::Recovering {
                sent_before,
                sent_since,
            } => {
                self.u8(2);
                self.u32(sent_before.0);
                self.u32(sent_since.0);
            }
        }
        self.u8(u8::from(supervised.is_refuted));
    }

    pub(crate) fn numbers(&mut self, numbers: &FrozenNumbers) {
        self.socket(numbers.flow.near);
        self.socket(numbers.flow.far);
        self.u32(numbers.acked.0);
        self.u32(numbers.until.0);
        self.u32(numbers.far_next.0);
        self.u8(u8::from(numbers.stamps.is_some()));
        if let Some(Timestamps { value, echo }) = numbers.stamps {
            self.u32(value);
            self.u32(echo);
        }
    }

    /// A segment that is longer than an IP packet can be is cut, and refused by every decoder.
    pub(crate) fn flow(&mut self, flow: &FrozenFlow) {
        self.half(&flow.near);
        self.half(&flow.far);
        self.maybe(flow.clock);
        let bytes = flow.segment.to_bytes();
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.u16(length);
        self.bytes.extend(&bytes[..usize::from(length)]);
    }

    fn half(&mut self, half: &Half) {
        self.u8(match half.acquaintance {
            Acquaintance::None => 0,
            Acquaintance::ByPeer => 1,
            Acquaintance::Seen => 2,
        });
        self.u32(half.next.0);
        self.u32(half.acked.0);
        self.u32(half.largest_window);
        self.maybe(half.allowed.map(|number| number.0));
        self.u8(u8::from(half.window_scale.is_some()));
        if let Some(scale) = half.window_scale {
            self.u8(scale);
        }
        self.maybe(half.fin.map(|number| number.0));
    }
}
