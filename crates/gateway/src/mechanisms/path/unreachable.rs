//! ICMP errors by which a sender takes back the back-off of its retransmission timer (RFC 6069).
//!
//! A sender that has timed out in vain waits twice as long each time. An ICMP error that says that no
//! route was there, about the segment that it repeats, shows that the loss was none of congestion: it
//! takes one doubling back, and repeats the segment at once if the shorter time is over already. Such
//! errors are what routers send that find a destination away. Which segment it is, its sequence number
//! says: that of the oldest byte that is not acknowledged (SND.UNA).
//!
//! The error comes in the name of the host that could not be reached, so that it passes every filter
//! and translator that the connection's own packets pass: whoever tracks connections knows it by what
//! it quotes (RFC 5508, section 4). IPv4: network unreachable, IPv6: no route; those are the ones that
//! RFC 6069, section 3, knows for both.

use crate::links::Direction;
use crate::tracking::{FlowKey, TcpFlow};
use outlast_wire::{IcmpNotice, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

/// What packets of hosts carry mostly; nobody looks at that of a packet that is quoted.
const HOP_LIMIT: u8 = 64;

/// The error for the host that sends in `direction`, about the oldest segment that its peer has not
/// acknowledged; `None` where the addresses are such that no error may be sent.
pub(super) fn unreachable(key: &FlowKey, flow: &TcpFlow, direction: Direction) -> Option<Packet> {
    let sender = match direction {
        Direction::ToLink => &flow.near,
        Direction::FromLink => &flow.far,
    };
    unreachable_from(key, flow, direction, sender.acked)
}

/// The error that tells the near host of a path that takes packets of `mtu` bytes at most (RFC 1191, RFC 8201), about the oldest segment
/// that is not acknowledged; `None` where the addresses are such that no error may be sent.
pub(super) fn too_big(key: &FlowKey, flow: &TcpFlow, mtu: u32) -> Option<Packet> {
    let notice = IcmpNotice::TooBig { mtu };
    error(key, flow, (Direction::ToLink, flow.near.acked), notice)
}

/// The error for the host that sends in `direction`, about the segment that begins with `seq`; `None` where
/// the addresses are such that no error may be sent.
pub(crate) fn unreachable_from(
    key: &FlowKey,
    flow: &TcpFlow,
    direction: Direction,
    seq: SeqNumber,
) -> Option<Packet> {
    error(key, flow, (direction, seq), IcmpNotice::NetworkUnreachable)
}

/// The error for the host that sends in that direction, about its segment that begins there.
fn error(
    key: &FlowKey,
    flow: &TcpFlow,
    (direction, seq): (Direction, SeqNumber),
    notice: IcmpNotice,
) -> Option<Packet> {
    let (from, to, receiver) = match direction {
        Direction::ToLink => (key.near, key.far, &flow.far),
        Direction::FromLink => (key.far, key.near, &flow.near),
    };
    let ip = IpHeader {
        source: from.ip(),
        destination: to.ip(),
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        seq,
        ack: receiver.acked,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let about = Packet::tcp_segment(ip, header, &[]);
    Packet::icmp_error(to.ip(), notice, &about).ok()
}
