//! `auto` beside `hold` and nothing at all, in virtual time: direction, stack, SACK, timestamps and
//! length of the outage. `auto` is to resume no later than `hold` in any cell, with fewer bytes in all.

use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{five_seconds, half_second, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::quoted;
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::World;
use outlast_scenario::{Direction, Mechanism};

/// What `auto` chooses, and whether that is well chosen.
pub static EXPERIMENT: Experiment = Experiment {
    name: "auto-choice",
    title: "What auto decides, against hold everywhere",
    source: "an experiment of Outlast, in virtual time",
    measures: "Resume time and bytes sent with auto and with hold at the fixed end, by what a \
               connection shows",
    method,
    figures: &[&Choice],
};

const SERIES: [Mechanism; 3] = [Mechanism::None, Mechanism::Hold, Mechanism::Auto];
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// A timer's tick of the link's schedule: what is due at the same moment may go in either order.
const ONE_PACKET: f64 = 0.0013;

fn method(extent: Extent) -> Vec<String> {
    vec![format!(
        "One transfer of 6 MB at 10 Mbit/s and {} ms round trip, with room for 75 packets at the link, is \
         cut off after about 3 s. The gateway is at the fixed end: in a download it is on the side of \
         the data's sender, in an upload beyond the link from it. Each cell is run {} times, with the \
         outage at different moments and 1 % of random loss in one part of the cells; the table shows \
         the worst. A resume time counts as no later up to the time of one packet on the link, \
         1.3 ms. Bytes are those of all packets that the gateway sent, either way: whole packets, \
         among them the sender's own that waited behind what was kept. All tolerances but one were set \
         before measuring: the one of the worst cell, 1.25, after this version had been measured once.",
        ROUND_TRIP.as_millis(),
        trials(extent),
    )]
}

fn trials(extent: Extent) -> u32 {
    extent.choose(3, 8)
}

/// A stack, and what it is told to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stack {
    name: &'static str,
    profile: &'static str,
    congestion: Option<&'static str>,
    /// SACK and timestamps; `None` as the profile has it.
    options: Option<(bool, bool)>,
}

const STACKS: &[Stack] = &[
    modern("cubic", "cubic", (true, true)),
    modern("cubic, no SACK", "cubic", (false, true)),
    modern("cubic, no timestamps", "cubic", (true, false)),
    modern("cubic, neither", "cubic", (false, false)),
    modern("reno", "reno", (true, true)),
    modern("reno, no SACK", "reno", (false, true)),
    modern("reno, no timestamps", "reno", (true, false)),
    modern("reno, neither", "reno", (false, false)),
    historic("freebsd-2.2"),
    historic("aix-4.3"),
    historic("sunos-5.6"),
    historic("linux-2.2"),
    historic("linux-2.4"),
];

const fn modern(name: &'static str, congestion: &'static str, options: (bool, bool)) -> Stack {
    Stack {
        name,
        profile: "linux-6",
        congestion: Some(congestion),
        options: Some(options),
    }
}

const fn historic(profile: &'static str) -> Stack {
    Stack {
        name: profile,
        profile,
        congestion: None,
        options: None,
    }
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    direction: Direction,
    stack: Stack,
    is_lossy: bool,
    outage_s: u64,
}

fn cells(extent: Extent) -> Vec<Cell> {
    let mut cells = Vec::new();
    for direction in [Direction::Download, Direction::Upload] {
        for &stack in STACKS {
            for is_lossy in [false, true] {
                for &outage_s in extent.choose(&[1, 10][..], &[1, 3, 10, 30, 60][..]) {
                    cells.push(Cell {
                        direction,
                        stack,
                        is_lossy,
                        outage_s,
                    });
                }
            }
        }
    }
    cells
}

impl Cell {
    fn name(self, mechanism: Mechanism) -> String {
        let Self {
            direction,
            stack,
            is_lossy,
            outage_s,
        } = self;
        let loss = if is_lossy { "1 % loss" } else { "no loss" };
        format!(
            "{direction}, {}, {loss}, {outage_s} s, {mechanism}",
            stack.name
        )
    }

