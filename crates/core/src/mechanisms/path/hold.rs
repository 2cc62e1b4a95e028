//! `hold`: what modern stacks need beyond the smart link layer's one packet.
//!
//! Keeps every distinct segment that the link dropped or would have dropped, and at
//! reconnection delivers it: the newest acknowledgement first, then the data in order and at the
//! link's pace. It never acknowledges, invents or alters data.
//!
//! What is new against Scott and Mapp, and why (measured on Linux; `docs/hold.md`):
//!
//! - *All segments, not one.* A sender whose window was lost recovers one round trip and one
//!   doubling at a time; BBR waits for whole inflated timeouts. If all of the window arrives, the
//!   sender finds its timeout spurious (RFC 3522, RFC 5682) and goes on as if nothing had been.
//! - *Acknowledgement first.* Where acknowledgements were lost, data re-sent draws duplicate
//!   acknowledgements, the sender undoes its retransmission and waits once more.
//! - *What certainly was lost, first.* A segment that was on the link when it went down may have
//!   arrived. At reconnection only the oldest of these is re-sent at once; the others wait until
//!   the far host has said what it lacks, or a round-trip time is over.
//! - *A kick that does not work is repeated*, with back-off, until new data flows (the future
//!   work of the paper's section 8). The repeated kick is the freshest copy: an old timestamp
//!   would make the sender think that its timeout was spurious, and send on instead of filling
//!   the hole.
//! - A fresh segment waits behind what is kept of its flow, and a retransmission of what was
//!   re-sent less than a round trip ago is not forwarded a second time.
//!
//! Needs to see both directions. Past a flow's cap, or when the memory of all flows is used up,
//! it falls back to the one packet of the smart link layer until that has been recovered from.

mod episode;
mod latest;
mod nudge;
mod stamp;
mod window;

use super::smart_link::KeptPacket;
use super::{Context, Info, Outgoing, PathMechanism, SendReason, TakeReason, Verdict, Waiting};
use crate::flow::Observation;
use crate::limits::Budget;
use crate::link::{Direction, LinkState};
use crate::time::Instant;
use alloc::boxed::Box;
use episode::{Episode, Kick};
use latest::Latest;
use nudge::Nudge;
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};
use stamp::Stamp;
use window::{Fate, Full, Window};

pub(super) const INFO: Info = Info {
    name: "hold",
    source: "after Scott and Mapp 2003, section 8",
    summary: "keeps all that the link drops and delivers it in order at reconnection",
    acknowledges_ahead: false,
};

/// Copies of the newest acknowledgement in a repeated kick: one, and the three duplicates that
/// make a sender retransmit (RFC 5681, section 3.2).
const REPEATED_ACKS: u8 = 4;

/// One connection's part at one end of the link.
#[derive(Debug, Default)]
pub(super) struct Hold {
    kept: Kept,
    newest_ack: NewestAck,
    episode: Option<Box<Episode>>,
    nudge: Nudge,
    /// The newest timestamp that the near host has sent.
    near_clock: Option<Stamp>,
}

/// What is kept of the data sent towards the link.
#[derive(Debug)]
enum Kept {
    /// All that is unacknowledged.
    Window(Window),
    /// Past a cap: one packet, until everything up to `until` is acknowledged.
    One {
        packet: KeptPacket,
        until: SeqNumber,
        pending: bool,
    },
}

impl Default for Kept {
    fn default() -> Self {
        Self::Window(Window::default())
    }
}

/// The newest pure acknowledgement that went towards the link.
#[derive(Debug, Default)]
struct NewestAck {
    packet: Latest,
    passed_at: Instant,
    /// The link may have dropped it.
    owed: bool,
    copies_left: u8,
}

