//! What the lab watches while packets cross a link: capture files and counts.

use crate::capture::Capture;
use crate::frame::Content;
use outlast_world::Side;
use outlast_world::path::{Counts as Crossed, Seen, Watch};

/// Told of what the two ends of one link see.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) capture: Option<Capture>,
}

/// What was counted at the two ends of the mobile's link besides the link's own counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets that came to the link, those that no gateway could look into among them.
    pub sent: u64,
    /// Packets that left it.
    pub received: u64,
    /// Packets from hosts that are no whole IP packets.
    pub opaque: u64,
    /// Packets that gateways took.
    pub taken: u64,
    /// Packets that gateways sent into the link.
    pub resent: u64,
    /// Packets that gateways handed on at their own side.
    pub rereceived: u64,
    /// Packets that a host's kernel had no room for.
    pub refused: u64,
}

impl Counts {
    /// What was counted on the mobile's link, and of what hosts sent and could not take.
    pub(crate) fn new(crossed: Crossed, opaque: u64, refused: u64) -> Self {
        let Crossed {
            sent,
            received,
            taken,
            resent,
            rereceived,
            injected_bytes: _,
        } = crossed;
        Self {
            sent,
            received,
            opaque,
            taken,
            resent,
            rereceived,
            refused,
        }
    }
}

impl Watch for Observer {
    type Load = Content;

    fn captured(&mut self, side: Side, seen: Seen) {
        if let Some(capture) = &mut self.capture {
            capture.write(side, seen);
        }
    }
}
