//! What a run was and what came of it: the JSON that `lab --json` and `sim --json` print.
//!
//! Field names are a contract, described in `docs/result-format.md`. What could not be measured
//! is `null`.

use crate::mechanism::Mechanism;
use crate::names::names;
use crate::scenario::{
    Direction, Indicators, IpVersion, Profile, Scenario, Stack, Workload, WorkloadKind,
};
use outlast_base::units::BitRate;
use outlast_link::ConfiguredRate;
use outlast_link::Outage;
use serde::{Deserialize, Serialize};

names! {
    /// What executed a run.
    pub enum World {
        /// Real kernels over an emulated link, in real time.
        Lab = "lab",
        /// The TCP model, in virtual time.
        Sim = "sim",
        /// Real kernels and real programs, with the daemon on a real interface.
        Live = "live",
        /// The lab on a packaged kernel, in an emulated machine and in virtual time.
        Kernel = "kernel",
    }
}

/// All runs of one scenario.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioResult {
    /// The scenario's name.
    pub scenario: String,
    /// What executed it.
    pub world: World,
    /// Release of the packaged kernel; not in JSON in other worlds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The runs, in order.
    pub runs: Vec<RunResult>,
    /// The control runs: the runs without Outlast, in the same order.
    ///
    /// Empty, and not in JSON, if nobody asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<RunResult>,
}

/// One run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunResult {
    /// Whether the workload came to its end before the deadline.
    pub completed: bool,
    /// Whether hashes at both ends agree on everything that was to be delivered; `null` if nobody
    /// could tell, as for a command without files to compare.
    pub intact: Option<bool>,
    /// From the workload's first byte to completion, or to when the run was given up.
    pub elapsed_s: f64,
    /// See [`Scenario::ideal_time`].
    pub ideal_s: Option<f64>,
    /// See [`Scenario::utilisation`].
    pub utilisation: Option<f64>,
    /// The outages that began before the end of the run.
    pub outages: Vec<OutageResult>,
    /// Retransmission timeouts of the payload's sender.
    pub timeouts: Option<u64>,
    /// Payload bytes that its sender sent more than once.
    pub retransmitted_bytes: Option<u64>,
    /// Packets that Outlast put on the path.
    pub injected_packets: u64,
    /// Bytes of these packets; `None`, and not in JSON, where nobody counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected_bytes: Option<u64>,
    /// Whether a host gave the connection up.
    pub user_timeout_abort: bool,
    /// Why the run could not be carried out or ended early, in words; `null` if it was.
    pub error: Option<String>,
    /// Payload bytes that came to the receiving application.
    pub bytes_received: Option<u64>,
    /// Updates that the mobile saw; `null` unless interactive.
    pub updates: Option<u32>,
    /// See [`Scenario::ideal_updates`].
    pub ideal_updates: Option<u32>,
    /// Packets that the link dropped.
    pub dropped_packets: Option<Drops>,
    /// Every connection, that of `[workload]` first; empty, and not in JSON, if it is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowResult>,
    /// Every source of cross traffic; empty, and not in JSON, if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficResult>,
    /// Every one of `[[hops]]`; empty, and not in JSON, if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopResult>,
    /// What came of HIP; `None`, and not in JSON, where the hosts do not speak it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hip: Option<HipResult>,
    /// What the run was made with; in JSON its fields stand beside the others.
    #[serde(flatten)]
    pub settings: Settings,
}

impl RunResult {
    /// A run that was made with `settings`, and of which nothing is measured or has happened yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            completed: false,
            intact: None,
            elapsed_s: 0.0,
            ideal_s: None,
            utilisation: None,
            outages: Vec::new(),
            timeouts: None,
            retransmitted_bytes: None,
            injected_packets: 0,
            injected_bytes: None,
            user_timeout_abort: false,
            error: None,
            bytes_received: None,
            updates: None,
            ideal_updates: None,
            dropped_packets: None,
            flows: Vec::new(),
            traffic: Vec::new(),
            hops: Vec::new(),
            hip: None,
            settings,
        }
    }

    /// When the last connection ended, from the workload's first byte.
    #[must_use]
    pub fn ended_s(&self) -> f64 {
        let flows = self.flows.iter().map(|flow| flow.begin_s + flow.elapsed_s);
        flows.fold(self.elapsed_s, f64::max)
    }

    /// Whether every connection came to its end before the deadline.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.completed && self.flows.iter().all(|flow| flow.completed)
    }

    /// Payload bytes that came to the receiving applications of all connections.
    #[must_use]
    pub fn received_in_all(&self) -> Option<u64> {
        match self.flows[..] {
            [] => self.bytes_received,
            _ => Some(self.flows.iter().map(|flow| flow.bytes_received).sum()),
        }
    }
}

