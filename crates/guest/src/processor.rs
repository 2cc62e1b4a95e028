//! The host's processor that a guest has for itself.

use rustix::fs::{FlockOperation, flock};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A processor, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Processor {
    number: usize,
    _taken: Option<File>,
}

impl Processor {
    /// Takes a processor that no other guest has. Where all are taken, guests share one, which makes them slower and
    /// nothing else. `directory` has the marks of those that are taken.
    pub(crate) fn take(directory: &Path) -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&number| allowed.is_set(number))
            .collect();
        for &number in &all {
            let mark = directory.join(format!("processor-{number}"));
            let mark = File::options().create(true).append(true).open(mark)?;
            if flock(&mark, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(Self {
                    number,
                    _taken: Some(mark),
                });
            }
        }
        static OTHERS: AtomicUsize = AtomicUsize::new(0);
        let number = std::process::id() as usize + OTHERS.fetch_add(1, Ordering::Relaxed);
        let turn = number % all.len().max(1);
        Ok(Self {
            number: all.get(turn).copied().unwrap_or(0),
            _taken: None,
        })
    }

    /// Keeps all threads of a process on it.
    pub(crate) fn hold(&self, process: u32) -> io::Result<()> {
        let mut this = CpuSet::new();
        this.set(self.number);
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let thread = thread?.file_name();
            let thread = thread.to_str().and_then(|thread| thread.parse().ok());
            if let Some(thread) = thread.and_then(Pid::from_raw) {
                sched_setaffinity(Some(thread), &this)?;
            }
        }
        Ok(())
    }
}
