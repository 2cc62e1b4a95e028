//! A gateway at one end of disconnecting links.
//!
//! It is shown every packet that crosses, told when links go and come, and asked what to send.
//! The polling order is that of every state machine here: after each `handle_*` call the driver
//! drains [`Gateway::poll_transmit`] and [`Gateway::poll_event`], then reads [`Gateway::poll_timeout`] and calls
//! [`Gateway::handle_timeout`] no later than that. Who makes [`Event::Frozen`] known, or writes it down, drains events
//! first. Time never goes back, but for packets that are [recalled](Gateway::recall).
//!
//! A gateway has two parts. `Links` knows which links are up, and which indicator said so. `Flows`
//! keeps connections and what serves them. This file joins the two. Start reading at `handle_packet`,
//! the path of a packet: its link's state, its connection, tracking, what the packet shows of the
//! link, the mechanism. What changes both parts has a file for each idea:
//!
//! | file | what is in it |
//! |---|---|
//! | `mechanism_calls` | calls of mechanisms, and what follows from them |
//! | `link_changes` | what a change of a link brings about |
//! | `sending` | what goes out, turn by turn, and probes |
//! | `unserved` | packets that no mechanism serves |
//! | `rivals` | connections with the addresses and ports of a tracked one |
//! | `adoption` | connections that somebody else tracks |
//! | `takeover` | connections that go from one gateway to another |
//!
//! # Connections that somebody else tracks
//!
//! A kernel's fast path tracks connections as long as nothing is to be done for them. When their link goes down
//! the gateway takes them over, in three steps while the link is still up in the gateway's eyes: first
//! [`Gateway::adopt`] with the connection as it was before the oldest packet that is known, then
//! [`Gateway::recall`] with each such packet in order, then [`Gateway::adopt`] with the connection as it is.
//! The gateway is then in the state that it would have if the packets had crossed it. When nothing
//! is left to do, the driver has it forget the connections ([`Gateway::forget`]).

use crate::adoption;
use crate::connections::{Connection, Order, stands_alone};
use crate::counters::Counters;
pub use crate::custody::{ImportError, Imported, Pledge, Supervision, reset_of_unknown};
pub use crate::event::{DropCause, Event, Transmit};
use crate::flows::Flows;
use crate::limits::Limits;
use crate::link_changes;
pub use crate::link_changes::MOST_ASKED_AT_REST;
pub use crate::links::{DampedLink, DampingConfig, FLAP, Neighbour, SilenceConfig, SilentLink};
use crate::links::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkEvidence, LinkId, LinkState,
    Links, StateSince,
};
use crate::mechanism_calls::{self, with_mechanism};
use crate::mechanisms::path::{HoldRules, PathMechanismKind, Standing, TakeReason, Verdict};
use crate::neighbours;
use crate::passing::PassingPacket;
pub use crate::report::{Activity, FlowReport};
use crate::rivals;
use crate::sending;
use crate::takeover;
use crate::timers;
pub use crate::timers::TimeoutReason;
use crate::tracking::{
    FlowIndex, FlowKey, FrozenFlow, Heard, Observation, Oddity, Phase, SupervisedFlow, TcpFlow,
};
use crate::unserved;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_base::units::{BitRate, ByteCount};
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// What a gateway is made with.
#[derive(Clone, Debug, Default)]
pub struct GatewayConfig {
    /// The mechanism of new connections.
    pub mechanism: PathMechanismKind,
    /// Hard caps.
    pub limits: Limits,
    /// Seed of the flow table's hash; a live driver draws it at random, so that nobody can
    /// choose addresses that collide.
    pub seed: u64,
    /// How silence shows that a link is down; `None`: only indicators from outside do.
    pub silence: Option<SilenceConfig>,
    /// How indicators that flap are damped; `None`: each is believed at once.
    pub damping: Option<DampingConfig>,
}

/// A gateway at one end of disconnecting links.
#[derive(Debug)]
pub struct Gateway {
    links: Links,
    flows: Flows,
}

