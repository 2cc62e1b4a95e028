//! What follows an outage at 1 to 400 Mbit/s where nobody has said the link's rate: the first new byte, half a
//! second's worth of data, and the share of the link that the first five seconds use, with `hold` and
//! without, in virtual time and on the live lab.

mod cells;

use cells::{Cell, ROUND_TRIP, Task, by};
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::{OutageResult, World};

/// The matrix in virtual time.
pub static IN_SIM: Experiment = Experiment {
    name: "field-matrix",
    title: "What follows an outage with the default configuration, at 1 to 400 Mbit/s",
    source: "an experiment of Outlast, in virtual time",
    measures: "First new byte, half a second's worth of data and use of the link in five seconds, where \
               the gateway is not told the link's rate",
    method: in_sim,
    figures: &[&Matrix(World::Sim)],
};

/// The matrix with the kernel's TCP.
pub static IN_LAB: Experiment = Experiment {
    name: "field-matrix-lab",
    title: "What follows an outage with the default configuration, on the live lab",
    source: "an experiment of Outlast",
    measures: "As field-matrix, with the TCP of this machine's kernel",
    method: in_lab,
    figures: &[&Matrix(World::Lab)],
};

/// The share of an ideal link that the first five seconds are to use, with `hold` at the sender's end.
const WANTED: f64 = 0.9;
/// Runs that differ by less are alike: two packets that meet at a queue may go in either order.
const ALIKE_SHARE: f64 = 0.02;

fn in_sim(extent: Extent) -> Vec<String> {
    method(extent, World::Sim)
}

fn in_lab(extent: Extent) -> Vec<String> {
    method(extent, World::Lab)
}

fn method(extent: Extent, world: World) -> Vec<String> {
    vec![
        format!(
            "A link of {} ms round trip, with room for one bandwidth-delay product (20 packets at least), \
             is cut off once after 3 to 4 s. By carrier: the gateway hears at once that the link is gone or \
             back. By silence: nobody tells. The gateway runs `hold` and is not told the link's rate, as \
             `outlast run` without `rate`. Each cell is run {} times, the outage at different moments; the \
             table shows medians, and the worst share.",
            ROUND_TRIP.as_millis(),
            cells::repeats(extent, world),
        ),
        "A download or an upload has as much to send as fills the link until five seconds after link-up. Requests are of 200 bytes, \
         answered by 1 kB, 50 ms after the last answer. A session shows something new every 200 ms. Half a \
         second: the time from link-up until as much new payload has come as the link carries in half a \
         second. Five seconds: the share of the link that the first five seconds after link-up used."
            .to_owned(),
    ]
}

/// The matrix as one figure.
#[derive(Debug)]
struct Matrix(World);

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "First byte, half a second and five seconds by cell, with hold and without"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent, self.0)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::cells(extent, self.0);
        let used = used(&cells, runs);
        Part::new("What follows the outage")
            .table(table(&cells, runs))
            .claims(claims(&cells, runs, self.0))
            .highlight(Highlight {
                label: "Five seconds used".to_owned(),
                value: used.map_or("–".to_owned(), |used| Unit::Share.show(used.value)),
                note: "of cells reach 90 % of the link, with hold at the sender's end".to_owned(),
                tone: used.map_or(Tone::Plain, |used| {
                    if used.value < 1.0 {
                        Tone::Bad
                    } else {
                        Tone::Good
                    }
                }),
            })
    }
}

/// A measure of a run's outage.
type Measure = fn(&OutageResult) -> Option<f64>;

const RESUME: Measure = |outage| outage.resume_s;
const HALF_SECOND: Measure = |outage| outage.half_second_s;
const FIVE_SECONDS: Measure = |outage| outage.first_five_seconds_share;

fn of(record: &Record, measure: Measure) -> Option<f64> {
    record.result.outages.first().and_then(measure)
}

/// The median of `measure`, where what never came is later than everything; `None` without runs.
fn middle(records: &[Record], measure: Measure) -> Option<f64> {
    median(records.iter().map(|record| of(record, measure))).map(|median| median.value)
}

/// The median share of the first five seconds; `None` without runs that have one.
fn middle_share(records: &[Record]) -> Option<f64> {
    let shares = records.iter().filter_map(|record| of(record, FIVE_SECONDS));
    median(shares.map(Some)).map(|median| median.value)
}

fn worst_share(records: &[Record]) -> Option<f64> {
    let shares = records.iter().filter_map(|record| of(record, FIVE_SECONDS));
    shares.reduce(f64::min)
}

impl Cell {
    fn control(self, runs: &Runs) -> &[Record] {
        runs.of(&self.name(false))
    }

    fn helped(self, runs: &Runs) -> &[Record] {
        runs.of(&self.name(true))
    }

    /// What two packets take on the link, in seconds: times that differ by less are alike.
    fn alike_s(self) -> f64 {
        2.0 * 1_500.0 * 8.0 / (f64::from(self.rate_mbit_per_s) * 1e6) + 0.001
    }

    /// Whether the first new byte comes no later than without help, in the median.
    fn resumes_no_later(self, runs: &Runs) -> Option<bool> {
        let [control, helped] = [self.control(runs), self.helped(runs)];
        let [control, helped] = [middle(control, RESUME)?, middle(helped, RESUME)?];
        Some(helped <= control + self.alike_s())
    }

    /// Whether the first five seconds bring no less than without help, in the median.
    fn brings_no_less(self, runs: &Runs) -> Option<bool> {
        let [control, helped] = [self.control(runs), self.helped(runs)].map(middle_share);
        Some(helped? >= control? - ALIKE_SHARE)
    }

