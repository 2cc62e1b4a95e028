//! Levels 3 and 4: the best packet that was sent towards the link, sent once more.

use super::KeptPacket;
use crate::limits::Budget;
use crate::links::{Direction, LinkState};
use crate::mechanisms::path::{Context, Outgoing, PathMechanism, SendReason, Verdict, Waiting};
use crate::tracking::{Observation, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags};

/// One connection's part at one end of the link.
#[derive(Debug)]
pub(super) struct ReSend {
    kept: KeptPacket,
    copies: u8,
    copies_left: u8,
}

impl ReSend {
    pub(super) fn new(copies: u8) -> Self {
        Self {
            kept: KeptPacket::default(),
            copies,
            copies_left: 0,
        }
    }
}

impl PathMechanism for ReSend {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        _observation: Observation,
    ) -> Verdict {
        if packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::RST)) {
            // The connection is over, and its mechanism is shown nothing more.
            self.kept.clear(cx.budget);
            self.copies_left = 0;
            return Verdict::Pass;
        }
        match direction {
            Direction::ToLink => self.kept.offer_sent(packet, cx),
            Direction::FromLink => {
                self.kept.forget_acknowledged(cx);
                if self.kept.packet().is_none() {
                    self.copies_left = 0;
                }
            }
        }
        Verdict::Pass
    }

    fn handle_drop(&mut self, _cx: &mut Context<'_>, _packet: &Packet) {
        // The paper's layer keeps what it was handed, whatever became of it.
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        let kicks = cx.link.state == LinkState::Up && cx.flow.near.has_outstanding();
        self.copies_left = match kicks && self.kept.packet().is_some() {
            true => self.copies,
            false => 0,
        };
    }

    fn handle_timeout(&mut self, _cx: &mut Context<'_>) {}

    fn waiting(&self) -> Option<Waiting> {
        (self.copies_left > 0).then_some(Waiting::Data)
    }

    fn poll_transmit(&mut self, _cx: &mut Context<'_>) -> Option<Outgoing> {
        self.copies_left = self.copies_left.checked_sub(1)?;
        Some(Outgoing {
            direction: Direction::ToLink,
            packet: self.kept.packet()?.clone(),
            reason: SendReason::SmartLink,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn may_rest(&self, _now: Instant, flow: &TcpFlow) -> bool {
        self.copies_left == 0 && !flow.near.has_outstanding()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
    }
}
