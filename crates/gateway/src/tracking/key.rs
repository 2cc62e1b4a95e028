//! What tells one flow from another.

use crate::links::Direction;
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

/// A [`FlowKey`] in the table: of each address what tells one flow from another, in less than two
/// thirds of the space.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CompactKey {
    addresses: [IpAddr; 2],
    ports: [u16; 2],
}

impl CompactKey {
    pub(super) const fn of(key: &FlowKey) -> Self {
        Self {
            addresses: [key.near.ip(), key.far.ip()],
            ports: [key.near.port(), key.far.port()],
        }
    }

    pub(super) const fn expand(self) -> FlowKey {
        let ([near, far], [near_port, far_port]) = (self.addresses, self.ports);
        FlowKey {
            near: socket(near, near_port),
            far: socket(far, far_port),
        }
    }
}

const fn socket(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}
