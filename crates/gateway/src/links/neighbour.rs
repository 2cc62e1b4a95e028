//! Holder of a peer's address: the host that had it when its connections spoke last, or another one.
//!
//! A gateway keeps segments for a host, and links deliver to addresses. So a driver that sees who has an address, such as
//! the Ethernet address of a neighbour, tells; [`neighbours.rs`](../../neighbours.rs) says what follows.

/// Holder of the address of a link's peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Neighbour {
    /// The host that answered before.
    Same,
    /// Nobody yet: the address has to be asked for.
    Unconfirmed,
    /// Another host, or the same one with another address of the link layer.
    Changed,
}