/// One outage of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct OutageResult {
    /// When it began, counted from the workload's first byte.
    pub start_s: f64,
    /// How long it lasted; `null` if it had no end.
    pub length_s: Option<f64>,
    /// From link-up until the receiving application first got bytes that it did not have; `null`
    /// if it got none before the end of the run. Further outages in between count.
    pub resume_s: Option<f64>,
    /// Bulk: from link-up until as many new bytes had come as the link carries in half a second;
    /// `null` if fewer came. Further outages in between count.
    #[serde(default)]
    pub half_second_s: Option<f64>,
    /// Bulk: see [`Scenario::share_after`].
    #[serde(default)]
    pub first_five_seconds_share: Option<f64>,
}

impl OutageResult {
    /// An outage after which nothing has resumed yet.
    #[must_use]
    pub fn new(outage: &Outage) -> Self {
        Self {
            start_s: outage.start.as_secs_f64(),
            length_s: outage.length().map(|length| length.as_secs_f64()),
            resume_s: None,
            half_second_s: None,
            first_five_seconds_share: None,
        }
    }
}

/// What a receiver got after one return of the link, as [`OutageResult`] has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Return {
    /// See [`OutageResult::resume_s`].
    pub resume_s: Option<f64>,
    /// See [`OutageResult::half_second_s`].
    pub half_second_s: Option<f64>,
    /// See [`OutageResult::first_five_seconds_share`].
    pub first_five_seconds_share: Option<f64>,
}

impl OutageResult {
    /// An outage, and what came after it.
    #[must_use]
    pub fn followed_by(outage: &Outage, after: Return) -> Self {
        Self {
            resume_s: after.resume_s,
            half_second_s: after.half_second_s,
            first_five_seconds_share: after.first_five_seconds_share,
            ..Self::new(outage)
        }
    }
}

/// One connection of several.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FlowResult {
    /// Whether its workload came to its end before the deadline.
    pub completed: bool,
    /// Whether all that was to be delivered was, unchanged; `null` if it is not all there.
    pub intact: Option<bool>,
    /// When the mobile opened it, counted from when it opened that of `[workload]`.
    pub begin_s: f64,
    /// From then to completion, or to when it was given up.
    pub elapsed_s: f64,
    /// From each return of `[link]` until its receiver had bytes that it did not have; `null` if it
    /// got none.
    pub resume_s: Vec<Option<f64>>,
    /// For each of these returns, as [`OutageResult::half_second_s`].
    #[serde(default)]
    pub half_second_s: Vec<Option<f64>>,
    /// For each of these returns, as [`OutageResult::first_five_seconds_share`]: the share that this
    /// connection used.
    #[serde(default)]
    pub first_five_seconds_share: Vec<Option<f64>>,
    /// Retransmission timeouts of the payload's sender; `null` on a kernel that does not count them.
    pub timeouts: Option<u64>,
    /// Payload bytes that its sender sent more than once; likewise.
    pub retransmitted_bytes: Option<u64>,
    /// Whether a host gave the connection up.
    pub user_timeout_abort: bool,
    /// How it was lost, in words; `null` if it was not.
    pub error: Option<String>,
    /// Payload bytes that came to the receiving application.
    pub bytes_received: u64,
    /// Updates that the mobile saw; `null` unless interactive.
    pub updates: Option<u32>,
    /// Kind of workload.
    pub workload: WorkloadKind,
    /// Direction of the payload; `null` unless bulk.
    pub direction: Option<Direction>,
    /// Payload to deliver; `null` unless bulk.
    pub bytes: Option<u64>,
    /// The TCP that was in force.
    #[serde(flatten)]
    pub tcp: TcpInForce,
}

/// One source of cross traffic.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TrafficResult {
    /// Packets that it sent.
    pub sent_packets: u64,
    /// Packets that came out of its link.
    pub received_packets: u64,
}

/// What came of HIP between the hosts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct HipResult {
    /// For each readdressing the time from when the mobile had its new address until the fixed host
    /// knew that it is there.
    pub readdressing_s: Vec<f64>,
    /// Packets for an address that the mobile had no more.
    pub strayed_packets: u64,
}

/// One of `[[hops]]`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HopResult {
    /// Packets that Outlast put on it.
    pub injected_packets: u64,
    /// Packets that it dropped.
    pub dropped_packets: Drops,
}

