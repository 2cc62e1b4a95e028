//! The connections to be restarted, in their order, and when each of those that were is looked at.

use crate::concern::Task;
use crate::config::Limits;
use crate::control::{Connection, ConnectionId};
use crate::entry::{Entry, Seen, Verdict};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use outlast_base::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// Least time between two looks, as thousands of connections are restarted one after the other.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// And for each connection that a look goes through: looks leave most of the time to restarts.
const LOOK_PAUSE_PER_CONNECTION: Duration = Duration::from_micros(15);

/// What is to be restarted, and what is watched after that.
#[derive(Debug)]
pub(crate) struct Restarts {
    queue: VecDeque<Entry>,
    /// The connections of `queue` and `waiting`, and when those of `waiting` are looked at.
    known: BTreeMap<ConnectionId, Option<Instant>>,
    /// Those with an entry in `queue` that tells of a return: one is enough for any number of returns.
    telling: BTreeSet<ConnectionId>,
    /// Restarted connections by when their progress is looked at.
    waiting: BTreeMap<(Instant, ConnectionId), Entry>,
    /// Peers that were woken, by when their progress is looked at.
    woken: BTreeMap<(Instant, ConnectionId), Woken>,
    /// No look is before that: each one is a pass over all connections.
    next_look: Instant,
}

/// A peer that was woken.
#[derive(Clone, Copy, Debug)]
struct Woken {
    /// What was expected of it next.
    rcv_nxt: SeqNumber,
    entry: Entry,
}

