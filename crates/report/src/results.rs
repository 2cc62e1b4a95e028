//! Results of lab and simulator, summed up and set into tables.

use outlast_scenario::result::{OutageResult, RunResult};

mod shared;

pub use shared::{connections, hops, traffic};

use crate::statistics::Sample;
use crate::table::{Cell, Column, Table, Tone};
use crate::unit::Unit;

/// What several runs of one scenario say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of runs.
    pub runs: usize,
    /// Runs that completed with nothing corrupted.
    pub completed: usize,
    /// Runs whose hashes do not agree.
    pub corrupt: usize,
    /// Runs that could not be carried out or ended with an error.
    pub failed: usize,
    /// Durations of the runs that completed, in seconds.
    pub elapsed_s: Option<Sample>,
    /// What these runs would have taken at best, in seconds.
    pub ideal_s: Option<Sample>,
    /// Shares of connected time that were used, of all runs that have one.
    pub utilisation: Option<Sample>,
    /// Times from link-up to new data, in seconds, of the returns after which data came.
    pub resume_s: Option<Sample>,
    /// Returns of the link after which no new data came although there was time for a round trip.
    pub never_resumed: usize,
    /// Retransmission timeouts per run.
    pub timeouts: Option<Sample>,
    /// Bytes sent more than once, per run.
    pub retransmitted_bytes: Option<Sample>,
    /// Packets that Outlast put on the path, per run.
    pub injected_packets: Option<Sample>,
}

impl Summary {
    /// Sums `runs` up.
    #[must_use]
    pub fn of(runs: &[RunResult]) -> Self {
        let done: Vec<&RunResult> = runs.iter().filter(|run| is_sound(run)).collect();
        let returns: Vec<Option<f64>> = runs.iter().flat_map(resume_times).collect();
        let as_f64 = |count: u64| count as f64;
        Self {
            runs: runs.len(),
            completed: done.len(),
            corrupt: runs.iter().filter(|run| run.intact == Some(false)).count(),
            failed: runs.iter().filter(|run| run.error.is_some()).count(),
            elapsed_s: Sample::of(done.iter().map(|run| run.elapsed_s)),
            ideal_s: Sample::of(done.iter().filter_map(|run| run.ideal_s)),
            utilisation: Sample::of(runs.iter().filter_map(|run| run.utilisation)),
            resume_s: Sample::of(returns.iter().copied().flatten()),
            never_resumed: returns.iter().filter(|resume| resume.is_none()).count(),
            timeouts: Sample::of(runs.iter().filter_map(|run| run.timeouts).map(as_f64)),
            retransmitted_bytes: Sample::of(
                runs.iter()
                    .filter_map(|run| run.retransmitted_bytes)
                    .map(as_f64),
            ),
            injected_packets: Sample::of(runs.iter().map(|run| as_f64(run.injected_packets))),
        }
    }

    fn completed_cell(&self) -> Cell {
        let Self {
            runs,
            completed,
            corrupt,
            failed,
            ..
        } = *self;
        let mut words = match (completed, runs) {
            (1, 1) => "yes".to_owned(),
            (0, 1) => "no".to_owned(),
            (_, 0) => "no runs".to_owned(),
            _ => format!("{completed} of {runs}"),
        };
        if corrupt > 0 {
            words.push_str(&format!(", {corrupt} corrupt"));
        }
        if failed > 0 {
            words.push_str(&format!(", {failed} with an error"));
        }
        let tone = match completed {
            0 if runs == 0 => Tone::Plain,
            all if all == runs => Tone::Good,
            0 => Tone::Bad,
            _ => Tone::Warning,
        };
        Cell::from(words).tone(tone)
    }
}

/// Whether a run completed and delivered what it was to deliver, as far as anybody could tell.
fn is_sound(run: &RunResult) -> bool {
    run.completed && run.intact != Some(false)
}

