//! Levels 1 and 2: the highest acknowledgement, handed to this side once more.

use super::highest::HighestAck;
use crate::limits::Budget;
use crate::links::{Direction, Indicator, LinkState};
use crate::mechanisms::path::{Context, Outgoing, PathMechanism, SendReason, Verdict, Waiting};
use crate::tracking::{Observation, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::Packet;

/// One connection's part at one end of the link.
#[derive(Debug)]
pub(super) struct ReReceive {
    kept: HighestAck,
    attempted_while_down: bool,
    copies: u8,
    copies_left: u8,
}

impl ReReceive {
    pub(super) fn new(copies: u8) -> Self {
        Self {
            kept: HighestAck::default(),
            attempted_while_down: false,
            copies,
            copies_left: 0,
        }
    }
}

impl PathMechanism for ReReceive {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        _observation: Observation,
    ) -> Verdict {
        let is_away = cx.link.state == LinkState::Down || cx.is_suspected;
        match direction {
            Direction::ToLink => self.attempted_while_down |= is_away,
            Direction::FromLink => self.kept.offer(packet, cx),
        }
        Verdict::Pass
    }

    fn handle_drop(&mut self, _cx: &mut Context<'_>, _packet: &Packet) {
        // The paper's layer keeps what it was handed, whatever became of it.
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        let kicks = cx.link.state == LinkState::Up && self.attempted_while_down;
        self.copies_left = match kicks && !self.kept.is_none() {
            true => self.copies,
            false => 0,
        };
        // Silence is over when it is told of: what was attempted meanwhile counts.
        if cx.link.by != Indicator::Silence {
            self.attempted_while_down = false;
        }
    }

    fn handle_timeout(&mut self, _cx: &mut Context<'_>) {}

    fn waiting(&self) -> Option<Waiting> {
        (self.copies_left > 0).then_some(Waiting::Data)
    }

    fn poll_transmit(&mut self, _cx: &mut Context<'_>) -> Option<Outgoing> {
        self.copies_left = self.copies_left.checked_sub(1)?;
        Some(Outgoing {
            direction: Direction::FromLink,
            packet: self.kept.packet()?,
            reason: SendReason::SmartLink,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn may_rest(&self, _now: Instant, _flow: &TcpFlow) -> bool {
        // The highest acknowledgement is of use after however long a silence.
        self.kept.is_none()
    }

    fn rest(&mut self, budget: &mut Budget) {
        self.kept.rest(budget);
    }

    fn release(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
    }
}
