//! The cells of the matrix, and the runs of each.

use super::daemon::Duty;
use super::programs::{Program, TICK_MS};
use super::trial::{Arrangement, BYTES, DELAY, ProgramTrial, QUEUE, RATE_MBIT_PER_S};
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::record::Record;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};
use outlast_testbed::site::Cut;
use std::fmt;

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    /// What crosses the link.
    pub program: Program,
    /// How it crosses.
    pub stack: Stack,
    /// How packets get to the daemon.
    pub path: DataPath,
    /// How the link goes away.
    pub cut: Cut,
    /// For how long.
    pub outage: Duration,
    /// The daemon starts a second after the link went away, as one that is restarted.
    pub starts_late: bool,
}

/// How packets get to the daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DataPath {
    /// As the daemon sees fit: by eBPF where that can be had.
    Auto,
    /// All of them through user space.
    Nfqueue,
}

impl DataPath {
    /// The name of the data path in `outlast run --data-path`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Nfqueue => "nfqueue",
        }
    }
}

/// How the hosts' TCP is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stack {
    /// Congestion control.
    pub congestion: Congestion,
    /// Network protocol.
    pub ip: IpVersion,
    /// Selective acknowledgements.
    pub sack: bool,
}

impl Stack {
    /// As most hosts have it.
    pub const USUAL: Self = Self {
        congestion: Congestion::Cubic,
        ip: IpVersion::V4,
        sack: true,
    };
    /// The stacks besides [`Self::USUAL`], of which a sample is measured.
    pub const OTHERS: [Self; 3] = [
        Self {
            congestion: Congestion::Bbr,
            ..Self::USUAL
        },
        Self {
            ip: IpVersion::V6,
            ..Self::USUAL
        },
        Self {
            sack: false,
            ..Self::USUAL
        },
    ];
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            congestion,
            ip,
            sack,
        } = self;
        let version = match ip {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        };
        write!(f, "{version}, {congestion}")?;
        if *sack {
            Ok(())
        } else {
            write!(f, ", no SACK")
        }
    }
}

/// Every way to go away.
pub const CUTS: [Cut; 3] = [Cut::Carrier, Cut::Neighbour, Cut::BlackHole];

/// From this length on an outage is long enough to be noticed without carrier loss.
pub const NOTICEABLE: Duration = Duration::from_secs(5);

/// The cells, in the order of the table.
#[must_use]
pub fn cells(extent: Extent) -> Vec<Cell> {
    let mut cells = Vec::new();
    for cut in CUTS {
        for &seconds in lengths(extent, cut) {
            for (program, stack, path) in series(extent, cut, seconds) {
                cells.push(Cell {
                    program,
                    stack,
                    path,
                    cut,
                    outage: Duration::from_secs(seconds),
                    starts_late: false,
                });
            }
        }
    }
    let is_sample = |cell: &&Cell| {
        let is_long = cell.outage.as_secs() == extent.choose(6, 10);
        let is_usual = (cell.stack, cell.cut) == (Stack::USUAL, Cut::Carrier);
        is_long && is_usual && [Program::Curl, Program::RsyncUp].contains(&cell.program)
    };
    let late: Vec<Cell> = cells.iter().filter(is_sample).copied().collect();
    cells.extend(late.into_iter().map(|cell| Cell {
        starts_late: true,
        ..cell
    }));
    cells
}

/// Lengths of outages in seconds.
const fn lengths(extent: Extent, cut: Cut) -> &'static [u64] {
    match (extent, cut) {
        (Extent::Full, _) => &[1, 10, 60],
        (Extent::Quick, Cut::Carrier) => &[1, 6],
        (Extent::Quick, Cut::MobileCarrier | Cut::Neighbour | Cut::BlackHole) => &[6],
    }
}

fn series(extent: Extent, cut: Cut, seconds: u64) -> Vec<(Program, Stack, DataPath)> {
    let with = |stack, path| move |program| (program, stack, path);
    let usual = with(Stack::USUAL, DataPath::Auto);
    match extent {
        Extent::Quick => {
            let few = [Program::Curl, Program::RsyncUp, Program::WebSocket];
            let once = [
                Program::ContainedScp,
                Program::Redis,
                Program::Ssh,
                Program::Datagrams,
            ];
            let is_once = cut == Cut::Carrier && seconds == 6;
            let once = once.into_iter().filter(|_| is_once);
            few.into_iter().chain(once).map(usual).collect()
        }
        Extent::Full => {
            let sample = [Program::Curl, Program::IperfUp];
            let others = Stack::OTHERS.map(|stack| sample.map(with(stack, DataPath::Auto)));
            let all = Program::ALL.map(usual).into_iter();
            all.chain(others.into_iter().flatten())
                .chain(sample.map(with(Stack::USUAL, DataPath::Nfqueue)))
                .collect()
        }
    }
}

