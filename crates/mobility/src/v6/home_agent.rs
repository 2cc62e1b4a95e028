//! The home agent (RFC 6275, section 10): keeps bindings, and tunnels what is for mobile nodes.
//!
//! It sees what is for its own address and for the mobile nodes' home addresses. Bindings are made by
//! authenticated updates alone: no table grows beyond the configured mobile nodes. After a restart all
//! bindings are gone; mobile nodes make them anew when they renew them.

use super::message::{
    Unwrapped, addresses, is_after as is_later, is_reachable, is_tunnelled, mobility_header,
    to_home_address, unwrap,
};
use super::tunnel::{Entered, Tunnel, ends_of_quoted};
use crate::HomeCounters;
use crate::budget::{Answers, Asker, Budget};
use crate::clock::{NtpClock, is_after, is_near};
use crate::security::{Between, SecurityAssociation};
use crate::transmit::{Transmit, Verdict, Via};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingUpdate, Message, MobilityOptions, Status,
    UpdateFlags, UpdateLifetime, decapsulate,
};
use outlast_wire::{Packet, Transport};

/// Reports of refusals: so many at once after a rest, then one in each [`BETWEEN_REPORTS`].
const REPORTS: u32 = 20;
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// How a home agent is set up.
#[derive(Clone, Debug)]
pub struct HomeAgentConfig {
    /// Its address.
    pub address: Ipv6Addr,
    /// The mobile nodes' home addresses, and what they authenticate themselves with.
    pub mobiles: BTreeMap<Ipv6Addr, Vec<SecurityAssociation>>,
    /// The longest binding.
    pub longest_lifetime: UpdateLifetime,
    /// How far an update's time may be off.
    pub replay_tolerance: Duration,
    /// Caps.
    pub limits: HomeLimits,
    /// The wall clock.
    pub clock: NtpClock,
    /// Seed of where refusals are counted, which nobody else may know.
    pub seed: u64,
}

/// Caps of a home agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HomeLimits {
    /// Refusals a second: forged and recorded updates have them sent, too.
    pub refusals_per_second: u32,
    /// Refusals a second to one address.
    pub refusals_per_source: u32,
}

impl Default for HomeLimits {
    fn default() -> Self {
        Self {
            refusals_per_second: 100,
            refusals_per_source: 10,
        }
    }
}

/// What happens at a home agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HomeEvent {
    /// The mobile node can be reached at a care-of address: its link is up.
    Bound {
        /// The mobile node.
        home_address: Ipv6Addr,
        /// Where it is.
        care_of_address: Ipv6Addr,
        /// It was elsewhere, or nowhere.
        has_moved: bool,
    },
    /// The mobile node is no longer at a care-of address, because it says so.
    Deregistered {
        /// The mobile node.
        home_address: Ipv6Addr,
        /// Where it was.
        care_of_address: Ipv6Addr,
    },
    /// A binding has come to its end, and the mobile node did not renew it.
    Expired {
        /// The mobile node.
        home_address: Ipv6Addr,
        /// Where it was.
        care_of_address: Ipv6Addr,
    },
    /// An update was refused, answered or not. Of many in a row only some are told.
    Refused {
        /// For which mobile node it was.
        home_address: Ipv6Addr,
        /// Why.
        status: Status,
    },
}

/// Why a home agent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HomeTimeout {
    /// A binding expires.
    Expiry,
}

/// A mobile node at a care-of address.
#[derive(Clone, Debug)]
struct Binding {
    tunnel: Tunnel,
    sequence: u16,
    expires_at: Instant,
}

/// A home agent.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    bindings: BTreeMap<Ipv6Addr, Binding>,
    /// When, which mobile node's.
    expiries: BTreeSet<(Instant, Ipv6Addr)>,
    /// The time in each mobile node's latest update.
    latest: BTreeMap<Ipv6Addr, u64>,
    refusals: Answers,
    reports: Budget,
    outbox: VecDeque<Transmit>,
    events: VecDeque<HomeEvent>,
    counters: HomeCounters,
}