/// Packets that the link dropped, both ways, by reason.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// Random loss.
    pub loss: u64,
    /// Came while the link was down.
    pub link_down: u64,
    /// Queued or being sent when the link went down.
    pub flushed: u64,
    /// On their way when the link went down.
    pub in_flight: u64,
}

/// What a run was made with: what the scenario says, and what it leaves to defaults.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Settings {
    /// What executed it.
    pub world: World,
    /// Seed of everything random in this run.
    pub seed: u64,
    /// Kind of workload.
    pub workload: WorkloadKind,
    /// Direction of the payload; `null` unless bulk.
    pub direction: Option<Direction>,
    /// Payload to deliver; `null` unless bulk.
    pub bytes: Option<u64>,
    /// Downlink rate; `null` if unlimited.
    pub downlink_bits_per_s: Option<u64>,
    /// Uplink rate; `null` if unlimited.
    pub uplink_bits_per_s: Option<u64>,
    /// Round trip of all links without queues and sending time.
    pub round_trip_s: f64,
    /// When a run is given up, counted from the workload's first byte.
    pub deadline_s: f64,
    /// Network protocol.
    pub ip: IpVersion,
    /// Mechanism at the fixed side of the link.
    pub gateway: Mechanism,
    /// Mechanism at the mobile.
    pub mobile: Mechanism,
    /// Mechanism on the fixed host.
    pub fixed: Mechanism,
    /// How gateways learned of outages.
    #[serde(default)]
    pub indicators: Indicators,
    /// What gateways were told of the rates of their links, as `[outlast] rate` says.
    #[serde(default = "link")]
    pub configured_rate: String,
    /// User timeout that both ends asked for; `null` if off.
    pub user_timeout_s: Option<f64>,
    /// The TCP that was in force.
    #[serde(flatten)]
    pub tcp: TcpInForce,
}

/// What gateways were told of rates where a result does not say it.
fn link() -> String {
    ConfiguredRate::Link.to_string()
}

/// The TCP that a run really had, where the scenario leaves a choice.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TcpInForce {
    /// Stack profile; `null` in the lab.
    pub profile: Option<Profile>,
    /// Kernel release of both hosts; `null` in the simulator.
    pub kernel: Option<String>,
    /// Congestion control.
    pub congestion: String,
    /// Whether selective acknowledgements were on.
    pub sack: bool,
    /// Whether timestamps were on.
    pub timestamps: bool,
}

impl Stack {
    /// What the lab sets on a kernel of this release.
    #[must_use]
    pub fn in_lab(&self, kernel: String) -> TcpInForce {
        TcpInForce {
            profile: None,
            kernel: Some(kernel),
            congestion: self.congestion.unwrap_or(Self::LAB_CONGESTION).to_string(),
            sack: self.sack.unwrap_or(true),
            timestamps: self.timestamps.unwrap_or(true),
        }
    }
}

impl Workload {
    /// Direction and size of a bulk transfer, as results have them.
    #[must_use]
    pub fn transfer(&self) -> (Option<Direction>, Option<u64>) {
        match self {
            Self::Bulk { bytes, direction } => (Some(*direction), Some(bytes.as_u64())),
            _ => (None, None),
        }
    }
}

impl Settings {
    /// The settings of run `index`, counted from zero.
    #[must_use]
    pub fn new(scenario: &Scenario, index: u32, world: World, tcp: TcpInForce) -> Self {
        let (direction, bytes) = scenario.workload.transfer();
        let link = scenario.link_config(index);
        let [down, up] = scenario.delays();
        Self {
            world,
            seed: link.seed,
            workload: scenario.workload.kind(),
            direction,
            bytes,
            downlink_bits_per_s: link.to_mobile.rate.map(BitRate::bits_per_second),
            uplink_bits_per_s: link.to_fixed.rate.map(BitRate::bits_per_second),
            round_trip_s: (down + up).as_secs_f64(),
            deadline_s: scenario.run.deadline.as_secs_f64(),
            ip: scenario.stack.ip,
            gateway: scenario.outlast.gateway,
            mobile: scenario.outlast.mobile,
            fixed: scenario.outlast.fixed,
            indicators: scenario.outlast.indicators,
            configured_rate: scenario.outlast.rate.to_string(),
            user_timeout_s: scenario
                .outlast
                .user_timeout
                .map(|timeout| timeout.as_secs_f64()),
            tcp,
        }
    }
}
