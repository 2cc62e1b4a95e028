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
//! do so: then the connection hangs until a host gives it up, unless the segment was written down
//! or neighbours know of it (`docs/agents.md`).
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
//! A cached segment that is not the oldest is not forwarded at the return (figure 5.4 forwards it):
//! the acknowledgement that it draws starts the timer anew by which the sender will repeat the
//! oldest one.
//! While the link is silent, and nobody has said that it is down, it is treated as down by a
//! frozen connection: probes are answered, and the segment waits for the link's first packet.

use super::far_host_proxy::{self, FarHostProxy};
use super::smart_link::KeptPacket;
use super::{
    Account, Context, Info, Outgoing, PathMechanism, SendReason, Standing, Verdict, Waiting,
};
use crate::limits::Budget;
use crate::links::{Direction, LinkState};
use crate::mechanisms::resume_timer::ResumeTimer;
use crate::tracking::{FrozenFlow, Observation, TcpFlow};
use outlast_base::time::{Duration, Instant};
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
/// The shortest: below it, an answer may be late for reasons of scheduling alone.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The longest segment that is kept, in bytes of the IP packet: it fits into one message between
/// two agents.
const LONGEST_KEPT: u32 = 61_440;
/// Deliveries, any of which the far host would have acknowledged if it lacked the segment, before it is
/// believed that it does not: one may be lost, and another one, too.
const DOUBTED_TRIES: u8 = 3;
/// Deliveries without an acknowledgement after which the connection is reset: about three minutes.
pub(super) const MOST_TRIES: u8 = 16;

/// One connection's part.
#[derive(Debug, Default)]
pub(crate) struct ZeroWindowAck {
    far: FarHostProxy,
    /// The highest acknowledgement that the far host itself was heard to send.
    heard: Option<SeqNumber>,
    kept: KeptPacket,
    resume_timer: ResumeTimer,
    /// When the kept segment's acknowledgement is overdue.
    overdue: Option<Instant>,
    state: State,
    /// The near host is owed an acknowledgement.
    owes_answer: bool,
    forwarding: Forwarding,
}

/// Whether the mobile, which is back, gets the kept segment although nobody was frozen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Forwarding {
    /// It has been away, and is not back; or it was given the segment.
    #[default]
    None,
    /// As soon as the segment is known to be the oldest.
    Meant,
    /// Now.
    Due,
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
    /// The far host was heard since the segment came here: from then on deliveries without an
    /// answer count.
    is_heard: bool,
    /// Another gateway delivers the segment; this one keeps it and answers the probes.
    is_lent: bool,
    doubt: Doubt,
}

