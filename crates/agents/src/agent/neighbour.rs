//! What an agent knows of one neighbour.

use super::Session;
use crate::message::{FreezeId, Outcome};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::tracking::{FlowKey, FrozenNumbers};

/// After this long without a message a neighbour says that it is there.
const ALIVE_AFTER: Duration = Duration::from_secs(5);
/// After this long nobody is there: two messages were missed, and time enough for a third.
const SILENT_AFTER: Duration = Duration::from_secs(15);
/// Settled segments that a neighbour has not let go yet, at most; of more it is told once.
const MOST_OUTCOMES: usize = 65_536;

/// A message that is still to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Intent {
    Hello,
    Frozen(FreezeId),
    Listed,
    Released(FreezeId),
    Want(FreezeId),
    Segment(FreezeId),
    Settled(FreezeId, Outcome),
    Here(IpAddr),
    Supervised(FlowKey),
    Alive,
}

/// A frozen connection that the neighbour keeps the segment of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) numbers: FrozenNumbers,
    /// When the segment was asked for last.
    pub(super) wanted: Option<Instant>,
    /// It could not be taken, and is not asked for again.
    pub(super) is_refused: bool,
}

#[derive(Debug, Default)]
pub(super) struct Neighbour {
    pub(super) session: Session,
    /// Its Hello of this session has come.
    pub(super) is_greeted: bool,
    pub(super) instance: Option<u64>,
    /// When it counts as lost: it was there, or something was lent to it.
    pub(super) lost_at: Option<Instant>,
    pub(super) heard_at: Instant,
    sent_at: Instant,
    pub(super) notices: BTreeMap<FreezeId, Notice>,
    /// Notices of an earlier session that were not repeated yet in this one.
    pub(super) unlisted: BTreeSet<FreezeId>,
    /// Since that session it was started anew.
    pub(super) is_anew: bool,
    /// What was settled here of its segments, until it lets go of them.
    pub(super) outcomes: BTreeMap<FreezeId, Outcome>,
    outbox: VecDeque<Intent>,
}

impl Neighbour {
    /// A session begins.
    pub(super) fn begin(&mut self, now: Instant) {
        self.session = Session::Up;
        self.is_greeted = false;
        self.heard_at = now;
        self.sent_at = now;
        self.outbox.clear();
    }

    /// Its Hello: what it told of in an earlier session it tells anew, or has lost.
    pub(super) fn greet(&mut self, instance: u64) {
        self.is_greeted = true;
        self.lost_at = None;
        self.is_anew |= self
            .instance
            .replace(instance)
            .is_some_and(|was| was != instance);
        self.unlisted = self.notices.keys().copied().collect();
    }

    /// Something depends on it from now on, though it may never have been there.
    pub(super) fn expect(&mut self, now: Instant, lost_after: Duration) {
        if self.session == Session::Down {
            self.lost_at = self.lost_at.or(Some(now + lost_after));
        }
    }

    /// The session has ended; the neighbour is lost if it stays away for `lost_after`.
    pub(super) fn end(&mut self, now: Instant, lost_after: Duration) {
        self.session = Session::Down;
        self.outbox.clear();
        self.lost_at = self.lost_at.or(Some(now + lost_after));
    }

    /// Something is to be said; without a session it is not, for a session begins with all there
    /// is to say.
    pub(super) fn say(&mut self, intent: Intent) {
        if self.session == Session::Up {
            self.outbox.push_back(intent);
        }
    }

    /// How many messages wait for it to take them.
    pub(super) fn unsaid(&self) -> usize {
        self.outbox.len()
    }

    pub(super) fn next(&mut self, now: Instant) -> Option<Intent> {
        let intent = self.outbox.pop_front()?;
        self.sent_at = now;
        Some(intent)
    }

    /// Something is settled, which the neighbour is to hear until it says so.
    pub(super) fn settle(&mut self, id: FreezeId, outcome: Outcome) {
        if self.outcomes.len() < MOST_OUTCOMES {
            self.outcomes.insert(id, outcome);
        }
        self.say(Intent::Settled(id, outcome));
    }

    /// Whether it is still to say that it knows that this is over. One that is lost has reset what it
    /// knew of, and does not ask for it any more; so has one that was never there.
    pub(super) fn is_to_confirm(&self, id: FreezeId) -> bool {
        let is_expected = self.session == Session::Up || self.lost_at.is_some();
        is_expected && self.outcomes.contains_key(&id)
    }

    pub(super) fn alive_at(&self) -> Option<Instant> {
        let is_quiet = self.session == Session::Up && self.outbox.is_empty();
        is_quiet.then(|| self.sent_at + ALIVE_AFTER)
    }

    pub(super) fn silent_at(&self) -> Option<Instant> {
        (self.session == Session::Up).then(|| self.heard_at + SILENT_AFTER)
    }

    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now)
    }

    pub(super) fn is_lost(&self, now: Instant) -> bool {
        self.lost_at.is_some_and(|at| at <= now)
    }
}
