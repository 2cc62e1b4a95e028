//! What a live run does, which only its experiment knows.

use crate::batch::ATTEMPTS;
use crate::carry_out::Ran;
use crate::job::Job;
use crate::moments::Moments;
use outlast_base::time::Duration;
use outlast_lab::{Cancel, LabError};
use std::error::Error;
use std::fmt;

/// A live run: real programs on this machine.
///
/// Two trials whose `Debug` forms are equal are one and the same.
pub trait Trial: fmt::Debug + Send + Sync {
    /// The share of a batch's `capacity` that the trial takes.
    fn weight(&self, capacity: u32) -> u32;

    /// About how long the trial takes; `None` where its scenario says as much.
    fn expected(&self) -> Option<Duration>;

    /// How often the trial is carried out at most, if each time the machine is too busy, or it does not begin.
    fn attempts(&self) -> u32 {
        ATTEMPTS
    }

    /// Carries the trial out for `job`.
    ///
    /// # Errors
    /// When the place cannot be made, a program is not there, or one does not start.
    fn carry_out(&self, job: &Job, moments: &Moments, cancel: &Cancel) -> Result<Ran, TrialError>;
}

impl PartialEq for dyn Trial {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// Why a trial could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The place cannot be made, or the user asks for an end.
    #[error(transparent)]
    Place(#[from] LabError),
    /// This machine lacks something that other runs do not need.
    #[error("{0}")]
    Missing(String),
    /// What is to be measured did not begin in time, as on a machine that is too busy: worth another attempt.
    #[error("{0}")]
    NotBegun(String),
    /// Something else went wrong.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}
