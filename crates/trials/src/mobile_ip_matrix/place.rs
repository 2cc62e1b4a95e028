//! The place: fixed host, router, home agent, and a mobile host behind a link that leads to two networks.

use crate::gateway_matrix::trial::TrialError;
use outlast_lab::LabError;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::sysctl;
use outlast_testbed::site::{Site, SiteConfig};
use rustix::fd::AsFd;
use std::net::Ipv4Addr;
use std::process::Command;

/// The mobile host's address at home, which it keeps.
pub(super) const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 50, 0, 5);
/// The home agent's.
pub(super) const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
/// The router's interface towards the home agent.
pub(super) const TO_AGENT: &str = "agent0";

/// Everybody. They are gone when it is dropped.
pub(super) struct Roaming {
    pub(super) site: Site,
    pub(super) agent: Namespace,
    congestion: &'static str,
}

impl Roaming {
    /// The mobile host is in the first network.
    pub(super) fn new(config: &SiteConfig<'static>) -> Result<Self, TrialError> {
        let site = Site::new(config)?;
        let agent = Namespace::new().map_err(LabError::from)?;
        let join = || -> Result<(), LabError> {
            RouteSocket::open()?.add_veth(TO_AGENT, "up0", Some(agent.as_fd()))?;
            Ok(())
        };
        site.gateway.run(join).map_err(LabError::from)??;
        ip(
            &site.gateway,
            &[
                "address add 203.0.113.1/24 dev agent0",
                "link set agent0 up",
                "address add 10.66.0.1/24 dev link0",
                "route add 10.50.0.0/24 via 203.0.113.2",
            ],
        )?;
        ip(
            &agent,
            &[
                "link set lo up",
                "link set up0 up",
                "address add 203.0.113.2/24 dev up0",
                "route add default via 203.0.113.1",
            ],
        )?;
        let forward = agent.run(|| sysctl::write("net.ipv4.ip_forward", "1"));
        forward.map_err(LabError::from)?.map_err(LabError::from)?;
        Ok(Self {
            site,
            agent,
            congestion: config.congestion,
        })
    }

    /// The mobile host leaves the first network's address for one of the second network.
    pub(super) fn change_network(&self) -> Result<(), TrialError> {
        let way = format!(
            "route replace default via 10.66.0.1 dev link0 congctl {}",
            self.congestion
        );
        ip(
            &self.site.mobile,
            &[
                "-4 address flush dev link0 scope global",
                "address add 10.66.0.2/24 dev link0",
                &way,
            ],
        )
    }
}

/// Runs `ip` with each line in a namespace.
pub(crate) fn ip(place: &Namespace, lines: &[impl AsRef<str> + Sync]) -> Result<(), TrialError> {
    let run = || {
        for line in lines {
            let line = line.as_ref();
            let done = Command::new("ip").args(line.split(' ')).output();
            let done = done.map_err(|source| TrialError::Io {
                what: "run ip (Debian: apt-get install iproute2)",
                source,
            })?;
            if !done.status.success() {
                let said = String::from_utf8_lossy(&done.stderr);
                return Err(TrialError::Program {
                    what: "ip does not set the place up",
                    said: format!("ip {line}: {}", said.trim()),
                });
            }
        }
        Ok(())
    };
    place.run(run).map_err(LabError::from)?
}
