//! One run of a scenario.

use crate::error::SimError;
use crate::result::result;
use crate::setup::setup;
use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
use outlast_world::{Outcome, Recording, Setup, World};

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The result, in the form that lab and simulator share.
    pub result: RunResult,
    /// What only the simulator can tell.
    pub outcome: Outcome,
}

/// One run of a scenario, ready to begin.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    index: u32,
    setup: Setup,
}

/// Simulates run `index` of `scenario`, counted from zero.
///
/// # Errors
/// When the scenario asks for something that the simulator does not have.
pub fn run(scenario: &Scenario, index: u32) -> Result<RunReport, SimError> {
    Ok(Simulation::new(scenario, index)?.run())
}

impl<'a> Simulation<'a> {
    /// Run `index` of `scenario`, counted from zero.
    ///
    /// # Errors
    /// When the scenario asks for something that the simulator does not have.
    pub fn new(scenario: &'a Scenario, index: u32) -> Result<Self, SimError> {
        let setup = setup(scenario, index)?;
        Ok(Self {
            scenario,
            index,
            setup,
        })
    }

    /// Writes down what happens.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Self {
        self.setup.recording = recording;
        self
    }

    /// The world of the run.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Carries the run out.
    #[must_use]
    pub fn run(self) -> RunReport {
        let Self {
            scenario,
            index,
            setup,
        } = self;
        let stacks: Vec<_> = setup.flows.iter().map(|flow| flow.stacks).collect();
        let outcome = World::new(setup).run();
        RunReport {
            result: result(scenario, index, &stacks, &outcome),
            outcome,
        }
    }
}
