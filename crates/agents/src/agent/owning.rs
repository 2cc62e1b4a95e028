//! What is frozen in the agent's own gateway: told to the neighbours, lent to one of them, let go.

use super::neighbour::Intent;
use super::{Agents, Event, Site};
use crate::journal::{Entry, Kept};
use crate::message::{FreezeId, Message, Outcome};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_gateway::gateway::{Gateway, Imported};
use outlast_gateway::tracking::{FlowKey, FrozenFlow, FrozenNumbers};
use outlast_wire::SeqNumber;

/// Neighbours that one segment is lent to at once, at most.
const MOST_BORROWERS: usize = 8;

/// A connection that is frozen in the gateway.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) id: FreezeId,
    /// Whom it was taken over from; nobody, if it was frozen here.
    pub(super) from: Option<SocketAddr>,
    /// What the near host was told that the mobile has: everything before this number.
    pub(super) until: SeqNumber,
    /// Who delivers it, the latest last. More than one where the mobile has moved on, or is heard
    /// in more than one place: whoever has it acknowledged first ends it for all.
    borrowers: Vec<SocketAddr>,
    /// The mobile has been here since it was lent: it is delivered from here, too.
    is_shared: bool,
}

impl Own {
    pub(super) fn borrower(&self) -> Option<SocketAddr> {
        self.borrowers.last().copied()
    }

    pub(super) fn is_lent_to(&self, agent: SocketAddr) -> bool {
        self.borrowers.contains(&agent)
    }

    /// Whether nobody but `agent` delivers it.
    pub(super) fn depends_on(&self, agent: SocketAddr) -> bool {
        self.borrowers == [agent] && !self.is_shared
    }
}

impl Agents {
    /// The gateway has frozen a connection.
    pub(super) fn note_frozen(&mut self, site: &mut Site<'_>, flow: FlowKey) {
        if self.own.contains_key(&flow) {
            // It was taken over, which is known.
            return;
        }
        let Some(frozen) = site.gateway.export_frozen(flow) else {
            return;
        };
        let Ok(numbers) = frozen.numbers() else {
            return;
        };
        let id = self.fresh_id();
        self.own_from_now_on(&numbers, id, None, frozen);
        if let Some(to) = self.moved.said_of(site.now, flow.far.ip()) {
            self.lend(site, id, to);
        }
    }

    /// Takes up what an earlier instance has written down. What cannot be kept is over: it would
    /// be found again at each start, when nobody knows any more what had become of it.
    pub(super) fn take_up(&mut self, site: &mut Site<'_>, kept: Kept) {
        let Kept { id, from, flow } = kept;
        let Ok(numbers) = flow.numbers() else {
            // It was plausible when it was written: no connection of ours.
            self.removals
                .extend([Entry::Removed(id), Entry::Removed(id)]);
            return;
        };
        let key = numbers.flow;
        let link = (site.link_to)(key.far.ip());
        match site.gateway.import_frozen(site.now, link, &flow, false) {
            Ok(Imported::Frozen) => self.own_from_now_on(&numbers, id, from, flow),
            Ok(Imported::Over) => self.let_go(id, Outcome::Acknowledged, None),
            Err(_) => {
                self.let_go(id, Outcome::Reset, None);
                self.counters.reset += 1;
                self.packets
                    .extend([numbers.reset_near(), numbers.reset_far()]);
            }
        }
    }

    pub(super) fn fresh_id(&mut self) -> FreezeId {
        self.next_number += 1;
        FreezeId {
            instance: self.config.instance,
            number: self.next_number,
        }
    }

    pub(super) fn own_from_now_on(
        &mut self,
        numbers: &FrozenNumbers,
        id: FreezeId,
        from: Option<SocketAddr>,
        flow: FrozenFlow,
    ) {
        let key = numbers.flow;
        let own = Own {
            id,
            from,
            until: numbers.until,
            borrowers: Vec::new(),
            is_shared: false,
        };
        self.copies += usize::from(from.is_some());
        self.say_to_all(Intent::Frozen(id));
        self.ids.insert(id, key);
        self.own.insert(key, own);
        let kept = Kept { id, from, flow };
        self.records.push_back(Entry::Kept(Box::new(kept)));
    }

    /// A neighbour delivers it from now on.
    pub(super) fn lend(&mut self, site: &mut Site<'_>, id: FreezeId, to: SocketAddr) {
        let Some(key) = self.ids.get(&id).copied() else {
            self.say(to, Intent::Released(id));
            return;
        };
        let Some(own) = self.own.get_mut(&key) else {
            return;
        };
        if !own.is_lent_to(to) {
            if own.borrowers.len() == MOST_BORROWERS {
                // It still has the segment, and hears when that is settled.
                own.borrowers.remove(0);
            }
            own.borrowers.push(to);
            self.counters.lent += 1;
            self.events.push_back(Event::Lent { flow: key, to });
        }
        own.is_shared = false;
        self.lent.insert((key.far.ip(), key));
        site.gateway.lend_frozen(site.now, key, true);
        if let Some(neighbour) = self.neighbours.get_mut(&to) {
            neighbour.say(Intent::Segment(id));
            neighbour.expect(site.now, self.config.lost_after);
        }
    }

