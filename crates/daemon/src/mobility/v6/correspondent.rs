//! The role `correspondent` of Mobile IPv6: this host's programs reach mobile nodes past their home agents.
//!
//! What comes with a header of Mobile IPv6 is taken before the kernel reads it. A mobile node that has proved
//! where it is (return routability) gets a route into the TUN device for its home address: what programs send
//! there goes on with a routing header to the care-of address. Without a binding nothing is routed, and
//! packets go through the home agent.

use super::settings::CorrespondentSettings;
use crate::failure::Failure;
use crate::mobility::endpoint::{Endpoint, Role};
use crate::mobility::home_network::HomeNetwork;
use crate::mobility::operating::fixed;
use crate::mobility::random;
use crate::mobility::status::{Mobile, Report};
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_mobility::v6::{
    Correspondent, CorrespondentConfig, CorrespondentCounters, CorrespondentEvent,
    CorrespondentLimits,
};
use outlast_mobility::{Transmit, Verdict};
use outlast_wire::Packet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

/// A correspondent and its routes.
pub(in crate::mobility) struct Peer {
    machine: Correspondent,
    settings: CorrespondentSettings,
    /// The home addresses with bindings are routed into the device.
    network: HomeNetwork,
}

impl Peer {
    pub(in crate::mobility) fn start(
        settings: &CorrespondentSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let config = CorrespondentConfig {
            secret: random()?,
            limits: CorrespondentLimits {
                bindings: settings.bindings,
                ..CorrespondentLimits::default()
            },
        };
        let endpoint = Endpoint::open_v6(settings.operating(control), 0)?;
        let network = HomeNetwork::of_host(&settings.device).map_err(Failure::Run)?;
        tracing::info!(device = settings.device, "correspondent begins");
        let peer = Self {
            machine: Correspondent::new(clock::now(), config),
            settings: settings.clone(),
            network,
        };
        Ok((endpoint, peer))
    }
}

impl Role for Peer {
    const NAME: &'static str = "correspondent";
    const FORWARDS: bool = false;
    const SENDS_FOR_HOST: bool = true;

    fn handle_device(&mut self, _now: Instant, packet: Packet) {
        let destination = packet.header().ip.destination;
        if self.machine.handle_outgoing(&packet) == Verdict::Pass {
            // Its binding has just ended: the next one goes by the home agent.
            tracing::debug!(%destination, "the mobile node has no binding");
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // The kernel answers what is not for the machine.
        let _ = self.machine.handle_packet(now, &packet);
    }

    fn handle_extension(&mut self, now: Instant, packet: Packet) -> Verdict {
        self.machine.handle_packet(now, &packet)
    }

    fn handle_change(
        &mut self,
        _now: Instant,
        _endpoint: &mut Endpoint,
        _is_link_back: bool,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn reload(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure> {
        let next = CorrespondentSettings::load(config)?;
        fixed(&self.settings.fixed_differences(&next))?;
        let changed = self.settings.free_differences(&next);
        endpoint.move_metrics(next.metrics.as_ref())?;
        self.settings = next;
        Ok(changed)
    }

    fn report(&self, _now: Instant) -> Report {
        let mobiles = self.machine.bindings().map(|(home_address, at)| Mobile {
            home_address: home_address.into(),
            at: vec![at.to_string()],
        });
        Report {
            address: None,
            data_path: None,
            place: None,
            mobiles: mobiles.collect(),
            counters: counts(self.machine.counters()),
        }
    }

    fn end(&mut self, _now: Instant) {
        tracing::info!(counters = ?self.machine.counters(), "correspondent ends");
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.machine.poll_transmit()
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        let mut has_changed = false;
        while let Some(event) = self.machine.poll_event() {
            has_changed = true;
            match event {
                CorrespondentEvent::Bound {
                    home_address,
                    care_of_address,
                    has_moved: true,
                } => {
                    tracing::info!(%home_address, %care_of_address, "packets go past the home agent");
                }
                CorrespondentEvent::Bound { home_address, .. } => {
                    tracing::debug!(%home_address, "binding renewed");
                }
                CorrespondentEvent::Unbound { home_address } => {
                    tracing::info!(%home_address, "packets go through the home agent");
                }
            }
        }
        if has_changed {
            let bound: BTreeSet<IpAddr> = self
                .machine
                .bindings()
                .map(|(home, _)| home.into())
                .collect();
            self.network.route(&bound)?;
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout().map(|(at, _)| at)
    }
}

/// All counts by name: who adds one is told here that it is to be shown.
fn counts(counters: &CorrespondentCounters) -> BTreeMap<String, u64> {
    let CorrespondentCounters {
        tests,
        accepted,
        refused,
        refused_for_authentication,
        unanswered,
        malformed,
        optimized_out,
        optimized_in,
        dropped_strangers,
    } = *counters;
    let all = [
        ("tests", tests),
        ("accepted", accepted),
        ("refused", refused),
        ("refused_for_authentication", refused_for_authentication),
        ("unanswered", unanswered),
        ("malformed", malformed),
        ("optimized_out", optimized_out),
        ("optimized_in", optimized_in),
        ("dropped_strangers", dropped_strangers),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
