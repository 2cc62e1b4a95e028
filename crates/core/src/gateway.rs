//! A gateway at one end of disconnecting links.
//!
//! It is shown every packet that crosses, told when links go and come, and asked what to send.
//! The polling order is that of every state machine here: after each `handle_*` call the driver
//! drains [`Gateway::poll_transmit`], then [`Gateway::poll_event`], then reads
//! [`Gateway::poll_timeout`] and calls [`Gateway::handle_timeout`] no later than that. Time never
//! goes back.

mod schedule;

use crate::counters::Counters;
use crate::flow::{Admission, FlowIndex, FlowKey, FlowTable, Phase, Shelf, TcpFlow};
use crate::limits::{Budget, Limits};
use crate::link::{
    Applied, Direction, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState, LinkTable,
    StateSince,
};
use crate::mechanisms::path::{
    Context, Outgoing, PathMechanism, PathMechanismKind, SendReason, TakeReason, Verdict,
};
use crate::time::{Duration, Instant};
use crate::units::ByteCount;
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use outlast_wire::{Packet, TcpFlags, TcpHeader};
use schedule::{Schedule, Turn};

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
}

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// Where.
    pub link: LinkId,
    /// [`Direction::ToLink`]: into the link's queue. [`Direction::FromLink`]: to this side, as
    /// if it had come from the link.
    pub direction: Direction,
    /// What.
    pub packet: Packet,
    /// Why.
    pub reason: SendReason,
}

/// Something a status page or a log tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// A link changed its state.
    Link(LinkEvent),
    /// A flow moved again, this long after its link was back.
    Resumed {
        /// The flow.
        flow: FlowKey,
        /// Time since link-up.
        after: Duration,
    },
}

/// Why the gateway wants to be called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeoutReason {
    /// A packet's turn comes.
    Pace,
    /// A flow ought to have moved by then.
    Kick,
    /// A flow has been idle for too long.
    Expiry,
}

/// Why the link dropped a packet that it had been given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropCause {
    /// It was down, or went down with the packet in its queue.
    Outage,
    /// Its queue was full: a sign of congestion, for the sender to see.
    Congestion,
}

/// A gateway at one end of disconnecting links.
#[derive(Debug)]
pub struct Gateway {
    mechanism: PathMechanismKind,
    limits: Limits,
    links: LinkTable,
    schedules: Vec<Schedule>,
    flows: FlowTable<Record>,
    deadlines: BTreeSet<(Instant, FlowIndex)>,
    budget: Budget,
    counters: Counters,
    outbox: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

/// One packet that crosses the gateway.
#[derive(Clone, Copy, Debug)]
struct Crossing<'a> {
    now: Instant,
    link: LinkId,
    state: StateSince,
    direction: Direction,
    packet: &'a Packet,
}

/// One tracked connection.
#[derive(Debug)]
struct Record {
    tracked: TcpFlow,
    link: LinkId,
    /// What the mechanism was last told.
    state: LinkState,
    mechanism: Option<Box<dyn PathMechanism>>,
    deadline: Option<Instant>,
    has_turn: bool,
}

impl Gateway {
    /// A gateway without links.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        let limits = config.limits;
        let timeouts = [
            limits.closed_timeout,
            limits.opening_timeout,
            limits.established_timeout,
        ];
        Self {
            mechanism: config.mechanism,
            limits,
            links: LinkTable::default(),
            schedules: Vec::new(),
            flows: FlowTable::new(limits.flows, timeouts, config.seed),
            deadlines: BTreeSet::new(),
            budget: Budget::new(limits.held_in_all),
            counters: Counters::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Adds an interface with a disconnecting link behind it, which is up.
    pub fn add_link(&mut self, now: Instant, interface: InterfaceId, config: LinkConfig) {
        self.links.add(now, interface);
        if !self
            .schedules
            .iter()
            .any(|schedule| schedule.interface == interface)
        {
            self.schedules.push(Schedule::new(interface, config.rate));
        }
    }

    /// A packet crosses the gateway on `link`.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        link: LinkId,
        direction: Direction,
        packet: &Packet,
    ) -> Verdict {
        self.counters.packets += 1;
        let Some(state) = self.links.state(link) else {
            return Verdict::Pass;
        };
        let crossing = Crossing {
            now,
            link,
            state,
            direction,
            packet,
        };
        let verdict = match (FlowKey::of_tcp(packet.header(), direction), packet.tcp()) {
            (Some(key), Some(tcp)) => self.handle_tcp(&crossing, key, tcp),
            _ => self.handle_other(&crossing),
        };
        match (verdict, direction) {
            (Verdict::Taken(_), _) => self.counters.taken += 1,
            (Verdict::Pass, Direction::ToLink) => self.charge(now, link, packet.total_len()),
            (Verdict::Pass, Direction::FromLink) => {}
        }
        self.send_in_turn(now);
        verdict
    }

