//! What the runs of a cell say together.

use crate::datum::{Column, Datum, Kind};
use crate::plan::Plan;
use outlast_report::results::resume_times;
use outlast_report::table::{Cell, Column as TableColumn, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::RunResult;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The runs of a cell, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSummary {
    /// Which cell, counted from zero.
    pub cell: u64,
    /// Its values, in the first of [`Plan::columns`].
    pub parameters: Vec<Datum>,
    /// How many runs it has.
    pub runs: u64,
    /// Runs that completed with nothing corrupted.
    pub completed: u64,
    /// Runs whose hashes do not agree.
    pub corrupt: u64,
    /// Runs that ended with an error, such as a connection given up.
    pub failed: u64,
    /// Mean duration of the runs that completed, in seconds.
    pub elapsed_mean_s: Option<f64>,
    /// Mean share of the connected time that was used.
    pub utilisation_mean: Option<f64>,
    /// Returns of the link after which there was time for new data to come.
    pub returns: u64,
    /// Returns of the link after which no new data came.
    pub never_resumed: u64,
    /// Median time from link-up to new data, of the returns after which it came.
    pub resume_median_s: Option<f64>,
    /// 95 % of these times are at most this long (nearest rank).
    pub resume_p95_s: Option<f64>,
    /// The longest of them.
    pub resume_max_s: Option<f64>,
    /// Mean number of retransmission timeouts.
    pub timeouts_mean: Option<f64>,
    /// Mean number of payload bytes sent more than once.
    pub retransmitted_bytes_mean: Option<f64>,
    /// Mean number of packets that Outlast put on the path.
    pub injected_packets_mean: Option<f64>,
    /// Release of the kernel whose TCP it was, if it was a kernel's.
    pub kernel: Option<String>,
}

/// Sums the runs of one cell up, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: u64,
    completed: u64,
    corrupt: u64,
    failed: u64,
    elapsed: Mean,
    utilisation: Mean,
    timeouts: Mean,
    retransmitted: Mean,
    injected: Mean,
    never_resumed: u64,
    resumes: Vec<f64>,
    kernel: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / as_f64(self.count))
    }
}

impl Tally {
    pub(crate) fn add(&mut self, run: &RunResult) {
        let is_corrupt = run.intact == Some(false);
        let is_done = run.completed && !is_corrupt;
        self.runs += 1;
        self.completed += u64::from(is_done);
        self.corrupt += u64::from(is_corrupt);
        self.failed += u64::from(run.error.is_some());
        self.elapsed.add(is_done.then_some(run.elapsed_s));
        self.utilisation.add(run.utilisation);
        self.timeouts.add(run.timeouts.map(as_f64));
        self.retransmitted.add(run.retransmitted_bytes.map(as_f64));
        self.injected.add(Some(as_f64(run.injected_packets)));
        if self.kernel.is_none() {
            self.kernel.clone_from(&run.settings.tcp.kernel);
        }
        for resume in resume_times(run) {
            match resume {
                Some(time) => self.resumes.push(time),
                None => self.never_resumed += 1,
            }
        }
    }

    pub(crate) fn summary(mut self, cell: u64, parameters: Vec<Datum>) -> CellSummary {
        self.resumes.sort_by(f64::total_cmp);
        let resumes = &self.resumes;
        CellSummary {
            cell,
            parameters,
            runs: self.runs,
            completed: self.completed,
            corrupt: self.corrupt,
            failed: self.failed,
            elapsed_mean_s: self.elapsed.value(),
            utilisation_mean: self.utilisation.value(),
            returns: resumes.len() as u64 + self.never_resumed,
            never_resumed: self.never_resumed,
            resume_median_s: median(resumes),
            resume_p95_s: rank(resumes, 95),
            resume_max_s: resumes.last().copied(),
            timeouts_mean: self.timeouts.value(),
            retransmitted_bytes_mean: self.retransmitted.value(),
            injected_packets_mean: self.injected.value(),
            kernel: self.kernel,
        }
    }
}

/// The middle value, or the mean of the two middle ones.
fn median(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]))
}

