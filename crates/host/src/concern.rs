//! Which connections the return of a link concerns, and what it asks for each of them.

use crate::config::{HostConfig, Mechanism};
use crate::control::{Connection, Stage};
use crate::indicator::{Kind, Restored};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, LinkId};

/// A peer whose newest data came longer than this before the outage is not known to wait for anything.
const RECENT: Duration = Duration::from_secs(3);

/// After shorter outages peers that are not known to wait are not asked: their timers are not much longer.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(1);

/// What is on its way when an outage is noticed may still arrive.
const GRACE: Duration = Duration::from_millis(500);

/// Whether the peer may have data on its way that the outage has taken.
pub(crate) fn may_wait(now: Instant, connection: &Connection, restored: &Restored) -> bool {
    if connection.received_at == Instant::ZERO {
        // Nobody tells.
        return true;
    }
    let silence = now.since(connection.received_at);
    restored
        .outage
        .is_some_and(|outage| silence + GRACE >= outage && silence <= outage + RECENT)
}

/// Whether the peer may have sent something during the outage, though nothing had come of it for a while before.
fn may_have_begun(restored: &Restored) -> bool {
    restored
        .outage
        .is_some_and(|outage| outage >= SHORTEST_OUTAGE)
}

/// Whether a connection is one of those that a return concerns.
pub(crate) fn is_meant(connection: &Connection, restored: &Restored) -> bool {
    match restored.moved {
        None => connection.crosses(restored.link),
        // Which next hop the connection takes is for the addresses to say.
        Some(to) => {
            let whole = LinkId::of_interface(restored.link.interface);
            connection.crosses(whole) && to.contains(connection.id.remote.ip())
        }
    }
}

/// The connections by the peers and the next hops that they may be restored by.
pub(crate) fn by_peer(found: &[Connection]) -> BTreeMap<IpAddr, Vec<Connection>> {
    let mut all = BTreeMap::<IpAddr, Vec<Connection>>::new();
    for connection in found {
        let remote = connection.id.remote.ip();
        all.entry(remote).or_default().push(*connection);
        let next_hop = connection.via.and_then(|via| via.next_hop);
        if let Some(next_hop) = next_hop.filter(|next_hop| *next_hop != remote) {
            all.entry(next_hop).or_default().push(*connection);
        }
    }
    all
}

/// Whether nothing is known that either end of the connection may wait for.
pub(crate) fn is_idle(now: Instant, connection: &Connection, restored: &Restored) -> bool {
    !connection.is_outstanding() && !may_wait(now, connection, restored)
}

/// What is to be done for a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    /// Its own data is outstanding.
    pub(crate) restarts: bool,
    /// It is frozen, and goes on.
    pub(crate) thaws: bool,
    /// It tells of the return by a marked acknowledgement.
    pub(crate) marks: bool,
    /// Its peer is to be woken.
    pub(crate) wakes_peer: bool,
    /// It goes on in slow start.
    pub(crate) slow_start: bool,
}

impl Task {
    /// What is to be done for a connection because of the return. `is_ours`: if it is frozen, the agent has frozen it.
    pub(crate) fn of(
        now: Instant,
        connection: &Connection,
        restored: &Restored,
        config: &HostConfig,
        is_ours: bool,
    ) -> Self {
        let is_open = connection.stage == Stage::Open;
        let is_told = restored.by != Indicator::FirstPacket;
        let thaws = connection.is_frozen && is_ours;
        let has_stalled = connection.has_stalled(now, config.limits.retry);
        // Where nobody knows of an outage the connection shows it.
        let was_away = restored.moved.is_none() || has_stalled;
        let restarts = connection.is_outstanding() && !connection.is_frozen && was_away;
        if config.mechanism == Mechanism::MTcp {
            return Self {
                restarts,
                thaws,
                marks: is_open && is_told,
                ..Self::default()
            };
        }
        Self {
            restarts,
            thaws,
            marks: false,
            // A peer that was heard just now needs no waking.
            wakes_peer: config.wakes_peer
                && is_open
                && (may_wait(now, connection, restored) || may_have_begun(restored))
                && restored.kind == Kind::Asymmetric
                && is_told,
            slow_start: config.forces_slow_start
                && connection.stage != Stage::Opening
                && restored.is_path_new
                && has_stalled
                && connection.timeouts == 0,
        }
    }

    /// Whether there is anything to do.
    pub(crate) const fn has_work(self) -> bool {
        self.restarts || self.thaws || self.marks || self.wakes_peer || self.slow_start
    }
}
