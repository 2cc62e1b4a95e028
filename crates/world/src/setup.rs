//! What is to be simulated.

use crate::hip::HipSetup;
use crate::path::{Gateways, Indicators};
use crate::roaming::RoamingSetup;
use crate::side::IpVersion;
use crate::traffic::TrafficSetup;
use crate::workload::Workload;
use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{HoldRules, PathMechanismKind};
use outlast_host::Mechanism as HostMechanism;
use outlast_link::{ConfiguredRate, LinkConfig};
use outlast_tcp::profile::{Congestion, LINUX_6, Profile};
use outlast_wire::pattern::Content;

/// A world: two hosts, the links between them, gateways at their ends, and what the hosts do.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The mobile's link. Its seed is the seed of everything random but the further links.
    pub link: LinkConfig,
    /// What the gateways at its ends do, by [`Side::index`](crate::Side::index).
    pub mechanisms: [PathMechanismKind; 2],
    /// The agent beside each host's TCP, by [`Side::index`](crate::Side::index).
    pub agents: [Option<HostMechanism>; 2],
    /// How all gateways learn of their links' outages.
    pub indicators: Indicators,
    /// What all gateways are told of the rates of their links.
    pub rate: ConfiguredRate,
    /// Whether supervisor hosts share that rate out among connections.
    pub shares_rate: bool,
    /// Whether payload is compressed on links behind supervisor hosts.
    pub compresses: bool,
    /// What applications send.
    pub content: Content,
    /// Which rules of `hold` they obey: all, but where it is tried without one.
    pub rules: HoldRules,
    /// The caps of each gateway.
    pub limits: Limits,
    /// The links behind it, in a chain, that of the fixed host last. Mostly there are none.
    pub hops: Vec<HopSetup>,
    /// Further gateways, between which the mobile host goes. Mostly there are none.
    pub roaming: Option<RoamingSetup>,
    /// HIP between the hosts; `None`: their packets cross the links as they are.
    pub hip: Option<HipSetup>,
    /// Datagrams of others that share a link; at most [`Self::MAX_SOURCES`] sources, further ones
    /// are left out.
    pub traffic: Vec<TrafficSetup>,
    /// The connections that share the link; at most [`Self::MAX_FLOWS`], further ones are left out.
    pub flows: Vec<FlowSetup>,
    /// Network protocol.
    pub ip: IpVersion,
    /// Largest IP packet in bytes; at least 576.
    pub mtu: u16,
    /// What the hosts' tick counters show at the beginning, by
    /// [`Side::index`](crate::Side::index); `None` is drawn.
    pub clock_phases: Option<[Duration; 2]>,
    /// When the run is given up: counted from the workload's first byte, or from the beginning as
    /// long as there is none.
    pub deadline: Duration,
    /// What is written down.
    pub recording: Recording,
}

/// A further link, and the gateways at its ends. A gateway hears of its own link only.
#[derive(Clone, Debug)]
pub struct HopSetup {
    /// The link. Its outages count from the workload's first byte, wherever that is sent. Links of
    /// the same seed have the same chances: see [`outlast_base::random::derived_seed`].
    pub link: LinkConfig,
    /// What the gateways do, by [`Side::index`](crate::Side::index).
    pub mechanisms: [PathMechanismKind; 2],
}

/// One connection.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// When the mobile opens it.
    pub begin: Duration,
    /// What the hosts do with it.
    pub workload: Workload,
    /// The hosts' TCP, by [`Side::index`](crate::Side::index).
    pub stacks: [Stack; 2],
}

/// The TCP of a host. `None` is as the profile has it.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// Whose behaviour.
    pub profile: &'static Profile,
    /// Congestion control; one that the profile has not is replaced by its own.
    pub congestion: Option<Congestion>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Retransmissions of one segment before the connection is given up.
    pub retries: Option<u8>,
    /// Longest retransmission timeout.
    pub max_rto: Option<Duration>,
    /// What the host offers to take before it is read; such a buffer does not tune itself.
    pub receive_buffer: Option<u32>,
    /// User timeout, which the peer is told of (RFC 5482).
    pub user_timeout: Option<Duration>,
}

/// What is written down of a run. Nothing of it changes what happens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Recording {
    /// Packets that the trace keeps; `None` is no trace.
    pub traced_packets: Option<usize>,
    /// Whether both ends of each link are captured.
    pub captures: bool,
    /// Whether the senders' variables are noted at each acknowledgement and timeout.
    pub variables: bool,
}

impl Setup {
    /// The number of connections that there are ports for.
    pub const MAX_FLOWS: usize = 20_000;

    /// The number of sources of cross traffic that there are ports for.
    pub const MAX_SOURCES: usize = 40_000;

    /// `link` alone, without gateways and flows, with IPv4, Ethernet's packet size and a deadline of five
    /// minutes; nothing is recorded.
    #[must_use]
    pub fn new(link: LinkConfig) -> Self {
        Self {
            link,
            mechanisms: [PathMechanismKind::None; 2],
            agents: [None; 2],
            indicators: Indicators::Link,
            rate: ConfiguredRate::Link,
            shares_rate: false,
            compresses: false,
            content: Content::Random,
            rules: HoldRules::default(),
            limits: Limits::default(),
            hops: Vec::new(),
            roaming: None,
            hip: None,
            traffic: Vec::new(),
            flows: Vec::new(),
            ip: IpVersion::V4,
            mtu: 1_500,
            clock_phases: None,
            deadline: Duration::from_secs(300),
            recording: Recording::default(),
        }
    }

    /// The gateways at the ends of the mobile's link.
    pub(crate) fn gateways(&self) -> Gateways {
        Gateways {
            mechanisms: self.mechanisms,
            indicators: self.indicators,
            rate: self.rate,
            shares_rate: self.shares_rate,
            compresses: self.compresses,
            rules: self.rules,
            limits: self.limits,
        }
    }
}

impl Default for Stack {
    /// Linux 6 with its defaults.
    fn default() -> Self {
        Self {
            profile: &LINUX_6,
            congestion: None,
            sack: None,
            timestamps: None,
            retries: None,
            max_rto: None,
            receive_buffer: None,
            user_timeout: None,
        }
    }
}
