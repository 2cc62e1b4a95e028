//! Connections of which the gateway has the only copy of something: what it takes to end them at both
//! hosts if the gateway is gone.
//!
//! Who is to do that does not see what the connection comes to meanwhile. A host obeys a reset only if it
//! has exactly the number that it expects (RFC 5961, section 3.2). So each is also *asked*: a bare
//! acknowledgement with a number before the expected one is answered by whoever knows the connection with
//! the numbers that are right now (RFC 9293, section 3.10.7.4), and by who does not with a reset.

use crate::connections::Connection;
use crate::links::Direction;
use crate::tracking::{FlowKey, FrozenNumbers, Phase};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};

/// What packets of our own carry (RFC 1700's default).
const HOP_LIMIT: u8 = 64;
/// How far the timestamp of a question is ahead of the newest one that was noted, in ticks of the near
/// host's clock: half of what RFC 7323, section 5.2, takes for newer, so that it is so for whatever the near
/// host has sent since. Linux 6.18 does not answer an old acknowledgement with an old timestamp.
const AHEAD: u32 = 1 << 30;

/// A connection that was acknowledged ahead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pledge {
    /// Its numbers: until its first byte that the far host lacks, and the next of the far host's.
    pub numbers: FrozenNumbers,
    /// The newest timestamps of the near host's; `None` without the option, or where nobody has noted them.
    pub stamps: Option<Timestamps>,
}

impl Pledge {
    /// What a gateway answers for of a connection; `None` if nothing of it was acknowledged ahead.
    pub(crate) fn of(flow: FlowKey, connection: &Connection) -> Option<Self> {
        let tracked = &connection.tracked;
        let is_alive = connection.is_pledged && tracked.phase == Phase::Established;
        is_alive.then(|| Self {
            numbers: FrozenNumbers {
                flow,
                acked: tracked.near.acked,
                until: tracked.near.next,
                far_next: tracked.far.next,
                stamps: None,
            },
            stamps: connection.silence.near_host.stamps(),
        })
    }

    /// A segment that its far host answers, also where the near host has sent more meanwhile.
    #[must_use]
    pub fn ask_far(&self) -> Packet {
        let FrozenNumbers {
            flow,
            acked,
            far_next,
            ..
        } = self.numbers;
        let header = TcpHeader {
            source_port: flow.near.port(),
            destination_port: flow.far.port(),
            seq: acked - 1,
            ack: far_next,
            flags: TcpFlags::ACK,
            options: TcpOptions {
                timestamps: self.stamps.map(|stamps| Timestamps {
                    value: stamps.value.wrapping_add(AHEAD),
                    ..stamps
                }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        Packet::tcp_segment(between(&flow, Direction::ToLink), header, &[])
    }

    /// A segment that its near host answers.
    #[must_use]
    pub fn ask_near(&self) -> Packet {
        let FrozenNumbers {
            flow,
            until,
            far_next,
            ..
        } = self.numbers;
        let header = TcpHeader {
            source_port: flow.far.port(),
            destination_port: flow.near.port(),
            seq: far_next - 1,
            ack: until,
            flags: TcpFlags::ACK,
            ..TcpHeader::default()
        };
        Packet::tcp_segment(between(&flow, Direction::FromLink), header, &[])
    }
}

/// The reset with which a host answers a segment of a connection that it does not know (RFC 9293, section
/// 3.10.7.1): it has the number that the segment's sender expects. `None` for what no host answers so, or
/// what is answered without knowing a number.
#[must_use]
pub fn reset_of_unknown(packet: &Packet) -> Option<Packet> {
    let tcp = packet.tcp()?;
    if tcp.has(TcpFlags::RST) || !tcp.has(TcpFlags::ACK) {
        return None;
    }
    let ip = packet.header().ip;
    let header = TcpHeader {
        source_port: tcp.destination_port,
        destination_port: tcp.source_port,
        seq: tcp.ack,
        flags: TcpFlags::RST,
        ..TcpHeader::default()
    };
    let back = IpHeader {
        source: ip.destination,
        destination: ip.source,
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    };
    Some(Packet::tcp_segment(back, header, &[]))
}

fn between(flow: &FlowKey, direction: Direction) -> IpHeader {
    let (from, to) = match direction {
        Direction::ToLink => (flow.near, flow.far),
        Direction::FromLink => (flow.far, flow.near),
    };
    IpHeader {
        source: from.ip(),
        destination: to.ip(),
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    }
}
