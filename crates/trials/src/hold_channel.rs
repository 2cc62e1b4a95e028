//! Utilisation of the paper's channel at 10 % availability: connected for 0.5 s, disconnected for
//! 4.5 s on average, by congestion control, rate and round trip.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::{mean, own_claim, share, title};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Published};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Limit, Strip, StripRow};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::OutageResult;
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

/// The channel of the paper, at rates and round trips of today.
pub static EXPERIMENT: Experiment = Experiment {
    name: "hold-channel",
    title: "How much of a link's connected time a transfer uses",
    source: "an experiment of Outlast, over the channel of Scott and Mapp 2003",
    measures: "Utilisation of the connected time, and completion, on a link that is up a tenth of the \
               time",
    method,
    figures: &[&Utilisation],
};

/// The mean utilisation that `hold` is to reach.
pub const WANTED: f64 = 0.95;

/// What is compared.
const SERIES: [Mechanism; 3] = [Mechanism::None, Mechanism::SmartLink3, Mechanism::Hold];
/// Share of the time that the link is connected.
const AVAILABILITY_PERCENT: u32 = 10;
/// Mean connected time.
const UP: Duration = Duration::from_millis(500);
/// Mean disconnected time.
const DOWN: Duration = Duration::from_millis(4_500);
/// Packets that may wait.
const QUEUE: u32 = 75;
/// A run is given up after this many times what it needs at best on average.
const PATIENCE: u32 = 3;

fn method(extent: Extent) -> Vec<String> {
    vec![format!(
        "Downloads over a link that is connected for 0.5 s and disconnected for 4.5 s on average, \
         each period evenly between half and one and a half of its mean. Each has as much to send as \
         fits into {} s of connected time, and is given up after {PATIENCE} times the time that it \
         needs at best on average. The utilisation is the payload's time on the wire over the \
         connected time until it was through.",
        connected_s(extent),
    )]
}

/// Connected time that a transfer fills, in seconds.
fn connected_s(extent: Extent) -> u32 {
    extent.choose(3, 15)
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cell {
    congestion: Congestion,
    rate_mbit_per_s: u32,
    round_trip_ms: u32,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for rate_mbit_per_s in [5, 10] {
            for round_trip_ms in [2, 20, 50] {
                cells.push(Cell {
                    congestion,
                    rate_mbit_per_s,
                    round_trip_ms,
                });
            }
        }
    }
    cells
}

impl Cell {
    fn name(self, mechanism: Mechanism) -> String {
        let Self {
            congestion,
            rate_mbit_per_s,
            round_trip_ms,
        } = self;
        format!("{congestion}, {rate_mbit_per_s} Mbit/s, {round_trip_ms} ms, {mechanism}")
    }

    fn setting(self, extent: Extent, mechanism: Mechanism) -> Setting {
        let connected = Duration::from_secs(connected_s(extent).into());
        let bytes = u64::from(self.rate_mbit_per_s) * 125_000 * connected.as_secs();
        let task = Task::Bulk {
            bytes: ByteCount(bytes),
            direction: Direction::Download,
        };
        Setting {
            name: self.name(mechanism),
            rate_mbit_per_s: self.rate_mbit_per_s,
            delay: Duration::from_millis(self.round_trip_ms.into()) / 2,
            queue: QUEUE,
            outages: Outages::Uniform { up: UP, down: DOWN },
            task,
            congestion: self.congestion,
            sack: true,
            ip: IpVersion::V4,
            gateway: mechanism,
            mobile: mechanism,
            seed: 1,
            deadline: connected * 100 / AVAILABILITY_PERCENT * PATIENCE,
        }
    }
}

/// The table of all cells.
#[derive(Debug)]
pub struct Utilisation;

impl Figure for Utilisation {
    fn name(&self) -> &'static str {
        "utilisation"
    }

    fn title(&self) -> &'static str {
        "Completion and utilisation by congestion control, rate and round trip"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for cell in cells() {
            for mechanism in SERIES {
                let setting = cell.setting(extent, mechanism);
                let run = |index| {
                    Job::new(cell.name(mechanism), &setting, index).watching(Watch::Reconnections)
                };
                jobs.extend((0..extent.choose(2, 5)).map(run));
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let held = mean(of(runs, Mechanism::Hold).filter_map(|r| r.result.utilisation));
        Part::new("Completion and utilisation")
            .table(table(runs))
            .figure(
                strip(runs).draw(),
                "Utilisation of the connected time; every mark is one run, those that were given up \
                 among them.",
            )
            .claims(claims(runs))
            .highlight(Highlight {
                label: "Utilisation with hold".to_owned(),
                value: held.map_or("–".to_owned(), |held| Unit::Share.show(held.value)),
                note: "of the connected time, mean".to_owned(),
                tone: held.map_or(Tone::Plain, |held| {
                    if held.value < WANTED { Tone::Bad } else { Tone::Good }
                }),
            })
    }
}

/// The runs of a series in all cells.
fn of(runs: &Runs, mechanism: Mechanism) -> impl Iterator<Item = &Record> {
    cells()
        .into_iter()
        .flat_map(move |cell| runs.of(&cell.name(mechanism)))
}

