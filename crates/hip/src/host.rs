//! A host: its associations, and what a driver sees of them.

mod closing;
mod exchange;
mod local;
mod opportunistic;
mod relay;
mod revival;
mod timers;
mod whereabouts;

#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod rekeying_tests;

use crate::addresses::{Path, PeerAddress};
use crate::association::{Association, Data, State, StateName};
use crate::beet::Inner;
use crate::config::{Admission, Config, Peer};
use crate::context::Context;
use crate::effort::{Checks, Source};
use crate::event::{Counters, Event, Failure, Outbox, Protocol, Reason, Refusal, Transmit};
use crate::identity::Identity;
use crate::rate::Answers;
use crate::recent;
use crate::responder::{Origin, Responder};
use crate::volume::{Readdressing, Volume};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use chacha20::ChaCha20Rng;
use core::net::{IpAddr, Ipv4Addr};
use local::LocalScopeState;
use opportunistic::Opportunistic;
pub use opportunistic::stand_in;
use outlast_base::time::Instant;
use outlast_wire::hip::{EspHeader, Hit, Message, PacketType, kind};
use rand_core::SeedableRng;
use whereabouts::Whereabouts;

/// An association, for a status page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct View {
    /// The peer.
    pub peer: Hit,
    /// The stand-in that the peer was asked for by, if its tag was not known.
    pub stand_in: Option<Hit>,
    /// The LSI that stands for the peer here.
    pub lsi: Option<Ipv4Addr>,
    /// The state.
    pub state: StateName,
    /// Why the last exchange failed.
    pub failure: Option<Failure>,
    /// The peer's addresses, the preferred one first.
    pub addresses: Vec<PeerAddress>,
    /// The SPI that this host receives under, and the one that it sends under.
    pub spis: Option<(u32, u32)>,
    /// Packets that wait for a path.
    pub waiting: usize,
    /// What went to the peer since the base exchange.
    pub sent: Volume,
    /// What came from the peer since the base exchange.
    pub received: Volume,
    /// How often a readdressing was complete since the base exchange.
    pub readdressings: u64,
    /// The last one.
    pub last_readdressing: Option<Readdressing>,
    /// When the keys for data were drawn.
    pub keys_since: Option<Instant>,
    /// How often keys for data were replaced since the base exchange.
    pub rekeyings: u64,
    /// How often the peer has not answered an offer of new keys.
    pub failed_rekeyings: u64,
    /// When this host's registration with the peer, a rendezvous server, ends.
    pub registered_until: Option<Instant>,
}

/// A host that speaks HIP.
#[derive(Debug)]
pub struct Host {
    config: Config,
    identity: Identity,
    random: ChaCha20Rng,
    peers: BTreeMap<Hit, Peer>,
    whereabouts: Whereabouts,
    locals: Vec<IpAddr>,
    responder: Responder,
    associations: BTreeMap<Hit, Association>,
    spis: BTreeMap<u32, Hit>,
    checks: Checks,
    /// The clients of a rendezvous server, and when their registration ends.
    clients: BTreeMap<Hit, Instant>,
    relayed: Answers,
    /// Calls of strangers keep nobody from telling where it has moved to.
    relayed_updates: Answers,
    local: Option<LocalScopeState>,
    opportunistic: Opportunistic,
    agenda: BTreeSet<(Instant, Reason, Hit)>,
    outbox: Outbox,
}

impl Host {
    /// A host without associations. The seed is drawn at random for each start, and is never used
    /// again.
    #[must_use]
    pub fn new(now: Instant, config: Config, identity: Identity, seed: [u8; 32]) -> Self {
        let mut random = ChaCha20Rng::from_seed(seed);
        Self {
            responder: Responder::new(now, &mut random),
            local: config.local_scope.map(LocalScopeState::new),
            config,
            identity,
            random,
            peers: BTreeMap::new(),
            whereabouts: Whereabouts::default(),
            locals: Vec::new(),
            associations: BTreeMap::new(),
            spis: BTreeMap::new(),
            checks: Checks::new(now),
            clients: BTreeMap::new(),
            relayed: Answers::default(),
            relayed_updates: Answers::default(),
            opportunistic: Opportunistic::default(),
            agenda: BTreeSet::new(),
            outbox: Outbox::default(),
        }
    }

    /// This host's tag.
    #[must_use]
    pub const fn hit(&self) -> Hit {
        self.identity.hit()
    }

