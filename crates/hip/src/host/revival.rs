//! A base exchange beside an association, on a host's table (RFC 7401, section 4.5.4).

use super::exchange::{ATTEMPTS, chosen};
use super::{Host, Path, State};
use crate::addresses::local_for;
use crate::event::{Event, Refusal};
use crate::initiator::{self, Unusable};
use crate::revival::Revival;
use alloc::boxed::Box;
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::hip::{Hit, Message, kind};

impl Host {
    /// Sends the I1 or I2 of an exchange beside an association, first or again.
    pub(super) fn retransmit_revival(&mut self, now: Instant, peer: Hit) {
        let times = self.config.retransmission;
        let Some(association) = self.associations.get_mut(&peer) else {
            return;
        };
        let turn = match &mut association.revival {
            Some(Revival::Called { backoff, sent_at }) if backoff.due <= now => {
                let turn = backoff.attempts.saturating_sub(1);
                backoff.again(now, &times);
                *sent_at = now;
                turn as usize
            }
            Some(Revival::Answered {
                draft,
                packet,
                backoff,
            }) if backoff.due <= now => {
                let is_there = self.locals.contains(&draft.path.local);
                if !is_there || backoff.attempts >= times.exchange_attempts {
                    // The puzzle was for another address, or is out of date.
                    association.revival = Some(Revival::begin(now, &times));
                    return;
                }
                backoff.again(now, &times);
                let path = (draft.path.local, draft.path.remote);
                return self.outbox.hip(path, packet);
            }
            _ => return,
        };
        for path in self.paths_of_call(now, peer, turn) {
            self.call_at(peer, &path);
        }
    }

    /// Paths of an I1 to a silent peer: to its last addresses and to those of the configuration. At first to several of
    /// them, later to one at a time.
    fn paths_of_call(&mut self, now: Instant, peer: Hit, turn: usize) -> Vec<Path> {
        let Some((association, context)) = self.lend(now, peer) else {
            return Vec::new();
        };
        let locals = context.locals;
        let session = association.session();
        let mut paths = session
            .map(|session| session.addresses.candidates(now, locals))
            .unwrap_or_default();
        let configured = self.peers.get(&peer).into_iter();
        let configured = configured.flat_map(|peer| peer.addresses.iter().chain(&peer.rendezvous));
        for &remote in configured {
            if let Some(local) = local_for(&self.locals, remote)
                && paths.iter().all(|path| path.remote != remote)
            {
                paths.push(Path {
                    local,
                    remote,
                    is_verified: false,
                });
            }
        }
        chosen(paths, turn)
    }

    /// An R1 for an exchange beside an association: the peer is there, and is asked once more.
    pub(super) fn hear_offer(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let source = self.source_of(message.sender(), &path);
        let (association, mut context) = self.lend(now, message.sender()).ok_or(Refusal::State)?;
        let counter = message.find(kind::R1_COUNTER).map(|found| found.contents);
        let (State::R2Sent { session, .. } | State::Established { session }, Some(revival)) =
            (&mut association.state, &mut association.revival)
        else {
            return Err(Refusal::State);
        };
        let sent_at = match revival {
            Revival::Called { sent_at, .. } => *sent_at,
            Revival::Answered { draft, .. } if counter > draft.counter.as_deref() => now,
            _ => return Err(Refusal::State),
        };
        match initiator::read_r1(&mut context, message, (path, source)) {
            Ok(offer) => {
                *revival = Revival::offered(now, sent_at, offer);
                session.ask_at(&mut context, path);
                Ok(())
            }
            Err(Unusable::Refused(refusal)) => Err(refusal),
            Err(Unusable::Failed(_)) => Err(Refusal::Choice),
        }
    }

    /// Goes on with the puzzle of an exchange beside an association, and sends the I2 once it is solved.
    pub(super) fn solve_revival(&mut self, now: Instant, peer: Hit) {
        let times = self.config.retransmission;
        let registers = self.peers.get(&peer).is_some_and(|peer| peer.registers);
        let Some((association, mut context)) = self.lend(now, peer) else {
            return;
        };
        let Some(Revival::Offered { mut offer, from }) = association.revival.take() else {
            return;
        };
        if offer.ends <= now {
            association.revival = Some(Revival::begin(now, &times));
            return;
        }
        let Some(solution) = offer.solver.solve(ATTEMPTS) else {
            association.revival = Some(Revival::Offered { offer, from });
            return;
        };
        association.revival = match initiator::i2(&mut context, *offer, &solution, registers) {
            Ok((draft, packet)) => {
                let path = draft.path;
                context.send(&path, &packet);
                Some(Revival::Answered {
                    draft: Box::new(draft),
                    packet,
                    backoff: crate::backoff::Backoff::new(now, &times),
                })
            }
            Err(_) => Some(Revival::rest(now, &times)),
        };
    }

    /// The peer refuses: the next attempt is later.
    pub(super) fn rest_revival(&mut self, now: Instant, peer: Hit) {
        let times = self.config.retransmission;
        if let Some(association) = self.associations.get_mut(&peer) {
            association.revival = Some(Revival::rest(now, &times));
        }
    }

    /// An R2 for an exchange beside an association: the new one takes the place of the old one.
    pub(super) fn complete_revival(
        &mut self,
        now: Instant,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        let configured = self.peers.get(&peer).map(|peer| peer.addresses.clone());
        let (association, mut context) = self.lend(now, peer).ok_or(Refusal::State)?;
        let Some(Revival::Answered { draft, .. }) = &association.revival else {
            return Err(Refusal::State);
        };
        let info = draft.check_r2(message)?;
        let Some(Revival::Answered { draft, .. }) = association.revival.take() else {
            return Err(Refusal::State);
        };
        let session = draft.complete(&context, info, &configured.unwrap_or_default());
        let mut session = session.ok_or(Refusal::Choice)?;
        let granted = crate::rendezvous::granted(message);
        if let Some(lifetime) = granted {
            session.note_registration(now, lifetime);
        }
        if let Some(former) = association.take_session() {
            session.inherit(&mut context, former);
        }
        let session = Box::new(session);
        association.state = State::Established { session };
        let events = &mut self.outbox.events;
        events.push_back(Event::Established { peer });
        events.extend(granted.map(|_| Event::Registered { server: peer }));
        if self.locals.len() > 1 {
            self.announce_to(now, peer);
        }
        Ok(())
    }
}
