//! The smart link layer, levels 1 to 4 (J. Scott and G. Mapp, "Link Layer-Based TCP Optimisation
//! for Disconnecting Networks", 2003).
//!
//! Each end of a disconnecting link keeps one packet per connection and direction and inserts it
//! when the link is back, to kick-start a connection that sleeps in its back-off:
//!
//! | level | kept | inserted |
//! |---|---|---|
//! | 1 | the highest acknowledgement received from the link (section 4.2) | re-received, once |
//! | 2 | the same | re-received, five times |
//! | 3 | the packet sent towards the link that the four criteria choose (section 4.3) | re-sent, once |
//! | 4 | the same | re-sent, five times |
//!
//! Idle connections are left alone: levels 1 and 2 act only if a send was attempted while the
//! link was down, levels 3 and 4 only if data that this end has sent is unacknowledged.
//!
//! Needs both directions: the criterion "older unacknowledged sequence number" reads the
//! acknowledgements that come back. Broken by encrypted transport headers, and by the loss of
//! the inserted packet (the paper's section 8; `hold` answers it). What passes while the link is
//! down passes here too and is dropped by the link, as in the paper.
//!
//! The paper compares acknowledgement and sequence numbers; here they wrap (RFC 9293, 3.4), and
//! the kept packet is forgotten once it is wholly acknowledged, so that it never stands in the
//! way of one that is not.

mod highest;
mod re_receive;
mod re_send;

use super::{Context, Info, PathMechanism};
use crate::limits::Budget;
use alloc::boxed::Box;
use core::cmp::Ordering;
use outlast_wire::{Packet, SeqNumber, TcpHeader};
use re_receive::ReReceive;
use re_send::ReSend;

/// A level of the paper's section 5.2; level 0 is [`super::PathMechanismKind::None`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Level {
    /// Re-receive once.
    One,
    /// Re-receive five times.
    Two,
    /// Re-send once.
    Three,
    /// Re-send five times.
    Four,
}

impl Level {
    /// Its part in one flow.
    pub(super) fn for_flow(self) -> Box<dyn PathMechanism> {
        match self {
            Self::One | Self::Two => Box::new(ReReceive::new(self.copies())),
            Self::Three | Self::Four => Box::new(ReSend::new(self.copies())),
        }
    }

    const fn copies(self) -> u8 {
        match self {
            Self::One | Self::Three => 1,
            Self::Two | Self::Four => 5,
        }
    }

    pub(super) const fn info(self) -> Info {
        let (name, summary) = match self {
            Self::One => (
                "smart-link-1",
                "re-receives the highest acknowledgement, once",
            ),
            Self::Two => (
                "smart-link-2",
                "re-receives the highest acknowledgement, five times",
            ),
            Self::Three => ("smart-link-3", "re-sends the best kept packet, once"),
            Self::Four => ("smart-link-4", "re-sends the best kept packet, five times"),
        };
        let source = "Scott and Mapp 2003, sections 4 and 5.2";
        Info {
            name,
            source,
            summary,
            acknowledges_ahead: false,
        }
    }
}

/// The one kept packet of a connection and direction.
#[derive(Debug, Default)]
pub(super) struct KeptPacket {
    packet: Option<Packet>,
}

impl KeptPacket {
    pub(super) const fn packet(&self) -> Option<&Packet> {
        self.packet.as_ref()
    }

    /// Memory charged for one kept packet.
    const fn charge(packet: &Packet) -> u64 {
        packet.total_len() as u64 + size_of::<Packet>() as u64
    }

    /// Keeps `packet` instead of what is kept, if there is room; else both are gone.
    pub(super) fn replace(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        self.clear(cx.budget);
        if cx.budget.take(Self::charge(packet)) {
            self.packet = Some(packet.clone());
        } else {
            cx.counters.not_kept += 1;
        }
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        if let Some(packet) = self.packet.take() {
            budget.give_back(Self::charge(&packet));
        }
    }

    /// A packet whose data has all arrived kicks nobody.
    pub(super) fn forget_acknowledged(&mut self, cx: &mut Context<'_>) {
        let unacked_from = cx.flow.near.acked;
        if self
            .packet
            .as_ref()
            .is_some_and(|kept| !is_useful(kept, unacked_from))
        {
            self.clear(cx.budget);
        }
    }

    /// Section 4.3: larger acknowledgement, older unacknowledged sequence number, longer,
    /// larger window; in this order.
    pub(super) fn offer_sent(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        let unacked_from = cx.flow.near.acked;
        if self
            .packet
            .as_ref()
            .is_some_and(|kept| !is_useful(kept, unacked_from))
        {
            self.clear(cx.budget);
        }
        if !is_useful(packet, unacked_from) {
            return;
        }
        let better = match &self.packet {
            None => true,
            Some(kept) => is_better(packet, kept, unacked_from),
        };
        if better {
            self.replace(packet, cx);
        }
    }
}

/// A kept packet whose data is all acknowledged kicks nobody; a pure acknowledgement may.
pub(super) fn is_useful(kept: &Packet, unacked_from: SeqNumber) -> bool {
    kept.tcp().is_some_and(|tcp| {
        kept.sequence_len() == 0 || (tcp.seq + kept.sequence_len()).after(unacked_from)
    })
}

/// The four criteria. Sequence numbers that are acknowledged already count as none at all.
fn is_better(packet: &Packet, kept: &Packet, unacked_from: SeqNumber) -> bool {
    let (Some(new), Some(old)) = (packet.tcp(), kept.tcp()) else {
        return false;
    };
    let by_ack = new.ack.compare(old.ack);
    let by_sequence = || older_unacked(packet, new, kept, old, unacked_from);
    let by_length = || packet.header().payload_len.cmp(&kept.header().payload_len);
    let by_window = || new.window.cmp(&old.window);
    by_ack
        .then_with(by_sequence)
        .then_with(by_length)
        .then_with(by_window)
        == Ordering::Greater
}

fn older_unacked(
    packet: &Packet,
    new: &TcpHeader,
    kept: &Packet,
    old: &TcpHeader,
    unacked_from: SeqNumber,
) -> Ordering {
    let has_unacked = |packet: &Packet, tcp: &TcpHeader| {
        packet.sequence_len() > 0 && (tcp.seq + packet.sequence_len()).after(unacked_from)
    };
    match (has_unacked(packet, new), has_unacked(kept, old)) {
        (true, true) => old.seq.compare(new.seq),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => Ordering::Equal,
    }
}
