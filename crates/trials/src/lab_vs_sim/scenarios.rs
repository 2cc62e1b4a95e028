//! The scenarios, chosen before any was run, and their runs in both worlds.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::result::World;
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism, Stack};

/// Rate of the link.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Packets that may wait.
pub const QUEUE: u32 = 75;
/// What the lab's hosts take for a packet, for the simulator: where `hold` is at both ends, the lab
/// resumes 0.1 to 0.2 ms later than a simulator whose hosts take no time.
pub const HOST_LATENCY: Duration = Duration::from_micros(150);
/// When the outage begins.
const START: Duration = Duration::from_secs(3);
/// Almost half of it is left when the outage begins.
const BYTES: ByteCount = ByteCount(6_000_000);
/// Lengths of the outage in ms.
const OUTAGES_MS: [u64; 6] = [200, 1_000, 3_000, 10_000, 30_000, 90_000];

/// What is compared: one scenario file, carried out in both worlds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Case {
    /// Congestion control.
    pub congestion: Congestion,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Which way the data go.
    pub direction: Direction,
    /// Length of the outage.
    pub outage: Duration,
    /// Whether `hold` is at both ends of the link.
    pub hold: bool,
    /// Where the timer wheels stand.
    timer_phase: Duration,
}

/// The scenarios, in the order of the table.
///
/// The quick ones pair each length with two stacks that differ in everything - direction,
/// congestion control and SACK -, so that every value of each comes with short outages and with
/// long ones; the full ones are all combinations.
#[must_use]
pub fn cases(extent: Extent) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, &length) in OUTAGES_MS.iter().enumerate() {
        for (direction, congestion, sack) in stacks(extent, index) {
            for hold in [false, true] {
                let number = u32::try_from(cases.len()).unwrap_or(u32::MAX) + 1;
                cases.push(Case {
                    congestion,
                    sack,
                    direction,
                    outage: Duration::from_millis(length),
                    hold,
                    timer_phase: timer_phase(number),
                });
            }
        }
    }
    cases
}

fn stacks(extent: Extent, outage: usize) -> Vec<(Direction, Congestion, bool)> {
    use Congestion::{Cubic, Reno};
    use Direction::{Download, Upload};
    let downloads = [(Cubic, true), (Cubic, false), (Reno, true), (Reno, false)];
    let pair = |(congestion, sack): (Congestion, bool)| {
        let other = if congestion == Cubic { Reno } else { Cubic };
        [(Download, congestion, sack), (Upload, other, !sack)]
    };
    match extent {
        Extent::Quick => pair(downloads[outage % downloads.len()]).to_vec(),
        Extent::Full => downloads.into_iter().flat_map(pair).collect(),
    }
}

/// Multiples of the golden section lie evenly in the turn of the wheel, however many there are.
pub(crate) fn timer_phase(number: u32) -> Duration {
    let turn = Stack::TIMER_TURN.as_millis() as f64;
    let part = (f64::from(number) * 0.618_033_988_7).fract();
    Duration::from_millis((part * turn) as u64)
}

/// Runs of each scenario in the lab, where no run is like the other.
#[must_use]
pub fn repeats(extent: Extent) -> u32 {
    extent.choose(3, 5)
}

/// Runs of each scenario in the simulator: the same to the bit each time, but for the moment of a
/// millisecond at which it begins.
pub const SIM_REPEATS: u32 = 9;

/// The runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for case in cases(extent) {
        let job =
            |world, index| Job::from_toml(case.name(world), case.text(), index).in_world(world);
        jobs.extend((0..SIM_REPEATS).map(|index| job(World::Sim, index)));
        jobs.extend((0..repeats(extent)).map(|index| job(World::Lab, index)));
    }
    jobs
}

impl Case {
    /// The name of its runs in `world`.
    #[must_use]
    pub fn name(&self, world: World) -> String {
        format!("{}, {}, {world}", self.group(), self.label())
    }

    /// The stack.
    #[must_use]
    pub fn group(&self) -> String {
        let Self {
            congestion,
            direction,
            ..
        } = self;
        format!("{congestion}, SACK {}, {direction}", on_or_off(self.sack))
    }

    /// The outage, and what is done about it.
    #[must_use]
    pub fn label(&self) -> String {
        let hold = if self.hold { "hold" } else { "unaided" };
        format!("{} s, {hold}", self.outage.as_secs_f64())
    }

    /// The scenario file, the same for both worlds.
    fn text(&self) -> String {
        let hold = if self.hold {
            Mechanism::Hold
        } else {
            Mechanism::None
        };
        let setting = Setting {
            name: format!("{}, {}", self.group(), self.label()),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start: START,
                length: self.outage,
            },
            task: Task::Bulk {
                bytes: BYTES,
                direction: self.direction,
            },
            congestion: self.congestion,
            sack: self.sack,
            ip: IpVersion::V4,
            gateway: hold,
            mobile: hold,
            seed: 1,
            // A sender that misses the link's return may wait as long again, and twice that.
            deadline: START + self.outage * 4 + Duration::from_secs(60),
        };
        let phase = self.timer_phase.as_millis();
        let latency = HOST_LATENCY.as_micros();
        let (head, tail) = (
            "[stack]\n",
            format!("timer_phase = \"{phase} ms\"\nhost_latency = \"{latency} us\"\n"),
        );
        setting
            .to_toml()
            .replacen(head, &format!("{head}{tail}"), 1)
    }
}

pub(super) const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_scenarios_have_every_value_of_everything_with_every_other() {
        let cases = cases(Extent::Quick);
        assert_eq!(cases.len(), 24);
        let count = |holds: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| holds(case)).count();
        assert_eq!(count(&|case| case.congestion == Congestion::Cubic), 12);
        assert_eq!(count(&|case| case.sack), 12);
        assert_eq!(count(&|case| case.direction == Direction::Upload), 12);
        assert_eq!(count(&|case| case.hold), 12);
        for length in OUTAGES_MS {
            let length = Duration::from_millis(length);
            assert_eq!(count(&|case| case.outage == length), 4);
        }
    }

    #[test]
    fn the_full_scenarios_are_all_there_are() {
        let cases = cases(Extent::Full);
        assert_eq!(cases.len(), 6 * 16);
        for (index, case) in cases.iter().enumerate() {
            let same = |other: &&Case| other.name(World::Lab) == case.name(World::Lab);
            assert_eq!(cases.iter().filter(same).count(), 1, "{index}");
        }
    }

    #[test]
    fn both_worlds_have_the_same_file_and_wheels() {
        for job in jobs(Extent::Quick) {
            assert!(job.scenario.stack.timer_phase.is_some(), "{}", job.text);
        }
        let jobs = jobs(Extent::Quick);
        let first = &jobs[..(SIM_REPEATS + repeats(Extent::Quick)) as usize];
        assert!(first.iter().all(|job| job.text == first[0].text));
        let in_lab = first.iter().filter(|job| job.world == World::Lab).count();
        assert_eq!(in_lab, 3);
    }
}
