//! The simulator's profile `linux-6` beside packaged kernels in virtual time: cells drawn at random.
//!
//! Nothing of this depends on the machine: the same cells, kernels and program give the same page.

pub mod cells;
pub mod trial;

use cells::Cell as Drawn;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::own_claim;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion;

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "kernels-vs-sim",
    title: "The simulator beside packaged kernels in virtual time",
    source: "an experiment of Outlast",
    measures: "Random scenarios on Linux 6.1 and 6.12 in virtual time and in the simulator with profile \
               linux-6: completion",
    method,
    figures: &[&Beside],
};

/// The largest difference of completion times that counts as none, as a share of the kernel's.
pub const TOLERANCE: f64 = 0.02;

/// Keys of the columns of each kernel, in the order of [`cells::KERNELS`].
const KEYS: [[&str; 3]; cells::KERNELS.len()] = [
    ["on_6_1_s", "spread_6_1", "off_6_1"],
    ["on_6_12_s", "spread_6_12", "off_6_12"],
];

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "{} scenarios are drawn: rate, delay, queue, one outage of 0.3 to 105 s, congestion control, direction, and \
             `hold` nowhere, at one end or at both. Each is carried out {} times on each kernel, in an emulated machine \
             whose clock counts instructions, each time with another place of the kernel's timer wheel, which the file says, and \
             as often, times {}, in the simulator, from other moments of a millisecond.",
            cells::count(extent),
            cells::phases(extent),
            cells::SIM_REPEATS,
        ),
        format!(
            "The simulator agrees with a kernel if the middle of its completion times is within {} of the middle of the \
             kernel's, or between the least and the largest of the kernel's, each widened by as much.",
            Unit::Share.show_exact(TOLERANCE),
        ),
    ]
}

/// The comparison as one figure.
#[derive(Debug)]
pub struct Beside;

impl Figure for Beside {
    fn name(&self) -> &'static str {
        "beside"
    }

    fn title(&self) -> &'static str {
        "Completion on two kernels and in the simulator"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let compared: Vec<Compared> = cells::drawn(extent)
            .into_iter()
            .filter_map(|cell| Compared::of(cell, runs))
            .collect();
        let all: Vec<&Against> = compared.iter().flat_map(|cell| &cell.kernels).collect();
        let share = agreeing(&all);
        Part::new("Every scenario on both kernels and in the simulator")
            .table(summary(&compared))
            .table(differing(&compared))
            .claims(claims(&compared))
            .highlight(Highlight {
                label: "Completion agrees".to_owned(),
                value: share.map_or("–".to_owned(), |share| Unit::Share.show(share.value)),
                note: "of the scenarios, on either kernel".to_owned(),
                tone: Tone::Plain,
            })
    }
}

/// A cell's completion times.
struct Compared {
    cell: Drawn,
    sim: f64,
    /// In the order of [`cells::KERNELS`].
    kernels: Vec<Against>,
}

/// A kernel's completion times, and the simulator's.
struct Against {
    middle: f64,
    least: f64,
    largest: f64,
    sim: f64,
}

impl Compared {
    /// Compares a cell; `None` unless all its runs are there.
    fn of(cell: Drawn, runs: &Runs) -> Option<Self> {
        let times = |name: &str| -> Option<Vec<f64>> {
            let records = runs.of(name);
            let mut times: Vec<f64> = records
                .iter()
                .map(|record| match record.result.completed {
                    true => record.result.elapsed_s,
                    false => f64::INFINITY,
                })
                .collect();
            times.sort_by(f64::total_cmp);
            (!times.is_empty()).then_some(times)
        };
        let sim = middle(&times(&cell.name(cells::SIMULATOR))?);
        let kernels = cells::KERNELS.iter().map(|kernel| {
            let times = times(&cell.name(kernel))?;
            Some(Against {
                middle: middle(&times),
                least: times[0],
                largest: *times.last()?,
                sim,
            })
        });
        let kernels = kernels.collect::<Option<_>>()?;
        Some(Self { cell, sim, kernels })
    }
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

impl Against {
    /// The simulator's distance from the kernel, as a share of the kernel's time.
    fn off(&self) -> f64 {
        if self.sim == self.middle {
            return 0.0;
        }
        self.sim / self.middle - 1.0
    }

