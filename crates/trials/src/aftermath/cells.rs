//! The cells, and the runs of each.

use crate::kernels_vs_sim::trial::KernelTrial;
use outlast_base::time::Duration;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::quoted;
use outlast_scenario::result::World;
use outlast_scenario::{Congestion, Indicators};

/// Round trip of the link, half a millisecond of it on the hop beside the mobile.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(60);
/// Rate of the link, in Mbit/s.
pub(super) const RATE: u32 = 10;
/// Length of the loss after the outage.
pub(super) const LOSS: Duration = Duration::from_millis(150);
/// Delay of the hop that has the loss, one way.
const BESIDE: Duration = Duration::from_micros(250);
/// Beginning of the outage in a cell's first run.
const START: Duration = Duration::from_secs(3);
/// Spread of the outages' beginnings over a cell's runs: other moments of the congestion control's cycle.
const SPREAD: Duration = Duration::from_secs(1);
/// Time from link-up, or from the end of the loss, to the end of a run.
const AFTER: Duration = Duration::from_secs(10);
/// Time from link-up, or from the end of the loss, that the workload fills.
const FILLED: Duration = Duration::from_secs(7);
/// A request, its answer and the pause behind it.
const EXCHANGE: Duration = Duration::from_millis(113);
/// The kernel on which the cells are carried out in guests.
pub(super) const KERNEL: &str = "6.12";

/// Traffic over the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Task {
    /// A download that lasts longer than the run.
    Download,
    /// An upload that lasts longer than the run.
    Upload,
    /// Both at once.
    BothWays,
    /// A request 50 ms after the last answer, as of a database's client.
    Requests,
}

/// Help that a cell's connections have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Help {
    /// None.
    Control,
    /// `tcp_rto_max_ms = 1000` at hosts.
    ShortTimeouts(Place),
    /// `hold` at ends of the link.
    Hold(Place),
}

/// Side of the link, or both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// The fixed one.
    Fixed,
    /// The mobile's.
    Mobile,
    /// Both.
    Both,
}

/// The subject of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Measure {
    /// First bytes after the outage, and the five seconds behind it.
    Return,
    /// First bytes after a loss that begins so many seconds after the outage's end.
    LossAfter(u64),
}

/// The parameters of the runs that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    pub(super) congestion: Congestion,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) indicators: Indicators,
    pub(super) outage_s: u64,
    pub(super) task: Task,
}

impl Task {
    const ALL: [Self; 4] = [Self::Upload, Self::Requests, Self::Download, Self::BothWays];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
            Self::BothWays => "both ways",
            Self::Requests => "requests",
        }
    }

    /// The tables of the workload: as much as fills the link for `connected`.
    fn to_toml(self, connected: Duration) -> String {
        // A segment of 1500 bytes has 1448 of payload.
        let millis = u64::try_from(connected.as_millis()).unwrap_or(u64::MAX);
        let bytes = u64::from(RATE) * 125 * millis * 1_448 / 1_500;
        let bulk = |direction| {
            format!("kind = \"bulk\"\nbytes = \"{bytes} B\"\ndirection = \"{direction}\"\n")
        };
        match self {
            Self::Download => format!("[workload]\n{}", bulk("download")),
            Self::Upload => format!("[workload]\n{}", bulk("upload")),
            Self::BothWays => format!(
                "[workload]\n{}[[flows]]\n{}",
                bulk("upload"),
                bulk("download")
            ),
            Self::Requests => format!(
                "[workload]\nkind = \"request-response\"\nrequests = {}\nrequest = \"200 B\"\n\
                 response = \"1 kB\"\nthink = \"50 ms\"\n",
                connected.as_millis() / EXCHANGE.as_millis()
            ),
        }
    }
}

