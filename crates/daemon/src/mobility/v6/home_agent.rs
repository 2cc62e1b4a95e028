//! The role `home-agent` of Mobile IPv6: mobile nodes' addresses are routed into a TUN device, bound or not.
//!
//! The home network is virtual: no link has it. Packets for a mobile node come to this host because
//! routers send them here, and leave it through the tunnel or not at all.

use super::settings::HomeAgentSettings;
use crate::control::Notified;
use crate::failure::Failure;
use crate::mobility::endpoint::{Endpoint, Role};
use crate::mobility::gateway::Gateway;
use crate::mobility::ntp_clock;
use crate::mobility::operating::fixed;
use crate::mobility::status::{Mobile, Report};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::netlink::{InterfaceIndex, Prefix, Route, RouteSocket};
use outlast_linux::sysctl;
use outlast_mobility::v6::{HomeAgent, HomeAgentConfig, HomeCounters, HomeEvent, HomeLimits};
use outlast_mobility::{Transmit, Verdict};
use outlast_wire::Packet;
use outlast_wire::mobile_ipv6::{Status, UpdateLifetime};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::path::Path;

/// As Mobile IPv4's (RFC 5944, section 5.7.1).
const REPLAY_TOLERANCE: Duration = Duration::from_secs(7);

/// A home agent and its routes.
pub(in crate::mobility) struct Home {
    agent: HomeAgent,
    settings: HomeAgentSettings,
    routes: RouteSocket,
    device: InterfaceIndex,
    /// The mobile nodes' addresses, which are routed into the device.
    mobiles: BTreeSet<Ipv6Addr>,
    /// Who is told of registrations.
    gateway: Option<Gateway>,
}

impl Home {
    pub(in crate::mobility) fn start(
        settings: &HomeAgentSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let mobiles = settings.associations()?;
        let addresses = mobiles.keys().copied().collect();
        let now = clock::now();
        let config = HomeAgentConfig {
            address: settings.address,
            mobiles,
            longest_lifetime: lifetime(settings.lifetime_s),
            replay_tolerance: REPLAY_TOLERANCE,
            limits: HomeLimits::default(),
            clock: ntp_clock(now),
        };
        let mut endpoint = Endpoint::open_v6(settings.operating(control), 0)?;
        let address = settings.address;
        if endpoint.settle(Some(address.into()))?.is_none() {
            return Err(Failure::Usage(format!(
                "address = \"{address}\": no interface has it"
            )));
        }
        let agent = HomeAgent::new(now, config);
        let mut home = Self::with_routes(agent, settings).map_err(Failure::Run)?;
        home.attend(addresses).map_err(Failure::Run)?;
        let mobiles = home.mobiles.len();
        tracing::info!(%address, device = settings.device, mobiles, "home agent begins");
        Ok((endpoint, home))
    }

    fn with_routes(agent: HomeAgent, settings: &HomeAgentSettings) -> anyhow::Result<Self> {
        if sysctl::read("net.ipv6.conf.all.forwarding")? == "0" {
            tracing::warn!("this host forwards nothing: set net.ipv6.conf.all.forwarding to 1");
        }
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(&settings.device)?;
        Ok(Self {
            agent,
            settings: settings.clone(),
            routes,
            device,
            mobiles: BTreeSet::new(),
            gateway: settings.gateway.clone().map(Gateway::at),
        })
    }

    /// Routes these addresses into the device, and no others.
    fn attend(&mut self, addresses: BTreeSet<Ipv6Addr>) -> anyhow::Result<()> {
        let device = self.device;
        let way = |address: &Ipv6Addr| Route {
            destination: Prefix::of_host((*address).into()),
            interface: device,
            gateway: None,
            congestion_control: None,
        };
        for gone in self.mobiles.difference(&addresses) {
            self.routes.remove_route(&way(gone))?;
        }
        for new in addresses.difference(&self.mobiles) {
            self.routes.add_route(&way(new))?;
        }
        self.mobiles = addresses;
        Ok(())
    }
}

/// The longest lifetime that a message can say, of so many seconds.
pub(super) fn lifetime(seconds: u16) -> UpdateLifetime {
    UpdateLifetime::at_most(Duration::from_secs(seconds.into()))
}

impl Role for Home {
    const NAME: &'static str = "home-agent";
    const FORWARDS: bool = true;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        let destination = packet.header().ip.destination;
        if self.agent.handle_packet(now, packet) == Verdict::Pass {
            tracing::debug!(%destination, "the mobile node is not registered");
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // The kernel answers what is not for the agent.
        let _ = self.agent.handle_packet(now, packet);
    }

    fn handle_extension(&mut self, now: Instant, packet: Packet) -> Verdict {
        self.agent.handle_packet(now, packet)
    }

    fn handle_change(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        _is_link_back: bool,
    ) -> anyhow::Result<()> {
        endpoint.settle(Some(self.settings.address.into()))?;
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
        let mobiles = self.mobiles.iter().map(|home_address| {
            let at = self.agent.care_of_address(*home_address);
            Mobile {
                home_address: (*home_address).into(),
                at: at.iter().map(ToString::to_string).collect(),
            }
        });
        Report {
            address: Some(self.settings.address.into()),
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
        HomeEvent::Deregistered {
            home_address,
            care_of_address,
        } => tracing::info!(%home_address, %care_of_address, "mobile node has left"),
        HomeEvent::Expired {
            home_address,
            care_of_address,
        } => tracing::warn!(%home_address, %care_of_address, "registration has expired"),
        // Of every mobile node whose clock is wrong, or that has started anew.
        HomeEvent::Refused {
            home_address,
            status: status @ (Status::TIMESTAMP | Status::SEQUENCE),
        } => tracing::info!(%home_address, %status, "registration refused"),
        HomeEvent::Refused {
            home_address,
            status,
        } => tracing::warn!(%home_address, %status, "registration refused"),
    }
}

/// What a gateway on the device is told of an event: whether which mobile node can be reached.
const fn notice(event: &HomeEvent) -> Option<(Notified, Ipv6Addr)> {
    match *event {
        HomeEvent::Bound {
            home_address,
            has_moved: true,
            ..
        } => Some((Notified::Up, home_address)),
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
