//! One run of a scenario, before it is carried out.

use crate::setting::{self, Setting};
use outlast_core::time::Duration;
use outlast_core::units::BitRate;
use outlast_scenario::{Mechanism, Scenario};

/// One run of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The cell of the experiment to which the run belongs; all runs of a cell have it.
    pub cell: String,
    /// The number of the run within the scenario, counted from zero.
    pub index: u32,
    /// The scenario file.
    pub text: String,
    /// The same, understood.
    pub scenario: Scenario,
    /// What is kept of the packets.
    pub watch: Watch,
}

/// What is kept of the packets of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// Nothing: the result alone.
    Nothing,
    /// What happened at each reconnection.
    Reconnections,
    /// The same, and every packet, for a time-sequence diagram.
    Packets,
}

/// The rate that makes a run count as one of a batch's capacity.
const RATE_OF_ONE: u64 = 10_000_000;
/// How many times the ideal a run is thought to take that has little or no help.
const UNAIDED: u32 = 3;

impl Job {
    /// Run `index` of what `setting` says.
    ///
    /// # Panics
    /// If the setting is no sound scenario: the experiments are part of this program.
    #[must_use]
    pub fn new(cell: impl Into<String>, setting: &Setting, index: u32) -> Self {
        let text = setting.to_toml();
        let scenario = setting::parse(&text)
            .unwrap_or_else(|error| panic!("an experiment's scenario is sound: {error}\n{text}"));
        Self {
            cell: cell.into(),
            index,
            text,
            scenario,
            watch: Watch::Nothing,
        }
    }

    /// The same run, of whose packets something is kept.
    #[must_use]
    pub fn watching(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Tells this run from every other: scenario, number and what is kept.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let identity = format!("{}\n{}\n{:?}", self.text, self.index, self.watch);
        blake3::hash(identity.as_bytes()).to_hex()[..16].to_owned()
    }

    /// The share of a batch's capacity that it takes: one for each 10 Mbit/s of link, at least one.
    #[must_use]
    pub fn weight(&self) -> u32 {
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
        ideal.map_or(run.deadline, |ideal| (ideal * patience).min(run.deadline))
    }
}
