//! The foreign agent (RFC 5944, section 3.7): relays registrations, and ends tunnels for visitors.
//!
//! It knows a visitor by its home address and by the link-layer address that its request came from:
//! packets go there without ARP. Requests that wait for their home agent are capped, for each
//! link-layer address, too, and a part of the room is kept for visitors that are registered already:
//! a flood of strangers takes nothing from them.

mod registration;
mod tables;

use crate::ReverseTunnels;
use crate::advertiser::{Advertiser, Advertising, Offer};
use crate::budget::{Answers, Budget};
use crate::datagram::{addresses, datagram, icmp_message, is_tunnelled};
use crate::security::SecurityAssociation;
use crate::transmit::{Arrival, LinkAddress, LinkId, Transmit, Verdict, Via};
use crate::tunnel::{Entered, MobileSide, PlainTunnel, Tunnel};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    AgentFlags, Lifetime, PORT, QuotedContent, ReplyCode, TunnelQuote, decapsulate,
    solicitation_is_valid,
};
use outlast_wire::{Packet, Transport};
use tables::{Pending, Visitors};

/// Reports of refusals: so many at once after a rest, then one in each [`BETWEEN_REPORTS`].
const REPORTS: u32 = 20;
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// Searches for the tunnel that an error is about: so many at once, then one in each [`BETWEEN_SEARCHES`].
const SEARCHES: u32 = 20;
const BETWEEN_SEARCHES: Duration = Duration::from_millis(100);

/// How a foreign agent is set up.
#[derive(Clone, Debug)]
pub struct ForeignAgentConfig {
    /// The care-of address that it offers; requests are relayed from there.
    pub care_of_address: Ipv4Addr,
    /// The visitors' link.
    pub link: LinkId,
    /// How it advertises itself there.
    pub advertising: Advertising,
    /// The longest registration.
    pub longest_lifetime: Lifetime,
    /// R: mobile nodes with a co-located address have to register here, too.
    pub demands_registration: bool,
    /// Whether there are reverse tunnels.
    pub reverse_tunnels: ReverseTunnels,
    /// Visitors that have to authenticate themselves here, by home address.
    pub mobiles: BTreeMap<Ipv4Addr, SecurityAssociation>,
    /// Home agents that have to authenticate their replies.
    pub home_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    /// How long a request waits for its home agent (RFC 5944, section 3.7.2.3: at least 7 s).
    pub request_timeout: Duration,
    /// Caps.
    pub limits: ForeignLimits,
    /// Seed of the advertisements' times and of the tunnels' secrets.
    pub seed: u64,
}

/// Caps of a foreign agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ForeignLimits {
    /// Visitors.
    pub visitors: usize,
    /// Requests that wait for their home agents, or were answered just now; a quarter is kept for registered
    /// visitors.
    pub pending: usize,
    /// Requests from one link-layer address that wait for their home agents, or were answered just now.
    pub pending_per_node: usize,
    /// Refusals a second.
    pub refusals_per_second: u32,
    /// Refusals a second to one link-layer address; RFC 5944, section 3.7.2, demands one.
    pub refusals_per_node: u32,
}

impl Default for ForeignLimits {
    fn default() -> Self {
        Self {
            visitors: 4_096,
            pending: 4_096,
            pending_per_node: 4,
            refusals_per_second: 100,
            refusals_per_node: 4,
        }
    }
}

/// What happens at a foreign agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForeignEvent {
    /// A visitor is registered: its link is up.
    Registered {
        /// The visitor.
        home_address: Ipv4Addr,
        /// It was not registered here before.
        is_new: bool,
    },
    /// A visitor's registration has come to its end.
    Left {
        /// The visitor.
        home_address: Ipv4Addr,
    },
    /// A registration was refused, here or by the home agent. Of many in a row only some are told.
    Refused {
        /// Whose.
        home_address: Ipv4Addr,
        /// Why.
        code: ReplyCode,
    },
}

/// Why a foreign agent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ForeignTimeout {
    /// An advertisement is due.
    Advertisement,
    /// A home agent has not answered.
    Request,
    /// A visitor's registration expires.
    Expiry,
}

/// What a foreign agent has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ForeignCounters {
    /// Requests that were relayed to home agents.
    pub relayed: u64,
    /// Copies of requests that were not relayed: too soon after the one before, or another node's.
    pub repeated: u64,
    /// Registrations that home agents have accepted.
    pub accepted: u64,
    /// Requests that were refused here, answered or not.
    pub refused: u64,
    /// Refusals that were not sent, to answer no flood.
    pub unanswered: u64,
    /// Requests that no home agent has answered in time.
    pub timed_out: u64,
    /// Datagrams at the agent's port that are no message, or no answer to a request.
    pub malformed: u64,
    /// Packets that were taken out of tunnels and given to visitors.
    pub delivered: u64,
    /// Packets that visitors have sent through reverse tunnels.
    pub reverse_tunnelled: u64,
    /// Packets out of a tunnel for somebody who is no visitor, or from another end than its home agent.
    pub dropped_strangers: u64,
    /// Packets that could not enter or leave a tunnel.
    pub dropped_unfit: u64,
}

