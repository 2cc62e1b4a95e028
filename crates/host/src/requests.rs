//! Peers that ask for an immediate retransmission (Schütz and others 2005, section 3.3.2): each connection once in
//! [`Limits::interval`](crate::Limits::interval).

use crate::control::ConnectionId;
use alloc::collections::{BTreeMap, BTreeSet};
use outlast_base::time::{Duration, Instant};

/// The requests that wait for a look at their connections, and those that were granted lately.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Connections whose peers have asked, not looked at yet.
    open: BTreeSet<ConnectionId>,
    /// When the last request of a connection was granted, within the last interval.
    granted: BTreeMap<ConnectionId, Instant>,
    /// When older ones were last forgotten.
    purged: Instant,
}

impl Requests {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            open: BTreeSet::new(),
            granted: BTreeMap::new(),
            purged: now,
        }
    }

    /// A peer asks; returns whether that is granted. At most `most` connections are remembered.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        id: ConnectionId,
        interval: Duration,
        most: usize,
    ) -> bool {
        let is_recent = |granted: &Instant| now.since(*granted) < interval;
        // Seldom: each request would go through all of them.
        if now.since(self.purged) >= interval {
            self.granted.retain(|_, granted| is_recent(granted));
            self.purged = now;
        }
        let is_full = self.granted.len() >= most;
        if is_full || self.granted.get(&id).is_some_and(is_recent) {
            return false;
        }
        self.granted.insert(id, now);
        self.open.insert(id);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The connections that are to be looked at now.
    pub(crate) fn take(&mut self) -> BTreeSet<ConnectionId> {
        core::mem::take(&mut self.open)
    }
}
