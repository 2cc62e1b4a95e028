//! The base exchange on a host's table of associations (RFC 7401, sections 4.4.4 and 6.6 to 6.10).

use super::opportunistic::is_stand_in;
use super::{Association, Data, Host, Path, Peer, Source, State};
use crate::addresses::local_for;
use crate::backoff::Backoff;
use crate::context::{echo_unsigned, verify_mac};
use crate::event::{Event, Failure, Refusal};
use crate::initiator::{self, Unusable};
use crate::responder::Rejection;
use crate::revival::Revival;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{Builder, Hit, Message, Notification, PacketType, kind};

/// Addresses that the first I1 goes to at once (RFC 7401, section 6.6.1).
const PARALLEL_I1: usize = 3;

/// The paths that an I1 takes in this turn: at first several of them, later one at a time.
pub(super) fn chosen<T>(mut paths: Vec<T>, turn: usize) -> Vec<T> {
    if turn == 0 {
        paths.truncate(PARALLEL_I1);
    } else if !paths.is_empty() {
        let count = paths.len();
        paths.rotate_left(turn % count);
        paths.truncate(1);
    }
    paths
}

/// How long R2-SENT lasts without data: longer than the peer repeats its I2.
const R2_SENT: Duration = Duration::from_secs(30);

/// How long a failed exchange is not tried again.
const FAILED: Duration = Duration::from_secs(5);

/// Attempts at the puzzle in one call.
pub(super) const ATTEMPTS: u32 = 4096;

/// RESPONDER_BUSY_PLEASE_RETRY (RFC 7401, section 5.2.19).
const BUSY: u16 = 44;

/// The first notification type that is no error.
const FIRST_STATUS: u16 = 16384;

impl Host {
    /// Begins a base exchange, with data that waits for its end.
    pub(super) fn begin(&mut self, now: Instant, peer: Hit, data: Option<Data>) {
        if !self.peers.contains_key(&peer) {
            return self.outbox.refuse(Refusal::NoPath);
        }
        let is_known = self.associations.contains_key(&peer);
        if !is_known && self.associations.len() >= self.config.limits.associations {
            return self.outbox.refuse(Refusal::Limit);
        }
        let state = State::I1Sent {
            backoff: Backoff::new(now, &self.config.retransmission),
            offer: None,
        };
        self.set_state(peer, state);
        if let Some(data) = data {
            self.enqueue(peer, data);
        }
        self.send_i1(peer, 0);
        self.settle(now, peer);
    }

    /// Sends an I1 to some addresses of the peer: first to several, where it was last among them, later to one at a time.
    pub(super) fn send_i1(&mut self, peer: Hit, turn: usize) {
        let Some(known) = self.peers.get(&peer) else {
            return;
        };
        let receiver = if is_stand_in(peer) { Hit::NULL } else { peer };
        let Some(packet) = initiator::i1(self.identity.hit(), receiver) else {
            return;
        };
        let mut places: Vec<IpAddr> = self.whereabouts.of(peer).to_vec();
        for &listed in known.addresses.iter().chain(&known.rendezvous) {
            if !places.contains(&listed) {
                places.push(listed);
            }
        }
        let path = |&to: &IpAddr| Some((local_for(&self.locals, to)?, to));
        for path in chosen(places.iter().filter_map(path).collect(), turn) {
            self.outbox.hip(path, &packet);
        }
    }

    /// Sends an I1 to one address.
    pub(super) fn call_at(&mut self, peer: Hit, path: &Path) {
        if let Some(packet) = initiator::i1(self.identity.hit(), peer) {
            self.outbox.hip((path.local, path.remote), &packet);
        }
    }

