//! Table 3.5: first and second timeout of SunOS 5.6.

use super::timeouts::{TICK_SLACK, TimeoutTable};
use outlast_base::time::Duration;
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.5.
pub static TABLE: TimeoutTable = TimeoutTable {
    name: "table-3-5",
    title: "First and second timeout of SunOS 5.6",
    place: "table 3.5",
    profile: Profile::Sunos56,
    rows: &measured::SUNOS_5_6,
    slack: TICK_SLACK,
    given: Some(Duration::from_millis(200)),
    departures: &[],
};
