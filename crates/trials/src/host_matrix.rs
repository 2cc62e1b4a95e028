//! Resume time of transfers with the agent of the role `host` beside the hosts' TCP, and without it:
//! congestion control, SACK, uploads, thin flows, downloads, and the length of a single outage; and uploads
//! over an outage that is longer than their kernel keeps them.
//!
//! The agent is the one of [`outlast run --role host`], told of the link by the emulator. Of uploads and thin
//! flows nothing runs at the fixed host; of downloads the fixed host has an agent that hears by the mobile's alone.
//!
//! [`outlast run --role host`]: https://docs.rs/outlast-host

mod long;
mod mechanisms;

use long::Long;
use mechanisms::Mechanisms;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{five_seconds, median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{Bbr, Cubic, Reno};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

/// The matrix.
pub static EXPERIMENT: Experiment = Experiment {
    name: "host-matrix",
    title: "How soon transfers resume with an agent beside the hosts' TCP",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application has new bytes, after a single outage, with \
               the agent of the role host and without it",
    method,
    figures: &[&Matrix, &Long, &Mechanisms],
};

/// One round trip and 100 ms.
const LIMIT_S: f64 = 0.040 + 0.100;

/// Outages of this length or longer, in seconds, make the control stall for seconds.
const LONG_S: f64 = 10.0;

const RATE_MBIT_PER_S: u32 = 4;
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: u32 = 75;
/// When the outage of the first run of a cell begins, and how much later that of each further one.
const START: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_millis(370);
/// More than the link carries until the last run's outage, so that there is something left.
const BYTES: ByteCount = ByteCount(2_000_000);
/// Between an answer and the next question of a thin flow.
const THINK: Duration = Duration::from_millis(100);
/// Those that last until after the outage: each takes the pause and a round trip at least.
const QUESTIONS: u32 = 40;

/// How much the sender has to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Flow {
    /// An upload.
    Bulk,
    /// Small questions, each answered by the fixed host in as few bytes: one segment is outstanding.
    Thin,
    /// Questions and answers of a thin flow, with agents at both hosts.
    ThinBetweenAgents,
    /// A download, with agents at both hosts.
    Download,
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cell {
    congestion: Congestion,
    sack: bool,
    flow: Flow,
    outage: Duration,
}

fn method(extent: Extent) -> Vec<String> {
    vec![format!(
        "A mobile host and a fixed host, over {RATE_MBIT_PER_S} Mbit/s and 40 ms round trip, with room for \
         {QUEUE} packets at the link. Bulk: an upload of {} MB. Thin: the mobile host asks in 64 bytes, 0.1 s after \
         each answer of as many; \"both\" has agents at both hosts. Download: the same bytes the other way, with agents at both hosts, of which the fixed host's is told of \
         nothing but by the mobile host's (Immediate Retransmission Option). After about {} s the link is away for the length \
         of the outage. The resume time runs from link-up until the receiving application gets bytes that it \
         did not have. Each cell is run {}, with the outage at different moments, those with an outage of minutes once; the table \
         shows the median and the worst.",
        BYTES.0 / 1_000_000,
        START.as_secs(),
        match repetitions(extent) {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        },
    )]
}

/// Runs of each cell.
fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// An outage that is this long is tried once.
const MINUTES: Duration = Duration::from_secs(60);

/// The cells, in the order of the table.
fn cells(extent: Extent) -> Vec<Cell> {
    let congestions: &[Congestion] = extent.choose(&[Cubic, Bbr], &[Cubic, Bbr, Reno]);
    let lengths: &[u64] = extent.choose(&[3], &[1, 3, 10, 30, 180]);
    let flows: &[Flow] = extent.choose(
        &[Flow::Bulk, Flow::Download],
        &[
            Flow::Bulk,
            Flow::Thin,
            Flow::ThinBetweenAgents,
            Flow::Download,
        ],
    );
    let mut cells = Vec::new();
    for &congestion in congestions {
        for sack in [true, false] {
            for &flow in flows {
                cells.extend(lengths.iter().map(|&seconds| Cell {
                    congestion,
                    sack,
                    flow,
                    outage: Duration::from_secs(seconds),
                }));
            }
        }
    }
    cells
}

impl Flow {
    const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Thin => "thin",
            Self::ThinBetweenAgents => "thin, both",
            Self::Download => "download",
        }
    }
}

impl Cell {
    fn repetitions(&self, extent: Extent) -> u32 {
        match self.outage > MINUTES {
            true => 1,
            false => repetitions(extent),
        }
    }

    fn job(&self, mobile: Mechanism, index: u32) -> Job {
        let text = self.setting(mobile, index).to_toml();
        let has_both = matches!(self.flow, Flow::Download | Flow::ThinBetweenAgents);
        let is_asked = has_both && mobile != Mechanism::None;
        let text = match is_asked {
            true => text.replace("[outlast]\n", &format!("[outlast]\nfixed = \"{mobile}\"\n")),
            false => text,
        };
        Job::from_toml(self.name(mobile), text, index)
    }

    fn name(&self, mobile: Mechanism) -> String {
        let (sack, flow) = (on_or_off(self.sack), self.flow.name());
        let seconds = self.outage.as_secs();
        format!(
            "{}, SACK {sack}, {flow}, {seconds} s, {mobile}",
            self.congestion
        )
    }

