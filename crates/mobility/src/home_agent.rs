//! The home agent (RFC 5944, section 3.8): keeps bindings, and tunnels what is for mobile nodes.
//!
//! It sees the packets of its home network that are for it or for a mobile node, and those of the
//! tunnels that end here. Bindings are made by authenticated requests alone, so that no table can
//! grow beyond the configured mobile nodes times [`HomeLimits::bindings_per_mobile`]. After a
//! restart all bindings are gone; mobile nodes make them anew when they renew their registrations.

mod bindings;
mod registration;

use crate::ReverseTunnels;
use crate::advertiser::{Advertiser, Advertising, Offer};
use crate::budget::Budget;
use crate::clock::NtpClock;
use crate::datagram::{addresses, datagram, icmp_message, is_tunnelled};
use crate::security::SecurityAssociation;
use crate::transmit::{Arp, Arrival, LinkAddress, LinkId, Transmit, Verdict, Via};
use crate::tunnel::{Entered, MobileSide, Outside, PlainTunnel, Tunnel};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bindings::Bindings;
use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    AgentFlags, Lifetime, PORT, QuotedContent, ReplyCode, TunnelData, TunnelQuote, decapsulate,
    solicitation_is_valid,
};
use outlast_wire::{Packet, Transport};
use registration::Refusals;

/// A gratuitous ARP is sent so often (RFC 5944, section 4.6).
const ARP_REPEATS: u8 = 3;
const BETWEEN_ARPS: Duration = Duration::from_secs(1);
const IPV4: u8 = 4;
/// Searches for the tunnel that an error is about: so many at once, then one in each [`BETWEEN_SEARCHES`].
const SEARCHES: u32 = 20;
const BETWEEN_SEARCHES: Duration = Duration::from_millis(100);

/// How a home agent is set up.
#[derive(Clone, Debug)]
pub struct HomeAgentConfig {
    /// Its address on the home network.
    pub address: Ipv4Addr,
    /// The home network's link.
    pub link: LinkId,
    /// The mobile nodes' home addresses, and what they authenticate themselves with.
    pub mobiles: BTreeMap<Ipv4Addr, Vec<SecurityAssociation>>,
    /// Foreign agents that have to authenticate what they relay.
    pub foreign_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    /// The longest registration.
    pub longest_lifetime: Lifetime,
    /// How far a request's time may be off; RFC 5944 says 7 s, and more than 3 s.
    pub replay_tolerance: Duration,
    /// Whether there are reverse tunnels.
    pub reverse_tunnels: ReverseTunnels,
    /// Tunnels in UDP, if there are any.
    pub udp_tunnels: Option<UdpTunnelOffer>,
    /// Advertises itself on the home link.
    pub advertising: Option<Advertising>,
    /// Caps.
    pub limits: HomeLimits,
    /// The wall clock.
    pub clock: NtpClock,
    /// Seed of the advertisements' times and of the tunnels' secrets.
    pub seed: u64,
}

/// How a home agent has tunnels in UDP (RFC 3519).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UdpTunnelOffer {
    /// Seconds between the mobile node's signs of life.
    pub keep_alive_s: u16,
    /// Whether a mobile node may ask for a tunnel without an address translator.
    pub accepts_forced: bool,
}

impl Default for UdpTunnelOffer {
    /// Signs of life every 110 s (RFC 3519, section 4.9), for whoever asks (section 3.1.1).
    fn default() -> Self {
        Self {
            keep_alive_s: 110,
            accepts_forced: true,
        }
    }
}

/// Caps of a home agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HomeLimits {
    /// Simultaneous bindings of one mobile node; 1 is none besides the latest.
    pub bindings_per_mobile: usize,
    /// Refusals a second: forged and recorded requests have them sent, too.
    pub refusals_per_second: u32,
    /// Refusals a second to one address.
    pub refusals_per_source: u32,
}