    pub(super) fn handle_i1(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        if !self.admits(peer) {
            return Err(Refusal::Policy);
        }
        // Of two exchanges that cross, the one begun by the host with the lower tag goes on.
        let origin = self.origin(message, Some(path))?;
        let crosses = self.associations.get(&peer).is_some_and(|association| {
            let state = &association.state;
            let is_exchanging = matches!(state, State::I1Sent { .. } | State::I2Sent { .. });
            is_exchanging || association.revival.is_some()
        });
        if crosses && self.hit() < peer {
            // The peer may be where no I1 of this host has gone to.
            let (responder, _, context) = self.parts(now);
            responder.admit_i1(&context, origin)?;
            self.call_at(peer, &origin.path);
            return Err(Refusal::State);
        }
        let (responder, _, mut context) = self.parts(now);
        responder.answer_i1(&mut context, message, origin)
    }

    /// The source of a packet in the name of `peer`. This host sends to the addresses that it has listed, to where the
    /// peer was last, and to where the exchange goes on.
    pub(super) fn source_of(&self, peer: Hit, path: &Path) -> Source {
        let address = path.remote;
        let is_listed = |listed: &Peer| listed.addresses.contains(&address);
        let known = self.associations.get(&peer);
        let draft = known.and_then(|known| match (&known.state, &known.revival) {
            (State::I2Sent { draft, .. }, _) | (_, Some(Revival::Answered { draft, .. })) => {
                Some(draft)
            }
            _ => None,
        });
        let session = known.and_then(Association::any_session);
        let mut last = session.into_iter().flat_map(|it| &it.addresses.known);
        let is_called = self.peers.get(&peer).is_some_and(is_listed)
            || self.whereabouts.of(peer).contains(&address)
            || self.is_pending_at(peer, address)
            || draft.is_some_and(|draft| draft.path.remote == address)
            || last.any(|known| known.address == address);
        Source { address, is_called }
    }

    pub(super) fn handle_r1(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        self.adopt_tag(now, peer, &path);
        let source = self.source_of(peer, &path);
        let (association, mut context) = self.lend(now, peer).ok_or(Refusal::State)?;
        let counter = message.find(kind::R1_COUNTER).map(|found| found.contents);
        if association.revival.is_some() {
            return self.hear_offer(now, message, path);
        }
        match &association.state {
            State::I1Sent { offer: None, .. } => {}
            // A Responder that has begun anew counts on (section 6.8).
            State::I2Sent { draft, .. } if counter > draft.counter.as_deref() => {}
            _ => return Err(Refusal::State),
        }
        match initiator::read_r1(&mut context, message, (path, source)) {
            Ok(offer) => {
                association.state = State::I1Sent {
                    backoff: Backoff::new(now, &context.config.retransmission),
                    offer: Some(Box::new(offer)),
                };
                Ok(())
            }
            Err(Unusable::Refused(refusal)) => {
                self.revert_tag(now, peer);
                Err(refusal)
            }
            // Anybody may have signed it: another R1 may be of use.
            Err(Unusable::Failed(_)) if self.is_pending(peer) => {
                self.revert_tag(now, peer);
                Err(Refusal::Choice)
            }
            Err(Unusable::Failed(failure)) => {
                self.fail(now, peer, failure);
                Ok(())
            }
        }
    }

    /// Goes on with the puzzle, and sends the I2 once it is solved.
    pub(super) fn solve(&mut self, now: Instant, peer: Hit) {
        let registers = self.peers.get(&peer).is_some_and(|peer| peer.registers);
        let Some((association, mut context)) = self.lend(now, peer) else {
            return;
        };
        let State::I1Sent { backoff, offer } = &mut association.state else {
            return self.solve_revival(now, peer);
        };
        let Some(mut solving) = offer.take() else {
            return;
        };
        if solving.ends <= now {
            // Another puzzle is asked for.
            backoff.hurry(now, &context.config.retransmission);
            return self.revert_tag(now, peer);
        }
        let Some(solution) = solving.solver.solve(ATTEMPTS) else {
            *offer = Some(solving);
            return;
        };
        match initiator::i2(&mut context, *solving, &solution, registers) {
            Ok((draft, packet)) => {
                let path = draft.path;
                context.send(&path, &packet);
                association.state = State::I2Sent {
                    backoff: Backoff::new(now, &context.config.retransmission),
                    draft: Box::new(draft),
                    packet,
                };
            }
            Err(failure) => self.fail(now, peer, failure),
        }
    }