impl Help {
    /// Everything that is compared, in the order of the table.
    pub(super) const ALL: [Self; 7] = [
        Self::Control,
        Self::ShortTimeouts(Place::Fixed),
        Self::ShortTimeouts(Place::Mobile),
        Self::ShortTimeouts(Place::Both),
        Self::Hold(Place::Fixed),
        Self::Hold(Place::Mobile),
        Self::Hold(Place::Both),
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Control => "none",
            Self::ShortTimeouts(Place::Fixed) => "sysctl at the fixed host",
            Self::ShortTimeouts(Place::Mobile) => "sysctl at the mobile",
            Self::ShortTimeouts(Place::Both) => "sysctl at both",
            Self::Hold(Place::Fixed) => "hold at the fixed end",
            Self::Hold(Place::Mobile) => "hold at the mobile's end",
            Self::Hold(Place::Both) => "hold at both ends",
        }
    }

    /// The mechanisms at the fixed and at the mobile's end of the link.
    fn ends(self) -> [&'static str; 2] {
        [Place::Fixed, Place::Mobile].map(|end| match self {
            Self::Hold(place) if place.includes(end) => "hold",
            _ => "none",
        })
    }

    /// The tables of hosts that have short timeouts.
    fn timeouts(self) -> String {
        let hosts = [("fixed", Place::Fixed), ("mobile", Place::Mobile)];
        let tables = hosts.into_iter().filter(|(_, host)| match self {
            Self::ShortTimeouts(place) => place.includes(*host),
            Self::Control | Self::Hold(_) => false,
        });
        tables
            .map(|(host, _)| format!("[stack.{host}]\nmax_rto = \"1 s\"\n"))
            .collect()
    }

    /// True if the kernel of the guests has it.
    const fn is_in_guests(self) -> bool {
        !matches!(self, Self::ShortTimeouts(_))
    }
}

impl Place {
    pub(super) const ALL: [Self; 3] = [Self::Fixed, Self::Mobile, Self::Both];

    fn includes(self, side: Self) -> bool {
        self == Self::Both || self == side
    }
}

impl Measure {
    /// Everything that is measured, in the order of the table.
    pub(super) const ALL: [Self; 4] = [
        Self::Return,
        Self::LossAfter(1),
        Self::LossAfter(3),
        Self::LossAfter(10),
    ];
}

/// The cells, in the order of the table.
pub(super) fn cells(extent: Extent, world: World) -> Vec<Cell> {
    use Congestion::{Bbr, Cubic, Reno};
    let is_quick = extent == Extent::Quick;
    let is_kernel = world == World::Kernel;
    let congestions: &[_] = match is_quick {
        true => &[Cubic, Bbr],
        false => &[Cubic, Bbr, Reno],
    };
    // SACK, and timestamps.
    let options: &[_] = match (is_quick, is_kernel) {
        (true, _) => &[(true, true)],
        (false, true) => &[(true, true), (false, true)],
        (false, false) => &[(true, true), (false, true), (true, false), (false, false)],
    };
    let outages: &[_] = match is_quick || is_kernel {
        true => &[30],
        false => &[5, 30, 90],
    };
    let tasks = &Task::ALL[..if is_quick || is_kernel {
        2
    } else {
        Task::ALL.len()
    }];
    let mut cells = Vec::new();
    for &congestion in congestions {
        for &(sack, timestamps) in options {
            for indicators in [Indicators::Link, Indicators::Silence] {
                for &outage_s in outages {
                    cells.extend(tasks.iter().map(|&task| Cell {
                        congestion,
                        sack,
                        timestamps,
                        indicators,
                        outage_s,
                        task,
                    }));
                }
            }
        }
    }
    cells
}

/// The measures of each cell in `world`.
pub(super) fn measures(extent: Extent, world: World) -> &'static [Measure] {
    let is_short = extent == Extent::Quick || world == World::Kernel;
    &Measure::ALL[..if is_short { 2 } else { Measure::ALL.len() }]
}

/// The helps that `world` has.
pub(super) fn helps(world: World) -> impl Iterator<Item = Help> {
    let all = Help::ALL.into_iter();
    all.filter(move |help| world != World::Kernel || help.is_in_guests())
}

/// Runs of each cell, for each help and measure.
pub(super) const fn repeats(extent: Extent, world: World) -> u32 {
    match (extent, world) {
        (Extent::Quick, _) => 1,
        (Extent::Full, World::Kernel) => 2,
        (Extent::Full, _) => 3,
    }
}