impl Default for HomeLimits {
    fn default() -> Self {
        Self {
            bindings_per_mobile: 4,
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
        home_address: Ipv4Addr,
        /// Where it is.
        care_of_address: Ipv4Addr,
        /// It was elsewhere, or nowhere.
        has_moved: bool,
    },
    /// The mobile node is at home.
    Home {
        /// The mobile node.
        home_address: Ipv4Addr,
    },
    /// The mobile node is no longer at a care-of address.
    Deregistered {
        /// The mobile node.
        home_address: Ipv4Addr,
        /// Where it was.
        care_of_address: Ipv4Addr,
    },
    /// A binding has come to its end, and the mobile node did not renew it.
    Expired {
        /// The mobile node.
        home_address: Ipv4Addr,
        /// Where it was.
        care_of_address: Ipv4Addr,
    },
    /// A request was refused, answered or not. Of many in a row only some are told.
    Refused {
        /// For which mobile node it was.
        home_address: Ipv4Addr,
        /// Why.
        code: ReplyCode,
    },
}

/// Why a home agent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HomeTimeout {
    /// An advertisement is due.
    Advertisement,
    /// A binding expires.
    Expiry,
    /// A gratuitous ARP is repeated.
    GratuitousArp,
}

/// What a home agent has counted; requests are binding updates with Mobile IPv6.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HomeCounters {
    /// Requests that were accepted.
    pub accepted: u64,
    /// Requests that were refused, answered or not.
    pub refused: u64,
    /// Among them those whose time or sequence number was not right: replays, and wrong clocks.
    pub refused_for_identification: u64,
    /// Among them those that were not authenticated.
    pub refused_for_authentication: u64,
    /// Refusals that were not sent: to strangers, or to answer no flood.
    pub unanswered: u64,
    /// Datagrams at the agent's port that are no message, and messages that cannot be read.
    pub malformed: u64,
    /// Packets that entered tunnels.
    pub tunnelled: u64,
    /// Packets that came out of reverse tunnels.
    pub reverse_tunnelled: u64,
    /// Packets out of a tunnel whose other end or sender is not registered.
    pub dropped_strangers: u64,
    /// Packets that could not enter a tunnel.
    pub dropped_unfit: u64,
    /// ICMP errors that were sent to senders of tunnelled packets.
    pub turned_round: u64,
    /// ICMP errors about tunnels that quote no packet which was sent.
    pub dropped_errors: u64,
}

/// A home agent.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    bindings: Bindings,
    refusals: Refusals,
    /// Searches for the tunnel that an error is about.
    searches: Budget,
    /// Secrets of tunnels.
    secrets: Stream,
    advertiser: Option<Advertiser>,
    /// Gratuitous ARPs to come: when, for whom, how many.
    arps: VecDeque<(Instant, Arp, u8)>,
    outbox: VecDeque<Transmit>,
    events: VecDeque<HomeEvent>,
    counters: HomeCounters,
}

impl HomeAgent {
    /// A home agent without bindings.
    #[must_use]
    pub fn new(now: Instant, config: HomeAgentConfig) -> Self {
        let advertising = config.advertising.clone();
        let advertiser = advertising.map(|one| Advertiser::new(now, one, config.seed));
        Self {
            bindings: Bindings::new(config.limits.bindings_per_mobile.max(1)),
            refusals: Refusals::new(now, config.limits, config.seed),
            searches: Budget::new(now, SEARCHES, BETWEEN_SEARCHES),
            secrets: Stream::new(config.seed, "secrets of tunnels"),
            advertiser,
            config,
            arps: VecDeque::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: HomeCounters::default(),
        }
    }

