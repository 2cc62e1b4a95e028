//! The cells: what crosses the link, where the gateways stand, and how long the link is away.

use super::trial::{DELAY, QUEUE, RATE_MBIT_PER_S, StrangerTrial};
use crate::gateway_matrix::cells::DataPath;
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

/// What crosses the link, none of which a gateway can read.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stranger {
    /// A transfer over QUIC, as quinn has it.
    Quic,
    /// A transfer over QUIC, as aioquic has it.
    Aioquic,
    /// A transfer over TCP between two hosts behind the ends of a tunnel of WireGuard's, as the TCP model has it.
    WireGuard,
    /// A transfer over SCTP in UDP, as sctp-proto has it.
    Sctp,
    /// 100 packets of 1,000 bytes a second: ESP in UDP.
    Esp,
    /// 50 packets of 172 bytes a second: RTP.
    Rtp,
    /// Names that are asked for.
    Dns,
}

/// Where a gateway with `hold` stands.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Placement {
    /// Nowhere.
    None,
    /// At the end of the link where the data, or the question, comes from.
    Near,
    /// At the other end.
    Far,
    /// At both ends.
    Both,
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    /// What crosses the link.
    pub stranger: Stranger,
    /// Where gateways stand.
    pub placement: Placement,
    /// How packets get to them.
    pub path: DataPath,
    /// For how long the link is away.
    pub outage: Duration,
    /// Whether each end of the link knows for good where the other one is.
    pub is_introduced: bool,
}

impl Stranger {
    /// Every one, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Quic,
        Self::Aioquic,
        Self::WireGuard,
        Self::Sctp,
        Self::Esp,
        Self::Rtp,
        Self::Dns,
    ];

    /// For tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Quic => "QUIC (quinn)",
            Self::Aioquic => "QUIC (aioquic)",
            Self::WireGuard => "TCP in WireGuard",
            Self::Sctp => "SCTP in UDP",
            Self::Esp => "ESP in UDP",
            Self::Rtp => "RTP",
            Self::Dns => "DNS",
        }
    }

    /// Which way the data, or the question, goes.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Dns => Direction::Upload,
            _ => Direction::Download,
        }
    }

    /// Whether it takes as much of the link as it can have.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        match self {
            Self::Quic | Self::Aioquic | Self::WireGuard | Self::Sctp => true,
            Self::Esp | Self::Rtp | Self::Dns => false,
        }
    }

    /// Whether each packet is of use for a moment only.
    #[must_use]
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::Esp | Self::Rtp)
    }
}

impl Placement {
    /// For tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Near => "sender's end",
            Self::Far => "receiver's end",
            Self::Both => "both ends",
        }
    }

    /// Whether there is a gateway at this end of the link, for data that goes this way: the mobile
    /// host's end if `at_mobile`.
    #[must_use]
    pub fn has(self, at_mobile: bool, direction: Direction) -> bool {
        let is_near = at_mobile == (direction == Direction::Upload);
        match self {
            Self::None => false,
            Self::Near => is_near,
            Self::Far => !is_near,
            Self::Both => true,
        }
    }
}

/// The cells, in the order of the table.
#[must_use]
pub fn cells(extent: Extent) -> Vec<Cell> {
    let lengths: &[u64] = extent.choose(&[4], &[1, 4, 20]);
    let mut cells = Vec::new();
    for stranger in Stranger::ALL {
        for &seconds in lengths {
            let outage = Duration::from_secs(seconds);
            let cell = |(placement, path), is_introduced| Cell {
                stranger,
                placement,
                path,
                outage,
                is_introduced,
            };
            cells.extend(ways(extent, stranger).map(|way| cell(way, false)));
            cells.extend(ways_of_introduced(stranger).map(|way| cell(way, true)));
        }
    }
    cells
}

/// QUIC is to resume within a round trip and 50 ms of link-up, where no question for a neighbour comes first.
fn ways_of_introduced(stranger: Stranger) -> impl Iterator<Item = (Placement, DataPath)> {
    let placements: &[Placement] = match stranger {
        Stranger::Quic | Stranger::Aioquic => &[Placement::None, Placement::Near, Placement::Both],
        _ => &[],
    };
    placements
        .iter()
        .map(|placement| (*placement, DataPath::Auto))
}

fn ways(extent: Extent, stranger: Stranger) -> impl Iterator<Item = (Placement, DataPath)> {
    let auto = |placement| (placement, DataPath::Auto);
    let mut ways = vec![
        auto(Placement::None),
        auto(Placement::Near),
        auto(Placement::Both),
    ];
    let is_full = extent == Extent::Full;
    if is_full {
        ways.push(auto(Placement::Far));
    }
    if is_full || matches!(stranger, Stranger::Quic | Stranger::Rtp) {
        ways.push((Placement::Near, DataPath::Nfqueue));
    }
    ways.into_iter()
}

/// Runs of each cell.
#[must_use]
pub fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 5)
}

/// The runs.
#[must_use]
pub fn jobs(extent: Extent) -> Vec<Job> {
    let of_cell = |cell: &Cell| {
        let cell = *cell;
        (0..cell.repetitions(extent)).map(move |index| cell.job(index))
    };
    cells(extent).iter().flat_map(of_cell).collect()
}

impl Cell {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        let (stranger, placement) = (self.stranger.title(), self.placement.title());
        let path = match self.path {
            DataPath::Auto => "",
            DataPath::Nfqueue => " by nfqueue",
        };
        let seconds = self.outage.as_secs();
        let neighbours = if self.is_introduced {
            ", neighbours known"
        } else {
            ""
        };
        format!("{stranger}, {seconds} s, hold: {placement}{path}{neighbours}")
    }

    /// How often it is measured: when the sender of a transfer without a gateway goes on, its timer decides.
    fn repetitions(&self, extent: Extent) -> u32 {
        match self.placement {
            Placement::None if self.stranger.is_transfer() => repetitions(extent).max(3),
            _ => repetitions(extent),
        }
    }

    /// Its control: this traffic over this outage without a gateway, between the ends of such a link.
    #[must_use]
    pub const fn control(&self) -> Self {
        Self {
            placement: Placement::None,
            path: DataPath::Auto,
            ..*self
        }
    }

    fn job(&self, index: u32) -> Job {
        let trial = StrangerTrial { cell: *self };
        let setting = self.setting(&trial);
        Job::new(self.name(), &setting, index).live(Trial::Stranger(trial))
    }

    /// The link and the outage as a scenario has them; what crosses it is beyond a scenario.
    fn setting(&self, trial: &StrangerTrial) -> Setting {
        let direction = self.stranger.direction();
        let task = if self.stranger.is_transfer() {
            Task::Bulk {
                bytes: ByteCount(5_000_000),
                direction,
            }
        } else {
            Task::Interactive {
                interval: Duration::from_millis(20),
                duration: trial.length(),
            }
        };
        let at = |at_mobile| match self.placement.has(at_mobile, direction) {
            true => Mechanism::Hold,
            false => Mechanism::None,
        };
        Setting {
            name: self.name(),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start: super::trial::WARM_UP,
                length: self.outage,
            },
            task,
            congestion: Congestion::Cubic,
            sack: true,
            ip: IpVersion::V4,
            gateway: at(false),
            mobile: at(true),
            seed: 1,
            deadline: trial.length() * 2,
        }
    }
}
