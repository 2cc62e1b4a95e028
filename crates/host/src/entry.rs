//! A connection that is restarted: what is to be done for it, and what a look at it leads to.

use crate::concern::Task;
use crate::control::{Connection, ConnectionId};
use outlast_base::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// A connection that has made progress is looked at until so long after its first restart, whatever its round trip: a
/// sender without SACK may fill the link's queue, lose many segments, and wait for a timeout as long as the outage.
const WATCH: Duration = Duration::from_millis(2_500);

/// The first looks that find an advance are a round trip apart; then the pause doubles, as many times as follow.
const QUICK_ADVANCES: u8 = 2;
const MOST_DOUBLINGS: u8 = 3;

/// Looks at a connection that sends on and has no oldest segment acknowledged, after which the stack is asked.
const IN_VAIN: u8 = 2;

/// Looks at a connection that is left to its own timer: more than a timeout that has not backed off lasts.
const LOOKS: u8 = 16;

/// A connection to be restarted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) id: ConnectionId,
    pub(crate) task: Task,
    pub(crate) snd_una: SeqNumber,
    pub(crate) min_rtt: Duration,
    /// Restarts so far.
    pub(crate) attempts: u8,
    /// Times that it was found to have made progress.
    pub(crate) advances: u8,
    /// A connection that has made progress is looked at until then.
    pub(crate) until: Instant,
    /// Times that it was left to its own timer.
    pub(crate) looks: u8,
    /// Looks since its last advance that found data on its way.
    pub(crate) in_vain: u8,
    /// An earlier return has the same connection restarted by another entry.
    pub(crate) is_beside_another: bool,
    /// What was expected of the peer next, where it is looked at again whether it has made progress.
    pub(crate) rcv_nxt: Option<SeqNumber>,
}

impl Entry {
    /// Whether nothing has been done for it so far: what is due once after a return is due now.
    pub(crate) fn is_first(&self) -> bool {
        self.attempts == 0 && self.looks == 0
    }

    /// A connection that is to retransmit, and no more.
    pub(crate) fn restart_of(now: Instant, connection: &Connection) -> Self {
        let task = Task {
            restarts: true,
            ..Task::default()
        };
        Self::of(now, connection, task, None)
    }

    /// A connection of which a return asks this. `rcv_nxt`: what is expected of the peer next, where it is looked at again
    /// whether it has made progress.
    pub(crate) fn of(
        now: Instant,
        connection: &Connection,
        task: Task,
        rcv_nxt: Option<SeqNumber>,
    ) -> Self {
        Self {
            id: connection.id,
            task,
            snd_una: connection.snd_una,
            min_rtt: connection.min_rtt,
            attempts: 0,
            advances: 0,
            until: now + WATCH,
            looks: 0,
            in_vain: 0,
            is_beside_another: false,
            rcv_nxt,
        }
    }

    /// It is restarted for the first time.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.until = now + WATCH;
    }

    /// A round trip, as long as it is once the queues have emptied, and at least `retry`.
    pub(crate) fn round_trip(&self, retry: Duration) -> Duration {
        retry.max(self.min_rtt + self.min_rtt / 4)
    }

    /// When a restarted connection is looked at next.
    pub(crate) fn next_look_at(&self, now: Instant, retry: Duration) -> Instant {
        let running = self.advances.saturating_sub(QUICK_ADVANCES);
        let doublings = match running.min(MOST_DOUBLINGS) {
            0 => self.attempts.saturating_sub(1).min(16),
            doublings => doublings,
        };
        now + self.round_trip(retry) * (1 << doublings)
    }

    /// Whether it was restarted, or looked at in vain, as often as it may be.
    pub(crate) const fn is_given_up(&self, most: u8) -> bool {
        self.attempts >= most || self.looks >= LOOKS
    }

    /// What a look leads to that finds this of the connection.
    pub(crate) fn judge(&mut self, now: Instant, seen: &Seen, retry: Duration) -> Verdict {
        if seen.snd_una != self.snd_una {
            self.snd_una = seen.snd_una;
            self.advances = self.advances.saturating_add(1);
            self.in_vain = 0;
            // What it was restarted with has come back, and brought nothing on its way.
            let is_stuck = self.attempts > 0 && self.advances == 1 && seen.is_silent;
            return if is_stuck {
                Verdict::Restart
            } else {
                Verdict::Watch
            };
        }
        let may_arrive = seen.sent_at + self.round_trip(retry);
        // A look that its stack has left to its own timer is no reason to wait for that.
        let has_grace = self.attempts > 0 || self.looks == 0;
        if self.advances == 0 && has_grace && may_arrive > now {
            // It retransmitted later than it was restarted, or moves by itself.
            self.looks += 1;
            Verdict::LookAt(may_arrive)
        } else if self.advances == 0 || seen.is_silent || self.in_vain >= IN_VAIN {
            self.in_vain = 0;
            Verdict::Restart
        } else {
            // What it sent upon an acknowledgement may still be on its way (F-RTO; RFC 5682, section 2.1).
            self.looks += 1;
            self.in_vain += 1;
            Verdict::Watch
        }
    }
}

/// What a look at a restarted connection leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It is restarted again.
    Restart,
    /// It is looked at then.
    LookAt(Instant),
    /// It is looked at after the next pause.
    Watch,
}

/// What a look finds of a connection with data outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    snd_una: SeqNumber,
    sent_at: Instant,
    is_silent: bool,
}

impl Seen {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            snd_una: connection.snd_una,
            sent_at: connection.sent_at,
            is_silent: connection.is_silent(),
        }
    }
}
