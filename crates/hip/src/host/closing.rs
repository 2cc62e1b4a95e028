//! The end of an association: CLOSE and CLOSE_ACK (RFC 7401, sections 5.3.7, 5.3.8, 6.14, 6.15).

use super::{Host, Path, State};
use crate::association::MAXIMUM_SEGMENT_LIFETIME;
use crate::backoff::Backoff;
use crate::context::{Context, echo_unsigned};
use crate::event::{Event, Refusal};
use crate::session::Session;
use crate::update::ANSWERED_AGAIN_AFTER;
use alloc::boxed::Box;
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::hip::{Builder, Hit, Message, PacketType, kind};
use subtle::ConstantTimeEq;

/// Makes a CLOSE with a request to echo, or a CLOSE_ACK with the echo.
fn closing(
    context: &mut Context<'_>,
    session: &Session,
    kind: PacketType,
    (parameter, nonce): (u16, &[u8]),
) -> Option<Vec<u8>> {
    let mut builder = Builder::new(kind, context.identity.hit(), session.peer.hit());
    builder.push(parameter, nonce);
    context.authenticate(builder, session.keying.rhash, &session.keying.keys.own)
}

impl Host {
    /// Ends an association.
    pub fn close(&mut self, now: Instant, peer: Hit) {
        let Some(association) = self.associations.remove(&peer) else {
            return;
        };
        let (state, is_open) = match association.state {
            State::R2Sent { session, .. } | State::Established { session } => {
                let nonce = self.close_nonce();
                let times = self.config.retransmission;
                let state = State::Closing {
                    session,
                    backoff: Backoff::new(now, &times),
                    nonce,
                    until: now + MAXIMUM_SEGMENT_LIFETIME,
                };
                (state, true)
            }
            other => (other, false),
        };
        let association = super::Association {
            state,
            ..association
        };
        self.associations.insert(peer, association);
        if is_open {
            self.clients.remove(&peer);
            self.send_close(now, peer);
            self.outbox.events.push_back(Event::Closed { peer });
        } else {
            self.drop_attempt(peer);
            self.forget(peer);
        }
        self.settle(now, peer);
    }

    fn close_nonce(&mut self) -> Vec<u8> {
        let mut nonce = alloc::vec![0; 16];
        rand_core::Rng::fill_bytes(&mut self.random, &mut nonce);
        nonce
    }

    /// Sends the CLOSE of an association, first or again.
    pub(super) fn send_close(&mut self, now: Instant, peer: Hit) {
        let Some((association, mut context)) = self.lend(now, peer) else {
            return;
        };
        let State::Closing { session, nonce, .. } = &mut association.state else {
            return;
        };
        let echo = (kind::ECHO_REQUEST_SIGNED, nonce.as_slice());
        let packet = closing(&mut context, session, PacketType::Close, echo);
        let candidates = session.addresses.candidates(now, context.locals);
        if let (Some(path), Some(packet)) = (candidates.first(), packet) {
            context.send(path, &packet);
        }
    }

    pub(super) fn handle_close(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let peer = message.sender();
        let (association, mut context) = self.lend(now, peer).ok_or(Refusal::State)?;
        let is_new = association.session().is_some();
        let session = association.any_session().ok_or(Refusal::State)?;
        session.verify_mac(message)?;
        // Whoever has recorded the CLOSE may repeat it.
        if let State::Closed { answered, .. } = &association.state
            && now.since(*answered) < ANSWERED_AGAIN_AFTER
        {
            return Err(Refusal::Limit);
        }
        session.verify_signature(message)?;
        let echo = message
            .find(kind::ECHO_REQUEST_SIGNED)
            .ok_or(Refusal::Parameter)?;
        let echo = (kind::ECHO_RESPONSE_SIGNED, echo.contents);
        let packet = closing(&mut context, session, PacketType::CloseAck, echo);
        let packet = echo_unsigned(packet.ok_or(Refusal::Limit)?, message);
        context.send(&path, &packet);
        self.mark_closed(now, peer);
        if is_new {
            self.outbox.events.push_back(Event::Closed { peer });
            if self.peers.get(&peer).is_some_and(|peer| peer.registers) {
                // Nobody reaches this host through the server before it is registered again.
                self.begin(now, peer, None);
            }
        }
        Ok(())
    }

    fn mark_closed(&mut self, now: Instant, peer: Hit) {
        let Some(association) = self.associations.remove(&peer) else {
            return;
        };
        let closed = |session: Box<Session>| State::Closed {
            session,
            until: now + MAXIMUM_SEGMENT_LIFETIME * 2,
            answered: now,
        };
        let state = match association.state {
            State::R2Sent { session, .. }
            | State::Established { session }
            | State::Closing { session, .. } => closed(session),
            State::Closed { session, until, .. } => State::Closed {
                session,
                until,
                answered: now,
            },
            other => other,
        };
        let association = super::Association {
            state,
            ..association
        };
        self.associations.insert(peer, association);
        self.clients.remove(&peer);
    }

    pub(super) fn handle_close_ack(&mut self, message: &Message<'_>) -> Result<(), Refusal> {
        let peer = message.sender();
        let State::Closing { session, nonce, .. } =
            &self.associations.get(&peer).ok_or(Refusal::State)?.state
        else {
            return Err(Refusal::State);
        };
        session.verify_mac(message)?;
        let echo = message
            .find(kind::ECHO_RESPONSE_SIGNED)
            .ok_or(Refusal::Parameter)?;
        if !bool::from(echo.contents.ct_eq(nonce)) {
            return Err(Refusal::Parameter);
        }
        session.verify_signature(message)?;
        self.forget(peer);
        self.clients.remove(&peer);
        Ok(())
    }
}
