//! The cells of the matrix, and the runs of each.

use outlast_base::time::Duration;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::quoted;
use outlast_scenario::result::World;
use outlast_scenario::{Congestion, Direction, Indicators, Mechanism};

/// Round trip of the link.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(40);
/// When the outage of a cell's first run begins.
const START: Duration = Duration::from_secs(3);
/// Over which the outages of a cell's runs begin: other moments of the congestion control's cycle.
const SPREAD: Duration = Duration::from_secs(1);
/// The connected time after link-up that a transfer fills.
const MEASURED: Duration = Duration::from_secs(5);
/// From link-up to the end of a run: the five seconds that are measured, and a little more.
const AFTER: Duration = Duration::from_millis(5_500);

/// A request, its answer and the pause behind it, at the lowest rate.
const EXCHANGE: Duration = Duration::from_millis(110);

/// What crosses the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Task {
    /// A transfer that the whole run is too short for.
    Bulk(Direction),
    /// A request every 50 ms after the last answer, as of a database's client.
    Requests,
    /// A screen that changes every 200 ms.
    Session,
}

/// Where `hold` is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Placement {
    /// At both ends of the link.
    Both,
    /// At the fixed end.
    Fixed,
    /// At the mobile's.
    Mobile,
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    pub(super) rate_mbit_per_s: u32,
    pub(super) congestion: Congestion,
    pub(super) indicators: Indicators,
    pub(super) outage_s: u64,
    pub(super) task: Task,
    pub(super) placement: Placement,
    /// What carries the runs out.
    pub(super) world: World,
}

impl Task {
    const ALL: [Self; 4] = [
        Self::Bulk(Direction::Download),
        Self::Bulk(Direction::Upload),
        Self::Requests,
        Self::Session,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Bulk(Direction::Download) => "download",
            Self::Bulk(Direction::Upload) => "upload",
            Self::Requests => "requests",
            Self::Session => "session",
        }
    }

    /// The scenario's `[workload]`: as much as fills the link for `connected`, in a run that ends after
    /// `whole`.
    fn to_toml(self, rate_mbit_per_s: u32, connected: Duration, whole: Duration) -> String {
        match self {
            Self::Bulk(direction) => {
                // A segment of 1500 bytes has 1448 of payload.
                let millis = u64::try_from(connected.as_millis()).unwrap_or(u64::MAX);
                let bytes = u64::from(rate_mbit_per_s) * 125 * millis * 1_448 / 1_500;
                format!("kind = \"bulk\"\nbytes = \"{bytes} B\"\ndirection = \"{direction}\"\n")
            }
            Self::Requests => {
                let requests = connected.as_millis() / EXCHANGE.as_millis();
                format!(
                    "kind = \"request-response\"\nrequests = {requests}\nrequest = \"200 B\"\n\
                     response = \"1 kB\"\nthink = \"50 ms\"\n"
                )
            }
            Self::Session => format!("kind = \"interactive\"\nduration = {}\n", quoted(whole)),
        }
    }
}

impl Placement {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Both => "both ends",
            Self::Fixed => "fixed end",
            Self::Mobile => "mobile's end",
        }
    }
}

/// The cells, in the order of the table.
pub(super) fn cells(extent: Extent, world: World) -> Vec<Cell> {
    use Congestion::{Bbr, Cubic, Reno};
    let is_quick = extent == Extent::Quick;
    let congestions: &[_] = match (is_quick, world) {
        (true, World::Lab) => &[Cubic, Bbr],
        _ => &[Cubic, Bbr, Reno],
    };
    let rates: &[_] = match (is_quick, world) {
        (true, World::Lab) => &[10, 100],
        _ => &[1, 10, 100, 400],
    };
    let outages: &[_] = match (is_quick, world) {
        (true, World::Lab) => &[2],
        (true, _) => &[15],
        (false, _) => &[2, 15, 45],
    };
    let placements: &[_] = match is_quick {
        true => &[Placement::Both],
        false => &[Placement::Both, Placement::Fixed, Placement::Mobile],
    };
    let tasks = &Task::ALL[..extent.choose(2, Task::ALL.len())];
    let mut cells = Vec::new();
    for &rate_mbit_per_s in rates {
        for &congestion in congestions {
            for indicators in [Indicators::Link, Indicators::Silence] {
                for &outage_s in outages {
                    for &task in tasks {
                        cells.extend(placements.iter().map(|&placement| Cell {
                            rate_mbit_per_s,
                            congestion,
                            indicators,
                            outage_s,
                            task,
                            placement,
                            world,
                        }));
                    }
                }
            }
        }
    }
    cells
}

