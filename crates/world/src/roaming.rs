//! A mobile host that goes from gateway to gateway: what is to be simulated, and what came of it.

use crate::mobile_ip::{MobileIpOutcome, MobileIpSetup};
use crate::outcome::HopOutcome;
use crate::path::{Counts, Gateways};
use crate::side::Side;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddr};
use outlast_agents::Counters as AgentCounters;
use outlast_base::time::Duration;
use outlast_gateway::counters::Counters as GatewayCounters;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::trace::StateTrace;
use outlast_link::{Counters as LinkCounters, LinkConfig, Outage, OutageProcess};

/// Several gateways, each with a link of its own to the mobile host, which is at one of them at a
/// time. Their ways meet at a router, which sends what is for the mobile host to one of them.
///
/// ```text
/// fixed host --- further links --- router --- gateway 0 ~~~ mobile host
///                                        \--- gateway 1 ~~~ (or here)
/// ```
///
/// Gateways are counted from zero, where the mobile host begins: that one's link is the setup's.
/// Each has the mechanism of the setup's fixed end; a mobile host that leaves one has none itself.
#[derive(Clone, Debug)]
pub struct RoamingSetup {
    /// The links of the further gateways. Where there are hand-offs, their outages and those of the
    /// setup's link are replaced: each is up while the mobile host is there, and before the
    /// workload's first byte.
    pub cells: Vec<LinkConfig>,
    /// What a gateway at the router does, which hears of mobility updates alone.
    pub home_agent: PathMechanismKind,
    /// Where the mobile host goes, in the order of time.
    pub handoffs: Vec<Handoff>,
    /// Processes that die.
    pub crashes: Vec<Crash>,
    /// How gateways speak to each other; `None`: they do not.
    pub agents: Option<AgentsSetup>,
    /// How Mobile IP tells the router where the mobile host is; `None`: by [`Handoff::update`].
    pub mobile_ip: Option<MobileIpSetup>,
}

/// The mobile host goes from one gateway to another. Times count from the workload's first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Handoff {
    /// When it leaves.
    pub at: Duration,
    /// How long it is nowhere; more than zero, and over before the next one begins.
    pub gap: Duration,
    /// Where it comes to; not where it is.
    pub to: usize,
    /// How long after its arrival the router sends to there what is for it.
    pub update: Duration,
    /// Whether the gateway that it has left hears of that, too, and sends on what it has for it.
    pub forwards: bool,
}

/// The process of a gateway dies. Packets cross as if it had never been there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Crash {
    /// When, counted from the workload's first byte.
    pub at: Duration,
    /// Which gateway.
    pub gateway: usize,
    /// How long after that it is started anew, with what it has written down; `None` is never.
    pub back_after: Option<Duration>,
}

/// How gateways speak to each other (`outlast_agents`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AgentsSetup {
    /// How long a message takes, one way; at most a few seconds.
    pub delay: Duration,
    /// How long a neighbour may be away before what depends on it is reset.
    pub lost_after: Duration,
}

/// What came of a world with several gateways.
#[derive(Clone, Debug, PartialEq)]
pub struct RoamingOutcome {
    /// The links of the further gateways, as in the setup.
    pub cells: Vec<HopOutcome>,
    /// What each gateway's agent counted since it was started last, the first gateway's first;
    /// `None` where there is none, or not any more.
    pub agents: Vec<Option<AgentCounters>>,
    /// What the gateway at the router counted, and what it sent, if there is one.
    pub home_agent: Option<(GatewayCounters, Counts)>,
    /// What came of Mobile IP, if that runs.
    pub mobile_ip: Option<MobileIpOutcome>,
}

impl RoamingOutcome {
    /// Packets at the ends of the further gateways' links, and at the gateway at the router.
    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        let cells = self.cells.iter().map(|cell| &cell.counts);
        cells.chain(self.home_agent.iter().map(|(_, counts)| counts))
    }

    /// What the further gateways' links counted, each both ways.
    pub fn links(&self) -> impl Iterator<Item = &LinkCounters> {
        self.cells.iter().flat_map(|cell| &cell.link)
    }
}

impl RoamingSetup {
    /// The first gateway's link, which is `link` but for its outages.
    ///
    /// # Panics
    /// If hand-offs are not in order and apart from each other.
    #[must_use]
    pub fn first_link(&self, mut link: LinkConfig) -> LinkConfig {
        if !self.handoffs.is_empty() {
            link.outages = self.absences(0);
        }
        link
    }

    /// The links of the further gateways, with their outages.
    ///
    /// # Panics
    /// If hand-offs are not in order and apart from each other.
    pub fn further_links(&self) -> impl Iterator<Item = LinkConfig> {
        let cells = self.cells.iter().zip(1..);
        cells.map(|(link, number)| LinkConfig {
            outages: self.absences(number),
            ..link.clone()
        })
    }

    /// What stands at the two ends of each of these links where `gateways` are asked for.
    #[must_use]
    pub fn gateways(&self, mut gateways: Gateways) -> Gateways {
        if !self.handoffs.is_empty() {
            gateways.mechanisms[Side::Mobile.index()] = PathMechanismKind::None;
        }
        gateways
    }

    /// When the link of `gateway` is down.
    fn absences(&self, gateway: usize) -> OutageProcess {
        let mut outages = Vec::new();
        let mut left = (gateway != 0).then_some(Duration::ZERO);
        let mut at = 0;
        for handoff in &self.handoffs {
            if at == gateway {
                left = Some(handoff.at);
            }
            at = handoff.to;
            if at == gateway
                && let Some(start) = left.take()
            {
                let end = Some(handoff.at + handoff.gap);
                outages.push(Outage { start, end });
            }
        }
        outages.extend(left.map(|start| Outage { start, end: None }));
        let trace = StateTrace::of(outages).expect("hand-offs are in order and apart");
        OutageProcess::States(Arc::new(trace))
    }
}

/// Where the agent of a gateway listens: an address for documentation (RFC 5737).
pub(crate) fn agent_at(gateway: usize) -> SocketAddr {
    const PORT: u16 = 7_348;
    let last = u8::try_from(gateway + 1).unwrap_or(u8::MAX);
    SocketAddr::new(Ipv4Addr::new(203, 0, 113, last).into(), PORT)
}
