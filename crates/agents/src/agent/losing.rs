//! What an agent does when a neighbour is gone: wait for it, then reset what depends on it.

use super::{Agents, Event, Session, Site};
use crate::message::{FreezeId, Outcome};
use alloc::vec::Vec;
use core::net::SocketAddr;
use outlast_base::time::Instant;

impl Agents {
    pub(super) fn end_session(&mut self, now: Instant, agent: SocketAddr) {
        let lost_after = self.config.lost_after;
        if let Some(neighbour) = self.neighbours.get_mut(&agent) {
            neighbour.end(now, lost_after);
        }
    }

    /// A neighbour has been away for too long. Nobody but it had the segments of what it has
    /// frozen, and nobody knows what has become of what was lent to it. What was taken over from
    /// it is delivered as before.
    pub(super) fn lose(&mut self, site: &mut Site<'_>, agent: SocketAddr) {
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return;
        };
        neighbour.lost_at = None;
        let noticed: Vec<_> = neighbour.notices.keys().copied().collect();
        for id in noticed {
            self.reset_noticed(agent, id);
        }
        let lent = self.own.iter().filter(|(_, own)| own.is_lent_to(agent));
        let lent: Vec<_> = lent
            .map(|(flow, own)| (*flow, own.depends_on(agent)))
            .collect();
        for (flow, is_alone) in lent {
            if !is_alone {
                self.end_loan(site, flow, agent);
                continue;
            }
            self.finish(flow, Outcome::Reset, None);
            let resets = site.gateway.reset_frozen(site.now, flow);
            self.packets.extend(resets.into_iter().flatten());
            self.counters.reset += 1;
            self.events.push_back(Event::Reset { flow, lost: agent });
        }
        self.forget_what_is_known();
    }

    /// Resets a connection that a neighbour has frozen, unless its segment is here, too, or with
    /// another one.
    pub(super) fn reset_noticed(&mut self, agent: SocketAddr, id: FreezeId) {
        let Some(notice) = self.forget_notice(agent, id) else {
            return;
        };
        let numbers = notice.numbers;
        let known = self.neighbours.get(&agent).map(|n| &n.outcomes);
        if known.is_some_and(|outcomes| outcomes.contains_key(&id)) {
            // It was over before, as the neighbour was told, or would have been.
            return;
        }
        let is_kept_elsewhere = self.neighbours.values().any(|neighbour| {
            neighbour.session == Session::Up && neighbour.notices.contains_key(&id)
        });
        if self.own.contains_key(&numbers.flow) || is_kept_elsewhere {
            return;
        }
        // If the neighbour comes back and still has it, it hears what has become of it.
        if let Some(neighbour) = self.neighbours.get_mut(&agent) {
            neighbour.settle(id, Outcome::Reset);
        }
        self.packets
            .extend([numbers.reset_near(), numbers.reset_far()]);
        self.counters.reset += 1;
        self.events.push_back(Event::Reset {
            flow: numbers.flow,
            lost: agent,
        });
    }
}
