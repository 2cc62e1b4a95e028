//! Mobile IP between the gateways of a mobile host: what is to be simulated, and what came of it.

use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_mobility::{Detection, HomeCounters, NodeCounters};

/// A home agent at the router, a mobile node at the mobile host, and at gateways away from home foreign
/// agents, or addresses of the mobile host's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileIpSetup {
    /// The gateway at which the mobile host is at home; counted from 0.
    pub home: Option<usize>,
    /// Whether there is a foreign agent at each other gateway; if not, the mobile host gets an address of
    /// its own there, and registers by itself.
    pub has_foreign_agents: bool,
    /// How long after its arrival it has that address.
    pub address_after: Duration,
    /// When the mobile node believes that it has moved.
    pub detection: Detection,
    /// The mean time between two advertisements of an agent; they are true for three times as
    /// long, in whole seconds, and at least three.
    pub advertisements: Duration,
    /// What the mobile host sends goes through the tunnel, too.
    pub reverse_tunnel: bool,
    /// How long a packet takes between home agent and a gateway away from home, one way.
    pub delay: Duration,
    /// The rate of the link between them.
    pub rate: BitRate,
    /// The probability that a packet between them is lost.
    pub loss: f64,
}

/// What came of Mobile IP.
#[derive(Clone, Debug, PartialEq)]
pub struct MobileIpOutcome {
    /// For each completed hand-off how long it took, from when the mobile host left until the home
    /// agent sent its reply.
    pub handoffs: Vec<Duration>,
    /// What the home agent counted.
    pub home_agent: HomeCounters,
    /// What the mobile node counted.
    pub mobile_node: NodeCounters,
    /// Packets that came to a place where the mobile host was not registered, or not heard.
    pub strayed: u64,
}
