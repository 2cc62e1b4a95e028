//! The role `home-agent`: mobile nodes' addresses are routed into a TUN device, bound or not.
//!
//! Without `interface` the home network is virtual: no link has it. Packets for a mobile node come to
//! this host because routers send them here, and leave it through the tunnel or not at all.
//!
//! With `interface` that link is the home network. This host advertises itself there, and answers ARP
//! for a mobile node that is away, whose address is routed into the device so long.

use super::access::LINK;
use super::endpoint::{Endpoint, Role};
use super::gateway::Gateway;
use super::operating::fixed;
use super::settings::HomeAgentSettings;
use super::status::{Mobile, Report};
use super::{ntp_clock, random};
use crate::control::Notified;
use crate::failure::Failure;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::netlink::{InterfaceIndex, Prefix, Route, RouteSocket};
use outlast_linux::sysctl;
use outlast_mobility::{
    Arp, Arrival, HomeAgent, HomeAgentConfig, HomeCounters, HomeEvent, HomeLimits, LinkAddress,
    Transmit, UdpTunnelOffer, Verdict,
};
use outlast_wire::mobile_ip::{Lifetime, ReplyCode};
use outlast_wire::{Packet, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// RFC 5944, section 5.7.1.
const REPLAY_TOLERANCE: Duration = Duration::from_secs(7);

/// What does not come from the home link has no neighbour.
const ARRIVAL: Arrival = Arrival {
    link: LINK,
    from: LinkAddress([0; 6]),
};

/// A home agent and its routes.
pub(super) struct Home {
    agent: HomeAgent,
    settings: HomeAgentSettings,
    address: Ipv4Addr,
    routes: RouteSocket,
    device: InterfaceIndex,
    /// The mobile nodes' addresses.
    mobiles: BTreeSet<Ipv4Addr>,
    /// Whether the home network is a link.
    has_link: bool,
    /// Which mobile nodes' addresses are routed into the device.
    routed: BTreeSet<Ipv4Addr>,
    /// Who is told of registrations.
    gateway: Option<Gateway>,
}

impl Home {
    pub(super) fn start(
        settings: &HomeAgentSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let mobiles = settings.associations()?;
        let addresses: BTreeSet<Ipv4Addr> = mobiles.keys().copied().collect();
        let now = clock::now();
        let config = HomeAgentConfig {
            address: settings.address,
            link: ARRIVAL.link,
            mobiles,
            foreign_agents: settings.foreign_agents()?,
            longest_lifetime: Lifetime(settings.lifetime_s),
            replay_tolerance: REPLAY_TOLERANCE,
            reverse_tunnels: settings.reverse_tunnels(),
            udp_tunnels: settings.udp_tunnels.then_some(UdpTunnelOffer {
                keep_alive_s: settings.keep_alive_s,
                accepts_forced: false,
            }),
            advertising: settings.advertising()?,
            limits: HomeLimits::default(),
            clock: ntp_clock(now),
            seed: u64::from_ne_bytes(random()?),
        };
        let agent = HomeAgent::new(now, config);
        let mut endpoint = Endpoint::open(settings.operating(control), 0)?;
        let address = settings.address;
        if endpoint.settle(Some(address.into()))?.is_none() {
            return Err(Failure::Usage(format!(
                "address = \"{address}\": no interface has it"
            )));
        }
        if let Some(interface) = &settings.interface {
            endpoint.use_access(interface).map_err(Failure::Run)?;
        }
        let mut home = Self::with_routes(agent, settings).map_err(Failure::Run)?;
        let mobiles = addresses.len();
        home.attend(addresses).map_err(Failure::Run)?;
        tracing::info!(%address, device = settings.device, mobiles, "home agent begins");
        Ok((endpoint, home))
    }

    fn with_routes(agent: HomeAgent, settings: &HomeAgentSettings) -> anyhow::Result<Self> {
        if sysctl::read("net.ipv4.ip_forward")? == "0" {
            tracing::warn!("this host forwards nothing: set net.ipv4.ip_forward to 1");
        }
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(&settings.device)?;
        Ok(Self {
            agent,
            settings: settings.clone(),
            address: settings.address,
            routes,
            device,
            mobiles: BTreeSet::new(),
            has_link: settings.interface.is_some(),
            routed: BTreeSet::new(),
            gateway: settings.gateway.clone().map(Gateway::at),
        })
    }

    /// These are the mobile nodes' addresses. On a link only those are routed into the device whose
    /// mobile nodes are away.
    fn attend(&mut self, addresses: BTreeSet<Ipv4Addr>) -> anyhow::Result<()> {
        let routed = match self.has_link {
            true => self.routed.intersection(&addresses).copied().collect(),
            false => addresses.clone(),
        };
        self.mobiles = addresses;
        self.route(&routed)
    }

    /// Routes these addresses into the device, and no others.
    fn route(&mut self, addresses: &BTreeSet<Ipv4Addr>) -> anyhow::Result<()> {
        let device = self.device;
        let way = |address: &Ipv4Addr| Route {
            destination: Prefix::of_host((*address).into()),
            interface: device,
            gateway: None,
            congestion_control: None,
        };
        for gone in self.routed.difference(addresses) {
            self.routes.remove_route(&way(gone))?;
        }
        for new in addresses.difference(&self.routed) {
            self.routes.add_route(&way(new))?;
        }
        self.routed.clone_from(addresses);
        Ok(())
    }
}

impl Home {
    fn is_mobiles(&self, source: IpAddr) -> bool {
        matches!(source, IpAddr::V4(source) if self.mobiles.contains(&source))
    }
}

impl Role for Home {
    const NAME: &'static str = "home-agent";
    const FORWARDS: bool = true;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        let destination = packet.header().ip.destination;
        if self.agent.handle_packet(now, ARRIVAL, packet) == Verdict::Pass {
            tracing::debug!(%destination, "the mobile node is not registered");
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // A mobile node at home is heard on the link, where its link-layer address is known.
        let is_of_link = self.has_link && self.is_mobiles(packet.header().ip.source);
        if !is_of_link {
            // The kernel answers what is not for the agent.
            let _ = self.agent.handle_packet(now, ARRIVAL, packet);
        }
    }

    fn handle_link_packet(&mut self, now: Instant, from: LinkAddress, packet: Packet) {
        let is_datagram = matches!(packet.header().transport, Transport::Udp(_));
        if !is_datagram || self.is_mobiles(packet.header().ip.source) {
            let arrival = Arrival { link: LINK, from };
            let _ = self.agent.handle_packet(now, arrival, packet);
        }
    }

    fn change_arp(&mut self, arp: Arp, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        if self.has_link {
            let mut routed = self.routed.clone();
            match arp {
                Arp::StartProxy { address, .. } => routed.insert(address),
                Arp::StopProxy { address, .. } => routed.remove(&address),
                _ => false,
            };
            self.route(&routed)?;
        }
        endpoint.change_arp(arp)
    }

    fn handle_change(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        _is_link_back: bool,
    ) -> anyhow::Result<()> {
        endpoint.settle(Some(self.address.into()))?;
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn reload(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure> {
        let next = HomeAgentSettings::load(config)?;
        fixed(&self.settings.fixed_differences(&next))?;
        let changed = self.settings.free_differences(&next);
        let mobiles = next.associations()?;
        endpoint.move_metrics(next.metrics.as_ref())?;
        self.attend(mobiles.keys().copied().collect())?;
        self.agent.set_mobiles(mobiles);
        self.settings = next;
        Ok(changed)
    }

    fn report(&self, _now: Instant) -> Report {
        let mobiles = self.mobiles.iter().map(|home_address| Mobile {
            home_address: (*home_address).into(),
            at: self
                .agent
                .care_of_addresses(*home_address)
                .map(|at| at.to_string())
                .collect(),
        });
        Report {
            address: Some(self.address.into()),
            place: None,
            mobiles: mobiles.collect(),
            counters: counts(self.agent.counters()),
        }
    }

    fn end(&mut self, _now: Instant) {
        tracing::info!(counters = ?self.agent.counters(), "home agent ends");
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.agent.poll_transmit()
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.agent.poll_event() {
            tell(&event);
            if let (Some(gateway), Some((state, peer))) = (&mut self.gateway, notice(&event)) {
                gateway.tell(state, Some(peer.into()));
            }
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout().map(|(at, _)| at)
    }
}

fn tell(event: &HomeEvent) {
    match event {
        HomeEvent::Bound {
            home_address,
            care_of_address,
            has_moved: true,
        } => tracing::info!(%home_address, %care_of_address, "mobile node has moved"),
        HomeEvent::Bound { home_address, .. } => {
            tracing::debug!(%home_address, "registration renewed");
        }
        HomeEvent::Home { home_address } => tracing::info!(%home_address, "mobile node is home"),
        HomeEvent::Deregistered {
            home_address,
            care_of_address,
        } => tracing::info!(%home_address, %care_of_address, "mobile node has left"),
        HomeEvent::Expired {
            home_address,
            care_of_address,
        } => tracing::warn!(%home_address, %care_of_address, "registration has expired"),
        // Every mobile node's first request whose clock is wrong.
        HomeEvent::Refused {
            home_address,
            code: code @ ReplyCode::HOME_IDENTIFICATION,
        } => tracing::info!(%home_address, %code, "registration refused"),
        HomeEvent::Refused { home_address, code } => {
            tracing::warn!(%home_address, %code, "registration refused");
        }
    }
}

/// What a gateway on the device is told of an event: whether which mobile node can be reached.
const fn notice(event: &HomeEvent) -> Option<(Notified, Ipv4Addr)> {
    match *event {
        HomeEvent::Bound {
            home_address,
            has_moved: true,
            ..
        }
        | HomeEvent::Home { home_address } => Some((Notified::Up, home_address)),
        HomeEvent::Deregistered { home_address, .. } | HomeEvent::Expired { home_address, .. } => {
            Some((Notified::Down, home_address))
        }
        HomeEvent::Bound { .. } | HomeEvent::Refused { .. } => None,
    }
}

/// All counts by name: who adds one is told here that it is to be shown.
fn counts(counters: &HomeCounters) -> BTreeMap<String, u64> {
    let HomeCounters {
        accepted,
        refused,
        refused_for_identification,
        refused_for_authentication,
        unanswered,
        malformed,
        tunnelled,
        reverse_tunnelled,
        dropped_strangers,
        dropped_unfit,
        turned_round,
    } = *counters;
    let all = [
        ("accepted", accepted),
        ("refused", refused),
        ("refused_for_identification", refused_for_identification),
        ("refused_for_authentication", refused_for_authentication),
        ("unanswered", unanswered),
        ("malformed", malformed),
        ("tunnelled", tunnelled),
        ("reverse_tunnelled", reverse_tunnelled),
        ("dropped_strangers", dropped_strangers),
        ("dropped_unfit", dropped_unfit),
        ("turned_round", turned_round),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
