//! The far host's first answers after an outage, gathered: the near host gets the newest of them.
//!
//! Each acknowledgement of what an outage has held up is a round trip as long as the outage to its sender.
//! After eight of them Linux has a smoothed round trip of two thirds of the outage and a timeout of twice
//! the outage; and a sender that is paced (`fq`, `SO_MAX_PACING_RATE`, BBR before another congestion
//! control) spreads its window over that round trip. One acknowledgement for all of them is one sample.
//!
//! Only answers that the near host need not hear at once wait: the gateway itself has what the far host
//! lacks next, and sends it. None waits for longer than a quarter of the round trip, or [`SHORTEST`] if that
//! is more.

use super::super::{Context, SendReason};
use super::latest::Latest;
use crate::limits::Budget;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// Within this all answers come where hosts are near each other; nobody notices it elsewhere.
const SHORTEST: Duration = Duration::from_millis(5);
/// However long round trips are, an answer waits no longer.
const LONGEST: Duration = Duration::from_millis(50);

/// The newest answer that waits, and until when.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    newest: Latest,
    /// Then the newest goes to the near host; `None` if nothing waits.
    until: Option<Instant>,
}

impl Gathered {
    /// `packet` waits with those before it, where a round trip takes `round_trip`. Returns whether there was
    /// room.
    pub(super) fn add(
        &mut self,
        now: Instant,
        round_trip: Duration,
        packet: &Packet,
        budget: &mut Budget,
    ) -> bool {
        if !self.newest.replace(packet, budget) {
            self.clear(budget);
            return false;
        }
        let until = now + (round_trip / 4).clamp(SHORTEST, LONGEST);
        self.until.get_or_insert(until);
        true
    }

    /// Whether what waits has waited for long enough.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.until.is_none()
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// The near host gets the newest, if any waits. It needs no turn, as it has come from the link already.
    pub(super) fn hand_over(&mut self, cx: &mut Context<'_>) {
        if let Some(packet) = self.newest.packet() {
            *cx.for_near_host = Some((packet.clone(), SendReason::Gathered));
        }
        self.clear(cx.budget);
    }

    /// A newer answer passes, or the connection is over.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.newest.clear(budget);
        self.until = None;
    }
}
