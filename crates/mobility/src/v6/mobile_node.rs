//! The mobile node (RFC 6275, section 11): says where it is, and carries its packets.
//!
//! `registration` keeps the binding at the home agent, `correspondents` those at correspondents; this
//! file joins them. Where the node is, its driver knows: from addresses and routes.

mod correspondents;
mod registration;

use super::message::{
    addresses, from_home_address, is_tunnelled, mobility_header, plain, quoted_message, unwrap,
};
use super::tunnel::{Entered, Tunnel, ends_of_quoted};
use crate::clock::NtpClock;
use crate::security::SecurityAssociation;
use crate::transmit::{Transmit, Verdict, Via};
use alloc::collections::VecDeque;
use core::net::{IpAddr, Ipv6Addr};
use correspondents::{Correspondents, Step};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{
    Message, MobilityOptions, Status, UpdateLifetime, add_home_address, decapsulate,
};
use outlast_wire::{Packet, Transport};
use registration::Registration;

/// ICMPv6 "parameter problem".
const PARAMETER_PROBLEM: u8 = 4;

/// How a mobile node is set up.
#[derive(Clone, Debug)]
pub struct MobileNodeConfig {
    /// Its lasting address.
    pub home_address: Ipv6Addr,
    /// Its home agent.
    pub home_agent: Ipv6Addr,
    /// What it authenticates itself to its home agent with.
    pub home: SecurityAssociation,
    /// The binding's lifetime to ask for.
    pub lifetime: UpdateLifetime,
    /// Tries to reach correspondents past the home agent.
    pub route_optimization: bool,
    /// The wall clock.
    pub clock: NtpClock,
    /// What cookies and the first sequence number are made from; nobody else may know it.
    pub secret: [u8; 20],
}

/// Where a mobile node is attached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Attachment {
    /// There is no address.
    #[default]
    Nowhere,
    /// On its home link.
    Home,
    /// Elsewhere, with this care-of address.
    Foreign(Ipv6Addr),
}

/// What happens at a mobile node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeEvent {
    /// The home agent has accepted an update: the link is up.
    Registered {
        /// Where.
        at: Attachment,
        /// It was elsewhere before, or not registered.
        has_moved: bool,
        /// Time since the move was seen, or the renewal begun.
        took: Duration,
    },
    /// The node has no address any more: the link is down.
    Detached,
    /// The home agent has refused an update.
    Refused {
        /// Where.
        at: Attachment,
        /// Why.
        status: Status,
    },
    /// The binding has come to its end before it could be renewed.
    Expired,
    /// Packets go to a correspondent and come from it past the home agent.
    Optimized {
        /// The correspondent.
        correspondent: Ipv6Addr,
        /// Time since the tests began.
        took: Duration,
    },
    /// Packets to a correspondent go through the home agent from now on, as it does not answer, or
    /// says that it knows nothing of Mobile IPv6.
    NotOptimized {
        /// The correspondent.
        correspondent: Ipv6Addr,
    },
}

/// Why a mobile node wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NodeTimeout {
    /// An update was not answered, or may be sent now.
    Request,
    /// The binding is to be renewed.
    Renewal,
    /// The binding ends.
    Expiry,
    /// A message to a correspondent was not answered, or a binding there is to be renewed.
    Correspondent,
}

/// What a mobile node has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NodeCounters {
    /// Updates that were sent to the home agent.
    pub requests: u64,
    /// Among them those that repeat an earlier one.
    pub repeated: u64,
    /// Updates that had to wait: not more than three a second on average.
    pub put_off: u64,
    /// Acknowledgements that accept.
    pub accepted: u64,
    /// Acknowledgements that refuse.
    pub refused: u64,
    /// Messages that answer nothing, or are not authenticated.
    pub ignored: u64,
    /// How often the clock was set by the home agent's.
    pub resynchronised: u64,
    /// Tests and updates that were sent to correspondents.
    pub correspondent_messages: u64,
    /// Correspondents that there was no room to remember.
    pub forgotten_correspondents: u64,
    /// Packets that were sent past the home agent.
    pub optimized_out: u64,
    /// Packets that came past the home agent.
    pub optimized_in: u64,
    /// Packets of the own host's that had nowhere to go.
    pub dropped_detached: u64,
    /// Packets that could not enter or leave a tunnel.
    pub dropped_unfit: u64,
}