    fn agrees(&self) -> bool {
        let within = self.sim >= self.least * (1.0 - TOLERANCE)
            && self.sim <= self.largest * (1.0 + TOLERANCE);
        within || self.off().abs() <= TOLERANCE
    }
}

fn agreeing(all: &[&Against]) -> Option<Measured> {
    (!all.is_empty()).then(|| Measured {
        value: all.iter().filter(|against| against.agrees()).count() as f64 / all.len() as f64,
        standard_deviation: None,
        count: all.len(),
    })
}

/// Counts of agreeing cells, by congestion control and by where `hold` is.
fn summary(compared: &[Compared]) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("hold", "hold"),
        Column::text("cells", "Scenarios"),
    ];
    columns
        .extend(cells::KERNELS.map(|kernel| Column::text(kernel, format!("agree with {kernel}"))));
    let mut table = Table::new(columns).titled("Scenarios whose completion agrees");
    for congestion in [Congestion::Cubic, Congestion::Bbr, Congestion::Reno] {
        for place in cells::Place::ALL {
            let of: Vec<&Compared> = compared
                .iter()
                .filter(|each| each.cell.congestion == congestion && each.cell.hold == place)
                .collect();
            if of.is_empty() {
                continue;
            }
            let mut row = vec![
                Cell::from(congestion.name()),
                Cell::from(place.name()),
                Cell::from(of.len().to_string()),
            ];
            row.extend((0..cells::KERNELS.len()).map(|kernel| {
                let agree = of
                    .iter()
                    .filter(|each| each.kernels[kernel].agrees())
                    .count();
                let tone = if agree == of.len() {
                    Tone::Good
                } else {
                    Tone::Warning
                };
                Cell::from(agree.to_string()).tone(tone)
            }));
            table.push(row);
        }
    }
    table
}

/// The cells in which the simulator differs from a kernel, the furthest first.
fn differing(compared: &[Compared]) -> Table {
    let mut columns = vec![
        Column::text("cell", "Scenario"),
        Column::quantity("sim_s", "Simulator", Unit::Seconds),
    ];
    for (kernel, [middle, spread, off]) in cells::KERNELS.iter().zip(KEYS) {
        let head = format!("Linux {kernel}");
        columns.push(Column::quantity(middle, head, Unit::Seconds));
        columns.push(Column::text(spread, "spread"));
        columns.push(Column::quantity(off, "off", Unit::Share));
    }
    let mut table = Table::new(columns).titled("Where the simulator differs from a kernel");
    let mut differing: Vec<&Compared> = compared
        .iter()
        .filter(|each| each.kernels.iter().any(|against| !against.agrees()))
        .collect();
    let worst = |each: &Compared| {
        let off = each.kernels.iter().filter(|against| !against.agrees());
        off.map(|against| against.off().abs()).fold(0.0, f64::max)
    };
    differing.sort_by(|one, other| worst(other).total_cmp(&worst(one)));
    for each in differing {
        let mut row = vec![Cell::from(each.cell.label()), Cell::from(each.sim)];
        for against in &each.kernels {
            let tone = if against.agrees() {
                Tone::Plain
            } else {
                Tone::Warning
            };
            let show = |value| Unit::Seconds.show(value);
            row.push(Cell::from(against.middle));
            row.push(Cell::from(format!(
                "{}–{}",
                show(against.least),
                show(against.largest)
            )));
            row.push(Cell::from(against.off()).tone(tone));
        }
        table.push(row);
    }
    table
}

fn claims(compared: &[Compared]) -> Vec<Judged> {
    let own = |statement: &'static str| {
        Claim {
        departure: Some("The table names each scenario that differs; docs/model-fidelity.md has the reasons that are known.".into()),
        ..own_claim("kernels-vs-sim", statement, Unit::Share, Published::AtLeast(1.0))
    }
    };
    let statements = [
        "The simulator completes when Linux 6.1 does, to 2 % or its own spread (share of scenarios).",
        "The simulator completes when Linux 6.12 does, to 2 % or its own spread (share of scenarios).",
    ];
    let of_kernels = statements
        .into_iter()
        .enumerate()
        .map(|(kernel, statement)| {
            let all: Vec<&Against> = compared.iter().map(|each| &each.kernels[kernel]).collect();
            own(statement).judge(agreeing(&all))
        });
    of_kernels.collect()
}
