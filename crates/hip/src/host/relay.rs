//! A rendezvous server's forwarding, and a client's view of it (RFC 8004, sections 3.3 and 4.3).

use super::{Host, Origin, Path};
use crate::event::Refusal;
use crate::rendezvous;
use outlast_base::time::Instant;
use outlast_wire::hip::{Hit, Message, PacketType, from_address, kind};

impl Host {
    /// Forwards a packet for a registered host.
    pub(super) fn relay(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        path: Path,
    ) -> Result<(), Refusal> {
        let is_forwarded = matches!(message.kind(), PacketType::I1 | PacketType::Update);
        let client = message.receiver();
        let ends = self.clients.get(&client).copied();
        if !is_forwarded || ends.is_none_or(|ends| ends <= now) {
            return Err(Refusal::NotForUs);
        }
        // Anybody can send these; the client checks what comes of them.
        let limit = self.config.limits.r1_per_second;
        let relayed = match message.kind() {
            PacketType::Update => &mut self.relayed_updates,
            _ => &mut self.relayed,
        };
        relayed.admit(now, path.remote, limit)?;
        let (association, mut context) = self.lend(now, client).ok_or(Refusal::NoPath)?;
        let session = association.session().ok_or(Refusal::NoPath)?;
        let onward = rendezvous::path(session, now, context.locals).ok_or(Refusal::NoPath)?;
        let packet = rendezvous::forwarded(session, message, path.remote);
        let packet = packet.ok_or(Refusal::Parameter)?;
        context.outbox.counters.forwarded += 1;
        context.send(&onward, &packet);
        Ok(())
    }

    /// Where a packet came from: by FROM, if one of this host's servers has forwarded it.
    pub(super) fn origin(
        &self,
        message: &Message<'_>,
        path: Option<Path>,
    ) -> Result<Origin, Refusal> {
        let direct = path.unwrap_or(Path {
            local: message.receiver().address().into(),
            remote: message.sender().address().into(),
            is_verified: false,
        });
        let Some(from) = message.find(kind::FROM) else {
            return Ok(Origin {
                path: direct,
                via: None,
            });
        };
        let servers = self.peers.iter().filter(|(_, peer)| peer.registers);
        let mut sessions = servers
            .filter_map(|(hit, _)| self.associations.get(hit))
            .filter_map(|association| association.any_session());
        let sender = sessions.find_map(|session| rendezvous::sender(session, message).ok());
        let from = from_address(from.contents).filter(|&from| sender == Some(from));
        let from = from.ok_or(Refusal::Mac)?;
        let local = crate::addresses::local_for(&self.locals, from).ok_or(Refusal::NoPath)?;
        Ok(Origin {
            path: Path {
                local,
                remote: from,
                is_verified: false,
            },
            via: Some(direct.remote),
        })
    }

    /// Notes a registration with this server.
    pub(super) fn register(&mut self, now: Instant, client: Hit) {
        if !self.config.is_rendezvous_server {
            return;
        }
        self.clients.retain(|_, ends| *ends > now);
        let is_new = !self.clients.contains_key(&client);
        if is_new && self.clients.len() >= self.config.limits.registrations {
            return self.outbox.refuse(Refusal::Limit);
        }
        self.clients.insert(client, now + rendezvous::kept());
    }
}
