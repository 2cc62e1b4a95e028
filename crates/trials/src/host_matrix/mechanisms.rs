//! The two mechanisms of the role `host` side by side: retransmission trigger and fast retransmission, sender at
//! either host, outages before the first timeout and after it.

use super::{LIMIT_S, resume, shown};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{five_seconds, median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{self, Bbr, Cubic, Reno};
use outlast_scenario::Direction::{self, Download, Upload};

/// Who helps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Help {
    Nobody,
    Trigger,
    Fast,
    /// Fast retransmission at the mobile host alone: duplicate acknowledgements to the sender of a download.
    Duplicates,
}

impl Help {
    /// Those of a transfer in that direction.
    const fn of(direction: Direction) -> &'static [Self] {
        match direction {
            Upload => &[Self::Nobody, Self::Trigger, Self::Fast],
            Download => &[Self::Nobody, Self::Trigger, Self::Fast, Self::Duplicates],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nothing",
            Self::Trigger => "retransmission-trigger",
            Self::Fast => "fast-retransmit",
            Self::Duplicates => "fast-retransmit, at the mobile host alone",
        }
    }

    /// The agents: of downloads at both hosts, as the mobile host's asks the other one's.
    fn keys(self, direction: Direction) -> String {
        let mechanism = match self {
            Self::Nobody => return String::new(),
            Self::Trigger => "retransmission-trigger",
            Self::Fast | Self::Duplicates => "fast-retransmit",
        };
        let fixed = match (direction, self) {
            (Download, Self::Trigger | Self::Fast) => format!("fixed = \"{mechanism}\"\n"),
            _ => String::new(),
        };
        format!("[outlast]\nmobile = \"{mechanism}\"\n{fixed}")
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    direction: Direction,
    outage: Duration,
    congestion: Congestion,
    sack: bool,
}

fn cells(extent: Extent) -> Vec<Cell> {
    let outages: &[u64] = extent.choose(&[3_000], &[300, 3_000, 10_000]);
    let congestions: &[Congestion] = extent.choose(&[Cubic, Bbr], &[Cubic, Bbr, Reno]);
    let mut cells = Vec::new();
    for direction in [Upload, Download] {
        for &outage in outages {
            for &congestion in congestions {
                cells.extend([true, false].map(|sack| Cell {
                    direction,
                    outage: Duration::from_millis(outage),
                    congestion,
                    sack,
                }));
            }
        }
    }
    cells
}

impl Cell {
    fn sender(&self) -> String {
        let sack = if self.sack { "" } else { " without SACK" };
        format!("{}{sack}", self.congestion)
    }

    fn name(&self, help: Help) -> String {
        let (sender, outage) = (self.sender(), self.outage.as_millis());
        let (direction, help) = (self.direction, help.name());
        format!("{direction}, {sender}, {outage} ms, {help}")
    }

    fn job(&self, help: Help, index: u32) -> Job {
        let name = self.name(help);
        let start = 2_000 + 370 * index;
        let deadline = self.outage * 4 + Duration::from_secs(22);
        let text = format!(
            "name = \"{name}\"\n[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
             [link.outages]\nprocess = \"single\"\nstart = \"{start} ms\"\nlength = \"{} ms\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\ndirection = \"{}\"\n\
             [stack]\ncongestion = \"{}\"\nsack = {}\n{}\
             [run]\ndeadline = \"{} s\"\n",
            self.outage.as_millis(),
            self.direction,
            self.congestion,
            self.sack,
            help.keys(self.direction),
            deadline.as_secs(),
        );
        Job::from_toml(name, text, index)
    }
}

/// Both mechanisms, as one figure.
#[derive(Debug)]
pub(super) struct Mechanisms;

impl Figure for Mechanisms {
    fn name(&self) -> &'static str {
        "mechanisms"
    }

    fn title(&self) -> &'static str {
        "Retransmission trigger and fast retransmission"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let repetitions = super::repetitions(extent);
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for &help in Help::of(cell.direction) {
                jobs.extend((0..repetitions).map(|index| cell.job(help, index)));
            }
        }
        jobs
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells(extent);
        let mut part = Part::new("Retransmission trigger and fast retransmission");
        for same in
            cells.chunk_by(|one, next| one.direction == next.direction && one.outage == next.outage)
        {
            part = part.table(table(same, runs));
        }
        part.claims(claims(&cells, runs))
    }
}

/// The cells of one direction and outage: a row for each sender and each help.
fn table(cells: &[Cell], runs: &Runs) -> Table {
    let columns = vec![
        Column::text("sender", "Sender"),
        Column::text("help", "Helped by"),
        Column::quantity("resume_s", "Resumed", Unit::Seconds),
        Column::quantity("worst_s", "worst", Unit::Seconds),
        Column::quantity("five_seconds", "First five seconds", Unit::Share),
    ];
    let Cell {
        direction, outage, ..
    } = cells[0];
    let title = format!("{direction}s, away for {} s", outage.as_secs_f64());
    let mut table = Table::new(columns).titled(title);
    for cell in cells {
        for &help in Help::of(cell.direction) {
            let records = runs.of(&cell.name(help));
            let late = |record| resume(record).unwrap_or(f64::INFINITY);
            table.push(vec![
                Shown::from(cell.sender()),
                Shown::from(help.name()),
                shown(median(records.iter().map(resume)).map(|it| it.value)),
                shown(records.iter().map(late).reduce(f64::max)),
                Shown::from(five_seconds(records)),
            ]);
        }
    }
    table
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let of = |direction: Direction| {
        let those = cells.iter().filter(move |cell| cell.direction == direction);
        those.flat_map(|cell| runs.of(&cell.name(Help::Fast)))
    };
    let in_time = |statement: &'static str, direction| {
        let is_in_time = |run: &Record| resume(run).is_some_and(|time| time <= LIMIT_S);
        own_claim(
            "host-matrix",
            statement,
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(of(direction), is_in_time))
    };
    vec![
        in_time(
            "With fast retransmission at the mobile host, uploads resume within one round trip and 100 ms (share of runs).",
            Upload,
        ),
        in_time(
            "With it at both hosts downloads do (share of runs).",
            Download,
        ),
    ]
}