    pub(super) fn handle_i2(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        let known = self.associations.get(&peer);
        // Of two exchanges that cross, that of the host with the lower tag goes on.
        let crosses = known.is_some_and(|known| {
            let is_beside = matches!(known.revival, Some(Revival::Answered { .. }));
            is_beside || matches!(known.state, State::I2Sent { .. })
        });
        if crosses && self.hit() < peer {
            return Err(Refusal::State);
        }
        if !self.admits(peer) {
            return Err(Refusal::Policy);
        }
        let is_full = known.is_none() && self.associations.len() >= self.config.limits.associations;
        let configured = self.peers.get(&peer).map(|peer| peer.addresses.clone());
        let configured = configured.unwrap_or_default();
        let (responder, _, mut context) = self.parts(now);
        let paths = (&path, configured.as_slice());
        let accepted = match responder.accept_i2(&mut context, message, paths, is_full) {
            Ok(accepted) => accepted,
            Err(Rejection::Refused(refusal)) => return Err(refusal),
            Err(Rejection::Solved(mark)) => return self.repeat_r2(message, &mark, path),
            Err(Rejection::Busy) => {
                self.notify(now, peer, BUSY, path);
                return Err(Refusal::Limit);
            }
        };
        if let Some(answered) = &accepted.session.answered {
            let packet = echo_unsigned(answered.packet.clone(), message);
            self.outbox.hip((path.local, path.remote), &packet);
        }
        let mut session = accepted.session;
        if let Some((association, mut context)) = self.lend(now, peer) {
            association.revival = None;
            if let Some(former) = association.take_session() {
                session.inherit(&mut context, former);
            }
        }
        if self.peers.get(&peer).is_some_and(|peer| peer.registers) {
            // Only an I2 of this host's own would have asked for the registration.
            session.renewal.get_or_insert(now);
        }
        let state = State::R2Sent {
            session: Box::new(session),
            until: now + R2_SENT,
        };
        self.set_state(peer, state);
        self.outbox.events.push_back(Event::Established { peer });
        self.note_peer_opened(now, peer, &path);
        if accepted.registers {
            self.register(now, peer);
        }
        Ok(())
    }

    /// The peer repeats an I2 whose R2 was lost.
    fn repeat_r2(&mut self, message: &Message<'_>, mark: &[u8], path: Path) -> Result<(), Refusal> {
        let association = self
            .associations
            .get(&message.sender())
            .ok_or(Refusal::Replay)?;
        let session = association.any_session().ok_or(Refusal::Replay)?;
        let answered = session
            .answered
            .as_ref()
            .filter(|answered| answered.mark == mark);
        let answered = answered.ok_or(Refusal::Replay)?;
        verify_mac(message, session.keying.rhash, &session.keying.keys.peer)?;
        let packet = echo_unsigned(answered.packet.clone(), message);
        self.outbox.hip((path.local, path.remote), &packet);
        Ok(())
    }

    pub(super) fn handle_r2(&mut self, now: Instant, message: &Message<'_>) -> Result<(), Refusal> {
        let peer = message.sender();
        let known = self.associations.get(&peer).ok_or(Refusal::State)?;
        let State::I2Sent { draft, .. } = &known.state else {
            return self.complete_revival(now, message);
        };
        let info = draft.check_r2(message)?;
        let configured = self.peers.get(&peer).map(|peer| peer.addresses.clone());
        let Some(association) = self.associations.remove(&peer) else {
            return Err(Refusal::State);
        };
        let Association {
            state: State::I2Sent { draft, .. },
            revival,
            waiting,
            armed,
            spis,
        } = association
        else {
            return Err(Refusal::State);
        };
        let (_, _, context) = self.parts(now);
        let session = draft.complete(&context, info, &configured.unwrap_or_default());
        let mut session = session.ok_or(Refusal::Choice)?;
        if let Some(lifetime) = crate::rendezvous::granted(message) {
            session.note_registration(now, lifetime);
            self.outbox
                .events
                .push_back(Event::Registered { server: peer });
        }
        let state = State::Established {
            session: Box::new(session),
        };
        let association = Association {
            state,
            revival,
            waiting,
            armed,
            spis,
        };
        self.associations.insert(peer, association);
        self.outbox.events.push_back(Event::Established { peer });
        self.bind_tag(now, peer);
        if self.locals.len() > 1 {
            self.announce_to(now, peer);
        }
        Ok(())
    }

