//! The return after an outage and what stays behind: first bytes, five seconds, and a short loss a little later, with `hold`,
//! without it, and with short retransmission timeouts.

mod cells;

use cells::{Cell, Help, LOSS, Measure, Place, RATE, ROUND_TRIP, Task, by};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::World;

/// The comparison in virtual time.
pub static IN_SIM: Experiment = Experiment {
    name: "aftermath",
    title: "After an outage: never worse than nothing, nor than one sysctl",
    source: "an experiment of Outlast, in virtual time",
    measures: "First bytes, five seconds, and recovery from a loss of 150 ms after 1, 3 and 10 s: with hold, with nothing, \
               and with tcp_rto_max_ms = 1000",
    method: in_sim,
    figures: &[&Comparison(World::Sim)],
};

/// The comparison on a packaged kernel, which has no such sysctl.
pub static IN_GUESTS: Experiment = Experiment {
    name: "aftermath-kernel",
    title: "After an outage, on a packaged kernel in virtual time",
    source: "an experiment of Outlast",
    measures: "As aftermath, with the TCP of Linux 6.12 in an emulated machine",
    method: in_guests,
    figures: &[&Comparison(World::Kernel)],
};

/// The time by which something may be later and counts as no worse: a round trip, and 50 ms.
const ALIKE: Duration = Duration::from_millis(50).saturating_add(ROUND_TRIP);
/// The first five seconds.
const FIVE: Duration = Duration::from_secs(5);
/// Worst cells that the table shows.
const SHOWN: usize = 30;

fn in_sim(extent: Extent) -> Vec<String> {
    method(extent, World::Sim)
}

fn in_guests(extent: Extent) -> Vec<String> {
    method(extent, World::Kernel)
}

fn method(extent: Extent, world: World) -> Vec<String> {
    let mut method = vec![
        format!(
            "A link of {RATE} Mbit/s, {} ms round trip and a queue of one bandwidth-delay product is cut off once. By carrier: `hold` \
             hears of it. By silence: nobody tells. `hold` has its defaults. Each cell is run {} times, the outage at different \
             moments; medians are compared.",
            ROUND_TRIP.as_millis(),
            cells::repeats(extent, world),
        ),
        format!(
            "A loss of {} ms follows in runs of its own, on another link of the path, so that nobody who helps hears of it: it \
             shows which timeouts the outage has left at the senders. From its end until the receiver has something new.",
            LOSS.as_millis()
        ),
        format!(
            "The sysctl is `tcp_rto_max_ms = 1000`, with `tcp_retries2 = 200`. No worse: no later than the better one of nothing and the \
             sysctl at the hosts on the sides where `hold` is, by more than a round trip and 50 ms, {} ms; and no emptier in the \
             first five seconds by more than that time's share of them.",
            ALIKE.as_millis()
        ),
    ];
    if world == World::Kernel {
        method.push(format!(
            "Linux {} runs in an emulated machine whose clock counts instructions. It has no `tcp_rto_max_ms` (6.15 has), so it is \
             compared with nothing alone.",
            cells::KERNEL
        ));
    }
    method
}

/// The comparison as one figure.
#[derive(Debug)]
struct Comparison(World);

impl Figure for Comparison {
    fn name(&self) -> &'static str {
        "comparison"
    }

    fn title(&self) -> &'static str {
        "First bytes, five seconds and a later loss by cell"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent, self.0)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let compared: Vec<Compared> = cells::cells(extent, self.0)
            .into_iter()
            .flat_map(|cell| Compared::all_of(cell, extent, self.0, runs))
            .collect();
        let no_worse = share_no_worse(compared.iter());
        Part::new("What follows the outage")
            .table(counts(&compared))
            .table(by_options(&compared))
            .table(medians(&compared, extent, self.0, runs))
            .table(worst(&compared))
            .claims(claims(&compared, extent, self.0))
            .highlight(Highlight {
                label: "No worse".to_owned(),
                value: no_worse.map_or("–".to_owned(), |share| Unit::Share.show(share.value)),
                note: "of all comparisons".to_owned(),
                tone: no_worse.map_or(Tone::Plain, |share| {
                    if share.value < 1.0 {
                        Tone::Warning
                    } else {
                        Tone::Good
                    }
                }),
            })
    }
}

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Quantity {
    /// Time until something new has come, in seconds.
    FirstBytes,
    /// Share of the link that the first five seconds used.
    FiveSeconds,
}

/// One quantity of a cell with `hold`, and the better one of its two controls.
#[derive(Clone, Copy, Debug)]
struct Compared {
    cell: Cell,
    place: Place,
    measure: Measure,
    quantity: Quantity,
    control: f64,
    with: f64,
}

