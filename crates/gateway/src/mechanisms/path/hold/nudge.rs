//! The far host's last acknowledgement once more, for the near host: re-reception, as in the smart
//! link layer's level 1.
//!
//! # While the link is down
//!
//! It lets a BBR sender measure its round trip then, and not afterwards.
//!
//! BBR drains its pipe to four packets for 200 ms whenever it has not seen its minimal round-trip
//! time for ten seconds (PROBE_RTT). It notices with the next acknowledgement, and so, after an
//! outage, in the middle of the time for which the link is up: a link that is up for half a
//! second in five loses a fifth of it. An acknowledgement during the outage makes it do so while
//! there is nothing to lose. It is handed over only after the sender's first timeout: before it,
//! duplicates would count as a sign of loss.
//!
//! A sender that is not BBR ignores a duplicate acknowledgement after a timeout. The near side of
//! the link carries at most [`MOST`] small packets for each outage and flow.
//!
//! # When the link is back
//!
//! The first answer may show a hole of which no copy is kept that the far host takes: its sender was
//! filling holes when the link went. A sender that has timed out answers with new data, and fills the hole
//! when that draws a duplicate, which shows that its timeout was not spurious (RFC 5682, section 2.1, step
//! 3a). Where nothing is on its way that draws one, that would be a round trip later. So one is handed over
//! at once: what it says is true already, for the far host lacks the hole, and nobody but the sender has
//! it.

use super::super::{Context, Outgoing, SendReason};
use super::latest::Latest;
use crate::limits::Budget;
use crate::links::{Direction, LinkState, StateSince};
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags};

/// Between two nudges: PROBE_RTT takes 200 ms, so that one is over before the next.
const PAUSE: Duration = Duration::from_millis(250);
/// After this many the ten seconds after which BBR measures again are over in any case.
const MOST: u8 = 42;

/// The far host's last acknowledgement, and when the near host hears it again.
#[derive(Debug, Default)]
pub(super) struct Nudge {
    last_heard: Latest,
    next: Option<Instant>,
    /// Why it is to go out now.
    due: Option<SendReason>,
    given: u8,
}

impl Nudge {
    /// A segment came from the far host. Only pure acknowledgements are of use, and only to a
    /// sender that waits for one.
    pub(super) fn note(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        let is_pure = packet.sequence_len() == 0
            && packet.tcp().is_some_and(|tcp| tcp.flags == TcpFlags::ACK);
        if !cx.flow.near.has_outstanding() {
            self.last_heard.clear(cx.budget);
        } else if is_pure && !self.last_heard.replace(packet, cx.budget) {
            cx.counters.not_kept += 1;
        }
    }

    /// The near host has retransmitted while the link is down.
    pub(super) fn sender_timed_out(&mut self, now: Instant) {
        if self.next.is_none() && self.given == 0 && self.last_heard.packet().is_some() {
            self.next = Some(now + PAUSE);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, link: StateSince) {
        if self.next.is_some_and(|at| at <= now) {
            let is_down = link.state == LinkState::Down;
            self.due = is_down.then_some(SendReason::Nudge);
            self.given += 1;
            self.next = (self.given < MOST && is_down).then(|| now + PAUSE);
        }
    }

    /// The near host is to fill the hole at `acked`, of which it has just heard.
    pub(super) fn duplicate(&mut self, acked: SeqNumber) {
        let last = self.last_heard.packet().and_then(Packet::tcp);
        if last.is_some_and(|tcp| tcp.ack == acked) {
            self.due = Some(SendReason::Duplicate);
        }
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due.is_some()
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Outgoing> {
        let reason = self.due.take()?;
        let packet = self.last_heard.packet()?.clone();
        Some(Outgoing {
            direction: Direction::FromLink,
            packet,
            reason,
        })
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// The link is back.
    pub(super) const fn stop(&mut self) {
        self.next = None;
        self.due = None;
        self.given = 0;
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.stop();
        self.last_heard.clear(budget);
    }
}