/// An update that a home agent has read.
struct Asked<'a> {
    update: BindingUpdate,
    options: MobilityOptions<'a>,
    home_address: Ipv6Addr,
    care_of_address: Ipv6Addr,
    /// From which address it was sent.
    source: Ipv6Addr,
    /// Length of its packet in bytes.
    length: u32,
}

/// An acknowledgement to come.
#[derive(Clone, Copy, Debug)]
struct Answer {
    status: Status,
    sequence: u16,
    lifetime: UpdateLifetime,
    /// `None` if the update has none.
    timestamp: Option<u64>,
}

impl HomeAgent {
    /// A home agent without bindings.
    #[must_use]
    pub fn new(now: Instant, config: HomeAgentConfig) -> Self {
        let HomeLimits {
            refusals_per_second,
            refusals_per_source,
        } = config.limits;
        let refusals = Answers::new(now, refusals_per_second, refusals_per_source, config.seed);
        Self {
            config,
            bindings: BTreeMap::new(),
            expiries: BTreeSet::new(),
            latest: BTreeMap::new(),
            refusals,
            reports: Budget::new(now, REPORTS, BETWEEN_REPORTS),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: HomeCounters::default(),
        }
    }

    /// A packet comes to the agent's host.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) -> Verdict {
        let Some((_, destination)) = addresses(&packet) else {
            return Verdict::Pass;
        };
        if self.bindings.contains_key(&destination) {
            self.tunnel(now, destination, packet);
            return Verdict::Taken;
        }
        if destination != self.config.address {
            return Verdict::Pass;
        }
        if let Transport::IcmpError(_) = packet.header().transport {
            return self.handle_error(now, &packet);
        }
        if is_tunnelled(&packet) {
            self.handle_tunnelled(&packet);
            return Verdict::Taken;
        }
        match unwrap(&packet) {
            Some(unwrapped) => self.handle_message(now, &unwrapped, packet.total_len()),
            None => Verdict::Pass,
        }
    }

    /// These are the mobile nodes from now on. Bindings of those that are not among them end.
    pub fn set_mobiles(&mut self, mobiles: BTreeMap<Ipv6Addr, Vec<SecurityAssociation>>) {
        let gone = self
            .bindings
            .keys()
            .filter(|one| !mobiles.contains_key(one));
        for home_address in gone.copied().collect::<Vec<_>>() {
            self.remove(home_address);
        }
        self.latest.retain(|one, _| mobiles.contains_key(one));
        self.config.mobiles = mobiles;
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, home_address)) = self.expiries.first()
            && at <= now
        {
            if let Some(care_of_address) = self.remove(home_address) {
                self.events.push_back(HomeEvent::Expired {
                    home_address,
                    care_of_address,
                });
            }
        }
    }

    /// What is to be done next.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// What has happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HomeEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, HomeTimeout)> {
        let first = self.expiries.first();
        first.map(|(at, _)| (*at, HomeTimeout::Expiry))
    }

    /// The care-of address at which a mobile node is.
    #[must_use]
    pub fn care_of_address(&self, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        let binding = self.bindings.get(&home_address)?;
        Some(binding.tunnel.destination())
    }

    /// How many mobile nodes are away from home.
    #[must_use]
    pub fn away(&self) -> usize {
        self.bindings.len()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &HomeCounters {
        &self.counters
    }

    fn handle_message(&mut self, now: Instant, unwrapped: &Unwrapped, length: u32) -> Verdict {
        let (packet, source) = (&unwrapped.packet, unwrapped.source);
        let (Some(bytes), Some((home_address, destination))) =
            (mobility_header(packet), addresses(packet))
        else {
            return Verdict::Pass;
        };
        match Message::parse(home_address, destination, bytes) {
            Ok((Message::BindingUpdate(update), options))
                if update.flags.has(UpdateFlags::HOME_REGISTRATION) && is_reachable(source) =>
            {
                let alternate = options.alternate_care_of_address();
                let asked = Asked {
                    update,
                    options,
                    home_address,
                    care_of_address: alternate.unwrap_or(source),
                    source,
                    length,
                };
                self.handle_update(now, &asked);
                Verdict::Taken
            }
            // A correspondent's.
            Ok(_) => Verdict::Pass,
            Err(_) => {
                self.counters.malformed += 1;
                Verdict::Pass
            }
        }
    }

    fn handle_update(&mut self, now: Instant, asked: &Asked<'_>) {
        let home_address = asked.home_address;
        let association = self.association(asked).cloned();
        let status = self.consider(now, asked, association.is_some());
        let known = self.bindings.get(&home_address);
        let mut answer = Answer {
            status,
            sequence: asked.update.sequence,
            lifetime: UpdateLifetime::DEREGISTRATION,
            timestamp: asked.options.timestamp(),
        };
        match status {
            Status::ACCEPTED => {
                self.counters.accepted += 1;
                self.latest
                    .extend(answer.timestamp.map(|one| (home_address, one)));
                answer.lifetime = self.bind(now, asked);
                let packet = self.acknowledgement(asked, answer, association.as_ref());
                return self.send(packet, Via::Route);
            }
            Status::SEQUENCE => {
                self.counters.refused_for_identification += 1;
                answer.sequence = known.map_or(answer.sequence, |one| one.sequence);
            }
            Status::TIMESTAMP => {
                self.counters.refused_for_identification += 1;
                // As in Mobile IPv4: the low half is the update's, the high half the own clock's.
                let seconds = self.config.clock.at(now) & !u64::from(u32::MAX);
                let low = answer.timestamp.unwrap_or_default() & u64::from(u32::MAX);
                answer.timestamp = Some(seconds | low);
            }
            Status::AUTHENTICATION => self.counters.refused_for_authentication += 1,
            _ => {}
        }
        self.counters.refused += 1;
        if self.reports.take(now).is_ok() {
            self.events.push_back(HomeEvent::Refused {
                home_address,
                status,
            });
        }
        // Anybody can send a forged or a recorded update: the answers are limited, and no longer than that.
        if self.refusals.take(now, Asker::v6(asked.source)) {
            let packet = self.acknowledgement(asked, answer, association.as_ref());
            if packet.total_len() <= asked.length {
                return self.send(packet, Via::Route);
            }
        }
        self.counters.unanswered += 1;
    }

    /// The association that authenticates an update.
    fn association(&self, asked: &Asked<'_>) -> Option<&SecurityAssociation> {
        let option = asked.options.authentication()?;
        let between = Between::new(asked.care_of_address, asked.home_address);
        let mut known = self.config.mobiles.get(&asked.home_address)?.iter();
        known.find(|one| one.verify_v6(between, &option))
    }

    /// What becomes of an update (RFC 6275, sections 9.5.1 and 10.3.1; RFC 4285).
    fn consider(&self, now: Instant, asked: &Asked<'_>, is_authentic: bool) -> Status {
        if !self.config.mobiles.contains_key(&asked.home_address) {
            return Status::NOT_ITS_HOME_AGENT;
        }
        if !is_authentic {
            return Status::AUTHENTICATION;
        }
        let Some(timestamp) = asked.options.timestamp() else {
            return Status::TIMESTAMP_MISSING;
        };
        let latest = self.latest.get(&asked.home_address);
        let is_new = latest.is_none_or(|latest| is_after(timestamp, *latest));
        let clock = self.config.clock.at(now);
        if !is_new || !is_near(timestamp, clock, self.config.replay_tolerance) {
            return Status::TIMESTAMP;
        }
        let binding = self.bindings.get(&asked.home_address);
        if binding.is_some_and(|one| !is_later(asked.update.sequence, one.sequence)) {
            return Status::SEQUENCE;
        }
        let own = self.config.address;
        if !is_reachable(asked.care_of_address) || asked.care_of_address == own {
            return Status::CARE_OF_ADDRESS;
        }
        Status::ACCEPTED
    }

    /// Makes, renews or ends a binding; the lifetime that is granted.
    fn bind(&mut self, now: Instant, asked: &Asked<'_>) -> UpdateLifetime {
        let (home_address, care_of_address) = (asked.home_address, asked.care_of_address);
        let lifetime = asked.update.lifetime.min(self.config.longest_lifetime);
        let former = self.bindings.get(&home_address).cloned();
        self.remove(home_address);
        if lifetime == UpdateLifetime::DEREGISTRATION || care_of_address == home_address {
            if let Some(former) = former {
                self.events.push_back(HomeEvent::Deregistered {
                    home_address,
                    care_of_address: former.tunnel.destination(),
                });
            }
            return UpdateLifetime::DEREGISTRATION;
        }
        let former = former.filter(|one| one.tunnel.destination() == care_of_address);
        let has_moved = former.is_none();
        let tunnel = former.map_or_else(
            || Tunnel::new(self.config.address, care_of_address),
            |former| former.tunnel,
        );
        let expires_at = now + lifetime.duration();
        let binding = Binding {
            tunnel,
            sequence: asked.update.sequence,
            expires_at,
        };
        self.bindings.insert(home_address, binding);
        self.expiries.insert((expires_at, home_address));
        self.events.push_back(HomeEvent::Bound {
            home_address,
            care_of_address,
            has_moved,
        });
        lifetime
    }

    /// Ends a binding; where the mobile node was.
    fn remove(&mut self, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        let binding = self.bindings.remove(&home_address)?;
        self.expiries.remove(&(binding.expires_at, home_address));
        Some(binding.tunnel.destination())
    }

    /// An acknowledgement to where the update came from (section 9.5.4), signed if somebody has
    /// authenticated the update.
    fn acknowledgement(
        &self,
        asked: &Asked<'_>,
        answer: Answer,
        association: Option<&SecurityAssociation>,
    ) -> Packet {
        let message = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: answer.status,
            flags: AcknowledgementFlags::default(),
            sequence: answer.sequence,
            lifetime: answer.lifetime,
        });
        let mut message = message.emit();
        if let Some(timestamp) = answer.timestamp {
            message = message.timestamp(timestamp);
        }
        if let Some(association) = association {
            let between = Between::new(asked.care_of_address, asked.home_address);
            message = association.sign_v6(between, message);
        }
        let to = (asked.home_address, asked.source);
        to_home_address(self.config.address, to, message)
    }

    /// A router complains of a packet, perhaps one in a tunnel.
    fn handle_error(&mut self, now: Instant, error: &Packet) -> Verdict {
        let Some((_, mobile)) = ends_of_quoted(error) else {
            return Verdict::Pass;
        };
        let Some(binding) = self.bindings.get_mut(&mobile) else {
            return Verdict::Pass;
        };
        match binding.tunnel.handle_error(now, self.config.address, error) {
            Ok(relayed) => {
                if let Some(packet) = relayed {
                    self.counters.turned_round += 1;
                    self.send(packet, Via::Route);
                }
            }
            Err(_) => self.counters.dropped_errors += 1,
        }
        Verdict::Taken
    }

    /// A packet for a mobile node that is away.
    fn tunnel(&mut self, now: Instant, home_address: Ipv6Addr, packet: Packet) {
        let router = self.config.address;
        let Some(binding) = self.bindings.get_mut(&home_address) else {
            return;
        };
        match binding.tunnel.enter(now, router, packet) {
            Entered::Encapsulated(packet) => {
                self.counters.tunnelled += 1;
                self.send(packet, Via::Route);
            }
            Entered::Fragmented(fragments) => {
                self.counters.tunnelled += 1;
                for fragment in fragments {
                    self.send(fragment, Via::Route);
                }
            }
            Entered::TurnedRound(packet) => {
                self.counters.turned_round += 1;
                self.send(packet, Via::Route);
            }
            Entered::Dropped => self.counters.dropped_unfit += 1,
        }
    }

    /// A packet comes by a reverse tunnel: from a registered mobile node, out of its own tunnel, or it
    /// goes nowhere (section 10.4.5).
    fn handle_tunnelled(&mut self, packet: &Packet) {
        let (Some((end, _)), Ok(inner)) = (addresses(packet), decapsulate(packet)) else {
            self.counters.malformed += 1;
            return;
        };
        let Some((source, destination)) = addresses(&inner) else {
            self.counters.malformed += 1;
            return;
        };
        if self.care_of_address(source) != Some(end) {
            self.counters.dropped_strangers += 1;
            return;
        }
        self.counters.reverse_tunnelled += 1;
        let via = match destination == self.config.address {
            true => Via::Local,
            false => Via::Route,
        };
        self.send(inner, via);
    }

    fn send(&mut self, packet: Packet, via: Via) {
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}
