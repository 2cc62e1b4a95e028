//! The cells of the race: what helps, which way the transfer goes, and how the link is away.

use super::call::Call;
use super::trial::{BYTES, DELAY, QUEUE, RATE_MBIT_PER_S, RaceTrial, WARM_UP};
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::Congestion::{Bbr, Cubic, Reno};
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
    /// The role `host` on the mobile host, which wakes any peer.
    AgentThatWakes,
    /// A packet of the mobile host's, sent when its link is back.
    Calling(Call),
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

    /// What may wake a sender beyond the link, in the order of the table.
    pub const OF_REMOTE: [Self; 8] = [
        Self::Plain,
        Self::Calling(Call::Acknowledgements),
        Self::Calling(Call::Unreachable),
        Self::Calling(Call::SmallerMtu),
        Self::Calling(Call::AcknowledgementAndSmallerMtu),
        Self::AgentThatWakes,
        Self::HoldAtMobile,
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
            Self::AgentThatWakes => "agent at the mobile, wakes_peers",
            Self::Calling(Call::Acknowledgements) => "four acknowledgements",
            Self::Calling(Call::Unreachable) => "eight ICMP errors, unreachable",
            Self::Calling(Call::SmallerMtu) => "ICMP error, smaller path MTU",
            Self::Calling(Call::AcknowledgementAndSmallerMtu) => {
                "acknowledgement and smaller path MTU"
            }
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
            Self::AgentThatWakes => "such a daemon on the mobile host, told to wake peers",
            Self::Calling(_) => {
                "a program on the mobile host that knows what was acknowledged last"
            }
        }
    }

    /// Whether some milliseconds decide what is claimed of it.
    pub(super) const fn is_judged(self) -> bool {
        matches!(
            self,
            Self::HoldAtBoth | Self::HoldAtMobile | Self::AgentAtBoth
        )
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
    /// Whether both hosts use selective acknowledgements.
    pub sack: bool,
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
        Cut::MobileCarrier => "no carrier at the mobile host",
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
                    sack: true,
                    direction,
                    cut,
                    outage: Duration::from_secs(seconds),
                }));
            }
        }
    }
    cells
}

/// The cells of senders beyond the link, in the order of the table.
#[must_use]
pub fn remote_cells(extent: Extent) -> Vec<Cell> {
    // The first ends before a sender's first timeout.
    let lengths: &[u64] = extent.choose(&[3_000], &[200, 1_000, 3_000, 10_000, 30_000, 180_000]);
    let mut cells = Vec::new();
    for &millis in lengths {
        for sack in [true, false] {
            cells.extend([Cubic, Bbr, Reno].map(|congestion| Cell {
                congestion,
                sack,
                direction: Direction::Download,
                cut: Cut::Carrier,
                outage: Duration::from_millis(millis),
            }));
        }
    }
    cells
}

/// Runs of each cell with each contestant.
#[must_use]
pub fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// The runs of these cells, with each of these.
#[must_use]
pub fn jobs(extent: Extent, cells: &[Cell], contestants: &[Contestant]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for cell in cells {
        for contestant in contestants {
            let runs = cell.repetitions(extent);
            jobs.extend((0..runs).map(|index| cell.job(*contestant, index)));
        }
    }
    jobs
}

/// An outage that is longer than this is tried once.
const MINUTES: Duration = Duration::from_secs(60);

impl Cell {
    fn repetitions(&self, extent: Extent) -> u32 {
        match self.outage > MINUTES {
            true => 1,
            false => repetitions(extent),
        }
    }

    /// Its name with this contestant.
    #[must_use]
    pub fn name(&self, contestant: Contestant) -> String {
        let Self {
            congestion,
            sack,
            direction,
            cut,
            outage,
        } = self;
        let sack = if *sack { "" } else { " without SACK" };
        let (cut, seconds) = (title_of(*cut), outage.as_secs_f64());
        let title = contestant.title();
        format!("{congestion}{sack}, {direction}, {cut}, {seconds} s, {title}")
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
            sack: self.sack,
            ip: IpVersion::V4,
            gateway,
            mobile,
            seed: 1,
            deadline: trial.length() * 2,
        };
        Job::new(name, &setting, index).live(Trial::Race(trial))
    }
}
