//! What the lab watches while packets cross: traffic, status, capture files.

use crate::capture::Capture;
use crate::frame::Content;
use crate::status::Status;
use crate::traffic::BothWays;
use outlast_core::time::Instant;
use outlast_link::Way;
use outlast_world::Side;
use outlast_world::path::{Counts as Crossed, Load, Seen, Watch};
use std::sync::Arc;

/// Told of what packets do on the path.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) traffic: BothWays,
    pub(crate) capture: Option<Capture>,
    /// Packets from hosts that are no whole IP packets.
    opaque: u64,
    /// Packets that a host's kernel had no room for.
    refused: u64,
    status: Arc<Status>,
}

/// What was counted at the two ends of the link besides the link's own counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets that hosts sent, those that no gateway could look into among them.
    pub sent: u64,
    /// Packets handed to hosts.
    pub received: u64,
    /// Packets from hosts that are no whole IP packets.
    pub opaque: u64,
    /// Packets that gateways took.
    pub taken: u64,
    /// Packets that gateways sent into the link.
    pub resent: u64,
    /// Packets that gateways handed to their own host.
    pub rereceived: u64,
    /// Packets that a host's kernel had no room for.
    pub refused: u64,
}

impl Observer {
    pub(crate) fn new(capture: Option<Capture>, status: Arc<Status>) -> Self {
        Self {
            traffic: BothWays::default(),
            capture,
            opaque: 0,
            refused: 0,
            status,
        }
    }

    /// The workload's first byte is at the link.
    pub(crate) fn start(&mut self, now: Instant) {
        self.status.start(now);
    }

    /// The kernel of a host had no room for a packet.
    pub(crate) fn refused(&mut self) {
        self.refused += 1;
    }

    /// What was counted, on the path and here.
    pub(crate) fn counts(&self, crossed: Crossed) -> Counts {
        let Crossed {
            sent,
            received,
            taken,
            resent,
            rereceived,
        } = crossed;
        Counts {
            sent,
            received,
            opaque: self.opaque,
            taken,
            resent,
            rereceived,
            refused: self.refused,
        }
    }
}

impl Watch for Observer {
    type Load = Content;

    fn sent(&mut self, way: Way, content: &Content) {
        match content.packet() {
            Some(packet) => self.traffic.way_mut(way).sent(packet),
            None => self.opaque += 1,
        }
    }

    fn injected(&mut self) {
        self.status.count_injected();
    }

    fn arrived(&mut self, now: Instant, way: Way, content: &Content) {
        if let Some(packet) = content.packet() {
            self.traffic.way_mut(way).arrived(now, packet);
            self.status
                .set_delivered(way, self.traffic.way(way).delivered().total());
        }
    }

    fn carrier(&mut self, up: bool) {
        self.status.set_link_up(up);
    }

    fn captured(&mut self, side: Side, seen: Seen) {
        if let Some(capture) = &mut self.capture {
            capture.write(side, seen);
        }
    }
}
