//! M-TCP: the supervisor host (K. Brown and S. Singh, "M-TCP: TCP for Mobile Cellular Networks", 1997).
//!
//! The supervisor host stands where the wireless link begins. Towards the fixed host it speaks
//! SH-TCP ([`sh_tcp`], section 4.1 and figure 4): it withholds the last byte of each of the mobile's
//! acknowledgements, and spends that byte to close the sender's window before the sender times out.
//! A sender that obeys waits in persist mode with its congestion window as it was. Towards the
//! mobile it speaks M-TCP ([`m_tcp`](wireless), section 4.2 and figure 5): it keeps what is unacknowledged,
//! freezes instead of backing off, and sends all of it again when the mobile is back.
//!
//! **Acknowledgements are end to end.** The fixed host is told nothing that the mobile has not
//! acknowledged, and always as an acknowledgement of the mobile's with a smaller number.
//!
//! The connection is not split: addresses, ports, sequence numbers, options and timestamps stay those
//! of the two hosts. If the supervisor host dies, they go on without it.
//!
//! # Limits
//!
//! - Only a sender that obeys a window that shrinks over data in flight freezes (BSD and its kin).
//!   Linux stays on its retransmission timer and backs off; [`super::hold`] restarts it.
//! - A sender without more data waits up to a timeout for the acknowledgement of its last byte, and
//!   one with Nagle's algorithm sends no small segment meanwhile.
//! - Needs to see both directions. What does not fit into the flow's memory passes and is the
//!   sender's own to repeat.
//!
//! # Departures
//!
//! - The mobile's return is told by any indicator of the link, not by a marked acknowledgement only. The mark
//!   is the Immediate Retransmission Option, not a combination of flags.
//! - The wintimer allows 200 ms for a delayed acknowledgement beside the timeout of section 5.3.2.
//! - A window that the mobile itself closes is not touched, and nothing is withheld then.
//! - An acknowledgement of the sender's FIN is passed on whole: nothing more comes.
//! - A freeze asks the mobile at once, by a keep-alive: an unmodified one marks nothing, and persist packets come too seldom.
//! - A persist packet is the oldest unacknowledged segment, not one byte of it.
//! - A hand-off to another supervisor host does not shrink the window first: it is as the outage has
//!   left it.
//! - Nothing is withheld while the mobile lacks what the wired half has lost: the sender would repeat
//!   from the withheld byte on, and so each loss twice. `m-tcp-adaptive` withholds nothing before any hole.
//! - Nothing is withheld before an acknowledgement has left data in flight.
//! - Small segments that wait for the mobile are joined, as the supervisor's own TCP half sent full ones.
//! - Three duplicate acknowledgements of the mobile draw one local repetition (the supervisor's own
//!   TCP half did the same) and do not reach the sender.
//!
//! # Left out
//!
//! The mobile's half is an agent beside the mobile's own TCP. Compression stands behind the gateway, in a crate of its own.

mod back_pressure;
mod cache;
mod sh_tcp;
mod wireless;

use super::far_host_proxy::FarHostProxy;
use super::{
    Account, Context, Info, Outgoing, PathMechanism, SendReason, TakeReason, Verdict, Waiting,
};
use crate::limits::Budget;
use crate::links::{Direction, LinkState};
use crate::mechanisms::resume_timer::ResumeTimer;
use crate::tracking::{FlowKey, Observation, SupervisedFlow, TcpFlow};
use back_pressure::BackPressure;
use outlast_base::time::{Duration, Instant};
use outlast_wire::tcp::Experimental;
use outlast_wire::{Packet, TcpFlags, TcpHeader};
use sh_tcp::{Expiry, FixedWindow, Obedience, ShTcp};
use wireless::{Arrival, Heard, Wireless};

pub(super) const INFO: Info = Info {
    name: "m-tcp",
    source: "Brown and Singh 1997, sections 4 and 5",
    summary: "withholds a byte of each acknowledgement, and closes the window with it in an outage",
    acknowledges_ahead: false,
};

pub(super) const BY_EVIDENCE: Info = Info {
    name: "m-tcp-adaptive",
    source: "after Brown and Singh 1997, for senders of today",
    summary: "m-tcp, but for senders that show that a window which shrinks does not stop them",
    acknowledges_ahead: false,
};

/// How much longer than the measured timeout an acknowledgement may take: it may be delayed (RFC
/// 9293, section 3.8.6.3; hosts delay it for 200 ms at most).
const DELAYED_ACK: Duration = Duration::from_millis(200);

/// The retransmission timeout of the wireless half (section 5.3.2: S-M-TCP RTO).
fn timeout(flow: &TcpFlow) -> Duration {
    flow.rtt.patience() + DELAYED_ACK
}

