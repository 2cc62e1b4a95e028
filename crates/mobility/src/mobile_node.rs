//! The mobile node (RFC 5944, sections 2.4 and 3.6): finds agents, sees that it has moved, registers.
//!
//! `surroundings` knows which agents are heard and which [`Detection`] calls what a move; `client`
//! makes requests, repeats them and reads replies; this file joins them and carries packets.

mod client;
mod surroundings;

use crate::clock::NtpClock;
use crate::datagram::{addresses, datagram, icmp_message, is_tunnelled};
use crate::security::SecurityAssociation;
use crate::transmit::{Arp, Arrival, LinkId, Transmit, Verdict, Via};
use crate::tunnel::{Entered, MobileSide, Outside, PlainTunnel, Tunnel};
use alloc::collections::VecDeque;
use client::Registration;
use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    AgentAdvertisement, Lifetime, PORT, ReplyCode, TunnelData, TunnelQuote, decapsulate,
};
use outlast_wire::{Packet, Transport};
use surroundings::{Agent, Surroundings};

const IPV4: u8 = 4;

/// When a mobile node believes that it has moved.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detection {
    /// Eager cell switching: as soon as an agent is heard that was not heard before, or not while its
    /// last advertisement was true (Perkins; RFC 5944, section 3.6, advises against it).
    Eager,
    /// Lazy cell switching: when the current agent's advertisement is no longer true
    /// (RFC 5944, section 2.4.2.1).
    #[default]
    Lazy,
    /// Prefix matching: as `Lazy`, and when a registration is renewed while an agent of another
    /// prefix is heard (RFC 5944, section 2.4.2.2).
    Prefix,
    /// When the link layer says that the link has come up.
    Link,
}

/// How a mobile node is set up.
#[derive(Clone, Debug)]
pub struct MobileNodeConfig {
    /// Its lasting address.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// What it authenticates itself to its home agent with.
    pub home: SecurityAssociation,
    /// What it authenticates itself to foreign agents with, if they demand it.
    pub foreign: Option<SecurityAssociation>,
    /// What it takes for a move.
    pub detection: Detection,
    /// The registration's lifetime to ask for.
    pub lifetime: Lifetime,
    /// Asks for a reverse tunnel.
    pub reverse_tunnel: bool,
    /// Asks to keep its other bindings.
    pub simultaneous_bindings: bool,
    /// Asks for a tunnel in UDP when its care-of address is co-located.
    pub udp_tunnel: bool,
    /// The wall clock.
    pub clock: NtpClock,
    /// Seed of the solicitations' times and of the tunnels' secrets.
    pub seed: u64,
}

/// An address of this node's own on a foreign link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CoLocation {
    /// The address.
    pub address: Ipv4Addr,
    /// The link.
    pub link: LinkId,
}

/// Where a mobile node is attached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Attachment {
    /// No agent is heard, and there is no address.
    #[default]
    Nowhere,
    /// On its home link.
    Home {
        /// The link.
        link: LinkId,
    },
    /// With a foreign agent.
    Foreign {
        /// The agent's address.
        agent: Ipv4Addr,
        /// The care-of address that it offers.
        care_of_address: Ipv4Addr,
    },
    /// With an address of its own.
    CoLocated(CoLocation),
}

/// What happens at a mobile node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeEvent {
    /// A registration is complete: the link is up.
    Registered {
        /// Where.
        at: Attachment,
        /// It was elsewhere before, or not registered.
        has_moved: bool,
        /// Time since the move was seen, or the renewal begun.
        took: Duration,
    },
    /// The node has no agent any more, and no address: the link is down.
    Detached,
    /// A registration was refused.
    Refused {
        /// Where.
        at: Attachment,
        /// Why.
        code: ReplyCode,
    },
    /// The registration has come to its end before it could be renewed.
    Expired,
}

/// Why a mobile node wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NodeTimeout {
    /// The current agent's advertisement is no longer true.
    AgentSilent,
    /// A request was not answered, or may be sent now.
    Request,
    /// A registration is to be renewed.
    Renewal,
    /// A registration ends.
    Expiry,
    /// An agent is to be asked for.
    Solicitation,
    /// A translator is to be kept from forgetting the tunnel.
    KeepAlive,
}

/// What a mobile node has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NodeCounters {
    /// Advertisements that were heard.
    pub advertisements: u64,
    /// Solicitations that were sent.
    pub solicitations: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Among them those that repeat an earlier one.
    pub repeated: u64,
    /// Requests that had to wait: not more than one a second on average.
    pub put_off: u64,
    /// Replies that accept.
    pub accepted: u64,
    /// Replies that refuse.
    pub refused: u64,
    /// Replies that answer no request, or are not authenticated.
    pub ignored: u64,
    /// How often the clock was set by the home agent's.
    pub resynchronised: u64,
    /// Agents that there was no room to remember.
    pub forgotten_agents: u64,
    /// Packets of the own host's that had nowhere to go.
    pub dropped_detached: u64,
    /// Packets that could not enter or leave a tunnel, or came out of it for another host.
    pub dropped_unfit: u64,
}