/// Runs of each cell, with `hold` and without.
pub(super) fn repeats(extent: Extent, world: World) -> u32 {
    match (extent, world) {
        (Extent::Full, _) => 10,
        (Extent::Quick, World::Lab) => 1,
        (Extent::Quick, _) => 2,
    }
}

/// The runs; a control is that of all placements.
pub(super) fn jobs(extent: Extent, world: World) -> Vec<Job> {
    let repeats = repeats(extent, world);
    let mut jobs: Vec<Job> = Vec::new();
    for cell in cells(extent, world) {
        for helped in [false, true] {
            if helped || cell.placement == Placement::Both {
                jobs.extend((0..repeats).map(|index| cell.job(helped, index, repeats)));
            }
        }
    }
    jobs
}

impl Cell {
    /// Its name, with `hold` or without; the control is the same for each placement.
    pub(super) fn name(self, helped: bool) -> String {
        let Self {
            rate_mbit_per_s,
            congestion,
            indicators,
            outage_s,
            task,
            ..
        } = self;
        let by = by(indicators);
        let task = task.title();
        let who = match helped {
            true => format!("hold at {}", self.placement.title()),
            false => "control".to_owned(),
        };
        format!("{task}, {rate_mbit_per_s} Mbit/s, {congestion}, {by}, {outage_s} s, {who}")
    }

    fn job(self, helped: bool, index: u32, repeats: u32) -> Job {
        let start = START + SPREAD * index / repeats;
        let length = Duration::from_secs(self.outage_s);
        let whole = start + length + AFTER;
        let at = |place| match helped && [Placement::Both, place].contains(&self.placement) {
            true => Mechanism::Hold,
            false => Mechanism::None,
        };
        let name = self.name(helped);
        let text = format!(
            "name = \"{name}\"\n[link]\nrate = \"{rate} Mbit/s\"\ndelay = {delay}\n\
             [link.outages]\nprocess = \"single\"\nstart = {start}\nlength = {length}\n\
             [workload]\n{task}[stack]\ncongestion = \"{congestion}\"\n\
             [outlast]\ngateway = \"{gateway}\"\nmobile = \"{mobile}\"\nindicators = \"{indicators}\"\n\
             rate = \"unknown\"\n[run]\nseed = 1\ndeadline = {deadline}\n",
            rate = self.rate_mbit_per_s,
            delay = quoted(ROUND_TRIP / 2),
            start = quoted(start),
            length = quoted(length),
            task = self
                .task
                .to_toml(self.rate_mbit_per_s, start + MEASURED, whole),
            congestion = self.congestion,
            gateway = at(Placement::Fixed),
            mobile = at(Placement::Mobile),
            indicators = self.indicators,
            deadline = quoted(whole),
        );
        Job::from_toml(name, text, index).in_world(self.world)
    }

    /// Whether `hold` is at the end of the link where the payload's sender is.
    pub(super) fn is_at_sender(self) -> bool {
        match self.placement {
            Placement::Both => true,
            Placement::Fixed => self.task != Task::Bulk(Direction::Upload),
            Placement::Mobile => self.task == Task::Bulk(Direction::Upload),
        }
    }
}

/// What shows the outage.
pub(super) const fn by(indicators: Indicators) -> &'static str {
    match indicators {
        Indicators::Link => "carrier",
        Indicators::Silence => "silence",
    }
}
