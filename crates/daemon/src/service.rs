//! What the service manager is told (sd_notify(3)), if one started us: the protocol of
//! `Type=notify-reload`, and a sign of life where it watches.

use outlast_base::time::{Duration, Instant};
use sd_notify::NotifyState;

/// What is told to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    /// The watchdog bites after twice this.
    pause: Option<Duration>,
    next: Option<Instant>,
}

impl Service {
    /// Whoever started us.
    pub(super) fn new(now: Instant) -> Self {
        let pause = sd_notify::watchdog_enabled().map(|patience| patience / 2);
        Self {
            pause,
            next: pause.map(|_| now),
        }
    }

    /// Packets are looked after from now on.
    pub(super) fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The configuration is being read; [`Self::ready`] ends that.
    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "cannot tell the service manager of a reload"),
        }
    }

    /// The end.
    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Gives a sign of life if it is time: the loop comes round.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(pause) = self.pause
            && self.next.is_some_and(|next| next <= now)
        {
            tell(&[NotifyState::Watchdog]);
            self.next = Some(now + pause);
        }
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}
