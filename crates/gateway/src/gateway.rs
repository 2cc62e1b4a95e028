//! A gateway at one end of disconnecting links.
//!
//! It is shown every packet that crosses, told when links go and come, and asked what to send.
//! The polling order is that of every state machine here: after each `handle_*` call the driver
//! drains [`Gateway::poll_transmit`], then [`Gateway::poll_event`], then reads
//! [`Gateway::poll_timeout`] and calls [`Gateway::handle_timeout`] no later than that. Time never
//! goes back.

mod consult;
mod contest;
mod crossing;
mod damping;
mod evidence;
mod frozen;
mod handover;
mod opening;
mod reload;
mod report;
mod rest;
mod silence;
mod stale_echo;
mod turns;

use crate::counters::Counters;
use crate::flow::{Contest, FlowIndex, FlowKey, FlowTable, TcpFlow};
use crate::limits::{Budget, Limits, Shares};
use crate::link::{
    Applied, Direction, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState, LinkTable,
    StateSince,
};
use crate::mechanisms::path::{PathMechanism, PathMechanismKind, SendReason, Standing, Verdict};
use crate::release::Release;
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use crossing::{Crossing, stands_alone};
use damping::Damping;
pub use damping::{DampedLink, DampingConfig, FLAP};
pub use frozen::{ImportError, Imported, Pledge, reset_of_unknown};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_wire::Packet;
pub use report::{Activity, FlowReport};
use rest::PAUSE_BEFORE_REST;
use silence::{FlowSilence, Silence};
pub use silence::{SilenceConfig, SilentLink};

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
    /// A link owes an answer: it may be away. Nothing is withheld from it.
    Silent {
        /// Which one.
        link: LinkId,
        /// Since when it owes the answer.
        since: Instant,
    },
    /// A flow resumed, this long after its link was back: the far host acknowledges new bytes, or the next
    /// that the near host lacks crosses. An indicator's word counts also where silence followed it.
    Resumed {
        /// The flow.
        flow: FlowKey,
        /// Time since link-up.
        after: Duration,
    },
    /// A segment was acknowledged for the flow's far host: the gateway has the only copy. Whoever
    /// makes that known, or writes it down, does so before the packets that the gateway wants sent.
    Frozen {
        /// The flow.
        flow: FlowKey,
    },
    /// That is over: the far host has acknowledged, or the connection has ended.
    Thawed {
        /// The flow.
        flow: FlowKey,
        /// The gateway has ended it: a reset to each host is among the packets to send.
        is_reset: bool,
    },
}

/// Why the gateway wants to be called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeoutReason {
    /// A packet's turn comes.
    Pace,
    /// A flow ought to have moved by then.
    Kick,
    /// A silent link is asked whether it is back.
    Probe,
    /// What an indicator has said is believed from now on.
    Damping,
    /// A flow has been idle for too long.
    Expiry,
    /// A flow has been idle for a while: what it does not need is given back.
    Rest,
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
    releases: Vec<Release>,
    flows: FlowTable<Record>,
    /// Where each flow's packets cross, in the order of links: one link's change costs no more
    /// than its own flows.
    crossings: BTreeSet<(LinkId, FlowIndex)>,
    deadlines: BTreeSet<(Instant, FlowIndex)>,
    budget: Budget,
    shares: Shares,
    counters: Counters,
    outbox: VecDeque<Transmit>,
    events: VecDeque<Event>,
    silence: Option<Silence>,
    damping: Option<Damping>,
    /// Bytes of which the packet at hand has told selectively that they have arrived.
    arrived: u32,
}

