//! M-TCP at the mobile: which connections are frozen (Brown and Singh 1997, section 4.2 and figure 5).
//!
//! | state | what happens | next state | what is done |
//! |---|---|---|---|
//! | NOFREEZE | the link is lost | FROZEN | the timers stop, and nothing more is sent |
//! | FROZEN | the link is restored | NOFREEZE | all that is unacknowledged is sent again, behind the marked acknowledgement |
//! | FROZEN | the peer is heard | NOFREEZE | nothing is sent again: packets were only slow |
//! | FROZEN | its packets take another way, which is there | NOFREEZE | all that is unacknowledged is sent again |
//!
//! The figure shows the supervisor host, whose retransmission timer tells it of an outage. The mobile hears of it from
//! an indicator. An acknowledgement of something outstanding ends the freeze in the figure; here any packet does, as who has
//! nothing outstanding would wait for ever after a false alarm.

use crate::control::{Action, Connection, ConnectionId, ControlError, EndpointControl};
use crate::control::{Outcome, Outstanding, Stage};
use alloc::collections::BTreeMap;
use outlast_base::time::{Duration, Instant};

/// What was on its way when the link was lost may still be acknowledged for so long.
const GRACE: Duration = Duration::from_millis(500);

/// The connections in the state FROZEN.
#[derive(Debug, Default)]
pub(crate) struct Freezing {
    /// Since when.
    frozen: BTreeMap<ConnectionId, Instant>,
    /// The stack has said that nobody freezes it from outside.
    is_impossible: bool,
}

/// What came of the wish to freeze connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Frozen {
    /// Connections that are frozen now and were not before.
    pub(crate) frozen: u64,
    /// Connections for which there was no room.
    pub(crate) left_out: u64,
    /// Connections that the stack refused to freeze.
    pub(crate) refused: u64,
}

impl Freezing {
    /// Whether it is worth listing connections to freeze them.
    pub(crate) const fn is_possible(&self) -> bool {
        !self.is_impossible
    }

    /// Whether no connection is frozen.
    pub(crate) fn is_empty(&self) -> bool {
        self.frozen.is_empty()
    }

    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.frozen.contains_key(&id)
    }

    /// Freezes those of `connections` that are open, `most` in all.
    pub(crate) fn freeze<'a>(
        &mut self,
        now: Instant,
        connections: impl Iterator<Item = &'a Connection>,
        most: usize,
        stack: &mut (impl EndpointControl + ?Sized),
    ) -> Frozen {
        let mut outcome = Frozen::default();
        for connection in connections {
            let id = connection.id;
            if connection.stage == Stage::Opening || connection.is_frozen {
                continue;
            }
            if self.frozen.len() >= most {
                outcome.left_out += 1;
                continue;
            }
            match stack.freeze(now, id) {
                Ok(Outcome::Done) => {
                    self.frozen.insert(id, now);
                    outcome.frozen += 1;
                }
                Ok(Outcome::Needless(_)) | Err(ControlError::Unknown(_)) => {}
                Err(ControlError::NotSupported(Action::Freeze)) => {
                    self.is_impossible = true;
                    break;
                }
                Err(_) => outcome.refused += 1,
            }
        }
        outcome
    }

    /// Forgets connections of which `is_there` does not know.
    pub(crate) fn retain(&mut self, is_there: impl Fn(ConnectionId) -> bool) {
        self.frozen.retain(|id, _| is_there(*id));
    }

    /// Whether a packet of the peer that comes now shows that packets pass.
    pub(crate) fn is_only_slow(&self, now: Instant, id: ConnectionId) -> bool {
        self.frozen
            .get(&id)
            .is_some_and(|since| now.since(*since) > GRACE)
    }

    /// Has a connection go on.
    pub(crate) fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
        stack: &mut (impl EndpointControl + ?Sized),
    ) -> Result<Outcome, ControlError> {
        self.frozen.remove(&id);
        stack.thaw(now, id, outstanding)
    }
}
