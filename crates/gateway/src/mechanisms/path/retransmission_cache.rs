//! Retransmission caching at a mobility agent (a thesis on TCP over Mobile IP, section 5.3).
//!
//! The agent keeps the retransmission that a sender sends after a timeout while the mobile is
//! away, and forwards it as soon as it knows where the mobile is. The sender, whose timeout has
//! doubled, is woken by the acknowledgement instead of sleeping on. One segment per connection is
//! kept, and it is the sender's own: nothing is invented and nothing acknowledged.
//!
//! A retransmission is told from other segments by the highest sequence number seen (section
//! 5.3.1): what does not go beyond it is kept, and what comes next decides.
//!
//! | next | means | the kept segment |
//! |---|---|---|
//! | a segment beyond the highest number seen | the connection runs | is dropped |
//! | the same segment again | another timeout | is replaced by its newer copy; it also passes |
//! | the mobile can be reached | the sender sleeps | is forwarded, once |
//!
//! Home agents and foreign agents do the same (section 5.3.2); for the gateway the mobility
//! update is a link-up of the mobile's [`LinkId`](crate::links::LinkId).
//!
//! # Limits
//!
//! Of no use before the sender's first timeout (section 5.3.4): a hand-off that is shorter than
//! the timeout costs what it costs without. The forwarded segment may be lost again; `hold`
//! answers both.
//!
//! # Departures
//!
//! What the mobile has acknowledged is not kept: the thesis forwards it for a duplicate
//! acknowledgement. Of the copies of a segment the newest is
//! kept, whose timestamp measures the time since the last timeout rather than the whole outage.

use super::smart_link::{KeptPacket, is_useful};
use super::{Context, Info, Outgoing, PathMechanism, SendReason, Verdict, Waiting};
use crate::limits::Budget;
use crate::links::{Direction, LinkState};
use crate::tracking::{Observation, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::Packet;

pub(super) const INFO: Info = Info {
    name: "retransmission-cache",
    source: "a thesis on TCP over Mobile IP, section 5.3",
    summary: "keeps a retransmission that found the mobile away, and forwards it at its return",
    acknowledges_ahead: false,
};

/// One connection's part.
#[derive(Debug, Default)]
pub(super) struct RetransmissionCache {
    kept: KeptPacket,
    is_due: bool,
}

impl RetransmissionCache {
    fn keep(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        if is_useful(packet, cx.flow.near.acked) {
            self.kept.replace(packet, cx);
        }
    }

    fn clear(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
        self.is_due = false;
    }
}

impl PathMechanism for RetransmissionCache {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict {
        match direction {
            Direction::ToLink if observation.repeated => self.keep(packet, cx),
            Direction::ToLink if observation.new_data => self.clear(cx.budget),
            Direction::ToLink => {}
            Direction::FromLink => {
                self.kept.forget_acknowledged(cx);
                self.is_due &= self.kept.packet().is_some();
            }
        }
        Verdict::Pass
    }

    fn handle_drop(&mut self, _cx: &mut Context<'_>, _packet: &Packet) {
        // An agent does not know what became of what it forwarded.
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        self.is_due = cx.link.state == LinkState::Up && self.kept.packet().is_some();
    }

    fn handle_timeout(&mut self, _cx: &mut Context<'_>) {}

    fn waiting(&self) -> Option<Waiting> {
        self.is_due.then_some(Waiting::Data)
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        if !core::mem::take(&mut self.is_due) {
            return None;
        }
        let packet = self.kept.packet()?.clone();
        self.kept.clear(cx.budget);
        Some(Outgoing {
            direction: Direction::ToLink,
            packet,
            reason: SendReason::CachedRetransmission,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn may_rest(&self, _now: Instant, _flow: &TcpFlow) -> bool {
        self.kept.packet().is_none()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.clear(budget);
    }
}
