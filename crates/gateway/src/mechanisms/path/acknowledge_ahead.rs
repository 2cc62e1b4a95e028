//! `acknowledge-ahead`: `hold`, and an acknowledgement for all that is held.
//!
//! While the link is down, everything that is unacknowledged is kept, acknowledged for the far host
//! and the window closed: the sender has nothing in flight, runs no retransmission timer, and waits
//! in persist mode with its congestion window as it was. At reconnection what is kept goes out as
//! with `hold`, and the window opens again as far as the far host had offered it. Measured on
//! Linux, nothing else freezes a modern sender: a window that closes while data is in flight leaves
//! it on its retransmission timer.
//!
//! After the "cache, acknowledge" of indirect TCP and the freeze of M-TCP (Brown and Singh 1997)
//! and of the thesis on TCP over Mobile IP, section 5.4; for the whole window instead of one byte
//! or segment.
//!
//! **It acknowledges what the far host has not.** Until the far host has acknowledged, the gateway
//! has the only copy of what it acknowledged. If it is killed then, that data is lost: the
//! connection hangs, and a host that aborts it may not say that bytes are missing in the middle.
//! Whoever closes a connection gracefully still learns it: a FIN is never acknowledged ahead.
//!
//! | what happens | what is done |
//! |---|---|
//! | the link goes down, or the sender sends while it is | what is kept without a gap is acknowledged, window zero |
//! | the sender probes the window | the same acknowledgement once more (RFC 9293, MUST-37) |
//! | the link goes again | the last acknowledgement once more, window zero |
//! | the link is back | the window that the far host had offered is open, the backlog goes out |
//! | the far host acknowledges a part | its window, as far as it now goes beyond the acknowledged |
//! | the far host acknowledges all of it | the connection is the hosts' own again |
//! | the connection ends before that, however it does | both hosts are sent a reset |
//!
//! Where a host's SYN was not seen, nothing is acknowledged before the far host was heard to have
//! acknowledged all that comes before it; and the window, whose scale is not known, opens with the
//! far host's own acknowledgement. So it does where the near host may not have offered to scale.
//!
//! Caps: what does not fit into the flow's memory is neither kept nor acknowledged, and what is
//! acknowledged is never dropped for it. A timestamp that the far host would reject as too old is
//! renewed: the sender will not do so any more.

use super::far_host_proxy::{self, FarHostProxy};
use super::hold::{Hold, Retention};
use super::{Account, Context, Info, Outgoing, PathMechanism, SendReason, Verdict, Waiting};
use crate::limits::Budget;
use crate::links::{Direction, Indicator, LinkState};
use crate::tracking::{Observation, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};

pub(super) const INFO: Info = Info {
    name: "acknowledge-ahead",
    source: "after Brown and Singh 1997, and a thesis on TCP over Mobile IP, section 5.4",
    summary: "holds all that the link drops and acknowledges it, so that the sender just waits",
    acknowledges_ahead: true,
};

/// One connection's part.
#[derive(Debug, Default)]
pub(super) struct AcknowledgeAhead {
    hold: Hold,
    far: FarHostProxy,
    /// Everything before it was acknowledged for the far host, and not yet by it.
    until: Option<SeqNumber>,
    /// The highest acknowledgement that the far host itself was heard to send.
    heard: Option<SeqNumber>,
    /// What the near host is to be told now.
    owes: Option<SendReason>,
}

impl PathMechanism for AcknowledgeAhead {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict {
        let Some(tcp) = packet.tcp() else {
            return Verdict::Pass;
        };
        if direction == Direction::ToLink && self.is_probe(cx, packet, tcp) {
            self.owes = Some(SendReason::WindowClosed);
            return Verdict::Pass;
        }
        let verdict = self
            .hold_for(cx)
            .handle_packet(cx, direction, packet, observation);
        if tcp.has(TcpFlags::RST) {
            self.forget();
            return verdict;
        }
        match direction {
            Direction::FromLink => self.hear(cx, tcp, observation.newly_acked),
            Direction::ToLink => self.acknowledge(cx),
        }
        verdict
    }