/// The least value that `percent` of all do not exceed.
fn rank(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The measures of a summary: name, kind, unit and value.
type Measure = (&'static str, Kind, Unit, Datum);

impl CellSummary {
    /// Of zeros, for its columns.
    fn none() -> Self {
        Tally::default().summary(0, Vec::new())
    }

    fn measures(&self) -> [Measure; 16] {
        let count = |name, value: u64| (name, Kind::Integer, Unit::Count, value.into());
        let mean = |name, unit, value: Option<f64>| (name, Kind::Number, unit, value.into());
        let share = (self.runs > 0).then(|| as_f64(self.completed) / as_f64(self.runs));
        [
            count("runs", self.runs),
            count("completed", self.completed),
            count("corrupt", self.corrupt),
            count("failed", self.failed),
            mean("completed_share", Unit::Share, share),
            mean("elapsed_mean_s", Unit::Seconds, self.elapsed_mean_s),
            mean("utilisation_mean", Unit::Share, self.utilisation_mean),
            count("returns", self.returns),
            count("never_resumed", self.never_resumed),
            mean("resume_median_s", Unit::Seconds, self.resume_median_s),
            mean("resume_p95_s", Unit::Seconds, self.resume_p95_s),
            mean("resume_max_s", Unit::Seconds, self.resume_max_s),
            mean("timeouts_mean", Unit::Number, self.timeouts_mean),
            mean(
                "retransmitted_bytes_mean",
                Unit::Bytes,
                self.retransmitted_bytes_mean,
            ),
            mean(
                "injected_packets_mean",
                Unit::Number,
                self.injected_packets_mean,
            ),
            (
                "kernel",
                Kind::Text,
                Unit::Number,
                self.kernel.as_deref().into(),
            ),
        ]
    }

    /// The columns of the table of cells.
    pub(crate) fn columns(plan: &Plan) -> Vec<Column> {
        let mut columns = vec![Column::quantity("cell", Kind::Integer, Unit::Count)];
        columns.extend(plan.columns().into_iter().take(plan.grid_columns()));
        let measures = Self::none().measures();
        columns.extend(measures.map(|(name, kind, unit, _)| Column::quantity(name, kind, unit)));
        columns
    }

    /// The row in the table of cells.
    pub fn row(&self) -> Vec<Datum> {
        let mut row = vec![Datum::Integer(self.cell + 1)];
        row.extend_from_slice(&self.parameters);
        row.extend(self.measures().map(|(_, _, _, value)| value));
        row
    }

    /// As JSON, with the names of the parameters from `plan`.
    #[must_use]
    pub fn to_json(&self, plan: &Plan) -> impl Serialize {
        Json {
            columns: plan.columns(),
            summary: self.clone(),
        }
    }
}

struct Json {
    columns: Vec<Column>,
    summary: CellSummary,
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cell", &(self.summary.cell + 1))?;
        map.serialize_entry("parameters", &Parameters(self))?;
        for (name, _, _, value) in self.summary.measures() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

struct Parameters<'a>(&'a Json);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Json { columns, summary } = self.0;
        let names = columns.iter().map(|column| &column.name);
        serializer.collect_map(names.zip(&summary.parameters))
    }
}

/// How much room there is for a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Width {
    /// All columns.
    Wide,
    /// Columns without which there is no point in the table.
    Narrow,
}

/// The table of `cells` for readers.
#[must_use]
pub fn table(plan: &Plan, cells: &[CellSummary], width: Width) -> Table {
    let is_wide = width == Width::Wide;
    let grid = plan.columns().into_iter().take(plan.grid_columns());
    let mut columns: Vec<TableColumn> = grid
        .zip(plan.headings())
        .map(|(column, heading)| TableColumn::text(column.name, heading))
        .collect();
    let used = if is_wide { "Utilisation" } else { "Used" };
    columns.extend([
        TableColumn::text("completed", if is_wide { "Completed" } else { "Done" }),
        TableColumn::quantity("utilisation_mean", used, Unit::Share),
        TableColumn::quantity("resume_median_s", "Median resume", Unit::Seconds),
        TableColumn::quantity("resume_p95_s", "95 % resume", Unit::Seconds),
    ]);
    if is_wide {
        columns.push(TableColumn::quantity(
            "never_resumed",
            "Never resumed",
            Unit::Count,
        ));
    }
    columns.push(TableColumn::fixed("timeouts_mean", "Timeouts", 2));
    let mut table = Table::new(columns);
    for cell in cells {
        let labels = plan.labels(cell.cell).into_iter();
        let mut row: Vec<Cell> = labels.map(Cell::from).collect();
        row.extend([
            completed(cell),
            Cell::from(cell.utilisation_mean),
            Cell::from(cell.resume_median_s),
            Cell::from(cell.resume_p95_s),
        ]);
        if is_wide {
            let stalled = if cell.never_resumed > 0 {
                Tone::Bad
            } else {
                Tone::Plain
            };
            row.push(Cell::from(cell.never_resumed).tone(stalled));
        }
        row.push(Cell::from(cell.timeouts_mean));
        table.push(row);
    }
    table
}

fn completed(cell: &CellSummary) -> Cell {
    let CellSummary {
        runs, completed, ..
    } = *cell;
    let mut words = match (completed, runs) {
        (1, 1) => "yes".to_owned(),
        (0, 1) => "no".to_owned(),
        _ if completed == runs => format!("all {runs}"),
        _ => format!("{completed} of {runs}"),
    };
    if cell.corrupt > 0 {
        words.push_str(&format!(", {} corrupt", cell.corrupt));
    }
    let tone = match completed {
        all if all == runs => Tone::Good,
        0 => Tone::Bad,
        _ => Tone::Warning,
    };
    Cell::from(words).tone(tone)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_values_of_the_sample() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(rank(&values, 95), Some(19.0));
        assert_eq!(rank(&values[..1], 95), Some(1.0));
        assert_eq!(rank(&values[..2], 95), Some(2.0));
        assert_eq!(rank(&[], 95), None);
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
    }
}