    /// Replaces the peers that this host knows.
    pub fn set_peers(&mut self, peers: impl IntoIterator<Item = (Hit, Peer)>) {
        self.peers = peers.into_iter().collect();
        if let Some(LocalScopeState { identifiers, .. }) = &mut self.local {
            identifiers.set_configured(self.peers.iter().map(|(&hit, peer)| (hit, peer.lsi)));
            for &peer in self.associations.keys() {
                identifiers.know(peer);
            }
        }
        self.apply_bound();
        self.whereabouts.keep(&self.peers);
    }

    /// The LSI that stands for a peer here.
    fn lsi_of(&self, peer: Hit) -> Option<Ipv4Addr> {
        self.local.as_ref()?.identifiers.address_of(peer)
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// All associations, by the peer's tag.
    pub fn views(&self) -> impl Iterator<Item = View> {
        self.associations.iter().map(|(&peer, association)| {
            let session = association.any_session();
            View {
                peer,
                stand_in: self.opportunistic.stand_in_of(peer),
                lsi: self.lsi_of(peer),
                state: association.name(),
                failure: match association.state {
                    State::Failed { failure, .. } => Some(failure),
                    _ => None,
                },
                addresses: session
                    .map(|s| s.addresses.known.clone())
                    .unwrap_or_default(),
                spis: session.map(|s| (s.inbound.spi, s.outbound.spi)),
                waiting: association.waiting.len(),
                sent: session.map(|s| s.sent).unwrap_or_default(),
                received: session.map(|s| s.received).unwrap_or_default(),
                readdressings: session.map_or(0, |s| s.readdressings),
                last_readdressing: session.and_then(|s| s.last_readdressing),
                keys_since: session.map(|s| s.keys_since),
                rekeyings: session.map_or(0, |s| s.rekeyings),
                failed_rekeyings: session.map_or(0, |s| s.failed_rekeyings),
                registered_until: session.and_then(|s| s.registered_until),
            }
        })
    }

    /// Hosts that are registered here, and when their registrations end.
    pub fn registrations(&self, now: Instant) -> impl Iterator<Item = (Hit, Instant)> {
        let clients = self.clients.iter().map(|(&client, &ends)| (client, ends));
        clients.filter(move |(_, ends)| *ends > now)
    }

    /// The next packet to send.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.transmits.pop_front()
    }

    /// The next IPv6 packet between HITs for this host's applications.
    #[must_use]
    pub fn poll_delivery(&mut self) -> Option<Vec<u8>> {
        self.outbox.deliveries.pop_front()
    }