/// The runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    cells(extent)
        .iter()
        .flat_map(|cell| {
            // Where there is no daemon, packets take no path to it.
            let is_usual = cell.path == DataPath::Auto && !cell.starts_late;
            (0..cell.runs(extent)).flat_map(move |index| {
                let control = is_usual.then(|| cell.job(false, index));
                control.into_iter().chain([cell.job(true, index)])
            })
        })
        .collect()
}

/// Runs of a cell with datagrams: the latest of hundreds counts, so that single runs scatter.
pub const DATAGRAM_RUNS: u32 = 5;

/// How often a cell is run again that one run leaves in doubt.
pub const FURTHER_RUNS: u32 = 2;

/// Runs of each other cell, of which medians are compared.
#[must_use]
pub fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

impl Cell {
    /// Its name with or without the daemon. The control is the same for every data path.
    #[must_use]
    pub fn name(&self, assisted: bool) -> String {
        let Self {
            program,
            stack,
            outage,
            ..
        } = self;
        let (title, direction, seconds) = (program.title(), program.direction(), outage.as_secs());
        let by = cut_title(self.cut);
        let who = match (assisted, self.path) {
            (false, _) => "control",
            (true, DataPath::Auto) => "daemon",
            (true, DataPath::Nfqueue) => "daemon by nfqueue",
        };
        let when = match assisted && self.starts_late {
            true => " that starts in the outage",
            false => "",
        };
        format!("{title}, {direction}, {stack}, {by}, {seconds} s, {who}{when}")
    }

    /// How often it is run, with the daemon and without.
    fn runs(&self, extent: Extent) -> u32 {
        match self.program {
            Program::Datagrams => DATAGRAM_RUNS,
            _ => repetitions(extent),
        }
    }

    /// The runs that follow those of [`jobs`] where these leave the cell in doubt.
    pub(super) fn further_jobs(&self, extent: Extent) -> impl Iterator<Item = Job> {
        let first = self.runs(extent);
        (first..first + FURTHER_RUNS)
            .flat_map(|index| [false, true].map(|assisted| self.job(assisted, index)))
    }

    /// Whether `runs`, which are its own with the daemon, are more than it has at first.
    pub(super) fn is_run_again(&self, runs: &[Record], extent: Extent) -> bool {
        runs.len() > self.runs(extent) as usize
    }

    fn job(&self, assisted: bool, index: u32) -> Job {
        self.job_of(self.name(assisted), assisted.then_some(Duty::Hold), index)
    }

    /// The run of this number with that daemon, by that name.
    pub(crate) fn job_of(&self, name: String, duty: Option<Duty>, index: u32) -> Job {
        self.job_in(Arrangement::AtSender, name, duty, index)
    }

    /// The run of this number with the daemon there, by that name.
    pub(crate) fn job_in(
        &self,
        arrangement: Arrangement,
        name: String,
        duty: Option<Duty>,
        index: u32,
    ) -> Job {
        let trial = ProgramTrial {
            cell: *self,
            duty,
            arrangement,
        };
        let setting = self.setting(&trial, name.clone());
        Job::new(name, &setting, index).live(Trial::Programs(trial))
    }

    /// The link, the outage and the payload as a scenario has them; which programs run is beyond it.
    fn setting(&self, trial: &ProgramTrial, name: String) -> Setting {
        let direction = self.program.direction();
        let task = if self.program.is_transfer() {
            Task::Bulk {
                bytes: ByteCount(BYTES),
                direction,
            }
        } else {
            let interval = Duration::from_millis(TICK_MS);
            let times = u32::try_from(trial.ticks()).unwrap_or(u32::MAX);
            Task::Interactive {
                interval,
                duration: interval * times,
            }
        };
        let at = |here| match trial.duty {
            Some(duty) if here == trial.keeper() => duty.mechanism(),
            _ if here == Direction::Upload && trial.has_mobiles_half() => Mechanism::MTcp,
            _ => Mechanism::None,
        };
        Setting {
            name,
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start: Duration::from_secs(2),
                length: self.outage,
            },
            task,
            congestion: self.stack.congestion,
            sack: self.stack.sack,
            ip: self.stack.ip,
            gateway: at(Direction::Download),
            mobile: at(Direction::Upload),
            seed: 1,
            deadline: trial.deadline(),
        }
    }
}

/// What readers call it.
#[must_use]
pub const fn cut_title(cut: Cut) -> &'static str {
    match cut {
        Cut::Carrier => "carrier",
        Cut::MobileCarrier => "carrier of the mobile host",
        Cut::Neighbour => "neighbour",
        Cut::BlackHole => "black hole",
    }
}
