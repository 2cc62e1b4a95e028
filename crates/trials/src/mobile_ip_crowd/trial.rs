//! One run: a crowd that moves at once.

use super::{in_virtual_time, live};
use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::Cancel;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CrowdTrial {
    /// How many mobile nodes there are.
    pub size: usize,
    /// Where.
    pub place: CrowdPlace,
}

/// Where a crowd moves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CrowdPlace {
    /// In virtual time, before a home agent whose link has this rate.
    VirtualTime {
        /// In Mbit/s.
        mbit_per_s: u64,
    },
    /// Before a home agent of `outlast run`.
    Live {
        /// Beside a flood of forged requests.
        is_flood: bool,
    },
}

/// What came of a move.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Move {
    /// How many were registered in the end.
    pub registered: usize,
    /// From the move of all until the last one had its reply.
    pub took_s: f64,
    /// Requests that were sent.
    pub requests: u64,
    /// Messages that found no room at the home agent's link.
    pub lost: u64,
    /// Forged requests that were sent.
    pub forged: u64,
    /// Requests that the home agent refused.
    pub refused: u64,
    /// How many the home agent reaches where they are, by its status, in a live run.
    pub bound: usize,
}

impl CrowdTrial {
    /// About how long it takes, all in all.
    #[must_use]
    pub const fn expected(&self) -> Duration {
        match self.place {
            CrowdPlace::VirtualTime { .. } => Duration::from_secs(20),
            CrowdPlace::Live { .. } => Duration::from_secs(15),
        }
    }
}

/// Carries the trial of `job` out with the program `outlast`.
///
/// # Errors
/// When the place cannot be made, or the home agent does not start.
pub fn carry_out(
    job: &Job,
    trial: &CrowdTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let CrowdTrial { size, place } = *trial;
    let moved = match place {
        CrowdPlace::VirtualTime { mbit_per_s } => {
            let measured = in_virtual_time::measure(size, mbit_per_s * 1_000_000);
            measured.map_err(live::reserved)?
        }
        CrowdPlace::Live { is_flood } => live::measure(size, is_flood, outlast, cancel)?,
    };
    let result = RunResult {
        completed: moved.registered == size,
        elapsed_s: moved.took_s,
        ..job.live_result("cubic")
    };
    Ok(Ran::new(result).observing(&moved))
}