impl Gateway {
    /// A gateway without links.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        Self {
            links: Links::new(config.silence, config.damping),
            flows: Flows::new(config.mechanism, config.limits, config.seed),
        }
    }

    /// Adds an interface with a disconnecting link behind it, which is up.
    pub fn add_link(&mut self, now: Instant, interface: InterfaceId, config: LinkConfig) {
        self.links.add(now, interface);
        self.flows.releases.add(interface, config.rate);
    }

    /// Takes a packet that crosses the gateway on `link`, and says what becomes of it.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        link: LinkId,
        direction: Direction,
        packet: &Packet,
    ) -> Verdict {
        self.flows.outbox.counters.packets += 1;
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
                unserved::handle_other(&mut self.flows, &passing)
            }
        };
        self.flows.outbox.counters.taken += u64::from(verdict != Verdict::Pass);
        self.flows.releases.note_verdict(&passing, verdict);
        sending::send_in_turn(self.parts(), now);
        verdict
    }

    /// Takes a packet back that the link has dropped.
    ///
    /// The gateway had passed `packet`, or sent it towards the link. Only the link's own end can report a drop; what
    /// is lost on the way is never reported. Of a connection that was not seen in both directions only a SYN or a
    /// RST is kept.
    pub fn handle_drop(&mut self, now: Instant, link: LinkId, packet: &Packet, cause: DropCause) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        if cause == DropCause::Congestion {
            if let Some(release) = self.flows.releases.at_mut(link.interface) {
                release.pacer.congested(now);
            }
            return;
        }
        if self.flows.is_idle() {
            return;
        }
        match packet.tcp() {
            Some(tcp) if !stands_alone(tcp) => {
                mechanism_calls::handle_segment_drop(self.parts(), now, packet);
            }
            _ if !self.flows.service.kind().holds_other_traffic() => {}
            _ if unserved::handle_opening_drop(&mut self.flows, now, link, packet) => {}
            _ => self.flows.keep_other(now, link, state.state, packet),
        }
        sending::send_in_turn(self.parts(), now);
    }

    /// Hears from an indicator that a link went down or came up.
    ///
    /// The indicator is believed at once, unless it has spoken too often of late: see [`DampingConfig`].
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        let peers = self.flows.limits.peers;
        let sign = self
            .links
            .handle_event(now, event, peers, &mut self.flows.outbox.counters);
        if let Some(sign) = sign {
            link_changes::change_link(self.parts(), now, sign);
        }
    }

    /// Hears that a link was down and is up again.
    ///
    /// If no indicator had said that the link was down, every connection behind it is told both changes. A link that
    /// is down becomes up.
    pub fn handle_return(&mut self, now: Instant, link: LinkId, indicator: Indicator) {
        let up = LinkEvent {
            link,
            state: LinkState::Up,
            indicator,
        };
        match self.links.state(link).map(|state| state.state) {
            None => self.flows.outbox.counters.link_events_refused += 1,
            Some(LinkState::Down) => self.handle_link(now, up),
            Some(LinkState::Up) => {
                if let Some(signs) =
                    self.links
                        .handle_return(now, up, &mut self.flows.outbox.counters)
                {
                    let behind = self.flows.connections.behind(link);
                    link_changes::return_of(self.parts(), now, &behind, signs);
                    sending::send_in_turn(self.parts(), now);
                }
            }
        }
    }

    /// Hears who answers for the address of the peer of `link`, where hosts have addresses of the link layer.
    ///
    /// Segments kept for a peer that is the far host itself are sent only to whom they were kept for: to the host that had the
    /// address before, or to whoever speaks as the connection's far host. Before a link that is back is
    /// [reported](Self::handle_link), report those of its peers that nobody has answered for yet.
    pub fn handle_neighbour(&mut self, now: Instant, link: LinkId, neighbour: Neighbour) {
        neighbours::handle(self.parts(), now, link, neighbour);
    }

    /// Hears that the link of `flow`, whose data is repeated, is silent since `since` ([`Debt::silent_since`](crate::links::Debt::silent_since)).
    ///
    /// For drivers that track connections in the gateway's stead. Returns whether the link is suspected from now on;
    /// not if the gateway does not track the connection, or its link is down.
    pub fn handle_silence(&mut self, now: Instant, flow: &FlowKey, since: Instant) -> bool {
        let Some(index) = self.flows.connections.find(flow) else {
            return false;
        };
        let Some(connection) = self.flows.connections.at_mut(index) else {
            return false;
        };
        let link = connection.link;
        let Connection {
            tracked, silence, ..
        } = connection;
        let silent = self
            .links
            .handle_silence(now, (link, index), since, (tracked, silence));
        self.flows.outbox.tell_silent(silent);
        sending::send_in_turn(self.parts(), now);
        self.links.is_suspected(link)
    }

    /// Does what is due at the time that [`Self::poll_timeout`] gave.
    pub fn handle_timeout(&mut self, now: Instant) {
        // Links come first: a link's return may make something due at once.
        while let Some(sign) = self.links.poll_damped(
            now,
            self.flows.limits.peers,
            &mut self.flows.outbox.counters,
        ) {
            link_changes::change_link(self.parts(), now, sign);
        }
        while let Some(index) = self.flows.service.take_due(now) {
            let Some(connection) = self.flows.connections.at_mut(index) else {
                continue;
            };
            connection.deadline = None;
            let state = self.links.state(connection.link);
            let Some(state) = state.map(|state| connection.met(state)) else {
                continue;
            };
            with_mechanism(self.parts(), now, index, state, |mechanism, cx| {
                mechanism.handle_timeout(cx);
            });
            // It was given a mechanism since its last packet, and nobody has answered.
            if self.flows.connections.is_idle(now, index) {
                mechanism_calls::rest((&mut self.flows, &self.links), now, index);
            }
        }
        unserved::repeat_handshakes(self.parts(), now);
        self.flows.releases.end_wait_of_others(now);
        while let Some(expired) = self.flows.connections.expire(now) {
            self.flows.release(&mut self.links, expired);
        }
        while let Some(index) = self.flows.connections.rest(now) {
            mechanism_calls::rest((&mut self.flows, &self.links), now, index);
        }
        while let Some((link, index)) = self.links.poll_probe(now, &self.flows.connections) {
            sending::probe(&mut self.flows, now, link, index);
            if let Some(raiser) = self.links.plan_probe(now, link) {
                self.flows.connections.distrust(raiser);
                self.rest_idle_on(now, link);
            }
        }
        sending::send_in_turn(self.parts(), now);
    }

    /// Takes the next packet to send.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.flows.outbox.next_packet()
    }

    /// Takes the next event to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.flows.outbox.next_event()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        timers::first([
            (TimeoutReason::Pace, self.flows.releases.next_chance()),
            (TimeoutReason::Mechanism, self.flows.service.next_deadline()),
            (
                TimeoutReason::Handshake,
                self.flows.releases.next_handshake(),
            ),
            (
                TimeoutReason::OtherTraffic,
                self.flows.releases.others_set_aside_until(),
            ),
            (TimeoutReason::Probe, self.links.next_probe()),
            (TimeoutReason::Damping, self.links.next_damped()),
            (TimeoutReason::Expiry, self.flows.connections.next_expiry()),
            (TimeoutReason::Rest, self.flows.connections.next_rest()),
        ])
    }

    /// What was counted since the gateway began.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.flows.outbox.counters
    }

    /// Bytes kept for TCP flows, as charged against [`Limits::held_in_all`].
    #[must_use]
    pub const fn held(&self) -> ByteCount {
        self.flows.service.held()
    }

    /// Bytes kept of UDP and all other traffic, on all interfaces.
    #[must_use]
    pub fn held_other(&self) -> ByteCount {
        self.flows.releases.bytes()
    }

    /// How many connections are tracked.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.connections.len()
    }

    /// Reports on every tracked connection.
    ///
    /// The order depends only on what the gateway was shown. With many connections this takes a while.
    pub fn flow_reports(&self) -> impl Iterator<Item = FlowReport> {
        self.flows
            .connections
            .iter()
            .map(|(key, last_packet, connection)| FlowReport::of(key, last_packet, connection))
    }

    /// Reports on the connections of a peer, or on those of all peers of an interface.
    pub fn flow_reports_behind(&self, link: LinkId) -> impl Iterator<Item = FlowReport> {
        let connections = &self.flows.connections;
        let behind = connections.iter_behind(link);
        behind.filter_map(|(_, index)| {
            let (key, last_packet, connection) = connections.report_at(index)?;
            Some(FlowReport::of(key, last_packet, connection))
        })
    }

    /// What of the link's rate a connection gets; `None` if that rate is not shared out, or not known.
    ///
    /// Of a connection that is not sent data, what it would get if it were.
    #[must_use]
    pub fn share_of(&self, flow: &FlowKey) -> Option<BitRate> {
        let index = self.flows.connections.find(flow)?;
        let interface = self.flows.connections.at(index)?.link.interface;
        let release = self.flows.releases.at(interface)?;
        let allotment = release.allotment(flow.far.ip(), index)?;
        Some(allotment.rate)
    }

    /// Whether a connection is tracked behind `link`, or behind any peer of an interface.
    #[must_use]
    pub fn has_flows(&self, link: LinkId) -> bool {
        self.flows.connections.iter_behind(link).next().is_some()
    }

    /// The state of `link`; `None` for an interface that was never added.
    #[must_use]
    pub fn link_state(&self, link: LinkId) -> Option<StateSince> {
        self.links.state(link)
    }

    /// The links whose indicators are damped now.
    pub fn damped_links(&self, now: Instant) -> impl Iterator<Item = DampedLink> {
        self.links.damped(now)
    }

    /// The links that are suspected to be down because they leave data unanswered.
    pub fn silent_links(&self) -> impl Iterator<Item = SilentLink> {
        self.links.silent()
    }

    /// The longest packet that `packet`'s receiver takes on its connection.
    ///
    /// In bytes, with the IP header, as the receiver's SYN has offered. If that SYN was not seen: the longest packet
    /// that went to the receiver ([`Self::note_length`]); `None` if none is known. A super-segment stands for
    /// packets that are no longer than that.
    #[must_use]
    pub fn longest_packet(&self, packet: &Packet, direction: Direction) -> Option<u32> {
        let key = FlowKey::of_tcp(packet.header(), direction)?;
        let connection = self
            .flows
            .connections
            .at(self.flows.connections.find(&key)?)?;
        connection.longest_packet(packet, direction)
    }

    /// Notes the length of a packet that crosses towards the link as its sender has cut it.
    ///
    /// Not for a super-segment, nor for the packets that a driver has cut it into.
    pub fn note_length(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp().filter(|_| packet.sequence_len() > 0) else {
            return;
        };
        let key = FlowKey::of_tcp(packet.header(), Direction::ToLink);
        let index = key.and_then(|key| self.flows.connections.find(&key));
        if let Some(connection) = index.and_then(|index| self.flows.connections.at_mut(index)) {
            connection.note_length(packet, tcp);
        }
    }

    /// Sets the mechanism of connections that begin from now on; the others keep theirs.
    pub const fn set_mechanism(&mut self, mechanism: PathMechanismKind) {
        self.flows.service.set_kind(mechanism);
    }

    /// Sets which rules of `hold` are obeyed; all of them, except in trials.
    pub const fn set_rules(&mut self, rules: HoldRules) {
        self.flows.service.set_rules(rules);
    }

    /// Sets other caps.
    ///
    /// What is kept or tracked above a lower cap stays, but no more is taken. Of other traffic the oldest packet goes
    /// first, once more of it comes.
    pub fn set_limits(&mut self, limits: Limits) {
        self.flows.set_limits(limits);
    }

    /// Sets whether, and how, silence is detected. Suspicions are forgotten; they show again.
    pub fn set_silence(&mut self, silence: Option<SilenceConfig>) {
        self.links.set_silence(silence);
    }

    /// Sets whether, and how, indicators that flap are damped.
    ///
    /// What was said last of a damped link holds at once, and all penalties are forgiven.
    pub fn set_damping(&mut self, now: Instant, damping: Option<DampingConfig>) {
        for event in self.links.set_damping(damping) {
            self.handle_link(now, event);
        }
    }

    /// Sets the rate of the link behind `interface`; `None` if it is not known.
    pub fn set_rate(&mut self, now: Instant, interface: InterfaceId, rate: Option<BitRate>) {
        if let Some(release) = self.flows.releases.at_mut(interface) {
            release.pacer.set_rate(now, rate);
        }
        sending::send_in_turn(self.parts(), now);
    }

    /// Sets the rate at which the link behind `interface` carries packets that go onto it compressed.
    ///
    /// It counts their length before that. If no rate is configured nothing changes: the gateway measures what is
    /// delivered.
    pub fn adjust_rate(&mut self, interface: InterfaceId, rate: BitRate) {
        if let Some(release) = self.flows.releases.at_mut(interface) {
            release.pacer.adjust_rate(rate);
        }
    }

    /// Sets whether the rate of the link behind `interface` is shared out among far hosts and their connections.
    ///
    /// Then a supervisor host sends data at that rate, each far host's part of it being the same. Without a
    /// rate it has no effect.
    pub fn share_rate(&mut self, now: Instant, interface: InterfaceId, shares_out: bool) {
        if let Some(release) = self.flows.releases.at_mut(interface) {
            release.share_out(shares_out);
        }
        sending::send_in_turn(self.parts(), now);
    }

    /// Takes over a connection that somebody else has tracked, or corrects a tracked one.
    ///
    /// Its packets cross on `link`. Numbers from somebody who has not seen both hosts correct nothing of a connection
    /// that the gateway has acknowledged ahead: only the gateway has that data, and needs the far host's numbers to
    /// send it.
    pub fn adopt(&mut self, now: Instant, link: LinkId, key: FlowKey, tracked: TcpFlow) {
        adoption::adopt(self.parts(), now, link, key, tracked);
    }

    /// Shows a packet of an [adopted](Self::adopt) connection that has crossed already.
    ///
    /// `now` is when it crossed, which may be before what was said last. The packet is not counted, and cannot be kept back.
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

    /// Shows the last acknowledgement of a far host from before its connection was [adopted](Self::adopt).
    ///
    /// It says nothing new, and its sender counts as not heard. The connection's mechanism may repeat it.
    pub fn remember(&mut self, now: Instant, key: &FlowKey, acknowledgement: &Packet) {
        adoption::remember(self.parts(), now, key, acknowledgement);
    }

    /// Whether the connection is tracked.
    #[must_use]
    pub fn is_tracked(&self, key: &FlowKey) -> bool {
        self.flows.connections.find(key).is_some()
    }

    /// The links of `interface` for which the gateway has something to do.
    ///
    /// They are down, or a packet waits for its turn or its time, or the gateway has the only copy of some data.
    /// [`Self::forget`] loses nothing of the other links.
    #[must_use]
    pub fn links_at_work(&self, interface: InterfaceId) -> BTreeSet<LinkId> {
        adoption::links_at_work((&self.flows, &self.links), interface)
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

    /// Drops the connections that cross on `link`, or behind any peer of an interface.
    ///
    /// Somebody else tracks them from now on.
    pub fn forget(&mut self, link: LinkId) {
        self.forget_where(link.interface, |other| link.peer.is_none() || other == link);
    }

    /// Drops the connections of `interface` on those links for which `goes` holds.
    pub fn forget_where(&mut self, interface: InterfaceId, goes: impl Fn(LinkId) -> bool) {
        let mut behind = self
            .flows
            .connections
            .behind(LinkId::of_interface(interface));
        behind.retain(|(link, _)| goes(*link));
        for (_, index) in behind {
            self.flows.remove(&mut self.links, index);
        }
    }

    /// Notes that packets have crossed unseen since then; returns how many connections are in doubt.
    ///
    /// A connection may have gone on unless its link was down all that time. If its next segment
    /// either way does not fit, the gateway tracks the connection anew, unless it has acknowledged
    /// data of it ahead: only the gateway has that data.
    pub fn doubt_since(&mut self, since: Instant) -> usize {
        self.flows.connections.doubt_since(since)
    }

    /// The numbers of a connection that the gateway has acknowledged ahead.
    #[must_use]
    pub fn pledge(&self, flow: &FlowKey) -> Option<Pledge> {
        let index = self.flows.connections.find(flow)?;
        Pledge::of(*flow, self.flows.connections.at(index)?)
    }

    /// The frozen connections of a peer, or of all peers of an interface.
    #[must_use]
    pub fn frozen_behind(&self, link: LinkId) -> Vec<FlowKey> {
        let is_frozen = |one: &Connection| one.standing == Standing::Frozen;
        self.flows.connections.keys_behind(link, is_frozen)
    }

    /// Exports a frozen connection for another gateway; `None` if it is not frozen.
    ///
    /// The connection stays here until [`Self::release_frozen`].
    #[must_use]
    pub fn export_frozen(&mut self, flow: FlowKey) -> Option<FrozenFlow> {
        takeover::export_frozen(&mut self.flows, flow)
    }

    /// Takes over a connection that another gateway has frozen, or this one before a restart.
    ///
    /// The connection's segment is sent on `link` while that is up, until the far host acknowledges it. How often it
    /// was sent in vain is counted from now on if the far host `is_heard` there, and else from its first packet on.
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
        takeover::import_frozen(self.parts(), now, link, frozen, is_heard)
    }

    /// Notes whether another gateway delivers the segment of a frozen connection now.
    ///
    /// While it does, this gateway keeps the segment and answers the near host's probes.
    pub fn lend_frozen(&mut self, now: Instant, flow: FlowKey, is_lent: bool) {
        takeover::lend_frozen(self.parts(), now, flow, is_lent);
    }

    /// Gives a frozen connection back to its hosts.
    ///
    /// The far host has acknowledged the segment where this gateway does not see it.
    pub fn release_frozen(&mut self, now: Instant, flow: FlowKey) {
        takeover::release_frozen(self.parts(), now, flow);
    }

    /// Whether this is a supervisor host of M-TCP.
    #[must_use]
    pub fn supervises(&self) -> bool {
        self.flows.service.supervises()
    }

    /// The connections behind `link` that another supervisor host can take over.
    ///
    /// Those of a peer, or of all peers of an interface. None where no supervisor host is.
    #[must_use]
    pub fn supervised_behind(&self, link: LinkId) -> Vec<FlowKey> {
        if !self.supervises() {
            return Vec::new();
        }
        let is_met = |one: &Connection| one.is_proven && one.tracked.phase == Phase::Established;
        self.flows.connections.keys_behind(link, is_met)
    }

    /// Exports a supervised connection for another supervisor host; `None` if there is none.
    ///
    /// Kept data is not exported, and is dropped if the far host is away. Probes that still come here are answered.
    #[must_use]
    pub fn hand_off_supervised(&mut self, now: Instant, flow: FlowKey) -> Option<SupervisedFlow> {
        takeover::hand_off_supervised(self.parts(), now, flow)
    }

    /// Takes over a connection that another supervisor host has supervised.
    ///
    /// If the far host is behind `link`, the near host's window opens at once, and the near host sends again what was
    /// lost.
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
        takeover::import_supervised(self.parts(), now, link, supervised)
    }

    /// Gives a frozen connection up and returns a reset for the near and for the far host.
    ///
    /// The caller sends them to wherever the hosts are now. `None` if the connection is not frozen.
    #[must_use]
    pub fn reset_frozen(&mut self, now: Instant, flow: FlowKey) -> Option<[Packet; 2]> {
        let numbers = self.export_frozen(flow)?.numbers().ok()?;
        takeover::release_frozen(self.parts(), now, flow);
        self.flows.outbox.counters.resets += 1;
        Some([numbers.reset_near(), numbers.reset_far()])
    }

    /// Both parts, for what changes both.
    const fn parts(&mut self) -> (&mut Flows, &mut Links) {
        (&mut self.flows, &mut self.links)
    }

    // A packet's way.

    fn handle_tcp(
        &mut self,
        passing: &PassingPacket<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Verdict {
        if self.flows.is_idle() {
            return Verdict::Pass;
        }
        if is_damaged(passing.packet) {
            self.flows.outbox.counters.odd_segments += 1;
            return Verdict::Pass;
        }
        let index = self
            .flows
            .connections
            .find(&key)
            .or_else(|| self.flows.admit(&mut self.links, passing, key, tcp));
        let Some((index, connection)) =
            index.and_then(|i| Some((i, self.flows.connections.at_mut(i)?)))
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
        let observation = match connection.observe(now, direction, packet, tcp) {
            Heard::Honest(observation) => observation,
            Heard::Odd(oddity) | Heard::OfRival(oddity)
                if connection.may_have_gone_on(direction, oddity) =>
            {
                // The connection has gone on unseen: only this segment is known of it.
                self.flows.remove(&mut self.links, index);
                return self.handle_tcp(passing, key, tcp);
            }
            Heard::Odd(oddity) => return self.pass_odd(passing, index, tcp, oddity),
            Heard::OfRival(oddity) => {
                rivals::give_place_to_rival(self.parts(), passing, index);
                return self.pass_odd(passing, index, tcp, oddity);
            }
        };
        if observation.begins_anew {
            rivals::take_place_back(self.parts(), passing, index);
        }
        if tcp.has(TcpFlags::RST) {
            self.flows.end_pledged(&mut self.links, index);
        }
        let Some(connection) = self.flows.connections.at_mut(index) else {
            return Verdict::Pass;
        };
        if connection.take_in(direction, packet, tcp, observation, was) == Order::Overtaken {
            // A late segment is no retransmission of the segment that is timed.
            connection.tracked.rtt = rtt;
            return Verdict::Pass;
        }
        self.handle_observed(passing, index, tcp, (was, observation))
    }

    /// Serves a segment that fits its connection; `was` is the phase before it.
    #[inline]
    fn handle_observed(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        (was, observation): (Phase, Observation),
    ) -> Verdict {
        let met = neighbours::met(&mut self.flows, index, passing, tcp);
        let verdict = self.handle_met((passing, &met), index, tcp, (was, observation));
        neighbours::verdict_of(&mut self.flows, index, (passing, &met), verdict)
    }

    /// Serves a segment of a connection for which the link is as `met` says.
    #[inline]
    fn handle_met(
        &mut self,
        (passing, met): (&PassingPacket<'_>, &PassingPacket<'_>),
        index: FlowIndex,
        tcp: &TcpHeader,
        (was, observation): (Phase, Observation),
    ) -> Verdict {
        self.follow(met, index, was);
        let Flows {
            limits,
            connections,
            releases,
            outbox,
            ..
        } = &mut self.flows;
        let Some(mut entry) = connections.entry(index) else {
            return Verdict::Pass;
        };
        let news = (was, observation.newly_acked);
        if let Some(verdict) = met.note_in_turns(&mut entry, tcp, news, (releases, limits, outbox))
        {
            return verdict;
        }
        let (phase, is_proven) = (entry.connection.tracked.phase, entry.connection.is_proven);
        let evidence = entry
            .connection
            .was_established()
            .then(|| met.note_evidence(&mut entry, tcp, observation, (&mut self.links, outbox)));
        let only_answers_probe =
            evidence.is_some_and(|evidence| self.act_on_evidence(passing, evidence));
        let is_served = is_proven && (was == Phase::Established || phase == Phase::Established);
        let verdict =
            mechanism_calls::serve_crossing(self.parts(), met, index, (is_served, observation));
        match verdict {
            _ if only_answers_probe => Verdict::Taken(TakeReason::AnswersProbe),
            Some(taken @ Verdict::Taken(_)) => taken,
            // Connections that open or abort while the link is down have no data to keep.
            _ if tcp.has(TcpFlags::SYN) => {
                unserved::handle_opening(&mut self.flows, passing, index)
            }
            _ if stands_alone(tcp) => unserved::handle_other(&mut self.flows, passing),
            _ if !is_proven => unserved::handle_one_sided(self.parts(), passing, index),
            _ => Verdict::Pass,
        }
    }

    /// Passes a segment that does not belong to its connection as tracked.
    ///
    /// No mechanism sees the segment. If it may open or abort a connection at its receiver, it
    /// waits while the link is down, as other traffic does.
    fn pass_odd(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        oddity: Oddity,
    ) -> Verdict {
        self.flows.outbox.counters.odd_segments += 1;
        if passing.direction == Direction::FromLink && oddity == Oddity::AcknowledgesUnsent {
            takeover::note_gone_on(self.parts(), passing.now, index, tcp);
        }
        let begins = oddity == Oddity::UnexpectedSyn && !tcp.has(TcpFlags::ACK);
        // The SYN may come from a client that has forgotten the connection. An inexact reset within
        // the window draws an exact one.
        if begins || oddity == Oddity::InexactReset {
            return unserved::handle_other(&mut self.flows, passing);
        }
        Verdict::Pass
    }

    /// Follows a connection to the link on which its packet crosses, and to that link's state.
    ///
    /// `was` is the phase before this packet.
    fn follow(&mut self, passing: &PassingPacket<'_>, index: FlowIndex, was: Phase) {
        let &PassingPacket {
            now,
            link,
            state,
            direction,
            ..
        } = passing;
        let Some(connection) = self.flows.connections.at_mut(index) else {
            return;
        };
        let phase = connection.tracked.phase;
        // Before both hosts are known, anybody may have sent a packet from the link.
        let is_followed = phase != Phase::Opening || direction == Direction::ToLink;
        let is_elsewhere = is_followed && connection.link != link;
        let is_news = is_followed && connection.known_link_state.state != state.state;
        if state.state == LinkState::Down {
            connection.tracked.rtt.discard();
        }
        if is_elsewhere {
            self.flows.move_flow(&mut self.links, index, link);
        }
        if was == Phase::Closed && phase == Phase::Opening {
            rivals::begin_anew(self.parts(), index);
        }
        if is_news {
            link_changes::change_link_of(self.parts(), now, index, state);
        }
        self.flows.note_life(&mut self.links, now, index);
    }

    /// Lets the idle connections on `link` rest, which is not suspected any more.
    fn rest_idle_on(&mut self, now: Instant, link: LinkId) {
        let on_link: Vec<_> = self.flows.connections.on(link).collect();
        for (_, index) in on_link {
            if self.flows.connections.is_idle(now, index) {
                mechanism_calls::rest((&mut self.flows, &self.links), now, index);
            }
        }
    }

    /// Acts on what the segment shows of its link. Returns whether it only answers a probe.
    #[inline]
    fn act_on_evidence(&mut self, passing: &PassingPacket<'_>, evidence: LinkEvidence) -> bool {
        let &PassingPacket { now, link, .. } = passing;
        let LinkEvidence {
            is_to_probe,
            is_awaited,
            signs,
            refuted,
        } = evidence;
        if is_awaited {
            self.flows
                .releases
                .welcome_one_sided(now, link, &self.flows.connections);
        }
        if let Some(raiser) = refuted {
            self.flows.connections.distrust(raiser);
        }
        if let Some(signs) = signs {
            // Kept packets have their turn once this packet is taken in, as it may acknowledge some
            // of them.
            let flows: Vec<_> = self.flows.connections.on(link).collect();
            link_changes::return_of(self.parts(), now, &flows, signs);
        }
        is_to_probe
    }
}

/// Whether every host drops the segment: a wrong checksum that no network card will fill in.
fn is_damaged(packet: &Packet) -> bool {
    !packet.checksums_ok() && !packet.has_partial_checksum()
}