    /// A packet comes to the agent's host.
    pub fn handle_packet(&mut self, now: Instant, arrival: Arrival, packet: Packet) -> Verdict {
        let Some((_, destination)) = addresses(&packet) else {
            return Verdict::Pass;
        };
        if self.bindings.has(destination) {
            self.tunnel(now, destination, packet);
            return Verdict::Taken;
        }
        if let Some(message) = icmp_message(&packet) {
            return self.handle_icmp(now, message);
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
        match datagram(&packet) {
            Some(datagram) if datagram.destination.port() == PORT => {
                match TunnelData::parse(datagram.payload) {
                    Ok(data) => {
                        self.handle_data(Outside::Udp(datagram.source), data);
                    }
                    Err(_) => self.handle_request(now, arrival, &datagram),
                }
                Verdict::Taken
            }
            _ => Verdict::Pass,
        }
    }

    /// These are the mobile nodes from now on. Bindings of those that are not among them end.
    pub fn set_mobiles(&mut self, mobiles: BTreeMap<Ipv4Addr, Vec<SecurityAssociation>>) {
        for address in self.config.mobiles.keys() {
            if !mobiles.contains_key(address) && self.bindings.has(*address) {
                self.bindings.remove(*address, None);
                self.outbox.push_back(Transmit::Arp(Arp::StopProxy {
                    link: self.config.link,
                    address: *address,
                }));
            }
        }
        self.arps.retain(|(_, arp, _)| {
            !matches!(arp, Arp::Gratuitous { address, .. } if !mobiles.contains_key(address))
        });
        self.config.mobiles = mobiles;
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((home_address, care_of_address)) = self.bindings.expire(now) {
            self.events.push_back(HomeEvent::Expired {
                home_address,
                care_of_address,
            });
            if !self.bindings.has(home_address) {
                self.outbox.push_back(Transmit::Arp(Arp::StopProxy {
                    link: self.config.link,
                    address: home_address,
                }));
            }
        }
        self.repeat_arps(now);
        let flags = self.flags();
        if let Some(advertiser) = &mut self.advertiser {
            let offer = Offer {
                flags,
                registration_lifetime: self.config.longest_lifetime,
                care_of_addresses: &[],
            };
            if let Some(packet) = advertiser.advertise(now, &offer) {
                let via = Via::Link(self.config.link);
                self.outbox.push_back(Transmit::Packet { packet, via });
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
        let advertiser = self.advertiser.as_ref();
        let advertisement = advertiser.map(|one| (one.due(), HomeTimeout::Advertisement));
        let expiry = self.bindings.first_expiry();
        let expiry = expiry.map(|at| (at, HomeTimeout::Expiry));
        let arps = self.arps.front();
        let arp = arps.map(|(at, _, _)| (*at, HomeTimeout::GratuitousArp));
        [advertisement, expiry, arp].into_iter().flatten().min()
    }

    /// The care-of addresses at which a mobile node is.
    pub fn care_of_addresses(&self, home_address: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        self.bindings
            .of(home_address)
            .map(|one| one.care_of_address)
    }

    /// The tunnel to a mobile node that has one binding, IP in IP.
    #[must_use]
    pub fn plain_tunnel(&self, home_address: Ipv4Addr) -> Option<PlainTunnel> {
        let mut bindings = self.bindings.of(home_address);
        match (bindings.next(), bindings.next()) {
            (Some(only), None) => only.tunnel.plain(true, only.is_reverse),
            _ => None,
        }
    }

    /// How many mobile nodes are away from home.
    #[must_use]
    pub fn away(&self) -> usize {
        self.bindings.mobiles_away()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &HomeCounters {
        &self.counters
    }

    fn flags(&self) -> AgentFlags {
        let mut flags = AgentFlags::HOME_AGENT;
        if self.config.reverse_tunnels != ReverseTunnels::Refused {
            flags = flags | AgentFlags::REVERSE_TUNNEL;
        }
        if self.config.udp_tunnels.is_some() {
            flags = flags | AgentFlags::UDP_TUNNEL;
        }
        flags
    }

    fn handle_icmp(&mut self, now: Instant, message: &[u8]) -> Verdict {
        match &mut self.advertiser {
            Some(advertiser) if solicitation_is_valid(message) => {
                advertiser.handle_solicitation(now);
                self.handle_timeout(now);
                Verdict::Taken
            }
            _ => Verdict::Pass,
        }
    }

    /// A router complains of a packet, perhaps one in a tunnel.
    fn handle_error(&mut self, now: Instant, error: &Packet) -> Verdict {
        let Some(quote) = TunnelQuote::of(error) else {
            return Verdict::Pass;
        };
        if !self.bindings.has_end(quote.destination) {
            return Verdict::Pass;
        }
        let router = self.config.address;
        let mobile = match quote.content {
            QuotedContent::Packet { ends, .. } => ends.map(|(_, mobile)| mobile),
            QuotedContent::Datagram { .. } => None,
        };
        let handle = |home, tunnel: &mut Tunnel| {
            let side = MobileSide::Destination(home);
            tunnel.handle_error(now, (router, side), error, &quote)
        };
        let relayed = match mobile {
            Some(home) => {
                let bindings = self.bindings.of_mut(home);
                let mut tunnels = bindings.map(|binding| &mut binding.tunnel);
                tunnels.find_map(|tunnel| handle(home, tunnel).ok())
            }
            // Too little is quoted to know whose tunnel it is: all that end there are looked at.
            None if self.searches.take(now).is_ok() => {
                let mut tunnels = self.bindings.tunnels_to(quote.destination);
                tunnels.find_map(|(home, tunnel)| handle(home, tunnel).ok())
            }
            None => None,
        };
        match relayed {
            Some(Some(packet)) => {
                self.counters.turned_round += 1;
                self.send(packet, Via::Route);
            }
            Some(None) => {}
            None => self.counters.dropped_errors += 1,
        }
        Verdict::Taken
    }

    /// A packet for a mobile node that is away: each binding gets one.
    fn tunnel(&mut self, now: Instant, home_address: Ipv4Addr, packet: Packet) {
        let router = self.config.address;
        for binding in self.bindings.of_mut(home_address) {
            match binding.tunnel.enter(now, router, packet.clone()) {
                Entered::Encapsulated(packet) => {
                    self.counters.tunnelled += 1;
                    let via = Via::Route;
                    self.outbox.push_back(Transmit::Packet { packet, via });
                }
                Entered::TurnedRound(packet) => {
                    self.counters.turned_round += 1;
                    let via = Via::Route;
                    self.outbox.push_back(Transmit::Packet { packet, via });
                }
                Entered::Dropped => self.counters.dropped_unfit += 1,
            }
        }
    }

    fn handle_tunnelled(&mut self, packet: &Packet) {
        let Some((source, _)) = addresses(packet) else {
            return;
        };
        match decapsulate(packet) {
            Ok(inner) => self.leave_tunnel(Outside::Ip(source), inner),
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn handle_data(&mut self, outside: Outside, data: TunnelData<'_>) {
        let bytes = data.packet.to_vec().into();
        match (data.next_header, Packet::parse(bytes)) {
            (IPV4, Ok(inner)) => self.leave_tunnel(outside, inner),
            _ => self.counters.malformed += 1,
        }
    }

    /// A packet comes out of a reverse tunnel: from a registered mobile node, out of its own tunnel,
    /// or it goes nowhere (RFC 3024, section 4.3).
    fn leave_tunnel(&mut self, outside: Outside, inner: Packet) {
        let Some((source, destination)) = addresses(&inner) else {
            self.counters.malformed += 1;
            return;
        };
        let mut bindings = self.bindings.of(source);
        let is_own = bindings.any(|one| one.is_reverse && one.tunnel.outside() == outside);
        drop(bindings);
        if !is_own {
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

    /// Says by ARP that `address` is at `owner`, now and a few times more.
    fn announce(&mut self, now: Instant, address: Ipv4Addr, owner: Option<LinkAddress>) {
        let link = self.config.link;
        let arp = Arp::Gratuitous {
            link,
            address,
            owner,
        };
        self.stop_announcing(address);
        self.outbox.push_back(Transmit::Arp(arp));
        self.arps
            .push_back((now + BETWEEN_ARPS, arp, ARP_REPEATS - 1));
    }

    /// What was said of `address` is no longer true.
    fn stop_announcing(&mut self, address: Ipv4Addr) {
        self.arps.retain(|(_, arp, _)| {
            !matches!(arp, Arp::Gratuitous { address: other, .. } if *other == address)
        });
    }

    fn repeat_arps(&mut self, now: Instant) {
        // All are as far apart, so that they are in order.
        while let Some(&(at, arp, left)) = self.arps.front()
            && at <= now
        {
            self.arps.pop_front();
            self.outbox.push_back(Transmit::Arp(arp));
            if left > 1 {
                self.arps.push_back((now + BETWEEN_ARPS, arp, left - 1));
            }
        }
    }
}
