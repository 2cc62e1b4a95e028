//! Tunnels in UDP, which pass network address translators (RFC 3519).

use super::{MessageError, split};
use alloc::vec::Vec;

pub(super) const REQUEST: u8 = 144;
pub(super) const REPLY: u8 = 44;
const DATA: u8 = 4;
const LEN: usize = 6;
const FORCED: u8 = 0x80;
const VIA_AGENT: u8 = 0x40;

/// The extension by which a mobile node asks for a tunnel in UDP (RFC 3519, section 3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UdpTunnelRequest {
    /// F: a tunnel in UDP also where no translator is seen.
    pub is_forced: bool,
    /// R: the mobile node registers through a foreign agent that demands it.
    pub is_via_required_agent: bool,
    /// Encapsulation inside UDP: 4 is IP in IP, 0 leaves it to the flags M and G (section 3.1.4).
    pub encapsulation: u8,
}

/// The home agent's answer (RFC 3519, section 3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UdpTunnelReply {
    /// 0 to 63: yes; 64 to 255: no (section 3.2.1).
    pub code: u8,
    /// F: the tunnel is in UDP although no translator is seen.
    pub is_forced: bool,
    /// Seconds between the mobile node's signs of life; 0 has it use its own default.
    pub keep_alive_s: u16,
}

impl UdpTunnelRequest {
    /// Reads the extension; `None` for one of a later form, which is skipped as an unknown one (RFC 3519,
    /// section 3.1.3).
    pub(super) fn parse(data: &[u8]) -> Result<Option<Self>, MessageError> {
        let (&[sub_type, _, flags, encapsulation, r0, r1], []) = fixed(REQUEST, data)? else {
            return Err(wrong_length(REQUEST, data));
        };
        let is_known = [sub_type, r0, r1] == [0; 3];
        Ok(is_known.then_some(Self {
            is_forced: flags & FORCED != 0,
            is_via_required_agent: flags & VIA_AGENT != 0,
            encapsulation,
        }))
    }

    pub(super) const fn emit(self) -> [u8; LEN] {
        let forced = if self.is_forced { FORCED } else { 0 };
        let via = if self.is_via_required_agent {
            VIA_AGENT
        } else {
            0
        };
        [0, 0, forced | via, self.encapsulation, 0, 0]
    }
}

impl UdpTunnelReply {
    /// The home agent has a tunnel in UDP.
    pub const YES: u8 = 0;
    /// It has none.
    pub const NO: u8 = 64;

    /// True if the home agent has a tunnel in UDP, with this code or another one (section 3.2.1).
    #[must_use]
    pub const fn is_assent(&self) -> bool {
        self.code < Self::NO
    }

    pub(super) fn parse(data: &[u8]) -> Result<Self, MessageError> {
        let (&[sub_type, code, flags, _, k0, k1], []) = fixed(REPLY, data)? else {
            return Err(wrong_length(REPLY, data));
        };
        if sub_type != 0 {
            return Err(MessageError::Reserved);
        }
        Ok(Self {
            code,
            is_forced: flags & FORCED != 0,
            keep_alive_s: u16::from_be_bytes([k0, k1]),
        })
    }

    pub(super) const fn emit(self) -> [u8; LEN] {
        let [k0, k1] = self.keep_alive_s.to_be_bytes();
        let forced = if self.is_forced { FORCED } else { 0 };
        [0, self.code, forced, 0, k0, k1]
    }
}

/// A packet in a tunnel in UDP: the payload of a datagram at port 434 (RFC 3519, section 3.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunnelData<'a> {
    /// What `packet` is: 4 is IPv4.
    pub next_header: u8,
    /// The packet.
    pub packet: &'a [u8],
}

impl<'a> TunnelData<'a> {
    /// Length in front of the packet in bytes.
    pub const HEADER_LEN: usize = 4;

    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if it is another message.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MessageError> {
        let (&[kind, next_header, _, _], packet) = split(payload)?;
        match kind {
            DATA => Ok(Self {
                next_header,
                packet,
            }),
            other => Err(MessageError::Kind(other)),
        }
    }

    /// The payload of the UDP datagram.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::HEADER_LEN + self.packet.len());
        out.extend_from_slice(&[DATA, self.next_header, 0, 0]);
        out.extend_from_slice(self.packet);
        out
    }
}

fn fixed(kind: u8, data: &[u8]) -> Result<(&[u8; LEN], &[u8]), MessageError> {
    split::<LEN>(data).map_err(|_| wrong_length(kind, data))
}

fn wrong_length(kind: u8, data: &[u8]) -> MessageError {
    MessageError::Length {
        kind,
        // It was read from one byte.
        length: data.len() as u8,
    }
}
