//! How late the machine is: whether a thread that wants to run for a moment every millisecond can.
//!
//! One thread for each processor, of the same priority as the daemon and the programs: what holds
//! them up held these up as well.

use super::trial::TrialError;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::timer::Timer;
use outlast_linux::waker::Waker;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Between two looks at the clock.
const PAUSE: Duration = Duration::from_millis(1);

const TIMER: Token = Token(0);

/// The threads that look at the clock. Dropped, they end.
#[derive(Debug)]
pub(crate) struct Vigil {
    threads: Vec<(Arc<Waker>, JoinHandle<io::Result<Duration>>)>,
}

impl Vigil {
    /// Begins.
    pub(crate) fn begin() -> Result<Self, TrialError> {
        let mut vigil = Self {
            threads: Vec::new(),
        };
        let all = sched_getaffinity(None).map_err(|errno| io_error(errno.into()))?;
        for processor in (0..CpuSet::MAX_CPU).filter(|&processor| all.is_set(processor)) {
            let end = Arc::new(Waker::new().map_err(io_error)?);
            let ended = Arc::clone(&end);
            let thread = thread::Builder::new().name("vigil".into());
            let thread = thread.spawn(move || watch(processor, &ended));
            vigil.threads.push((end, thread.map_err(io_error)?));
        }
        Ok(vigil)
    }

    /// By how much the machine was late at worst since then.
    pub(crate) fn end(mut self) -> Result<Duration, TrialError> {
        let mut worst = Duration::ZERO;
        for (end, thread) in self.threads.drain(..) {
            end.wake();
            let late = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            worst = worst.max(late.map_err(io_error)?);
        }
        Ok(worst)
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        for (end, _) in &self.threads {
            end.wake();
        }
    }
}

fn watch(processor: usize, end: &Waker) -> io::Result<Duration> {
    let mut here = CpuSet::new();
    here.set(processor);
    sched_setaffinity(None, &here)?;
    let mut poller = Poller::new()?;
    let mut timer = Timer::new()?;
    poller.add(&timer, TIMER, Interest::Readable)?;
    poller.add(end, Token(1), Interest::Readable)?;
    let mut worst = Duration::ZERO;
    loop {
        let due = clock::now() + PAUSE;
        timer.set(Some(due))?;
        let is_time = poller.wait()?.all(|Ready { token, .. }| token == TIMER);
        worst = worst.max(clock::now().since(due));
        if !is_time {
            return Ok(worst);
        }
        timer.note_expiry();
    }
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "watch how late this machine is",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_for_each_processor_watches_until_the_end() {
        let vigil = Vigil::begin().expect("this process has threads");
        let processors = thread::available_parallelism().expect("known").get();
        assert_eq!(vigil.threads.len(), processors);
        assert!(vigil.end().is_ok());
    }
}