/// A mobile node.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    attachment: Attachment,
    registration: Registration,
    correspondents: Correspondents,
    tunnel: Option<Tunnel>,
    outbox: VecDeque<Transmit>,
    events: VecDeque<NodeEvent>,
    counters: NodeCounters,
}

impl MobileNode {
    /// A mobile node that is nowhere yet.
    #[must_use]
    pub fn new(now: Instant, config: MobileNodeConfig) -> Self {
        Self {
            attachment: Attachment::Nowhere,
            registration: Registration::new(now, config.clock, &config.secret),
            correspondents: Correspondents::new(config.secret),
            config,
            tunnel: None,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: NodeCounters::default(),
        }
    }

    /// The node is here from now on.
    pub fn handle_attachment(&mut self, now: Instant, attachment: Attachment) {
        if attachment == self.attachment {
            return;
        }
        self.attachment = attachment;
        self.tunnel = None;
        match attachment {
            Attachment::Nowhere => {
                self.registration.stop();
                self.events.push_back(NodeEvent::Detached);
            }
            Attachment::Home => self.registration.begin(now),
            Attachment::Foreign(care_of_address) => {
                self.tunnel = Some(Tunnel::new(care_of_address, self.config.home_agent));
                self.registration.begin(now);
            }
        }
        self.handle_timeout(now);
    }

    /// Registers anew at the present attachment, which may lead elsewhere now.
    pub fn renew(&mut self, now: Instant) {
        if self.attachment != Attachment::Nowhere {
            self.registration.begin(now);
            self.handle_timeout(now);
        }
    }

    /// The node ends: the home agent is told that it is no longer at its care-of address. The update is
    /// not repeated; if it is lost, the binding ends with its lifetime.
    pub fn deregister(&mut self, now: Instant) {
        if let Attachment::Foreign(_) = self.attachment {
            self.withdraw(now);
        }
        self.handle_attachment(now, Attachment::Nowhere);
    }

