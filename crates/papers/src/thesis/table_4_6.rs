//! Table 4.6: what a hand-off costs a Linux 2.2 server in round trips, congestion control included,
//! by the size of the receive buffer.
//!
//! Its columns are those of table 4.4 and a constant each, which is the model of section 3.3.2 (see
//! [`super::added_round_trips`]).

use super::claim;
use super::handoff::{HandoffTable, Row};
use outlast_report::judgement::{Claim, Published};
use outlast_report::unit::Unit;

/// Hand-off and round trip in ms, and the round trips lost with the buffers of
/// [`super::added_round_trips::TABLE_4_6`].
pub const ROWS: [(u64, u64, [f64; 4]); 20] = [
    (550, 60, [18.41, 23.38, 32.37, 49.36]),
    (550, 200, [12.27, 17.24, 26.23, 43.22]),
    (550, 500, [8.69, 13.66, 22.65, 39.64]),
    (550, 1_000, [7.94, 12.91, 21.9, 38.89]),
    (1_050, 60, [30.24, 35.21, 44.2, 61.19]),
    (1_050, 200, [19.11, 24.08, 33.07, 50.06]),
    (1_050, 500, [11.87, 16.84, 25.83, 42.82]),
    (1_050, 1_000, [8.72, 13.69, 22.68, 39.67]),
    (2_050, 60, [58.13, 63.1, 72.09, 89.08]),
    (2_050, 200, [19.66, 24.63, 33.62, 50.61]),
    (2_050, 500, [11.83, 16.8, 25.79, 42.78]),
    (2_050, 1_000, [11.39, 16.36, 25.35, 42.34]),
    (2_550, 60, [56.99, 61.96, 70.95, 87.94]),
    (2_550, 200, [30.75, 35.72, 44.71, 61.7]),
    (2_550, 500, [16.24, 21.21, 30.2, 47.19]),
    (2_550, 1_000, [11.38, 16.35, 25.34, 42.33]),
    (3_050, 60, [109.88, 114.85, 123.84, 140.83]),
    (3_050, 200, [33.67, 38.64, 47.63, 64.62]),
    (3_050, 500, [18.28, 23.25, 32.24, 49.23]),
    (3_050, 1_000, [11.63, 16.6, 25.59, 42.58]),
];

/// One number as a claim. It may be as far off as the idle time of its `row` of table 4.4, which is
/// all that was measured of it.
#[must_use]
pub fn claim_of(table: &HandoffTable, row: &Row, kilobytes: u32, published: f64) -> Claim {
    claim(
        "table 4.6",
        format!(
            "{}, buffer of {kilobytes} KB: lost round trips.",
            row.name()
        ),
        Unit::Number,
        Published::About(published),
        row.tolerance(table),
    )
}