    /// Whether no run brings less than the worst one without help.
    fn worst_is_no_worse(self, runs: &Runs) -> Option<bool> {
        let [control, helped] = [self.control(runs), self.helped(runs)].map(worst_share);
        Some(helped? >= control? - ALIKE_SHARE)
    }

    fn uses_the_link(self, runs: &Runs) -> Option<bool> {
        let is_judged = self.is_at_sender() && matches!(self.task, Task::Bulk(_));
        middle_share(self.helped(runs))
            .filter(|_| is_judged)
            .map(|share| share >= WANTED)
    }
}

/// The share of cells of which `holds` is true, of those that can say.
fn share_of(cells: &[Cell], holds: impl Fn(Cell) -> Option<bool>) -> Option<Measured> {
    let judged: Vec<bool> = cells.iter().filter_map(|&cell| holds(cell)).collect();
    let good = judged.iter().filter(|&&holds| holds).count();
    (!judged.is_empty()).then(|| Measured {
        value: good as f64 / judged.len() as f64,
        standard_deviation: None,
        count: judged.len(),
    })
}

fn used(cells: &[Cell], runs: &Runs) -> Option<Measured> {
    share_of(cells, |cell| cell.uses_the_link(runs))
}

fn claims(cells: &[Cell], runs: &Runs, world: World) -> Vec<Judged> {
    let place = match world {
        World::Lab => IN_LAB.name,
        _ => IN_SIM.name,
    };
    let all = Published::AtLeast(1.0);
    let own = |statement: &'static str| own_claim(place, statement, Unit::Share, all);
    let stalled = cells.iter().filter(|cell| cell.outage_s >= 15);
    let stalls =
        median(stalled.flat_map(|cell| cell.control(runs).iter().map(|record| of(record, RESUME))));
    let mut claims = vec![
        own("The first new byte comes no later than without hold (share of cells, medians).")
            .judge(share_of(cells, |cell| cell.resumes_no_later(runs))),
        own("The first five seconds bring no less than without hold (share of cells, medians).")
            .judge(share_of(cells, |cell| cell.brings_no_less(runs))),
        own("No run's first five seconds bring less than the worst ones without hold (share of cells).")
            .judge(share_of(cells, |cell| cell.worst_is_no_worse(runs))),
        own(
            "With hold at the sender's end, a transfer uses 0.9 of the link in the first five seconds \
             (share of cells, medians).",
        )
        .judge(used(cells, runs)),
    ];
    if cells.iter().any(|cell| cell.outage_s >= 15) {
        let stall = own_claim(
            place,
            "The control stalls for a second or more after outages of 15 s and longer (median).",
            Unit::Seconds,
            Published::AtLeast(1.0),
        );
        claims.push(stall.judge(stalls));
    }
    claims
}

fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("task", "Task"),
        Column::fixed("rate_mbit_per_s", "Mbit/s", 0),
        Column::text("congestion", "Congestion control"),
        Column::text("outage_by", "Outage by"),
        Column::quantity("outage_s", "Length", Unit::Seconds),
        Column::text("placement", "Hold at"),
    ];
    for (key, name) in [("control", "Control"), ("hold", "Hold")] {
        columns.extend([
            Column::quantity(
                format!("{key}_resume_s"),
                format!("{name}: first byte"),
                Unit::Seconds,
            ),
            Column::quantity(
                format!("{key}_half_second_s"),
                "half a second",
                Unit::Seconds,
            ),
            Column::quantity(format!("{key}_five_seconds"), "five seconds", Unit::Share),
            Column::quantity(format!("{key}_five_seconds_worst"), "worst", Unit::Share),
        ]);
    }
    columns.push(Column::text("no_worse", "No worse"));
    let mut table =
        Table::new(columns).titled("After link-up, the gateway not told the link's rate");
    for &cell in cells {
        let mut row = vec![
            Shown::from(cell.task.title()),
            Shown::from(cell.rate_mbit_per_s),
            Shown::from(cell.congestion.name()),
            Shown::from(by(cell.indicators)),
            Shown::from(cell.outage_s as f64),
            Shown::from(cell.placement.title()),
        ];
        for records in [cell.control(runs), cell.helped(runs)] {
            row.push(time(middle(records, RESUME)));
            row.push(match cell.task {
                Task::Bulk(_) => time(middle(records, HALF_SECOND)),
                Task::Requests | Task::Session => Shown::missing(),
            });
            row.push(Shown::from(middle_share(records)));
            row.push(Shown::from(worst_share(records)));
        }
        row.push(verdict(cell, runs));
        table.push(row);
    }
    table.note(
        "Medians of a cell's runs; \"never\": not within the five and a half seconds from link-up to the \
         end of a run. No worse: the first byte no later than without hold, by more than two packets' time \
         on the link, and the first five seconds no fuller without it, by more than 0.02.",
    );
    table
}

fn time(middle: Option<f64>) -> Shown {
    match middle {
        None => Shown::missing(),
        Some(never) if never.is_infinite() => Shown::from("never"),
        Some(time) => Shown::from(time),
    }
}

fn verdict(cell: Cell, runs: &Runs) -> Shown {
    let all = [
        cell.resumes_no_later(runs),
        cell.brings_no_less(runs),
        cell.worst_is_no_worse(runs),
    ];
    if all.iter().all(Option::is_none) {
        return Shown::missing();
    }
    match all.contains(&Some(false)) {
        true => Shown::from("no").tone(Tone::Bad),
        false => Shown::from("yes").tone(Tone::Good),
    }
}
