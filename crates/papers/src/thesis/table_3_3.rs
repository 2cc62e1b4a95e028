//! Table 3.3: first and second timeout of AIX 4.3.

use super::timeouts::{HEARTBEAT_SLACK, STRADDLED, TimeoutTable};
use outlast_base::time::Duration;
use outlast_scenario::Profile;
use outlast_tcp::profile::measured;

/// Table 3.3.
pub static TABLE: TimeoutTable = TimeoutTable {
    name: "table-3-3",
    title: "First and second timeout of AIX 4.3",
    place: "table 3.3",
    profile: Profile::Aix43,
    rows: &measured::AIX_4_3,
    slack: HEARTBEAT_SLACK,
    given: None,
    departures: &[
        (Duration::from_millis(60), STRADDLED),
        (
            Duration::from_millis(500),
            "a round trip of 500 ms is one beat or two, and which of them it is, less than the \
             accuracy of the delaying host decides; the published mean has two, ours one.",
        ),
    ],
};
