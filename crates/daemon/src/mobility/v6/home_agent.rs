//! The role `home-agent` of Mobile IPv6: mobile nodes' addresses are routed into a TUN device, bound or not.
//!
//! The home network is virtual: no link has it. Packets for a mobile node come to this host because
//! routers send them here, and leave it through the tunnel or not at all.

use super::settings::HomeAgentSettings;
use crate::control::Notified;
use crate::failure::Failure;
use crate::mobility::endpoint::{Endpoint, Role};
use crate::mobility::home_network::{HomeNetwork, REPLAY_TOLERANCE, counts};
use crate::mobility::operating::fixed;
use crate::mobility::status::{Mobile, Report};
use crate::mobility::{ntp_clock, random};
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_mobility::v6::{HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits};
use outlast_mobility::{Transmit, Verdict};
use outlast_wire::Packet;
use outlast_wire::mobile_ipv6::{Status, UpdateLifetime};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// A home agent and its routes.
pub(in crate::mobility) struct Home {
    agent: HomeAgent,
    settings: HomeAgentSettings,
    network: HomeNetwork,
    /// The mobile nodes' addresses, which are routed into the device.
    mobiles: BTreeSet<Ipv6Addr>,
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
            seed: u64::from_ne_bytes(random()?),
        };
        let mut endpoint = Endpoint::open_v6(settings.operating(control), 0)?;
        let address = settings.address;
        HomeNetwork::settle(&mut endpoint, address.into())?;
        let gateway = settings.gateway.clone();
        let forwarding = "net.ipv6.conf.all.forwarding";
        let network = HomeNetwork::behind(&settings.device, gateway, forwarding);
        let mut home = Self {
            agent: HomeAgent::new(now, config),
            settings: settings.clone(),
            network: network.map_err(Failure::Run)?,
            mobiles: BTreeSet::new(),
        };
        home.attend(addresses).map_err(Failure::Run)?;
        let mobiles = home.mobiles.len();
        tracing::info!(%address, device = settings.device, mobiles, "home agent begins");
        Ok((endpoint, home))
    }

    /// These are the mobile nodes' addresses.
    fn attend(&mut self, addresses: BTreeSet<Ipv6Addr>) -> anyhow::Result<()> {
        let routed = addresses.iter().copied().map(IpAddr::V6).collect();
        self.network.route(&routed)?;
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
            data_path: None,
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
