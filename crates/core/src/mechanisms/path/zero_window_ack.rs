//! Zero-window-size acknowledgements with a one-segment cache (a thesis on TCP over Mobile IP,
//! section 5.4).
//!
//! The agent keeps the oldest unacknowledged segment. When the mobile's acknowledgement of it is
//! overdue, or the link is known to be down, it acknowledges that segment itself, with window
//! zero. The acknowledgement is new, so that the sender takes its window and waits in persist
//! mode instead of backing off. The agent answers the probes. At the mobile's return it delivers
//! the segment, and the mobile's own acknowledgement of it opens the window again.
//!
//! **It acknowledges what the mobile has not.** From the freeze until the mobile has acknowledged,
//! the agent has the only copy of one segment of each frozen connection. If it loses that, the
//! mobile answers every probe with an acknowledgement that is older than what the sender expects:
//! the endless exchange of section 5.4.2. So the segment is sent again until it is acknowledged,
//! and after [`MOST_TRIES`] the connection is reset at both ends. A gateway that is killed cannot
//! do so: then the connection hangs until a host gives it up.
//!
//! # Algorithm (figure 5.4)
//!
//! | what happens | what is done |
//! |---|---|
//! | a segment arrives, and nothing is outstanding or the cache is clear | cache it, set the timer |
//! | an acknowledgement arrives that covers the cached segment | clear the cache |
//! | the timer expires | send the zero-window acknowledgement, if the segment is the oldest |
//! | the mobile can be reached | forward the cached segment |
//!
//! # Limits
//!
//! - The cached segment may not be the oldest unacknowledged one when the link goes (figure 5.5,
//!   a hand-off in a burst): then nothing can be acknowledged, and the sender times out as usual.
//!   `acknowledge-ahead` keeps them all.
//! - What a sender does with a window that shrinks before its time is its own affair: AIX and
//!   SunOS froze, Linux has never done so while data is in flight.
//! - The other segments of the window are the sender's to repeat.
//!
//! # Departures
//!
//! A retransmission of the oldest segment is cached, too, so that the sender is frozen at the
//! latest then. Where the link itself says that it is down the timer is shortened to a round trip.

use super::far_voice::{self, FarVoice};
use super::smart_link::KeptPacket;
use super::{Context, Info, Outgoing, PathMechanism, SendReason, Verdict, Waiting};
use crate::flow::{Observation, TcpFlow};
use crate::limits::Budget;
use crate::link::{Direction, LinkState};
use crate::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};

pub(super) const INFO: Info = Info {
    name: "zero-window-ack",
    source: "a thesis on TCP over Mobile IP, section 5.4",
    summary: "acknowledges one kept segment with window zero, and delivers it at the return",
    acknowledges_ahead: true,
};

/// How much longer than a round trip an acknowledgement may take: it may be delayed (RFC 9293,
/// section 3.8.6.3: less than 500 ms; what hosts do is 200 ms at most).
const DELAYED_ACK: Duration = Duration::from_millis(200);
/// The longest pause between two deliveries of the kept segment.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Deliveries without an acknowledgement after which the connection is reset: about three minutes.
pub(super) const MOST_TRIES: u8 = 16;

/// One connection's part.
#[derive(Debug, Default)]
pub(super) struct ZeroWindowAck {
    far: FarVoice,
    kept: KeptPacket,
    /// When the kept segment's acknowledgement is overdue.
    overdue: Option<Instant>,
    state: State,
    /// The near host is owed an acknowledgement.
    owes_answer: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing is acknowledged but by the mobile.
    #[default]
    Running,
    /// The kept segment was acknowledged for the mobile.
    Frozen(Frozen),
    /// The mobile does not answer: the hosts that have not been told so yet.
    Broken { near: bool, far: bool },
}

/// The near host believes that the mobile has everything before `until`.
#[derive(Debug)]
struct Frozen {
    until: SeqNumber,
    /// The kept segment is to be delivered now.
    is_due: bool,
    /// When it is delivered again.
    again: Option<Instant>,
    pause: Duration,
    tries: u8,
}

