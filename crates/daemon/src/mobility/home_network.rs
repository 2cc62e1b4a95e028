//! What both home agents, Mobile IPv4's and Mobile IPv6's, do with the kernel: routes into the device, and
//! word to a gateway there. A correspondent has such routes, too.

use super::endpoint::Endpoint;
use super::gateway::Gateway;
use crate::control::Notified;
use crate::failure::Failure;
use outlast_base::time::Duration;
use outlast_linux::netlink::{InterfaceIndex, Prefix, Route, RouteSocket};
use outlast_linux::sysctl;
use outlast_mobility::HomeCounters;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// RFC 5944, section 5.7.1; RFC 4285 leaves it open.
pub(super) const REPLAY_TOLERANCE: Duration = Duration::from_secs(7);

/// The mobile nodes' addresses that are routed into the device, and the gateway on it.
pub(super) struct HomeNetwork {
    routes: RouteSocket,
    device: InterfaceIndex,
    routed: BTreeSet<IpAddr>,
    /// Who is told of registrations.
    gateway: Option<Gateway>,
}

impl HomeNetwork {
    /// No address is routed into `device` yet. `forwarding` is the sysctl without which this host forwards
    /// nothing.
    pub(super) fn behind(
        device: &str,
        gateway: Option<PathBuf>,
        forwarding: &str,
    ) -> anyhow::Result<Self> {
        if sysctl::read(forwarding)? == "0" {
            tracing::warn!("this host forwards nothing: set {forwarding} to 1");
        }
        Ok(Self {
            gateway: gateway.map(Gateway::at),
            ..Self::of_host(device)?
        })
    }

    /// As [`Self::behind`], of a host that forwards nothing and has no gateway.
    pub(super) fn of_host(device: &str) -> anyhow::Result<Self> {
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(device)?;
        Ok(Self {
            routes,
            device,
            routed: BTreeSet::new(),
            gateway: None,
        })
    }

    /// Puts the agent at `address`, which has to be one of this host's.
    pub(super) fn settle(endpoint: &mut Endpoint, address: IpAddr) -> Result<(), Failure> {
        match endpoint.settle(Some(address))? {
            Some(_) => Ok(()),
            None => Err(Failure::Usage(format!(
                "address = \"{address}\": no interface has it"
            ))),
        }
    }

    /// The device.
    pub(super) const fn device(&self) -> InterfaceIndex {
        self.device
    }

    /// The addresses that are routed into the device.
    pub(super) const fn routed(&self) -> &BTreeSet<IpAddr> {
        &self.routed
    }

    /// Routes these addresses into the device, and no others.
    pub(super) fn route(&mut self, addresses: &BTreeSet<IpAddr>) -> anyhow::Result<()> {
        let device = self.device;
        let way = |address: &IpAddr| Route {
            destination: Prefix::of_host(*address),
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

    /// Tells the gateway, if there is one, whether a mobile node can be reached.
    pub(super) fn tell(&mut self, state: Notified, mobile: IpAddr) {
        if let Some(gateway) = &mut self.gateway {
            gateway.tell(state, Some(mobile));
        }
    }
}

/// All counts by name: who adds one is told here that it is to be shown.
pub(super) fn counts(counters: &HomeCounters) -> BTreeMap<String, u64> {
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
        dropped_errors,
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
        ("dropped_errors", dropped_errors),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
