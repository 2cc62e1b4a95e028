//! The near host's timer after an outage: nothing that it hears makes a round trip of the outage.
//!
//! Data from before an outage is acknowledged after it. A sender takes a round trip from that in one of two ways:
//!
//! - *By the echo* (RFC 7323, section 4.1), where the acknowledgement covers something that was sent twice, and with many
//!   stacks always. Until the near host has heard that all of it has arrived, an echo from before the return is
//!   replaced by what the near host's [clock](TimestampClock) showed at the return.
//! - *By the time of the only transmission* (RFC 6298, section 3), where the acknowledgement covers nothing that was sent twice:
//!   Linux does so also with timestamps. Once the near host has repeated something, the far host's answers to what was
//!   kept are [gathered](super::gathered) into one, which covers that.
//!
//! So a timeout is no longer than it was, and the next short loss costs no more than it would have.

use super::clock::TimestampClock;
use super::stamp::Stamp;
use crate::links::LinkState;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// One near host, its clock, and the last return of its link.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    clock: TimestampClock,
    /// The near host has repeated something since the link went.
    has_timed_out: bool,
    /// Number before which, as it has heard, all has arrived. The far host's segment that shows the link's return may say more.
    heard: Option<SeqNumber>,
    back: Option<Back>,
}

/// The link's return, until the near host has heard that all it had sent by then has arrived.
#[derive(Clone, Copy, Debug)]
struct Back {
    /// The near host's clock at the return; `None` if it sends no timestamps.
    clock: Option<Stamp>,
    /// The number behind all that it had sent.
    until: SeqNumber,
}

impl Aftermath {
    /// The near host has sent this.
    pub(super) fn hear_near(&mut self, now: Instant, tcp: &TcpHeader) {
        self.clock.hear(now, tcp);
    }

    /// The newest timestamp that the near host has sent.
    pub(super) fn newest_stamp(&self) -> Option<Stamp> {
        self.clock.newest()
    }

    /// The link has gone away, which somebody noticed by the near host's repetitions, or not. What the near host has not
    /// heard of the outage before still waits.
    pub(super) const fn suspend(&mut self, by_repetitions: bool) {
        self.has_timed_out = by_repetitions || self.has_timed_out && self.back.is_some();
    }

    /// The near host repeats something.
    pub(super) fn note_repetition(&mut self, link: LinkState) {
        self.has_timed_out |= link == LinkState::Down || self.back.is_some();
    }

    /// The link is back, and the near host has sent everything before `until`, of which `acked` has arrived.
    pub(super) fn begin(&mut self, now: Instant, acked: SeqNumber, until: SeqNumber) {
        let heard = self.heard.map_or(acked, |heard| heard.min(acked));
        self.back = until.after(heard).then(|| Back {
            clock: self.clock.at(now),
            until,
        });
    }

    /// True as long as all that the near host had sent by the return is better acknowledged at once: some of it twice, and the
    /// far host has not `acked` all of it.
    pub(super) fn is_one_answer(&self, acked: SeqNumber) -> bool {
        let is_open = self.back.is_some_and(|back| acked.before(back.until));
        self.has_timed_out && is_open
    }

    /// `packet` of the far host, which has `waited` here, with another echo if its own is from before the return, or it has
    /// waited: that of the return, as so long did the data take, and later by what was waited.
    pub(super) fn freshen(&self, packet: &Packet, waited: Duration) -> Option<Packet> {
        let back = self.back?.clock?;
        let tcp = packet
            .tcp()
            .filter(|tcp| tcp.options.timestamps.is_some())?;
        // Another gateway may have left the echo out.
        let fresh = Stamp::echo_of(tcp).filter(|echo| !echo.is_before(back));
        if fresh.is_some() && waited.is_zero() {
            return None;
        }
        let echo = self.clock.later(fresh.unwrap_or(back), waited);
        Some(echo.echo_in(packet))
    }

    /// The near host hears that everything before `acked` has arrived.
    pub(super) fn tell(&mut self, acked: SeqNumber) {
        self.heard = Some(acked);
        self.back.take_if(|back| acked.at_or_after(back.until));
    }
}
