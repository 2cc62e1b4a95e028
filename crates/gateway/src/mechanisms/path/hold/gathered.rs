//! The far host's answers to what an outage has held up, gathered: the near host gets the newest of them.
//!
//! Each acknowledgement of a segment that was sent before an outage, and only once, is a round trip as long as the outage to
//! its sender. After eight of them Linux has a smoothed round trip of two thirds of the outage and a timeout of twice
//! the outage; and a sender that is paced (`fq`, `SO_MAX_PACING_RATE`, BBR before another congestion
//! control) spreads its window over that round trip. One acknowledgement for all of them is no such sample, if it covers
//! something that was sent twice, and the sender takes its timeout for spurious (RFC 5682, section 2.1, step 3b) as before.
//!
//! Only answers that the near host need not hear at once wait: the gateway itself has what the far host
//! lacks next, and sends it. They wait until all is acknowledged, or for a round trip without news in which nothing waits for its turn, [`LONGEST`] at most.

use super::latest::Latest;
use crate::limits::Budget;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// Answers that come one after the other are no further apart where hosts are near each other.
const SHORTEST: Duration = Duration::from_millis(20);
/// However long round trips are, answers wait no longer for the next.
const LONGEST: Duration = Duration::from_secs(2);

/// The newest answer that waits, and until when.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    newest: Latest,
    /// When it came.
    came_at: Instant,
    /// Then the newest goes to the near host; `None` if nothing waits.
    until: Option<Instant>,
    /// Until then the near host sends all that it may send since it has heard one answer for many.
    opened_until: Instant,
}

impl Gathered {
    /// `packet` waits with those before it: for `patience` from now if it has news, and else as long as they. Returns whether
    /// there was room.
    pub(super) fn add(
        &mut self,
        now: Instant,
        patience: Option<Duration>,
        packet: &Packet,
        budget: &mut Budget,
    ) -> bool {
        if self.until.is_none() && patience.is_none() || !self.newest.replace(packet, budget) {
            self.clear(budget);
            return false;
        }
        self.came_at = now;
        self.until = patience
            .map(|patience| now + patience.clamp(SHORTEST, LONGEST))
            .or(self.until);
        true
    }

    /// The rest is not on its way yet: answers wait for `patience` more.
    pub(super) fn postpone(&mut self, now: Instant, patience: Duration) {
        self.until = Some(now + patience.clamp(SHORTEST, LONGEST));
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

    /// The near host gets one answer for all that have waited, if any have, and takes no longer than `patience` to send what
    /// that allows: up to a whole window at once, which is more than a link's queue may hold.
    pub(super) fn let_go(&mut self, now: Instant, patience: Duration) {
        if !self.is_empty() {
            self.opened_until = now + patience.clamp(SHORTEST, LONGEST);
        }
    }

    /// True while new data may be such a window.
    pub(super) fn has_opened(&self, now: Instant) -> bool {
        now < self.opened_until
    }

    /// Takes the newest and the time at which it came, if any waits.
    pub(super) fn take(&mut self, budget: &mut Budget) -> Option<(Packet, Instant)> {
        let packet = self.newest.packet().cloned();
        self.clear(budget);
        packet.map(|packet| (packet, self.came_at))
    }

    /// A newer answer passes, or the connection is over.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.newest.clear(budget);
        self.until = None;
    }
}