/// Whether the connection may have gone on elsewhere, and the segment be needed no more.
#[derive(Clone, Copy, Debug, Default)]
enum Doubt {
    /// Nobody has said so.
    #[default]
    None,
    /// Somebody has, in the far host's name: it was given the segment so often since.
    Raised(u8),
    /// It was given the segment [`DOUBTED_TRIES`] times, the last one at this time.
    Asked(Instant),
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
        match cx.link.state {
            LinkState::Down => self.resume_timer.suspend(cx.link.by),
            LinkState::Up if self.kept.packet().is_none() => self.resume_timer.forget(),
            LinkState::Up => self.resume_timer.begin(cx.now, cx.link.by),
        }
        match (cx.link.state, &mut self.state) {
            (LinkState::Down, State::Running) => {
                // What the mobile has acknowledged by now comes within a round trip.
                let soon = cx.now + cx.flow.rtt.smoothed();
                self.overdue = self.overdue.map(|at| at.min(soon));
                self.forwarding = Forwarding::None;
            }
            (LinkState::Down, State::Frozen(frozen)) => {
                frozen.is_due = false;
                frozen.again = None;
            }
            (LinkState::Up, State::Frozen(frozen)) if !frozen.is_lent => {
                frozen.deliver_anew(cx.flow);
            }
            // Forwarded whether or not the timer has expired (figure 5.4). The timer stays: a sender
            // that is frozen before the answer comes is spared its own timeout.
            (LinkState::Up, State::Running) => {
                self.forwarding = Forwarding::Meant;
                self.forward_oldest(cx.flow);
            }
            (LinkState::Up, State::Frozen(_)) | (_, State::Broken { .. }) => {}
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        if self.overdue.take_if(|at| *at <= cx.now).is_some() {
            self.freeze(cx);
        }
        let State::Frozen(frozen) = &mut self.state else {
            return;
        };
        if cx.is_suspected {
            // The link's first packet comes before the next try.
            frozen.again = None;
        }
        if frozen.again.take_if(|at| *at <= cx.now).is_some() {
            frozen.is_due = true;
            frozen.pause = (frozen.pause * 2).min(LONGEST_PAUSE);
            if frozen.is_heard && frozen.tries >= MOST_TRIES {
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
            State::Running if self.forwarding == Forwarding::Due => Some(Waiting::Data),
            _ => None,
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        match &mut self.state {
            State::Running => {
                if core::mem::take(&mut self.forwarding) != Forwarding::Due || is_away(cx) {
                    return None;
                }
                Some(Outgoing {
                    direction: Direction::ToLink,
                    packet: self.kept.packet()?.clone(),
                    reason: SendReason::Kept,
                })
            }
            State::Frozen(_) if core::mem::take(&mut self.owes_answer) => Some(Outgoing {
                direction: Direction::FromLink,
                packet: self.far.close_window(cx.flow, self.kept.packet()?)?,
                reason: SendReason::WindowClosed,
            }),
            State::Frozen(frozen) => {
                if !core::mem::take(&mut frozen.is_due) || is_away(cx) {
                    return None;
                }
                frozen.tries += u8::from(frozen.is_heard);
                frozen.doubt = match frozen.doubt {
                    Doubt::Raised(tries) if tries + 1 < DOUBTED_TRIES => Doubt::Raised(tries + 1),
                    Doubt::Raised(_) => Doubt::Asked(cx.now),
                    doubt => doubt,
                };
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

    fn account(&self) -> Account {
        let (acknowledged_ahead, why) = match &self.state {
            State::Running => (false, ""),
            State::Frozen(_) => (true, "acknowledged one segment, for the far host"),
            State::Broken { .. } => (false, "the far host never acknowledged: reset"),
        };
        Account {
            acknowledged_ahead,
            why,
            ..Account::default()
        }
    }

    fn may_rest(&self, _now: Instant, _flow: &TcpFlow) -> bool {
        matches!(self.state, State::Running) && self.kept.packet().is_none()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.clear(budget);
        self.state = State::Running;
    }

    fn standing(&self) -> Standing {
        match self.state {
            State::Running => Standing::Running,
            State::Frozen(_) => Standing::Frozen,
            State::Broken { .. } => Standing::Broken,
        }
    }

    fn zero_window_ack(&mut self) -> Option<&mut ZeroWindowAck> {
        Some(self)
    }
}

/// What the agents' protocol asks for, by way of the gateway.
impl ZeroWindowAck {
    /// The connection, for another gateway to take over; `None` if it is not frozen.
    pub(crate) fn export(&self, flow: &TcpFlow) -> Option<FrozenFlow> {
        match self.state {
            State::Frozen(_) => Some(FrozenFlow {
                near: flow.near,
                far: flow.far,
                clock: self.far.clock(),
                segment: self.kept.packet()?.clone(),
            }),
            State::Running | State::Broken { .. } => None,
        }
    }

    /// Takes a connection over that another gateway has frozen, and delivers its segment while the
    /// link is up. Deliveries without an answer count at once if `is_heard`, or else from the far
    /// host's next sign of life on. Says whether there was room.
    pub(crate) fn adopt(
        &mut self,
        cx: &mut Context<'_>,
        frozen: &FrozenFlow,
        is_heard: bool,
    ) -> bool {
        self.release(cx.budget);
        self.kept.replace(&frozen.segment, cx);
        let Some(end) = self.end() else {
            return false;
        };
        self.far = FarHostProxy::with_clock(frozen.clock);
        let mut adopted = Frozen::waiting(end, cx.flow.rtt.patience());
        adopted.is_heard = is_heard;
        adopted.is_due = cx.link.state == LinkState::Up;
        if adopted.is_due {
            self.resume_timer.begin(cx.link.since, cx.link.by);
        }
        self.state = State::Frozen(adopted);
        true
    }

    /// Notes whether another gateway delivers the segment from now on.
    pub(crate) fn lend(&mut self, cx: &mut Context<'_>, is_lent: bool) {
        let State::Frozen(frozen) = &mut self.state else {
            return;
        };
        if frozen.is_lent == is_lent {
            return;
        }
        frozen.is_lent = is_lent;
        frozen.is_due = false;
        frozen.again = None;
        if !is_lent && cx.link.state == LinkState::Up {
            frozen.deliver_anew(cx.flow);
        }
    }

    /// A segment of the far host's acknowledges what was never sent here; whether it is to be
    /// believed that the connection has gone on elsewhere.
    ///
    /// Somebody else may say so who knows the far host's next number. So the far host is given the
    /// segment again: if it lacks that, it acknowledges it, and the connection is thawed as ever. Who
    /// says the same when it had [`DOUBTED_TRIES`] chances and time for an answer is believed.
    pub(crate) fn doubt(&mut self, cx: &Context<'_>) -> bool {
        let State::Frozen(frozen) = &mut self.state else {
            return false;
        };
        match frozen.doubt {
            Doubt::None => {
                frozen.doubt = Doubt::Raised(0);
                // One that is to be delivered again anyway is so in its time: whoever sends such
                // segments draws no more packets by them.
                let is_here = !frozen.is_lent && !is_away(cx);
                frozen.is_due |= is_here && frozen.again.is_none();
                false
            }
            Doubt::Raised(_) => false,
            Doubt::Asked(at) => cx.now.since(at) >= cx.flow.rtt.patience(),
        }
    }
}

impl ZeroWindowAck {
    /// A segment from the mobile.
    fn hear(&mut self, cx: &mut Context<'_>, tcp: &TcpHeader) {
        self.far.hear(tcp);
        if tcp.has(TcpFlags::ACK) {
            self.heard = Some(self.heard.map_or(tcp.ack, |heard| heard.max(tcp.ack)));
        }
        let acked = cx.flow.near.acked;
        if let State::Frozen(frozen) = &mut self.state {
            frozen.is_heard = true;
            // It is where it was.
            frozen.doubt = Doubt::None;
        }
        match &self.state {
            State::Frozen(frozen) if acked.at_or_after(frozen.until) => {
                // One that was sent later has not waited for the link's return: its acknowledgement
                // was late for another reason.
                if cx.link.state == LinkState::Up {
                    self.resume_timer.end(cx);
                }
                self.release(cx.budget);
            }
            State::Running if self.end().is_some_and(|end| acked.at_or_after(end)) => {
                self.clear(cx.budget);
            }
            State::Running => self.forward_oldest(cx.flow),
            _ => {}
        }
    }

    /// A segment from the sender.
    fn send(&mut self, cx: &mut Context<'_>, packet: &Packet, tcp: &TcpHeader) {
        match &self.state {
            // What the far host has already, somebody sends again: it is nobody's to acknowledge.
            State::Running
                if (tcp.seq + packet.sequence_len()).after(cx.flow.near.acked)
                    && packet.sequence_len() > 0
                    && packet.total_len() <= LONGEST_KEPT =>
            {
                let is_oldest = tcp.seq.at_or_before(cx.flow.near.acked);
                if is_oldest || self.kept.packet().is_none() {
                    self.keep(cx, packet);
                }
            }
            // A probe has one byte beyond the window, or none and an old number (RFC 9293, section
            // 3.8.6.1); whatever else comes is told the same.
            State::Frozen(frozen) if frozen.is_lent || is_away(cx) => {
                let is_old = tcp.seq.before(frozen.until);
                self.owes_answer |= packet.sequence_len() > 0 || is_old;
            }
            // The link is no longer thought to be away, and nobody has said that it is back.
            State::Frozen(_) => self.try_again(cx.now),
            _ => {}
        }
    }

    fn try_again(&mut self, now: Instant) {
        if let State::Frozen(frozen) = &mut self.state
            && !frozen.is_due
        {
            frozen.again.get_or_insert(now + frozen.pause);
        }
    }

    fn keep(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        self.kept.replace(packet, cx);
        // It is on its way to wherever the mobile is now.
        self.forwarding = Forwarding::None;
        let answer_in = match cx.link.state {
            LinkState::Up => cx.flow.rtt.patience() + DELAYED_ACK,
            // Nobody gets it, unless the link is falsely said to be down.
            LinkState::Down => cx.flow.rtt.smoothed(),
        };
        self.overdue = self.kept.packet().map(|_| cx.now + answer_in);
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
        let acked = cx.flow.near.acked;
        let is_lacking = self.is_oldest(cx.flow) && end.after(acked);
        if !is_lacking || tcp.has(TcpFlags::FIN) {
            return;
        }
        // What the far host had acknowledged before it was first seen here is a guess, and a wrong
        // one where that was a probe of a connection that another gateway has frozen.
        let is_begun_here = cx.flow.near.window_scale.is_some();
        if !is_begun_here && self.heard.is_none_or(|heard| tcp.seq.after(heard)) {
            return;
        }
        let mut frozen = Frozen::waiting(end, cx.flow.rtt.patience());
        if cx.link.state == LinkState::Up {
            frozen.again = Some(cx.now + frozen.pause);
        }
        frozen.is_due = core::mem::take(&mut self.forwarding) == Forwarding::Due;
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
            (Direction::ToLink, far_host_proxy::reset_far(cx.flow, kept)?)
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

    fn forward_oldest(&mut self, flow: &TcpFlow) {
        if self.forwarding == Forwarding::Meant && self.is_oldest(flow) {
            self.forwarding = Forwarding::Due;
        }
    }

    /// Whether the kept segment holds the oldest byte that the mobile has not acknowledged.
    fn is_oldest(&self, flow: &TcpFlow) -> bool {
        let kept = self.kept.packet().and_then(Packet::tcp);
        kept.is_some_and(|tcp| tcp.seq.at_or_before(flow.near.acked))
    }

    /// The number behind the kept segment.
    fn end(&self) -> Option<SeqNumber> {
        let packet = self.kept.packet()?;
        Some(packet.tcp()?.seq + packet.sequence_len())
    }

    fn clear(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
        self.resume_timer.forget();
        self.overdue = None;
        self.owes_answer = false;
        self.forwarding = Forwarding::None;
    }
}

/// Whether nothing is to be expected of the mobile.
fn is_away(cx: &Context<'_>) -> bool {
    cx.link.state == LinkState::Down || cx.is_suspected
}

impl Frozen {
    fn waiting(until: SeqNumber, patience: Duration) -> Self {
        Self {
            until,
            is_due: false,
            again: None,
            pause: patience.clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            tries: 0,
            is_heard: true,
            is_lent: false,
            doubt: Doubt::None,
        }
    }

    /// The mobile is back, perhaps elsewhere.
    fn deliver_anew(&mut self, flow: &TcpFlow) {
        self.is_due = true;
        self.tries = 0;
        self.pause = flow.rtt.patience().clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    }
}