    /// A packet comes from a link.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) -> Verdict {
        let Some((source, destination)) = addresses(packet) else {
            return Verdict::Pass;
        };
        if let Transport::IcmpError(_) = packet.header().transport {
            return self.handle_error(now, packet);
        }
        let care_of_address = match self.attachment {
            Attachment::Foreign(care_of_address) => care_of_address,
            Attachment::Home => self.config.home_address,
            Attachment::Nowhere => return Verdict::Pass,
        };
        if destination != care_of_address {
            return Verdict::Pass;
        }
        if is_tunnelled(packet) && source == self.config.home_agent {
            return self.leave_tunnel(now, packet);
        }
        let Some(unwrapped) = unwrap(packet) else {
            return Verdict::Pass;
        };
        let Some((source, destination)) = addresses(&unwrapped.packet) else {
            return Verdict::Pass;
        };
        if let Some(bytes) = mobility_header(&unwrapped.packet) {
            let message = Message::parse(source, destination, bytes);
            return match message {
                Ok((message, options)) => self.handle_message(now, source, message, options),
                Err(_) => Verdict::Pass,
            };
        }
        // What bears another's home address is not for this node (section 11.3.3).
        if unwrapped.is_routed && destination == self.config.home_address {
            self.counters.optimized_in += 1;
            self.send(unwrapped.packet, Via::Local);
            return Verdict::Taken;
        }
        Verdict::Pass
    }

    /// A packet of this host's own, from its home address.
    pub fn handle_outgoing(&mut self, now: Instant, packet: Packet) -> Verdict {
        let care_of_address = match self.attachment {
            Attachment::Home => return Verdict::Pass,
            Attachment::Nowhere => {
                self.counters.dropped_detached += 1;
                return Verdict::Taken;
            }
            Attachment::Foreign(care_of_address) => care_of_address,
        };
        if let Some((_, correspondent)) = addresses(&packet)
            && self
                .correspondents
                .has_binding(now, correspondent, care_of_address)
            && let Ok(optimized) = add_home_address(&packet, care_of_address)
        {
            self.counters.optimized_out += 1;
            self.send(optimized, Via::Route);
            return Verdict::Taken;
        }
        self.enter_tunnel(now, packet);
        Verdict::Taken
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.registration.expire(now) {
            self.events.push_back(NodeEvent::Expired);
        }
        if self.registration.renewal_due(now) {
            self.registration.renew(now);
        }
        if self.registration.request_due(now) {
            self.request(now);
        }
        if self.registration.is_complete() {
            let place = self.place();
            let steps = self.correspondents.handle_timeout(now, place);
            self.take_steps(steps);
        }
    }

    /// What is to be done next.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// What has happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, NodeTimeout)> {
        let correspondents = match self.registration.is_complete() {
            true => self.correspondents.poll_timeout(),
            false => None,
        };
        let correspondent = correspondents.map(|at| (at, NodeTimeout::Correspondent));
        let registration = self.registration.poll_timeout();
        registration.into_iter().chain(correspondent).min()
    }

    /// Where the node is.
    #[must_use]
    pub const fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// Whether the home agent knows where the node is.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        self.registration.is_complete()
    }

    /// The correspondents that are reached past the home agent.
    pub fn optimized(&self, now: Instant) -> impl Iterator<Item = Ipv6Addr> {
        let care_of_address = self.place().1;
        self.correspondents.bound(now, care_of_address)
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &NodeCounters {
        &self.counters
    }

    /// Home address, and care-of address; they are the same at home.
    const fn place(&self) -> (Ipv6Addr, Ipv6Addr) {
        let home_address = self.config.home_address;
        match self.attachment {
            Attachment::Foreign(care_of_address) => (home_address, care_of_address),
            Attachment::Home | Attachment::Nowhere => (home_address, home_address),
        }
    }

    fn handle_message(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        message: Message,
        options: MobilityOptions<'_>,
    ) -> Verdict {
        match message {
            Message::BindingAcknowledgement(one) if source == self.config.home_agent => {
                self.handle_acknowledgement(now, &one, options);
            }
            Message::HomeTest(_)
            | Message::CareOfTest(_)
            | Message::BindingAcknowledgement(_)
            | Message::BindingRefreshRequest
            | Message::BindingError { .. } => {
                let place = self.place();
                let steps = self
                    .correspondents
                    .handle_message(now, place, source, &message, options);
                match steps {
                    Some(steps) => self.take_steps(steps),
                    None => self.counters.ignored += 1,
                }
            }
            // This node is a correspondent, too, or its home agent's host.
            Message::HomeTestInit { .. }
            | Message::CareOfTestInit { .. }
            | Message::BindingUpdate(_) => return Verdict::Pass,
        }
        Verdict::Taken
    }

    /// Sends what is to be said to correspondents, and tells what has happened.
    fn take_steps(&mut self, steps: VecDeque<Step>) {
        let (home_address, care_of_address) = self.place();
        for step in steps {
            match step {
                Step::ThroughHome(to, message) => {
                    self.counters.correspondent_messages += 1;
                    let packet = plain(home_address, to, message);
                    match &mut self.tunnel {
                        // Its hop limit is ours, and errors about it are nobody's.
                        Some(tunnel) => {
                            if let Entered::Encapsulated(packet) =
                                tunnel.enter(Instant::ZERO, care_of_address, packet)
                            {
                                self.send(packet, Via::Route);
                            }
                        }
                        None => self.send(packet, Via::Route),
                    }
                }
                Step::Directly(to, message) => {
                    self.counters.correspondent_messages += 1;
                    let packet = plain(care_of_address, to, message);
                    self.send(packet, Via::Route);
                }
                Step::Update(to, message) => {
                    self.counters.correspondent_messages += 1;
                    let place = (home_address, care_of_address);
                    self.send(from_home_address(place, to, message), Via::Route);
                }
                Step::Tell(event) => self.events.push_back(event),
            }
        }
    }

    /// A router or a correspondent complains of a packet.
    fn handle_error(&mut self, now: Instant, error: &Packet) -> Verdict {
        let Transport::IcmpError(about) = &error.header().transport else {
            return Verdict::Pass;
        };
        let Some(quoted) = about.quoted else {
            return Verdict::Pass;
        };
        let (home_address, care_of_address) = self.place();
        let home_agent = self.config.home_agent;
        if let Some(tunnel) = &mut self.tunnel
            && ends_of_quoted(error).is_some_and(|(source, _)| source == home_address)
        {
            return match tunnel.handle_error(now, home_agent, error) {
                Ok(Some(error)) => {
                    self.send(error, Via::Local);
                    Verdict::Taken
                }
                Ok(None) | Err(_) => Verdict::Pass,
            };
        }
        // Of this node's own.
        if ![home_address, care_of_address]
            .map(IpAddr::V6)
            .contains(&quoted.source)
        {
            return Verdict::Pass;
        }
        if about.kind == PARAMETER_PROBLEM
            && let Some((correspondent, message)) = quoted_message(error)
            && self.correspondents.give_up(now, correspondent, &message)
        {
            self.events
                .push_back(NodeEvent::NotOptimized { correspondent });
            return Verdict::Taken;
        }
        Verdict::Pass
    }

    fn enter_tunnel(&mut self, now: Instant, packet: Packet) {
        let router = self.config.home_agent;
        let Some(tunnel) = &mut self.tunnel else {
            self.counters.dropped_detached += 1;
            return;
        };
        match tunnel.enter(now, router, packet) {
            Entered::Encapsulated(packet) => self.send(packet, Via::Route),
            Entered::Fragmented(fragments) => {
                for fragment in fragments {
                    self.send(fragment, Via::Route);
                }
            }
            Entered::TurnedRound(packet) => self.send(packet, Via::Local),
            Entered::Dropped => self.counters.dropped_unfit += 1,
        }
    }

    /// A packet comes from the home agent. Its sender knows nothing of the care-of address: where both
    /// want to, that may change (section 11.7.2).
    fn leave_tunnel(&mut self, now: Instant, packet: &Packet) -> Verdict {
        let Ok(inner) = decapsulate(packet) else {
            self.counters.dropped_unfit += 1;
            return Verdict::Taken;
        };
        let Some((source, destination)) = addresses(&inner) else {
            self.counters.dropped_unfit += 1;
            return Verdict::Taken;
        };
        if destination != self.config.home_address {
            self.counters.dropped_unfit += 1;
            return Verdict::Taken;
        }
        if let Some(bytes) = mobility_header(&inner) {
            if let Ok((message, options)) = Message::parse(source, destination, bytes) {
                let _ = self.handle_message(now, source, message, options);
            }
            return Verdict::Taken;
        }
        if let Transport::IcmpError(_) = inner.header().transport
            && self.handle_error(now, &inner) == Verdict::Taken
        {
            return Verdict::Taken;
        }
        self.send(inner, Via::Local);
        if self.config.route_optimization
            && self.registration.is_complete()
            && source != self.config.home_agent
        {
            let place = self.place();
            let is_forgotten = self.correspondents.note_use(now, place, source);
            self.counters.forgotten_correspondents += u64::from(is_forgotten);
            let steps = self.correspondents.handle_timeout(now, place);
            self.take_steps(steps);
        }
        Verdict::Taken
    }

    fn send(&mut self, packet: Packet, via: Via) {
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}
