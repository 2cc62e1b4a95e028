//! What came of a simulation.

use crate::hip::HipOutcome;
use crate::path::Counts;
use crate::recovery::Recovery;
use crate::roaming::RoamingOutcome;
use crate::side::Side;
use crate::trace::{Trace, VariableRow};
use crate::traffic::TrafficOutcome;
use alloc::vec::Vec;
use core::fmt;
use outlast_base::time::{Duration, Instant};
use outlast_compression::Counters as CompressionCounters;
use outlast_gateway::counters::Counters as GatewayCounters;
use outlast_host::Counters as AgentCounters;
use outlast_link::Counters as LinkCounters;
use outlast_tcp::{Counters as TcpCounters, Error};

/// What came of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the workload's first byte came to the link, since the simulation began; `None` if none
    /// did.
    pub started: Option<Instant>,
    /// When the last flow had ended, or the run was given up.
    pub ended: Instant,
    /// The flows that had begun, in the order of the setup.
    pub flows: Vec<FlowOutcome>,
    /// Packets at the two ends of the mobile's link.
    pub counts: Counts,
    /// What the mobile's link counted, to the mobile and to the fixed side.
    pub link: [LinkCounters; 2],
    /// What the gateways at its ends counted, by [`Side::index`], where there are any.
    pub gateways: [Option<GatewayCounters>; 2],
    /// What its two ends have compressed and restored, by [`Side::index`], if they do.
    pub compression: Option<[CompressionCounters; 2]>,
    /// How long after its link was back each connection resumed, as those gateways told, by
    /// [`Side::index`].
    pub resumes: [Vec<Duration>; 2],
    /// What the hosts' agents counted, by [`Side::index`], where there are any.
    pub agents: [Option<AgentCounters>; 2],
    /// What came of each further link, as in the setup.
    pub hops: Vec<HopOutcome>,
    /// What came of further gateways, if the mobile host goes between them.
    pub roaming: Option<RoamingOutcome>,
    /// What came of HIP, if the hosts speak it.
    pub hip: Option<HipOutcome>,
    /// What came of each source of cross traffic, as in the setup.
    pub traffic: Vec<TrafficOutcome>,
    /// What happened to each packet on the mobile's link, if asked for.
    pub trace: Option<Trace>,
    /// The senders' variables, if asked for.
    pub variables: Option<Vec<VariableRow>>,
    /// pcapng files of what the two ends of the mobile's link saw, by [`Side::index`], if asked for.
    pub captures: Option<[Vec<u8>; 2]>,
    /// Packets and deadlines that were handled.
    pub events: u64,
}

/// What came of a further link.
#[derive(Clone, Debug, PartialEq)]
pub struct HopOutcome {
    /// Packets at its two ends.
    pub counts: Counts,
    /// What it counted, to the mobile and to the fixed side.
    pub link: [LinkCounters; 2],
    /// What the gateways at its ends counted, by [`Side::index`], where there are any.
    pub gateways: [Option<GatewayCounters>; 2],
    /// pcapng files of what its two ends saw, by [`Side::index`], if asked for.
    pub captures: Option<[Vec<u8>; 2]>,
}

/// What came of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Its place in the setup.
    pub number: usize,
    /// The mobile's port, which no other flow has.
    pub client_port: u16,
    /// Whether its workload came to its end.
    pub is_complete: bool,
    /// When the mobile opened it.
    pub began: Instant,
    /// When it did, or was given up.
    pub ended: Instant,
    /// How the connection was lost, if it was.
    pub lost: Option<Lost>,
    /// Why each end's connection failed, by [`Side::index`], as far as it has come to know before the
    /// run was over.
    pub failures: [Option<Error>; 2],
    /// The side that gets the payload.
    pub receiver: Side,
    /// Bytes that came to the applications, by [`Side::index`]. Each was checked to be the right
    /// one.
    pub received: [u64; 2],
    /// For each return of the link while there was the flow, the time until the payload's receiver
    /// got bytes that it did not have; `None` if it got none.
    pub resumed: Vec<Option<Duration>>,
    /// For each of these returns, what came after it.
    pub recoveries: Vec<Recovery>,
    /// What the endpoints counted, by [`Side::index`].
    pub endpoints: [TcpCounters; 2],
    /// Updates that the mobile saw; `None` unless interactive.
    pub updates: Option<u32>,
}

/// A connection was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    /// Who noticed.
    pub side: Side,
    /// Why.
    pub error: Error,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, error } = self;
        write!(f, "the {side} host lost the connection: {error}")
    }
}

impl FlowOutcome {
    /// What the endpoint that sends the payload counted.
    #[must_use]
    pub fn sender(&self) -> &TcpCounters {
        &self.endpoints[self.receiver.peer().index()]
    }

    /// Whether all that arrived is what was sent, and it is all; `None` if something is missing, but
    /// what arrived is right.
    #[must_use]
    pub fn is_intact(&self) -> Option<bool> {
        match self.lost.map(|lost| lost.error) {
            Some(Error::WrongData { .. }) => Some(false),
            _ => self.is_complete.then_some(true),
        }
    }

    /// Whether a host gave the connection up, for want of an answer.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        let error = self.lost.map(|lost| lost.error);
        matches!(
            error,
            Some(Error::TimedOut | Error::UserTimeout | Error::KeepaliveTimeout)
        )
    }
}
