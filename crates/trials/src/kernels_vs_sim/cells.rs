//! The scenarios, drawn at random, and their runs.

use super::trial::KernelTrial;
use crate::lab_vs_sim::scenarios::timer_phase;
use outlast_base::random::Stream;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_scenario::Congestion;
use outlast_scenario::result::World;

/// The kernels that are compared with.
pub const KERNELS: [&str; 2] = ["6.1", "6.12"];
/// The simulator's name beside theirs.
pub const SIMULATOR: &str = "sim";
/// Runs of each scenario in the simulator, for each place of the timer wheel.
pub const SIM_REPEATS: u32 = 9;

/// Ends of the link at which `hold` stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Nowhere.
    Nowhere,
    /// At the fixed end of the link.
    Fixed,
    /// At the mobile's end.
    Mobile,
    /// At both ends.
    Both,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nowhere, Self::Fixed, Self::Mobile, Self::Both];

    /// Its name on the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "nowhere",
            Self::Fixed => "fixed end",
            Self::Mobile => "mobile's end",
            Self::Both => "both ends",
        }
    }
}

/// One scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    number: u32,
    rate_mbit_per_s: f64,
    delay_ms: u32,
    queue: u32,
    start_ms: u32,
    outage_ms: u32,
    /// Congestion control of both hosts.
    pub congestion: Congestion,
    is_download: bool,
    bytes: u64,
    /// Ends at which `hold` stands.
    pub hold: Place,
}

/// Scenarios that are drawn.
#[must_use]
pub fn count(extent: Extent) -> u32 {
    extent.choose(12, 160)
}

/// Places of the timer wheel at which each is carried out, at most.
const PHASES: u32 = 3;

/// Runs of each on each kernel.
#[must_use]
pub fn phases(extent: Extent) -> u32 {
    extent.choose(1, PHASES)
}

/// The scenarios.
#[must_use]
pub fn drawn(extent: Extent) -> Vec<Cell> {
    (0..count(extent)).map(Cell::draw).collect()
}

/// All runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for cell in drawn(extent) {
        for phase in 0..phases(extent) {
            let text = cell.text(phase);
            let job = |name: &str, index| Job::from_toml(cell.name(name), text.clone(), index);
            let in_sim = phase * SIM_REPEATS..(phase + 1) * SIM_REPEATS;
            jobs.extend(in_sim.map(|index| job(SIMULATOR, index).in_world(World::Sim)));
            let in_guests =
                KERNELS.map(|version| job(version, phase).in_guest(KernelTrial { version }));
            jobs.extend(in_guests);
        }
    }
    jobs
}

impl Cell {
    fn draw(number: u32) -> Self {
        let mut random = Stream::new(u64::from(number), "kernels-vs-sim");
        let mut choose = |values: &[u32]| values[(random.unit() * values.len() as f64) as usize];
        let rate_tenths = choose(&[5, 10, 20, 50, 100, 200, 500]);
        let delay_ms = choose(&[2, 5, 15, 33, 60, 120, 280]);
        let rate_mbit_per_s = f64::from(rate_tenths) / 10.0;
        // Packets of 1,500 bytes that a round trip holds.
        let in_round_trip = rate_mbit_per_s * 1e6 * 2.0 * f64::from(delay_ms) / 1e3 / 8.0 / 1500.0;
        let halves = choose(&[1, 2, 4, 8]);
        let outage_ms = choose(&[300, 500, 1_500, 4_000, 12_000, 30_000, 80_000])
            * choose(&[7, 8, 9, 10, 11, 12, 13])
            / 10;
        let start_ms = 50
            + choose(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) * 590
            + choose(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) * 59;
        let seconds = choose(&[3, 8]);
        Self {
            number,
            rate_mbit_per_s,
            delay_ms,
            queue: ((in_round_trip * f64::from(halves) / 2.0) as u32).max(8),
            start_ms,
            outage_ms,
            congestion: [Congestion::Cubic, Congestion::Bbr, Congestion::Reno]
                [choose(&[0, 1, 2]) as usize],
            is_download: choose(&[0, 1]) == 0,
            bytes: u64::from(rate_tenths * seconds) * 12_500,
            hold: Place::ALL[choose(&[0, 0, 1, 2, 3, 3]) as usize],
        }
    }

    /// The name of its runs on `kernel`.
    #[must_use]
    pub fn name(&self, kernel: &str) -> String {
        format!("{}: {}, {kernel}", self.number, self.label())
    }

    /// Its parameters, in words.
    #[must_use]
    pub fn label(&self) -> String {
        format!(
            "{} {}, {} Mbit/s, {} ms, queue {}, outage {} s after {} s, {} kB, hold {}",
            self.congestion,
            if self.is_download {
                "download"
            } else {
                "upload"
            },
            self.rate_mbit_per_s,
            2 * self.delay_ms,
            self.queue,
            f64::from(self.outage_ms) / 1e3,
            f64::from(self.start_ms) / 1e3,
            self.bytes / 1_000,
            self.hold.name(),
        )
    }

    /// The scenario file, the same for all. The kernel's timer wheel stands elsewhere in each scenario and phase.
    fn text(&self, phase: u32) -> String {
        let timer_phase_ms = timer_phase(self.number * PHASES + phase).as_millis();
        let direction = if self.is_download {
            "download"
        } else {
            "upload"
        };
        let at = |ends: [Place; 2]| {
            if ends.contains(&self.hold) {
                "hold"
            } else {
                "none"
            }
        };
        let deadline_s = (self.start_ms + self.outage_ms * 4) / 1_000 + 120;
        format!(
            "name = \"cell {}\"\n[link]\nrate = \"{} Mbit/s\"\ndelay = \"{} ms\"\nqueue = {}\n[link.outages]\nprocess = \"single\"\n\
             start = \"{} ms\"\nlength = \"{} ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"{} B\"\ndirection = \"{direction}\"\n\
             [stack]\ncongestion = \"{}\"\nhost_latency = \"20 us\"\ntimer_phase = \"{timer_phase_ms} ms\"\n[outlast]\ngateway = \"{}\"\nmobile = \"{}\"\n[run]\nseed = 1\n\
             deadline = \"{deadline_s} s\"\n",
            self.number,
            self.rate_mbit_per_s,
            self.delay_ms,
            self.queue,
            self.start_ms,
            self.outage_ms,
            self.bytes,
            self.congestion,
            at([Place::Fixed, Place::Both]),
            at([Place::Mobile, Place::Both]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_sound_and_its_own() {
        let cells = drawn(Extent::Full);
        for (place, cell) in cells.iter().enumerate() {
            // A text that is no sound scenario panics.
            let _ = Job::from_toml(cell.name("x"), cell.text(0), 0);
            assert!(!cells[..place].contains(cell));
        }
        for place in Place::ALL {
            assert!(cells.iter().filter(|cell| cell.hold == place).count() > 10);
        }
    }
}
