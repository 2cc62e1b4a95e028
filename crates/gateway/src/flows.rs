//! The tracked connections, and the parts that serve them: what becomes of a connection.
//!
//! A connection is entered, served by its mechanism, moved to another link, and seen off. Each step changes
//! several parts: the [table](crate::connections), the [service](crate::service), what waits for
//! [interfaces](crate::release), the [outbox](crate::event). This file keeps them in step. It goes by what
//! [`Links`] says of links, and does not know who has said that.

use crate::connections::{Connection, Connections, Entry};
use crate::custody::{self, DIRECTIONS, LastWords};
use crate::event::{Event, Outbox, Transmit};
use crate::limits::Limits;
use crate::links::{Direction, Indicator, InterfaceId, LinkId, LinkState, Links, Sign, StateSince};
use crate::mechanisms::path::{
    Context, HoldRule, Outgoing, PathMechanism, PathMechanismKind, SendReason, Standing,
    TakeReason, Verdict, Waiting,
};
use crate::passing::PassingPacket;
use crate::release::{INITIAL_BURST, Releases, Turn};
use crate::service::{Service, Surroundings, Wishes};
use crate::tracking::{
    Admission, FlowIndex, FlowKey, Observation, PATIENCE, Phase, Removed, TcpFlow,
};
use alloc::collections::BTreeSet;
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// How often a mechanism may find, in one turn, that what it has waited for is void: more often than any does.
const POLLS_IN_A_TURN: usize = 8;

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

    // Mechanisms.

    /// Calls a connection's mechanism, then gives it the turn and the place that it wants.
    pub(crate) fn with_mechanism<R>(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        link: StateSince,
        call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.service.take_stock(&self.connections);
        let mut entry = self.connections.entry(index)?;
        let (limits, outbox) = (&self.limits, &mut self.outbox);
        let surroundings = surroundings((now, link), &entry, links, &self.releases);
        let (result, wishes) =
            self.service
                .serve(&mut entry, surroundings, limits, outbox, call)?;
        give_turn(&entry, wishes, &mut self.releases);
        if wishes.changes_shelf {
            self.note_life(links, now, index);
        }
        Some(result)
    }

    /// Asks a connection's mechanism what becomes of a packet, if the connection `is_served`, and notes for the
    /// link's pace that the packet crosses.
    ///
    /// Returns `None` if there was no mechanism to ask.
    pub(crate) fn serve_crossing(
        &mut self,
        links: &mut Links,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        (is_served, observation): (bool, Observation),
    ) -> Option<Verdict> {
        let &PassingPacket {
            now,
            state,
            direction,
            packet,
            ..
        } = passing;
        let (limits, outbox, releases) = (&self.limits, &mut self.outbox, &mut self.releases);
        let newly_acked = observation.newly_acked;
        if !is_served {
            let mut entry = self.connections.entry(index)?;
            passing.note_crossing(&mut entry, false, (newly_acked, 0), releases);
            return None;
        }
        self.service.take_stock(&self.connections);
        let mut entry = self.connections.entry(index)?;
        self.service.wake(entry.connection);
        if direction == Direction::ToLink
            && observation.new_data
            && let Some(release) = releases.at_mut(passing.link.interface)
        {
            release.note_data(now, entry.far_host(), index);
        }
        let surroundings = surroundings((now, state), &entry, links, releases);
        let call = |mechanism: &mut dyn PathMechanism, cx: &mut Context<'_>| {
            let verdict = mechanism.handle_packet(cx, direction, packet, observation);
            (verdict, *cx.arrived)
        };
        let served = self
            .service
            .serve(&mut entry, surroundings, limits, outbox, call);
        let Some(((verdict, arrived), wishes)) = served else {
            passing.note_crossing(&mut entry, true, (newly_acked, 0), releases);
            return None;
        };
        give_turn(&entry, wishes, releases);
        let passes = verdict == Verdict::Pass;
        passing.note_crossing(&mut entry, passes, (newly_acked, arrived), releases);
        // The segment's wait in the gateway is no part of the link's round trip.
        match verdict {
            Verdict::Taken(TakeReason::BehindKept) => entry.connection.tracked.rtt.discard(),
            Verdict::Taken(TakeReason::AwaitsShare) => entry.connection.tracked.note_wait(packet),
            _ => {}
        }
        if wishes.changes_shelf {
            self.note_life(links, now, index);
        }
        Some(verdict)
    }

    /// Gives the connection a mechanism, unless it has one.
    pub(crate) fn wake_mechanism(&mut self, index: FlowIndex) {
        if let Some(connection) = self.connections.at_mut(index) {
            self.service.wake(connection);
        }
    }

    /// Frees memory of a connection that is idle.
    pub(crate) fn rest(&mut self, now: Instant, index: FlowIndex) {
        if let Some(mut entry) = self.connections.entry(index) {
            self.service.rest(now, &mut entry);
        }
    }

    // Who is in the table.

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
    fn enter(
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

    /// Enters a connection that another gateway hands over. Nobody gives way for it.
    pub(crate) fn admit_from_elsewhere(
        &mut self,
        links: &mut Links,
        now: Instant,
        (link, state): (LinkId, StateSince),
        flow: FlowKey,
        tracked: TcpFlow,
    ) -> Option<FlowIndex> {
        if self.connections.len() >= self.limits.flows {
            self.outbox.counters.flows_refused += 1;
            return None;
        }
        self.enter(links, now, link, state, flow, tracked)
    }

    /// A connection that another gateway has handed over crosses on `link` from now on.
    pub(crate) fn place_import(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        (link, state): (LinkId, StateSince),
    ) {
        self.move_flow(links, index, link);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.known_link_state = state;
            connection.is_proven = true;
        }
        self.wake_mechanism(index);
        self.note_life(links, now, index);
    }

    /// Somebody who has tracked a connection meanwhile knows how it is, and that it crosses on `link`.
    fn correct(
        &mut self,
        links: &mut Links,
        now: Instant,
        link: LinkId,
        state: StateSince,
        index: FlowIndex,
        tracked: TcpFlow,
    ) {
        let known = self.connections.at(index);
        if known.is_some_and(|known| custody::is_another(&known.tracked, &tracked)) {
            self.end_for_another(links, now, index, state);
        }
        self.move_flow(links, index, link);
        let Some(connection) = self.connections.at_mut(index) else {
            return;
        };
        if !connection.is_pledged || tracked.phase != Phase::Opening {
            connection.tracked = tracked;
        }
        connection.is_proven |= tracked.phase != Phase::Opening;
        if connection.known_link_state.state != state.state {
            self.change_link_of(links, now, index, state);
        }
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

    // Links that go and come.

    /// Tells a connection's mechanism that the connection's link is in another state.
    pub(crate) fn change_link_of(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        state: StateSince,
    ) {
        if let Some(entry) = self.connections.entry(index) {
            let (far_host, interface) = (entry.far_host(), entry.interface());
            let connection = entry.connection;
            connection.known_link_state = state;
            connection.departed = 0;
            // What was on its way is answered late, or by what the gateway sends.
            connection.tracked.rtt.discard();
            self.releases
                .change_link(now, interface, (far_host, index), state.state);
        }
        self.with_mechanism(links, now, index, state, |mechanism, cx| {
            mechanism.handle_link(cx);
        });
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

    // Who has a connection's place, and how one that loses it ends.

    /// Gives the place of the connection at `index` to its rival, if nothing is lost by that.
    #[cold]
    pub(crate) fn give_place_to_rival(
        &mut self,
        links: &mut Links,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
    ) {
        let &PassingPacket { now, state, .. } = passing;
        if !self.may_yield(links, now, index) {
            return;
        }
        self.end_for_another(links, now, index, state);
        if let Some(connection) = self.connections.at_mut(index)
            && let Some(contest) = &mut connection.contest
        {
            contest.yield_to_rival(&mut connection.tracked);
        }
    }

    /// Gives the first connection its place back.
    #[cold]
    pub(crate) fn take_place_back(
        &mut self,
        links: &mut Links,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
    ) {
        self.end_for_another(links, passing.now, index, passing.state);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.is_proven = true;
        }
    }

    /// Whether a connection of which nothing was seen for [`PATIENCE`] gives its place to another. One of
    /// which something is kept does so only if its far host could have answered all that time.
    fn may_yield(&self, links: &Links, now: Instant, index: FlowIndex) -> bool {
        let Some(connection) = self.connections.at(index) else {
            return false;
        };
        let could_answer = || {
            let known = connection.known_link_state;
            let is_up = known.state == LinkState::Up && now.since(known.since) >= PATIENCE;
            is_up && !links.is_suspected(connection.link)
        };
        let is_kept = connection.held.0 > 0 || connection.is_pledged;
        connection.tracked.phase == Phase::Closed || !is_kept || could_answer()
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

    /// Another connection has the ports of the one at `index`.
    fn end_for_another(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        state: StateSince,
    ) {
        self.end_pledged(links, index);
        self.with_mechanism(links, now, index, state, |mechanism, cx| {
            mechanism.release(cx.budget);
        });
        self.begin_anew(links, index);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.forget_offers();
        }
    }

    /// Another connection has this one's addresses and ports now: forgets it, and begins anew.
    pub(crate) fn begin_anew(&mut self, links: &mut Links, index: FlowIndex) {
        self.end_pledged(links, index);
        if let Some(mut entry) = self.connections.entry(index) {
            self.service.begin_anew(&mut entry, &mut self.outbox);
            self.releases.forget_handshake(entry.connection.link, index);
        }
    }

    /// The far host acknowledges what was never seen here. If the connection is frozen here, it has
    /// gone on elsewhere, or while nobody ran here: it is the hosts' own again, and is met anew. The far host
    /// is believed only when it was given the segment and had time to acknowledge that.
    pub(crate) fn note_gone_on(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        tcp: &TcpHeader,
    ) {
        let Some(connection) = self.connections.at(index) else {
            return;
        };
        if !custody::may_have_gone_on(connection, tcp) {
            return;
        }
        let Some(state) = links.state(connection.link) else {
            return;
        };
        let is_believed = self.with_mechanism(links, now, index, state, |mechanism, cx| {
            let mechanism = mechanism.zero_window_ack();
            mechanism.is_some_and(|mechanism| mechanism.doubt(cx))
        });
        if is_believed != Some(true) {
            return;
        }
        if let Some(flow) = self.connections.key(index) {
            self.release_frozen(links, now, flow);
        }
        self.remove(links, index);
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

    /// The far host has acknowledged the segment where this gateway does not see it: the
    /// connection is the hosts' own again.
    pub(crate) fn release_frozen(&mut self, links: &mut Links, now: Instant, flow: FlowKey) {
        if let Some(index) = self.connections.find(&flow)
            && let Some(connection) = self.connections.at(index)
            && connection.standing == Standing::Frozen
            && let Some(state) = links.state(connection.link)
        {
            self.with_mechanism(links, now, index, state, |mechanism, cx| {
                mechanism.release(cx.budget);
            });
        }
    }

    // What goes out.

    /// Sends what waits, connection by connection, as far as the pace of each link allows.
    pub(crate) fn send_in_turn(&mut self, links: &mut Links, now: Instant) {
        for place in 0..self.releases.len() {
            while let Some(taken) = self.releases.next_turn(place, now) {
                let len = match taken.turn {
                    Turn::Handshakes => self.releases.send_handshakes(
                        place,
                        now,
                        &mut self.connections,
                        &mut self.outbox,
                    ),
                    Turn::Others => {
                        let (links, age) = (&*links, self.limits.other_age);
                        let is_up = |link| links.is_up(link);
                        self.releases
                            .send_other(place, now, age, is_up, &mut self.outbox)
                    }
                    Turn::Flow(index, waiting) => {
                        self.send_for_flow(links, now, index, waiting, place)
                    }
                };
                self.releases.charge(place, now, taken, len);
            }
        }
    }

    /// Sends one packet of a connection; returns its length in bytes, zero if there is none to send.
    ///
    /// The connection may be gone by now, or have moved to another interface and have its turn there.
    fn send_for_flow(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        waiting: Waiting,
        place: usize,
    ) -> u32 {
        let Some(link) = self.connections.at(index).map(|one| one.link) else {
            return 0;
        };
        if Some(link.interface) != self.releases.interface(place) {
            return 0;
        }
        let Some(state) = links.state(link) else {
            return 0;
        };
        let Some(outgoing) = self.poll_mechanism(links, now, index, state) else {
            return 0;
        };
        let has_standing_queue = self.note_sent(links, now, (link, index), &outgoing);
        let len = outgoing.packet.total_len();
        self.transmit(now, link, outgoing);
        if let Some(release) = self.releases.at_mut(link.interface) {
            release.charge_connection(now, waiting, len, has_standing_queue);
        }
        len
    }

    /// The next packet of a connection. Its mechanism may find that what it has waited for is void, and wait for
    /// something else; but one that goes on waiting with nothing to send loses its turn, lest all others wait
    /// for it for ever.
    fn poll_mechanism(
        &mut self,
        links: &mut Links,
        now: Instant,
        index: FlowIndex,
        state: StateSince,
    ) -> Option<Outgoing> {
        for _ in 0..POLLS_IN_A_TURN {
            let outgoing = self.with_mechanism(links, now, index, state, |mechanism, cx| {
                mechanism.poll_transmit(cx)
            });
            if let Some(outgoing) = outgoing.flatten() {
                return Some(outgoing);
            }
            let interface = self.connections.at(index)?.link.interface;
            if !self.releases.at_mut(interface)?.has_turn(index) {
                return None;
            }
        }
        debug_assert!(false, "a mechanism waits with nothing to send");
        let interface = self.connections.at(index)?.link.interface;
        let far_host = self.connections.key(index)?.far.ip();
        self.releases
            .at_mut(interface)?
            .take_turn_back(index, far_host);
        None
    }

    /// A connection's mechanism sends something. Returns whether the connection has filled the link's queue.
    fn note_sent(
        &mut self,
        links: &mut Links,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        outgoing: &Outgoing,
    ) -> bool {
        let Some(entry) = self.connections.entry(index) else {
            return false;
        };
        let far_host = entry.far_host();
        let connection = entry.connection;
        let packet = &outgoing.packet;
        if outgoing.direction == Direction::ToLink {
            if packet.sequence_len() > 0 {
                let parts = (&connection.tracked, &mut connection.silence);
                let silent = links.note_repetition(now, (link, index), parts);
                self.outbox.tell_silent(silent);
            }
            self.releases
                .note_departure(now, (far_host, index), connection, packet);
            if let Some(release) = self.releases.at_mut(link.interface) {
                release.ask(now, far_host, connection.tracked.rtt.patience());
            }
        }
        match outgoing.reason {
            SendReason::Question => connection.silence.note_probe(now),
            SendReason::Share => connection.tracked.note_first_departure(now, packet),
            _ => {}
        }
        // Who has filled the link's queue has more under way than a connection begins with (RFC 6928).
        let near = &connection.tracked.near;
        u64::from(near.next.distance_from(near.acked).unsigned_abs()) > INITIAL_BURST
    }

    pub(crate) fn probe(&mut self, now: Instant, link: LinkId, index: FlowIndex) {
        let Some(Entry {
            key, connection, ..
        }) = self.connections.entry(index)
        else {
            return;
        };
        let near_host = connection.silence.near_host;
        let packet = near_host.keep_alive(&key, &connection.tracked);
        connection.silence.note_probe(now);
        self.outbox.counters.probes += 1;
        let reason = SendReason::Probe;
        self.transmit_to_link(now, link, packet, reason);
    }

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

    fn transmit_to_link(&mut self, now: Instant, link: LinkId, packet: Packet, reason: SendReason) {
        self.releases
            .transmit_to_link((now, link), packet, reason, &mut self.outbox);
    }

    fn transmit(&mut self, now: Instant, link: LinkId, outgoing: Outgoing) {
        self.releases
            .transmit((now, link), outgoing, &mut self.outbox);
    }

    /// Whether nothing is tracked, and nothing is to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.service.kind() == PathMechanismKind::None && self.connections.len() == 0
    }

    /// Whether the far host has not acknowledged what the near host has begun with.
    fn awaits_answer(&self, index: FlowIndex) -> bool {
        let connection = self.connections.at(index);
        self.service.obeys(HoldRule::Handshakes)
            && connection.is_some_and(|connection| connection.tracked.near.has_outstanding())
    }

    // What signs of links bring about.

    /// Carries out a sign: the link went down or came up.
    pub(crate) fn change_link(&mut self, links: &mut Links, now: Instant, sign: Sign) {
        self.outbox.tell(Event::Link(sign.event()));
        let behind = self.connections.behind(sign.link);
        if sign.state == LinkState::Up {
            self.welcome(now, sign.link, sign.why, &behind);
        }
        for (link, index) in behind {
            let (Some(connection), Some(state)) = (self.connections.at(index), links.state(link))
            else {
                continue;
            };
            if connection.known_link_state.state != state.state {
                let (since, by) = (sign.since, sign.why);
                self.change_link_of(links, now, index, StateSince { since, by, ..state });
            }
        }
        self.send_in_turn(links, now);
    }

    /// A link was down and is up, without anybody having said so meanwhile: the mechanisms of
    /// `flows` are told both changes.
    pub(crate) fn return_of(
        &mut self,
        links: &mut Links,
        now: Instant,
        flows: &[(LinkId, FlowIndex)],
        signs: [Sign; 2],
    ) {
        for sign in signs {
            self.outbox.tell(Event::Link(sign.event()));
        }
        let [_, up] = signs;
        self.welcome(now, up.link, up.why, flows);
        for &(own, index) in flows {
            // A peer that is down by itself stays so.
            if links.is_up(own) {
                for sign in signs {
                    self.change_link_of(links, now, index, sign.state());
                }
            }
        }
    }

    /// Prepares the pace of `link`, which is up again, for the connections `behind` it.
    fn welcome(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        behind: &[(LinkId, FlowIndex)],
    ) {
        let connections = &self.connections;
        let round_trips = behind
            .iter()
            .filter_map(|(_, index)| Some(&connections.at(*index)?.tracked.rtt));
        self.releases.welcome(now, link, by, round_trips);
    }

    // Packets that no mechanism serves.

    /// A packet that no mechanism knows how to recover waits while the link is down.
    pub(crate) fn handle_other(&mut self, passing: &PassingPacket<'_>) -> Verdict {
        let &PassingPacket {
            now,
            link,
            state,
            direction,
            packet,
        } = passing;
        if direction == Direction::FromLink || !self.service.kind().holds_other_traffic() {
            return Verdict::Pass;
        }
        if state.state == LinkState::Up {
            // Nothing that is fresh waits behind what is old.
            self.releases.pass_other(link, packet, &mut self.outbox);
            return Verdict::Pass;
        }
        self.keep_other(now, link, state.state, packet);
        Verdict::Taken(TakeReason::LinkDown)
    }

    /// A SYN or SYN-ACK of a connection that no mechanism serves yet.
    pub(crate) fn handle_opening(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
    ) -> Verdict {
        if passing.direction == Direction::FromLink || !self.service.kind().holds_other_traffic() {
            return Verdict::Pass;
        }
        if !self.awaits_answer(index) {
            return self.handle_other(passing);
        }
        self.releases
            .pass_opening(passing, index, &self.limits, &mut self.outbox)
    }

    /// A segment with data of a connection whose far host was not heard. If its beginning was not seen
    /// either, it waits for the link, or is remembered in case that the link is silent; and nothing but
    /// that is done for the connection.
    pub(crate) fn handle_one_sided(
        &mut self,
        links: &mut Links,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
    ) -> Verdict {
        let &PassingPacket {
            link,
            direction,
            packet,
            ..
        } = passing;
        let is_data = direction == Direction::ToLink && packet.sequence_len() > 0;
        let Some(connection) = self.connections.at_mut(index) else {
            return Verdict::Pass;
        };
        if !is_data || !self.service.kind().holds_other_traffic() || !connection.is_one_sided() {
            return Verdict::Pass;
        }
        if let Some(tcp) = packet.tcp() {
            links.watch(link);
            connection.silence.near_host.hear(tcp);
        }
        let listens = links.listens();
        self.releases
            .pass_one_sided(passing, index, listens, &self.limits, &mut self.outbox)
    }

    /// The link dropped a SYN or SYN-ACK with all that it had been given. Returns whether its
    /// connection is known, and waits for the answer.
    pub(crate) fn handle_opening_drop(
        &mut self,
        now: Instant,
        link: LinkId,
        packet: &Packet,
    ) -> bool {
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
        let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
            .filter(|_| is_syn)
            .and_then(|key| self.connections.find(&key))
            .filter(|index| self.awaits_answer(*index));
        let Some((index, connection)) = index.and_then(|i| Some((i, self.connections.at(i)?)))
        else {
            return false;
        };
        if connection.link.interface != link.interface {
            return false;
        }
        self.releases.keep_dropped_opening(
            now,
            (index, connection),
            packet,
            &self.limits,
            &mut self.outbox,
        );
        true
    }

    pub(crate) fn handle_segment_drop(&mut self, links: &mut Links, now: Instant, packet: &Packet) {
        let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
            .and_then(|key| self.connections.find(&key));
        let Some((index, connection)) = index.and_then(|i| Some((i, self.connections.at(i)?)))
        else {
            return;
        };
        // The flow may have moved to another link since.
        let state = links.state(connection.link);
        if let Some(state) = state.filter(|_| connection.was_established()) {
            self.wake_mechanism(index);
            self.with_mechanism(links, now, index, state, |mechanism, cx| {
                mechanism.handle_drop(cx, packet);
            });
        }
    }

    /// Handshakes whose answer was not seen in time have their turn again; so has the question for the far
    /// host of a one-sided connection.
    pub(crate) fn repeat_handshakes(&mut self, links: &mut Links, now: Instant) {
        let (connections, links) = (&self.connections, &links);
        self.releases.repeat_handshakes(now, |index, asked_at| {
            let connection = connections.at(index);
            connection.is_some_and(|one| links.is_quiet(one.link, asked_at))
        });
        let gap = links.probe_gap();
        while let Some(index) = self.releases.next_to_probe(now, gap) {
            if let Some(link) = self.connections.at(index).map(|one| one.link) {
                self.probe(now, link, index);
            }
        }
    }

    // Connections that somebody else has tracked.

    /// Links of `interface` that are down, or for which something waits or is nowhere else.
    pub(crate) fn links_at_work(&self, links: &Links, interface: InterfaceId) -> BTreeSet<LinkId> {
        let mut at_work = BTreeSet::new();
        let release = self.releases.at(interface);
        for (link, index) in self
            .connections
            .iter_behind(LinkId::of_interface(interface))
        {
            if at_work.contains(&link) {
                continue;
            }
            let state = links.state(link);
            let is_down = state.is_some_and(|link| link.state == LinkState::Down);
            let waits = self.connections.at(index).is_some_and(|connection| {
                let mechanism = connection.mechanism.as_ref();
                let waits = mechanism.is_some_and(|m| m.waiting().is_some());
                let opens = release.is_some_and(|s| s.handshakes.is_at_work(index));
                waits || opens || connection.deadline.is_some() || connection.is_pledged
            });
            if is_down || waits {
                at_work.insert(link);
            }
        }
        at_work.extend(release.into_iter().flat_map(|s| s.others.links()));
        at_work
    }

    /// Shows a connection's mechanism the last acknowledgement that its far host has sent before it was known.
    pub(crate) fn remember(
        &mut self,
        links: &mut Links,
        now: Instant,
        key: &FlowKey,
        acknowledgement: &Packet,
    ) {
        let Some(index) = self.connections.find(key) else {
            return;
        };
        let Some(connection) = self.connections.at(index) else {
            return;
        };
        let (state, phase) = (connection.known_link_state, connection.tracked.phase);
        let near = &connection.tracked.near;
        let is_last = acknowledgement
            .tcp()
            .is_some_and(|tcp| !tcp.ack.after(near.next) && acknowledgement.sequence_len() == 0);
        if phase != Phase::Established || !connection.is_proven || !is_last {
            return;
        }
        let says_nothing = Observation {
            new_data: false,
            repeated: false,
            newly_acked: 0,
            begins_anew: false,
        };
        self.wake_mechanism(index);
        // It has passed, whatever would become of it now.
        let _ = self.with_mechanism(links, now, index, state, |mechanism, cx| {
            mechanism.handle_packet(cx, Direction::FromLink, acknowledgement, says_nothing)
        });
    }

    /// Takes over a connection that somebody else has tracked, or corrects one that is known.
    pub(crate) fn adopt(
        &mut self,
        links: &mut Links,
        now: Instant,
        link: LinkId,
        key: FlowKey,
        tracked: TcpFlow,
    ) {
        let Some(state) = links.state(link) else {
            return;
        };
        if self.service.kind() == PathMechanismKind::None {
            return;
        }
        let index = match self.connections.find(&key) {
            Some(index) => {
                self.correct(links, now, link, state, index, tracked);
                Some(index)
            }
            None => self.enter(links, now, link, state, key, tracked),
        };
        if let Some(index) = index {
            self.note_life(links, now, index);
        }
    }
}

/// What a connection's mechanism sees of its link, which is in the state `link`.
fn surroundings(
    (now, link): (Instant, StateSince),
    entry: &Entry<'_>,
    links: &Links,
    releases: &Releases,
) -> Surroundings {
    let (connection, interface) = (&*entry.connection, entry.interface());
    let known = connection.known_link_state;
    let link = match link.state == known.state {
        true => known,
        false => link,
    };
    Surroundings {
        now,
        link,
        is_suspected: links.is_suspected(connection.link),
        is_paced: releases.is_paced(now, interface, link.since),
        allotment: releases.allotment(interface, entry.far_host(), entry.index),
    }
}

/// Gives a connection the turn that its mechanism wants.
fn give_turn(entry: &Entry<'_>, wishes: Wishes, releases: &mut Releases) {
    if let Some(waiting) = wishes.turn
        && let Some(release) = releases.at_mut(entry.interface())
    {
        release.give_flow_a_turn(entry.index, entry.far_host(), waiting);
    }
}
