//! What is done in a run in the real world, where a scenario says only what the link is like.

use crate::gateway_cost::bench::{self, Bench};
use crate::gateway_cost::programs::{self, Passes};
use crate::gateway_herd::trial::{self as herd, HerdTrial};
use crate::gateway_matrix::trial::{self as matrix, ProgramTrial};
use crate::gateway_siege::trial::{self as siege, SiegeTrial};
use crate::hip_cost::trial::{self as cost, CostTrial};
use crate::hip_moves::trial::{self as moves, MovesTrial};
use crate::host_cost::bench::{self as agents, AgentBench};
use crate::mobile_ip_crowd::trial::{self as crowd, CrowdTrial};
use crate::mobile_ip_detection::trial::{self as detection, DetectionTrial};
use crate::mobile_ip_matrix::trial::{self as hand_off, HandOffTrial};
use crate::race::trial::{self as race, RaceTrial};
use crate::strangers::trial::{self as strangers, StrangerTrial};
use crate::supervisor_cost::bench::{self as split, SplitBench};
use crate::tunnel_cost::bench::{self as tunnels, TunnelBench};
use outlast_base::time::Duration;
use outlast_experiments::batch::ATTEMPTS;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_experiments::trial::{Trial as Live, TrialError};
use outlast_lab::{Cancel, LabError};
use outlast_linux::namespace::Namespace;
use outlast_scenario::{Congestion, IpVersion, Mechanism};

/// What the scenario of a live run says that takes `duration` and emulates no link.
pub(crate) fn without_link(name: &str, duration: Duration) -> Setting {
    Setting {
        name: name.to_owned(),
        rate_mbit_per_s: 100_000,
        delay: Duration::from_micros(1),
        queue: 1_000,
        outages: Outages::None,
        task: Task::Interactive {
            interval: duration,
            duration,
        },
        congestion: Congestion::Cubic,
        sack: true,
        ip: IpVersion::V4,
        gateway: Mechanism::None,
        mobile: Mechanism::None,
        seed: 1,
        deadline: duration * 2,
    }
}

/// Does `work` in the network namespace of `host`.
///
/// # Errors
/// Those of `work`, and when the namespace cannot be entered.
pub(crate) fn within<T: Send>(
    host: &Namespace,
    work: impl FnOnce() -> Result<T, matrix::TrialError> + Send,
) -> Result<T, matrix::TrialError> {
    host.run(work).map_err(LabError::from)?
}

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trial {
    /// Real programs, one outage.
    Programs(ProgramTrial),
    /// Traffic that no gateway can read, one outage.
    Stranger(StrangerTrial),
    /// One transfer, one outage, one of those that are said to help.
    Race(RaceTrial),
    /// Thousands of connections, one outage.
    Herd(HerdTrial),
    /// Honest transfers through outages, the daemon besieged.
    Siege(SiegeTrial),
    /// A transfer through one hand-off with Mobile IP.
    HandOff(HandOffTrial),
    /// A mobile node that goes to and fro between foreign agents with Mobile IP.
    Detection(DetectionTrial),
    /// Thousands of mobile nodes that move at once with Mobile IP.
    Crowd(CrowdTrial),
    /// Programs between hosts that change their addresses, with HIP.
    Moves(MovesTrial),
    /// A crowd of hosts with HIP, or HIP beside another tunnel.
    Cost(CostTrial),
    /// No outage: how much goes through.
    Bench(Bench),
    /// No outage: what goes through tunnels.
    Tunnels(TunnelBench),
    /// No outage: how much goes through a supervisor host, and through a proxy.
    Split(SplitBench),
    /// No outage: how much goes between hosts with the agent, and without.
    Agent(AgentBench),
    /// No link: what the programs in the kernel need.
    Passes(Passes),
}

impl Live for Trial {
    /// Programs and daemon mostly wait, and have their moment to themselves; four sieges, or mobile nodes
    /// between cells, go on at once; a hand-off and the herd take all of the capacity, and what measures the machine, too.
    fn weight(&self, capacity: u32) -> u32 {
        match self {
            Self::Programs(_) | Self::Stranger(_) | Self::Race(_) => 1,
            // Four roles, which mostly wait.
            Self::Siege(_) | Self::Detection(_) => (capacity / 4).max(1),
            Self::Herd(_)
            | Self::HandOff(_)
            | Self::Moves(_)
            | Self::Cost(_)
            | Self::Bench(_)
            | Self::Crowd(_)
            | Self::Tunnels(_)
            | Self::Split(_)
            | Self::Agent(_)
            | Self::Passes(_) => capacity.max(1),
        }
    }

    fn expected(&self) -> Option<Duration> {
        match self {
            Self::Programs(trial) => Some(trial.expected()),
            Self::Stranger(trial) => Some(trial.expected()),
            Self::Race(trial) => Some(trial.expected()),
            Self::Siege(trial) => Some(trial.expected()),
            Self::HandOff(trial) => Some(trial.expected()),
            Self::Detection(trial) => Some(trial.expected()),
            Self::Crowd(trial) => Some(trial.expected()),
            Self::Moves(trial) => Some(trial.expected()),
            Self::Cost(trial) => Some(trial.expected()),
            Self::Herd(_)
            | Self::Bench(_)
            | Self::Tunnels(_)
            | Self::Split(_)
            | Self::Agent(_)
            | Self::Passes(_) => None,
        }
    }

    fn attempts(&self) -> u32 {
        match self {
            Self::Programs(_) | Self::Stranger(_) | Self::Race(_) => ProgramTrial::ATTEMPTS,
            Self::Herd(_)
            | Self::Siege(_)
            | Self::HandOff(_)
            | Self::Detection(_)
            | Self::Moves(_)
            | Self::Cost(_)
            | Self::Bench(_)
            | Self::Crowd(_)
            | Self::Tunnels(_)
            | Self::Split(_)
            | Self::Agent(_)
            | Self::Passes(_) => ATTEMPTS,
        }
    }

    fn carry_out(&self, job: &Job, moments: &Moments, cancel: &Cancel) -> Result<Ran, TrialError> {
        let outlast = matrix::this_program()?;
        Ok(match self {
            Self::Programs(trial) => matrix::carry_out(job, trial, &outlast, moments, cancel)?,
            Self::Stranger(trial) => strangers::carry_out(job, trial, &outlast, moments, cancel)?,
            Self::Race(trial) => race::carry_out(job, trial, &outlast, moments, cancel)?,
            Self::Herd(trial) => herd::carry_out(job, trial, &outlast, cancel)?,
            Self::Siege(trial) => siege::carry_out(job, trial, &outlast, cancel)?,
            Self::Detection(trial) => detection::carry_out(job, trial, &outlast, cancel)?,
            Self::HandOff(trial) => hand_off::carry_out(job, trial, &outlast, cancel)?,
            Self::Crowd(trial) => crowd::carry_out(job, trial, &outlast, cancel)?,
            Self::Moves(trial) => moves::carry_out(job, trial, &outlast, cancel)?,
            Self::Cost(trial) => cost::carry_out(job, trial, &outlast, cancel)?,
            Self::Bench(bench) => bench::carry_out(job, bench, &outlast, cancel)?,
            Self::Tunnels(bench) => tunnels::carry_out(job, bench, &outlast, cancel)?,
            Self::Split(bench) => split::carry_out(job, bench, &outlast, cancel)?,
            Self::Agent(bench) => agents::carry_out(job, bench, &outlast, cancel)?,
            Self::Passes(passes) => programs::carry_out(job, passes, cancel)?,
        })
    }
}
