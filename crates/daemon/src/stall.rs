//! What the daemon does when it finds that it was stopped, and that its guardian has let packets pass.

use super::{Daemon, GUARDIAN, Interest};
use outlast_base::time::Instant;
use outlast_linux::clock;
use std::io;

impl Daemon {
    /// Takes the packets back from the guardian if the loop was stopped or held up since `now`.
    ///
    /// What has happened meanwhile is taken in first. Returns when the loop goes on: a stall makes
    /// `now` old.
    pub(super) fn notice_stall(&mut self, now: Instant) -> io::Result<Instant> {
        self.path.pulse().beat();
        let Some(since) = self.path.pulse().stalled_since() else {
            return Ok(now);
        };
        // Packets wait from here on until this is done. Kept segments go out below, and their sender is to
        // hear no acknowledgement that the gateway has not seen: what it then sends would not fit.
        self.path.pulse().take_back();
        let now = clock::now();
        // Network changes come first: a link that was down all the time has let nothing pass.
        self.hear_changes(now)?;
        let doubtful = self.gateway.doubt_since(since);
        self.correct_by_kernel(now);
        self.drain(now)?;
        let for_s = now.since(since).as_secs_f64();
        tracing::warn!(
            for_s,
            doubtful,
            "was stopped or held up: packets have passed unseen"
        );
        Ok(now)
    }

    /// Somebody has killed the guardian.
    pub(super) fn renew_guardian(&mut self) -> io::Result<()> {
        tracing::warn!("the process that lets packets pass while this one is stopped was killed");
        self.path.renew_guardian()?;
        let guardian = self.path.guardian();
        self.poller.add(guardian, GUARDIAN, Interest::Readable)
    }
}
