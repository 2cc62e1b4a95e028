//! Results of lab and simulator, summed up and set into tables.

use outlast_scenario::result::{FlowResult, OutageResult, RunResult};

mod shared;

pub use shared::{connections, hops, traffic, worst_first};

use crate::statistics::Sample;
use crate::table::{Cell, Column, Table, Tone};
use crate::unit::Unit;
use crate::words;

/// What several runs of one scenario say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of runs.
    pub runs: usize,
    /// Runs of which every connection completed with nothing corrupted.
    pub completed: usize,
    /// Runs whose hashes do not agree.
    pub corrupt: usize,
    /// Runs that could not be carried out or ended with an error.
    pub failed: usize,
    /// Times until the last connection had ended, of the runs that completed, in seconds.
    pub elapsed_s: Option<Sample>,
    /// What these runs would have taken at best, in seconds; none of runs with several connections,
    /// which have no links for themselves.
    pub ideal_s: Option<Sample>,
    /// Shares of connected time that were used; none of runs with several connections.
    pub utilisation: Option<Sample>,
    /// Times from link-up to new data, in seconds, of all connections and the returns after which data
    /// came.
    pub resume_s: Option<Sample>,
    /// How often a connection got no new data after the link's return although there was time for a
    /// round trip.
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
        let returns: Vec<Option<f64>> = runs.iter().flat_map(resumes_of_all).collect();
        let alone = || runs.iter().filter(|run| run.flows.is_empty());
        let done_alone = done.iter().filter(|run| run.flows.is_empty());
        let as_f64 = |count: u64| count as f64;
        Self {
            runs: runs.len(),
            completed: done.len(),
            corrupt: runs.iter().filter(|run| is_corrupt(run)).count(),
            failed: runs.iter().filter(|run| run.error.is_some()).count(),
            elapsed_s: Sample::of(done.iter().map(|run| run.ended_s())),
            ideal_s: Sample::of(done_alone.filter_map(|run| run.ideal_s)),
            utilisation: Sample::of(alone().filter_map(|run| run.utilisation)),
            resume_s: Sample::of(returns.iter().copied().flatten()),
            never_resumed: returns.iter().filter(|resume| resume.is_none()).count(),
            timeouts: Sample::of(runs.iter().filter_map(timeouts).map(as_f64)),
            retransmitted_bytes: Sample::of(
                runs.iter().filter_map(retransmitted_bytes).map(as_f64),
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

/// Whether all of a run completed and delivered what it was to deliver, as far as anybody could tell.
fn is_sound(run: &RunResult) -> bool {
    run.is_complete() && !is_corrupt(run)
}

fn is_corrupt(run: &RunResult) -> bool {
    let mut flows = run.flows.iter();
    run.intact == Some(false) || flows.any(|flow| flow.intact == Some(false))
}

/// Whether all that was to be delivered was; `None` if nobody could tell of some connection.
fn is_intact(run: &RunResult) -> Option<bool> {
    let flows = run.flows.iter().map(|flow| flow.intact);
    let mut all = std::iter::once(run.intact).chain(flows);
    if is_corrupt(run) {
        return Some(false);
    }
    all.all(|intact| intact == Some(true)).then_some(true)
}

/// Timeouts of all connections' senders; `None` if none of them is known.
fn timeouts(run: &RunResult) -> Option<u64> {
    sum_over(run, run.timeouts, |flow| flow.timeouts)
}

/// Payload bytes that all connections' senders sent more than once; `None` if none of them is known.
fn retransmitted_bytes(run: &RunResult) -> Option<u64> {
    sum_over(run, run.retransmitted_bytes, |flow| {
        flow.retransmitted_bytes
    })
}

fn sum_over(
    run: &RunResult,
    alone: Option<u64>,
    of: impl Fn(&FlowResult) -> Option<u64>,
) -> Option<u64> {
    match run.flows[..] {
        [] => alone,
        _ => run.flows.iter().filter_map(of).reduce(|a, b| a + b),
    }
}

/// For each return of the link in a run, the time until the connection of `[workload]` had new data,
/// in seconds; `None` if none came. Returns that left less than a round trip until the next outage or
/// the end of the run, in which nothing could have come, are left out.
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

/// What [`resume_times`] tells of one connection, of every connection of a run.
#[must_use]
pub fn resumes_of_all(run: &RunResult) -> Vec<Option<f64>> {
    match run.flows[..] {
        [] => resume_times(run).collect(),
        _ => {
            let flows = run.flows.iter();
            flows.flat_map(|flow| resumes_of(run, flow)).collect()
        }
    }
}

/// What [`resume_times`] tells, of one of several connections of a run. The result does not say after
/// which outage each time is: a connection that was there for all returns of the run's list has one
/// each, and where that does not come out even, only what is certain counts as never resumed.
#[must_use]
pub fn resumes_of(run: &RunResult, flow: &FlowResult) -> Vec<Option<f64>> {
    let ended_s = flow.begin_s + flow.elapsed_s;
    let starts = run.outages.iter().skip(1).map(|next| next.start_s);
    let windows: Vec<(f64, f64)> = run
        .outages
        .iter()
        .zip(starts.chain([f64::INFINITY]))
        .filter_map(|(outage, next)| Some((outage.start_s + outage.length_s?, next.min(ended_s))))
        .filter(|(up_s, _)| (flow.begin_s..=ended_s).contains(up_s))
        .collect();
    let is_even = windows.len() == flow.resume_s.len();
    let last = flow.resume_s.len().saturating_sub(1);
    let counts = |(place, resume): (usize, Option<f64>)| {
        let counts = match (is_even, resume) {
            (true, _) => {
                let (up_s, end) = windows[place];
                let in_time = resume.is_some_and(|resume| up_s + resume <= end);
                in_time || end - up_s >= run.settings.round_trip_s
            }
            (false, Some(_)) => true,
            // At the end there may have been no time, or nothing left to deliver.
            (false, None) => place < last || !flow.completed,
        };
        counts.then_some(resume)
    };
    let all = flow.resume_s.iter().copied().enumerate();
    all.filter_map(counts).collect()
}

/// What is told of a connection that has its links for itself.
const OF_ONE_CONNECTION: [&str; 2] = ["ideal_s", "utilisation"];

/// Compares one workload under different conditions, a row for each.
///
/// The table is narrow enough for a terminal of 80 columns.
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
    table.without_empty(&OF_ONE_CONNECTION)
}

/// Runs, a row for each under its name. What is told of a run with several connections is over all of
/// them.
#[must_use]
pub fn runs<'a>(rows: impl IntoIterator<Item = (&'a str, &'a RunResult)>) -> Table {
    let mut table = Table::new([
        Column::text("run", "Run"),
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
    let mut connections = 0;
    for (name, run) in rows {
        connections = connections.max(run.flows.len());
        let alone = run.flows.is_empty();
        let judged = |flag: bool| Cell::from(flag).tone(if flag { Tone::Good } else { Tone::Bad });
        table.push([
            Cell::from(name),
            completed(run),
            is_intact(run).map_or_else(Cell::missing, judged),
            Cell::from(run.ended_s()),
            Cell::from(run.ideal_s.filter(|_| alone)),
            Cell::from(run.utilisation.filter(|_| alone)),
            Cell::from(run.outages.len() as u64),
            worst_resume(&resumes_of_all(run)),
            Cell::from(timeouts(run)),
            Cell::from(retransmitted_bytes(run)),
            Cell::from(run.injected_packets),
        ]);
        if let Some(error) = &run.error {
            let name = words::capitalised(name);
            table.note(format!("{name}: {error}"));
        }
    }
    if connections > 0 {
        table.note(format!("Over all {connections} connections."));
    }
    table.without_empty(&OF_ONE_CONNECTION)
}

/// Whether a run completed, and how many of several connections did.
fn completed(run: &RunResult) -> Cell {
    let done = run.flows.iter().filter(|flow| flow.completed).count();
    match (run.is_complete(), run.flows.len()) {
        (true, _) => Cell::from(true).tone(Tone::Good),
        (false, 0) => Cell::from(false).tone(Tone::Bad),
        (false, all) => Cell::from(format!("{done} of {all}")).tone(Tone::Bad),
    }
}

/// The longest of `resumes`; "never" if one of them never came to pass.
fn worst_resume(resumes: &[Option<f64>]) -> Cell {
    if resumes.contains(&None) {
        return Cell::from("never").tone(Tone::Bad);
    }
    let sample = Sample::of(resumes.iter().copied().flatten());
    Cell::from(sample.map(|sample| sample.greatest))
}
