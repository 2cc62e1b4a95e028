//! Transfers of 4 Mbyte by a mobile that moves every 8 s: the runs of figures 2, 3 and 4.

use super::testbed::{self, Crossings, Motion};
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::mean;
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::Measured;
use outlast_report::statistics::Sample;
use outlast_scenario::Direction;

/// Transfers of each scenario.
#[must_use]
pub fn runs(extent: Extent) -> u32 {
    extent.choose(10, 100)
}

/// The runs; of the first one with hand-offs that lose packets, the packets are kept.
#[must_use]
pub fn jobs(extent: Extent, motions: &[Motion]) -> Vec<Job> {
    let runs = |&motion| (0..runs(extent)).map(move |index| job(motion, index));
    motions.iter().flat_map(runs).collect()
}

fn job(motion: Motion, index: u32) -> Job {
    let watch = match (motion.interruption(), index) {
        (Some(_), 0) => Watch::Packets,
        _ => Watch::Nothing,
    };
    let crossings = Crossings::EveryEightSeconds;
    let job = testbed::job(cell(motion), motion, crossings, Direction::Upload, index);
    job.watching(watch)
}

fn cell(motion: Motion) -> String {
    format!("transfer, {}", motion.name())
}

/// The transfers of a scenario.
#[must_use]
pub fn of(runs: &Runs, motion: Motion) -> &[Record] {
    runs.of(&cell(motion))
}

/// Payload per second of each transfer that succeeded, in bit/s.
#[must_use]
pub fn throughput(runs: &Runs, motion: Motion) -> Option<Sample> {
    throughput_of(of(runs, motion))
}

/// Payload per second of each of `records` that succeeded, in bit/s.
#[must_use]
pub fn throughput_of(records: &[Record]) -> Option<Sample> {
    let rate = |record: &Record| {
        let bytes = record
            .result
            .settings
            .bytes
            .filter(|_| record.succeeded())?;
        Some(bytes as f64 * 8.0 / record.result.elapsed_s)
    };
    Sample::of(records.iter().filter_map(rate))
}

/// How long the transfers took.
#[must_use]
pub fn lifetime(runs: &Runs, motion: Motion) -> Option<Measured> {
    let succeeded = of(runs, motion).iter().filter(|record| record.succeeded());
    mean(succeeded.map(|record| record.result.elapsed_s))
}

/// Hand-offs within a transfer.
#[must_use]
pub fn hand_offs(runs: &Runs, motion: Motion) -> Option<Measured> {
    let records = of(runs, motion).iter();
    mean(records.map(|record| record.result.outages.len() as f64))
}

/// From each crossing until the receiver had bytes that follow those before it, in seconds, which
/// is one segment's time after the retransmission that got through; `None` if that never came.
///
/// New data that a late acknowledgement lets out behind the hole does not end a pause.
pub(super) fn pauses(records: &[Record]) -> impl Iterator<Item = Option<f64>> {
    let outages = records.iter().flat_map(Record::outages);
    outages.map(|(outage, _)| Some(outage.length_s? + outage.resume_s?))
}
