//! Transfers of 25 MB with a single disconnection: the runs of figures 10 to 12.

use super::testbed::{self, Readdressing, Variant};
use outlast_base::time::Duration;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};

/// Megabytes of a transfer.
const MEGABYTES: u32 = 25;

/// Lengths of the initial connected period in seconds.
#[must_use]
pub fn connected(extent: Extent) -> &'static [u32] {
    extent.choose(
        &[2, 8, 14, 20, 26],
        &[2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26],
    )
}

/// Lengths of the disconnected period in seconds.
#[must_use]
pub fn disconnected(extent: Extent) -> &'static [u32] {
    extent.choose(
        &[0, 26, 39, 52, 78, 91, 130, 156, 208],
        &[
            0, 13, 26, 39, 52, 65, 78, 91, 104, 117, 130, 143, 156, 169, 182, 195, 208,
        ],
    )
}

/// Transfers of each pair of lengths.
#[must_use]
pub fn transfers(extent: Extent) -> u32 {
    extent.choose(3, 10)
}

/// The runs of one variant.
#[must_use]
pub fn jobs(extent: Extent, variant: Variant, readdressing: Readdressing) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &up in connected(extent) {
        for &down in disconnected(extent) {
            let length = Duration::from_secs(down.into()) + readdressing.lengthens();
            // Without any, the address changes all the same.
            let length = length.max(Duration::from_millis(1));
            let outages = format!(
                "process = \"single\"\nstart = \"{up} s\"\nlength = \"{} ms\"",
                length.as_millis()
            );
            let cell = cell(variant, readdressing, up, down);
            let runs = 0..transfers(extent);
            jobs.extend(runs.map(|run| {
                testbed::job(
                    cell.clone(),
                    (variant, readdressing),
                    MEGABYTES,
                    &outages,
                    run,
                )
            }));
        }
    }
    jobs
}

fn cell(variant: Variant, readdressing: Readdressing, up: u32, down: u32) -> String {
    format!(
        "{}, {}, connected {up} s, disconnected {down} s",
        variant.name(),
        readdressing.name()
    )
}

/// The transfers of a pair of lengths.
#[must_use]
pub fn of(
    runs: &Runs,
    variant: Variant,
    readdressing: Readdressing,
    up: u32,
    down: u32,
) -> &[Record] {
    runs.of(&cell(variant, readdressing, up, down))
}

/// Total time less the disconnected time; `None` for a transfer that was aborted.
#[must_use]
pub fn net_s(record: &Record, up: u32, down: u32) -> Option<f64> {
    let elapsed = record.result.elapsed_s;
    // The transfer may end in the middle of the disconnection.
    let away = (elapsed - f64::from(up)).clamp(0.0, f64::from(down));
    record.succeeded().then_some(elapsed - away)
}

/// Lower quartile, median and upper quartile; infinite where that many were aborted.
#[must_use]
pub fn quartiles(records: &[Record], up: u32, down: u32) -> Option<[f64; 3]> {
    let net = |record| net_s(record, up, down).unwrap_or(f64::INFINITY);
    let mut times: Vec<f64> = records.iter().map(net).collect();
    times.sort_by(f64::total_cmp);
    let last = times.len().checked_sub(1)?;
    let at = |quarter: usize| {
        let (index, rest) = (last * quarter / 4, last * quarter % 4);
        let (low, high) = (times[index], times[(index + 1).min(last)]);
        if rest == 0 || low == high {
            low
        } else {
            low + (high - low) * rest as f64 / 4.0
        }
    };
    Some([at(1), at(2), at(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_grid_has_2210_transfers_of_each_variant() {
        let jobs = jobs(Extent::Full, Variant::Tcp, testbed::PROTOTYPE);
        assert_eq!(jobs.len(), 2_210);
    }
}
