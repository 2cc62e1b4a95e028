//! The cells of the race: what helps, which way the transfer goes, and how the link is away.

use super::trial::{BYTES, DELAY, QUEUE, RATE_MBIT_PER_S, RaceTrial, WARM_UP};
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::Congestion::{Bbr, Cubic};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};
use outlast_testbed::site::Cut;

/// What is said to help a transfer over an outage.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Contestant {
    /// Nothing: Linux as it is.
    Plain,
    /// Two settings of the kernel's: the timeout grows to one second at most, and never is the last.
    ShortTimeout,
    /// Multipath TCP with its one path.
    MultipathTcp,
    /// QUIC as quinn has it.
    Quic,
    /// `hold` on the router in front of the link.
    HoldAtGateway,
    /// `hold` on the mobile host.
    HoldAtMobile,
    /// `hold` at both ends of the link.
    HoldAtBoth,
    /// The role `host` on the mobile host.
    AgentAtMobile,
    /// The role `host` on both hosts.
    AgentAtBoth,
}

impl Contestant {
    /// Every one, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Plain,
        Self::ShortTimeout,
        Self::MultipathTcp,
        Self::Quic,
        Self::HoldAtGateway,
        Self::HoldAtMobile,
        Self::HoldAtBoth,
        Self::AgentAtMobile,
        Self::AgentAtBoth,
    ];

    /// For tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Plain => "plain Linux",
            Self::ShortTimeout => "tcp_rto_max_ms = 1000",
            Self::MultipathTcp => "MPTCP, one path",
            Self::Quic => "QUIC (quinn)",
            Self::HoldAtGateway => "hold at the router",
            Self::HoldAtMobile => "hold at the mobile",
            Self::HoldAtBoth => "hold at both ends",
            Self::AgentAtMobile => "agent at the mobile",
            Self::AgentAtBoth => "agent at both hosts",
        }
    }

    /// What somebody has to do who wants it.
    #[must_use]
    pub const fn needs(self) -> &'static str {
        match self {
            Self::Plain => "nothing",
            Self::ShortTimeout => "Linux 6.15 and two sysctls at each sender",
            Self::MultipathTcp => "an application that asks for it, at both hosts",
            Self::Quic => "an application that speaks it, at both hosts",
            Self::HoldAtGateway => "a daemon on the router in front of the link",
            Self::HoldAtMobile => "a daemon on the mobile host",
            Self::HoldAtBoth => "a daemon on that router and one on the mobile host",
            Self::AgentAtMobile => "a daemon on the mobile host, no packet passes through it",
            Self::AgentAtBoth => "such a daemon on both hosts",
        }
    }

    const fn gateways(self) -> (Mechanism, Mechanism) {
        let (none, hold) = (Mechanism::None, Mechanism::Hold);
        match self {
            Self::HoldAtGateway => (hold, none),
            Self::HoldAtMobile => (none, hold),
            Self::HoldAtBoth => (hold, hold),
            _ => (none, none),
        }
    }
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    /// The sender's.
    pub congestion: Congestion,
    /// Of the transfer.
    pub direction: Direction,
    /// How the link goes away.
    pub cut: Cut,
    /// For how long.
    pub outage: Duration,
}

/// For tables.
#[must_use]
pub const fn title_of(cut: Cut) -> &'static str {
    match cut {
        Cut::Carrier => "no carrier",
        Cut::Neighbour => "silent neighbour",
        Cut::BlackHole => "black hole",
    }
}

/// The cells, in the order of the table.
#[must_use]
pub fn cells(extent: Extent) -> Vec<Cell> {
    let lengths: &[u64] = extent.choose(&[15], &[3, 15, 60]);
    let congestions: &[Congestion] = extent.choose(&[Cubic], &[Cubic, Bbr]);
    let mut cells = Vec::new();
    for cut in [Cut::BlackHole, Cut::Carrier] {
        for direction in [Direction::Download, Direction::Upload] {
            for &congestion in congestions {
                cells.extend(lengths.iter().map(|&seconds| Cell {
                    congestion,
                    direction,
                    cut,
                    outage: Duration::from_secs(seconds),
                }));
            }
        }
    }
    cells
}

/// Runs of each cell with each contestant.
#[must_use]
pub fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// The runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for cell in cells(extent) {
        for contestant in Contestant::ALL {
            jobs.extend((0..repetitions(extent)).map(|index| cell.job(contestant, index)));
        }
    }
    jobs
}

impl Cell {
    /// Its name with this contestant.
    #[must_use]
    pub fn name(&self, contestant: Contestant) -> String {
        let Self {
            congestion,
            direction,
            cut,
            outage,
        } = self;
        let (cut, seconds) = (title_of(*cut), outage.as_secs());
        let title = contestant.title();
        format!("{congestion}, {direction}, {cut}, {seconds} s, {title}")
    }

    fn job(&self, contestant: Contestant, index: u32) -> Job {
        let name = self.name(contestant);
        let trial = RaceTrial {
            cell: *self,
            contestant,
        };
        let (gateway, mobile) = contestant.gateways();
        let setting = Setting {
            name: name.clone(),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start: WARM_UP,
                length: self.outage,
            },
            task: Task::Bulk {
                bytes: ByteCount(BYTES),
                direction: self.direction,
            },
            congestion: self.congestion,
            sack: true,
            ip: IpVersion::V4,
            gateway,
            mobile,
            seed: 1,
            deadline: trial.length() * 2,
        };
        Job::new(name, &setting, index).live(Trial::Race(trial))
    }
}
