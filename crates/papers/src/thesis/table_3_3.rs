//! Table 3.3: AIX 4.3.

use super::timeouts::{HEARTBEAT_SLACK, TimeoutTable};
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.3.
pub static TABLE: TimeoutTable = TimeoutTable {
    place: "table 3.3",
    profile: Profile::Aix43,
    rows: &measured::AIX_4_3,
    slack: HEARTBEAT_SLACK,
    departures: &[],
};