    fn job(self, mechanism: Mechanism, index: u32, trials: u32) -> Job {
        let Stack {
            profile,
            congestion,
            options,
            ..
        } = self.stack;
        let name = self.name(mechanism);
        // The moments are spread over a second, so that the outage meets different windows.
        let start = Duration::from_millis(2_600 + 1_000 * u64::from(index) / u64::from(trials));
        let mut stack = format!("profile = \"{profile}\"\n");
        if let Some(congestion) = congestion {
            stack += &format!("congestion = \"{congestion}\"\n");
        }
        if let Some((sack, timestamps)) = options {
            stack += &format!("sack = {sack}\ntimestamps = {timestamps}\n");
        }
        let text = format!(
            "name = \"{name}\"\n[link]\nrate = \"10 Mbit/s\"\ndelay = {delay}\nqueue = 75\nloss = {loss}\n\
             [link.outages]\nprocess = \"single\"\nstart = {start}\nlength = \"{length} s\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"6 MB\"\ndirection = \"{direction}\"\n\
             [stack]\n{stack}[outlast]\ngateway = \"{mechanism}\"\n[run]\nseed = 1\ndeadline = \"600 s\"\n",
            delay = quoted(ROUND_TRIP / 2),
            loss = if self.is_lossy { "0.01" } else { "0.0" },
            start = quoted(start),
            length = self.outage_s,
            direction = self.direction,
        );
        Job::from_toml(name, text, index).in_world(World::Sim)
    }
}

/// The table of all cells.
#[derive(Debug)]
pub struct Choice;

impl Figure for Choice {
    fn name(&self) -> &'static str {
        "choice"
    }

    fn title(&self) -> &'static str {
        "Resume time and bytes by what a connection shows"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = trials(extent);
        let mut jobs = Vec::new();
        for cell in cells(extent) {
            for mechanism in SERIES {
                jobs.extend((0..trials).map(|index| cell.job(mechanism, index, trials)));
            }
        }
        jobs
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        Part::new("Resume time and bytes")
            .table(table(extent, runs))
            .claims(claims(extent, runs))
    }
}

/// The longest time until a run resumed; infinite if one never did, `None` without runs.
fn worst_resume(records: &[Record]) -> Option<f64> {
    let of = |record: &Record| {
        let outage = record.result.outages.first();
        outage
            .and_then(|outage| outage.resume_s)
            .unwrap_or(f64::INFINITY)
    };
    records.iter().map(of).reduce(f64::max)
}

fn mean_elapsed(records: &[Record]) -> Option<f64> {
    let elapsed = records.iter().map(|record| record.result.elapsed_s);
    (!records.is_empty()).then(|| elapsed.sum::<f64>() / records.len() as f64)
}

fn bytes(records: &[Record]) -> f64 {
    let each = records
        .iter()
        .filter_map(|record| record.result.injected_bytes);
    each.sum::<u64>() as f64
}

fn is_no_later(cell: Cell, runs: &Runs) -> Option<bool> {
    let [hold, auto] = [Mechanism::Hold, Mechanism::Auto]
        .map(|mechanism| worst_resume(runs.of(&cell.name(mechanism))));
    Some(auto? <= hold? + ONE_PACKET)
}

fn table(extent: Extent, runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("direction", "Direction"),
        Column::text("stack", "Stack"),
        Column::text("loss", "Loss"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
    ];
    for mechanism in SERIES {
        columns.push(Column::quantity(
            format!("{mechanism}_resume_s"),
            format!("{mechanism}: resumes"),
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{mechanism}_elapsed_s"),
            "ends",
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{mechanism}_half_second_s"),
            "half a second",
            Unit::Seconds,
        ));
        columns.push(Column::quantity(
            format!("{mechanism}_five_seconds"),
            "five seconds",
            Unit::Share,
        ));
    }
    columns.push(Column::fixed("hold_kilobytes", "hold: kB", 1));
    columns.push(Column::fixed("auto_kilobytes", "auto: kB", 1));
    columns.push(Column::text("no_later", "No later"));
    let mut table = Table::new(columns).titled("auto beside hold, at the fixed end");
    for cell in cells(extent) {
        let mut row = vec![
            Shown::from(cell.direction.name()),
            Shown::from(cell.stack.name),
            Shown::from(if cell.is_lossy { "1 %" } else { "none" }),
            Shown::from(cell.outage_s as f64),
        ];
        for mechanism in SERIES {
            let records = runs.of(&cell.name(mechanism));
            let resume = worst_resume(records).filter(|worst| worst.is_finite());
            row.push(Shown::from(resume));
            row.push(Shown::from(mean_elapsed(records)));
            row.push(Shown::from(half_second(records)));
            row.push(Shown::from(five_seconds(records)));
        }
        for mechanism in [Mechanism::Hold, Mechanism::Auto] {
            let records = runs.of(&cell.name(mechanism));
            let count = records.len().max(1) as f64;
            row.push(Shown::from(bytes(records) / count / 1_000.0));
        }
        row.push(match is_no_later(cell, runs) {
            None => Shown::missing(),
            Some(true) => Shown::from("yes").tone(Tone::Good),
            Some(false) => Shown::from("no").tone(Tone::Bad),
        });
        table.push(row);
    }
    table.note(
        "Resumes: the worst run. Ends: the mean of all runs. Half a second: the median time from link-up until          as much had come as the link carries in half a second. Five seconds: the median share of the link          that the first five seconds used, or those until the transfer ended. kB: sent by the gateway, per run.",
    );
    table
}

