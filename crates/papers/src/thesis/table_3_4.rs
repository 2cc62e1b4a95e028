//! Table 3.4: first and second timeout of FreeBSD 2.2.7.

use super::timeouts::{HEARTBEAT_SLACK, STRADDLED, TimeoutTable};
use outlast_base::time::Duration;
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.4.
pub static TABLE: TimeoutTable = TimeoutTable {
    name: "table-3-4",
    title: "First and second timeout of FreeBSD 2.2.7",
    place: "table 3.4",
    profile: Profile::Freebsd22,
    rows: &measured::FREEBSD_2_2,
    slack: HEARTBEAT_SLACK,
    given: None,
    departures: &[
        (Duration::from_millis(60), STRADDLED),
        (Duration::from_millis(100), STRADDLED),
    ],
};
