//! What neighbours may say of connections: true, outdated or made up, but always well-formed.

use crate::frozen::{self, half};
use outlast_agents::{FreezeId, Message, Outcome};
use outlast_gateway::tracking::{Acquaintance, FlowKey, FrozenFlow, FrozenNumbers};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) const CONNECTIONS: u8 = 4;
const MSS: u32 = 500;

/// A connection of the near host's, which opens it, with one of three mobiles.
#[derive(Clone, Copy)]
pub(crate) struct Connection {
    number: u8,
    /// What the near host has sent, and what the mobile has acknowledged of it.
    sent: u32,
    acked: u32,
}

pub(crate) fn mobile(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, 1 + number % 3).into()
}

impl Connection {
    pub(crate) const fn new(number: u8) -> Self {
        Self {
            number,
            sent: 0,
            acked: 0,
        }
    }

    pub(crate) fn key(&self) -> FlowKey {
        FlowKey {
            near: SocketAddr::new(
                Ipv4Addr::new(10, 0, 0, 1).into(),
                5_000 + u16::from(self.number),
            ),
            far: SocketAddr::new(mobile(self.number), 80),
        }
    }

    /// Numbers wrap within a few segments.
    fn near_seq(&self, at: u32) -> SeqNumber {
        SeqNumber(u32::MAX - 1_500) + u32::from(self.number) + at
    }

    fn far_seq(&self) -> SeqNumber {
        SeqNumber(7_000)
    }

    fn segment(&self, way: (SocketAddr, SocketAddr), header: TcpHeader, len: u32) -> Packet {
        frozen::segment(way, header, &vec![self.number; len as usize])
    }

    fn ways(&self) -> [(SocketAddr, SocketAddr); 2] {
        let FlowKey { near, far } = self.key();
        [(near, far), (far, near)]
    }

    /// The three segments with which it opens, the near host's first.
    pub(crate) fn handshake(&mut self) -> [Packet; 3] {
        (self.sent, self.acked) = (0, 0);
        let [out, back] = self.ways();
        let options = TcpOptions {
            window_scale: Some(0),
            ..TcpOptions::default()
        };
        let syn = |seq, ack, flags| TcpHeader {
            seq,
            ack,
            flags,
            options: options.clone(),
            ..TcpHeader::default()
        };
        let (near, far) = (self.near_seq(0) - 1, self.far_seq() - 1);
        [
            self.segment(out, syn(near, SeqNumber(0), TcpFlags::SYN), 0),
            self.segment(back, syn(far, near + 1, TcpFlags::SYN | TcpFlags::ACK), 0),
            self.plain(out, near + 1, far + 1, 0),
        ]
    }

    fn plain(
        &self,
        way: (SocketAddr, SocketAddr),
        seq: SeqNumber,
        ack: SeqNumber,
        len: u32,
    ) -> Packet {
        let header = TcpHeader {
            seq,
            ack,
            flags: TcpFlags::ACK,
            ..TcpHeader::default()
        };
        self.segment(way, header, len)
    }

    /// The near host's next segment, or one from `back` segments before.
    pub(crate) fn data(&mut self, back: u8) -> Packet {
        let at = self.sent.saturating_sub(u32::from(back % 8) * MSS);
        self.sent = self.sent.max(at + MSS);
        self.plain(self.ways()[0], self.near_seq(at), self.far_seq(), MSS)
    }

    /// The mobile acknowledges some segments more, or nothing new.
    pub(crate) fn acknowledgement(&mut self, segments: u8) -> Packet {
        self.acked = self.sent.min(self.acked + u32::from(segments % 4) * MSS);
        let ack = self.near_seq(self.acked);
        self.plain(self.ways()[1], self.far_seq(), ack, 0)
    }

    /// An end of it.
    pub(crate) fn reset(&self, is_far: bool) -> Packet {
        let [out, back] = self.ways();
        let (way, seq, ack) = match is_far {
            true => (back, self.far_seq(), self.near_seq(self.acked)),
            false => (out, self.near_seq(self.sent), self.far_seq()),
        };
        let flags = TcpFlags::RST | TcpFlags::ACK;
        let header = TcpHeader {
            seq,
            ack,
            flags,
            ..TcpHeader::default()
        };
        self.segment(way, header, 0)
    }

    /// Frozen at its segment number `what`; bits above contradict what hosts would do.
    pub(crate) fn frozen(&self, what: u8, odd: u8) -> FrozenFlow {
        let at = u32::from(what % 8) * MSS;
        let [out, _] = self.ways();
        let mut segment = self.plain(out, self.near_seq(at), self.far_seq(), MSS);
        let until = self.near_seq(at + MSS);
        let mut near = half(until + u32::from(what >> 4) * MSS, self.near_seq(at));
        let mut far = half(self.far_seq(), self.far_seq());
        let mut clock = None;
        match odd % 12 {
            0 => near.acked = until,
            1 => near.acked = self.near_seq(at) - 1,
            2 => near.next = self.near_seq(at),
            3 => near.acquaintance = Acquaintance::None,
            4 => far.acquaintance = Acquaintance::ByPeer,
            5 => far.next = far.next + (u32::from(what) << 20),
            6 => near.window_scale = None,
            7 => near.allowed = None,
            8 => near.fin = Some(until),
            9 => segment = self.plain(out, self.near_seq(at), self.far_seq(), 0),
            10 => clock = Some(u32::from(odd)),
            _ => {}
        }
        FrozenFlow {
            near,
            far,
            clock,
            segment,
        }
    }

    /// The numbers alone, without a segment; where it says nothing, numbers that nobody checks.
    pub(crate) fn numbers(&self, what: u8, odd: u8) -> FrozenNumbers {
        let made_up = FrozenNumbers {
            flow: self.key(),
            acked: self.near_seq(u32::from(odd) << 16),
            until: self.near_seq(u32::from(what)),
            far_next: self.far_seq(),
            stamps: None,
        };
        self.frozen(what, odd).numbers().unwrap_or(made_up)
    }
}

/// One of few names, so that they meet: of this agent, of its neighbours, of nobody.
pub(crate) fn id(byte: u8) -> FreezeId {
    FreezeId {
        instance: u64::from(byte % 5),
        number: u64::from(byte / 5 % 6),
    }
}

/// The message of kind `kind`.
pub(crate) fn message(kind: u8, of: &Connection, [name, what, odd]: [u8; 3]) -> Message {
    let id = id(name);
    match kind % 8 {
        0 => Message::Hello {
            instance: u64::from(name % 5),
        },
        1 => Message::Frozen {
            id,
            numbers: of.numbers(what, odd),
        },
        2 => Message::Listed,
        3 => Message::Released { id },
        4 => Message::Want { id },
        5 => Message::Segment {
            id,
            flow: Box::new(of.frozen(what, odd)),
        },
        6 => Message::Settled {
            id,
            outcome: match what % 3 {
                0 => Outcome::Acknowledged,
                1 => Outcome::Reset,
                _ => Outcome::Refused,
            },
        },
        _ => Message::Alive,
    }
}
