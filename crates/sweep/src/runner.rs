//! Worlds that carry runs out.

use crate::plan::{Plan, Run, RunError};
use outlast_scenario::Scenario;
use outlast_scenario::result::{RunResult, World};
use std::fmt;

/// Carries out the runs of a sweep, one in each call, in any number of threads.
pub trait Runner: fmt::Debug + Send + Sync {
    /// The result of `run`, which depends on the plan and the run alone.
    ///
    /// # Errors
    ///
    /// When drawn values do not fit each other, or the run cannot be brought to its end.
    fn carry_out(&self, plan: &Plan, run: Run) -> Result<RunResult, RunError>;
}

/// The simulator, in this process.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl Runner for Simulator {
    fn carry_out(&self, plan: &Plan, run: Run) -> Result<RunResult, RunError> {
        plan.carry_out(run)
    }
}

/// The world and the kernel that results come from. Results of two origins are never mixed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    world: World,
    kernel: Option<String>,
}

impl Origin {
    /// The simulator.
    pub const SIMULATOR: Self = Self {
        world: World::Sim,
        kernel: None,
    };

    /// The packaged kernel of this release, in an emulated machine.
    #[must_use]
    pub fn kernel(release: &str) -> Self {
        Self::of(World::Kernel, Some(release.to_owned()))
    }

    pub(crate) const fn of(world: World, kernel: Option<String>) -> Self {
        Self { world, kernel }
    }

    /// The world.
    #[must_use]
    pub const fn world(&self) -> World {
        self.world
    }

    /// The kernel's release, where it is a packaged one.
    #[must_use]
    pub fn release(&self) -> Option<&str> {
        self.kernel.as_deref()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kernel, self.world) {
            (Some(release), _) => write!(f, "Linux {release}"),
            (None, World::Sim) => f.write_str("the simulator"),
            (None, world) => write!(f, "the world \"{}\"", world.name()),
        }
    }
}

/// Something that a world lacks of a scenario.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Reason, in words.
    pub message: String,
    /// Keys of which one asks for it; the first that is written somewhere is shown.
    pub keys: Vec<&'static str>,
    /// Words below that place.
    pub label: &'static str,
    /// Advice.
    pub remedy: String,
}

/// Says what a world lacks of a scenario.
pub type Check<'a> = &'a mut dyn FnMut(&Scenario) -> Result<(), Refusal>;
