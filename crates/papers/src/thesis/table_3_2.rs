//! Table 3.2: first and second timeout of Linux 2.2.

use super::timeouts::{TICK_SLACK, TimeoutTable};
use outlast_base::time::Duration;
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.2.
pub static TABLE: TimeoutTable = TimeoutTable {
    name: "table-3-2",
    title: "First and second timeout of Linux 2.2",
    place: "table 3.2",
    profile: Profile::Linux22,
    rows: &measured::LINUX_2_2,
    slack: TICK_SLACK,
    given: Some(Duration::from_millis(100)),
    departures: &[],
};
