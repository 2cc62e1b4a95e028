//! What is done in a run in the real world, where a scenario says only what the link is like.

use crate::carry_out::Ran;
use crate::gateway_cost::bench::{self, Bench};
use crate::gateway_cost::programs::{self, Passes};
use crate::gateway_herd::trial::{self as herd, HerdTrial};
use crate::gateway_matrix::trial::{self as matrix, ProgramTrial, TrialError};
use crate::gateway_siege::trial::{self as siege, SiegeTrial};
use crate::job::Job;
use crate::moments::Moments;
use outlast_base::time::Duration;
use outlast_lab::Cancel;

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trial {
    /// Real programs, one outage.
    Programs(ProgramTrial),
    /// Thousands of connections, one outage.
    Herd(HerdTrial),
    /// Honest transfers through outages, the daemon besieged.
    Siege(SiegeTrial),
    /// No outage: how much goes through.
    Bench(Bench),
    /// No link: what the programs in the kernel need.
    Passes(Passes),
}

impl Trial {
    /// The share of a batch's `capacity` that it takes: programs and daemon mostly wait, and have
    /// their moment to themselves; four sieges go on at once; the herd takes all of it, and what
    /// measures the machine, too.
    #[must_use]
    pub fn weight(&self, capacity: u32) -> u32 {
        match self {
            Self::Programs(_) => 1,
            Self::Siege(_) => (capacity / 4).max(1),
            Self::Herd(_) | Self::Bench(_) | Self::Passes(_) => capacity.max(1),
        }
    }

    /// About how long it will take; `None` where its scenario says as much.
    #[must_use]
    pub fn expected(&self) -> Option<Duration> {
        match self {
            Self::Programs(trial) => Some(trial.expected()),
            Self::Siege(trial) => Some(trial.expected()),
            Self::Herd(_) | Self::Bench(_) | Self::Passes(_) => None,
        }
    }

    /// How often it is carried out at most, if the machine is too busy each time.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        match self {
            Self::Programs(_) => ProgramTrial::ATTEMPTS,
            Self::Herd(_) | Self::Siege(_) | Self::Bench(_) | Self::Passes(_) => {
                crate::batch::ATTEMPTS
            }
        }
    }
}

/// Carries `trial`, which is that of `job`, out.
///
/// # Errors
/// When the place cannot be made, a program is not there, or one does not start.
pub fn carry_out(
    job: &Job,
    trial: &Trial,
    moments: &Moments,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let outlast = matrix::this_program()?;
    match trial {
        Trial::Programs(trial) => matrix::carry_out(job, trial, &outlast, moments, cancel),
        Trial::Herd(trial) => herd::carry_out(job, trial, &outlast, cancel),
        Trial::Siege(trial) => siege::carry_out(job, trial, &outlast, cancel),
        Trial::Bench(bench) => bench::carry_out(job, bench, &outlast, cancel),
        Trial::Passes(passes) => programs::carry_out(job, passes, cancel),
    }
}