/// One tracked connection.
#[derive(Debug)]
struct Record {
    tracked: TcpFlow,
    /// What crosses on its addresses and ports and is none of its own; `None` while there is nothing.
    contest: Option<Box<Contest>>,
    link: LinkId,
    /// What the mechanism was last told.
    state: LinkState,
    /// When and by whom that was said.
    told: StateSince,
    silence: FlowSilence,
    /// Whether each host's SYN permits SACK, by [`Direction`]; `None`: it was not seen.
    permits_sack: [Option<bool>; 2],
    /// The maximum segment size that the SYN of the near and of the far host offers, likewise.
    mss: [Option<u16>; 2],
    /// The longest packet with data that went to the far host, in bytes; zero: none is known.
    longest_to_link: u16,
    /// Whether the handshake was seen to be completed: nobody who only guesses gets so far.
    is_proven: bool,
    /// Whether segments may have crossed unseen since the last one, by [`Direction`].
    is_doubtful: [bool; 2],
    /// Whether something was acknowledged that nobody else has: then the flow keeps its place.
    is_pledged: bool,
    /// `None` while there is nothing for it to remember.
    mechanism: Option<Box<dyn PathMechanism>>,
    /// What the mechanism has made of the connection, as far as it was told.
    standing: Standing,
    deadline: Option<Instant>,
    /// Bytes of data that went towards the link since it is back, and are not known to have arrived.
    /// Counted only while the link's rate is measured.
    departed: u32,
    /// What the mechanism keeps, as charged against [`Limits::held_in_all`].
    held: ByteCount,
}

