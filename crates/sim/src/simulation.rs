//! One run of a scenario.

use crate::error::SimError;
use crate::result::result;
use crate::setup::setup;
use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
use outlast_world::{Outcome, Progress, Recording, Setup, Stack, World};

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

/// One run of a scenario that has begun.
#[derive(Debug)]
pub struct Running<'a> {
    scenario: &'a Scenario,
    index: u32,
    /// Of each connection, by [`Side::index`](outlast_world::Side::index).
    stacks: Vec<[Stack; 2]>,
    world: World,
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
        self.begin().finish()
    }

    /// Begins the run, for callers that want to see how it is getting on.
    #[must_use]
    pub fn begin(self) -> Running<'a> {
        let Self {
            scenario,
            index,
            setup,
        } = self;
        Running {
            scenario,
            index,
            stacks: setup.flows.iter().map(|flow| flow.stacks).collect(),
            world: World::new(setup),
        }
    }
}

impl Running<'_> {
    /// Lets up to so many things happen; whether the run is over.
    pub fn advance(&mut self, steps: u64) -> bool {
        for _ in 0..steps {
            if self.world.is_over() {
                return true;
            }
            self.world.step();
        }
        self.world.is_over()
    }

    /// How it is getting on.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.world.progress()
    }

    /// Carries the rest of it out.
    #[must_use]
    pub fn finish(mut self) -> RunReport {
        while !self.advance(u64::MAX) {}
        let outcome = self.world.finish();
        RunReport {
            result: result(self.scenario, self.index, &self.stacks, &outcome),
            outcome,
        }
    }
}