/// A mobile node.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    surroundings: Surroundings,
    co_location: Option<CoLocation>,
    attachment: Attachment,
    registration: Registration,
    /// ARP is used as on every host.
    uses_arp: bool,
    /// The tunnel to the home agent, while the care-of address is co-located.
    tunnel: Option<Tunnel>,
    /// Secrets of tunnels.
    secrets: Stream,
    outbox: VecDeque<Transmit>,
    events: VecDeque<NodeEvent>,
    counters: NodeCounters,
}

impl MobileNode {
    /// A mobile node that has heard nobody yet.
    #[must_use]
    pub fn new(now: Instant, config: MobileNodeConfig) -> Self {
        let secrets = Stream::new(config.seed, "secrets of tunnels");
        Self {
            surroundings: Surroundings::new(now, config.seed),
            registration: Registration::new(now, config.clock, config.seed),
            config,
            co_location: None,
            attachment: Attachment::Nowhere,
            uses_arp: true,
            tunnel: None,
            secrets,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: NodeCounters::default(),
        }
    }

    /// The link layer says that a link came up or went down. Only [`Detection::Link`] heeds it.
    pub fn handle_link(&mut self, now: Instant, link: LinkId, is_up: bool) {
        if self.config.detection != Detection::Link {
            return;
        }
        self.surroundings.forget(link);
        let is_here = match self.attachment {
            Attachment::Nowhere => true,
            Attachment::Home { link: other } => other == link,
            Attachment::Foreign { .. } => self.surroundings.current().is_none(),
            Attachment::CoLocated(at) => at.link == link,
        };
        if is_here {
            self.detach();
            if is_up {
                self.surroundings.search(now);
                self.handle_timeout(now);
            }
        }
    }

    /// The node has an address of its own on a foreign link, or has lost it.
    pub fn handle_care_of_address(&mut self, now: Instant, address: Option<CoLocation>) {
        self.co_location = address;
        let agent = self.surroundings.current();
        let must_use_agent = agent.is_some_and(|agent| agent.demands_registration());
        match (address, self.attachment) {
            (Some(at), Attachment::CoLocated(other)) if at == other => {}
            // At home it needs none.
            (Some(_), Attachment::Home { .. }) => {}
            (Some(at), _) if !must_use_agent => self.attach(now, Attachment::CoLocated(at)),
            (None, Attachment::CoLocated(_)) => {
                self.detach();
                self.go_elsewhere(now, None);
            }
            _ => {}
        }
    }

    /// The node ends: the home agent is told that it is no longer at its co-located address. The
    /// request is not repeated; if it is lost, the binding ends with its lifetime.
    pub fn deregister(&mut self, now: Instant) {
        if let Attachment::CoLocated(_) = self.attachment {
            self.withdraw(now);
        }
        self.co_location = None;
        self.detach();
    }

    /// A packet comes from a link.
    pub fn handle_packet(&mut self, now: Instant, arrival: Arrival, packet: &Packet) -> Verdict {
        let Some((source, _)) = addresses(packet) else {
            return Verdict::Pass;
        };
        if let Some(message) = icmp_message(packet) {
            return match AgentAdvertisement::parse(message) {
                Ok(advertisement) if packet.header().ip.hop_limit == 1 => {
                    self.handle_advertisement(now, arrival, source, &advertisement);
                    Verdict::Taken
                }
                _ => Verdict::Pass,
            };
        }
        if let Transport::IcmpError(_) = packet.header().transport {
            return self.handle_error(now, packet);
        }
        if is_tunnelled(packet) {
            return self.leave_tunnel(Outside::Ip(source), || decapsulate(packet).ok());
        }
        match datagram(packet) {
            Some(datagram) if datagram.source.port() == PORT => {
                match TunnelData::parse(datagram.payload) {
                    Ok(data) => self.leave_tunnel(Outside::Udp(datagram.source), || {
                        let inner = Packet::parse(data.packet.to_vec().into()).ok();
                        inner.filter(|_| data.next_header == IPV4)
                    }),
                    Err(_) => self.handle_reply(now, datagram.payload),
                }
            }
            _ => Verdict::Pass,
        }
    }