/// Whether the mobile has marked its acknowledgement as a reconnection (section 5.2). The paper takes an unused
/// combination of TCP flags, which a middlebox of today would drop.
fn is_reconnection(tcp: &TcpHeader) -> bool {
    let option = tcp.options.experimental.as_ref();
    option.is_some_and(Experimental::is_immediate_retransmission)
}

/// One connection's supervisor.
#[derive(Debug, Default)]
pub(crate) struct MTcp {
    fixed: ShTcp,
    wireless: Wireless,
    mobile: FarHostProxy,
    /// The timestamp that the mobile's newest acknowledgement echoes.
    echo: u32,
    back_pressure: BackPressure,
    resume_timer: ResumeTimer,
}

impl MTcp {
    /// A supervisor that leaves the window of a sender alone which shows that it does not obey.
    pub(super) fn by_evidence() -> Self {
        Self {
            fixed: ShTcp::with(Obedience::Assumed),
            wireless: Wireless::of_outages_alone(),
            ..Self::default()
        }
    }
}

impl MTcp {
    /// What the end of the wintimer may do now.
    fn expiry(&self, cx: &Context<'_>) -> Expiry {
        let near = &cx.flow.near;
        if !near.has_outstanding() {
            return Expiry::Acknowledge;
        }
        if !self.fixed.is_published() && cx.link.state == LinkState::Up {
            // Only the sender repeats what is lost without an outage, and a frozen one does not.
            return Expiry::Keep;
        }
        match self.wireless.has(near.acked) {
            true => Expiry::Shrink,
            // The wired half has lost what the mobile lacks next.
            false => Expiry::Acknowledge,
        }
    }
}

