//! A tracker that is tried with segments, not attached to an interface.

use outlast_base::time::Instant;
use outlast_gateway::links::Direction;
use outlast_linux::tracker::Tracker;
use outlast_wire::{IpHeader, Packet, TcpHeader};
use std::net::SocketAddr;

/// A segment of the connection between `near` and `far` crosses; `header` says all but the ports and
/// the window.
pub(crate) fn cross(
    tracker: &Tracker,
    now: Instant,
    direction: Direction,
    [near, far]: [SocketAddr; 2],
    header: TcpHeader,
    payload: usize,
) {
    let (from, to) = match direction {
        Direction::ToLink => (near, far),
        Direction::FromLink => (far, near),
    };
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        window: 60_000,
        ..header
    };
    let ip = IpHeader::new(from.ip(), to.ip());
    let packet = Packet::tcp_segment(ip, header, &vec![7; payload]).to_bytes();
    let frame = [&[2; 12][..], &[8, 0], &packet].concat();
    let ran = tracker.try_out(now, direction, &frame, 0);
    ran.expect("it runs");
}
