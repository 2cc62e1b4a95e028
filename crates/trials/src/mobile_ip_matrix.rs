//! How soon a transfer of a mobile node goes on after its registration, live.
//!
//! A mobile node with an address of its own (a co-located care-of address) comes to another network. The
//! home agent's reply ends the hand-off. Measured is what the connection needs from then on.
//!
//! Left out: foreign agents, whose part is over when the reply has passed them.

pub(crate) mod place;
pub(crate) mod replies;
pub mod roles;

pub mod trial;

use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{Bbr, Cubic};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};
use roles::Help;
use trial::{HandOffTrial, Observed};

/// The matrix.
pub static EXPERIMENT: Experiment = Experiment {
    name: "mobile-ip-matrix",
    title: "How soon transfers go on after a registration with Mobile IP",
    source: "an experiment of Outlast",
    measures: "Time from the registration's reply until the receiving application reads something new, with \
               `outlast run` as home agent and mobile node",
    method,
    figures: &[&Matrix],
};

/// One round trip and 50 ms.
pub const LIMIT_S: f64 = 0.040 + 0.050;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Four network namespaces: a fixed host, a router, a home agent beside the router, and a mobile host \
             behind an emulated Ethernet of {} Mbit/s and 40 ms round trip, with room for {} packets. `outlast \
             run` is the home agent and, on the mobile host, the mobile node, which has a care-of address of its \
             own. A transfer of 8 MB goes from the fixed host to the mobile host's home address, or back; both \
             directions go through the tunnel. The sender's socket is set to the congestion control, and its \
             kernel is asked which one it has.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
        ),
        "After 2.4 MB both ends of the link lose their carrier, and the mobile host gets an address of another \
         network and no other. When the carrier is back, it registers by itself. The registration is complete \
         when its reply is on the sender's side of the link: for a download when it leaves the home agent, for an \
         upload when it comes to the mobile host, which knows nothing before, 20 ms later. From then on the \
         receiving application is to read new bytes within one round trip and 50 ms."
            .to_owned(),
        format!(
            "Hold: `outlast run --mechanism hold` runs on the tunnels' devices, at the home agent and at the mobile \
             host, and both roles tell their gateway of registrations (`gateway` in their files); the mobile node's \
             own trigger is off. Trigger: the mobile node alone, as it is by default. The control has neither. Runs \
             of each cell: {}, one after the other; the table shows the worst.",
            repetitions(extent)
        ),
    ]
}

/// Runs of each cell.
fn repetitions(extent: Extent) -> u32 {
    extent.choose(1, 3)
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cell {
    congestion: Congestion,
    direction: Direction,
    outage: Duration,
}

fn cells(extent: Extent) -> Vec<Cell> {
    let lengths: &[u64] = extent.choose(&[3], &[1, 3, 10]);
    let mut cells = Vec::new();
    for congestion in [Cubic, Bbr] {
        for direction in [Direction::Download, Direction::Upload] {
            cells.extend(lengths.iter().map(|&seconds| Cell {
                congestion,
                direction,
                outage: Duration::from_secs(seconds),
            }));
        }
    }
    cells
}

impl Cell {
    fn name(&self, help: Help) -> String {
        let Self {
            congestion,
            direction,
            outage,
        } = self;
        let (seconds, title) = (outage.as_secs(), help.title());
        format!("{congestion}, {direction}, {seconds} s, {title}")
    }

    fn job(&self, help: Help, index: u32) -> Job {
        let name = self.name(help);
        let trial = HandOffTrial {
            congestion: self.congestion,
            direction: self.direction,
            outage: self.outage,
            help,
        };
        let mechanism = match help {
            Help::Hold => Mechanism::Hold,
            Help::None | Help::Trigger => Mechanism::None,
        };
        let setting = Setting {
            name: name.clone(),
            rate_mbit_per_s: trial::RATE_MBIT_PER_S,
            delay: trial::DELAY,
            queue: trial::QUEUE,
            outages: Outages::Single {
                start: Duration::from_secs(2),
                length: self.outage,
            },
            task: Task::Bulk {
                bytes: ByteCount(trial::BYTES),
                direction: self.direction,
            },
            congestion: self.congestion,
            sack: true,
            ip: IpVersion::V4,
            gateway: mechanism,
            mobile: mechanism,
            seed: 1,
            deadline: self.outage + Duration::from_secs(70),
        };
        Job::new(name, &setting, index).live(Trial::HandOff(trial))
    }
}

/// The matrix as one figure.
#[derive(Debug)]
struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "New bytes after the registration, by what helps"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for help in Help::ALL {
                jobs.extend((0..repetitions(extent)).map(|index| cell.job(help, index)));
            }
        }
        jobs
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells(extent);
        Part::new("New bytes after the registration")
            .table(table(&cells, runs))
            .claims(claims(&cells, runs))
    }
}

