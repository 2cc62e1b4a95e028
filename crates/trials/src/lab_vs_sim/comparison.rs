//! One scenario in both worlds, and whether they agree.

use super::scenarios::{Case, DELAY};
use outlast_experiments::present::median;
use outlast_experiments::record::{Record, Runs};
use outlast_scenario::result::World;

/// How far off the completion time may be.
pub const COMPLETION: f64 = 0.05;
/// How far off the resume time may be, unless a round trip is more.
pub const RESUME: f64 = 0.05;

/// What the two worlds say about one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The middle of the lab's runs; infinite if it never came.
    pub lab: f64,
    /// The least and the largest of them.
    pub lab_spread: (f64, f64),
    /// The middle of the simulator's.
    pub sim: f64,
    /// The least and the largest of them.
    pub sim_spread: (f64, f64),
}

/// What the two worlds say about one scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Seconds from the first byte sent to the last received.
    pub completion: Pair,
    /// Seconds from link-up to new bytes.
    pub resume: Pair,
    /// Retransmission timeouts of the sender.
    pub timeouts: Pair,
    /// Packets for which the link's queue had no room.
    pub queue_drops: Pair,
}

impl Comparison {
    /// The comparison of `case`; `None` unless there are runs of both worlds.
    #[must_use]
    pub fn of(case: &Case, runs: &Runs) -> Option<Self> {
        let lab = runs.of(&case.name(World::Lab));
        let sim = runs.of(&case.name(World::Sim));
        let pair = |value: fn(&Record) -> Option<f64>| Pair::of(lab, sim, value);
        Some(Self {
            completion: pair(completion)?,
            resume: pair(crate::hold_matrix::resume)?,
            timeouts: pair(|record| record.result.timeouts.map(|count| count as f64))?,
            queue_drops: pair(|record| {
                let drops = record.result.dropped_packets?;
                Some(drops.queue_full as f64)
            })?,
        })
    }

    /// Whether the completion times agree.
    #[must_use]
    pub fn completion_agrees(&self) -> bool {
        self.completion.off() <= COMPLETION * self.completion.lab
    }

    /// Whether the resume times agree.
    #[must_use]
    pub fn resume_agrees(&self) -> bool {
        self.resume.off() <= resume_tolerance(self.resume.lab)
    }

    /// Whether there were as many timeouts.
    #[must_use]
    pub fn timeouts_agree(&self) -> bool {
        self.timeouts.off() == 0.0
    }

    /// In what the lab's own runs differ by more than the simulator may from the least of them.
    #[must_use]
    pub fn lab_disagrees_in(&self) -> Vec<&'static str> {
        self.judged(|pair, tolerance| {
            let (low, high) = pair.lab_spread;
            low == high || high - low <= tolerance(low)
        })
    }

    /// In what the simulator lies outside of the lab's own runs, each with its tolerance.
    #[must_use]
    pub fn outside_in(&self) -> Vec<&'static str> {
        self.judged(|pair, tolerance| {
            let (low, high) = pair.lab_spread;
            pair.sim >= low - tolerance(low) && pair.sim <= high + tolerance(high)
        })
    }

    /// Names of what does not hold, each by its own tolerance.
    fn judged(&self, holds: impl Fn(&Pair, Tolerance) -> bool) -> Vec<&'static str> {
        let all: [(&str, &Pair, Tolerance); 3] = [
            ("completion", &self.completion, |lab| COMPLETION * lab),
            ("resumption", &self.resume, resume_tolerance),
            ("timeouts", &self.timeouts, |_| 0.0),
        ];
        let failing = all
            .into_iter()
            .filter(|(_, pair, tolerance)| !holds(pair, *tolerance));
        failing.map(|(what, ..)| what).collect()
    }
}

/// How far off a value of the lab may be.
type Tolerance = fn(f64) -> f64;

/// How far off `lab` seconds until resumption may be.
fn resume_tolerance(lab: f64) -> f64 {
    (2.0 * DELAY.as_secs_f64()).max(RESUME * lab)
}

impl Pair {
    fn of(lab: &[Record], sim: &[Record], value: fn(&Record) -> Option<f64>) -> Option<Self> {
        let middle = |records: &[Record]| Some(median(records.iter().map(value))?.value);
        let spread = |records: &[Record]| {
            let values = records
                .iter()
                .map(|record| value(record).unwrap_or(f64::INFINITY));
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        Some(Self {
            lab: middle(lab)?,
            lab_spread: spread(lab),
            sim: middle(sim)?,
            sim_spread: spread(sim),
        })
    }

    /// By how much the simulator is off; nothing where it never came in either world.
    fn off(self) -> f64 {
        if self.sim == self.lab {
            0.0
        } else {
            (self.sim - self.lab).abs()
        }
    }

    /// By how much the simulator is off, as a signed share of the lab's.
    #[must_use]
    pub fn relative(self) -> Option<f64> {
        let share = (self.sim - self.lab) / self.lab;
        share.is_finite().then_some(share)
    }
}

fn completion(record: &Record) -> Option<f64> {
    record.succeeded().then_some(record.result.elapsed_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(lab: f64, sim: f64) -> Comparison {
        let pair = Pair {
            lab,
            lab_spread: (lab, lab),
            sim,
            sim_spread: (sim, sim),
        };
        Comparison {
            completion: pair,
            resume: pair,
            timeouts: pair,
            queue_drops: pair,
        }
    }

    #[test]
    fn completion_may_be_off_by_a_twentieth() {
        assert!(comparison(10.0, 10.49).completion_agrees());
        assert!(comparison(10.0, 9.51).completion_agrees());
        assert!(!comparison(10.0, 10.51).completion_agrees());
        assert!(!comparison(10.0, f64::INFINITY).completion_agrees());
    }

    #[test]
    fn resuming_may_be_off_by_a_round_trip_or_a_twentieth() {
        assert!(comparison(0.02, 0.059).resume_agrees());
        assert!(!comparison(0.02, 0.061).resume_agrees());
        assert!(comparison(10.0, 10.49).resume_agrees());
        assert!(!comparison(10.0, 10.51).resume_agrees());
        assert!(comparison(f64::INFINITY, f64::INFINITY).resume_agrees());
    }

    #[test]
    fn timeouts_must_be_as_many() {
        assert!(comparison(7.0, 7.0).timeouts_agree());
        assert!(!comparison(7.0, 8.0).timeouts_agree());
    }

    #[test]
    fn the_lab_is_held_against_itself_and_the_simulator_against_all_of_its_runs() {
        let mut both = comparison(40.0, 60.0);
        assert!(both.lab_disagrees_in().is_empty());
        assert_eq!(both.outside_in(), ["completion", "resumption", "timeouts"]);
        both.completion.lab_spread = (39.0, 58.0);
        assert_eq!(both.lab_disagrees_in(), ["completion"]);
        assert_eq!(both.outside_in(), ["resumption", "timeouts"]);
        both.timeouts.lab_spread = (40.0, 60.0);
        assert_eq!(both.lab_disagrees_in(), ["completion", "timeouts"]);
        assert_eq!(both.outside_in(), ["resumption"]);
        // A run that never came does not make everything its range.
        both.resume.lab_spread = (f64::INFINITY, f64::INFINITY);
        assert!(both.outside_in().contains(&"resumption"));
    }
}