    /// The next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.events.pop_front()
    }

    /// When this host wants to be called, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Reason)> {
        self.agenda.first().map(|&(at, reason, _)| (at, reason))
    }

    /// This host's addresses have changed; the preferred one is first.
    ///
    /// Of more than the configuration's limit the first ones count, and the first one of each family.
    pub fn handle_addresses(&mut self, now: Instant, addresses: &[IpAddr]) {
        let limited = limited(addresses, self.config.limits.addresses);
        let has_changed = self.locals != limited;
        self.locals = limited;
        if !self.locals.is_empty() && has_changed {
            self.announce(now);
        }
    }

    /// The link is back: what waits is sent at once, and peers hear where this host is.
    pub fn handle_link(&mut self, now: Instant) {
        if !self.locals.is_empty() {
            self.announce(now);
        }
    }

    /// There is a way where there may have been none to `missed`, addresses of peers: what waits for an answer is
    /// sent again at once, and TCP connections with these peers move again.
    pub fn handle_route(&mut self, now: Instant, missed: &BTreeSet<IpAddr>) {
        let acts_on_tcp = self.config.wakes_connections;
        let peers: Vec<Hit> = self.associations.keys().copied().collect();
        for peer in peers {
            let Some((association, mut context)) = self.lend(now, peer) else {
                continue;
            };
            association.hurry(&context);
            if let Some(session) = association.session().filter(|_| acts_on_tcp) {
                let path = session.addresses.path(now, context.locals);
                if path.is_some_and(|path| missed.contains(&path.remote)) {
                    session.wake_connections(&mut context, now);
                }
            }
            self.settle(now, peer);
        }
    }

    /// Opens an association, unless there is one.
    pub fn connect(&mut self, now: Instant, peer: Hit) {
        if !self.associations.contains_key(&peer) {
            self.begin(now, peer, None);
        }
    }

    /// A packet of this host's applications: IPv6 between HITs.
    fn handle_inner(&mut self, now: Instant, packet: &[u8]) {
        let Some(inner) = Inner::parse(packet) else {
            return self.outbox.refuse(Refusal::Malformed);
        };
        let peer = inner.destination;
        if inner.source != self.hit() || peer == self.hit() {
            return self.outbox.refuse(Refusal::NotForUs);
        }
        let data = Data {
            next: inner.next,
            payload: inner.payload.to_vec(),
            handed_at: now,
        };
        match self
            .associations
            .get_mut(&peer)
            .map(|found| &mut found.state)
        {
            // Another incarnation need not wait for the end of this one (RFC 7401, section 4.4.4).
            None | Some(State::Closed { .. } | State::Closing { .. }) => {
                self.begin(now, peer, Some(data));
            }
            Some(State::Failed { .. }) => self.outbox.refuse(Refusal::NoPath),
            Some(_) => {
                self.enqueue(peer, data);
                self.settle(now, peer);
                self.trim(peer);
            }
        }
    }

    /// Puts data behind what waits; a retransmission takes the place of what it repeats.
    fn enqueue(&mut self, peer: Hit, data: Data) {
        if let Some(association) = self.associations.get_mut(&peer) {
            let acts_on_tcp = self.config.wakes_connections;
            let is_repeated =
                |earlier: &&mut Data| acts_on_tcp && recent::is_repetition(earlier, &data);
            match association.waiting.iter_mut().find(is_repeated) {
                Some(earlier) => *earlier = data,
                None => association.waiting.push_back(data),
            }
        }
    }

    /// Drops the oldest of the packets that still wait, if they are too many.
    fn trim(&mut self, peer: Hit) {
        let Some(association) = self.associations.get_mut(&peer) else {
            return;
        };
        while association.waiting.len() > self.config.limits.waiting {
            association.waiting.pop_front();
            self.outbox.refuse(Refusal::Overflow);
        }
    }

    /// A packet of the protocol 139 or 50 has arrived.
    ///
    /// `now` is read once the packet is there, not before: the clock of the peer's TCP is set by it.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        (source, destination): (IpAddr, IpAddr),
        protocol: Protocol,
        payload: &[u8],
    ) {
        let handled = match protocol {
            Protocol::Hip => self.handle_hip(now, (source, destination), payload),
            Protocol::Esp => self.handle_esp(now, payload),
        };
        if let Err(refusal) = handled {
            self.outbox.refuse(refusal);
        }
    }

    fn handle_esp(&mut self, now: Instant, payload: &[u8]) -> Result<(), Refusal> {
        let (header, _) = EspHeader::parse(payload).map_err(|_| Refusal::Malformed)?;
        let peer = *self.spis.get(&header.spi).ok_or(Refusal::UnknownSpi)?;
        let own = self.hit();
        let (association, mut context) = self.lend(now, peer).ok_or(Refusal::UnknownSpi)?;
        let session = association.session().ok_or(Refusal::State)?;
        let (next, payload) = session.open(&mut context, payload)?;
        let inner = Inner {
            source: peer,
            destination: own,
            next,
            payload: &payload,
        };
        let packet = inner.emit().ok_or(Refusal::Malformed)?;
        context.outbox.counters.opened += 1;
        context.outbox.deliveries.push_back(packet);
        self.confirm(peer);
        self.settle(now, peer);
        Ok(())
    }

    fn handle_hip(
        &mut self,
        now: Instant,
        (source, destination): (IpAddr, IpAddr),
        payload: &[u8],
    ) -> Result<(), Refusal> {
        let message = Message::parse(payload).map_err(|_| Refusal::Malformed)?;
        if !message.checksum_ok(source, destination) {
            return Err(Refusal::Checksum);
        }
        let path = Path {
            local: destination,
            remote: source,
            is_verified: false,
        };
        if message.receiver() != self.hit() && !self.answers_without_tag(&message) {
            return self.relay(now, &message, path);
        }
        if message.sender() == self.hit() {
            return Err(Refusal::NotForUs);
        }
        let is_unknown = |kind: u16| kind & 1 == 1 && !kind::CRITICAL.contains(&kind);
        if message
            .parameters()
            .any(|parameter| is_unknown(parameter.kind))
        {
            return Err(Refusal::Parameter);
        }
        let peer = message.sender();
        let handled = match message.kind() {
            PacketType::I1 => self.handle_i1(now, &message, path),
            PacketType::R1 => self.handle_r1(now, &message, path),
            PacketType::I2 => self.handle_i2(now, &message, path),
            PacketType::R2 => self.handle_r2(now, &message),
            PacketType::Update => self.handle_update(now, &message),
            PacketType::Notify => self.handle_notify(now, &message, path),
            PacketType::Close => self.handle_close(now, &message, path),
            PacketType::CloseAck => self.handle_close_ack(&message),
        };
        self.settle(now, peer);
        handled
    }

    fn handle_update(&mut self, now: Instant, message: &Message<'_>) -> Result<(), Refusal> {
        if message.find(kind::FROM).is_some() {
            match self.origin(message, None) {
                // The sender may have been seen at an address of a family that this host has not: its
                // locators count.
                Ok(_) | Err(Refusal::NoPath) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        let peer = message.sender();
        let (association, mut context) = self.lend(now, peer).ok_or(Refusal::State)?;
        let session = association.session().ok_or(Refusal::State)?;
        let aftermath = session.handle_update(&mut context, message)?;
        // An UPDATE shows as well as data that the peer has the R2.
        self.confirm(peer);
        if aftermath.registers {
            self.register(now, peer);
        }
        if aftermath.is_told && self.peers.get(&peer).is_some_and(|peer| peer.registers) {
            self.call_again(now);
        }
        Ok(())
    }

    /// Makes what peers have not heard of this host's addresses due at once: a rendezvous server knows
    /// the new ones now. Where both hosts have moved, the last one that its server knows gets through.
    fn call_again(&mut self, now: Instant) {
        let peers: Vec<Hit> = self.associations.keys().copied().collect();
        for peer in peers {
            if self.relays(peer).is_empty() {
                continue;
            }
            let Some((association, context)) = self.lend(now, peer) else {
                continue;
            };
            if let Some(session) = association.session() {
                session.updates.hurry_readdressing(&context);
            }
            self.settle(now, peer);
        }
    }

    /// Tells every peer where this host is, at once.
    fn announce(&mut self, now: Instant) {
        let peers: Vec<Hit> = self.associations.keys().copied().collect();
        for peer in peers {
            let relays = self.relays(peer);
            let Some((association, mut context)) = self.lend(now, peer) else {
                continue;
            };
            // An exchange's puzzle was for another address, perhaps.
            association.hurry(&context);
            if let Some(session) = association.session() {
                session.readdress(&mut context, &relays);
            }
            self.settle(now, peer);
        }
    }

    /// The rendezvous servers of a peer.
    fn relays(&self, peer: Hit) -> Vec<IpAddr> {
        self.peers
            .get(&peer)
            .map(|peer| peer.rendezvous.clone())
            .unwrap_or_default()
    }

    /// An association, and what it needs to act.
    fn lend(&mut self, now: Instant, peer: Hit) -> Option<(&mut Association, Context<'_>)> {
        let (_, associations, context) = self.parts(now);
        Some((associations.get_mut(&peer)?, context))
    }

    /// The Responder, the table, and what both need to act.
    fn parts(
        &mut self,
        now: Instant,
    ) -> (&mut Responder, &mut BTreeMap<Hit, Association>, Context<'_>) {
        let context = Context {
            now,
            identity: &self.identity,
            config: &self.config,
            random: &mut self.random,
            locals: &self.locals,
            spis: &self.spis,
            checks: &mut self.checks,
            outbox: &mut self.outbox,
        };
        (&mut self.responder, &mut self.associations, context)
    }

    /// Whether the policy lets this peer open an association.
    fn admits(&self, peer: Hit) -> bool {
        match &self.config.admission {
            Admission::Anyone => true,
            Admission::Peers => self.peers.contains_key(&peer),
            Admission::Listed(listed) => listed.contains(&peer) || self.peers.contains_key(&peer),
        }
    }

    /// Sends what waits, and brings table, SPIs and agenda in line with an association.
    fn settle(&mut self, now: Instant, peer: Hit) {
        self.flush(now, peer);
        let unused_at = self.unused_at(peer);
        let Some(association) = self.associations.get_mut(&peer) else {
            return;
        };
        association.revive_if_silent(now, &self.config.retransmission);
        let spis = association.current_spis();
        if spis != association.spis {
            for old in association.spis.iter().filter(|old| !spis.contains(old)) {
                self.spis.remove(old);
            }
            self.spis.extend(spis.iter().map(|&spi| (spi, peer)));
            association.spis = spis;
        }
        let deadline = association.deadline(now, unused_at);
        if deadline != association.armed {
            if let Some((at, reason)) = association.armed {
                self.agenda.remove(&(at, reason, peer));
            }
            self.agenda
                .extend(deadline.map(|(at, reason)| (at, reason, peer)));
            association.armed = deadline;
        }
    }

    /// The time at which an association is closed that is not used until then. A registration needs its association for
    /// as long as it lasts, however little that is used.
    fn unused_at(&self, peer: Hit) -> Option<Instant> {
        let session = self.associations.get(&peer)?.any_session()?;
        if self.peers.get(&peer).is_some_and(|peer| peer.registers) {
            return None;
        }
        let unused = session.last_used + self.config.unused_after;
        let registered_until = self.clients.get(&peer);
        Some(registered_until.map_or(unused, |&until| unused.max(until)))
    }

    fn flush(&mut self, now: Instant, peer: Hit) {
        let Some((association, mut context)) = self.lend(now, peer) else {
            return;
        };
        let Association { state, waiting, .. } = association;
        let (State::R2Sent { session, .. } | State::Established { session }) = state else {
            return;
        };
        session.release(&mut context);
        while let Some(data) = waiting.pop_front() {
            let Some(data) = session.admit(data) else {
                continue;
            };
            if let Err(data) = session.send_data(&mut context, data) {
                waiting.push_front(data);
                break;
            }
        }
        if session.needs_new_keys(&context) {
            session.rekey(&mut context);
        }
    }

    /// Forgets an association, and knows from then on where the peer was.
    fn forget(&mut self, peer: Hit) {
        self.note_whereabouts(peer);
        if let Some(association) = self.associations.remove(&peer) {
            for spi in &association.spis {
                self.spis.remove(spi);
            }
            if let Some((at, reason)) = association.armed {
                self.agenda.remove(&(at, reason, peer));
            }
        }
        if let Some(local) = &mut self.local
            && !self.peers.contains_key(&peer)
        {
            local.identifiers.forget(peer);
        }
    }

    /// Puts an association into another state; what waits stays.
    fn set_state(&mut self, peer: Hit, state: State) {
        self.note_whereabouts(peer);
        match self.associations.get_mut(&peer) {
            Some(association) => association.state = state,
            None => {
                self.associations.insert(peer, Association::new(state));
                if let Some(local) = &mut self.local {
                    local.identifiers.know(peer);
                }
            }
        }
    }

    /// The peer is known to have the R2: the association is established.
    fn confirm(&mut self, peer: Hit) {
        let known = self.associations.get(&peer);
        if !known.is_some_and(|known| matches!(known.state, State::R2Sent { .. })) {
            return;
        }
        if let Some(association) = self.associations.remove(&peer) {
            let Association { state, .. } = association;
            let state = match state {
                State::R2Sent { session, .. } => State::Established { session },
                other => other,
            };
            let association = Association {
                state,
                ..association
            };
            self.associations.insert(peer, association);
        }
    }
}

/// The first `limit` addresses. If all of them are of one family and others are not, the first one of the other
/// family takes the last place: peers may have no way but that.
fn limited(addresses: &[IpAddr], limit: usize) -> Vec<IpAddr> {
    let (first, rest) = addresses.split_at(limit.min(addresses.len()));
    let mut limited = first.to_vec();
    let is_v6 = first.first().is_some_and(IpAddr::is_ipv6);
    let is_other = |address: &&IpAddr| address.is_ipv6() != is_v6;
    if limit > 1
        && !first.iter().any(|address| is_other(&address))
        && let Some(other) = rest.iter().find(is_other)
        && let Some(last) = limited.last_mut()
    {
        *last = *other;
    }
    limited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_family_is_lost_where_addresses_are_many() {
        let v4 = |last: u8| IpAddr::from([192, 0, 2, last]);
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        let all = [v4(1), v4(2), v4(3), v6];
        assert_eq!(limited(&all, 4), all);
        assert_eq!(limited(&all, 3), [v4(1), v4(2), v6]);
        assert_eq!(limited(&all[..3], 2), [v4(1), v4(2)]);
        assert_eq!(limited(&all, 1), [v4(1)]);
        assert_eq!(limited(&[v6, v4(1), v4(2)], 2), [v6, v4(1)]);
        assert!(limited(&[], 2).is_empty());
    }
}
