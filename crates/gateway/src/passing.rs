//! A packet on its way through the gateway.

use crate::links::{Direction, LinkId, StateSince};
use outlast_base::time::Instant;
use outlast_wire::Packet;

/// A packet that crosses the gateway, with what is known of its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassingPacket<'a> {
    pub(crate) now: Instant,
    pub(crate) link: LinkId,
    pub(crate) state: StateSince,
    pub(crate) direction: Direction,
    pub(crate) packet: &'a Packet,
}
