//! One run: a mobile node that goes to and fro between two foreign agents.

use super::cells::Cells;
use crate::gateway_matrix::trial::{TrialError, pause_until};
use crate::mobile_ip_matrix::replies::Replies;
use outlast_base::random::Stream;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use tempfile::TempDir;

/// How long the mobile host is in a cell, on average.
const STAY: Duration = Duration::from_secs(2);
/// When a hand-off is given up.
const PATIENCE: Duration = Duration::from_secs(15);

/// How the mobile node finds that it has moved: the value of its key `detection`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detection {
    /// At the first advertisement of another agent.
    Eager,
    /// When the lifetime of its agent's last advertisement is over.
    Lazy,
    /// As lazily, and it looks at the networks' prefixes.
    Prefix,
    /// By the carrier.
    Link,
}

impl Detection {
    /// All, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Eager, Self::Lazy, Self::Prefix, Self::Link];

    /// Its name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::Prefix => "prefix",
            Self::Link => "link",
        }
    }

    /// Best, average and worst case of table 4.1 of the thesis without L, T and C, in seconds.
    #[must_use]
    pub const fn published_s(self) -> Option<[f64; 3]> {
        match self {
            Self::Eager => Some([0.0, 0.5, 1.0]),
            Self::Lazy => Some([2.0, 2.5, 3.0]),
            Self::Prefix | Self::Link => None,
        }
    }
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DetectionTrial {
    /// How movement is found.
    pub detection: Detection,
    /// How often the mobile host moves.
    pub hand_offs: u32,
}

/// What only this trial shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// From each move until the mobile host had the home agent's accepting reply, in seconds; `None`: it had
    /// none in time.
    pub hand_offs_s: Vec<Option<f64>>,
}

impl DetectionTrial {
    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let hand_off = match self.detection {
            Detection::Eager | Detection::Link => Duration::from_millis(500),
            Detection::Lazy | Detection::Prefix => Duration::from_millis(2_500),
        };
        Duration::from_secs(4) + (STAY + hand_off) * self.hand_offs
    }
}

/// Carries the trial of `job` out with the program `outlast`.
///
/// # Errors
/// When the cells cannot be made, or a role does not start.
pub fn carry_out(
    job: &Job,
    trial: &DetectionTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let mut cells = Cells::new()?;
    let _roles = cells.start(trial.detection, outlast, directory.path(), cancel)?;
    let replies = Replies::watch(&cells.mobile, Cells::LINK)?;
    let began = clock::now();
    let mut stays = Stream::new(job.scenario.run.seed + u64::from(job.index), "stay");
    let mut observed = Observed::default();
    for _ in 0..trial.hand_offs {
        pause_until(cancel, clock::now() + stays.uniform(STAY))?;
        replies.discard();
        let left = clock::now();
        cells.move_on(trial.detection == Detection::Link)?;
        let replied = replies.next_until(left + PATIENCE, cancel)?;
        let took = replied.map(|at| at.since(left).as_secs_f64());
        observed.hand_offs_s.push(took);
    }
    replies.end()?;
    let is_complete = observed.hand_offs_s.iter().all(Option::is_some);
    let result = RunResult {
        completed: is_complete,
        error: (!is_complete).then(|| "a hand-off did not end".to_owned()),
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result("cubic")
    };
    Ok(Ran::new(result).observing(&observed))
}