impl PathMechanism for ZeroWindowAck {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        _observation: Observation,
    ) -> Verdict {
        let Some(tcp) = packet.tcp() else {
            return Verdict::Pass;
        };
        if tcp.has(TcpFlags::RST) {
            self.release(cx.budget);
            return Verdict::Pass;
        }
        match direction {
            Direction::FromLink => self.hear(cx, tcp),
            Direction::ToLink => self.send(cx, packet, tcp),
        }
        Verdict::Pass
    }

    fn handle_drop(&mut self, _cx: &mut Context<'_>, _packet: &Packet) {
        // An agent does not know what became of what it forwarded.
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        match (cx.link.state, &mut self.state) {
            (LinkState::Down, State::Running) => {
                // What the mobile has acknowledged by now comes within a round trip.
                let soon = cx.now + cx.flow.rtt.smoothed();
                self.overdue = self.overdue.map(|at| at.min(soon));
            }
            (LinkState::Down, State::Frozen(frozen)) => {
                frozen.is_due = false;
                frozen.again = None;
            }
            (LinkState::Up, State::Frozen(frozen)) => frozen.deliver_anew(cx.flow),
            (LinkState::Up, State::Running) | (_, State::Broken { .. }) => {}
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        if self.overdue.take_if(|at| *at <= cx.now).is_some() {
            self.freeze(cx);
        }
        let State::Frozen(frozen) = &mut self.state else {
            return;
        };
        if frozen.again.take_if(|at| *at <= cx.now).is_some() {
            frozen.is_due = true;
            frozen.pause = (frozen.pause * 2).min(LONGEST_PAUSE);
            if frozen.tries >= MOST_TRIES {
                cx.counters.resets += 1;
                self.state = State::Broken {
                    near: true,
                    far: true,
                };
            }
        }
    }

    fn waiting(&self) -> Option<Waiting> {
        match &self.state {
            State::Broken { near, far } if *near || *far => Some(Waiting::Urgent),
            State::Frozen(_) if self.owes_answer => Some(Waiting::Urgent),
            State::Frozen(frozen) if frozen.is_due => Some(Waiting::Data),
            _ => None,
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        match &mut self.state {
            State::Running => None,
            State::Frozen(_) if core::mem::take(&mut self.owes_answer) => Some(Outgoing {
                direction: Direction::FromLink,
                packet: self.far.close_window(cx.flow, self.kept.packet()?)?,
                reason: SendReason::WindowClosed,
            }),
            State::Frozen(frozen) => {
                if !core::mem::take(&mut frozen.is_due) || cx.link.state == LinkState::Down {
                    return None;
                }
                frozen.tries += 1;
                frozen.again = Some(cx.now + frozen.pause);
                Some(Outgoing {
                    direction: Direction::ToLink,
                    packet: self.kept.packet()?.clone(),
                    reason: SendReason::Kept,
                })
            }
            State::Broken { .. } => self.break_off(cx),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let again = match &self.state {
            State::Frozen(frozen) => frozen.again,
            State::Running | State::Broken { .. } => None,
        };
        [self.overdue, again].into_iter().flatten().min()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.clear(budget);
        self.state = State::Running;
    }
}

impl ZeroWindowAck {
    /// A segment from the mobile.
    fn hear(&mut self, cx: &mut Context<'_>, tcp: &TcpHeader) {
        self.far.hear(tcp);
        let acked = cx.flow.near.acked;
        match &self.state {
            State::Frozen(frozen) if acked.at_or_after(frozen.until) => {
                if cx.link.state == LinkState::Up {
                    *cx.resumed = Some(cx.now.since(cx.link.since));
                    cx.counters.resumes += 1;
                }
                self.release(cx.budget);
            }
            State::Running if self.end().is_some_and(|end| acked.at_or_after(end)) => {
                self.clear(cx.budget);
            }
            _ => {}
        }
    }

    /// A segment from the sender.
    fn send(&mut self, cx: &mut Context<'_>, packet: &Packet, tcp: &TcpHeader) {
        match &self.state {
            State::Running if packet.sequence_len() > 0 => {
                let is_oldest = tcp.seq.at_or_before(cx.flow.near.acked)
                    && (tcp.seq + packet.sequence_len()).after(cx.flow.near.acked);
                if is_oldest || self.kept.packet().is_none() {
                    self.keep(cx, packet);
                }
            }
            // A probe has one byte beyond the window, or none and an old number (RFC 9293, section
            // 3.8.6.1); whatever else comes is told the same.
            State::Frozen(frozen) if cx.link.state == LinkState::Down => {
                let is_old = tcp.seq.before(frozen.until);
                self.owes_answer |= packet.sequence_len() > 0 || is_old;
            }
            _ => {}
        }
    }

    fn keep(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        self.kept.replace(packet, cx);
        self.overdue = self
            .kept
            .packet()
            .map(|_| cx.now + cx.flow.rtt.patience() + DELAYED_ACK);
    }

    /// Acknowledges the kept segment, if nothing before it is missing (figure 5.5).
    fn freeze(&mut self, cx: &mut Context<'_>) {
        let (State::Running, Some(end), Some(tcp)) = (
            &self.state,
            self.end(),
            self.kept.packet().and_then(Packet::tcp),
        ) else {
            return;
        };
        if tcp.seq.after(cx.flow.near.acked) || tcp.has(TcpFlags::FIN) {
            return;
        }
        let mut frozen = Frozen {
            until: end,
            is_due: false,
            again: None,
            pause: cx.flow.rtt.patience(),
            tries: 0,
        };
        if cx.link.state == LinkState::Up {
            frozen.again = Some(cx.now + frozen.pause);
        }
        self.state = State::Frozen(frozen);
        self.owes_answer = true;
        cx.counters.freezes += 1;
    }

    /// Tells a host that the connection is over.
    fn break_off(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        let State::Broken { near, far } = &mut self.state else {
            return None;
        };
        let kept = self.kept.packet()?;
        let (direction, packet) = if core::mem::take(near) {
            (Direction::FromLink, self.far.reset_near(cx.flow, kept)?)
        } else if core::mem::take(far) {
            (Direction::ToLink, far_voice::reset_far(cx.flow, kept)?)
        } else {
            return None;
        };
        if direction == Direction::ToLink {
            // Both know: nothing of the connection is needed any more.
            self.release(cx.budget);
        }
        Some(Outgoing {
            direction,
            packet,
            reason: SendReason::Reset,
        })
    }

    /// The number behind the kept segment.
    fn end(&self) -> Option<SeqNumber> {
        let packet = self.kept.packet()?;
        Some(packet.tcp()?.seq + packet.sequence_len())
    }

    fn clear(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
        self.overdue = None;
        self.owes_answer = false;
    }
}

impl Frozen {
    /// The mobile is back, perhaps elsewhere.
    fn deliver_anew(&mut self, flow: &TcpFlow) {
        self.is_due = true;
        self.tries = 0;
        self.pause = flow.rtt.patience();
    }
}
