//! Table 5.1: retransmission caching for a Linux 2.2 sender.

use super::help::HelpTable;
use super::table_4_4;
use outlast_scenario::Mechanism;

/// Table 5.1.
pub static TABLE: HelpTable = HelpTable {
    name: "table-5-1",
    title: "Retransmission caching for a Linux 2.2 sender",
    place: "table 5.1",
    without: &table_4_4::OF_WHOLE_SEGMENTS,
    mechanism: Mechanism::RetransmissionCache,
    with: &[
        9.16, 2.7, 1.63, 0.88, 17.5, 5.25, 2.1, 1.05, 34.16, 10.25, 4.1, 2.05, 42.5, 12.75, 5.1,
        2.55, 50.83, 15.25, 6.1, 3.05,
    ],
    departure: "the thesis reckons what caching could save from the means of table 4.4; here each \
        hand-off is helped or not, as its first timeout fell before or after its end.",
};
