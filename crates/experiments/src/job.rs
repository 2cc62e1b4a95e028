//! One run of a scenario, before it is carried out.

use crate::batch::ATTEMPTS;
use crate::setting::{self, Setting};
use crate::trial::Trial;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_scenario::result::{RunResult, Settings, TcpInForce, World};
use outlast_scenario::{Mechanism, Scenario};
use std::sync::Arc;

/// One run of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The cell of the experiment to which the run belongs; all runs of a cell have it.
    pub cell: String,
    /// The number of the run within the scenario, counted from zero.
    pub index: u32,
    /// The scenario file.
    pub text: String,
    /// The scenario that `text` describes.
    pub scenario: Scenario,
    /// Where it is carried out.
    pub world: World,
    /// What is kept of the packets.
    pub watch: Watch,
    /// What is done in [`World::Live`], where the scenario says only what the link is like.
    pub trial: Option<Arc<dyn Trial>>,
}

/// What is kept of the packets of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// Nothing: the result alone.
    Nothing,
    /// What happened at each reconnection.
    Reconnections,
    /// What happened at each reconnection, and every packet, for a time-sequence diagram.
    Packets,
    /// What [`Self::Reconnections`] keeps, and the senders' variables at each acknowledgement and
    /// timeout; in the simulator only.
    Variables,
}

/// The rate that makes a run count as one of a batch's capacity.
const RATE_OF_ONE: u64 = 10_000_000;
/// How many times the ideal a run is thought to take that has little or no help.
const UNAIDED: u32 = 3;
/// How much faster the simulator is thought to be than the lab.
const SPEED_OF_SIM: u32 = 1_000;

impl Job {
    /// Run `index` of what `setting` says.
    ///
    /// # Panics
    /// If the setting is no sound scenario: the experiments are part of this program.
    #[must_use]
    pub fn new(cell: impl Into<String>, setting: &Setting, index: u32) -> Self {
        Self::from_toml(cell, setting.to_toml(), index)
    }

    /// Run `index` of the scenario file `text`.
    ///
    /// # Panics
    /// If the text is no sound scenario: the experiments are part of this program.
    #[must_use]
    pub fn from_toml(cell: impl Into<String>, text: String, index: u32) -> Self {
        let scenario = setting::parse(&text)
            .unwrap_or_else(|error| panic!("an experiment's scenario is sound: {error}\n{text}"));
        Self {
            cell: cell.into(),
            index,
            text,
            scenario,
            world: World::Lab,
            watch: Watch::Nothing,
            trial: None,
        }
    }

    /// Has the run carried out with real programs, as `trial` says.
    #[must_use]
    pub fn live(mut self, trial: impl Trial + 'static) -> Self {
        self.world = World::Live;
        self.trial = Some(Arc::new(trial));
        self
    }

    /// Has the run carried out in a guest, as `trial` says.
    #[must_use]
    pub fn in_guest(self, trial: impl Trial + 'static) -> Self {
        self.live(trial).in_world(World::Kernel)
    }

    /// Has the run carried out in `world`; in the lab, if nothing is said.
    #[must_use]
    pub fn in_world(mut self, world: World) -> Self {
        self.world = world;
        self
    }

    /// Has `watch` say what is kept of the run's packets.
    #[must_use]
    pub fn watching(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// The result of a live run of which nothing is measured yet, whose connections have that
    /// congestion control.
    #[must_use]
    pub fn live_result(&self, congestion: impl Into<String>) -> RunResult {
        let kernel = outlast_linux::kernel_release();
        let tcp = TcpInForce {
            congestion: congestion.into(),
            ..self.scenario.stack.in_lab(kernel)
        };
        RunResult::new(Settings::new(&self.scenario, self.index, World::Live, tcp))
    }

    /// Tells this run from every other: scenario, number, world and what is kept.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let Self {
            text,
            index,
            world,
            watch,
            trial,
            ..
        } = self;
        let mut identity = format!("{text}\n{index}\n{world}\n{watch:?}");
        if let Some(trial) = trial {
            identity.push_str(&format!("\n{trial:?}"));
        }
        blake3::hash(identity.as_bytes()).to_hex()[..16].to_owned()
    }

    /// The share of a batch's `capacity` that it takes: in the lab one for each 10 Mbit/s of link,
    /// at least one; in the simulator and in guests what one of this machine's `cores` is worth; live what the
    /// trial says.
    #[must_use]
    pub fn weight(&self, capacity: u32, cores: u32) -> u32 {
        match self.world {
            World::Sim | World::Kernel => return capacity.div_ceil(cores.max(1)).max(1),
            World::Live => {
                let trial = self.trial.as_ref();
                return trial.map_or(1, |trial| trial.weight(capacity));
            }
            World::Lab => {}
        }
        let link = &self.scenario.link;
        let rates = [link.downlink.rate, link.uplink.rate];
        let fastest = rates
            .into_iter()
            .flatten()
            .map(BitRate::bits_per_second)
            .max()
            .unwrap_or(0);
        u32::try_from(fastest.div_ceil(RATE_OF_ONE))
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// How often it is carried out at most, if its numbers are doubtful each time.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        let trial = self.trial.as_ref();
        trial.map_or(ATTEMPTS, |trial| trial.attempts())
    }

    /// About how long it will take; for the order of the batch and for the time left, not for any
    /// result.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let Scenario { run, outlast, .. } = &self.scenario;
        let ideal = self
            .scenario
            .ideal_time(self.index, self.scenario.framing());
        let helps = |mechanism| {
            let strong = [
                Mechanism::SmartLink3,
                Mechanism::SmartLink4,
                Mechanism::Hold,
            ];
            strong.contains(&mechanism)
        };
        let patience = if helps(outlast.gateway) || helps(outlast.mobile) {
            1
        } else {
            UNAIDED
        };
        let in_lab = ideal.map_or(run.deadline, |ideal| (ideal * patience).min(run.deadline));
        match self.world {
            World::Live | World::Kernel => {
                let trial = self.trial.as_ref().and_then(|trial| trial.expected());
                trial.unwrap_or(in_lab)
            }
            World::Lab => in_lab,
            World::Sim => in_lab / SPEED_OF_SIM,
        }
    }
}
