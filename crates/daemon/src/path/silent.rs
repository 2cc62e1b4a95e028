//! Silent links on the eBPF path: which of those that the kernel's programs tell of are believed.
//!
//! The programs know connections, and not who is behind which link. They tell of each connection whose data is repeated
//! and was not answered within its patience, at most ten times a second. A link is silent if nobody else behind it was
//! heard for as long, either ([`outlast_gateway::links::Debt`]): the rule by which a gateway decides that sees every packet.
//!
//! The table is searched for who was heard last in at most a tenth of the daemon's time; meanwhile what was told waits.

use outlast_base::time::Instant;
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::links::LinkId;
use outlast_gateway::tracking::{FlowKey, Phase};
use outlast_linux::clock::Stopwatch;
use outlast_linux::tracker::{TrackedFlow, Tracker};
use std::collections::{BTreeMap, BTreeSet};

/// The search for silent links takes at most one part in this many of the daemon's time.
const SHARE: u32 = 10;
/// Most connections that wait for the next search; the kernel tells of others anew.
const MOST_TOLD: usize = 1_024;
/// Most connections that are remembered for having shown a silence.
const MOST_REMEMBERED: usize = 1_024;

/// A link that is silent, and the connection that shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Silent {
    pub(crate) link: LinkId,
    pub(crate) flow: FlowKey,
    pub(crate) since: Instant,
    /// The time of the oldest unanswered data towards the link.
    pub(crate) owed_since: Instant,
}

/// Connections that the kernel has told of, and what has become of it.
#[derive(Debug, Default)]
pub(crate) struct SilenceWatch {
    /// Told then.
    told: BTreeMap<FlowKey, Instant>,
    /// Those that have shown a silence, by the debt that has shown it. They do not count again before they are heard.
    remembered: BTreeMap<FlowKey, Instant>,
    /// No earlier than this the table is searched again.
    may_search_at: Instant,
}

impl SilenceWatch {
    /// Notes that data of `flow` is repeated, which its far host owes an answer for too long.
    pub(super) fn note(&mut self, now: Instant, flow: FlowKey) {
        if self.told.len() < MOST_TOLD {
            self.told.insert(flow, now);
        }
    }

    /// The next search for silent links; `None` if no connection waits for one.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.told.is_empty()).then_some(self.may_search_at)
    }

    /// The links that are silent by what was told; `link_of` gives the link of a connection, if it is of interest.
    ///
    /// None before the table may be searched again.
    pub(super) fn find(
        &mut self,
        now: Instant,
        tracker: &Tracker,
        config: &SilenceConfig,
        link_of: impl Fn(&FlowKey) -> Option<LinkId>,
    ) -> Vec<Silent> {
        if self.told.is_empty() || now < self.may_search_at {
            return Vec::new();
        }
        let told = std::mem::take(&mut self.told);
        let of_interest: Vec<_> = told
            .into_iter()
            .filter_map(|(flow, at)| {
                let link = link_of(&flow)?;
                let tracked = tracker.flow(&flow).ok().flatten()?;
                let owed_since = self.believed_debt(&flow, &tracked)?;
                let debt = config.debt(owed_since, &tracked.tcp.rtt);
                Some((flow, link, debt, at))
            })
            .collect();
        let mut heard = BTreeMap::<LinkId, Instant>::new();
        let told_links: BTreeSet<_> = of_interest.iter().map(|(_, link, ..)| *link).collect();
        let of_interest_too =
            |flow: &FlowKey| link_of(flow).is_some_and(|link| told_links.contains(&link));
        self.search(now, tracker, of_interest_too, |flow, at| {
            if let Some(link) = link_of(&flow) {
                let latest = heard.entry(link).or_insert(at);
                *latest = at.max(*latest);
            }
        });
        let mut silent = BTreeMap::new();
        for (flow, link, debt, at) in of_interest {
            if let Some(since) = debt.silent_since(at, heard.get(&link).copied()) {
                silent.entry(link).or_insert(Silent {
                    link,
                    flow,
                    since,
                    owed_since: debt.since,
                });
            }
        }
        silent.into_values().collect()
    }

    /// Since when the far host owes an answer, if it does, and its connection is believed.
    fn believed_debt(&self, flow: &FlowKey, tracked: &TrackedFlow) -> Option<Instant> {
        let is_open = tracked.is_proven && tracked.tcp.phase == Phase::Established;
        let owed_since = tracked.owed_since?;
        let has_shown = self.remembered.get(flow) == Some(&owed_since);
        (is_open && tracked.tcp.near.has_outstanding() && !has_shown).then_some(owed_since)
    }

    /// Remembers that a silence was believed: the connection that has shown it does not count before it is heard.
    pub(crate) fn remember(&mut self, silent: &Silent) {
        if self.remembered.len() >= MOST_REMEMBERED {
            let oldest = self.remembered.iter().min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(flow, _)| *flow) {
                self.remembered.remove(&oldest);
            }
        }
        self.remembered.insert(silent.flow, silent.owed_since);
    }

    /// True if the table may be searched now.
    pub(super) fn may_search(&self, now: Instant) -> bool {
        now >= self.may_search_at
    }

    /// Visits the wanted connections with the time when each far host was heard last.
    pub(super) fn search(
        &mut self,
        now: Instant,
        tracker: &Tracker,
        is_wanted: impl FnMut(&FlowKey) -> bool,
        mut visit: impl FnMut(FlowKey, Instant),
    ) {
        let work = Stopwatch::start();
        let visit_one = |key, flow: TrackedFlow| {
            if let Some(at) = flow.heard_at {
                visit(key, at);
            }
        };
        tracker.flows(is_wanted, visit_one);
        let took = work.elapsed();
        self.may_search_at = now + took + SHARE * took;
    }
}

#[cfg(test)]
mod tests;
