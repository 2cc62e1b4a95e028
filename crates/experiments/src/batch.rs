//! Many runs at once.
//!
//! A run spends most of its time waiting, so that a small machine carries a dozen; what it cannot
//! do is emulate a link on time when too many are busy. Runs whose link is fast therefore count for
//! more, and a run of which the lab says that its numbers are doubtful is carried out again. A
//! simulated run waits for nothing: there is one at a time for each core.

use crate::carry_out::{self, CarryOutError, Ran};
use crate::job::Job;
use crate::moments::Moments;
use crate::record::Record;
use crate::trial::TrialError;
use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::socket::SocketError;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

/// How a batch is carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How much [`Job::weight`] may be under way at once.
    pub capacity: u32,
    /// The version that goes into the records.
    pub version: String,
}

/// How a batch is getting on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Runs that are done, those that were there already among them.
    pub done: usize,
    /// All runs.
    pub total: usize,
    /// Runs under way.
    pub running: usize,
    /// Runs that had to be carried out again, as the machine was too busy.
    pub repeated: usize,
    /// About how long it still takes.
    pub left: Duration,
}

/// A run that this machine cannot carry out, as it lacks a part that other runs do not need.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The cell that stays empty.
    pub cell: String,
    /// What is missing.
    pub reason: String,
}

