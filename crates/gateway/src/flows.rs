//! The tracked connections, and the parts that serve them: who is in the table, on which link, and how it leaves.
//!
//! A connection is entered, moved to another link, and seen off. Each step changes several parts: the
//! [table](crate::connections), the [service](crate::service), what waits for [interfaces](crate::release), the
//! [outbox](crate::event). This file keeps them in step. It goes by what [`Links`] says of links, and does not know
//! who has said that.
//!
//! What is done for a connection in between is in the files that call this one: `gateway.rs` lists them.

use crate::connections::{Connection, Connections};
use crate::custody::{DIRECTIONS, LastWords};
use crate::event::{Event, Outbox, Transmit};
use crate::limits::Limits;
use crate::links::{Direction, LinkId, LinkState, Links, StateSince};
use crate::mechanisms::path::{PathMechanismKind, SendReason};
use crate::passing::PassingPacket;
use crate::release::Releases;
use crate::service::Service;
use crate::tracking::{Admission, FlowIndex, FlowKey, Removed, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// The tracked connections and what serves them.
#[derive(Debug)]
pub(crate) struct Flows {
    pub(crate) limits: Limits,
    pub(crate) connections: Connections,
    pub(crate) service: Service,
    /// What waits for each interface.
    pub(crate) releases: Releases,
    pub(crate) outbox: Outbox,
}

impl Flows {
    /// No connections yet; those that come are served by a mechanism of `kind`.
    pub(crate) fn new(kind: PathMechanismKind, limits: Limits, seed: u64) -> Self {
        Self {
            limits,
            connections: Connections::new(&limits, seed),
            service: Service::new(kind, limits.held_in_all),
            releases: Releases::default(),
            outbox: Outbox::default(),
        }
    }

    /// Sets other caps.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.connections.set_bounds(&limits);
        self.service.set_cap(limits.held_in_all);
    }

    /// Whether nothing is tracked, and nothing is to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.service.kind() == PathMechanismKind::None && self.connections.len() == 0
    }

    // Who is in the table, and on which link.

    /// Enters the connection of a segment that belongs to no tracked one.
    ///
    /// Any segment will do, for connections may be older than the gateway; but not a lone RST, nor a segment
    /// that no host sends.
    pub(crate) fn admit(
        &mut self,
        links: &mut Links,
        passing: &PassingPacket<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Option<FlowIndex> {
        if tcp.has(TcpFlags::RST) || self.service.kind() == PathMechanismKind::None {
            return None;
        }
        let &PassingPacket {
            now,
            link,
            state,
            direction,
            packet,
        } = passing;
        let payload_len = packet.header().payload_len;
        let first_sight = TcpFlow::new().observe(now, direction, tcp, payload_len);
        if first_sight.is_err() {
            self.outbox.counters.odd_segments += 1;
            return None;
        }
        self.enter(links, now, link, state, key, TcpFlow::new())
    }

    /// Enters a connection, if there is room or another one gives way for it.
    pub(crate) fn enter(
        &mut self,
        links: &mut Links,
        now: Instant,
        link: LinkId,
        state: StateSince,
        key: FlowKey,
        tracked: TcpFlow,
    ) -> Option<FlowIndex> {
        let connection = Connection::new(tracked, link, state);
        let index = match self.connections.admit(now, key, connection) {
            Admission::Admitted(index) => index,
            Admission::Displaced(index, displaced) => {
                self.displaced(links, displaced);
                index
            }
            Admission::Refused => {
                self.outbox.counters.flows_refused += 1;
                return None;
            }
        };
        self.connections.note_link(link, index);
        Some(index)
    }

    /// Notes a packet of the connection: of its shelf in the table it is now the last to give way.
    pub(crate) fn note_life(&mut self, links: &mut Links, now: Instant, index: FlowIndex) {
        if let Some(displaced) = self.connections.touch(now, index) {
            self.displaced(links, displaced);
        }
    }

    fn displaced(&mut self, links: &mut Links, displaced: Removed<Connection>) {
        self.outbox.counters.flows_displaced += 1;
        self.release(links, displaced);
    }

    /// Moves a connection to `link`.
    pub(crate) fn move_flow(&mut self, links: &mut Links, index: FlowIndex, link: LinkId) {
        if let Some(before) = self.connections.move_to(index, link) {
            self.releases.forget_handshake(before, index);
            self.leave_link(links, before);
        }
    }

    /// Forgets what `link` owes if the connection that has left it was the last.
    fn leave_link(&mut self, links: &mut Links, link: LinkId) {
        if links.listens() && self.connections.on(link).next().is_none() {
            links.leave(link);
        }
    }

    // How a connection leaves.

    /// Removes a connection from the table, and sees it off.
    pub(crate) fn remove(&mut self, links: &mut Links, index: FlowIndex) {
        if let Some(removed) = self.connections.remove(index) {
            self.release(links, removed);
        }
    }

    /// Sees off a connection that has left the table.
    pub(crate) fn release(&mut self, links: &mut Links, removed: Removed<Connection>) {
        let Removed {
            index,
            key,
            flow: mut connection,
        } = removed;
        if let Some(words) = LastWords::of(&mut connection) {
            self.say_last_words(links, connection.link, words);
        }
        self.releases.forget_handshake(connection.link, index);
        if let Some(release) = self.releases.at_mut(connection.link.interface) {
            release.forget_share(key.far.ip(), index);
        }
        self.leave_link(links, connection.link);
        self.service.see_off(index, &key, &mut connection);
    }

    /// What was acknowledged ahead of a connection is to be given up, and the far host may lack it:
    /// both hosts hear that the connection is over.
    #[cold]
    pub(crate) fn end_pledged(&mut self, links: &mut Links, index: FlowIndex) {
        let connection = self.connections.at_mut(index).filter(|one| one.is_pledged);
        let words = connection.and_then(|one| Some((one.link, LastWords::of(one)?)));
        if let Some((link, words)) = words {
            self.say_last_words(links, link, words);
        }
    }

    /// A connection leaves the table, or its place. If the gateway has the only copy of what it has
    /// acknowledged, the connection cannot go on: both hosts are told.
    fn say_last_words(&mut self, links: &mut Links, link: LinkId, words: LastWords) {
        self.outbox.counters.resets += u64::from(words.resets.is_some());
        let is_down = links.state(link).map(|state| state.state) == Some(LinkState::Down);
        let is_kept = is_down && self.service.kind().holds_other_traffic();
        for (direction, packet) in DIRECTIONS.into_iter().zip(words.resets.iter().flatten()) {
            if is_kept && direction == Direction::ToLink {
                // A segment of TCP is kept however old it is.
                self.keep_other(Instant::ZERO, link, LinkState::Down, packet);
            } else {
                self.outbox.send(Transmit {
                    link,
                    direction,
                    packet: packet.clone(),
                    reason: SendReason::Reset,
                });
            }
        }
        // Whoever corrected the connection meanwhile may know that the segment is not needed: then
        // nobody is reset, but it is frozen no longer.
        if let Some(flow) = words.frozen {
            let is_reset = words.resets.is_some();
            self.outbox.tell(Event::Thawed { flow, is_reset });
        }
    }

    /// Has a packet that no mechanism recovers wait for its link.
    pub(crate) fn keep_other(
        &mut self,
        now: Instant,
        link: LinkId,
        state: LinkState,
        packet: &Packet,
    ) {
        let Self { limits, outbox, .. } = self;
        self.releases
            .keep_other(now, link, state, packet, limits, outbox);
    }
}
