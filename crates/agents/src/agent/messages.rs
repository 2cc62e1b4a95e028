//! What an agent does when a neighbour says something.

use super::neighbour::{Intent, Neighbour, Notice};
use super::owning::Own;
use super::{Agents, Event, Session, Site};
use crate::codec::DecodeError;
use crate::message::{FreezeId, Message, Outcome};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::Imported;
use outlast_gateway::tracking::{FlowKey, FrozenFlow, FrozenNumbers};

/// A segment is asked for again, while its mobile is heard and it has not come, after this long.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Agents {
    /// A channel is there: everything is said that the neighbour may not know. What is over comes
    /// first: what it hears nothing of before the list is complete it counts as lost, if this agent
    /// was started anew.
    pub(super) fn begin_session(&mut self, now: Instant, agent: SocketAddr) {
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return;
        };
        neighbour.begin(now);
        neighbour.say(Intent::Hello);
        let settled: Vec<_> = neighbour.outcomes.iter().map(|(i, o)| (*i, *o)).collect();
        for (id, outcome) in settled {
            neighbour.say(Intent::Settled(id, outcome));
        }
        for own in self.own.values() {
            neighbour.say(Intent::Frozen(own.id));
        }
        neighbour.say(Intent::Listed);
        for own in self.own.values().filter(|own| own.is_lent_to(agent)) {
            neighbour.say(Intent::Segment(own.id));
        }
    }

    pub(super) fn hear(
        &mut self,
        site: &mut Site<'_>,
        agent: SocketAddr,
        message: Message,
    ) -> Result<(), DecodeError> {
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return Err(DecodeError::OutOfOrder);
        };
        let is_hello = matches!(message, Message::Hello { .. });
        if neighbour.session == Session::Down || neighbour.is_greeted == is_hello {
            return Err(DecodeError::OutOfOrder);
        }
        if neighbour.unsaid() > self.config.limits.unsaid + self.own.len() {
            self.counters.unread += 1;
            return Err(DecodeError::Unread);
        }
        neighbour.heard_at = site.now;
        match message {
            Message::Hello { instance } => neighbour.greet(instance),
            Message::Frozen { id, numbers } => self.hear_frozen(site.now, agent, id, numbers),
            Message::Listed => self.hear_listed(agent),
            Message::Released { id } => self.hear_released(agent, id),
            Message::Want { id } => self.lend(site, id, agent),
            Message::Segment { id, flow } => self.hear_segment(site, agent, id, &flow),
            Message::Settled { id, outcome } => self.hear_settled(site, agent, id, outcome),
            Message::Here { mobile } => {
                self.hand_off(site, mobile, agent);
            }
            Message::Supervised(supervised) => self.hear_supervised(site, agent, &supervised),
            Message::Alive => {}
        }
        Ok(())
    }

    fn hear_frozen(
        &mut self,
        now: Instant,
        agent: SocketAddr,
        id: FreezeId,
        numbers: FrozenNumbers,
    ) {
        let mobile = numbers.flow.far.ip();
        let serves = self.serves(mobile);
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return;
        };
        neighbour.unlisted.remove(&id);
        if let Some(outcome) = neighbour.outcomes.get(&id).or(self.over.get(&id)).copied() {
            neighbour.settle(id, outcome);
            return;
        }
        self.forget_contradiction(agent, id, numbers.flow);
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return;
        };
        let known = neighbour.notices.get(&id).copied();
        if known.is_none() && (!serves || neighbour.notices.len() >= self.config.limits.notices) {
            self.counters.not_noted += 1;
            return;
        }
        let own = self.own.get(&numbers.flow).filter(|own| own.id == id);
        let is_delivered = own.is_some_and(|own| own.from == Some(agent));
        let was_wanted = known.is_some_and(|notice| notice.wanted.is_some() && !notice.is_refused);
        let has_arrived = self.arrived.said_of(now, mobile).is_some();
        let wanted = is_delivered || (own.is_none() && (was_wanted || has_arrived));
        let notice = Notice {
            numbers,
            wanted: wanted.then_some(now),
            is_refused: known.is_some_and(|notice| notice.is_refused),
        };
        neighbour.notices.insert(id, notice);
        self.awaited.insert((mobile, agent, id));
        if wanted {
            // One that was started anew is to know, too, that it is not the one to deliver it.
            self.say(agent, Intent::Want(id));
        }
    }

    /// What an earlier session told of, and this one did not, is over; or it was lost with the
    /// neighbour, if that was started anew and does not know it any more.
    fn hear_listed(&mut self, agent: SocketAddr) {
        let Some(neighbour) = self.neighbours.get_mut(&agent) else {
            return;
        };
        let unlisted = core::mem::take(&mut neighbour.unlisted);
        let is_anew = core::mem::take(&mut neighbour.is_anew);
        for id in unlisted {
            match is_anew {
                true => self.reset_noticed(agent, id),
                false => drop(self.forget_notice(agent, id)),
            }
        }
    }

    fn hear_released(&mut self, agent: SocketAddr, id: FreezeId) {
        self.forget_notice(agent, id);
        if let Some(neighbour) = self.neighbours.get_mut(&agent) {
            neighbour.outcomes.remove(&id);
        }
        self.forget_if_known(id);
    }

    fn hear_segment(
        &mut self,
        site: &mut Site<'_>,
        agent: SocketAddr,
        id: FreezeId,
        flow: &FrozenFlow,
    ) {
        if let Some(neighbour) = self.neighbours.get_mut(&agent)
            && let Some(outcome) = neighbour.outcomes.get(&id).or(self.over.get(&id)).copied()
        {
            neighbour.settle(id, outcome);
            return;
        }
        let Ok(numbers) = flow.numbers() else {
            self.refuse(agent, id);
            return;
        };
        let key = numbers.flow;
        if self.is_of_another(id, key) {
            self.refuse(agent, id);
            return;
        }
        if self.own.get(&key).is_some_and(|own| own.id != id) {
            self.meet_another(site, agent, id, &numbers);
            return;
        }
        // It may come before anything was said of it: somebody else knows where the mobile is.
        self.note(agent, id, numbers);
        if self.own.contains_key(&key) {
            // Whoever sends it relies on this agent to deliver it.
            self.share(site, key);
            return;
        }
        if !self.serves(key.far.ip()) || self.copies >= self.config.limits.copies {
            self.refuse(agent, id);
            return;
        }
        let link = (site.link_to)(key.far.ip());
        match site.gateway.import_frozen(site.now, link, flow, true) {
            Ok(Imported::Frozen) => {
                self.counters.taken_over += 1;
                self.events.push_back(Event::TakenOver {
                    flow: key,
                    from: agent,
                });
                self.own_from_now_on(&numbers, id, Some(agent), flow.clone());
            }
            Ok(Imported::Over) => {
                if let Some(neighbour) = self.neighbours.get_mut(&agent) {
                    neighbour.settle(id, Outcome::Acknowledged);
                }
            }
            Err(_) => self.refuse(agent, id),
        }
    }

    /// A segment of a connection comes of which another one is kept here, under another name: one of
    /// the two is over, and who keeps it was away when it came to its end.
    fn meet_another(
        &mut self,
        site: &mut Site<'_>,
        agent: SocketAddr,
        id: FreezeId,
        numbers: &FrozenNumbers,
    ) {
        let key = numbers.flow;
        let kept = site.gateway.export_frozen(key);
        let Some(kept) = kept.and_then(|kept| kept.numbers().ok()) else {
            self.refuse(agent, id);
            return;
        };
        if kept.acked.at_or_after(numbers.until) {
            // The mobile was seen here to have it.
            if let Some(neighbour) = self.neighbours.get_mut(&agent) {
                neighbour.settle(id, Outcome::Acknowledged);
            }
            self.forget_notice(agent, id);
        } else if numbers.acked.at_or_after(kept.until) {
            // It was seen there to have what is kept here. The later one is asked for again at the
            // mobile's next sign of life, when the gateway has let go of this one.
            self.finish(key, Outcome::Acknowledged, None);
            site.gateway.release_frozen(site.now, key);
            self.counters.refused += 1;
            self.say(agent, Intent::Settled(id, Outcome::Refused));
            self.note(agent, id, *numbers);
        } else {
            self.refuse(agent, id);
        }
    }

    fn hear_settled(
        &mut self,
        site: &mut Site<'_>,
        agent: SocketAddr,
        id: FreezeId,
        outcome: Outcome,
    ) {
        let Some(flow) = self.ids.get(&id).copied() else {
            self.forget_notice(agent, id);
            if outcome != Outcome::Refused {
                self.end_others_notices(id, outcome);
            }
            self.say(agent, Intent::Released(id));
            return;
        };
        self.events.push_back(Event::Settled {
            flow,
            by: agent,
            outcome,
        });
        if outcome == Outcome::Refused {
            self.counters.refused += 1;
            self.end_loan(site, flow, agent);
            return;
        }
        self.counters.settled += u64::from(outcome == Outcome::Acknowledged);
        self.finish(flow, outcome, Some(agent));
        site.gateway.release_frozen(site.now, flow);
    }

    fn refuse(&mut self, agent: SocketAddr, id: FreezeId) {
        self.counters.refused += 1;
        if let Some(neighbour) = self.neighbours.get_mut(&agent) {
            if let Some(notice) = neighbour.notices.get_mut(&id) {
                notice.is_refused = true;
            }
            neighbour.say(Intent::Settled(id, Outcome::Refused));
        }
    }

    /// A mobile is here: whoever keeps a segment of its is asked for it.
    pub(super) fn ask_for(&mut self, now: Instant, mobile: IpAddr) {
        let noticed: Vec<_> = self.notices_of(mobile).collect();
        for (agent, id) in noticed {
            let Some(neighbour) = self.neighbours.get_mut(&agent) else {
                continue;
            };
            let Some(notice) = neighbour.notices.get_mut(&id) else {
                continue;
            };
            let own = self.own.get(&notice.numbers.flow);
            let is_here = own.is_some_and(|own| own.id == id);
            let is_asked = |at: Instant| now.since(at) < ASKED_AGAIN_AFTER;
            if is_here || notice.is_refused || notice.wanted.is_some_and(is_asked) {
                continue;
            }
            notice.wanted = Some(now);
            neighbour.say(Intent::Want(id));
        }
    }

    /// Whether a name can be none of a freeze of this connection: it is known to be that of another
    /// one, or will be given here. Who uses it so is wrong, whoever it is; to believe it would have
    /// two segments under one name, and one of them forgotten.
    fn is_of_another(&self, id: FreezeId, flow: FlowKey) -> bool {
        let known = self.ids.get(&id);
        let is_unborn = id.instance == self.config.instance && id.number > self.next_number;
        is_unborn || known.is_some_and(|known| *known != flow)
    }

    /// What a neighbour has said under this name of another connection holds no longer.
    fn forget_contradiction(&mut self, agent: SocketAddr, id: FreezeId, flow: FlowKey) {
        let known = self.neighbours.get(&agent).and_then(|n| n.notices.get(&id));
        if known.is_some_and(|notice| notice.numbers.flow != flow) {
            self.forget_notice(agent, id);
        }
    }

    /// Takes a note of what a neighbour keeps, if there is room for it.
    fn note(&mut self, agent: SocketAddr, id: FreezeId, numbers: FrozenNumbers) {
        self.forget_contradiction(agent, id, numbers.flow);
        let most = self.config.limits.notices;
        if let Some(neighbour) = self.neighbours.get_mut(&agent)
            && (neighbour.notices.len() < most || neighbour.notices.contains_key(&id))
        {
            neighbour.notices.entry(id).or_insert(Notice {
                numbers,
                wanted: None,
                is_refused: false,
            });
            self.awaited.insert((numbers.flow.far.ip(), agent, id));
        }
    }

    pub(super) fn forget_notice(&mut self, agent: SocketAddr, id: FreezeId) -> Option<Notice> {
        let neighbour = self.neighbours.get_mut(&agent)?;
        neighbour.unlisted.remove(&id);
        let notice = neighbour.notices.remove(&id)?;
        let mobile = notice.numbers.flow.far.ip();
        self.awaited.remove(&(mobile, agent, id));
        Some(notice)
    }

    /// A freeze is over, whoever keeps its segment: nobody is to reset the connection for one that does,
    /// is gone, and has not heard of it.
    fn end_others_notices(&mut self, id: FreezeId, outcome: Outcome) {
        let holds =
            |(_, neighbour): &(&SocketAddr, &Neighbour)| neighbour.notices.contains_key(&id);
        let holders = self.neighbours.iter().filter(holds);
        let holders: Vec<_> = holders.map(|(agent, _)| *agent).collect();
        for agent in holders {
            self.forget_notice(agent, id);
            if let Some(neighbour) = self.neighbours.get_mut(&agent) {
                neighbour.settle(id, outcome);
            }
        }
    }

    /// A freeze of the connection is over, as every neighbour hears. Nobody is to reset the connection
    /// for a neighbour that is lost, unless that keeps a later segment of it. Who keeps an earlier
    /// one was away when that came to its end.
    pub(super) fn end_notices_of(&mut self, flow: FlowKey, over: &Own, outcome: Outcome) {
        let of_mobile: Vec<_> = self.notices_of(flow.far.ip()).collect();
        for (agent, id) in of_mobile {
            let notice = self.neighbours.get(&agent).and_then(|n| n.notices.get(&id));
            let Some(numbers) = notice.map(|notice| notice.numbers) else {
                continue;
            };
            let is_later = outcome == Outcome::Acknowledged && numbers.until.after(over.until);
            if numbers.flow == flow && !is_later {
                self.forget_notice(agent, id);
                if let Some(neighbour) = self.neighbours.get_mut(&agent)
                    && id != over.id
                {
                    neighbour.settle(id, outcome);
                }
            }
        }
    }
}
