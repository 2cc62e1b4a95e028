//! Packets of applications that know hosts by addresses of IPv4.

use super::opportunistic::is_stand_in;
use super::{Host, Inner};
use crate::event::Refusal;
use crate::local_scope::{Conversation, Family, Flows, Identifiers, LONGER, LocalScope};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use outlast_base::time::Instant;
use outlast_wire::hip::Hit;
use outlast_wire::translation::{DualAddress, to_v4, to_v6};
use outlast_wire::{IcmpNotice, Packet};

/// The LSIs of a host, and who uses them.
#[derive(Debug)]
pub(super) struct LocalScopeState {
    pub(super) identifiers: Identifiers,
    flows: Flows,
}

/// Whether a packet is one of IPv4.
fn is_v4(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte >> 4 == 4)
}

impl LocalScopeState {
    pub(super) fn new(scope: LocalScope) -> Self {
        Self {
            identifiers: Identifiers::new(scope),
            flows: Flows::default(),
        }
    }

    fn own(&self, own: Hit) -> DualAddress {
        DualAddress {
            v4: self.identifiers.scope.own,
            v6: own.address(),
        }
    }

    fn peer(&self, peer: Hit) -> Option<DualAddress> {
        let v4 = self.identifiers.address_of(peer)?;
        let v6 = peer.address();
        Some(DualAddress { v4, v6 })
    }

    /// The peer that a packet between LSIs is for.
    fn destination(&self, packet: &[u8]) -> Option<Hit> {
        let octets: [u8; 4] = *packet.get(16..)?.first_chunk()?;
        self.identifiers.peer_at(Ipv4Addr::from(octets))
    }

    /// Notes a packet between tags, as an application has sent it.
    pub(super) fn note_sent(&mut self, packet: &[u8]) {
        if let Some(inner) = Inner::parse(packet) {
            self.flows.note_sent(&inner, Family::V6);
        }
    }

    /// The packet between tags that an application means, which has sent one between LSIs; or why there is none, and
    /// what the application is told.
    fn translate_sent(
        &mut self,
        own: Hit,
        packet: &[u8],
    ) -> Result<Vec<u8>, (Refusal, Option<IcmpNotice>)> {
        let peer = self.destination(packet).and_then(|peer| self.peer(peer));
        let peer = peer.ok_or((Refusal::NoPath, Some(IcmpNotice::HostUnreachable)))?;
        let mtu = self.identifiers.scope.mtu.saturating_sub(LONGER);
        if packet.len() as u64 > u64::from(mtu) {
            return Err((Refusal::TooBig, Some(IcmpNotice::TooBig { mtu })));
        }
        let translated = to_v6(packet, [self.own(own), peer]);
        let translated = translated.map_err(|_| (Refusal::Untranslated, None))?;
        if let Some(inner) = Inner::parse(&translated) {
            self.flows.note_sent(&inner, Family::V4);
        }
        Ok(translated)
    }

    /// A packet of a peer in the form that its receiver takes, if that is another one.
    fn translate_received(
        &mut self,
        now: Instant,
        packet: &[u8],
        ask: impl FnOnce(&Conversation) -> Family,
    ) -> Option<Vec<u8>> {
        let inner = Inner::parse(packet)?;
        let (own, peer) = (self.own(inner.destination), self.peer(inner.source)?);
        let family = self.flows.family_of(now, &inner, |key| {
            ask(&Conversation {
                protocol: key.protocol,
                own,
                own_port: key.own_port,
                peer,
                peer_port: key.peer_port,
            })
        });
        match family {
            Family::V6 => None,
            // What has no form in IPv4 is for nobody who speaks IPv4.
            Family::V4 => to_v4(packet, [peer, own]).ok(),
        }
    }
}

impl Host {
    /// A packet of this host's applications between LSIs.
    pub(super) fn handle_local_data(&mut self, now: Instant, packet: &[u8]) {
        let own = self.hit();
        let Some(local) = &mut self.local else {
            return self.outbox.refuse(Refusal::NotForUs);
        };
        if let Some(peer) = local.destination(packet).filter(|&peer| is_stand_in(peer)) {
            return self.queue_for_stand_in(now, peer, packet);
        }
        match local.translate_sent(own, packet) {
            Ok(translated) => self.handle_inner(now, &translated),
            Err((refusal, notice)) => {
                self.outbox.refuse(refusal);
                let about = Packet::parse(packet.to_vec().into());
                if let (Some(notice), Ok(about)) = (notice, about)
                    // The kernel takes no packet that names this host as its source.
                    && let router = about.header().ip.destination
                    && let Ok(error) = Packet::icmp_error(router, notice, &about)
                {
                    self.outbox.deliveries.push_back(error.to_bytes().to_vec());
                }
            }
        }
    }

    /// The next packet for this host's applications: between tags, or between LSIs if that is what its receiver
    /// uses. Where a peer has begun a conversation, `ask` says in which family this host has a socket for it.
    #[must_use]
    pub fn poll_delivery_for(
        &mut self,
        now: Instant,
        ask: impl FnOnce(&Conversation) -> Family,
    ) -> Option<Vec<u8>> {
        let packet = self.poll_delivery()?;
        let local = self.local.as_mut().filter(|_| !is_v4(&packet));
        let other = local.and_then(|local| local.translate_received(now, &packet, ask));
        Some(other.unwrap_or(packet))
    }

    /// A packet of this host's applications: IPv6 between tags, or IPv4 between LSIs.
    ///
    /// `now` is read once the packet is there, not before: timestamps of TCP are renewed by it.
    pub fn handle_data(&mut self, now: Instant, packet: &[u8]) {
        if is_v4(packet) {
            return self.handle_local_data(now, packet);
        }
        if let Some(local) = &mut self.local {
            local.note_sent(packet);
        }
        self.handle_inner(now, packet);
    }
}
