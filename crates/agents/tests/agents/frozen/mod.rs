//! Connections that neighbours tell of; the fuzz target has them from here, too.

use outlast_gateway::tracking::{Acquaintance, Half};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpHeader};
use std::net::SocketAddr;

const WINDOW: u16 = 60_000;

/// A segment from one host to the other.
pub(crate) fn segment(
    (from, to): (SocketAddr, SocketAddr),
    header: TcpHeader,
    payload: &[u8],
) -> Packet {
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        window: WINDOW,
        ..header
    };
    Packet::tcp_segment(IpHeader::new(from.ip(), to.ip()), header, payload)
}

/// A host that was seen to send everything before `next`, of which its peer has all before `acked`.
pub(crate) fn half(next: SeqNumber, acked: SeqNumber) -> Half {
    let window = u32::from(WINDOW);
    Half {
        next,
        acked,
        allowed: Some(acked + window),
        largest_window: window,
        window_scale: Some(0),
        permits_sack: None,
        acquaintance: Acquaintance::Seen,
        fin: None,
    }
}
