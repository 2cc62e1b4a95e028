//! What tells one flow from another.

use crate::link::Direction;
use core::net::{IpAddr, SocketAddr};
use outlast_wire::{Header, Transport};

/// The addresses and ports of a flow, as seen from the gateway's end of the link.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FlowKey {
    /// The host on this side of the link: it sends [`Direction::ToLink`].
    pub near: SocketAddr,
    /// The host beyond the link.
    pub far: SocketAddr,
}

impl FlowKey {
    /// The flow of a TCP segment that crosses in `direction`; `None` for anything else.
    #[must_use]
    pub fn of_tcp(header: &Header, direction: Direction) -> Option<Self> {
        let Transport::Tcp(tcp) = &header.transport else {
            return None;
        };
        let source = socket(header.ip.source, tcp.source_port);
        let destination = socket(header.ip.destination, tcp.destination_port);
        Some(match direction {
            Direction::ToLink => Self {
                near: source,
                far: destination,
            },
            Direction::FromLink => Self {
                near: destination,
                far: source,
            },
        })
    }
}

const fn socket(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}