impl Compared {
    /// Everything that is compared of a cell, of what has been run.
    fn all_of(cell: Cell, extent: Extent, world: World, runs: &Runs) -> Vec<Self> {
        let mut all = Vec::new();
        for &measure in cells::measures(extent, world) {
            for quantity in [Quantity::FirstBytes, Quantity::FiveSeconds] {
                let is_measured = quantity == Quantity::FirstBytes
                    || measure == Measure::Return && cell.task != Task::Requests;
                if !is_measured {
                    continue;
                }
                let of = |help| middle(runs.of(&cell.name(help, measure)), quantity);
                all.extend(Place::ALL.into_iter().filter_map(|place| {
                    let controls = [Help::Control, Help::ShortTimeouts(place)].into_iter();
                    Some(Self {
                        cell,
                        place,
                        measure,
                        quantity,
                        control: controls.filter_map(of).reduce(quantity.better())?,
                        with: of(Help::Hold(place))?,
                    })
                }));
            }
        }
        all
    }

    /// The time by which it is worse than the better control, in seconds; negative where it is better.
    fn behind_s(&self) -> f64 {
        if self.with == self.control {
            return 0.0;
        }
        match self.quantity {
            Quantity::FirstBytes => self.with - self.control,
            Quantity::FiveSeconds => (self.control - self.with) * FIVE.as_secs_f64(),
        }
    }

    fn is_worse(&self) -> bool {
        self.behind_s() > ALIKE.as_secs_f64()
    }
}

impl Quantity {
    /// The better one of two values.
    const fn better(self) -> fn(f64, f64) -> f64 {
        match self {
            Self::FirstBytes => f64::min,
            Self::FiveSeconds => f64::max,
        }
    }

    fn of(self, record: &Record) -> Option<f64> {
        let run = &record.result;
        match self {
            // The last of the connections counts.
            Self::FirstBytes if !run.flows.is_empty() => {
                let each = run
                    .flows
                    .iter()
                    .map(|flow| flow.resume_s.first().copied().flatten());
                each.reduce(|one, other| Some(one?.max(other?))).flatten()
            }
            Self::FirstBytes => run.outages.first()?.resume_s,
            Self::FiveSeconds if !run.flows.is_empty() => {
                let shares = run
                    .flows
                    .iter()
                    .map(|flow| flow.first_five_seconds_share.first());
                shares.map(|share| share.copied().flatten()).sum()
            }
            Self::FiveSeconds => run.outages.first()?.first_five_seconds_share,
        }
    }
}

/// The median of a quantity, where first bytes that never came are later than everything; `None` without runs.
fn middle(records: &[Record], quantity: Quantity) -> Option<f64> {
    let values = records.iter().map(|record| quantity.of(record));
    let values: Vec<Option<f64>> = match quantity {
        Quantity::FirstBytes => values.collect(),
        Quantity::FiveSeconds => values.filter(Option::is_some).collect(),
    };
    median(values).map(|median| median.value)
}

fn title(measure: Measure, quantity: Quantity) -> String {
    match (measure, quantity) {
        (Measure::Return, Quantity::FirstBytes) => "first bytes".to_owned(),
        (Measure::Return, Quantity::FiveSeconds) => "five seconds".to_owned(),
        (Measure::LossAfter(later), _) => format!("loss after {later} s"),
    }
}

fn share_no_worse<'a>(compared: impl Iterator<Item = &'a Compared>) -> Option<Measured> {
    let good = compared.map(|one| f64::from(u8::from(!one.is_worse())));
    mean(good).map(|share| Measured {
        standard_deviation: None,
        ..share
    })
}

/// The kinds of comparison that there are, in the order of the tables.
fn kinds() -> impl Iterator<Item = (Measure, Quantity)> {
    let returns = [Quantity::FirstBytes, Quantity::FiveSeconds].map(|one| (Measure::Return, one));
    let losses = Measure::ALL[1..]
        .iter()
        .map(|&loss| (loss, Quantity::FirstBytes));
    returns.into_iter().chain(losses)
}

/// Worse cells of all, by what is compared and where `hold` is.
fn counts(compared: &[Compared]) -> Table {
    let mut columns = vec![Column::text("measure", "Measure")];
    columns.extend(Place::ALL.map(|place| {
        let title = Help::Hold(place).title();
        Column::text(title, title)
    }));
    let mut table = Table::new(columns).titled("Cells in which hold is worse, of all");
    for (measure, quantity) in kinds() {
        let mut row = vec![Shown::from(title(measure, quantity))];
        for place in Place::ALL {
            let of = || {
                let all = compared.iter();
                all.filter(move |one| {
                    (one.measure, one.quantity, one.place) == (measure, quantity, place)
                })
            };
            let (all, worse) = (of().count(), of().filter(|one| one.is_worse()).count());
            row.push(worse_of(all, worse));
        }
        if compared.iter().any(|one| one.measure == measure) {
            table.push(row);
        }
    }
    table
}

fn worse_of(all: usize, worse: usize) -> Shown {
    match (all, worse) {
        (0, _) => Shown::missing(),
        (_, 0) => Shown::from(format!("0 of {all}")).tone(Tone::Good),
        _ => Shown::from(format!("{worse} of {all}")).tone(Tone::Bad),
    }
}

