//! Work of this processor that is timed, without any link or network.

use outlast_base::time::Duration;
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_linux::clock;
use serde::de::DeserializeOwned;

/// Times that each piece of work is measured, in turn with the others; medians count.
pub(super) const ROUNDS: usize = 21;

/// The job of a cell whose link and task nobody looks at.
pub(super) fn job(cell: &str) -> Job {
    let text = format!(
        "name = \"{cell}\"\n[link]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n[outlast]\ngateway = \"m-tcp\"\n"
    );
    Job::from_toml(cell, text, 0)
}

/// What the run of `cell` has observed.
pub(super) fn observed<T: DeserializeOwned>(runs: &Runs, cell: &str) -> Option<T> {
    runs.of(cell).first().and_then(Record::observed)
}

/// How long `work` takes.
pub(super) fn timed(work: impl FnOnce()) -> Duration {
    let began = clock::now();
    work();
    clock::now().since(began)
}

/// The median in microseconds for each of `pieces`.
pub(super) fn median_us(mut times: Vec<Duration>, pieces: usize) -> f64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    median.as_secs_f64() * 1e6 / pieces as f64
}