/// A foreign agent.
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    /// All addresses of the agent's host that are known.
    own_addresses: BTreeSet<Ipv4Addr>,
    refusals: Answers,
    reports: Budget,
    /// Searches for the tunnel that an error is about.
    searches: Budget,
    /// Secrets of tunnels.
    secrets: Stream,
    pending: Pending,
    visitors: Visitors,
    advertiser: Advertiser,
    outbox: VecDeque<Transmit>,
    events: VecDeque<ForeignEvent>,
    counters: ForeignCounters,
}

impl ForeignAgent {
    /// A foreign agent without visitors.
    #[must_use]
    pub fn new(now: Instant, config: ForeignAgentConfig) -> Self {
        let ForeignLimits {
            refusals_per_second,
            refusals_per_node,
            ..
        } = config.limits;
        Self {
            own_addresses: BTreeSet::new(),
            refusals: Answers::new(now, refusals_per_second, refusals_per_node, config.seed),
            reports: Budget::new(now, REPORTS, BETWEEN_REPORTS),
            searches: Budget::new(now, SEARCHES, BETWEEN_SEARCHES),
            secrets: Stream::new(config.seed, "secrets of tunnels"),
            pending: Pending::new(config.limits),
            visitors: Visitors::new(config.limits.visitors),
            advertiser: Advertiser::new(now, config.advertising.clone(), config.seed),
            config,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: ForeignCounters::default(),
        }
    }

    /// A packet comes to the agent's host.
    pub fn handle_packet(&mut self, now: Instant, arrival: Arrival, packet: Packet) -> Verdict {
        let Some((source, destination)) = addresses(&packet) else {
            return Verdict::Pass;
        };
        if let Some(message) = icmp_message(&packet)
            && solicitation_is_valid(message)
        {
            self.advertiser.handle_solicitation(now);
            self.handle_timeout(now);
            return Verdict::Taken;
        }
        let is_for_agent = [self.config.care_of_address, self.advertiser.address()]
            .contains(&destination)
            || destination.is_broadcast();
        if is_for_agent {
            return self.handle_own(now, arrival, &packet);
        }
        let is_visitors =
            arrival.link == self.config.link && self.visitors.is_at(source, arrival.from);
        match is_visitors {
            true => self.send_for_visitor(now, source, packet),
            false => Verdict::Pass,
        }
    }

    /// These are all addresses of the agent's host from now on: none of them is a home agent that a request
    /// may be relayed to (RFC 5944, section 3.7.2).
    pub fn set_own_addresses(&mut self, addresses: BTreeSet<Ipv4Addr>) {
        self.own_addresses = addresses;
    }

    /// These keys count from now on. Who is registered stays so.
    pub fn set_associations(
        &mut self,
        mobiles: BTreeMap<Ipv4Addr, SecurityAssociation>,
        home_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    ) {
        (self.config.mobiles, self.config.home_agents) = (mobiles, home_agents);
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.answer_late_requests(now);
        while let Some(home_address) = self.visitors.expire(now) {
            self.events.push_back(ForeignEvent::Left { home_address });
        }
        let flags = self.flags();
        let care_of_addresses = [self.config.care_of_address];
        let offer = Offer {
            flags,
            registration_lifetime: self.config.longest_lifetime,
            care_of_addresses: &care_of_addresses,
        };
        if let Some(packet) = self.advertiser.advertise(now, &offer) {
            let via = Via::Link(self.config.link);
            self.send(packet, via);
        }
    }