    /// Tells one peer all addresses of this host.
    pub(super) fn announce_to(&mut self, now: Instant, peer: Hit) {
        if let Some((association, mut context)) = self.lend(now, peer)
            && let Some(session) = association.session()
        {
            session.readdress(&mut context, &[]);
        }
    }

    /// An exchange is over; it may be tried again a little later.
    pub(super) fn fail(&mut self, now: Instant, peer: Hit, failure: Failure) {
        let until = now + FAILED;
        self.drop_attempt(peer);
        self.set_state(peer, State::Failed { failure, until });
        if let Some(association) = self.associations.get_mut(&peer) {
            association.waiting.clear();
        }
        self.outbox
            .events
            .push_back(Event::Failed { peer, failure });
    }

    /// Says why an I2 makes no association.
    fn notify(&mut self, now: Instant, peer: Hit, notice: u16, path: Path) {
        let mut builder = Builder::new(PacketType::Notify, self.identity.hit(), peer);
        let parameter = Notification { notice, data: &[] };
        builder.push_with(kind::NOTIFICATION, |out| parameter.write(out));
        let (_, _, mut context) = self.parts(now);
        if context.sign(&mut builder, kind::HIP_SIGNATURE).is_some()
            && let Some(packet) = builder.finish()
        {
            context.send(&path, &packet);
        }
    }

    /// A signed error ends an exchange that waits for its R2; everything else is only counted.
    pub(super) fn handle_notify(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        let source = self.source_of(peer, &path);
        let (known, mut context) = self.lend(now, peer).ok_or(Refusal::State)?;
        let ((State::I2Sent { draft, .. }, _) | (_, Some(Revival::Answered { draft, .. }))) =
            (&known.state, &known.revival)
        else {
            return Err(Refusal::State);
        };
        let parameter = message.find(kind::NOTIFICATION).ok_or(Refusal::Parameter)?;
        let parsed = Notification::parse(parameter.contents).map_err(|_| Refusal::Malformed)?;
        if parsed.notice >= FIRST_STATUS {
            return Err(Refusal::State);
        }
        draft.check_notify(&mut context, message, source)?;
        if known.revival.is_some() {
            self.rest_revival(now, peer);
        } else {
            self.fail(now, peer, Failure::Notified(parsed.notice));
        }
        Ok(())
    }

    /// Sends I1 or I2 again, or gives up.
    pub(super) fn retransmit_exchange(&mut self, now: Instant, peer: Hit) {
        let times = self.config.retransmission;
        let Some(association) = self.associations.get_mut(&peer) else {
            return;
        };
        match &mut association.state {
            State::I1Sent {
                backoff,
                offer: None,
            } => {
                if backoff.attempts >= times.exchange_attempts {
                    return self.fail(now, peer, Failure::NoAnswer);
                }
                let turn = backoff.attempts as usize;
                backoff.again(now, &times);
                self.send_i1(peer, turn);
            }
            State::I2Sent {
                backoff,
                draft,
                packet,
            } => {
                if backoff.attempts >= times.exchange_attempts {
                    return self.fail(now, peer, Failure::NoAnswer);
                }
                if !self.locals.contains(&draft.path.local) {
                    // The puzzle was for another address.
                    return self.begin_anew(now, peer);
                }
                backoff.again(now, &times);
                let path = (draft.path.local, draft.path.remote);
                self.outbox.hip(path, packet);
            }
            _ => {}
        }
    }
}
