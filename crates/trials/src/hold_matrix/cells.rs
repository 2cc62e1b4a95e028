//! The cells of the matrix, and the runs of each.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

/// Rate of the link.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Packets that may wait.
pub const QUEUE: u32 = 75;

/// When the outage of the first run of a cell begins, and how much later that of each further one:
/// another moment of the congestion control's cycle.
const START: Duration = Duration::from_secs(3);
const LATER: Duration = Duration::from_millis(370);
/// More than the link carries until the last run's outage, so that there is something left.
const BYTES: ByteCount = ByteCount(8_000_000);

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    /// Congestion control.
    pub congestion: Congestion,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Which way the data go.
    pub direction: Direction,
    /// Length of the outage.
    pub outage: Duration,
    /// Network protocol.
    pub ip: IpVersion,
}

/// Where `hold` is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// Nowhere: the control.
    None,
    /// At both ends of the link.
    Both,
    /// At the fixed end only.
    Gateway,
    /// At the mobile only.
    Mobile,
}

/// The cells, in the order of the table.
#[must_use]
pub fn cells(extent: Extent) -> Vec<Cell> {
    use Congestion::{Bbr, Cubic, Reno};
    let (congestions, sacks, outages): (&[Congestion], &[bool], &[u64]) = match extent {
        Extent::Quick => (&[Cubic, Bbr], &[true], &[1, 3]),
        Extent::Full => (&[Cubic, Bbr, Reno], &[true, false], &[1, 10, 30]),
    };
    let mut cells = Vec::new();
    for &congestion in congestions {
        for &sack in sacks {
            for direction in [Direction::Download, Direction::Upload] {
                let cell = |&seconds| {
                    let outage = Duration::from_secs(seconds);
                    Cell {
                        congestion,
                        sack,
                        direction,
                        outage,
                        ip: IpVersion::V4,
                    }
                };
                cells.extend(outages.iter().map(cell));
            }
        }
    }
    // IPv6 takes another way through parsing and checksums only: a sample of the cells is enough.
    let sample = |cell: &&Cell| {
        let seconds = cell.outage.as_secs();
        cell.sack && cell.congestion != Reno && seconds == extent.choose(1, 10)
    };
    let six: Vec<Cell> = cells
        .iter()
        .filter(sample)
        .map(|&cell| Cell {
            ip: IpVersion::V6,
            ..cell
        })
        .collect();
    cells.extend(six);
    cells
}

/// Where `hold` is put.
#[must_use]
pub fn placements(extent: Extent) -> &'static [Placement] {
    extent.choose(
        &[Placement::None, Placement::Both],
        &[
            Placement::None,
            Placement::Both,
            Placement::Gateway,
            Placement::Mobile,
        ],
    )
}

/// Runs of each cell and placement.
#[must_use]
pub fn repeats(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// The runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for cell in cells(extent) {
        for &placement in placements(extent) {
            let run = |index| {
                let setting = cell.setting(placement, index);
                Job::new(cell.name(placement), &setting, index).watching(Watch::Reconnections)
            };
            jobs.extend((0..repeats(extent)).map(run));
        }
    }
    jobs
}

impl Cell {
    /// Its name with `hold` at a place.
    #[must_use]
    pub fn name(&self, placement: Placement) -> String {
        let Self {
            congestion,
            direction,
            ip,
            ..
        } = self;
        let (sack, seconds) = (on_or_off(self.sack), self.outage.as_secs());
        format!(
            "{congestion}, SACK {sack}, {direction}, {seconds} s, {ip}, {}",
            placement.title()
        )
    }

    /// What stands above its rows.
    #[must_use]
    pub fn group(&self) -> String {
        let version = if self.ip == IpVersion::V6 {
            ", IPv6"
        } else {
            ""
        };
        format!(
            "{}, SACK {}{version}",
            self.congestion,
            on_or_off(self.sack)
        )
    }

    /// What stands beside its row.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}, {} s", self.direction, self.outage.as_secs())
    }

    fn setting(&self, placement: Placement, index: u32) -> Setting {
        let at = |is_there| {
            if is_there {
                Mechanism::Hold
            } else {
                Mechanism::None
            }
        };
        let start = START + LATER * index;
        // An unaided sender may wait as long as the outage was, and twice that.
        let deadline = start + self.outage * 4 + Duration::from_secs(20);
        Setting {
            name: format!("{}, {}", self.name(placement), index + 1),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start,
                length: self.outage,
            },
            task: Task::Bulk {
                bytes: BYTES,
                direction: self.direction,
            },
            congestion: self.congestion,
            sack: self.sack,
            ip: self.ip,
            gateway: at(matches!(placement, Placement::Both | Placement::Gateway)),
            mobile: at(matches!(placement, Placement::Both | Placement::Mobile)),
            seed: 1,
            deadline,
        }
    }
}

impl Placement {
    /// What readers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "without Outlast",
            Self::Both => "hold at both ends",
            Self::Gateway => "hold at the fixed end",
            Self::Mobile => "hold at the mobile",
        }
    }

    /// The short title, for where it is clear that `hold` is meant.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::None => "nowhere",
            Self::Both => "both ends",
            Self::Gateway => "fixed end",
            Self::Mobile => "mobile",
        }
    }

    /// Its name for programs.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none_s",
            Self::Both => "both_s",
            Self::Gateway => "gateway_s",
            Self::Mobile => "mobile_s",
        }
    }
}

pub(super) const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
