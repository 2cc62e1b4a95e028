//! A mobile host that goes from gateway to gateway.

use crate::mechanism::Mechanism;
use crate::names::names;
use crate::scenario::Scenario;
use outlast_base::random::derived_seed;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_link::trace::StateTrace;
use outlast_link::{LinkConfig, Outage, OutageProcess};
use outlast_mobility as mobility;
use std::sync::Arc;

/// The mobile host goes from one gateway to another. Times count from the workload's first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Handoff {
    /// When it leaves; later than the hand-off before is over.
    pub at: Duration,
    /// How long it is nowhere; more than zero.
    pub gap: Duration,
    /// Where it comes to, counted from one, where it begins; never where it is.
    pub to: usize,
    /// How long after its arrival packets find it there.
    pub update: Duration,
    /// Whether the gateway that it has left is told, too, and sends on what it has for it.
    pub forward: bool,
}

/// The process of a gateway dies, and packets cross as if it had never been there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Crash {
    /// When, counted from the workload's first byte.
    pub at: Duration,
    /// Which gateway, counted from one.
    pub gateway: usize,
    /// How long after that it is started again; `None` is never.
    pub back_after: Option<Duration>,
}

/// Gateways tell each other what they have frozen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Agents {
    /// How long a message takes, one way.
    pub delay: Duration,
    /// How long a gateway may be away before the connections that depend on it are reset.
    pub lost_after: Duration,
}

names! {
    /// When a mobile node believes that it has moved.
    pub enum Detection {
        /// Eager cell switching: as soon as a new agent is heard.
        Eager = "eager",
        /// Lazy cell switching: when the current agent is no longer heard.
        Lazy = "lazy",
        /// Prefix matching: as lazy, and at renewals.
        Prefix = "prefix",
        /// When the link layer says that the link has come up.
        Link = "link",
    }
}

impl From<Detection> for mobility::Detection {
    fn from(detection: Detection) -> Self {
        match detection {
            Detection::Eager => Self::Eager,
            Detection::Lazy => Self::Lazy,
            Detection::Prefix => Self::Prefix,
            Detection::Link => Self::Link,
        }
    }
}

/// Mobile IP with a home agent at the router, and at gateways away from home foreign agents, or addresses
/// of the mobile's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileIp {
    /// The gateway at which the mobile is at home, counted from one.
    pub home: Option<usize>,
    /// Whether there is a foreign agent at each other gateway; if not, the mobile gets an address of its
    /// own there.
    pub foreign_agents: bool,
    /// How long after its arrival it has that address.
    pub address_after: Duration,
    /// When the mobile believes that it has moved.
    pub detection: Detection,
    /// The mean time between two advertisements.
    pub advertisements: Duration,
    /// What the mobile sends goes through the tunnel, too.
    pub reverse_tunnel: bool,
    /// How long a packet takes between home agent and a gateway away from home, one way.
    pub delay: Duration,
    /// The rate of the link between them.
    pub rate: BitRate,
    /// The probability that a packet between them is lost.
    pub loss: f64,
}

impl Scenario {
    /// The most gateways of a file.
    pub const MAX_GATEWAYS: usize = 32;

    /// Whether more is asked of gateways than to stand at the ends of one link.
    #[must_use]
    pub fn has_roaming(&self) -> bool {
        let is_plain = self.handoffs.is_empty() && self.crashes.is_empty();
        !is_plain || self.agents.is_some() || self.outlast.home_agent != Mechanism::None
    }

    /// The links of the gateways behind the first one, in run `index`. Each has chances of its own,
    /// and otherwise is like `[link]`.
    #[must_use]
    pub fn cell_configs(&self, index: u32) -> Vec<LinkConfig> {
        let named = self.handoffs.iter().map(|handoff| handoff.to);
        let gateways = named.max().unwrap_or(1);
        let seed = self.run.seed_of(index);
        let seeds = (2..=gateways).map(|n| derived_seed(seed, &format!("gateway.{n}")));
        seeds.map(|seed| self.link.config(seed)).collect()
    }
}

/// The outages that `handoffs` mean to the mobile host; `None` if they are not in order and apart.
pub(crate) fn gaps(handoffs: &[Handoff]) -> Option<OutageProcess> {
    let gaps = handoffs.iter().map(|handoff| Outage {
        start: handoff.at,
        end: Some(handoff.at + handoff.gap),
    });
    let trace = StateTrace::of(gaps.collect())?;
    Some(OutageProcess::States(Arc::new(trace)))
}
