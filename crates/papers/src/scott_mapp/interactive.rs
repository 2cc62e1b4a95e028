//! The interactive test (section 6.2): a small update every 200 ms, requested only after the last
//! one arrived, for 100 s.
//!
//! The paper ran it over its hardware prototype, which needs 200 ms to 500 ms to reconnect
//! (section 3) and whose mean connected time was set. So here: disconnected for 175 ms to 525 ms,
//! connected for as long as the availability demands, at the prototype's 1 Mbit/s. VNC is replaced by
//! messages of the same pattern.

use super::channel;
use super::testbed::Testbed;
use outlast_base::time::Duration;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::statistics::Sample;
use outlast_scenario::Mechanism;

/// The paper's levels 0 and 3, and `hold`.
pub const SERIES: [Mechanism; 3] = [Mechanism::None, Mechanism::SmartLink3, Mechanism::Hold];

/// Mean disconnected time.
const DOWN: Duration = Duration::from_millis(350);
/// Rate of the prototype.
pub(super) const RATE_MBIT_PER_S: u32 = 1;
/// Time between two updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// The availabilities, in percent.
#[must_use]
pub fn availabilities(extent: Extent) -> &'static [u32] {
    extent.choose(
        &[30, 50, 70, 90, 100],
        &[20, 30, 40, 50, 60, 70, 80, 90, 100],
    )
}

/// The runs.
#[must_use]
pub fn jobs(bed: Testbed, extent: Extent) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &percent in availabilities(extent) {
        for mechanism in SERIES {
            let setting = setting(bed, extent, mechanism, percent);
            let cell = cell(bed, mechanism, percent);
            let tests = extent.choose(2, 10);
            jobs.extend((0..tests).map(|test| bed.job(cell.clone(), &setting, test)));
        }
    }
    jobs
}

/// The prototype's disconnections for an availability of `percent`.
pub(super) fn outages(percent: u32) -> Outages {
    match percent {
        100 => Outages::None,
        _ => Outages::Uniform {
            up: DOWN * percent / (100 - percent),
            down: DOWN,
        },
    }
}

fn setting(bed: Testbed, extent: Extent, mechanism: Mechanism, percent: u32) -> Setting {
    let outages = outages(percent);
    let duration = Duration::from_secs(extent.choose(30, 100));
    let task = Task::Interactive {
        interval: INTERVAL,
        duration,
    };
    let name = format!("updates, {mechanism} at {percent} % availability");
    Setting {
        rate_mbit_per_s: RATE_MBIT_PER_S,
        seed: u64::from(percent) * 100,
        deadline: duration + Duration::from_secs(10),
        ..channel::over(bed, name, outages, task, mechanism)
    }
}

fn cell(bed: Testbed, mechanism: Mechanism, percent: u32) -> String {
    bed.cell(format!("updates, {mechanism}, {percent} %"))
}

/// The tests of a series at an availability.
#[must_use]
pub fn of(bed: Testbed, runs: &Runs, mechanism: Mechanism, percent: u32) -> &[Record] {
    runs.of(&cell(bed, mechanism, percent))
}

/// Updates received per second of the tests.
#[must_use]
pub fn updates_per_s(records: &[Record], extent: Extent) -> Option<Sample> {
    let duration: f64 = extent.choose(30.0, 100.0);
    Sample::of(
        records
            .iter()
            .filter_map(|r| Some(f64::from(r.result.updates?) / duration)),
    )
}

/// Updates per second that could be had at best.
#[must_use]
pub fn optimum_per_s(bed: Testbed, runs: &Runs, percent: u32, extent: Extent) -> Option<f64> {
    let duration: f64 = extent.choose(30.0, 100.0);
    let all = SERIES
        .into_iter()
        .flat_map(|mechanism| of(bed, runs, mechanism, percent));
    let ideal = all.filter_map(|r| Some(f64::from(r.result.ideal_updates?) / duration));
    Sample::of(ideal).map(|sample| sample.mean)
}