impl PathMechanism for Hold {
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
        if direction == Direction::ToLink {
            self.near_clock = Stamp::newest(self.near_clock, tcp);
        }
        match direction {
            Direction::FromLink => {
                self.nudge
                    .note(packet, cx.flow.near.has_outstanding(), cx.budget);
                self.hear(cx, tcp, observation);
                Verdict::Pass
            }
            Direction::ToLink if tcp.has(TcpFlags::RST) => {
                self.release(cx.budget);
                Verdict::Pass
            }
            Direction::ToLink if packet.sequence_len() == 0 => self.send_ack(cx, packet),
            Direction::ToLink => {
                if observation.repeated && cx.link.state == LinkState::Down {
                    self.nudge.sender_timed_out(cx.now);
                }
                self.send_data(cx, packet)
            }
        }
    }

    fn handle_drop(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        if packet.sequence_len() == 0 {
            self.newest_ack.owed = true;
        } else if let Kept::Window(window) = &mut self.kept {
            window.mark_dropped(packet);
        }
        // Told only when the link is back already: what was kept is not to wait for the next time.
        if cx.link.state == LinkState::Up && self.episode.is_none() {
            self.begin_episode(cx);
        }
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        match cx.link.state {
            LinkState::Down => self.suspend(cx),
            LinkState::Up => {
                self.nudge.stop();
                self.begin_episode(cx);
            }
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.nudge.handle_timeout(cx.now, cx.link);
        let Some(episode) = &mut self.episode else {
            return;
        };
        if episode.doubt_is_over(cx.now) {
            self.kept.settle_doubt(episode.target());
        }
        if episode.kick_is_due(cx.now) {
            self.repeat_kick(cx);
        }
    }

    fn waiting(&self) -> Option<Waiting> {
        if self.nudge.is_due() {
            return Some(Waiting::Urgent);
        }
        self.episode.as_ref()?;
        if self.newest_ack.copies_left > 0 {
            return Some(Waiting::Urgent);
        }
        self.kept.has_lost().then_some(Waiting::Data)
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        if self.nudge.is_due() {
            return self.nudge.poll_transmit();
        }
        let episode = self.episode.as_mut()?;
        let (packet, reason) = if self.newest_ack.copies_left > 0 {
            self.newest_ack.copies_left -= 1;
            self.newest_ack.owed = false;
            (
                self.newest_ack.packet.packet()?.clone(),
                SendReason::NewestAck,
            )
        } else {
            match &mut self.kept {
                Kept::Window(window) => {
                    (window.next_lost(cx.now, episode.copy())?, episode.reason())
                }
                Kept::One {
                    packet, pending, ..
                } => {
                    *pending = false;
                    (packet.packet()?.clone(), episode.reason())
                }
            }
        };
        episode.sent(cx.now, cx.flow.rtt.patience());
        Some(Outgoing {
            direction: Direction::ToLink,
            packet,
            reason,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let kick = self.episode.as_ref().and_then(|episode| episode.deadline());
        [kick, self.nudge.deadline()].into_iter().flatten().min()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
        self.newest_ack.packet.clear(budget);
        self.newest_ack = NewestAck::default();
        self.episode = None;
        self.nudge.clear(budget);
    }
}

impl Hold {
    /// The last of the kept segments that follow `from` without a gap, a FIN not among them.
    pub(super) fn last_in_sequence(&self, from: SeqNumber) -> Option<&Packet> {
        match &self.kept {
            Kept::Window(window) => window.last_in_sequence(from).map(window::Segment::freshest),
            Kept::One { .. } => None,
        }
    }

    /// The kept segment that ends at `end`.
    pub(super) fn ending_at(&self, end: SeqNumber) -> Option<&Packet> {
        match &self.kept {
            Kept::Window(window) => window.ending_at(end).map(window::Segment::freshest),
            Kept::One { .. } => None,
        }
    }

    /// Everything before `until` is kept until the far host has acknowledged it, whatever else is
    /// to be kept: its sender will not send it again.
    pub(super) const fn pledge(&mut self, until: Option<SeqNumber>) {
        if let Kept::Window(window) = &mut self.kept {
            window.pledge(until);
        }
    }

    /// A segment from the far host: what it acknowledges need not be kept, and whether it
    /// moves says whether the kick worked.
    fn hear(&mut self, cx: &mut Context<'_>, tcp: &TcpHeader, observation: Observation) {
        let acked = cx.flow.near.acked;
        match &mut self.kept {
            Kept::Window(window) => {
                window.acknowledge(acked, cx.budget);
                if let Some(echo) = self.near_clock.and_then(|clock| clock.echoed_by(tcp)) {
                    window.hear_echo(echo, cx.budget);
                }
                window.selectively_acknowledge(&tcp.options.sack);
            }
            Kept::One { packet, until, .. } => {
                if acked.at_or_after(*until) {
                    packet.clear(cx.budget);
                    self.kept = Kept::default();
                }
            }
        }
        if tcp.has(TcpFlags::RST) {
            self.release(cx.budget);
            return;
        }
        let Some(episode) = &mut self.episode else {
            return;
        };
        if cx.link.state == LinkState::Down {
            return;
        }
        if tcp.has(TcpFlags::ACK) && episode.heard_acknowledgement() {
            self.kept.settle_doubt(episode.target());
        }
        // Where nothing is kept, whatever the far host sends shows that it is awake.
        let is_awake = observation.new_data || observation.repeated;
        let moved = observation.newly_acked > 0 || (is_awake && self.kept.is_empty());
        if moved && let Some(after) = episode.moved(cx.now, cx.flow.rtt.patience()) {
            *cx.resumed = Some(after);
            cx.counters.resumes += 1;
        }
        let nothing_waits = self.newest_ack.copies_left == 0 && !self.kept.has_lost();
        if nothing_waits && episode.is_over(acked, self.kept.is_empty()) {
            self.episode = None;
        }
    }

    fn send_ack(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Verdict {
        let superseded = self.newest_ack.owed;
        self.newest_ack.packet.replace(packet, cx.budget);
        self.newest_ack.passed_at = cx.now;
        match cx.link.state {
            LinkState::Up => {
                self.newest_ack.owed = false;
                self.newest_ack.copies_left = 0;
                Verdict::Pass
            }
            LinkState::Down => {
                cx.counters.superseded += u64::from(superseded);
                self.newest_ack.owed = true;
                Verdict::Taken(TakeReason::LinkDown)
            }
        }
    }

    fn send_data(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Verdict {
        let end = packet.tcp().map(|tcp| tcp.seq + packet.sequence_len());
        if end.is_some_and(|end| end.at_or_before(cx.flow.near.acked)) {
            // The far host has it; the sender has only not heard so yet.
            return Verdict::Pass;
        }
        let (verdict, fate) = self.judge_data(cx, packet);
        match self.keep(cx, packet, fate) {
            Ok(()) => verdict,
            // Nothing was kept, so the packet takes its own chance.
            Err(Full) => Verdict::Pass,
        }
    }

    fn judge_data(&self, cx: &mut Context<'_>, packet: &Packet) -> (Verdict, Fate) {
        if cx.link.state == LinkState::Down {
            return (Verdict::Taken(TakeReason::LinkDown), Fate::Lost);
        }
        let (Some(_), Kept::Window(window)) = (&self.episode, &self.kept) else {
            return (Verdict::Pass, Fate::Transmitted);
        };
        if let Some(segment) = window.find(packet)
            && let Fate::Resent(at) = segment.fate
            && cx.now.since(at) < cx.flow.rtt.smoothed()
        {
            cx.counters.suppressed += 1;
            return (Verdict::Taken(TakeReason::JustResent), segment.fate);
        }
        if window.has_lost() {
            return (Verdict::Taken(TakeReason::BehindKept), Fate::Lost);
        }
        (Verdict::Pass, Fate::Transmitted)
    }

    fn keep(&mut self, cx: &mut Context<'_>, packet: &Packet, fate: Fate) -> Result<(), Full> {
        match &mut self.kept {
            Kept::Window(window) => {
                if window.keep(packet, fate, cx).is_ok() {
                    return Ok(());
                }
                // What nobody else has is not given up for what its sender still has.
                if !window.is_pledged() {
                    self.fall_back(cx, packet);
                }
            }
            Kept::One {
                packet: kept,
                until,
                ..
            } => {
                kept.offer_sent(packet, cx);
                *until = cx.flow.near.next;
            }
        }
        Err(Full)
    }

    /// Past a cap: the freshest copy of the oldest segment is all that stays. Before the link
    /// went down nothing is lost by that; while it is down the sender's own retransmission of
    /// the rest is needed.
    fn fall_back(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        cx.counters.fallbacks += 1;
        let oldest = match &mut self.kept {
            Kept::Window(window) => {
                let oldest = window.front().map(|segment| segment.freshest().clone());
                window.clear(cx.budget);
                oldest
            }
            Kept::One { .. } => None,
        };
        let mut one = KeptPacket::default();
        one.offer_sent(oldest.as_ref().unwrap_or(packet), cx);
        self.kept = Kept::One {
            packet: one,
            until: cx.flow.near.next,
            pending: false,
        };
    }

    fn suspend(&mut self, cx: &mut Context<'_>) {
        self.episode = None;
        self.newest_ack.copies_left = 0;
        if cx.now.since(self.newest_ack.passed_at) < cx.flow.rtt.patience() {
            self.newest_ack.owed |= self.newest_ack.packet.packet().is_some();
        }
        if let Kept::Window(window) = &mut self.kept {
            window.mark_resent_as_transmitted();
        }
    }

    fn begin_episode(&mut self, cx: &mut Context<'_>) {
        let owes_ack = self.newest_ack.owed && self.newest_ack.packet.packet().is_some();
        if !owes_ack && self.kept.is_empty() {
            return;
        }
        if owes_ack {
            self.newest_ack.copies_left = 1;
        }
        let target = match &mut self.kept {
            Kept::Window(window) => {
                window.mark_front_lost();
                window.end()
            }
            Kept::One {
                until,
                pending,
                packet,
            } => {
                *pending = packet.packet().is_some();
                Some(*until)
            }
        };
        self.episode = Some(Box::new(Episode::new(
            cx.now,
            cx.flow.rtt.patience(),
            target,
        )));
    }

    /// The flow does not move: the newest acknowledgement and the freshest copy of the oldest
    /// segment go out again, unless enough has been tried.
    fn repeat_kick(&mut self, cx: &mut Context<'_>) {
        let Some(episode) = &mut self.episode else {
            return;
        };
        let has_data = !self.kept.is_empty();
        match episode.kick(cx.now, has_data) {
            Kick::GiveUp => self.episode = None,
            Kick::Again => {
                cx.counters.kicks_repeated += 1;
                if self.newest_ack.packet.packet().is_some() && !has_data {
                    self.newest_ack.copies_left = REPEATED_ACKS;
                }
                match &mut self.kept {
                    Kept::Window(window) => window.mark_front_lost(),
                    Kept::One {
                        pending, packet, ..
                    } => *pending = packet.packet().is_some(),
                }
            }
        }
    }
}

impl Kept {
    fn is_empty(&self) -> bool {
        match self {
            Self::Window(window) => window.is_empty(),
            Self::One { packet, .. } => packet.packet().is_none(),
        }
    }

    /// Whether something that has certainly not arrived waits to be re-sent.
    fn has_lost(&self) -> bool {
        match self {
            Self::Window(window) => window.has_lost(),
            Self::One { pending, .. } => *pending,
        }
    }

    /// What was on the link when it went down, and is not acknowledged by now, was lost.
    fn settle_doubt(&mut self, until: Option<SeqNumber>) {
        if let (Self::Window(window), Some(until)) = (self, until) {
            window.mark_transmitted_lost(until);
        }
    }

    fn clear(&mut self, budget: &mut Budget) {
        match self {
            Self::Window(window) => window.clear(budget),
            Self::One { packet, .. } => packet.clear(budget),
        }
        *self = Self::default();
    }
}
