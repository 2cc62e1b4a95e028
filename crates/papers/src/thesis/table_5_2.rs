//! Table 5.2: zero-window-size acknowledgements for an AIX 4.3 sender.

use super::help::HelpTable;
use super::table_4_5;
use outlast_scenario::Mechanism;

/// Table 5.2.
pub static TABLE: HelpTable = HelpTable {
    name: "table-5-2",
    title: "Zero-window-size acknowledgements for an AIX 4.3 sender",
    place: "table 5.2",
    without: &table_4_5::OF_WHOLE_SEGMENTS,
    mechanism: Mechanism::ZeroWindowAck,
    with: &[
        9.16, 2.75, 1.1, 0.55, 17.5, 5.25, 2.1, 1.05, 34.16, 10.25, 4.1, 2.05, 42.5, 12.75, 5.1,
        2.55, 50.83, 15.25, 6.1, 3.05,
    ],
    departure: "the thesis's sender was forced into persist mode at every hand-off. Here delayed \
        acknowledgements leave a window of 13 segments in several bursts of a round trip. Where the \
        hand-off takes the last segment of one burst, the agent, which has room for one, keeps an \
        older one that is acknowledged yet, and then the first one of the next burst: that is not the \
        oldest one lost (its figure 5.5), so that nothing can be acknowledged for the mobile, and \
        the sender waits for its timeout. Where a row is off by less than a round trip, the mobile had the \
        segment that the agent keeps in some of the trials: its first new bytes come a round trip later.",
};