fn table(runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("congestion", "Congestion control"),
        Column::fixed("rate_mbit_per_s", "Mbit/s", 0),
        Column::fixed("round_trip_ms", "Round trip, ms", 0),
    ];
    for mechanism in SERIES {
        let key = mechanism.name().replace('-', "_");
        columns.push(Column::text(format!("{key}_completed"), title(mechanism)));
        columns.push(Column::quantity(
            format!("{key}_utilisation"),
            "used",
            Unit::Share,
        ));
    }
    columns.push(Column::quantity(
        "hold_resume_s",
        "resumes after",
        Unit::Seconds,
    ));
    columns.push(Column::quantity(
        "hold_half_second_s",
        "half a second",
        Unit::Seconds,
    ));
    columns.push(Column::quantity(
        "hold_five_seconds",
        "five seconds",
        Unit::Share,
    ));
    let mut table = Table::new(columns)
        .titled("Transfers that completed, and the share of the connected time that was used");
    for cell in cells() {
        let mut row = vec![
            Shown::from(cell.congestion.name()),
            Shown::from(cell.rate_mbit_per_s),
            Shown::from(cell.round_trip_ms),
        ];
        for mechanism in SERIES {
            let records = runs.of(&cell.name(mechanism));
            row.extend([completed(records), utilisation(records, mechanism)]);
        }
        let held = runs.of(&cell.name(Mechanism::Hold));
        row.push(Shown::from(median_resume(held)));
        row.push(Shown::from(middle(held, |outage| outage.half_second_s)));
        row.push(Shown::from(middle(held, |outage| {
            outage.first_five_seconds_share
        })));
        table.push(row);
    }
    table.note(
        "Used: the mean, which counts the transfers that were given up with what they had brought. \
         Resumes after: the median time from link-up to new bytes, with hold. Half a second: the median time          until as much had come as the link carries in half a second, further outages in between counted.          Five seconds: the median share of what the link could carry in the five seconds after link-up.",
    );
    table
}

fn completed(records: &[Record]) -> Shown {
    let completed = records.iter().filter(|record| record.succeeded()).count();
    match records {
        [] => Shown::missing(),
        all => {
            Shown::from(format!("{completed} of {}", all.len())).tone(if completed == all.len() {
                Tone::Good
            } else {
                Tone::Bad
            })
        }
    }
}

fn utilisation(records: &[Record], mechanism: Mechanism) -> Shown {
    let mean = mean(
        records
            .iter()
            .filter_map(|record| record.result.utilisation),
    );
    mean.map_or(Shown::missing(), |mean| {
        let tone = match mechanism {
            _ if mean.value >= WANTED => Tone::Good,
            Mechanism::Hold => Tone::Bad,
            _ => Tone::Plain,
        };
        Shown::from(mean.value).tone(tone)
    })
}

/// The median resume time, of what never resumed as well; `None` if that is the median.
fn median_resume(records: &[Record]) -> Option<f64> {
    let outages = records.iter().flat_map(Record::outages);
    let median = outlast_experiments::present::median(outages.map(|(outage, _)| outage.resume_s))?;
    median.value.is_finite().then_some(median.value)
}

/// The median of `measure` over those outages that have it.
fn middle(records: &[Record], measure: fn(&OutageResult) -> Option<f64>) -> Option<f64> {
    let outages = records.iter().flat_map(Record::outages);
    let measured = outages.filter_map(|(outage, _)| measure(outage));
    Some(outlast_experiments::present::median(measured.map(Some))?.value)
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, published| {
        own_claim("hold-channel", statement, Unit::Share, published)
    };
    let complete = own("hold: every transfer completes.", Published::AtLeast(1.0));
    let used = own(
        "hold: the mean utilisation is at least 95 %.",
        Published::AtLeast(WANTED),
    );
    let used_by = [
        (
            Congestion::Cubic,
            "hold, CUBIC alone: the mean utilisation is at least 95 %.",
        ),
        (
            Congestion::Bbr,
            "hold, BBR alone: the mean utilisation is at least 95 %.",
        ),
    ];
    let fails = own(
        "Unaided transfers mostly fail (share that completes).",
        Published::AtMost(0.5),
    );
    let utilisations = |congestion: Option<Congestion>| {
        let cells = cells().into_iter();
        let wanted = cells.filter(move |cell| congestion.is_none_or(|c| cell.congestion == c));
        let records = wanted.flat_map(|cell| runs.of(&cell.name(Mechanism::Hold)));
        mean(records.filter_map(|record| record.result.utilisation))
    };
    let mut claims = vec![
        complete.judge(share(of(runs, Mechanism::Hold), Record::succeeded)),
        used.judge(utilisations(None)),
    ];
    claims.extend(used_by.map(|(congestion, statement)| {
        own(statement, Published::AtLeast(WANTED)).judge(utilisations(Some(congestion)))
    }));
    claims.push(fails.judge(share(of(runs, Mechanism::None), Record::succeeded)));
    claims
}

fn strip(runs: &Runs) -> Strip {
    let mut rows: Vec<StripRow> = Vec::new();
    let mut group_before = None;
    for cell in cells() {
        let group = format!("{}, {} Mbit/s", cell.congestion, cell.rate_mbit_per_s);
        let is_new = group_before.as_ref() != Some(&group);
        let samples = SERIES.map(|mechanism| {
            let records = runs.of(&cell.name(mechanism)).iter();
            records
                .filter_map(|record| record.result.utilisation)
                .map(Some)
                .collect()
        });
        rows.push(StripRow {
            group: is_new.then(|| group.clone()),
            label: format!("{} ms", cell.round_trip_ms),
            samples: samples.to_vec(),
        });
        group_before = Some(group);
    }
    Strip {
        axis: Axis::new("Utilisation of the connected time", Unit::Share).range(0.0, 1.0),
        variants: SERIES
            .map(|m| (title(m).to_owned(), m == Mechanism::None))
            .to_vec(),
        rows,
        limit: Some(Limit {
            value: WANTED,
            name: "wanted".to_owned(),
        }),
    }
}
