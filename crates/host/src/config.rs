//! What the agent does, and how often.

use outlast_base::time::Duration;
use outlast_gateway::links::DampingConfig;

/// What restarts a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Mechanism {
    /// Retransmission as if the retransmission timer had expired (Schütz and others 2005, section 3.3.2).
    RetransmissionTrigger,
    /// Fast retransmission as at the third duplicate acknowledgement (Cáceres and Iftode 1995, section IV).
    FastRetransmit,
    /// M-TCP at the mobile: connections are frozen while their link is away, and tell of its return by a marked
    /// acknowledgement (Brown and Singh 1997, section 4.2). A stack that nobody freezes from outside is made to
    /// retransmit at the return as if its retransmission timer had expired.
    MTcp,
}

/// What the agent does, and how often.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostConfig {
    /// What restarts a connection.
    pub mechanism: Mechanism,
    /// Wake the peer of an asymmetric indicator ([`wake_peer`](crate::control::EndpointControl::wake_peer)).
    pub wakes_peer: bool,
    /// Start a connection slowly on a new path even if it was away for less than its timeout.
    pub forces_slow_start: bool,
    /// Try silent peers at pauses that grow slowly: one connection of each retransmits.
    pub probes_silent_peers: bool,
    /// How indicators that flap are damped; `None`: each is believed at once.
    pub damping: Option<DampingConfig>,
    /// Hard limits.
    pub limits: Limits,
}

/// Hard limits of the agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections restarted in a second.
    pub per_second: u32,
    /// Connections restarted at once.
    pub burst: u32,
    /// Least time between two passes over the connections of one link.
    pub interval: Duration,
    /// Restarts of one connection after one return of its link.
    pub attempts: u8,
    /// Least time until the second restart; it is longer where the round trip is, and doubles with
    /// each further restart.
    pub retry: Duration,
    /// Connections in the queue; further ones of a pass are left to their own timers.
    pub connections: usize,
    /// Links remembered; further ones are not heard.
    pub links: usize,
}

impl Default for Limits {
    /// Ten thousand connections take less than a second.
    fn default() -> Self {
        Self {
            per_second: 16_384,
            burst: 256,
            interval: Duration::from_millis(500),
            attempts: 4,
            retry: Duration::from_millis(50),
            connections: 65_536,
            links: 4_096,
        }
    }
}

impl HostConfig {
    /// `mechanism` with the default limits; wakes peers, forces slow start, probes silent peers, and damps nothing.
    #[must_use]
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            wakes_peer: true,
            forces_slow_start: true,
            probes_silent_peers: true,
            damping: None,
            limits: Limits::default(),
        }
    }
}