/// All runs.
pub(super) fn jobs(extent: Extent, world: World) -> Vec<Job> {
    let repeats = repeats(extent, world);
    let mut jobs = Vec::new();
    for cell in cells(extent, world) {
        for help in helps(world) {
            for &measure in measures(extent, world) {
                let job = |index| cell.job(help, measure, world, (index, repeats));
                jobs.extend((0..repeats).map(job));
            }
        }
    }
    jobs
}

impl Cell {
    /// Its parameters, in words.
    pub(super) fn label(self) -> String {
        let with = |name: &str, has: bool| {
            if has {
                String::new()
            } else {
                format!(", no {name}")
            }
        };
        format!(
            "{}, {}{}{}, {}, {} s",
            self.task.title(),
            self.congestion,
            with("SACK", self.sack),
            with("timestamps", self.timestamps),
            by(self.indicators),
            self.outage_s
        )
    }

    /// The name of its runs.
    pub(super) fn name(self, help: Help, measure: Measure) -> String {
        let (label, help) = (self.label(), help.title());
        match measure {
            Measure::Return => format!("{label}, {help}"),
            Measure::LossAfter(later) => format!("{label}, loss after {later} s, {help}"),
        }
    }

    fn job(self, help: Help, measure: Measure, world: World, (index, repeats): (u32, u32)) -> Job {
        let start = START + SPREAD * index / repeats;
        let length = Duration::from_secs(self.outage_s);
        let [fixed_end, mobile_end] = help.ends();
        let outage = |table: &str, start, length| {
            format!(
                "[{table}.outages]\nprocess = \"single\"\nstart = {}\nlength = {}\n",
                quoted(start),
                quoted(length)
            )
        };
        let link = |delay| format!("rate = \"{RATE} Mbit/s\"\ndelay = {}\n", quoted(delay));
        let (links, end, outlast) = match measure {
            Measure::Return => (
                format!(
                    "[link]\n{}{}",
                    link(ROUND_TRIP / 2),
                    outage("link", start, length)
                ),
                start + length + AFTER,
                format!("gateway = \"{fixed_end}\"\nmobile = \"{mobile_end}\"\n"),
            ),
            // Nobody who helps hears of the loss: it is on another link.
            Measure::LossAfter(later) => {
                let later = start + length + Duration::from_secs(later);
                (
                    format!(
                        "[link]\nrate = \"unlimited\"\ndelay = {}\n{}[[hops]]\n{}fixed_end = \"{fixed_end}\"\n\
                         mobile_end = \"{mobile_end}\"\n{}",
                        quoted(BESIDE),
                        outage("link", later, LOSS),
                        link(ROUND_TRIP / 2 - BESIDE),
                        outage("hops", start, length)
                    ),
                    later + LOSS + AFTER,
                    String::new(),
                )
            }
        };
        let retries = match help {
            Help::ShortTimeouts(_) => "retries = 200\n",
            Help::Control | Help::Hold(_) => "",
        };
        let name = self.name(help, measure);
        let text = format!(
            "name = \"{name}\"\n{links}[stack]\ncongestion = \"{}\"\nsack = {}\ntimestamps = {}\n{retries}{timeouts}\
             [outlast]\n{outlast}indicators = \"{}\"\nrate = \"unknown\"\n[run]\nseed = {}\ndeadline = {}\n{}",
            self.congestion,
            self.sack,
            self.timestamps,
            self.indicators,
            index + 1,
            quoted(end),
            self.task.to_toml(end - length - AFTER + FILLED),
            timeouts = help.timeouts(),
        );
        let job = Job::from_toml(name, text, index);
        match world {
            World::Kernel => job.in_guest(KernelTrial { version: KERNEL }),
            world => job.in_world(world),
        }
    }
}

/// The indicator of the outage.
pub(super) const fn by(indicators: Indicators) -> &'static str {
    match indicators {
        Indicators::Link => "carrier",
        Indicators::Silence => "silence",
    }
}