impl Restarts {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            queue: VecDeque::new(),
            known: BTreeMap::new(),
            telling: BTreeSet::new(),
            waiting: BTreeMap::new(),
            woken: BTreeMap::new(),
            next_look: now,
        }
    }

    /// Whether a connection is to be restarted or looked at.
    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.known.contains_key(&id)
    }

    /// Whether a connection is to tell of a return.
    pub(crate) fn is_telling(&self, id: ConnectionId) -> bool {
        self.telling.contains(&id)
    }

    /// The connections that are to be restarted or looked at.
    pub(crate) fn connections(&self) -> impl ExactSizeIterator<Item = &ConnectionId> {
        self.known.keys()
    }

    /// Puts an entry into the queue.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.known.insert(entry.id, None);
        if entry.task.marks {
            self.telling.insert(entry.id);
        }
        self.queue.push_back(entry);
    }

    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next entry of the queue.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.queue.pop_front()
    }

    /// A connection has told of the return.
    pub(crate) fn has_told(&mut self, id: ConnectionId) {
        self.telling.remove(&id);
    }

    /// Is done with a connection.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.known.remove(&id);
    }

    /// Looks at a restarted connection later, if it may be restarted again.
    pub(crate) fn wait(&mut self, now: Instant, entry: Entry, limits: &Limits) {
        self.wait_until(entry.next_look_at(now, limits.retry), entry, limits);
    }

    /// Looks later at a connection that has made progress, for the last time at the end of its watch.
    fn watch(&mut self, now: Instant, entry: Entry, limits: &Limits) {
        // A round trip is the least that shows anything new.
        if now + entry.round_trip(limits.retry) > entry.until {
            self.forget(entry.id);
        } else {
            let at = entry.next_look_at(now, limits.retry).min(entry.until);
            self.wait_until(at, entry, limits);
        }
    }

    /// Looks at a restarted connection at that time, if it may be restarted again.
    fn wait_until(&mut self, at: Instant, entry: Entry, limits: &Limits) {
        if entry.is_given_up(limits.attempts) {
            self.forget(entry.id);
        } else {
            self.known.insert(entry.id, Some(at));
            self.waiting.insert((at, entry.id), entry);
        }
    }

    /// Looks no more at a connection that waits for it.
    pub(crate) fn stop_looking(&mut self, id: ConnectionId) {
        if let Some(&Some(at)) = self.known.get(&id)
            && self.waiting.remove(&(at, id)).is_some()
        {
            self.forget(id);
        }
    }

    /// Looks a round trip later whether the peer has made progress, if that is known.
    pub(crate) fn await_peer(&mut self, now: Instant, entry: Entry, limits: &Limits) {
        let Some(rcv_nxt) = entry.rcv_nxt else {
            return;
        };
        if self.woken.len() >= limits.connections {
            return;
        }
        let Task {
            marks, wakes_peer, ..
        } = entry.task;
        let attempts = entry.attempts + 1;
        // An indicator may come before packets pass: marks are repeated as restarts are, a peer is woken twice.
        let is_last = !marks || attempts + 1 >= limits.attempts;
        let again = Entry {
            attempts: if marks { attempts } else { entry.attempts },
            task: Task {
                marks,
                wakes_peer,
                ..Task::default()
            },
            is_beside_another: true,
            rcv_nxt: entry.rcv_nxt.filter(|_| !is_last),
            ..entry
        };
        let doublings = u32::from(entry.attempts.min(16));
        let at = now + entry.round_trip(limits.retry) * (1 << doublings);
        let woken = Woken {
            rcv_nxt,
            entry: again,
        };
        self.woken.insert((at, entry.id), woken);
    }

    /// When the next look is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let first = [self.waiting.keys().next(), self.woken.keys().next()];
        let at = first.into_iter().flatten().map(|&(at, _)| at).min();
        at.map(|at| at.max(self.next_look))
    }

    /// No pass that looks at connections is before that.
    pub(crate) const fn next_pass(&self) -> Instant {
        self.next_look
    }

    /// A pass has gone through so many connections: the next look is after a pause.
    pub(crate) fn pause(&mut self, now: Instant, connections: usize) {
        let count = u32::try_from(connections).unwrap_or(u32::MAX);
        self.next_look = now + LOOK_PAUSE.max(LOOK_PAUSE_PER_CONNECTION * count);
    }

    /// Looks at the restarted connections that are due, among all that were found: who has made no progress joins the
    /// queue again.
    pub(crate) fn look(&mut self, now: Instant, found: &[Connection], limits: &Limits) {
        if !self.woken.is_empty() {
            let expected = found
                .iter()
                .map(|connection| (connection.id, connection.rcv_nxt));
            self.look_at_peers(now, &expected.collect());
        }
        let outstanding = found
            .iter()
            .filter(|connection| connection.is_outstanding());
        let seen: BTreeMap<ConnectionId, Seen> = outstanding
            .map(|connection| (connection.id, Seen::of(connection)))
            .collect();
        while let Some(mut entry) = pop_due(&mut self.waiting, now) {
            let Some(seen) = seen.get(&entry.id) else {
                self.forget(entry.id);
                continue;
            };
            match entry.judge(now, seen, limits.retry) {
                Verdict::Restart => self.queue.push_back(entry),
                Verdict::LookAt(at) => self.wait_until(at, entry, limits),
                Verdict::Watch => self.watch(now, entry, limits),
            }
        }
    }

    /// Nobody has told what became of the connections that are due: they are looked at again a round trip later, until their
    /// watch is over.
    pub(crate) fn look_in_vain(&mut self, now: Instant, limits: &Limits) {
        while let Some(entry) = pop_due(&mut self.waiting, now) {
            if now < entry.until {
                self.wait_until(now + entry.round_trip(limits.retry), entry, limits);
            } else {
                self.forget(entry.id);
            }
        }
        while let Some(woken) = pop_due(&mut self.woken, now) {
            if now < woken.entry.until {
                let at = now + woken.entry.round_trip(limits.retry);
                self.woken.insert((at, woken.entry.id), woken);
            }
        }
    }

    /// Who was woken and has made no progress is woken once more.
    fn look_at_peers(&mut self, now: Instant, at: &BTreeMap<ConnectionId, SeqNumber>) {
        while let Some(Woken { rcv_nxt, entry }) = pop_due(&mut self.woken, now) {
            if at.get(&entry.id) != Some(&rcv_nxt) {
                continue;
            }
            // A later return may have it tell already.
            if !entry.task.marks || self.telling.insert(entry.id) {
                self.queue.push_back(entry);
            }
        }
    }
}

/// Takes out the first of those that are due.
fn pop_due<T>(by_time: &mut BTreeMap<(Instant, ConnectionId), T>, now: Instant) -> Option<T> {
    let first = by_time.first_entry()?;
    (first.key().0 <= now).then(|| first.remove())
}