/// Why a batch ended early. What was done until then is stored.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// A run failed.
    #[error("{cell}: the run failed")]
    Run {
        /// The cell of the run.
        cell: String,
        /// Why.
        #[source]
        source: CarryOutError,
    },
    /// The user asked for an end.
    #[error("cancelled")]
    Cancelled,
    /// A finished run could not be stored.
    #[error("cannot store a finished run")]
    Store(#[source] io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

impl BatchError {
    /// Whether this machine lacks something, rather than a run having failed.
    #[must_use]
    pub fn is_missing_capability(&self) -> bool {
        let Self::Run { source, .. } = self else {
            return false;
        };
        matches!(source, CarryOutError::Lab(source) if source.is_missing_capability())
    }
}

/// How many runs of 10 Mbit/s a machine with two cores emulates on time.
pub const CAPACITY: u32 = 12;

/// A run is carried out at most this often, unless its trial says otherwise.
pub const ATTEMPTS: u32 = 3;
/// How often the progress is shown while nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// Carries `jobs` out, `done_before` others being done already. Every finished run is given to
/// `finished`, and how the batch gets on to `progress`, by the thread that calls this.
///
/// The longest runs come first, so that none is left alone at the end.
///
/// # Errors
/// When a run fails, the batch is cancelled, or a run cannot be stored; all others are then ended.
pub fn run(
    jobs: Vec<Job>,
    done_before: usize,
    plan: &Plan,
    cancel: &Cancel,
    mut finished: impl FnMut(&Record) -> io::Result<()>,
    mut progress: impl FnMut(&Progress),
) -> Result<Vec<Gap>, BatchError> {
    let mut batch = Batch::new(jobs, done_before, plan.capacity);
    let (sender, receiver) = mpsc::channel();
    let moments = Moments::new(batch.cores as usize);
    thread::scope(|scope| {
        loop {
            while let Some(attempt) = batch.next(clock::now()) {
                let report = Report {
                    sender: sender.clone(),
                    number: attempt.number,
                };
                let moments = &moments;
                let work = move || {
                    let ran = carry_out::carry_out_among(&attempt.job, moments, cancel);
                    report.send(ran);
                };
                let thread = thread::Builder::new().name("run".into());
                if let Err(source) = thread.spawn_scoped(scope, work) {
                    batch.fail(BatchError::Thread(source), cancel);
                }
            }
            progress(&batch.progress(clock::now()));
            if batch.under_way.is_empty() {
                return;
            }
            match receiver.recv_timeout(TICK) {
                Ok((number, outcome)) => {
                    if let Some(record) = batch.settle(number, outcome, plan, cancel)
                        && let Err(source) = finished(&record)
                    {
                        batch.fail(BatchError::Store(source), cancel);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("`sender` is still here"),
            }
        }
    });
    match batch.failure {
        Some(failure) => Err(failure),
        None => Ok(batch.gaps),
    }
}

/// The runs that wait and those under way.
struct Batch {
    /// Runs that wait, the next one last.
    waiting: Vec<Waiting>,
    under_way: Vec<UnderWay>,
    started: usize,
    capacity: u32,
    /// Of this machine.
    cores: u32,
    counts: Progress,
    gaps: Vec<Gap>,
    failure: Option<BatchError>,
}

struct Waiting {
    job: Job,
    attempts: u32,
    expected: Duration,
}

struct UnderWay {
    number: usize,
    job: Job,
    /// This one included.
    attempts: u32,
    since: Instant,
    expected: Duration,
}

impl UnderWay {
    fn may_be_repeated(&self) -> bool {
        self.attempts < self.job.attempts()
    }
}

/// A run that begins.
struct Attempt {
    number: usize,
    job: Job,
}

/// What came of a run; `None` if its thread panicked.
type Outcome = Option<Result<Box<Ran>, CarryOutError>>;

/// Tells what came of a run exactly once, be it that its thread panicked.
struct Report {
    sender: Sender<(usize, Outcome)>,
    number: usize,
}

impl Report {
    fn send(mut self, outcome: Result<Ran, CarryOutError>) {
        self.tell(Some(outcome.map(Box::new)));
        std::mem::forget(self);
    }

    fn tell(&mut self, outcome: Outcome) {
        // Nobody listens any more only if the batch's own thread panicked.
        let _ = self.sender.send((self.number, outcome));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.tell(None);
    }
}

impl Batch {
    fn new(jobs: Vec<Job>, done_before: usize, capacity: u32) -> Self {
        let total = jobs.len() + done_before;
        let mut waiting: Vec<Waiting> = jobs
            .into_iter()
            .map(|job| Waiting {
                expected: job.expected(),
                job,
                attempts: 0,
            })
            .collect();
        // Stable, so that runs of equal length keep their order; the next one is last.
        waiting.reverse();
        waiting.sort_by_key(|waiting| waiting.expected);
        Self {
            waiting,
            under_way: Vec::new(),
            started: 0,
            capacity,
            cores: cores(),
            counts: Progress {
                done: done_before,
                total,
                ..Progress::default()
            },
            gaps: Vec::new(),
            failure: None,
        }
    }

    /// The next run, if there is capacity for it. One that is too heavy for all of it runs alone.
    fn next(&mut self, now: Instant) -> Option<Attempt> {
        let used: u32 = self.under_way.iter().map(|run| self.weight(&run.job)).sum();
        let weight = self.weight(&self.waiting.last()?.job);
        if !self.under_way.is_empty() && used.saturating_add(weight) > self.capacity {
            return None;
        }
        let Waiting {
            job,
            attempts,
            expected,
        } = self.waiting.pop()?;
        let number = self.started;
        self.started += 1;
        let attempt = Attempt {
            number,
            job: job.clone(),
        };
        self.under_way.push(UnderWay {
            number,
            job,
            attempts: attempts + 1,
            since: now,
            expected,
        });
        Some(attempt)
    }

    /// Takes the outcome of a run; answers its record if it counts.
    fn settle(
        &mut self,
        number: usize,
        outcome: Outcome,
        plan: &Plan,
        cancel: &Cancel,
    ) -> Option<Record> {
        let position = self.under_way.iter().position(|run| run.number == number);
        let run = self
            .under_way
            .swap_remove(position.expect("every run reports once"));
        let cell = run.job.cell.clone();
        match outcome {
            // A panic is passed on by the scope; nothing more is begun.
            None | Some(Err(CarryOutError::Lab(LabError::Cancelled))) => {
                self.fail(BatchError::Cancelled, cancel);
            }
            Some(Err(source)) if is_gap(&source) => {
                self.counts.done += 1;
                self.gaps.push(Gap {
                    cell,
                    reason: source.to_string(),
                });
            }
            Some(Err(CarryOutError::Trial(TrialError::NotBegun(_)))) if run.may_be_repeated() => {
                self.repeat(run);
            }
            Some(Err(source)) => self.fail(BatchError::Run { cell, source }, cancel),
            Some(Ok(ran)) if !ran.warnings.is_empty() && run.may_be_repeated() => self.repeat(run),
            Some(Ok(ran)) => {
                self.counts.done += 1;
                return Some(Record::new(&run.job, &plan.version, run.attempts, *ran));
            }
        }
        None
    }

    /// Carries a run out once more, after all others.
    fn repeat(&mut self, run: UnderWay) {
        self.counts.repeated += 1;
        let UnderWay {
            job,
            attempts,
            expected,
            ..
        } = run;
        let waiting = Waiting {
            job,
            attempts,
            expected,
        };
        self.waiting.insert(0, waiting);
    }

    fn weight(&self, job: &Job) -> u32 {
        job.weight(self.capacity, self.cores)
    }

    /// Ends everything. The first failure is the one that is told.
    fn fail(&mut self, failure: BatchError, cancel: &Cancel) {
        self.waiting.clear();
        cancel.cancel();
        if self.failure.is_none() {
            self.failure = Some(failure);
        }
    }

    fn progress(&self, now: Instant) -> Progress {
        // A run that has lasted too long is taken to last as long again as it is overdue.
        let left_of = |run: &UnderWay| now.since(run.since).abs_diff(run.expected);
        let waiting = || {
            self.waiting
                .iter()
                .map(|run| (run.expected, self.weight(&run.job)))
        };
        let under_way = || {
            self.under_way
                .iter()
                .map(|run| (left_of(run), self.weight(&run.job)))
        };
        let longest = waiting().chain(under_way()).map(|(time, _)| time).max();
        let shared: Duration = waiting()
            .chain(under_way())
            .map(|(time, weight)| time * weight)
            .sum();
        let left = longest
            .unwrap_or_default()
            .max(shared / self.capacity.max(1));
        Progress {
            running: self.under_way.len(),
            left,
            ..self.counts
        }
    }
}

/// How many runs this machine simulates at once.
fn cores() -> u32 {
    thread::available_parallelism()
        .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Whether `error` concerns this run alone, as it asks for what this machine does not have.
fn is_gap(error: &CarryOutError) -> bool {
    if let CarryOutError::Trial(TrialError::Missing(_)) = error {
        return true;
    }
    let CarryOutError::Lab(LabError::Option(error)) = error else {
        return false;
    };
    matches!(
        error,
        SocketError::NoSuchCongestionControl { .. }
            | SocketError::CongestionControlNotAllowed { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Outages, Setting, Task};
    use outlast_base::units::ByteCount;
    use outlast_scenario::result::World;
    use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

    /// A download of a second per 1.25 MB at 10 Mbit/s.
    fn job(cell: &str, rate_mbit_per_s: u32, bytes: u64) -> Job {
        let setting = Setting {
            name: cell.to_owned(),
            rate_mbit_per_s,
            delay: Duration::from_millis(1),
            queue: 50,
            outages: Outages::None,
            task: Task::Bulk {
                bytes: ByteCount(bytes),
                direction: Direction::Download,
            },
            congestion: Congestion::Cubic,
            sack: true,
            ip: IpVersion::V4,
            gateway: Mechanism::Hold,
            mobile: Mechanism::Hold,
            seed: 1,
            deadline: Duration::from_secs(600),
        };
        Job::new(cell, &setting, 0)
    }

    fn begun(batch: &mut Batch) -> Vec<String> {
        std::iter::from_fn(|| batch.next(Instant::ZERO))
            .map(|attempt| attempt.job.cell)
            .collect()
    }

    fn plan() -> Plan {
        Plan {
            capacity: 4,
            version: "1.2.3".to_owned(),
        }
    }

    #[test]
    fn the_longest_runs_come_first_and_no_more_than_fit() {
        let jobs = vec![
            job("short", 10, 1_000_000),
            job("long", 10, 9_000_000),
            job("fast", 25, 20_000_000),
            job("middle", 10, 4_000_000),
        ];
        let mut batch = Batch::new(jobs, 0, 4);
        // The fast link counts for three.
        assert_eq!(begun(&mut batch), ["long", "fast"]);
    }

    #[test]
    fn a_run_too_heavy_for_the_capacity_runs_alone() {
        let mut batch = Batch::new(vec![job("fast", 100, 1_000_000), job("x", 10, 1_000)], 0, 4);
        assert_eq!(begun(&mut batch), ["fast"]);
    }

    #[test]
    fn as_many_runs_are_simulated_at_once_as_there_are_cores() {
        let sims = (0..9).map(|_| job("sim", 100, 1_000_000).in_world(World::Sim));
        let mut batch = Batch::new(sims.collect(), 0, 12);
        batch.cores = 4;
        assert_eq!(begun(&mut batch).len(), 4);
    }

    #[test]
    fn a_run_that_this_kernel_cannot_do_leaves_a_gap_and_the_others_go_on() {
        let cancel = Cancel::new().unwrap();
        let mut batch = Batch::new(vec![job("a", 10, 2_000_000), job("b", 10, 1_000_000)], 0, 1);
        assert_eq!(begun(&mut batch), ["a"]);
        let missing = SocketError::NoSuchCongestionControl {
            name: "bbr".to_owned(),
            available: "cubic".to_owned(),
        };
        let outcome = Some(Err(LabError::Option(missing).into()));
        assert!(batch.settle(0, outcome, &plan(), &cancel).is_none());
        assert_eq!(batch.gaps.len(), 1);
        assert!(batch.gaps[0].reason.contains("bbr"), "{:?}", batch.gaps);
        assert_eq!(begun(&mut batch), ["b"]);
        assert!(batch.failure.is_none());
    }

    #[test]
    fn a_run_that_does_not_begin_is_repeated_after_the_others_and_ends_the_batch_at_last() {
        let cancel = Cancel::new().unwrap();
        let mut batch = Batch::new(vec![job("a", 10, 2_000_000), job("b", 10, 1_000_000)], 0, 1);
        let settle = |batch: &mut Batch, number| {
            let error = TrialError::NotBegun("nothing came".to_owned());
            let outcome = Some(Err(CarryOutError::Trial(error)));
            assert!(batch.settle(number, outcome, &plan(), &cancel).is_none());
        };
        assert_eq!(begun(&mut batch), ["a"]);
        settle(&mut batch, 0);
        assert_eq!(begun(&mut batch), ["b"]);
        settle(&mut batch, 1);
        assert_eq!(begun(&mut batch), ["a"]);
        settle(&mut batch, 2);
        assert_eq!(begun(&mut batch), ["b"]);
        settle(&mut batch, 3);
        assert_eq!(batch.counts.repeated, 4);
        assert!(batch.failure.is_none());
        assert_eq!(begun(&mut batch), ["a"]);
        settle(&mut batch, 4);
        assert!(
            matches!(&batch.failure, Some(BatchError::Run { cell, .. }) if cell == "a"),
            "{:?}",
            batch.failure
        );
    }

    #[test]
    fn the_first_failure_ends_the_batch_and_is_the_one_that_is_told() {
        let cancel = Cancel::new().unwrap();
        let jobs = ["a", "b", "c"]
            .map(|cell| job(cell, 10, 1_000_000))
            .to_vec();
        let mut batch = Batch::new(jobs, 0, 2);
        assert_eq!(begun(&mut batch).len(), 2);
        let broken = LabError::Emulator(io::Error::other("broken"));
        batch.settle(0, Some(Err(broken.into())), &plan(), &cancel);
        batch.settle(1, Some(Err(LabError::Cancelled.into())), &plan(), &cancel);
        assert!(begun(&mut batch).is_empty());
        assert!(
            matches!(batch.failure, Some(BatchError::Run { .. })),
            "{:?}",
            batch.failure
        );
    }

    #[test]
    fn the_time_left_is_what_the_longest_run_needs_or_what_all_need_together() {
        let long = job("long", 10, 10_000_000);
        let needed = long.expected();
        let mut batch = Batch::new(vec![long], 2, 4);
        let before = batch.progress(Instant::ZERO);
        assert_eq!((before.done, before.total, before.left), (2, 3, needed));
        assert_eq!(begun(&mut batch), ["long"]);
        let later = batch.progress(Instant::from_millis(1_000));
        assert_eq!(
            (later.running, later.left),
            (1, needed - Duration::from_secs(1))
        );
        let overdue = batch.progress(Instant::ZERO + needed + Duration::from_secs(7));
        assert_eq!(overdue.left, Duration::from_secs(7));
        let many = (0..8).map(|_| job("same", 10, 10_000_000)).collect();
        assert_eq!(
            Batch::new(many, 0, 4).progress(Instant::ZERO).left,
            needed * 2
        );
    }
}