/// For each return of the link in a run, the time until new data came, in seconds; `None` if none
/// came. Returns that left less than a round trip until the next outage or the end of the run, in
/// which nothing could have come, are left out.
pub fn resume_times(run: &RunResult) -> impl Iterator<Item = Option<f64>> {
    let outages = &run.outages;
    let ends = outages
        .iter()
        .skip(1)
        .map(|next| next.start_s)
        .chain([run.elapsed_s]);
    let fair = |(outage, end): (&OutageResult, f64)| {
        let up_s = outage.start_s + outage.length_s?;
        let has_time = end - up_s >= run.settings.round_trip_s;
        let in_time = outage.resume_s.is_some_and(|resume| up_s + resume <= end);
        (in_time || has_time).then_some(outage.resume_s)
    };
    outages.iter().zip(ends).filter_map(fair)
}

/// The same workload under different conditions, a row for each; narrow enough for a terminal of
/// 80 columns.
#[must_use]
pub fn comparison<'a>(rows: impl IntoIterator<Item = (&'a str, &'a [RunResult])>) -> Table {
    let mut table = Table::new([
        Column::text("run", "Run"),
        Column::text("completed", "Completed"),
        Column::quantity("elapsed_s", "Time", Unit::Seconds),
        Column::quantity("ideal_s", "Ideal", Unit::Seconds),
        Column::quantity("utilisation", "Utilisation", Unit::Share),
        Column::quantity("resume_median_s", "Median resume", Unit::Seconds),
        Column::quantity("resume_worst_s", "Worst resume", Unit::Seconds),
        Column::quantity("never_resumed", "Never resumed", Unit::Count),
    ]);
    for (name, runs) in rows {
        let summary = Summary::of(runs);
        let mean = |sample: Option<Sample>| Cell::from(sample.map(|sample| sample.mean));
        let stalled = if summary.never_resumed > 0 {
            Tone::Bad
        } else {
            Tone::Plain
        };
        table.push([
            Cell::from(name),
            summary.completed_cell(),
            mean(summary.elapsed_s),
            mean(summary.ideal_s),
            mean(summary.utilisation),
            Cell::from(summary.resume_s.map(|sample| sample.median)),
            Cell::from(summary.resume_s.map(|sample| sample.greatest)),
            Cell::from(summary.never_resumed as u64).tone(stalled),
        ]);
    }
    table
}

/// The runs of one scenario, a row for each.
#[must_use]
pub fn runs(runs: &[RunResult]) -> Table {
    let mut table = Table::new([
        Column::text("seed", "Seed"),
        Column::text("completed", "Completed"),
        Column::text("intact", "Intact"),
        Column::quantity("elapsed_s", "Time", Unit::Seconds),
        Column::quantity("ideal_s", "Ideal", Unit::Seconds),
        Column::quantity("utilisation", "Utilisation", Unit::Share),
        Column::quantity("outages", "Outages", Unit::Count),
        Column::quantity("resume_worst_s", "Worst resume", Unit::Seconds),
        Column::quantity("timeouts", "Timeouts", Unit::Count),
        Column::quantity("retransmitted_bytes", "Retransmitted", Unit::Bytes),
        Column::quantity("injected_packets", "Injected", Unit::Count),
    ]);
    for run in runs {
        let resume = Sample::of(resume_times(run).flatten());
        let judged = |flag: bool| Cell::from(flag).tone(if flag { Tone::Good } else { Tone::Bad });
        table.push([
            Cell::from(run.settings.seed.to_string()),
            judged(run.completed),
            run.intact.map_or_else(Cell::missing, judged),
            Cell::from(run.elapsed_s),
            Cell::from(run.ideal_s),
            Cell::from(run.utilisation),
            Cell::from(run.outages.len() as u64),
            Cell::from(resume.map(|sample| sample.greatest)),
            Cell::from(run.timeouts),
            Cell::from(run.retransmitted_bytes),
            Cell::from(run.injected_packets),
        ]);
        if let Some(error) = &run.error {
            table.note(format!("Seed {}: {error}", run.settings.seed));
        }
    }
    table
}