    fn setting(&self, mobile: Mechanism, index: u32) -> Setting {
        let start = START + LATER * index;
        // An unaided sender may wait as long as the outage was, and twice that.
        let deadline = start + self.outage * 4 + Duration::from_secs(20);
        let task = match self.flow {
            Flow::Bulk => Task::Bulk {
                bytes: BYTES,
                direction: Direction::Upload,
            },
            Flow::Download => Task::Bulk {
                bytes: BYTES,
                direction: Direction::Download,
            },
            Flow::Thin | Flow::ThinBetweenAgents => Task::Questions {
                count: QUESTIONS,
                think: THINK,
            },
        };
        Setting {
            name: format!("{}, {}", self.name(mobile), index + 1),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start,
                length: self.outage,
            },
            task,
            congestion: self.congestion,
            sack: self.sack,
            ip: IpVersion::V4,
            gateway: Mechanism::None,
            mobile,
            seed: 1,
            deadline,
        }
    }
}

const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

const AGENTS: [Mechanism; 2] = [Mechanism::None, Mechanism::RetransmissionTrigger];

/// The matrix as one figure.
#[derive(Debug)]
struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "Resume time in every cell, with and without the agent"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for mobile in AGENTS {
                jobs.extend((0..cell.repetitions(extent)).map(|index| cell.job(mobile, index)));
            }
        }
        jobs
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells(extent);
        Part::new("Resume time by cell")
            .table(table(&cells, runs))
            .claims(claims(&cells, runs))
    }
}

/// The resume time of a run's outage; `None` if it never resumed.
fn resume(record: &Record) -> Option<f64> {
    let outage = record.result.outages.first();
    outage.and_then(|outage| outage.resume_s)
}

fn is_in_time(record: &Record) -> bool {
    resume(record).is_some_and(|time| time <= LIMIT_S)
}

/// One row for each cell.
fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("sack", "SACK"),
        Column::text("flow", "Flow"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
    ];
    for (key, name) in [("control", "no agent"), ("agent", "agent")] {
        columns.push(Column::quantity(
            format!("{key}_median_s"),
            format!("{name}: median"),
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{key}_worst_s"),
            "worst",
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{key}_five_seconds"),
            "five seconds",
            Unit::Share,
        ));
    }
    columns.push(Column::text("in_time", "In time"));
    let mut table = Table::new(columns).titled("From link-up to new bytes");
    for cell in cells {
        let mut row = vec![
            Shown::from(cell.congestion.name()),
            Shown::from(on_or_off(cell.sack)),
            Shown::from(cell.flow.name()),
            Shown::from(cell.outage.as_secs_f64()),
        ];
        for mobile in AGENTS {
            let records = runs.of(&cell.name(mobile));
            let middle = median(records.iter().map(resume)).map(|measured| measured.value);
            let late = |record| resume(record).unwrap_or(f64::INFINITY);
            let worst = records.iter().map(late).reduce(f64::max);
            row.extend([shown(middle), shown(worst)]);
            row.push(Shown::from(five_seconds(records)));
        }
        let helped = runs.of(&cell.name(Mechanism::RetransmissionTrigger));
        let (all, good) = (
            helped.len(),
            helped.iter().filter(|run| is_in_time(run)).count(),
        );
        let tone = if good == all { Tone::Good } else { Tone::Bad };
        row.push(Shown::from(format!("{good} of {all}")).tone(tone));
        table.push(row);
    }
    table.note(format!(
        "In time: runs with the agent that resumed within one round trip and 100 ms, {}. Five seconds: the \
         median share of the link that the first five seconds used, or those until the transfer ended.",
        Unit::Seconds.show_exact(LIMIT_S)
    ));
    table.note(
        "Where the question of a thin flow had arrived and the outage took its answer, the agent at the mobile host has nothing to \
         retransmit: it tells the fixed host by ICMP errors (RFC 6069), or asks the agent there.",
    );
    table.note(
        "Senders at the fixed host, by what wakes them: the option, in the downloads above; duplicate acknowledgements, below; \
         ICMP errors to a peer without the agent, in the trial race, figure remote-sender.",
    );
    table
}

fn shown(time: Option<f64>) -> Shown {
    match time {
        None => Shown::missing(),
        Some(time) if time.is_finite() => Shown::from(time),
        Some(_) => Shown::from("never").tone(Tone::Bad),
    }
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, unit, published| {
        own_claim("host-matrix", statement, unit, published)
    };
    let of = |flow: Flow| {
        let all = cells.iter().filter(move |cell| cell.flow == flow);
        all.flat_map(|cell| runs.of(&cell.name(Mechanism::RetransmissionTrigger)))
    };
    let long = cells
        .iter()
        .filter(|cell| cell.outage.as_secs_f64() >= LONG_S && cell.flow == Flow::Bulk);
    let control = long.flat_map(|cell| runs.of(&cell.name(Mechanism::None)));
    vec![
        own(
            "Bulk uploads resume within one round trip and 100 ms with the agent (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(of(Flow::Bulk), is_in_time)),
        own(
            "Thin flows do, too (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(of(Flow::Thin), is_in_time)),
        own(
            "Thin flows with agents at both hosts do (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(of(Flow::ThinBetweenAgents), is_in_time)),
        own(
            "So do downloads with agents at both hosts (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(of(Flow::Download), is_in_time)),
        own(
            "Without the agent uploads stall for a second or more after outages of 10 s and longer (median).",
            Unit::Seconds,
            Published::AtLeast(1.0),
        )
        .judge(median(control.map(resume))),
    ]
}
