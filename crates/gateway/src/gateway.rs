//! A gateway at one end of disconnecting links.
//!
//! It is shown every packet that crosses, told when links go and come, and asked what to send.
//! The polling order is that of every state machine here: after each `handle_*` call the driver
//! drains [`Gateway::poll_transmit`], then [`Gateway::poll_event`], then reads
//! [`Gateway::poll_timeout`] and calls [`Gateway::handle_timeout`] no later than that. Time never
//! goes back.
//!
//! This file only wires parts that do not know of each other: [connections](crate::tracking), their
//! [links](crate::links), the [mechanisms](crate::mechanisms), what goes out when (`release`), what the gateway
//! answers for (`custody`). A packet's way: link state, connection, tracking, links, mechanism, release.
//!
//! # Connections that somebody else tracks
//!
//! A kernel's fast path tracks connections as long as nothing is to be done for them. When their link goes down
//! the gateway takes them over, in three steps while the link is still up in the gateway's eyes: first
//! [`Gateway::adopt`] with the connection as it was before the oldest packet that is known, then
//! [`Gateway::recall`] with each such packet in order, then [`Gateway::adopt`] with the connection as it is.
//! After that the gateway stands where it would stand if the packets had crossed it. When nothing is left to do
//! it lets go of them ([`Gateway::forget`]).

use crate::connections::{Connection, Connections, stands_alone};
use crate::counters::Counters;
use crate::custody::{self, DIRECTIONS, LastWords, Meeting};
pub use crate::custody::{ImportError, Imported, Pledge, Supervision, reset_of_unknown};
use crate::event::Outbox;
pub use crate::event::{DropCause, Event, Transmit};
use crate::limits::Limits;
use crate::links::{
    Answer, Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState, Links,
    Sign, StateSince,
};
pub use crate::links::{DampedLink, DampingConfig, FLAP, SilenceConfig, SilentLink};
use crate::mechanisms::path::{
    Context, HoldRule, HoldRules, Outgoing, PathMechanism, PathMechanismKind, SendReason, Standing,
    TakeReason, Verdict, Waiting,
};
use crate::passing::PassingPacket;
use crate::release::{INITIAL_BURST, Releases, Turn};
pub use crate::report::{Activity, FlowReport};
use crate::service::{Service, Surroundings};
use crate::timers;
pub use crate::timers::TimeoutReason;
use crate::tracking::{
    Admission, Contest, FlowIndex, FlowKey, FrozenFlow, Heard, Observation, Oddity, PATIENCE,
    Phase, Removed, SupervisedFlow, TcpFlow,
};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_base::units::{BitRate, ByteCount};
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// What a gateway is made with.
#[derive(Clone, Debug, Default)]
pub struct GatewayConfig {
    /// What it does for the flows that pass.
    pub mechanism: PathMechanismKind,
    /// Hard caps.
    pub limits: Limits,
    /// Seed of the flow table's hash; a live driver draws it at random, so that nobody can
    /// choose addresses that collide.
    pub seed: u64,
    /// Whether, and how, silence tells that a link is away; `None`: only others tell.
    pub silence: Option<SilenceConfig>,
    /// Whether, and how, indicators that flap are damped; `None`: each is believed at once.
    pub damping: Option<DampingConfig>,
}

/// A gateway at one end of disconnecting links.
#[derive(Debug)]
pub struct Gateway {
    limits: Limits,
    connections: Connections,
    links: Links,
    service: Service,
    /// What waits for each interface.
    releases: Releases,
    outbox: Outbox,
}

