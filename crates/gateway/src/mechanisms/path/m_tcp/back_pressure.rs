//! The window by which a sender is kept to its connection's share of the link's rate.
//!
//! Where the link's rate is shared out, data waits in the supervisor host, not in the link's queue, and nothing
//! is dropped that would tell a sender to slow down. So the fixed host is offered no more than what its share
//! sends in a while beyond what has gone to the mobile. Its window then moves on as the link sends, and
//! never back. The mobile's own window bounds it, as ever.

use super::super::Context;
use outlast_wire::SeqNumber;

/// What the fixed host is offered.
#[derive(Debug, Default)]
pub(super) struct BackPressure {
    /// The right edge of the widest window that was told; `None` where the rate is not shared out.
    edge: Option<SeqNumber>,
}

impl BackPressure {
    /// The window field beside an acknowledgement of everything before `ack`, where the mobile offers `offered`
    /// and everything before `sent_until` has gone to it.
    pub(super) fn window(
        &mut self,
        cx: &Context<'_>,
        sent_until: SeqNumber,
        ack: SeqNumber,
        offered: u16,
    ) -> u16 {
        let (Some(allotment), Some(scale)) = (cx.allotment, cx.flow.offered_scale()) else {
            self.edge = None;
            return offered;
        };
        let of_mobile = ack + (u32::from(offered) << scale.min(LARGEST_SCALE));
        let backlog = u32::try_from(allotment.backlog().0).unwrap_or(MOST_BACKLOG);
        let limit = (sent_until + backlog.min(MOST_BACKLOG)).max(ack);
        // What was offered before is not taken back: a SYN offers so much at most, as its window is not scaled.
        let before = self.edge.unwrap_or(ack + u32::from(u16::MAX));
        let edge = before.max(limit).min(of_mobile);
        self.edge = Some(edge);
        let bytes = edge.distance_from(ack).max(0).unsigned_abs();
        u16::try_from(bytes >> scale.min(LARGEST_SCALE)).unwrap_or(offered)
    }
}

/// No window is larger (RFC 7323, section 2.3).
const MOST_BACKLOG: u32 = 1 << 30;
/// No window is scaled down further (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;