impl PathMechanism for MTcp {
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
        if tcp.has(TcpFlags::RST) {
            self.release(cx.budget);
            return Verdict::Pass;
        }
        if tcp.has(TcpFlags::SYN) {
            return Verdict::Pass;
        }
        if cx.link.state == LinkState::Down {
            // Nobody has said so to a supervisor that begins in an outage.
            self.wireless.leave();
        }
        match direction {
            Direction::FromLink => self.hear_mobile(cx, packet, tcp, observation),
            Direction::ToLink => self.hear_fixed(cx, packet, tcp),
        }
    }

    fn handle_drop(&mut self, _cx: &mut Context<'_>, packet: &Packet) {
        self.wireless.lose(packet);
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        match cx.link.state {
            LinkState::Down => {
                self.resume_timer.suspend(cx.link.by);
                self.wireless.leave();
                if !self.fixed.is_published() && !self.fixed.is_shrunk() {
                    // What the mobile has acknowledged by now comes within a round trip.
                    self.fixed.rearm(Some(cx.now + cx.flow.rtt.smoothed()));
                }
            }
            LinkState::Up => {
                // The packet that shows the return may acknowledge some of it.
                self.wireless.acknowledge(cx.flow, cx.budget);
                match self.wireless.has_kept() {
                    true => self.resume_timer.begin(cx.now, cx.link.by),
                    false => self.resume_timer.forget(),
                }
                self.wireless.come_back(cx.now, cx.flow);
                self.fixed.thaw(cx.flow);
                self.fixed.await_timeout(cx.now + timeout(cx.flow));
            }
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        let has_frozen = self.wireless.handle_timeout(cx.now, cx.flow);
        let expiry = self.expiry(cx);
        if has_frozen {
            self.fixed.expire(cx.now, cx.flow, expiry);
        }
        self.fixed.handle_timeout(cx.now, cx.flow, expiry);
    }

    fn waiting(&self) -> Option<Waiting> {
        match self.fixed.owes() {
            true => Some(Waiting::Urgent),
            false => self.wireless.waiting(),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        if self.fixed.poll_owed() {
            let ack = self.fixed.told()?;
            let window = match self.fixed.window() {
                FixedWindow::Shrunk { .. } => 0,
                window @ (FixedWindow::NoShrink | FixedWindow::Recovering { .. }) => {
                    // The mobile's own window, as in what is passed on: with another one it is no duplicate.
                    let from = match window {
                        FixedWindow::NoShrink => ack.max(cx.flow.near.acked),
                        _ => ack,
                    };
                    let offered = cx.flow.offered_beyond(from);
                    let sent_until = self.wireless.sent_until(cx.flow);
                    self.back_pressure.window(cx, sent_until, ack, offered)
                }
            };
            return Some(Outgoing {
                direction: Direction::FromLink,
                packet: self
                    .mobile
                    .acknowledge(cx.key, cx.flow, (ack, window), self.echo),
                reason: SendReason::Supervised,
            });
        }
        let (packet, reason) = self.wireless.poll_transmit(cx)?;
        Some(Outgoing {
            direction: Direction::ToLink,
            packet,
            reason,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.fixed.deadline(), self.wireless.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn account(&self) -> Account {
        let why = match self.fixed.window() {
            FixedWindow::NoShrink if self.fixed.is_refuted() => {
                "the sender does not freeze: its window is left alone"
            }
            FixedWindow::NoShrink => "",
            FixedWindow::Shrunk { .. } => "the fixed host's window is shrunk to zero",
            FixedWindow::Recovering { .. } => {
                "the fixed host's window is open; it is told what it has sent again"
            }
        };
        Account {
            why,
            ..Account::default()
        }
    }

    fn may_rest(&self, _now: Instant, flow: &TcpFlow) -> bool {
        self.fixed.has_told_all(flow) && !self.wireless.has_kept()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.wireless.release(budget);
        self.fixed.forget();
        self.resume_timer.forget();
    }

    fn m_tcp(&mut self) -> Option<&mut MTcp> {
        Some(self)
    }
}

/// What the agents' protocol asks for, by way of the gateway.
impl MTcp {
    /// What the fixed host was told, for another supervisor host; `None` before the first segment.
    pub(crate) fn export(&self, flow: FlowKey, tracked: &TcpFlow) -> Option<SupervisedFlow> {
        let told = self.fixed.told()?;
        Some(SupervisedFlow {
            flow,
            near: tracked.near,
            far: tracked.far,
            clock: self.mobile.clock(),
            echo: self.echo,
            told,
            window: self.fixed.told_window(),
            is_refuted: self.fixed.is_refuted(),
        })
    }

    /// Another supervisor host goes on with the connection: what is kept for the mobile is dropped, as
    /// the fixed host sends it again there. Probes that come here are still answered.
    pub(crate) fn hand_off(&mut self, cx: &mut Context<'_>) {
        if cx.link.state == LinkState::Down {
            self.wireless.release(cx.budget);
            self.resume_timer.forget();
        }
    }

    /// Goes on with a connection that another supervisor host has had. If the mobile is here, the fixed
    /// host's window opens at once.
    pub(crate) fn adopt(&mut self, cx: &mut Context<'_>, supervised: &SupervisedFlow) {
        if self.mobile.clock().is_none() {
            self.mobile = FarHostProxy::with_clock(supervised.clock);
            self.echo = supervised.echo;
        }
        self.fixed.adopt(cx.now, supervised);
        if cx.link.state == LinkState::Up {
            self.fixed.thaw(cx.flow);
            self.fixed.await_timeout(cx.now + timeout(cx.flow));
        }
    }
}

impl MTcp {
    /// A segment of the mobile's: what it acknowledges goes on to the fixed host, but for a byte.
    fn hear_mobile(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> Verdict {
        self.mobile.hear(tcp);
        if let Some(stamps) = tcp.options.timestamps {
            self.echo = stamps.echo;
        }
        if !tcp.has(TcpFlags::ACK) {
            return Verdict::Pass;
        }
        let newly_acked = observation.newly_acked;
        let near = &cx.flow.near;
        // The number of a SYN is no byte to withhold: without it the connection is not open for its host.
        let may_be_syn = newly_acked == 1 && near.next == near.acked;
        self.fixed.begin(match may_be_syn {
            true => near.acked,
            false => near.acked - newly_acked,
        });
        let heard = self.wireless.hear(cx, packet, tcp, newly_acked);
        if newly_acked > 0 && cx.link.state == LinkState::Up {
            self.resume_timer.end(cx);
        }
        let is_reconnection = is_reconnection(tcp);
        if is_reconnection && cx.link.state == LinkState::Up {
            self.hear_reconnection(cx);
        }
        if newly_acked > 0 {
            self.fixed.hear_acknowledgement(cx.flow, tcp);
            if self.shows_hole(tcp) || self.wireless.lacks_next(cx.flow) {
                self.fixed.withhold_nothing(cx.flow);
            }
            let is_outstanding =
                cx.flow.near.has_outstanding() || !self.fixed.has_told_all(cx.flow);
            self.fixed
                .rearm(is_outstanding.then(|| cx.now + timeout(cx.flow)));
        } else if heard == Heard::Local {
            return Verdict::Taken(TakeReason::Supervised);
        } else if heard == Heard::Hole || self.shows_hole(tcp) {
            self.fixed.withhold_nothing(cx.flow);
        }
        // What bears data or a FIN is counted in what comes next already, and is the fixed host's.
        let is_for_supervisor =
            is_reconnection && packet.sequence_len() == 0 && tcp.seq.before(cx.flow.far.next);
        if is_for_supervisor && self.fixed.told().is_some() {
            // The fixed host would heed nothing in a keep-alive.
            if newly_acked > 0 {
                self.fixed.owe();
            }
            return Verdict::Taken(TakeReason::Supervised);
        }
        self.pass_on(cx, packet, tcp)
    }

    /// Whether the mobile has later data than what it lacks next (RFC 2018, section 3), and the sender is to repeat that.
    ///
    /// A sender that lacks the acknowledgement of a byte before the hole repeats that byte first, and takes its answer
    /// with an older timestamp for proof that nothing was lost (RFC 4015).
    fn shows_hole(&self, tcp: &TcpHeader) -> bool {
        let mut blocks = tcp.options.sack.iter();
        !self.fixed.is_published() && blocks.any(|block| block.left.after(tcp.ack))
    }

    /// The mobile has marked an acknowledgement: everything is sent again that it has not acknowledged, and
    /// the fixed host's window is open.
    fn hear_reconnection(&mut self, cx: &mut Context<'_>) {
        if self.wireless.reconnect(cx) {
            self.resume_timer.begin(cx.now, cx.link.by);
        }
        self.fixed.thaw(cx.flow);
        self.fixed.await_timeout(cx.now + timeout(cx.flow));
    }

    /// Forwards the mobile's segment with what the fixed host may be told now.
    fn pass_on(&mut self, cx: &mut Context<'_>, packet: &Packet, tcp: &TcpHeader) -> Verdict {
        let Some(told) = self.fixed.told() else {
            return Verdict::Pass;
        };
        let ack = tcp.ack.min(told);
        let window = match self.fixed.window() {
            FixedWindow::Shrunk { .. } => 0,
            FixedWindow::Recovering { .. } => cx.flow.offered_beyond(ack).max(tcp.window),
            FixedWindow::NoShrink => tcp.window,
        };
        let window = match self.fixed.window() {
            FixedWindow::Shrunk { .. } => window,
            FixedWindow::NoShrink | FixedWindow::Recovering { .. } => {
                let sent_until = self.wireless.sent_until(cx.flow);
                self.back_pressure.window(cx, sent_until, ack, window)
            }
        };
        if (ack, window) == (tcp.ack, tcp.window) {
            return Verdict::Pass;
        }
        let mut edit = packet.clone().edit();
        let is_edited = edit
            .set_ack(ack)
            .and_then(|edit| edit.set_window(window))
            .is_ok();
        if !is_edited {
            // Its headers are protected: the hosts' own words.
            return Verdict::Pass;
        }
        *cx.instead = Some((Direction::FromLink, edit.finish(), SendReason::Supervised));
        Verdict::Taken(TakeReason::Supervised)
    }

    /// A segment of the fixed host's.
    fn hear_fixed(&mut self, cx: &mut Context<'_>, packet: &Packet, tcp: &TcpHeader) -> Verdict {
        if packet.sequence_len() == 0 {
            let is_probe = tcp.seq.before(cx.flow.near.next);
            if is_probe && self.fixed.is_shrunk() {
                self.fixed.owe();
            }
            return self.wireless.pass_acknowledgement(cx, packet);
        }
        let end = tcp.seq + packet.sequence_len();
        self.fixed.begin(cx.flow.near.acked);
        if self.fixed.is_shrunk() && packet.sequence_len() == 1 {
            // A probe; byte by byte its data would creep past the closed window.
            self.fixed.owe();
            return Verdict::Taken(TakeReason::Supervised);
        }
        if self.wireless.has_hole_before(cx.flow, tcp.seq, end) {
            // The wired half has lost something: the sender learns so at once.
            self.fixed.owe();
        }
        let arrival = self.wireless.take(cx, packet, tcp, end);
        if self.wireless.lacks_next(cx.flow) {
            self.fixed.withhold_nothing(cx.flow);
        }
        if arrival == Arrival::Acknowledged {
            self.fixed.answer_timeout(cx.flow, end);
            self.fixed.owe();
        }
        let times_out_at = cx.now + timeout(cx.flow);
        self.fixed.hear_data(cx.flow, end, times_out_at);
        match arrival {
            Arrival::New => {
                self.fixed.await_timeout(cx.now + timeout(cx.flow));
                Verdict::Pass
            }
            Arrival::Queued => {
                self.fixed.await_timeout(cx.now + timeout(cx.flow));
                Verdict::Taken(match cx.link.state {
                    LinkState::Down => TakeReason::LinkDown,
                    LinkState::Up if cx.allotment.is_some() => TakeReason::AwaitsShare,
                    LinkState::Up => TakeReason::BehindKept,
                })
            }
            Arrival::Known => {
                let is_away = cx.link.state == LinkState::Down;
                self.fixed.hear_repetition(cx.now, cx.flow, is_away);
                Verdict::Taken(TakeReason::JustResent)
            }
            Arrival::Acknowledged => Verdict::Taken(TakeReason::Supervised),
            Arrival::Again | Arrival::NoRoom => Verdict::Pass,
        }
    }
}