    /// What is to be done next.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// What has happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<ForeignEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, ForeignTimeout)> {
        let advertisement = (self.advertiser.due(), ForeignTimeout::Advertisement);
        let request = self.pending.first_due();
        let request = request.map(|at| (at, ForeignTimeout::Request));
        let expiry = self.visitors.first_expiry();
        let expiry = expiry.map(|at| (at, ForeignTimeout::Expiry));
        [Some(advertisement), request, expiry]
            .into_iter()
            .flatten()
            .min()
    }

    /// How many visitors are registered.
    #[must_use]
    pub fn visitors(&self) -> usize {
        self.visitors.len()
    }

    /// Where a visitor was heard; `None` if it is not registered.
    #[must_use]
    pub fn visitor(&self, home_address: Ipv4Addr) -> Option<LinkAddress> {
        self.visitors.node(home_address)
    }

    /// The tunnel of a visitor.
    #[must_use]
    pub fn plain_tunnel(&self, home_address: Ipv4Addr) -> Option<PlainTunnel> {
        let own = self.config.care_of_address;
        self.visitors.plain_tunnel(own, home_address)
    }

    /// How many requests wait for their home agents.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &ForeignCounters {
        &self.counters
    }

    fn flags(&self) -> AgentFlags {
        let mut flags = AgentFlags::FOREIGN_AGENT;
        if self.config.demands_registration {
            flags = flags | AgentFlags::REGISTRATION_REQUIRED;
        }
        if self.config.reverse_tunnels != ReverseTunnels::Refused {
            flags = flags | AgentFlags::REVERSE_TUNNEL;
        }
        if self.visitors.is_full() {
            flags = flags | AgentFlags::BUSY;
        }
        flags
    }

    /// A packet for one of the agent's own addresses.
    fn handle_own(&mut self, now: Instant, arrival: Arrival, packet: &Packet) -> Verdict {
        if let Transport::IcmpError(about) = &packet.header().transport {
            let Some(quote) = TunnelQuote::of(packet) else {
                return Verdict::Pass;
            };
            return match quote.content {
                QuotedContent::Datagram { .. } => {
                    self.handle_unreachable(now, &quote, (about.kind, about.code))
                }
                QuotedContent::Packet { ends, .. } => {
                    self.handle_tunnel_error(now, packet, &quote, ends)
                }
            };
        }
        if is_tunnelled(packet) {
            self.leave_tunnel(packet);
            return Verdict::Taken;
        }
        match datagram(packet) {
            Some(datagram) if datagram.destination.port() == PORT => {
                match arrival.link == self.config.link && datagram.payload.first() == Some(&1) {
                    true => self.handle_request(now, arrival, &datagram),
                    false => self.handle_reply(now, &datagram),
                }
                Verdict::Taken
            }
            _ => Verdict::Pass,
        }
    }

    /// A router complains of a packet in a reverse tunnel.
    fn handle_tunnel_error(
        &mut self,
        now: Instant,
        error: &Packet,
        quote: &TunnelQuote,
        ends: Option<(Ipv4Addr, Ipv4Addr)>,
    ) -> Verdict {
        let router = self.advertiser.address();
        let handle = |visitor, tunnel: &mut Tunnel| {
            let side = MobileSide::Source(visitor);
            tunnel.handle_error(now, (router, side), error, quote)
        };
        let relayed = match ends {
            Some((visitor, _)) => {
                let tunnel = self.visitors.tunnel(visitor);
                tunnel.map(|tunnel| handle(visitor, tunnel))
            }
            // Too little is quoted to know whose tunnel it is: all that end there are looked at.
            None if self.searches.take(now).is_ok() => {
                let mut tunnels = self.visitors.tunnels_to(quote.destination);
                tunnels.find_map(|(visitor, tunnel)| Some(Ok(handle(visitor, tunnel).ok()?)))
            }
            None => None,
        };
        let Some(Ok(relayed)) = relayed else {
            return Verdict::Pass;
        };
        let to = relayed.as_ref().and_then(addresses);
        if let (Some(packet), Some((_, visitor))) = (relayed, to)
            && let Some(node) = self.visitors.node(visitor)
        {
            self.send(packet, Via::Neighbour(self.config.link, node));
        }
        Verdict::Taken
    }

    /// A packet comes out of a tunnel: to the visitor, in a frame to where it was heard.
    fn leave_tunnel(&mut self, packet: &Packet) {
        let Ok(inner) = decapsulate(packet) else {
            self.counters.dropped_unfit += 1;
            return;
        };
        let ends = addresses(packet).zip(addresses(&inner));
        // The home agent is the tunnel's other end (section 4.2.3): nobody else speaks through it.
        let visitor = ends.and_then(|((end, _), (_, visitor))| {
            (self.visitors.home_agent(visitor)? == end).then_some(visitor)
        });
        match visitor.and_then(|visitor| self.visitors.node(visitor)) {
            Some(node) => {
                self.counters.delivered += 1;
                self.send(inner, Via::Neighbour(self.config.link, node));
            }
            None => self.counters.dropped_strangers += 1,
        }
    }

    /// A visitor's packet: through its reverse tunnel if it has one.
    fn send_for_visitor(&mut self, now: Instant, visitor: Ipv4Addr, packet: Packet) -> Verdict {
        let router = self.advertiser.address();
        let node = self.visitors.node(visitor);
        let Some(tunnel) = self.visitors.tunnel(visitor) else {
            return Verdict::Pass;
        };
        match (tunnel.enter(now, router, packet), node) {
            (Entered::Encapsulated(packet), _) => {
                self.counters.reverse_tunnelled += 1;
                self.send(packet, Via::Route);
            }
            (Entered::TurnedRound(error), Some(node)) => {
                self.send(error, Via::Neighbour(self.config.link, node));
            }
            _ => self.counters.dropped_unfit += 1,
        }
        Verdict::Taken
    }

    /// Tells of a refusal, unless many were told just now.
    fn report_refusal(&mut self, now: Instant, home_address: Ipv4Addr, code: ReplyCode) {
        if self.reports.take(now).is_ok() {
            self.events
                .push_back(ForeignEvent::Refused { home_address, code });
        }
    }

    fn send(&mut self, packet: Packet, via: Via) {
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}