impl Gateway {
    /// A gateway without links.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        let limits = config.limits;
        Self {
            mechanism: config.mechanism,
            limits,
            links: LinkTable::default(),
            releases: Vec::new(),
            flows: FlowTable::new(limits.flows, limits.timeouts(), config.seed),
            crossings: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            budget: Budget::new(limits.held_in_all),
            shares: Shares::default(),
            counters: Counters::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            silence: config.silence.map(Silence::new),
            damping: config.damping.map(Damping::new),
            arrived: 0,
        }
    }

    /// Adds an interface with a disconnecting link behind it, which is up.
    pub fn add_link(&mut self, now: Instant, interface: InterfaceId, config: LinkConfig) {
        self.links.add(now, interface);
        if !self
            .releases
            .iter()
            .any(|release| release.interface == interface)
        {
            self.releases.push(Release::new(interface, config.rate));
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
            _ => {
                if direction == Direction::FromLink {
                    self.overhear(now, link);
                }
                self.handle_other(&crossing)
            }
        };
        self.counters.taken += u64::from(verdict != Verdict::Pass);
        if let Some(release) = self.release_at(link.interface) {
            match (verdict, direction) {
                (Verdict::Pass, Direction::ToLink) => {
                    release.pacer.charge_passing(now, packet.total_len());
                }
                (_, Direction::FromLink) => release.pacer.heard(),
                _ => {}
            }
        }
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
            if let Some(release) = self.release_at(link.interface) {
                release.pacer.congested(now);
            }
            return;
        }
        if self.is_idle() {
            return;
        }
        match packet.tcp() {
            Some(tcp) if !stands_alone(tcp) => {
                let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
                    .and_then(|key| self.flows.find(&key))
                    .filter(|index| self.was_established(*index));
                // The flow may have moved to another link since.
                let own = index.and_then(|index| self.flows.flow(index));
                let own = own.and_then(|record| self.links.state(record.link));
                if let (Some(index), Some(own)) = (index, own) {
                    self.wake_mechanism(index);
                    self.with_mechanism(now, index, own, |mechanism, cx| {
                        mechanism.handle_drop(cx, packet);
                    });
                }
            }
            _ if !self.mechanism.holds_other_traffic() => {}
            _ if self.handle_opening_drop(now, link, packet) => {}
            _ => self.keep_other(now, link, state, packet),
        }
        self.send_in_turn(now);
    }

    /// A link went or came.
    fn change_link(&mut self, now: Instant, event: LinkEvent) {
        match self.links.apply(now, event, self.limits.peers) {
            Applied::Unchanged => return,
            Applied::Refused => {
                self.counters.link_events_refused += 1;
                return;
            }
            Applied::Changed => self.events.push_back(Event::Link(event)),
        }
        self.believe_indicator(event.link);
        let behind = self.flows_behind(event.link);
        if event.state == LinkState::Up {
            self.welcome(now, event.link, event.indicator, &behind);
        }
        for (link, index) in behind {
            let (Some(record), Some(state)) = (self.flows.flow(index), self.links.state(link))
            else {
                continue;
            };
            if record.state != state.state {
                let by = event.indicator;
                self.change_link_of(
                    now,
                    index,
                    StateSince {
                        since: now,
                        by,
                        ..state
                    },
                );
            }
        }
        self.send_in_turn(now);
    }

    /// The time that [`Self::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        // First, for a link's return may be followed by something that is due at once.
        self.tell_damped(now);
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
        self.repeat_handshakes(now);
        while let Some(expired) = self.flows.expire(now) {
            self.release(expired);
        }
        while let Some(index) = self.flows.rest(now, PAUSE_BEFORE_REST) {
            self.rest(now, index);
        }
        self.send_probes(now);
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
        let pace = self.releases.iter().filter_map(Release::next_chance).min();
        let handshake = self.releases.iter().filter_map(Release::next_handshake);
        let kick = self.deadlines.first().map(|(at, _)| *at);
        let kick = kick.into_iter().chain(handshake).min();
        let probe = self.silence.as_ref().and_then(Silence::next_probe);
        let damping = self.damping.as_ref().and_then(Damping::next);
        let expiry = self.flows.next_expiry();
        let rest = self.flows.next_rest(PAUSE_BEFORE_REST);
        [
            (pace, TimeoutReason::Pace),
            (kick, TimeoutReason::Kick),
            (probe, TimeoutReason::Probe),
            (damping, TimeoutReason::Damping),
            (expiry, TimeoutReason::Expiry),
            (rest, TimeoutReason::Rest),
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
            self.releases
                .iter()
                .map(|release| release.others.bytes() + release.handshakes.bytes())
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

    /// Whether nothing is tracked, and nothing is to be.
    fn is_idle(&self) -> bool {
        self.mechanism == PathMechanismKind::None && self.flows.len() == 0
    }

    fn release_at(&mut self, interface: InterfaceId) -> Option<&mut Release> {
        release_at(&mut self.releases, interface)
    }

    /// The flows of a peer, or of all peers of an interface.
    fn flows_behind(&self, link: LinkId) -> Vec<(LinkId, FlowIndex)> {
        let behind = self.crossings.range((link, FlowIndex::FIRST)..);
        behind
            .copied()
            .take_while(|(other, _)| match link.peer {
                None => other.interface == link.interface,
                Some(_) => *other == link,
            })
            .collect()
    }

    /// A flow's packets cross on `link` from now on.
    fn move_flow(&mut self, index: FlowIndex, link: LinkId) {
        if let Some(record) = self.flows.flow_mut(index)
            && record.link != link
        {
            let before = core::mem::replace(&mut record.link, link);
            self.crossings.remove(&(before, index));
            self.crossings.insert((link, index));
            self.forget_handshake(before, index);
            self.leave_link(before);
        }
    }

    /// Tells a flow's mechanism that the flow's link is in another state now.
    fn change_link_of(&mut self, now: Instant, index: FlowIndex, state: StateSince) {
        let peer = self.flows.key(index).map(|key| key.far.ip());
        if let Some(record) = self.flows.flow_mut(index) {
            record.state = state.state;
            record.told = state;
            record.departed = 0;
            if let Some(peer) = peer.filter(|_| state.state == LinkState::Up)
                && let Some(release) = release_at(&mut self.releases, record.link.interface)
            {
                release.expect(peer);
            }
            // What was on its way is answered late, or by what the gateway sends.
            record.tracked.rtt.discard();
        }
        self.resume_opening(now, index, state.state);
        self.with_mechanism(now, index, state, |mechanism, cx| mechanism.handle_link(cx));
    }
}

fn release_at(releases: &mut [Release], interface: InterfaceId) -> Option<&mut Release> {
    releases
        .iter_mut()
        .find(|release| release.interface == interface)
}
