//! Threads that carry runs out.
//!
//! Runs share nothing, take milliseconds to seconds each, and are known by a number: a counter
//! that every thread takes the next one from spreads them as well as any scheduler could.

use crate::journal::{self, Entry};
use crate::plan::{Plan, Run, RunError};
use crate::runner::{Runner, Simulator};
use serde::de::IgnoredAny;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Finished runs that may wait to be stored; a thread that has another one waits, too.
const WAITING: usize = 256;

/// Threads that carry out the runs of a plan which are not done yet.
#[derive(Debug)]
pub struct Workers {
    finished: Receiver<Result<Finished, RunError>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A run that was carried out.
#[derive(Debug)]
pub struct Finished {
    /// Which run.
    pub run: Run,
    /// Its line in the journal.
    pub(crate) line: String,
}

/// What the threads have to tell.
#[derive(Debug)]
pub enum Next {
    /// A run was carried out.
    Finished(Finished),
    /// A run could not be carried out.
    Failed(Box<RunError>),
    /// Nothing yet.
    Nothing,
    /// All runs were carried out.
    Over,
}

impl Finished {
    /// Simulates `run` of `plan`.
    ///
    /// # Errors
    ///
    /// When drawn values do not fit each other.
    pub fn carry_out(plan: &Plan, run: Run) -> Result<Self, RunError> {
        Self::carry_out_by(&Simulator, plan, run)
    }

    fn carry_out_by(runner: &dyn Runner, plan: &Plan, run: Run) -> Result<Self, RunError> {
        let result = runner.carry_out(plan, run)?;
        Ok(Self {
            run,
            line: journal::line(run, result),
        })
    }

    /// Takes in the line of a run that was carried out elsewhere.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn from_line(line: &str) -> Result<Self, serde_json::Error> {
        let entry: Entry<IgnoredAny> = serde_json::from_str(line)?;
        Ok(Self {
            run: Run {
                cell: entry.cell,
                repetition: entry.repetition,
            },
            line: format!("{}\n", line.trim_end()),
        })
    }

    /// Its line in the journal, with its end.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl Workers {
    /// Starts `threads` threads that simulate those runs of `plan` that are not `done`, by their places
    /// in the order of the tables.
    ///
    /// # Errors
    ///
    /// When a thread cannot be started.
    pub fn start(plan: &Arc<Plan>, done: Vec<bool>, threads: NonZero<usize>) -> io::Result<Self> {
        Self::start_with(Arc::new(Simulator), plan, done, threads)
    }

    /// As [`start`](Self::start), with runs that `runner` carries out.
    ///
    /// # Errors
    ///
    /// When a thread cannot be started.
    pub fn start_with(
        runner: Arc<dyn Runner>,
        plan: &Arc<Plan>,
        done: Vec<bool>,
        threads: NonZero<usize>,
    ) -> io::Result<Self> {
        let (sender, finished) = mpsc::sync_channel(WAITING);
        let work = Work {
            runner,
            plan: plan.clone(),
            done: done.into(),
            turn: Arc::new(AtomicU64::new(0)),
            stop: Arc::new(AtomicBool::new(false)),
            sender,
        };
        let mut workers = Self {
            finished,
            stop: work.stop.clone(),
            threads: Vec::new(),
        };
        let most = usize::try_from(plan.runs()).unwrap_or(usize::MAX);
        for _ in 0..threads.get().min(most) {
            let work = work.clone();
            let thread = thread::Builder::new().name("run".to_owned());
            workers
                .threads
                .push(thread.spawn(move || work.carry_out())?);
        }
        Ok(workers)
    }

    /// What comes next, if anything comes within `wait`.
    ///
    /// # Panics
    ///
    /// If a thread has panicked.
    pub fn next(&mut self, wait: Duration) -> Next {
        match self.finished.recv_timeout(wait) {
            Ok(Ok(finished)) => Next::Finished(finished),
            Ok(Err(error)) => Next::Failed(Box::new(error)),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => {
                for thread in self.threads.drain(..) {
                    if let Err(panic) = thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
                Next::Over
            }
        }
    }

    /// Begins no more runs, and waits for the end of those that are under way, which are lost.
    pub fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while !matches!(self.next(Duration::MAX), Next::Over) {}
    }
}

impl Drop for Workers {
    /// The threads begin no more runs. Nobody waits for those that are under way.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What a thread works on.
#[derive(Clone)]
struct Work {
    runner: Arc<dyn Runner>,
    plan: Arc<Plan>,
    done: Arc<[bool]>,
    turn: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sender: SyncSender<Result<Finished, RunError>>,
}

impl Work {
    fn carry_out(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            if turn >= self.plan.runs() {
                return;
            }
            let run = self.plan.turn(turn);
            let index = self
                .plan
                .index(run)
                .and_then(|index| usize::try_from(index).ok());
            if index.and_then(|index| self.done.get(index)) == Some(&true) {
                continue;
            }
            let finished = Finished::carry_out_by(&*self.runner, &self.plan, run);
            if self.sender.send(finished).is_err() {
                return;
            }
        }
    }
}