impl Gateway {
    /// A gateway without links.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        let limits = config.limits;
        Self {
            limits,
            connections: Connections::new(&limits, config.seed),
            links: Links::new(config.silence, config.damping),
            service: Service::new(config.mechanism, limits.held_in_all),
            releases: Releases::default(),
            outbox: Outbox::default(),
        }
    }

    /// Adds an interface with a disconnecting link behind it, which is up.
    pub fn add_link(&mut self, now: Instant, interface: InterfaceId, config: LinkConfig) {
        self.links.add(now, interface);
        self.releases.add(interface, config.rate);
    }

    /// A packet crosses the gateway on `link`.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        link: LinkId,
        direction: Direction,
        packet: &Packet,
    ) -> Verdict {
        self.outbox.counters.packets += 1;
        let Some(state) = self.links.state(link) else {
            return Verdict::Pass;
        };
        let passing = PassingPacket {
            now,
            link,
            state,
            direction,
            packet,
        };
        let verdict = match (FlowKey::of_tcp(packet.header(), direction), packet.tcp()) {
            (Some(key), Some(tcp)) => self.handle_tcp(&passing, key, tcp),
            _ => {
                if direction == Direction::FromLink {
                    self.links.overhear(now, link);
                }
                self.handle_other(&passing)
            }
        };
        self.outbox.counters.taken += u64::from(verdict != Verdict::Pass);
        self.releases.note_verdict(&passing, verdict);
        self.send_in_turn(now);
        verdict
    }

    /// The link dropped `packet`, which the gateway had passed or sent towards it. Only the
    /// link's own end can know; what is lost on the way is never reported. Of a connection that
    /// was not seen in both directions only a SYN or a RST is kept.
    pub fn handle_drop(&mut self, now: Instant, link: LinkId, packet: &Packet, cause: DropCause) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        if cause == DropCause::Congestion {
            if let Some(release) = self.releases.at_mut(link.interface) {
                release.pacer.congested(now);
            }
            return;
        }
        if self.is_idle() {
            return;
        }
        match packet.tcp() {
            Some(tcp) if !stands_alone(tcp) => self.handle_segment_drop(now, packet),
            _ if !self.service.kind().holds_other_traffic() => {}
            _ if self.handle_opening_drop(now, link, packet) => {}
            _ => self.keep_other(now, link, state.state, packet),
        }
        self.send_in_turn(now);
    }

    /// An indicator says that a link went or came. It is told so at once, unless it has said too
    /// much of late: see [`DampingConfig`].
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        let peers = self.limits.peers;
        let sign = self
            .links
            .handle_event(now, event, peers, &mut self.outbox.counters);
        if let Some(sign) = sign {
            self.change_link(now, sign);
        }
    }

    /// Somebody says that a link is back of which nobody has said that it was away: every
    /// connection behind it is made to move. A link that is down is up.
    pub fn handle_return(&mut self, now: Instant, link: LinkId, indicator: Indicator) {
        let up = LinkEvent {
            link,
            state: LinkState::Up,
            indicator,
        };
        match self.links.state(link).map(|state| state.state) {
            None => self.outbox.counters.link_events_refused += 1,
            Some(LinkState::Down) => self.handle_link(now, up),
            Some(LinkState::Up) => {
                if let Some(signs) = self.links.handle_return(now, up, &mut self.outbox.counters) {
                    let behind = self.connections.behind(link);
                    self.return_of(now, &behind, signs);
                    self.send_in_turn(now);
                }
            }
        }
    }

    /// Somebody who sees the packets in the gateway's stead has found `link` silent: it has owed
    /// an answer since `since`. Does nothing where no connection is tracked behind it.
    pub fn handle_silence(&mut self, now: Instant, link: LinkId, since: Instant) {
        let Some((_, index)) = self.connections.on(link).next() else {
            return;
        };
        if let Some(connection) = self.connections.at_mut(index) {
            let Connection {
                tracked, silence, ..
            } = connection;
            let silent = self
                .links
                .handle_silence(now, (link, index), since, (tracked, silence));
            self.tell_silent(silent);
        }
        self.send_in_turn(now);
    }

    /// The time that [`Self::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        // First, for a link's return may be followed by something that is due at once.
        while let Some(sign) =
            self.links
                .poll_damped(now, self.limits.peers, &mut self.outbox.counters)
        {
            self.change_link(now, sign);
        }
        while let Some(index) = self.service.take_due(now) {
            let Some(connection) = self.connections.at_mut(index) else {
                continue;
            };
            connection.deadline = None;
            let Some(state) = self.links.state(connection.link) else {
                continue;
            };
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_timeout(cx);
            });
        }
        self.repeat_handshakes(now);
        while let Some(expired) = self.connections.expire(now) {
            self.release(expired);
        }
        while let Some(index) = self.connections.rest(now) {
            self.rest(now, index);
        }
        while let Some((link, index)) = self.links.poll_probe(now, &self.connections) {
            self.probe(now, link, index);
            if let Some(raiser) = self.links.plan_probe(now, link) {
                self.distrust(raiser);
            }
        }
        self.send_in_turn(now);
    }

    /// The next packet to send.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.next_packet()
    }

    /// The next thing to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.next_event()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        timers::first([
            (TimeoutReason::Pace, self.releases.next_chance()),
            (TimeoutReason::Kick, self.service.next_deadline()),
            (TimeoutReason::Handshake, self.releases.next_handshake()),
            (TimeoutReason::Probe, self.links.next_probe()),
            (TimeoutReason::Damping, self.links.next_damped()),
            (TimeoutReason::Expiry, self.connections.next_expiry()),
            (TimeoutReason::Rest, self.connections.next_rest()),
        ])
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// Bytes kept for TCP flows, as charged against [`Limits::held_in_all`].
    #[must_use]
    pub const fn held(&self) -> ByteCount {
        self.service.held()
    }

    /// Bytes of UDP and everything else kept, on all interfaces.
    #[must_use]
    pub fn held_other(&self) -> ByteCount {
        self.releases.bytes()
    }

    /// Tracked flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.connections.len()
    }

    /// Every tracked connection, in an order that only depends on what the gateway was shown. A
    /// look at each takes a while when there are many.
    pub fn flow_reports(&self) -> impl Iterator<Item = FlowReport> {
        self.connections
            .iter()
            .map(|(key, last_packet, connection)| FlowReport::of(key, last_packet, connection))
    }

    /// Whether a connection is tracked behind `link`, or behind any peer of an interface.
    #[must_use]
    pub fn has_flows(&self, link: LinkId) -> bool {
        self.connections.iter_behind(link).next().is_some()
    }

    /// The state of `link`; `None` for an interface that was never added.
    #[must_use]
    pub fn link_state(&self, link: LinkId) -> Option<StateSince> {
        self.links.state(link)
    }

    /// The links whose indicators are not believed at once.
    pub fn damped_links(&self, now: Instant) -> impl Iterator<Item = DampedLink> {
        self.links.damped(now)
    }

    /// The links that are silent although they owe an answer.
    pub fn silent_links(&self) -> impl Iterator<Item = SilentLink> {
        self.links.silent()
    }

    /// The longest packet, in bytes and with its IP header, that `packet`'s receiver has offered to
    /// take on that connection. If its SYN was not seen, the longest that went to it
    /// ([`Self::note_length`]); `None` if that is not known either. A super-segment stands for packets
    /// that are no longer than that.
    #[must_use]
    pub fn longest_packet(&self, packet: &Packet, direction: Direction) -> Option<u32> {
        let key = FlowKey::of_tcp(packet.header(), direction)?;
        let connection = self.connections.at(self.connections.find(&key)?)?;
        connection.longest_packet(packet, direction)
    }

    /// Notes how long a packet is that crosses towards the link just as its sender has cut it, or
    /// somebody who knew how: not a super-segment, nor what a driver has made of one.
    pub fn note_length(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp().filter(|_| packet.sequence_len() > 0) else {
            return;
        };
        let key = FlowKey::of_tcp(packet.header(), Direction::ToLink);
        let index = key.and_then(|key| self.connections.find(&key));
        if let Some(connection) = index.and_then(|index| self.connections.at_mut(index)) {
            connection.note_length(packet, tcp);
        }
    }

    /// What it does for connections that begin from now on; those that are tracked keep theirs.
    pub const fn set_mechanism(&mut self, mechanism: PathMechanismKind) {
        self.service.set_kind(mechanism);
    }

    /// Which rules `hold`, and what is made of it, obeys from now on: all, but where it is tried without one.
    pub const fn set_rules(&mut self, rules: HoldRules) {
        self.service.set_rules(rules);
    }

    /// Other caps from now on. What is kept or tracked above a lower one stays, but no more is
    /// taken; of other traffic the oldest goes first, once more of it comes.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.connections.set_bounds(&limits);
        self.service.set_cap(limits.held_in_all);
    }

    /// Silence tells from now on, otherwise or not at all. What is suspected is forgotten; it shows
    /// again.
    pub fn set_silence(&mut self, silence: Option<SilenceConfig>) {
        self.links.set_silence(silence);
    }

    /// Indicators that flap are damped from now on, otherwise or not at all. What was said last of
    /// a damped link holds at once, and all penalties are forgiven.
    pub fn set_damping(&mut self, now: Instant, damping: Option<DampingConfig>) {
        for event in self.links.set_damping(damping) {
            self.handle_link(now, event);
        }
    }

    /// Another rate of the link behind `interface`; `None` if it is not known. An interface that
    /// was never added is none of its business.
    pub fn set_rate(&mut self, now: Instant, interface: InterfaceId, rate: Option<BitRate>) {
        if let Some(release) = self.releases.at_mut(interface) {
            release.pacer.set_rate(now, rate);
        }
        self.send_in_turn(now);
    }

    /// Takes over a connection that somebody else has tracked so far, or corrects one that is
    /// known already. Its packets cross on `link`.
    ///
    /// Who has not seen both hosts corrects nothing of a connection that the gateway has acknowledged
    /// ahead: what was acknowledged is nowhere else, and the far host's numbers are needed to send it.
    pub fn adopt(&mut self, now: Instant, link: LinkId, key: FlowKey, tracked: TcpFlow) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        if self.service.kind() == PathMechanismKind::None {
            return;
        }
        let index = match self.connections.find(&key) {
            Some(index) => {
                self.correct(now, link, state, index, tracked);
                Some(index)
            }
            None => self.enter(now, link, state, key, tracked),
        };
        if let Some(index) = index {
            self.note_life(now, index);
        }
    }

    /// Shows a packet that has crossed already, of a connection that was [adopted](Self::adopt):
    /// nothing can be done about it any more, and it is not counted.
    pub fn recall(&mut self, now: Instant, link: LinkId, direction: Direction, packet: &Packet) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        let key = FlowKey::of_tcp(packet.header(), direction);
        let known = key.filter(|key| self.is_tracked(key));
        if let (Some(key), Some(tcp)) = (known, packet.tcp()) {
            let passing = PassingPacket {
                now,
                link,
                state,
                direction,
                packet,
            };
            // It has passed, whatever would become of it now.
            let _ = self.handle_tcp(&passing, key, tcp);
        }
    }

    /// Shows the last acknowledgement that the far host of a connection has sent before it was
    /// [adopted](Self::adopt): it says nothing new, and its sender was not heard now, but the
    /// connection's mechanism may want it again.
    pub fn remember(&mut self, now: Instant, key: &FlowKey, acknowledgement: &Packet) {
        let Some(index) = self.connections.find(key) else {
            return;
        };
        let Some(connection) = self.connections.at(index) else {
            return;
        };
        let (state, phase) = (connection.told, connection.tracked.phase);
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
        let _ = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.handle_packet(cx, Direction::FromLink, acknowledgement, says_nothing)
        });
    }

    /// Whether the connection is in the gateway's table.
    #[must_use]
    pub fn is_tracked(&self, key: &FlowKey) -> bool {
        self.connections.find(key).is_some()
    }

    /// Links of `interface` for which the gateway has something to do: they are down, or something
    /// waits for its turn or its time, or something of a connection is nowhere else. All others are
    /// at rest, and [`Self::forget`] loses nothing that only the gateway knows.
    #[must_use]
    pub fn links_at_work(&self, interface: InterfaceId) -> BTreeSet<LinkId> {
        let mut at_work = BTreeSet::new();
        let release = self.releases.at(interface);
        for (link, index) in self
            .connections
            .iter_behind(LinkId::of_interface(interface))
        {
            if at_work.contains(&link) {
                continue;
            }
            let state = self.links.state(link);
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

    /// Whether the gateway has nothing to do for `link`, or for any peer of an interface.
    #[must_use]
    pub fn is_at_rest(&self, link: LinkId) -> bool {
        let at_work = self.links_at_work(link.interface);
        match link.peer {
            None => at_work.is_empty(),
            Some(_) => !at_work.contains(&link),
        }
    }

    /// Lets go of the connections that cross on `link`, or behind any peer of an interface: from
    /// now on somebody else tracks them.
    pub fn forget(&mut self, link: LinkId) {
        self.forget_where(link.interface, |other| link.peer.is_none() || other == link);
    }

    /// Lets go of the connections of `interface` that cross on links for which `goes` holds.
    pub fn forget_where(&mut self, interface: InterfaceId, goes: impl Fn(LinkId) -> bool) {
        let mut behind = self.connections.behind(LinkId::of_interface(interface));
        behind.retain(|(link, _)| goes(*link));
        for (_, index) in behind {
            self.remove(index);
        }
    }

    /// Packets have crossed unseen since then. Connections whose link was not down all the time may have
    /// gone on: one of which the next segment either way does not fit is met anew. One that the gateway has
    /// acknowledged ahead is not: nobody else has what is kept of it. Returns how many are in doubt.
    pub fn doubt_since(&mut self, since: Instant) -> usize {
        let mut doubtful = 0;
        for interface in self.releases.interfaces() {
            for (_, index) in self.connections.behind(LinkId::of_interface(interface)) {
                if let Some(connection) = self.connections.at_mut(index) {
                    let told = connection.told;
                    let was_down = told.state == LinkState::Down && told.since <= since;
                    connection.is_doubtful = [!was_down; 2];
                    doubtful += usize::from(!was_down);
                }
            }
        }
        doubtful
    }

    /// The connection's numbers if something of it was acknowledged that nobody else has.
    #[must_use]
    pub fn pledge(&self, flow: &FlowKey) -> Option<Pledge> {
        let index = self.connections.find(flow)?;
        Pledge::of(*flow, self.connections.at(index)?)
    }

    /// The frozen connections behind `link`: those of a peer, or of all peers of an interface.
    #[must_use]
    pub fn frozen_behind(&self, link: LinkId) -> Vec<FlowKey> {
        let frozen = |index: &FlowIndex| {
            let connection = self.connections.at(*index);
            connection.is_some_and(|connection| connection.standing == Standing::Frozen)
        };
        let behind = self.connections.iter_behind(link);
        let frozen = behind.map(|(_, index)| index).filter(frozen);
        frozen
            .filter_map(|index| self.connections.key(index))
            .collect()
    }

    /// A frozen connection, for another gateway to take over; `None` if it is not frozen. It stays
    /// here until [`Self::release_frozen`].
    #[must_use]
    pub fn export_frozen(&mut self, flow: FlowKey) -> Option<FrozenFlow> {
        let index = self.connections.find(&flow)?;
        // Whoever corrected the connection meanwhile may know that the segment is not needed.
        custody::export(self.connections.at_mut(index)?).filter(|frozen| frozen.numbers().is_ok())
    }

    /// Takes a connection over that another gateway, or this one before it was started anew, has
    /// frozen. Its segment is sent on `link` while that is up, until the far host acknowledges it;
    /// deliveries without an answer count at once if the far host `is_heard` there, or else from
    /// its first sign of life on.
    ///
    /// # Errors
    /// [`ImportError`] if it can be of no connection here, or there is no room; nothing is kept
    /// then, and no connection gives way for it.
    pub fn import_frozen(
        &mut self,
        now: Instant,
        link: LinkId,
        frozen: &FrozenFlow,
        is_heard: bool,
    ) -> Result<Imported, ImportError> {
        if self.service.kind() != PathMechanismKind::ZeroWindowAck {
            return Err(ImportError::WrongMechanism);
        }
        let state = self.links.state(link).ok_or(ImportError::UnknownLink)?;
        let numbers = frozen.numbers().map_err(ImportError::Implausible)?;
        let index = match self.connections.find(&numbers.flow) {
            Some(index) => {
                let known = self.connections.at_mut(index).ok_or(ImportError::NoRoom)?;
                match custody::merge(known, frozen, &numbers)? {
                    Meeting::Over => return Ok(Imported::Over),
                    Meeting::Here => return Ok(Imported::Frozen),
                    Meeting::Merged => index,
                }
            }
            None => self
                .admit_from_elsewhere(now, (link, state), numbers.flow, frozen.tracked())
                .ok_or(ImportError::NoRoom)?,
        };
        self.settle_import(now, index, (link, state));
        let adopted = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism
                .zero_window_ack()
                .is_some_and(|mechanism| mechanism.adopt(cx, frozen, is_heard))
        });
        if adopted != Some(true) {
            return Err(ImportError::NoRoom);
        }
        self.send_in_turn(now);
        Ok(Imported::Frozen)
    }

    /// Another gateway delivers the segment from now on, or does so no longer. While it does, this
    /// one keeps the segment and answers the near host's probes.
    pub fn lend_frozen(&mut self, now: Instant, flow: FlowKey, is_lent: bool) {
        if let Some(index) = self.connections.find(&flow)
            && let Some(connection) = self.connections.at(index)
            && let Some(state) = self.links.state(connection.link)
        {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                if let Some(mechanism) = mechanism.zero_window_ack() {
                    mechanism.lend(cx, is_lent);
                }
            });
            self.send_in_turn(now);
        }
    }

    /// The far host has acknowledged the segment where this gateway does not see it: the
    /// connection is the hosts' own again.
    pub fn release_frozen(&mut self, now: Instant, flow: FlowKey) {
        if let Some(index) = self.connections.find(&flow)
            && let Some(connection) = self.connections.at(index)
            && connection.standing == Standing::Frozen
            && let Some(state) = self.links.state(connection.link)
        {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.release(cx.budget);
            });
        }
    }

    /// Whether this is a supervisor host of M-TCP, of whose connections another one can know.
    #[must_use]
    pub fn supervises(&self) -> bool {
        matches!(
            self.service.kind(),
            PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
        )
    }

    /// The connections behind `link` that another supervisor host can take over: those of a peer, or of
    /// all peers of an interface. None where no supervisor host is.
    #[must_use]
    pub fn supervised_behind(&self, link: LinkId) -> Vec<FlowKey> {
        if !self.supervises() {
            return Vec::new();
        }
        let is_established = |index: &FlowIndex| {
            let connection = self.connections.at(*index);
            connection.is_some_and(|one| one.tracked.phase == Phase::Established && one.is_proven)
        };
        let behind = self.connections.iter_behind(link);
        let established = behind.map(|(_, index)| index).filter(is_established);
        established
            .filter_map(|index| self.connections.key(index))
            .collect()
    }

    /// A supervised connection, for another supervisor host to take over, without what is kept of it. What
    /// is kept is dropped if the far host is away; probes that still come here are answered. `None` if
    /// there is none to take over.
    #[must_use]
    pub fn hand_off_supervised(&mut self, now: Instant, flow: FlowKey) -> Option<SupervisedFlow> {
        if !self.supervises() {
            return None;
        }
        let index = self.connections.find(&flow)?;
        let connection = self.connections.at_mut(index)?;
        let supervised = custody::export_supervised(flow, connection)?;
        let state = self.links.state(connection.link)?;
        self.with_mechanism(now, index, state, |mechanism, cx| {
            if let Some(mechanism) = mechanism.m_tcp() {
                mechanism.hand_off(cx);
            }
        });
        Some(supervised)
    }

    /// Goes on with a connection that another supervisor host has had. If the far host is behind `link`,
    /// the near host's window opens at once, and it sends again what was lost.
    ///
    /// # Errors
    /// [`ImportError`] if it can be of no connection here, or there is no room; the hosts go on without
    /// this gateway then, and no connection gives way for it.
    pub fn import_supervised(
        &mut self,
        now: Instant,
        link: LinkId,
        supervised: &SupervisedFlow,
    ) -> Result<Supervision, ImportError> {
        if !self.supervises() {
            return Err(ImportError::WrongMechanism);
        }
        let state = self.links.state(link).ok_or(ImportError::UnknownLink)?;
        supervised.check().map_err(ImportError::Implausible)?;
        let index = match self.connections.find(&supervised.flow) {
            Some(index) => {
                let known = self.connections.at_mut(index).ok_or(ImportError::NoRoom)?;
                match custody::merge_supervised(known, supervised)? {
                    Supervision::KnownBetter => return Ok(Supervision::KnownBetter),
                    Supervision::TakenOver => index,
                }
            }
            None => self
                .admit_from_elsewhere(now, (link, state), supervised.flow, supervised.tracked())
                .ok_or(ImportError::NoRoom)?,
        };
        self.settle_import(now, index, (link, state));
        self.with_mechanism(now, index, state, |mechanism, cx| {
            if let Some(mechanism) = mechanism.m_tcp() {
                mechanism.adopt(cx, supervised);
            }
        });
        self.send_in_turn(now);
        Ok(Supervision::TakenOver)
    }

    /// Gives a frozen connection up: a reset for each host, the near one's first, which the caller
    /// sends to wherever the hosts are now; `None` if it is not frozen.
    #[must_use]
    pub fn reset_frozen(&mut self, now: Instant, flow: FlowKey) -> Option<[Packet; 2]> {
        let numbers = self.export_frozen(flow)?.numbers().ok()?;
        self.release_frozen(now, flow);
        self.outbox.counters.resets += 1;
        Some([numbers.reset_near(), numbers.reset_far()])
    }

    // A packet's way.

    fn handle_tcp(
        &mut self,
        passing: &PassingPacket<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Verdict {
        if self.is_idle() {
            return Verdict::Pass;
        }
        if is_damaged(passing.packet) {
            self.outbox.counters.odd_segments += 1;
            return Verdict::Pass;
        }
        let index = self
            .connections
            .find(&key)
            .or_else(|| self.admit(passing, key, tcp));
        let Some((index, connection)) = index.and_then(|i| Some((i, self.connections.at_mut(i)?)))
        else {
            return Verdict::Pass;
        };
        let &PassingPacket {
            now,
            direction,
            packet,
            ..
        } = passing;
        let (was, rtt) = (connection.tracked.phase, connection.tracked.rtt);
        let payload_len = packet.header().payload_len;
        let is_doubtful = connection.is_doubtful[direction as usize] && !connection.is_pledged;
        let Connection {
            tracked, contest, ..
        } = connection;
        let observation = match Contest::observe(contest, tracked, now, direction, tcp, payload_len)
        {
            Heard::Honest(observation) => observation,
            Heard::Odd(oddity) | Heard::Ripe(oddity) if is_doubtful && oddity.is_of_numbers() => {
                // It has gone on unseen: nothing is known of it but this segment.
                self.remove(index);
                return self.handle_tcp(passing, key, tcp);
            }
            Heard::Odd(oddity) => return self.pass_odd(passing, index, tcp, oddity),
            Heard::Ripe(oddity) => {
                self.give_place_to_rival(passing, index);
                return self.pass_odd(passing, index, tcp, oddity);
            }
        };
        if observation.begins_anew {
            self.take_place_back(passing, index);
        }
        if tcp.has(TcpFlags::RST) {
            self.end_pledged(index);
        }
        let Some(connection) = self.connections.at_mut(index) else {
            return Verdict::Pass;
        };
        connection.is_doubtful[direction as usize] = false;
        connection.note_syn(direction, packet, tcp);
        connection.is_proven |= connection.is_proven_by(tcp, observation);
        if was == Phase::Established
            && connection
                .tracked
                .has_overtaken(direction, tcp, payload_len)
        {
            // It is no retransmission of what is timed.
            connection.tracked.rtt = rtt;
            return Verdict::Pass;
        }
        self.handle_observed(passing, (index, key), tcp, (was, observation))
    }

    /// A segment of which its connection's tracker has said what is new; `was` is the phase before.
    #[inline]
    fn handle_observed(
        &mut self,
        passing: &PassingPacket<'_>,
        (index, key): (FlowIndex, FlowKey),
        tcp: &TcpHeader,
        (was, observation): (Phase, Observation),
    ) -> Verdict {
        let &PassingPacket {
            now,
            direction,
            packet,
            ..
        } = passing;
        self.follow(passing, index, was);
        let Some(connection) = self.connections.at(index) else {
            return Verdict::Pass;
        };
        let (phase, is_proven) = (connection.tracked.phase, connection.is_proven);
        let has_met = was == Phase::Opening && phase == Phase::Established;
        let is_heard = is_proven && was == Phase::Established;
        let news = (observation.newly_acked, has_met);
        if let Some(verdict) = self.note_in_turns(passing, (index, key), tcp, is_heard, news) {
            return verdict;
        }
        let Some(connection) = self.connections.at(index) else {
            return Verdict::Pass;
        };
        let only_answers_probe =
            connection.was_established() && self.listen(passing, index, tcp, observation);
        let is_served = is_proven && (was == Phase::Established || phase == Phase::Established);
        let (verdict, arrived) = match is_served {
            true => self.ask_mechanism(passing, index, observation),
            false => (None, 0),
        };
        match direction {
            Direction::FromLink => {
                let news = (observation.newly_acked, arrived);
                if let Some(connection) = self.connections.at_mut(index) {
                    let at = (key.far.ip(), index);
                    self.releases
                        .note_arrival(now, at, connection, packet, news);
                }
            }
            Direction::ToLink if is_served && matches!(verdict, None | Some(Verdict::Pass)) => {
                self.note_departure(now, (key.far.ip(), index), packet);
                if packet.sequence_len() > 0
                    && let Some(release) = self.releases.at_mut(passing.link.interface)
                {
                    release.pacer.charge_counted(now, packet.total_len());
                }
            }
            Direction::ToLink => {}
        }
        match verdict {
            _ if only_answers_probe => Verdict::Taken(TakeReason::AnswersProbe),
            Some(taken @ Verdict::Taken(reason)) => {
                if reason == TakeReason::BehindKept
                    && let Some(connection) = self.connections.at_mut(index)
                {
                    // What it waits here is no part of the link's round trip.
                    connection.tracked.rtt.discard();
                }
                taken
            }
            // Connections that open or abort while the link is down have no data to keep.
            _ if tcp.has(TcpFlags::SYN) => self.handle_opening(passing, index),
            _ if stands_alone(tcp) => self.handle_other(passing),
            _ if !is_proven => self.handle_one_sided(passing, index),
            _ => Verdict::Pass,
        }
    }

    /// Tells the link's turns what the segment shows: that its peer is heard, what it opens. Returns the verdict
    /// on a one-sided connection's segment with a stale echo.
    #[inline]
    fn note_in_turns(
        &mut self,
        passing: &PassingPacket<'_>,
        (index, key): (FlowIndex, FlowKey),
        tcp: &TcpHeader,
        is_heard: bool,
        (newly_acked, has_met): (u32, bool),
    ) -> Option<Verdict> {
        let is_from_link = passing.direction == Direction::FromLink;
        let interface = passing.link.interface;
        if let Some(release) = self.releases.at_mut(interface)
            && is_from_link
            && is_heard
        {
            release.hear(key.far.ip());
        }
        let connection = self.connections.at_mut(index)?;
        let stale = self.releases.handle_stale_echo(
            passing,
            (index, key),
            connection,
            tcp,
            &self.limits,
            &mut self.outbox,
        );
        if let Some(verdict) = stale {
            return Some(verdict);
        }
        if let Some(release) = self.releases.at_mut(interface) {
            let news = (is_from_link, newly_acked, has_met);
            release.note_opened(index, &connection.tracked.near, tcp, news);
        }
        None
    }

    /// Asks the connection's mechanism what becomes of the packet; the number of bytes says what has arrived
    /// selectively.
    #[inline]
    fn ask_mechanism(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        observation: Observation,
    ) -> (Option<Verdict>, u32) {
        let &PassingPacket {
            now,
            state,
            direction,
            packet,
            ..
        } = passing;
        self.wake_mechanism(index);
        let asked = self.with_mechanism(now, index, state, |mechanism, cx| {
            let verdict = mechanism.handle_packet(cx, direction, packet, observation);
            (verdict, *cx.arrived)
        });
        asked.map_or((None, 0), |(verdict, arrived)| (Some(verdict), arrived))
    }

    /// A segment that does not belong to its connection as tracked is of no use to a mechanism. If
    /// its receiver might open or abort one for it, it waits for the link as such segments do.
    fn pass_odd(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        oddity: Oddity,
    ) -> Verdict {
        self.outbox.counters.odd_segments += 1;
        if passing.direction == Direction::FromLink && oddity == Oddity::AcknowledgesUnsent {
            self.note_gone_on(passing.now, index, tcp);
        }
        let begins = oddity == Oddity::UnexpectedSyn && !tcp.has(TcpFlags::ACK);
        // A client that has forgotten the connection begins another; a reset within the window, though
        // not exact, draws one that is.
        if begins || oddity == Oddity::InexactReset {
            return self.handle_other(passing);
        }
        Verdict::Pass
    }

    /// The flow is where its packets cross, and in the state of that link; before this packet it
    /// `was` in another phase perhaps.
    fn follow(&mut self, passing: &PassingPacket<'_>, index: FlowIndex, was: Phase) {
        let &PassingPacket {
            now,
            link,
            state,
            direction,
            ..
        } = passing;
        let Some(connection) = self.connections.at_mut(index) else {
            return;
        };
        let phase = connection.tracked.phase;
        // What comes from a link before both hosts are known may come from anybody.
        let is_followed = phase != Phase::Opening || direction == Direction::ToLink;
        let is_elsewhere = is_followed && connection.link != link;
        let is_news = is_followed && connection.state != state.state;
        if state.state == LinkState::Down {
            connection.tracked.rtt.discard();
        }
        if is_elsewhere {
            self.move_flow(index, link);
        }
        if was == Phase::Closed && phase == Phase::Opening {
            self.begin_anew(index);
        }
        if is_news {
            self.change_link_of(now, index, state);
        }
        self.note_life(now, index);
    }

    /// What the segment shows of its link. Returns whether it only answers a probe.
    #[inline]
    fn listen(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> bool {
        let &PassingPacket {
            now, link, packet, ..
        } = passing;
        let Some(connection) = self.connections.at_mut(index) else {
            return false;
        };
        let Connection {
            tracked, silence, ..
        } = connection;
        if passing.direction == Direction::ToLink {
            silence.near_host.hear(tcp);
            if passing.state.state == LinkState::Up {
                let silent =
                    self.links
                        .hear_near(now, (link, index), (tracked, silence), observation);
                self.tell_silent(silent);
            }
            return false;
        }
        let newly_acked = observation.newly_acked;
        let answer = self.links.hear_far(
            now,
            (link, index),
            (tracked, silence),
            (packet, tcp),
            newly_acked,
        );
        let Answer {
            is_to_probe,
            is_awaited,
            signs,
            refuted,
        } = answer;
        if is_awaited {
            self.releases
                .welcome_one_sided(now, link, &self.connections);
        }
        if let Some(raiser) = refuted {
            self.distrust(raiser);
        }
        if let Some(signs) = signs {
            // What waits has its turn once the packet that has come is taken in: it may say that some
            // of it has arrived.
            let flows: Vec<_> = self.connections.on(link).collect();
            self.return_of(now, &flows, signs);
        }
        is_to_probe
    }

    /// A packet that no mechanism knows how to recover waits while the link is down.
    fn handle_other(&mut self, passing: &PassingPacket<'_>) -> Verdict {
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
            return Verdict::Pass;
        }
        self.keep_other(now, link, state.state, packet);
        Verdict::Taken(TakeReason::LinkDown)
    }

    fn keep_other(&mut self, now: Instant, link: LinkId, state: LinkState, packet: &Packet) {
        let Self { limits, outbox, .. } = self;
        self.releases
            .keep_other(now, link, state, packet, limits, outbox);
    }

    fn handle_segment_drop(&mut self, now: Instant, packet: &Packet) {
        let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
            .and_then(|key| self.connections.find(&key));
        let Some((index, connection)) = index.and_then(|i| Some((i, self.connections.at(i)?)))
        else {
            return;
        };
        // The flow may have moved to another link since.
        let state = self.links.state(connection.link);
        if let Some(state) = state.filter(|_| connection.was_established()) {
            self.wake_mechanism(index);
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_drop(cx, packet);
            });
        }
    }

    // Connections that open, or of which only one host was heard.

    /// A SYN or SYN-ACK of a connection that no mechanism serves yet.
    fn handle_opening(&mut self, passing: &PassingPacket<'_>, index: FlowIndex) -> Verdict {
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
    fn handle_one_sided(&mut self, passing: &PassingPacket<'_>, index: FlowIndex) -> Verdict {
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
            self.links.watch(link);
            connection.silence.near_host.hear(tcp);
        }
        let listens = self.links.listens();
        self.releases
            .pass_one_sided(passing, index, listens, &self.limits, &mut self.outbox)
    }

    /// The link dropped a SYN or SYN-ACK with all that it had been given. Returns whether its
    /// connection is known, and waits for the answer.
    fn handle_opening_drop(&mut self, now: Instant, link: LinkId, packet: &Packet) -> bool {
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

    /// Handshakes whose answer was not seen in time have their turn again; so has the question for the far
    /// host of a one-sided connection.
    fn repeat_handshakes(&mut self, now: Instant) {
        let (connections, links) = (&self.connections, &self.links);
        self.releases.repeat_handshakes(now, |index, asked_at| {
            let connection = connections.at(index);
            connection.is_some_and(|one| links.is_quiet(one.link, asked_at))
        });
        let gap = self.links.probe_gap();
        while let Some(index) = self.releases.next_to_probe(now, gap) {
            if let Some(link) = self.connections.at(index).map(|one| one.link) {
                self.probe(now, link, index);
            }
        }
    }

    /// Whether the far host has not acknowledged what the near host has begun with.
    fn awaits_answer(&self, index: FlowIndex) -> bool {
        let connection = self.connections.at(index);
        self.service.obeys(HoldRule::Handshakes)
            && connection.is_some_and(|connection| connection.tracked.near.has_outstanding())
    }

    // A link's way.

    /// A link went or came.
    fn change_link(&mut self, now: Instant, sign: Sign) {
        self.outbox.tell(Event::Link(sign.event()));
        let behind = self.connections.behind(sign.link);
        if sign.state == LinkState::Up {
            self.welcome(now, sign.link, sign.why, &behind);
        }
        for (link, index) in behind {
            let (Some(connection), Some(state)) =
                (self.connections.at(index), self.links.state(link))
            else {
                continue;
            };
            if connection.state != state.state {
                let (since, by) = (sign.since, sign.why);
                self.change_link_of(now, index, StateSince { since, by, ..state });
            }
        }
        self.send_in_turn(now);
    }

    /// A link was down and is up, without anybody having said so meanwhile: the mechanisms of
    /// `flows` are told both changes.
    fn return_of(&mut self, now: Instant, flows: &[(LinkId, FlowIndex)], signs: [Sign; 2]) {
        for sign in signs {
            self.outbox.tell(Event::Link(sign.event()));
        }
        let [_, up] = signs;
        self.welcome(now, up.link, up.why, flows);
        for &(own, index) in flows {
            // A peer that is down by itself stays so.
            if self.links.is_up(own) {
                for sign in signs {
                    self.change_link_of(now, index, sign.state());
                }
            }
        }
    }

    /// `link` is back, and `behind` are the connections that cross it.
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

    /// Tells a flow's mechanism that the flow's link is in another state now.
    fn change_link_of(&mut self, now: Instant, index: FlowIndex, state: StateSince) {
        let peer = self.connections.key(index).map(|key| key.far.ip());
        if let Some((peer, connection)) = peer.zip(self.connections.at_mut(index)) {
            connection.state = state.state;
            connection.told = state;
            connection.departed = 0;
            // What was on its way is answered late, or by what the gateway sends.
            connection.tracked.rtt.discard();
            self.releases
                .change_link(now, connection.link.interface, (peer, index), state.state);
        }
        self.with_mechanism(now, index, state, |mechanism, cx| mechanism.handle_link(cx));
    }

    /// A flow's packets cross on `link` from now on.
    fn move_flow(&mut self, index: FlowIndex, link: LinkId) {
        if let Some(before) = self.connections.move_to(index, link) {
            self.releases.forget_handshake(before, index);
            self.leave_link(before);
        }
    }

    /// A flow behind `link` is gone from there.
    fn leave_link(&mut self, link: LinkId) {
        if self.links.listens() && self.connections.on(link).next().is_none() {
            self.links.leave(link);
        }
    }

    fn tell_silent(&mut self, silent: Option<SilentLink>) {
        if let Some(SilentLink { link, since }) = silent {
            self.outbox.counters.silences += 1;
            self.outbox.tell(Event::Silent { link, since });
        }
    }

    fn distrust(&mut self, raiser: FlowIndex) {
        if let Some(raiser) = self.connections.at_mut(raiser) {
            raiser.silence.distrust();
        }
    }

    fn probe(&mut self, now: Instant, link: LinkId, index: FlowIndex) {
        let key = self.connections.key(index);
        let Some((key, connection)) = key.zip(self.connections.at_mut(index)) else {
            return;
        };
        let voice = connection.silence.near_host;
        let packet = voice.keep_alive(&key, &connection.tracked);
        connection.silence.note_probe(now);
        self.outbox.counters.probes += 1;
        let reason = SendReason::Probe;
        self.transmit_to_link(now, link, packet, reason);
    }

    // Mechanisms.

    /// Calls a flow's mechanism, and fulfils what it wants then.
    fn with_mechanism<R>(
        &mut self,
        now: Instant,
        index: FlowIndex,
        link: StateSince,
        call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let connection = self.connections.at(index)?;
        let link = match link.state == connection.state {
            true => connection.told,
            false => link,
        };
        let is_silent = self.links.is_silent(connection.link);
        let interface = connection.link.interface;
        let (has_line, is_paced) = self.releases.line(now, interface, link.since);
        let surroundings = Surroundings {
            now,
            link,
            is_silent,
            has_line,
            is_paced,
        };
        let (result, wishes) = self.service.serve(
            index,
            surroundings,
            &mut self.connections,
            &self.limits,
            &mut self.outbox,
            call,
        )?;
        if let Some(waiting) = wishes.turn
            && let Some(release) = self.releases.at_mut(wishes.interface)
        {
            release.give_flow_a_turn(index, wishes.peer, waiting);
        }
        if wishes.changes_shelf {
            self.note_life(now, index);
        }
        Some(result)
    }

    /// The flow is about to meet something that its mechanism must know.
    fn wake_mechanism(&mut self, index: FlowIndex) {
        if let Some(connection) = self.connections.at_mut(index) {
            self.service.wake(connection);
        }
    }

    /// A flow is idle: what it does not need is given back.
    fn rest(&mut self, now: Instant, index: FlowIndex) {
        let key = self.connections.key(index);
        if let Some((key, connection)) = key.zip(self.connections.at_mut(index)) {
            self.service.rest(now, &key, connection);
        }
    }

    // Who is in the table.

    /// A flow begins with a SYN, or with any segment of a connection that is older than the
    /// gateway. A lone RST begins nothing, nor does a segment that no host sends.
    fn admit(
        &mut self,
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
        self.enter(now, link, state, key, TcpFlow::new())
    }

    /// Enters a flow that is not in the table yet, if somebody gives way for it.
    fn enter(
        &mut self,
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
                self.displaced(displaced);
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
    fn admit_from_elsewhere(
        &mut self,
        now: Instant,
        (link, state): (LinkId, StateSince),
        flow: FlowKey,
        tracked: TcpFlow,
    ) -> Option<FlowIndex> {
        if self.connections.len() >= self.limits.flows {
            self.outbox.counters.flows_refused += 1;
            return None;
        }
        self.enter(now, link, state, flow, tracked)
    }

    /// A connection that another gateway has handed over crosses on `link` from now on.
    fn settle_import(
        &mut self,
        now: Instant,
        index: FlowIndex,
        (link, state): (LinkId, StateSince),
    ) {
        self.move_flow(index, link);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.state = state.state;
            connection.told = state;
            connection.is_proven = true;
        }
        self.wake_mechanism(index);
        self.note_life(now, index);
    }

    /// Somebody who has tracked a connection meanwhile knows how it is, and that it crosses on `link`.
    fn correct(
        &mut self,
        now: Instant,
        link: LinkId,
        state: StateSince,
        index: FlowIndex,
        tracked: TcpFlow,
    ) {
        let known = self.connections.at(index);
        if known.is_some_and(|known| custody::is_another(&known.tracked, &tracked)) {
            self.end_for_another(now, index, state);
        }
        self.move_flow(index, link);
        let Some(connection) = self.connections.at_mut(index) else {
            return;
        };
        if !connection.is_pledged || tracked.phase != Phase::Opening {
            connection.tracked = tracked;
        }
        connection.is_proven |= tracked.phase != Phase::Opening;
        if connection.state != state.state {
            self.change_link_of(now, index, state);
        }
    }

    /// The flow goes to the end of the shelf on which it stands now.
    fn note_life(&mut self, now: Instant, index: FlowIndex) {
        if let Some(displaced) = self.connections.touch(now, index) {
            self.displaced(displaced);
        }
    }

    fn displaced(&mut self, displaced: Removed<Connection>) {
        self.outbox.counters.flows_displaced += 1;
        self.release(displaced);
    }

    fn remove(&mut self, index: FlowIndex) {
        if let Some(removed) = self.connections.remove(index) {
            self.release(removed);
        }
    }

    /// A flow is gone.
    fn release(&mut self, removed: Removed<Connection>) {
        let Removed {
            index,
            key,
            flow: mut connection,
        } = removed;
        if let Some(words) = LastWords::of(&mut connection) {
            self.say_last_words(connection.link, words);
        }
        self.releases.forget_handshake(connection.link, index);
        self.leave_link(connection.link);
        self.service.see_off(index, &key, &mut connection);
    }

    // Who has a connection's place, and how one that loses it ends.

    /// Another connection has the place of the one at `index`, if nothing is lost by that.
    #[cold]
    fn give_place_to_rival(&mut self, passing: &PassingPacket<'_>, index: FlowIndex) {
        let &PassingPacket { now, state, .. } = passing;
        if !self.may_yield(now, index) {
            return;
        }
        self.end_for_another(now, index, state);
        if let Some(connection) = self.connections.at_mut(index)
            && let Some(contest) = &mut connection.contest
        {
            contest.yield_to_rival(&mut connection.tracked);
        }
    }

    /// The connection that had the place first has it again.
    #[cold]
    fn take_place_back(&mut self, passing: &PassingPacket<'_>, index: FlowIndex) {
        self.end_for_another(passing.now, index, passing.state);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.is_proven = true;
        }
    }

    /// Whether a connection of which nothing was seen for [`PATIENCE`] gives its place to another. One of
    /// which something is kept does so only if its far host could have answered all that time.
    fn may_yield(&self, now: Instant, index: FlowIndex) -> bool {
        let Some(connection) = self.connections.at(index) else {
            return false;
        };
        let could_answer = || {
            let told = connection.told;
            let is_up = connection.state == LinkState::Up && now.since(told.since) >= PATIENCE;
            is_up && !self.links.is_silent(connection.link)
        };
        let is_kept = connection.held.0 > 0 || connection.is_pledged;
        connection.tracked.phase == Phase::Closed || !is_kept || could_answer()
    }

    /// What was acknowledged ahead of a connection is to be given up, and the far host may lack it:
    /// both hosts hear that the connection is over.
    #[cold]
    fn end_pledged(&mut self, index: FlowIndex) {
        let connection = self.connections.at_mut(index).filter(|one| one.is_pledged);
        let words = connection.and_then(|one| Some((one.link, LastWords::of(one)?)));
        if let Some((link, words)) = words {
            self.say_last_words(link, words);
        }
    }

    /// Another connection has the ports of the one at `index`.
    fn end_for_another(&mut self, now: Instant, index: FlowIndex, state: StateSince) {
        self.end_pledged(index);
        self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.release(cx.budget);
        });
        self.begin_anew(index);
        if let Some(connection) = self.connections.at_mut(index) {
            connection.forget_offers();
        }
    }

    /// Forgets a connection whose addresses and ports another one has now.
    fn begin_anew(&mut self, index: FlowIndex) {
        self.end_pledged(index);
        let key = self.connections.key(index);
        let Some((key, connection)) = key.zip(self.connections.at_mut(index)) else {
            return;
        };
        let link = connection.link;
        self.service.begin_anew(&key, connection, &mut self.outbox);
        self.releases.forget_handshake(link, index);
    }

    /// The far host acknowledges what was never seen here. If the connection is frozen here, it has
    /// gone on elsewhere, or while nobody ran here: it is the hosts' own again, and is met anew. The far host
    /// is believed only when it was given the segment and had time to acknowledge that.
    fn note_gone_on(&mut self, now: Instant, index: FlowIndex, tcp: &TcpHeader) {
        let Some(connection) = self.connections.at(index) else {
            return;
        };
        if !custody::may_have_gone_on(connection, tcp) {
            return;
        }
        let Some(state) = self.links.state(connection.link) else {
            return;
        };
        let is_believed = self.with_mechanism(now, index, state, |mechanism, cx| {
            let mechanism = mechanism.zero_window_ack();
            mechanism.is_some_and(|mechanism| mechanism.doubt(cx))
        });
        if is_believed != Some(true) {
            return;
        }
        if let Some(flow) = self.connections.key(index) {
            self.release_frozen(now, flow);
        }
        self.remove(index);
    }

    /// A connection leaves the table, or its place. If the gateway has the only copy of what it has
    /// acknowledged, the connection cannot go on: both hosts are told.
    fn say_last_words(&mut self, link: LinkId, words: LastWords) {
        self.outbox.counters.resets += u64::from(words.resets.is_some());
        let is_down = self.links.state(link).map(|state| state.state) == Some(LinkState::Down);
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

    // What goes out.

    /// Sends what waits, connection by connection, as far as the pace of each link allows.
    fn send_in_turn(&mut self, now: Instant) {
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
                        let (links, age) = (&self.links, self.limits.other_age);
                        let is_up = |link| links.is_up(link);
                        self.releases
                            .send_other(place, now, age, is_up, &mut self.outbox)
                    }
                    Turn::Flow(index, waiting) => self.send_for_flow(now, index, waiting, place),
                };
                self.releases.charge(place, now, taken, len);
            }
        }
    }

    /// Sends one packet of a connection; returns its length. The connection may be gone by now, or have
    /// moved to another interface and have its turn there.
    fn send_for_flow(
        &mut self,
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
        let Some(state) = self.links.state(link) else {
            return 0;
        };
        let outgoing = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.poll_transmit(cx)
        });
        let Some(outgoing) = outgoing.flatten() else {
            return 0;
        };
        if outgoing.direction == Direction::ToLink {
            self.note_sent(now, (link, index), &outgoing.packet);
        }
        let connection = self.connections.at_mut(index);
        // Who has filled the link's queue has more under way than a connection begins with (RFC 6928).
        let has_standing_queue = connection.is_some_and(|connection| {
            if outgoing.reason == SendReason::Question {
                connection.silence.note_probe(now);
            }
            let near = &connection.tracked.near;
            u64::from(near.next.distance_from(near.acked).unsigned_abs()) > INITIAL_BURST
        });
        let len = outgoing.packet.total_len();
        self.transmit(now, link, outgoing);
        if let Some(release) = self.releases.at_mut(link.interface) {
            release.charge_connection(now, waiting, len, has_standing_queue);
        }
        len
    }

    /// A connection's mechanism sends `packet` towards the link.
    fn note_sent(&mut self, now: Instant, (link, index): (LinkId, FlowIndex), packet: &Packet) {
        if packet.sequence_len() > 0
            && let Some(connection) = self.connections.at_mut(index)
        {
            let parts = (&connection.tracked, &mut connection.silence);
            let silent = self.links.note_repetition(now, (link, index), parts);
            self.tell_silent(silent);
        }
        let Some(peer) = self.connections.key(index).map(|key| key.far.ip()) else {
            return;
        };
        self.note_departure(now, (peer, index), packet);
        let patience = self
            .connections
            .at(index)
            .map(|one| one.tracked.rtt.patience());
        if let Some((patience, release)) = patience.zip(self.releases.at_mut(link.interface)) {
            release.ask(now, peer, patience);
        }
    }

    /// A packet of a connection with `peer` goes onto the link.
    fn note_departure(
        &mut self,
        now: Instant,
        (peer, index): (IpAddr, FlowIndex),
        packet: &Packet,
    ) {
        if let Some(connection) = self.connections.at_mut(index) {
            self.releases
                .note_departure(now, (peer, index), connection, packet);
        }
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
    fn is_idle(&self) -> bool {
        self.service.kind() == PathMechanismKind::None && self.connections.len() == 0
    }
}

/// Whether no host will take the segment: its checksum is wrong, and no network card is to fill it in.
fn is_damaged(packet: &Packet) -> bool {
    !packet.checksums_ok() && !packet.has_partial_checksum()
}