/// Worse cells of all, by the options that the connections have.
fn by_options(compared: &[Compared]) -> Table {
    let mut columns = vec![Column::text("options", "Options")];
    columns.extend(kinds().map(|(measure, quantity)| {
        let title = title(measure, quantity);
        Column::text(title.clone(), title)
    }));
    let mut table =
        Table::new(columns).titled("The same by TCP options, hold at either end and at both");
    for (name, options) in [
        ("SACK and timestamps", (true, true)),
        ("SACK alone", (true, false)),
        ("timestamps alone", (false, true)),
        ("neither", (false, false)),
    ] {
        let mut row = vec![Shown::from(name)];
        for (measure, quantity) in kinds() {
            let of = || {
                compared.iter().filter(|one| {
                    (one.cell.sack, one.cell.timestamps) == options
                        && (one.measure, one.quantity) == (measure, quantity)
                })
            };
            row.push(worse_of(
                of().count(),
                of().filter(|one| one.is_worse()).count(),
            ));
        }
        table.push(row);
    }
    table
}

/// Medians and the latest of all cells' medians, by task and indicator.
fn medians(compared: &[Compared], extent: Extent, world: World, runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("task", "Task"),
        Column::text("by", "Outage by"),
        Column::text("measure", "Measure"),
    ];
    for help in cells::helps(world) {
        columns.push(Column::quantity(help.title(), help.title(), Unit::Seconds));
        columns.push(Column::quantity(
            format!("{} worst", help.title()),
            "worst",
            Unit::Seconds,
        ));
    }
    let mut table = Table::new(columns)
        .titled("Seconds until something new has come: median and worst of all cells");
    let cells = cells::cells(extent, world);
    let mut rows: Vec<(Task, _)> = Vec::new();
    for cell in &cells {
        if !rows.contains(&(cell.task, cell.indicators)) {
            rows.push((cell.task, cell.indicators));
        }
    }
    for (task, indicators) in rows {
        for &measure in cells::measures(extent, world) {
            let mut row = vec![
                Shown::from(task.title()),
                Shown::from(by(indicators)),
                Shown::from(title(measure, Quantity::FirstBytes)),
            ];
            for help in cells::helps(world) {
                let of = cells
                    .iter()
                    .filter(|cell| (cell.task, cell.indicators) == (task, indicators));
                let mut times: Vec<f64> = of
                    .filter_map(|cell| {
                        middle(runs.of(&cell.name(help, measure)), Quantity::FirstBytes)
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                for time in [times.get(times.len() / 2), times.last()] {
                    row.push(shown(time.copied()));
                }
            }
            table.push(row);
        }
    }
    if compared.is_empty() {
        table.note("Nothing has been run.");
    }
    table
}

fn shown(time: Option<f64>) -> Shown {
    match time {
        None => Shown::missing(),
        Some(never) if never.is_infinite() => Shown::from("never"),
        Some(time) => Shown::from(time),
    }
}

/// The worse comparisons, the worst first.
fn worst(compared: &[Compared]) -> Table {
    let mut table = Table::new(vec![
        Column::text("cell", "Cell"),
        Column::text("measure", "Measure"),
        Column::text("help", "With"),
        Column::text("control", "Better control"),
        Column::text("with", "Hold"),
    ])
    .titled("Where hold is worse, the worst first");
    let mut worse: Vec<&Compared> = compared.iter().filter(|one| one.is_worse()).collect();
    worse.sort_by(|one, other| other.behind_s().total_cmp(&one.behind_s()));
    let left = worse.len().saturating_sub(SHOWN);
    for one in worse.into_iter().take(SHOWN) {
        let value = |value: f64| match one.quantity {
            Quantity::FirstBytes if value.is_infinite() => "never".to_owned(),
            Quantity::FirstBytes => Unit::Seconds.show(value),
            Quantity::FiveSeconds => Unit::Share.show(value),
        };
        table.push(vec![
            Shown::from(one.cell.label()),
            Shown::from(title(one.measure, one.quantity)),
            Shown::from(Help::Hold(one.place).title()),
            Shown::from(value(one.control)),
            Shown::from(value(one.with)).tone(Tone::Bad),
        ]);
    }
    if left > 0 {
        table.note(format!("{left} more are not shown."));
    }
    table
}

fn claims(compared: &[Compared], extent: Extent, world: World) -> Vec<Judged> {
    let place = match world {
        World::Kernel => IN_GUESTS.name,
        _ => IN_SIM.name,
    };
    let own = |statement: String| own_claim(place, statement, Unit::Share, Published::AtLeast(1.0));
    let kinds = kinds().filter(|(measure, _)| cells::measures(extent, world).contains(measure));
    let judged = kinds.map(|(measure, quantity)| {
        let of = compared.iter().filter(move |one| (one.measure, one.quantity) == (measure, quantity));
        let statement = format!(
            "With hold at either end or both, {} no worse than with nothing and with the sysctl (share of cells, medians).",
            match (measure, quantity) {
                (Measure::Return, Quantity::FirstBytes) => "first bytes come".to_owned(),
                (Measure::Return, Quantity::FiveSeconds) => "five seconds are used".to_owned(),
                (Measure::LossAfter(later), _) => format!("a loss {later} s later ends"),
            }
        );
        own(statement).judge(share_no_worse(of))
    });
    judged.collect()
}