    /// The link dropped `packet`, which the gateway had passed or sent towards it. Only the
    /// link's own end can know; what is lost on the way is never reported.
    pub fn handle_drop(&mut self, now: Instant, link: LinkId, packet: &Packet, cause: DropCause) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        if cause == DropCause::Congestion {
            if let Some(schedule) = self.schedule(link.interface) {
                schedule.pacer.congested(now);
            }
            return;
        }
        if self.mechanism == PathMechanismKind::None {
            return;
        }
        let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
            .and_then(|key| self.flows.find(&key));
        match index {
            Some(index) if self.is_established(index) => {
                self.with_mechanism(now, index, state, |mechanism, cx| {
                    mechanism.handle_drop(cx, packet);
                });
            }
            _ if self.mechanism.holds_other_traffic() => self.keep_other(link, packet),
            _ => {}
        }
        self.send_in_turn(now);
    }

    /// An indicator says that a link went or came.
    pub fn handle_link(&mut self, now: Instant, event: LinkEvent) {
        match self.links.apply(now, event, self.limits.peers) {
            Applied::Unchanged => return,
            Applied::Refused => {
                self.counters.link_events_refused += 1;
                return;
            }
            Applied::Changed => self.events.push_back(Event::Link(event)),
        }
        if event.state == LinkState::Up
            && let Some(schedule) = self.schedule(event.link.interface)
        {
            schedule.pacer.restart(now);
            schedule.give_others_a_turn();
        }
        for index in self.flows.indices() {
            let Some(record) = self.flows.flow_mut(index) else {
                continue;
            };
            if record.link.interface != event.link.interface {
                continue;
            }
            let Some(state) = self.links.state(record.link) else {
                continue;
            };
            if record.state != state.state {
                record.state = state.state;
                // What was on its way is answered late, or by what the gateway sends.
                record.tracked.rtt.discard();
                self.with_mechanism(now, index, state, |mechanism, cx| mechanism.handle_link(cx));
            }
        }
        self.send_in_turn(now);
    }

    /// The time that [`Self::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.deadlines.first() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            let Some(record) = self.flows.flow_mut(index) else {
                continue;
            };
            record.deadline = None;
            let Some(state) = self.links.state(record.link) else {
                continue;
            };
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_timeout(cx);
            });
        }
        while let Some((index, record)) = self.flows.expire(now) {
            self.release(index, record);
        }
        self.send_in_turn(now);
    }

    /// The next packet to send.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// The next thing to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        let pace = self
            .schedules
            .iter()
            .filter_map(Schedule::next_chance)
            .min();
        let kick = self.deadlines.first().map(|(at, _)| *at);
        let expiry = self.flows.next_expiry();
        [
            (pace, TimeoutReason::Pace),
            (kick, TimeoutReason::Kick),
            (expiry, TimeoutReason::Expiry),
        ]
        .into_iter()
        .filter_map(|(at, reason)| at.map(|at| (at, reason)))
        .min_by_key(|(at, _)| *at)
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes kept for TCP flows, as charged against [`Limits::held_in_all`].
    #[must_use]
    pub const fn held(&self) -> ByteCount {
        self.budget.used()
    }

    /// Bytes of UDP and everything else kept, on all interfaces.
    #[must_use]
    pub fn held_other(&self) -> ByteCount {
        ByteCount(
            self.schedules
                .iter()
                .map(|schedule| schedule.others.bytes())
                .sum(),
        )
    }

    /// Tracked flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The state of `link`; `None` for an interface that was never added.
    #[must_use]
    pub fn link_state(&self, link: LinkId) -> Option<StateSince> {
        self.links.state(link)
    }

    fn handle_tcp(&mut self, crossing: &Crossing<'_>, key: FlowKey, tcp: &TcpHeader) -> Verdict {
        if self.mechanism == PathMechanismKind::None {
            return Verdict::Pass;
        }
        let index = self
            .flows
            .find(&key)
            .or_else(|| self.admit(crossing, key, tcp));
        let Some((index, record)) = index.and_then(|i| Some((i, self.flows.flow_mut(i)?))) else {
            return Verdict::Pass;
        };
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        let was = record.tracked.phase;
        let payload_len = packet.header().payload_len;
        let Ok(observation) = record.tracked.observe(now, direction, tcp, payload_len) else {
            self.counters.odd_segments += 1;
            return Verdict::Pass;
        };
        record.link = link;
        if state.state == LinkState::Down {
            record.tracked.rtt.discard();
        }
        let phase = record.tracked.phase;
        if was == Phase::Closed && phase == Phase::Opening {
            self.replace_mechanism(index);
        }
        self.flows.touch(now, index, shelf(phase));
        if direction == Direction::FromLink
            && let Some(schedule) = self.schedule(link.interface)
        {
            schedule.pacer.acknowledged(observation.newly_acked);
        }
        let verdict = if was == Phase::Established || phase == Phase::Established {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_packet(cx, direction, packet, observation)
            })
        } else {
            None
        };
        match verdict {
            Some(taken @ Verdict::Taken(_)) => taken,
            // Connections that open or abort while the link is down have no data to keep.
            _ if tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST) => self.handle_other(crossing),
            _ => Verdict::Pass,
        }
    }

    /// A packet that no mechanism knows how to recover waits while the link is down.
    fn handle_other(&mut self, crossing: &Crossing<'_>) -> Verdict {
        let &Crossing {
            link,
            state,
            direction,
            packet,
            ..
        } = crossing;
        if direction == Direction::FromLink || !self.mechanism.holds_other_traffic() {
            return Verdict::Pass;
        }
        let reason = match state.state {
            LinkState::Down => TakeReason::LinkDown,
            LinkState::Up if self.others_wait(link) => TakeReason::BehindKept,
            LinkState::Up => return Verdict::Pass,
        };
        self.keep_other(link, packet);
        Verdict::Taken(reason)
    }

    fn others_wait(&self, link: LinkId) -> bool {
        self.schedules
            .iter()
            .find(|schedule| schedule.interface == link.interface)
            .is_some_and(|schedule| schedule.others.has_waiting(|other| other == link))
    }

    fn keep_other(&mut self, link: LinkId, packet: &Packet) {
        let limits = self.limits;
        let Some(schedule) = self.schedule(link.interface) else {
            return;
        };
        let evicted = schedule.others.keep(link, packet, &limits);
        schedule.give_others_a_turn();
        self.counters.others_evicted += evicted;
    }

    /// A flow begins with a SYN, or with any segment of a connection that is older than the
    /// gateway. A lone RST begins nothing.
    fn admit(
        &mut self,
        crossing: &Crossing<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Option<FlowIndex> {
        if tcp.has(TcpFlags::RST) {
            return None;
        }
        let record = Record {
            tracked: TcpFlow::new(),
            link: crossing.link,
            state: crossing.state.state,
            mechanism: self.mechanism.for_flow(),
            deadline: None,
            has_turn: false,
        };
        match self.flows.admit(crossing.now, key, record) {
            Admission::Admitted(index) => Some(index),
            Admission::Displaced(index, displaced) => {
                self.counters.flows_displaced += 1;
                self.release(index, displaced);
                Some(index)
            }
        }
    }

    fn is_established(&self, index: FlowIndex) -> bool {
        self.flows
            .flow(index)
            .is_some_and(|r| r.tracked.phase == Phase::Established)
    }

    /// The same addresses and ports carry another connection now.
    fn replace_mechanism(&mut self, index: FlowIndex) {
        let fresh = self.mechanism.for_flow();
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        if let Some(mut old) = core::mem::replace(&mut record.mechanism, fresh) {
            old.release(&mut self.budget);
        }
    }

    fn schedule(&mut self, interface: InterfaceId) -> Option<&mut Schedule> {
        self.schedules
            .iter_mut()
            .find(|schedule| schedule.interface == interface)
    }

    /// A packet passed towards a link on which others wait for their turn.
    fn charge(&mut self, now: Instant, link: LinkId, len: u32) {
        if let Some(schedule) = self.schedule(link.interface) {
            schedule.pacer.charge(now, len);
        }
    }

    /// Calls a flow's mechanism, then takes note of its deadline and of what it wants sent.
    fn with_mechanism<R>(
        &mut self,
        now: Instant,
        index: FlowIndex,
        link: StateSince,
        call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let key = self.flows.key(index)?;
        let record = self.flows.flow_mut(index)?;
        let mechanism = record.mechanism.as_mut()?;
        let mut resumed = None;
        let mut cx = Context {
            now,
            flow: &record.tracked,
            link,
            limits: &self.limits,
            budget: &mut self.budget,
            counters: &mut self.counters,
            resumed: &mut resumed,
        };
        let result = call(mechanism.as_mut(), &mut cx);
        let deadline = mechanism.poll_timeout();
        if record.deadline != deadline {
            if let Some(at) = record.deadline {
                self.deadlines.remove(&(at, index));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, index));
            }
            record.deadline = deadline;
        }
        if !record.has_turn
            && let Some(waiting) = mechanism.waiting()
            && let Some(schedule) = self
                .schedules
                .iter_mut()
                .find(|s| s.interface == record.link.interface)
        {
            record.has_turn = true;
            schedule.queue(Turn::Flow(index), waiting);
        }
        if let Some(after) = resumed {
            self.events.push_back(Event::Resumed { flow: key, after });
        }
        Some(result)
    }

    /// Sends what waits, flow by flow, as far as the pace of each link allows.
    fn send_in_turn(&mut self, now: Instant) {
        for place in 0..self.schedules.len() {
            while self.schedules[place].pacer.allows(now) {
                let Some(turn) = self.schedules[place].next_turn() else {
                    break;
                };
                match turn {
                    Turn::Others => self.send_other(now, place),
                    Turn::Flow(index) => self.send_for_flow(now, index),
                }
            }
        }
    }

    fn send_other(&mut self, now: Instant, place: usize) {
        let links = &self.links;
        let is_up = |link| links.state(link).is_some_and(|s| s.state == LinkState::Up);
        let schedule = &mut self.schedules[place];
        let Some((link, packet)) = schedule.others.next(is_up) else {
            return;
        };
        if schedule.others.has_waiting(is_up) {
            schedule.give_others_a_turn();
        }
        let direction = Direction::ToLink;
        self.transmit(
            now,
            link,
            Outgoing {
                direction,
                packet,
                reason: SendReason::Kept,
            },
        );
    }

    fn send_for_flow(&mut self, now: Instant, index: FlowIndex) {
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        record.has_turn = false;
        let link = record.link;
        let Some(state) = self.links.state(link) else {
            return;
        };
        let outgoing = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.poll_transmit(cx)
        });
        if let Some(outgoing) = outgoing.flatten() {
            self.transmit(now, link, outgoing);
        }
    }

    fn transmit(&mut self, now: Instant, link: LinkId, outgoing: Outgoing) {
        let Outgoing {
            direction,
            packet,
            reason,
        } = outgoing;
        match (direction, reason) {
            (Direction::FromLink, _) => self.counters.rereceived += 1,
            (Direction::ToLink, SendReason::NewestAck) => self.counters.acks_resent += 1,
            (Direction::ToLink, _) => self.counters.resent += 1,
        }
        if direction == Direction::ToLink {
            self.charge(now, link, packet.total_len());
        }
        self.outbox.push_back(Transmit {
            link,
            direction,
            packet,
            reason,
        });
    }

    /// The flow that was at `index` is gone.
    fn release(&mut self, index: FlowIndex, mut record: Record) {
        if let Some(at) = record.deadline {
            self.deadlines.remove(&(at, index));
        }
        if let Some(mechanism) = &mut record.mechanism {
            mechanism.release(&mut self.budget);
        }
    }
}

const fn shelf(phase: Phase) -> Shelf {
    match phase {
        Phase::Opening => Shelf::Opening,
        Phase::Established => Shelf::Established,
        Phase::Closed => Shelf::Closed,
    }
}
