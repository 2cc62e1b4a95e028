//! The role `home-agent`: mobile nodes' addresses are routed into a TUN device, bound or not.
//!
//! Without `interface` the home network is virtual: no link has it. Packets for a mobile node come to
//! this host because routers send them here, and leave it through the tunnel or not at all.
//!
//! With `interface` that link is the home network. This host advertises itself there, and answers ARP
//! for a mobile node that is away, whose address is routed into the device so long.

use super::access::LINK;
use super::data_path::{DataPath, Kind};
use super::endpoint::{Endpoint, Role};
use super::home_network::{HomeNetwork, REPLAY_TOLERANCE, counts};
use super::operating::fixed;
use super::settings::HomeAgentSettings;
use super::status::{Mobile, Report};
use super::{ntp_clock, random};
use crate::control::Notified;
use crate::failure::Failure;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::tunnels::{Exit, MobileIs};
use outlast_mobility::{
    Arp, Arrival, HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits, LinkAddress, Transmit,
    UdpTunnelOffer, Verdict,
};
use outlast_wire::mobile_ip::{Lifetime, ReplyCode};
use outlast_wire::{Packet, Transport};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// What does not come from the home link has no neighbour.
const ARRIVAL: Arrival = Arrival {
    link: LINK,
    from: LinkAddress([0; 6]),
};

/// What is for mobile nodes enters tunnels, and what they send leaves them.
const TUNNELS: Kind = Kind {
    entering: MobileIs::Destination,
    leaving: MobileIs::Source,
    forwards: true,
    mobiles: 1 << 17,
};

/// A home agent and its routes.
pub(super) struct Home {
    agent: HomeAgent,
    settings: HomeAgentSettings,
    address: Ipv4Addr,
    network: HomeNetwork,
    data_path: DataPath,
    /// The mobile nodes' addresses.
    mobiles: BTreeSet<Ipv4Addr>,
    /// Whether the home network is a link.
    has_link: bool,
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
                accepts_forced: true,
            }),
            advertising: settings.advertising()?,
            limits: HomeLimits::default(),
            clock: ntp_clock(now),
            seed: u64::from_ne_bytes(random()?),
        };
        let mut endpoint = Endpoint::open(settings.operating(control), 0)?;
        let address = settings.address;
        HomeNetwork::settle(&mut endpoint, address.into())?;
        if let Some(interface) = &settings.interface {
            endpoint.use_access(interface).map_err(Failure::Run)?;
        }
        let gateway = settings.gateway.clone();
        let network = HomeNetwork::behind(&settings.device, gateway, "net.ipv4.ip_forward");
        let mut home = Self {
            agent: HomeAgent::new(now, config),
            settings: settings.clone(),
            address,
            network: network.map_err(Failure::Run)?,
            data_path: DataPath::open(settings.data_path, &settings.device, TUNNELS)?,
            mobiles: BTreeSet::new(),
            has_link: settings.interface.is_some(),
        };
        let mobiles = addresses.len();
        home.attend(addresses).map_err(Failure::Run)?;
        let interfaces = endpoint.interfaces();
        let attached = home.data_path.attach_to_interfaces(&interfaces);
        attached.map_err(Failure::Run)?;
        tracing::info!(%address, device = settings.device, mobiles, "home agent begins");
        Ok((endpoint, home))
    }

    /// These are the mobile nodes' addresses. On a link only those are routed into the device whose
    /// mobile nodes are away.
    fn attend(&mut self, addresses: BTreeSet<Ipv4Addr>) -> anyhow::Result<()> {
        let all: BTreeSet<IpAddr> = addresses.iter().copied().map(IpAddr::V4).collect();
        let routed = match self.has_link {
            true => self.network.routed().intersection(&all).copied().collect(),
            false => all,
        };
        self.mobiles = addresses;
        self.network.route(&routed)
    }
}

impl Home {
    /// Has the kernel carry what it may of a mobile node's packets.
    fn follow(&mut self, mobile: Ipv4Addr) {
        let tunnel = self.agent.plain_tunnel(mobile);
        let exit = Exit::ReceivedBy(self.network.device());
        self.data_path.follow(mobile, tunnel, None, exit);
    }

    fn is_mobiles(&self, source: IpAddr) -> bool {
        matches!(source, IpAddr::V4(source) if self.mobiles.contains(&source))
    }
}

impl Role for Home {
    const NAME: &'static str = "home-agent";
    const FORWARDS: bool = true;
    const TELLS_FIRST: bool = true;

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
            let mut routed = self.network.routed().clone();
            match arp {
                Arp::StartProxy { address, .. } => routed.insert(address.into()),
                Arp::StopProxy { address, .. } => routed.remove(&address.into()),
                _ => false,
            };
            self.network.route(&routed)?;
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
        self.data_path.attach_to_interfaces(&endpoint.interfaces())
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
        for mobile in self.data_path.mobiles() {
            self.follow(mobile);
        }
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
        let mut counters = counts(self.agent.counters());
        let (entered, left) = (Some("tunnelled"), Some("reverse_tunnelled"));
        self.data_path.add_to(&mut counters, entered, left);
        Report {
            address: Some(self.address.into()),
            data_path: Some(self.data_path.describe()),
            place: None,
            mobiles: mobiles.collect(),
            counters,
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
            if let Some(mobile) = concerned(&event) {
                self.follow(mobile);
            }
            if let Some((state, mobile)) = notice(&event) {
                self.network.tell(state, mobile.into());
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

/// The mobile node whose bindings an event may have changed.
const fn concerned(event: &HomeEvent) -> Option<Ipv4Addr> {
    match *event {
        HomeEvent::Bound { home_address, .. }
        | HomeEvent::Home { home_address }
        | HomeEvent::Deregistered { home_address, .. }
        | HomeEvent::Expired { home_address, .. } => Some(home_address),
        HomeEvent::Refused { .. } => None,
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