    /// A packet of this host's own, from its home address.
    pub fn handle_outgoing(&mut self, now: Instant, packet: Packet) -> Verdict {
        match self.attachment {
            Attachment::Home { .. } => Verdict::Pass,
            Attachment::Nowhere => {
                self.counters.dropped_detached += 1;
                Verdict::Taken
            }
            Attachment::Foreign { .. } => {
                match self.surroundings.current() {
                    Some(agent) => {
                        let via = Via::Neighbour(agent.link, agent.node);
                        self.send(packet, via);
                    }
                    None => self.counters.dropped_detached += 1,
                }
                Verdict::Taken
            }
            Attachment::CoLocated(_) if !self.config.reverse_tunnel => Verdict::Pass,
            Attachment::CoLocated(_) => {
                self.enter_tunnel(now, packet);
                Verdict::Taken
            }
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.agent_silent_at().is_some_and(|at| at <= now) {
            let lost = self.surroundings.current();
            self.go_elsewhere(now, lost.as_ref());
        }
        if self.registration.expire(now) {
            self.events.push_back(NodeEvent::Expired);
        }
        if self.registration.renewal_due(now) {
            self.renew(now);
        }
        if self.registration.request_due(now) {
            self.request(now);
        }
        if self.attachment == Attachment::Nowhere
            && let Some(packet) = self.surroundings.solicit(now, self.config.home_address)
        {
            self.counters.solicitations += 1;
            self.send(packet, Via::Route);
        }
        self.keep_alive(now);
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
        let silent = self.agent_silent_at();
        let is_searching = self.attachment == Attachment::Nowhere;
        let solicitation = is_searching.then(|| self.surroundings.next_solicitation());
        [
            silent.map(|at| (at, NodeTimeout::AgentSilent)),
            solicitation.map(|at| (at, NodeTimeout::Solicitation)),
            self.registration.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Where the node is attached.
    #[must_use]
    pub const fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// Whether the node is registered where it is attached.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registration.is_complete()
    }

    /// Whether the tunnel to the home agent is in UDP, as behind an address translator.
    #[must_use]
    pub fn has_udp_tunnel(&self) -> bool {
        let outside = self.tunnel.as_ref().map(Tunnel::outside);
        matches!(outside, Some(Outside::Udp(_)))
    }

    /// The tunnel to the home agent, while there is one IP in IP from an address of the node's own.
    #[must_use]
    pub fn plain_tunnel(&self) -> Option<PlainTunnel> {
        let sends = self.config.reverse_tunnel;
        self.tunnel.as_ref()?.plain(sends, true)
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &NodeCounters {
        &self.counters
    }

    fn handle_advertisement(
        &mut self,
        now: Instant,
        arrival: Arrival,
        source: Ipv4Addr,
        advertisement: &AgentAdvertisement,
    ) {
        self.counters.advertisements += 1;
        let agent = Agent::new(now, arrival, source, advertisement);
        let heard = self.surroundings.hear(now, agent);
        self.counters.forgotten_agents += u64::from(heard.is_one_forgotten);
        if agent.is_home(self.config.home_agent) {
            return match self.attachment {
                Attachment::Home { link } if link == arrival.link => {
                    if heard.is_restarted {
                        self.restart_registration(now);
                    }
                }
                _ => self.attach(now, Attachment::Home { link: arrival.link }),
            };
        }
        match self.attachment {
            Attachment::Foreign { agent: current, .. } if current == source => {
                self.surroundings.set_current(Some(agent));
                if heard.is_restarted {
                    self.restart_registration(now);
                }
            }
            Attachment::CoLocated(at) => {
                // Its address counts, unless the agent insists.
                if agent.link == at.link && agent.demands_registration() {
                    self.attach_to(now, agent);
                }
            }
            Attachment::Nowhere => self.attach_to(now, agent),
            Attachment::Foreign { .. } | Attachment::Home { .. } => {
                if self.config.detection == Detection::Eager && heard.is_new {
                    self.attach_to(now, agent);
                }
            }
        }
    }

    /// When the current agent's last advertisement is no longer true.
    fn agent_silent_at(&self) -> Option<Instant> {
        match self.attachment {
            Attachment::Nowhere | Attachment::CoLocated(_) => None,
            Attachment::Home { .. } | Attachment::Foreign { .. } => {
                self.surroundings.current().map(|agent| agent.expires_at)
            }
        }
    }

    /// The current agent is lost, or refuses: on to the address of the own, to another agent, or to none.
    fn go_elsewhere(&mut self, now: Instant, lost: Option<&Agent>) {
        self.surroundings.set_current(None);
        if let Some(at) = self.co_location {
            return self.attach(now, Attachment::CoLocated(at));
        }
        match self.surroundings.best(now, lost) {
            Some(agent) if agent.is_home(self.config.home_agent) => {
                self.attach(now, Attachment::Home { link: agent.link });
            }
            Some(agent) => self.attach_to(now, agent),
            None => {
                self.detach();
                self.surroundings.search(now);
            }
        }
    }

    fn attach_to(&mut self, now: Instant, agent: Agent) {
        if let Some(care_of_address) = agent.care_of_address()
            && !agent.is_busy()
        {
            self.surroundings.set_current(Some(agent));
            let agent = agent.address;
            let at = Attachment::Foreign {
                agent,
                care_of_address,
            };
            self.attach(now, at);
        }
    }

    /// The node is at a new place, and registers there.
    fn attach(&mut self, now: Instant, at: Attachment) {
        self.attachment = at;
        self.tunnel = None;
        let address = self.config.home_address;
        match at {
            Attachment::Home { link } => {
                let agent = self.surroundings.heard_from(self.config.home_agent);
                self.surroundings.set_current(agent);
                // Section 4.6: ARP first, then the deregistration.
                self.uses_arp = true;
                let owner = None;
                self.outbox
                    .push_back(Transmit::Arp(Arp::Resume { address }));
                self.outbox.push_back(Transmit::Arp(Arp::Gratuitous {
                    link,
                    address,
                    owner,
                }));
            }
            Attachment::Foreign { .. } | Attachment::CoLocated(_) => {
                if self.uses_arp {
                    self.uses_arp = false;
                    self.outbox
                        .push_back(Transmit::Arp(Arp::Silence { address }));
                }
            }
            Attachment::Nowhere => {}
        }
        self.registration.begin(now);
        self.request_if_due(now);
    }

    fn detach(&mut self) {
        if self.attachment != Attachment::Nowhere {
            self.attachment = Attachment::Nowhere;
            self.events.push_back(NodeEvent::Detached);
        }
        self.surroundings.set_current(None);
        self.registration.stop();
        self.tunnel = None;
    }

    /// The agent has lost its memory.
    fn restart_registration(&mut self, now: Instant) {
        self.registration.begin(now);
        self.request_if_due(now);
    }

    /// Renews the registration, or takes the opportunity to go to an agent of another prefix.
    fn renew(&mut self, now: Instant) {
        if self.config.detection == Detection::Prefix
            && let Some(current) = self.surroundings.current()
            && let Some(agent) = self.surroundings.newer_of_other_prefix(now, &current)
        {
            return self.attach_to(now, agent);
        }
        self.registration.renew(now);
        self.request_if_due(now);
    }

    fn request_if_due(&mut self, now: Instant) {
        if self.registration.request_due(now) {
            self.request(now);
        }
    }

    fn enter_tunnel(&mut self, now: Instant, packet: Packet) {
        // A host believes no packet that comes from its own address.
        let router = self.config.home_agent;
        let Some(tunnel) = &mut self.tunnel else {
            self.counters.dropped_detached += 1;
            return;
        };
        match tunnel.enter(now, router, packet) {
            Entered::Encapsulated(packet) => self.send(packet, Via::Route),
            Entered::TurnedRound(packet) => self.send(packet, Via::Local),
            Entered::Dropped => self.counters.dropped_unfit += 1,
        }
    }

    /// A router complains of a packet, perhaps one in the tunnel.
    fn handle_error(&mut self, now: Instant, error: &Packet) -> Verdict {
        let (Some(tunnel), Some(quote)) = (&mut self.tunnel, TunnelQuote::of(error)) else {
            return Verdict::Pass;
        };
        // A host believes no packet that comes from its own address.
        let router = self.config.home_agent;
        let side = MobileSide::Source(self.config.home_address);
        match tunnel.handle_error(now, (router, side), error, &quote) {
            Ok(relayed) => {
                if let Some(error) = relayed {
                    self.send(error, Via::Local);
                }
                Verdict::Taken
            }
            Err(_) => Verdict::Pass,
        }
    }

    /// A packet comes in a tunnel from the home agent, surrounded by `outside`. Only what is for the home
    /// address is taken out: this host may be the router of other networks.
    fn leave_tunnel(
        &mut self,
        outside: Outside,
        inner: impl FnOnce() -> Option<Packet>,
    ) -> Verdict {
        let own = self.tunnel.as_ref().map(Tunnel::outside);
        let home_agent = self.config.home_agent;
        if own.is_none() || outside.end() != home_agent {
            return Verdict::Pass;
        }
        // The tunnel has one form at a time (RFC 3519, sections 4.3 and 4.7).
        let inner = if own == Some(outside) { inner() } else { None };
        let home_address = self.config.home_address;
        let is_own = |packet: &Packet| addresses(packet).is_some_and(|(_, to)| to == home_address);
        match inner.filter(is_own) {
            Some(packet) => self.send(packet, Via::Local),
            None => self.counters.dropped_unfit += 1,
        }
        Verdict::Taken
    }

    fn keep_alive(&mut self, now: Instant) {
        if let Some(sequence) = self.registration.keep_alive(now) {
            let (home, agent) = (self.config.home_address, self.config.home_agent);
            self.enter_tunnel(now, Packet::keep_alive(home, agent, sequence));
        }
    }

    fn send(&mut self, packet: Packet, via: Via) {
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}
