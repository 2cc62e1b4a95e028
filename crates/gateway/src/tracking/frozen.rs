//! A connection that waits in persist mode, as one gateway tells another of it.
//!
//! Whoever froze it has acknowledged one segment that the far host does not have
//! ([`zero-window-ack`](crate::mechanisms::path::PathMechanismKind::ZeroWindowAck)). A gateway
//! that has all of a [`FrozenFlow`] can deliver that segment; one that has only the
//! [`FrozenNumbers`] can at least reset the connection at both ends.

use super::{FlowKey, Half, Phase, TcpFlow};
use crate::links::Direction;
use crate::mechanisms::path::newer_stamp;
use core::net::{IpAddr, SocketAddr};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

/// What packets of our own carry (RFC 1700's default).
const HOP_LIMIT: u8 = 64;

/// A frozen connection: what it takes to answer for it, to thaw it and to end it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FrozenFlow {
    /// The near host as tracked.
    pub near: Half,
    /// The far host as tracked.
    pub far: Half,
    /// The newest timestamp of the far host's; `None` without the option.
    pub clock: Option<u32>,
    /// The segment that was acknowledged for the far host: a whole IP packet, which the gateway
    /// has the only copy of.
    pub segment: Packet,
}

/// The part of a [`FrozenFlow`] that is needed to reset the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrozenNumbers {
    /// The connection.
    pub flow: FlowKey,
    /// The near host's first byte that the far host has not acknowledged itself.
    pub acked: SeqNumber,
    /// What the near host was told that it has: everything before this number.
    pub until: SeqNumber,
    /// The far host's next sequence number.
    pub far_next: SeqNumber,
    /// Timestamps of a segment of the far host's that the near host takes (RFC 7323, section 5).
    pub stamps: Option<Timestamps>,
}

/// Why a [`FrozenFlow`] can be of no honest connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Implausible {
    /// The segment is not TCP, has no data, or opens or ends a connection.
    NoDataSegment,
    /// The segment does not hold the oldest byte that the far host lacks.
    NotOldest,
    /// The segment ends beyond what the near host has sent.
    Unsent,
    /// A host of it was never seen.
    Unseen,
    /// The near host was told more than the far host has acknowledged.
    Ahead,
}

impl FrozenFlow {
    /// What it takes to reset it.
    ///
    /// # Errors
    /// [`Implausible`] if no gateway can have frozen such a connection.
    pub fn numbers(&self) -> Result<FrozenNumbers, Implausible> {
        let header = self.segment.header();
        let (Some(flow), Some(tcp)) = (
            FlowKey::of_tcp(header, Direction::ToLink),
            self.segment.tcp(),
        ) else {
            return Err(Implausible::NoDataSegment);
        };
        let odd = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        if tcp.flags.intersects(odd) || header.payload_len == 0 {
            return Err(Implausible::NoDataSegment);
        }
        if !(self.near.is_seen() && self.far.is_seen()) {
            return Err(Implausible::Unseen);
        }
        let until = tcp.seq + header.payload_len;
        let acked = self.near.acked;
        if tcp.seq.after(acked) || until.at_or_before(acked) {
            return Err(Implausible::NotOldest);
        }
        if until.after(self.near.next) {
            return Err(Implausible::Unsent);
        }
        let stamps = tcp.options.timestamps.map(|of_segment| Timestamps {
            value: newer_stamp(self.clock, of_segment.echo),
            echo: of_segment.value,
        });
        Ok(FrozenNumbers {
            flow,
            acked,
            until,
            far_next: self.far.next,
            stamps,
        })
    }

    /// The connection as it is where nothing of it was seen yet.
    pub(crate) fn tracked(&self) -> TcpFlow {
        TcpFlow {
            near: self.near,
            far: self.far,
            phase: Phase::Established,
            ..TcpFlow::new()
        }
    }

    /// The connection as another gateway has tracked it that saw it later: the newer of both.
    pub(crate) fn merged_into(&self, later: &TcpFlow) -> (Half, Half) {
        (merge(&self.near, &later.near), merge(&self.far, &later.far))
    }
}

impl FrozenNumbers {
    /// A reset of the connection to the near host. Its sequence number is the one expected next
    /// (RFC 5961, section 3.2).
    #[must_use]
    pub fn reset_near(&self) -> Packet {
        let options = TcpOptions {
            timestamps: self.stamps,
            ..TcpOptions::default()
        };
        let (far, near) = (self.flow.far, self.flow.near);
        reset(far, near, self.far_next, self.until, options)
    }

    /// A reset of the connection to the far host, which expects the byte that it lacks.
    #[must_use]
    pub fn reset_far(&self) -> Packet {
        let (far, near) = (self.flow.far, self.flow.near);
        let options = TcpOptions::default();
        reset(near, far, self.acked, self.far_next, options)
    }
}

fn reset(
    from: SocketAddr,
    to: SocketAddr,
    seq: SeqNumber,
    ack: SeqNumber,
    options: TcpOptions,
) -> Packet {
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        seq,
        ack,
        flags: TcpFlags::RST | TcpFlags::ACK,
        options,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip(from.ip(), to.ip()), header, &[])
}

const fn ip(source: IpAddr, destination: IpAddr) -> IpHeader {
    IpHeader {
        source,
        destination,
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    }
}

/// The gateway that froze the connection has seen its SYN, or knows as little as the other one:
/// windows and their scale are its. What was sent only grows. What was acknowledged is taken from
/// the one that knows: to who has not seen the SYN it is a guess, and one beyond the segment in
/// question where the first thing seen was a probe.
pub(super) fn merge(frozen: &Half, later: &Half) -> Half {
    if !later.is_seen() {
        return *frozen;
    }
    let acked = match later.window_scale {
        Some(_) => frozen.acked.max(later.acked),
        None => frozen.acked,
    };
    Half {
        next: frozen.next.max(later.next),
        acked,
        fin: later.fin.or(frozen.fin),
        ..*frozen
    }
}