    fn handle_drop(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        self.hold_for(cx).handle_drop(cx, packet);
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        self.hold_for(cx).handle_link(cx);
        self.forget_what_is_gone(cx.flow);
        match cx.link.state {
            // Silence is told of when it is over: nobody needs to be frozen any more.
            LinkState::Down if cx.link.by == Indicator::Silence => {}
            LinkState::Down => {
                // The window is open, or was to be: whoever waits for it waits on.
                self.owes = self.until.map(|_| SendReason::WindowClosed);
                self.acknowledge(cx);
            }
            LinkState::Up => self.owes = self.until.map(|_| SendReason::WindowOpened),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.hold_for(cx).handle_timeout(cx);
        self.forget_what_is_gone(cx.flow);
    }

    fn waiting(&self) -> Option<Waiting> {
        match self.owes {
            Some(_) => Some(Waiting::Urgent),
            None => self.hold.waiting(),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        if self.owes.is_some() {
            self.forget_what_is_gone(cx.flow);
        }
        let Some(reason) = self.owes.take() else {
            return self.hold_for(cx).poll_transmit(cx);
        };
        let segment = self.hold.ending_at(self.until?)?;
        let packet = match reason {
            SendReason::WindowOpened => self.far.open_window(cx.flow, segment),
            _ => self.far.close_window(cx.flow, segment),
        };
        Some(Outgoing {
            direction: Direction::FromLink,
            packet: packet?,
            reason,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hold.poll_timeout()
    }

    fn account(&self) -> Account {
        let own = self.hold.account();
        match self.until {
            None => own,
            Some(_) => Account {
                acknowledged_ahead: true,
                why: "acknowledged what is kept, for the far host",
                ..own
            },
        }
    }

    fn may_rest(&self, now: Instant, flow: &TcpFlow) -> bool {
        self.until.is_none() && self.hold.may_rest(now, flow)
    }

    fn resets(&self, flow: &TcpFlow) -> Option<[Packet; 2]> {
        let until = self.until.filter(|until| flow.near.acked.before(*until))?;
        let segment = self.hold.ending_at(until)?;
        let near = self.far.reset_near(flow, segment)?;
        Some([near, far_host_proxy::reset_far(flow, segment)?])
    }

    fn release(&mut self, budget: &mut Budget) {
        self.hold.release(budget);
        self.forget();
    }
}

impl AcknowledgeAhead {
    /// `hold`, for a call with `cx`: what was acknowledged ahead, nobody will send again.
    const fn hold_for(&mut self, cx: &mut Context<'_>) -> &mut Hold {
        cx.retention = Retention::before(self.until);
        &mut self.hold
    }

    /// A window probe has one byte beyond the window, or none and an old number (RFC 9293, section
    /// 3.8.6.1). What it brings is not kept: byte by byte it would creep past a closed window.
    fn is_probe(&self, cx: &Context<'_>, packet: &Packet, tcp: &TcpHeader) -> bool {
        let is_small = tcp.flags == TcpFlags::ACK || tcp.flags == TcpFlags::ACK | TcpFlags::PSH;
        let Some(until) = self.until.filter(|_| is_small) else {
            return false;
        };
        cx.link.state == LinkState::Down
            && match packet.header().payload_len {
                0 => tcp.seq.before(until),
                1 => tcp.seq.at_or_after(until),
                _ => false,
            }
    }

    /// Acknowledges what is kept without a gap, if that is more than before.
    fn acknowledge(&mut self, cx: &mut Context<'_>) {
        if cx.link.state == LinkState::Up {
            return;
        }
        let from = self.until.unwrap_or(cx.flow.near.acked);
        // What the far host had acknowledged before it was first seen here is a guess: it may lack
        // what came before the first segment that was seen, and nobody here has that.
        let is_begun_here = cx.flow.near.window_scale.is_some();
        if !is_begun_here && self.until.is_none() && self.heard.is_none_or(|h| from.after(h)) {
            return;
        }
        let last = self.hold.last_in_sequence(from);
        let Some(end) = last.and_then(|last| Some(last.tcp()?.seq + last.sequence_len())) else {
            return;
        };
        cx.counters.freezes += u64::from(self.until.is_none());
        self.until = Some(end);
        self.owes = Some(SendReason::WindowClosed);
    }

    /// A segment from the far host.
    fn hear(&mut self, cx: &Context<'_>, tcp: &TcpHeader, newly_acked: u32) {
        self.far.hear(tcp);
        if tcp.has(TcpFlags::ACK) {
            self.heard = Some(self.heard.map_or(tcp.ack, |heard| heard.max(tcp.ack)));
        }
        if self
            .until
            .is_some_and(|until| cx.flow.near.acked.at_or_after(until))
        {
            self.forget();
        } else if self.until.is_some() && cx.link.state == LinkState::Up && newly_acked > 0 {
            // To the sender this one is old; that its window goes on it learns only so.
            self.owes = Some(SendReason::WindowOpened);
        }
    }

    /// Who tracks the connection elsewhere may know that the far host has it all, or that another
    /// connection has its ports: then nothing of it is kept, nor anything owed for it.
    fn forget_what_is_gone(&mut self, flow: &TcpFlow) {
        let is_gone = |until| flow.near.acked.at_or_after(until) || !self.hold.reaches(until);
        if self.until.is_some_and(is_gone) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.until = None;
        self.owes = None;
    }
}
