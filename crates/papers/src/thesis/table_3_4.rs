//! Table 3.4: FreeBSD 2.2.7.

use super::timeouts::{HEARTBEAT_SLACK, TimeoutTable};
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.4.
pub static TABLE: TimeoutTable = TimeoutTable {
    place: "table 3.4",
    profile: Profile::Freebsd22,
    rows: &measured::FREEBSD_2_2,
    slack: HEARTBEAT_SLACK,
    departures: &[],
};