/// From the registration's reply until something new was read; `None` if nothing was.
fn resume(run: &Record) -> Option<f64> {
    run.observed::<Observed>()?.resume_s
}

fn is_within(run: &Record) -> bool {
    resume(run).is_some_and(|time| time <= LIMIT_S)
}

fn is_judged(run: &Record) -> bool {
    run.warnings.is_empty()
}

/// One row for each cell.
fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("direction", "Direction"),
        Column::quantity("outage_s", "No link for", Unit::Seconds),
        Column::quantity("reply_s", "Reply after link-up", Unit::Seconds),
    ];
    for help in Help::ALL {
        columns.push(Column::quantity(
            format!("{}_s", help.key()),
            help.title(),
            Unit::Seconds,
        ));
    }
    columns.push(Column::text("in_force", "In force"));
    columns.push(Column::text("intact", "Intact"));
    let mut table =
        Table::new(columns).titled("From the registration's reply until new bytes are read");
    for cell in cells {
        let all = || {
            Help::ALL
                .into_iter()
                .flat_map(|help| runs.of(&cell.name(help)))
        };
        let observed = || all().filter_map(Record::observed::<Observed>);
        let replies = observed().filter_map(|seen| seen.reply_s);
        let mut names: Vec<String> = observed().map(|seen| seen.congestion).collect();
        names.sort();
        names.dedup();
        let mut row = vec![
            Shown::from(cell.congestion.name()),
            Shown::from(cell.direction.name()),
            Shown::from(cell.outage.as_secs_f64()),
            Shown::from(replies.reduce(f64::max)),
        ];
        row.extend(Help::ALL.map(|help| worst(help, runs.of(&cell.name(help)))));
        row.push(Shown::from(names.join(", ")));
        let intact = all().filter(|run| run.result.intact == Some(true)).count();
        let tone = if intact == all().count() {
            Tone::Plain
        } else {
            Tone::Bad
        };
        row.push(Shown::from(format!("{intact} of {}", all().count())).tone(tone));
        table.push(row);
    }
    table.note(format!(
        "The worst run of each cell. The limit is one round trip and 50 ms, {}. In force: the congestion control that \
         the senders' kernel names.",
        Unit::Seconds.show_exact(LIMIT_S)
    ));
    table
}

/// The longest time; what never resumed is longest.
fn worst(help: Help, records: &[Record]) -> Shown {
    if records.is_empty() {
        return Shown::missing();
    }
    let times: Option<Vec<f64>> = records.iter().map(resume).collect();
    let Some(times) = times else {
        return Shown::from("never").tone(Tone::Bad);
    };
    let worst = times.into_iter().fold(0.0, f64::max);
    let tone = match help {
        _ if worst <= LIMIT_S => Tone::Good,
        Help::None => Tone::Plain,
        Help::Trigger | Help::Hold => Tone::Warning,
    };
    Shown::from(worst).tone(tone)
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &str, unit, published| {
        own_claim("mobile-ip-matrix", statement.to_owned(), unit, published)
    };
    let with = |help: Help| cells.iter().flat_map(move |cell| runs.of(&cell.name(help)));
    let stalled = median(with(Help::None).map(resume));
    let judged = with(Help::Hold).filter(|run| is_judged(run));
    vec![
        own(
            "With hold, new bytes are read within one round trip and 50 ms of the reply (share of \
             transfers).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(judged, is_within)),
        own(
            "Without help a transfer stalls for half a second or more after the reply (median).",
            Unit::Seconds,
            Published::AtLeast(0.5),
        )
        .judge(stalled),
        own(
            "Every transfer keeps its address, comes to its end and is intact, whatever helps (share of transfers).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(runs.all(), |run| run.result.intact == Some(true))),
    ]
}
