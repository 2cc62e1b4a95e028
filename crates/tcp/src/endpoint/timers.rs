//! What an endpoint waits for.
//!
//! An acknowledgement sets timers several times over, and few of them ever fire. So a timer says
//! since when and for how long it is set; at which moment the host's clock fires it is worked out
//! when it matters.

use super::{Endpoint, Reason};
use outlast_base::time::{Duration, Instant, saturating_nanos};

/// What the one transmission timer is set for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Xmit {
    Retransmit,
    LossProbe,
    Reorder,
    Persist,
}

/// The transmission timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    pub(crate) kind: Xmit,
    wait: Wait,
}

/// A timer is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    since: Instant,
    /// In ns.
    delay: u64,
}

/// Not set.
pub(crate) const NEVER: Instant = Instant::FAR_FUTURE;

/// Deadlines; [`NEVER`] if there is none.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    pub(crate) xmit: Option<Alarm>,
    pub(crate) delayed_ack: Option<Wait>,
    /// Out-of-order arrivals share an acknowledgement until then.
    pub(crate) compressed_ack: Instant,
    pub(crate) pacing: Instant,
    pub(crate) keepalive: Instant,
    pub(crate) linger: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            xmit: None,
            delayed_ack: None,
            compressed_ack: NEVER,
            pacing: NEVER,
            keepalive: NEVER,
            linger: NEVER,
        }
    }
}

impl Endpoint {
    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Reason)> {
        let Timers {
            xmit,
            delayed_ack,
            compressed_ack,
            pacing,
            keepalive,
            linger,
        } = &self.timers;
        let mut earliest = xmit.map(|alarm| {
            let reason = match alarm.kind {
                Xmit::Retransmit => Reason::Retransmission,
                Xmit::LossProbe => Reason::LossProbe,
                Xmit::Reorder => Reason::Reordering,
                Xmit::Persist => Reason::WindowProbe,
            };
            (self.fires_at(alarm), reason)
        });
        let delayed_ack = delayed_ack.map_or(NEVER, |wait| self.delayed_ack_at(wait));
        let others = [
            (delayed_ack, Reason::DelayedAck),
            (*compressed_ack, Reason::DelayedAck),
            (*pacing, Reason::Pacing),
            (*keepalive, Reason::Keepalive),
            (*linger, Reason::Linger),
        ];
        for (at, reason) in others {
            if at != NEVER && earliest.is_none_or(|(first, _)| at < first) {
                earliest = Some((at, reason));
            }
        }
        earliest
    }

    /// Nothing is due before this: the time of [`poll_timeout`](Self::poll_timeout), or somewhat
    /// earlier, for it leaves out how a host's clock rounds up; [`Instant::FAR_FUTURE`] if nothing
    /// is to come. Drivers that ask after each packet ask this first.
    #[inline]
    #[must_use]
    pub fn quiet_until(&self) -> Instant {
        let timers = &self.timers;
        let mut until = timers
            .compressed_ack
            .min(timers.pacing)
            .min(timers.keepalive)
            .min(timers.linger);
        if let Some(Alarm { wait, .. }) = timers.xmit {
            until = until.min(self.clock.not_before(wait.since, wait.delay));
        }
        if let Some(wait) = timers.delayed_ack {
            until = until.min(self.clock.delayed_ack_not_before(wait.since, wait.delay));
        }
        until
    }

    /// Sets the transmission timer, of which there is one for all its kinds.
    //= RFC 8985, section 8
    pub(crate) fn arm(&mut self, now: Instant, kind: Xmit, delay: Duration) {
        self.arm_nanos(now, kind, saturating_nanos(delay));
    }

    /// Sets the transmission timer to `delay` nanoseconds from now.
    #[inline]
    pub(crate) fn arm_nanos(&mut self, now: Instant, kind: Xmit, delay: u64) {
        if self.is_frozen() {
            return;
        }
        let delay = delay.min(self.snd.rto.max_nanos());
        let wait = Wait { since: now, delay };
        self.timers.xmit = Some(Alarm { kind, wait });
    }

    pub(crate) fn fires_at(&self, alarm: Alarm) -> Instant {
        self.clock.fires_after(alarm.wait.since, alarm.wait.delay)
    }

    pub(crate) fn xmit_kind(&self) -> Option<Xmit> {
        self.timers.xmit.map(|alarm| alarm.kind)
    }

    pub(crate) fn delayed_ack_at(&self, wait: Wait) -> Instant {
        self.clock.delayed_ack_at(wait.since, wait.delay)
    }

    /// Delays the acknowledgement by at most `delay` ns.
    #[inline]
    pub(super) fn delay_ack(&mut self, now: Instant, delay: u64) {
        let wait = Wait { since: now, delay };
        match self.timers.delayed_ack {
            None => self.timers.delayed_ack = Some(wait),
            Some(set) => self.delay_ack_again(now, set, wait),
        }
    }

    /// An acknowledgement that waits already may wait as long as `wait` says.
    fn delay_ack_again(&mut self, now: Instant, set: Wait, wait: Wait) {
        let due = self.delayed_ack_at(set);
        if due <= now.after_nanos(wait.delay / 4) {
            // It would be sent soon anyway.
            self.send_ack();
        } else if self.delayed_ack_at(wait) < due {
            self.timers.delayed_ack = Some(wait);
        }
    }
}