    /// A neighbour does not deliver it. Nobody may be left to.
    pub(super) fn end_loan(&mut self, site: &mut Site<'_>, key: FlowKey, to: SocketAddr) {
        if let Some(own) = self.own.get_mut(&key)
            && own.is_lent_to(to)
        {
            own.borrowers.retain(|borrower| *borrower != to);
            if own.borrowers.is_empty() {
                self.lent.remove(&(key.far.ip(), key));
                site.gateway.lend_frozen(site.now, key, false);
            }
        }
    }

    /// A mobile is here: what was lent is delivered from here, too.
    pub(super) fn take_back(&mut self, site: &mut Site<'_>, mobile: IpAddr) {
        self.moved.forget(mobile);
        let lent: Vec<_> = self.lent_of(mobile).collect();
        for key in lent {
            self.share(site, key);
        }
    }

    /// Has the segment of `key` delivered from here, whoever else delivers it.
    pub(super) fn share(&mut self, site: &mut Site<'_>, key: FlowKey) {
        if let Some(own) = self.own.get_mut(&key) {
            own.is_shared = true;
        }
        self.lent.remove(&(key.far.ip(), key));
        site.gateway.lend_frozen(site.now, key, false);
    }

    /// It needs nobody any more, which every neighbour hears but the one that has said so.
    pub(super) fn finish(&mut self, key: FlowKey, outcome: Outcome, said_by: Option<SocketAddr>) {
        let Some(own) = self.own.remove(&key) else {
            return;
        };
        self.ids.remove(&own.id);
        self.copies -= usize::from(own.from.is_some());
        self.lent.remove(&(key.far.ip(), key));
        self.let_go(own.id, outcome, said_by);
        self.end_notices_of(key, &own, outcome);
    }

    /// Gives up the kept segment `id`, and ends its freeze.
    fn let_go(&mut self, id: FreezeId, outcome: Outcome, said_by: Option<SocketAddr>) {
        self.removals.push_back(Entry::Removed(id));
        self.end(id, outcome, said_by);
    }

    /// Ends the freeze `id`, and remembers that until every neighbour knows.
    pub(super) fn end(&mut self, id: FreezeId, outcome: Outcome, said_by: Option<SocketAddr>) {
        for (agent, neighbour) in &mut self.neighbours {
            match said_by == Some(*agent) {
                true => neighbour.say(Intent::Released(id)),
                false => neighbour.settle(id, outcome),
            }
        }
        self.over.insert(id, outcome);
        self.forget_if_known(id);
    }

    /// Every neighbour may have heard by now that it is over.
    pub(super) fn forget_if_known(&mut self, id: FreezeId) {
        let is_awaited = self.neighbours.values().any(|n| n.is_to_confirm(id));
        if !is_awaited && self.over.remove(&id).is_some() {
            self.removals.push_back(Entry::Removed(id));
        }
    }

    /// A neighbour is lost, or is none any more: it is not waited for.
    pub(super) fn forget_what_is_known(&mut self) {
        let over: Vec<_> = self.over.keys().copied().collect();
        for id in over {
            self.forget_if_known(id);
        }
    }

    /// The message that was meant; `None` if it has become needless.
    pub(super) fn compose(
        &mut self,
        site: &mut Site<'_>,
        to: SocketAddr,
        intent: Intent,
    ) -> Option<Message> {
        let gateway: &mut Gateway = site.gateway;
        let mut export = |id| gateway.export_frozen(*self.ids.get(&id)?);
        Some(match intent {
            Intent::Hello => Message::Hello {
                instance: self.config.instance,
            },
            Intent::Frozen(id) => {
                match export(id).and_then(|frozen| frozen.numbers().ok()) {
                    Some(numbers) => Message::Frozen { id, numbers },
                    // It may know it from an earlier session. That it is over comes behind the list of
                    // this one, in which it would be missing.
                    None => self.say_over(to, id),
                }
            }
            Intent::Listed => Message::Listed,
            Intent::Released(id) => Message::Released { id },
            Intent::Want(id) => Message::Want { id },
            Intent::Segment(id) => Message::Segment {
                id,
                flow: Box::new(export(id)?),
            },
            Intent::Settled(id, outcome) => Message::Settled { id, outcome },
            Intent::Here(mobile) => Message::Here { mobile },
            Intent::Supervised(flow) => {
                let supervised = gateway.hand_off_supervised(site.now, flow)?;
                self.counters.lent += 1;
                self.events.push_back(Event::Lent { flow, to });
                Message::Supervised(Box::new(supervised))
            }
            Intent::Alive => Message::Alive,
        })
    }

    fn say_over(&self, to: SocketAddr, id: FreezeId) -> Message {
        let neighbour = self.neighbours.get(&to);
        match neighbour.and_then(|neighbour| neighbour.outcomes.get(&id)) {
            Some(&outcome) => Message::Settled { id, outcome },
            // It knows: it has said so itself.
            None => Message::Released { id },
        }
    }
}