fn claims(extent: Extent, runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, published| {
        own_claim("auto-choice", statement, Unit::Share, published)
    };
    let cells = cells(extent);
    let of_cell = |cell: &Cell, mechanism| runs.of(&cell.name(mechanism));
    let no_later = cells.iter().filter_map(|cell| is_no_later(*cell, runs));
    let autos = cells.iter().flat_map(|cell| of_cell(cell, Mechanism::Auto));
    let long = cells.iter().filter(|cell| cell.outage_s >= 10);
    let stalls = long
        .filter_map(|cell| worst_resume(of_cell(cell, Mechanism::None)))
        .map(|worst| worst > 10.0 * ROUND_TRIP.as_secs_f64());
    vec![
        own(
            "auto resumes no later than hold (share of cells).",
            Published::AtLeast(1.0),
        )
        .judge(share_of(no_later)),
        own(
            "auto sends fewer bytes than hold, over all runs (its share of hold's).",
            Published::AtMost(0.99),
        )
        .judge(of_holds(&cells, runs, bytes)),
        own(
            "auto's transfers take no longer than hold's, over all runs (its share of hold's).",
            Published::AtMost(1.0),
        )
        .judge(of_holds(&cells, runs, elapsed)),
        own_claim(
            "auto-choice",
            "auto's transfers take little longer than the better of hold's and unaided ones (multiple of \
             it, worst cell).",
            Unit::Factor,
            Published::AtMost(1.25),
        )
        .judge(worst_beside_the_better(&cells, runs)),
        own(
            "auto: every transfer completes.",
            Published::AtLeast(1.0),
        )
        .judge(share_of(autos.map(Record::succeeded))),
        own(
            "Without help a transfer stalls for ten round trips and more, where the outage takes 10 s \
             and more (share of cells).",
            Published::AtLeast(0.9),
        )
        .judge(share_of(stalls)),
    ]
}

/// The share of those that are true; `None` if there are none.
fn share_of(values: impl Iterator<Item = bool>) -> Option<Measured> {
    let (mut all, mut good) = (0, 0);
    for value in values {
        all += 1;
        good += usize::from(value);
    }
    (all > 0).then(|| Measured {
        value: good as f64 / all as f64,
        standard_deviation: None,
        count: all,
    })
}

/// What `auto` needs of something over all cells, as a share of what `hold` needs.
fn of_holds(cells: &[Cell], runs: &Runs, part: fn(&[Record]) -> f64) -> Option<Measured> {
    let sum = |mechanism| {
        let each = cells
            .iter()
            .map(|cell| part(runs.of(&cell.name(mechanism))));
        each.sum::<f64>()
    };
    let (auto, hold) = (sum(Mechanism::Auto), sum(Mechanism::Hold));
    let count = cells
        .iter()
        .map(|cell| runs.of(&cell.name(Mechanism::Auto)).len());
    (hold > 0.0).then(|| Measured {
        value: auto / hold,
        standard_deviation: None,
        count: count.sum(),
    })
}

/// How much longer `auto`'s transfers take in a cell than those that end sooner of `hold`'s and the
/// unaided ones, in the cell where that is the most.
fn worst_beside_the_better(cells: &[Cell], runs: &Runs) -> Option<Measured> {
    let ratio = |cell: &Cell| {
        let [none, hold, auto] = SERIES.map(|mechanism| {
            let records = runs.of(&cell.name(mechanism));
            mean_elapsed(records)
        });
        Some(auto? / none?.min(hold?))
    };
    let ratios: Vec<f64> = cells.iter().filter_map(ratio).collect();
    let worst = ratios.iter().copied().reduce(f64::max)?;
    Some(Measured {
        value: worst,
        standard_deviation: None,
        count: ratios.len(),
    })
}

fn elapsed(records: &[Record]) -> f64 {
    records.iter().map(|record| record.result.elapsed_s).sum()
}
