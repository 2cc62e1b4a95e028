//! Table 3.7 and figure 3.6: the second window of a connection is lost.

use super::claim;
use super::table_3_6::{
    HALF_A_ROUND_TRIP, ONE_ROUND_TRIP, ONE_SEGMENT, ONE_STEP, TIMEOUT, TRANSMITTED,
};
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;

/// What the table and the text beside it say.
#[derive(Clone, Debug)]
pub struct Published37 {
    /// Congestion window when the second window is lost.
    pub window: Claim,
    /// From the lost window (4.72 s) to the timeout (10.21 s).
    pub timeout: Claim,
    /// From the timeout to the acknowledgement of the retransmission (11.21 s), with which slow
    /// start is over.
    pub slow_start: Claim,
    /// Slow-start threshold after the timeout.
    pub threshold: Claim,
    /// From there to the end of congestion avoidance (29.30 s), at the maximum window.
    pub congestion_avoidance: Claim,
    /// Segments that go through in recovery.
    pub segments: Claim,
    /// Round trips that this adds to the connection's life.
    pub added: Claim,
}

/// Round trips of recovery over which the text counts segments: 9.46 round trips of 13 segments are
/// 123 segments, and with the 124 that went through that makes 19.
pub const ROUND_TRIPS: u32 = 19;

/// The published numbers.
#[must_use]
pub fn published() -> Published37 {
    let seconds = |statement, value: f64, tolerance| {
        let published = Published::About(value);
        claim("table 3.7", statement, Unit::Seconds, published, tolerance)
    };
    let text = |statement, unit, value: f64, tolerance| {
        claim(
            "section 3.3.1",
            statement,
            unit,
            Published::About(value),
            tolerance,
        )
    };
    Published37 {
        window: claim(
            "table 3.7",
            "Congestion window when the second window is lost.",
            Unit::Bytes,
            Published::About(5_792.0),
            Tolerance::Exact,
        ),
        timeout: seconds(
            "From the loss of the window to the timeout.",
            10.21 - 4.72,
            TIMEOUT,
        ),
        slow_start: seconds(
            "From the timeout to the end of slow start.",
            11.21 - 10.21,
            HALF_A_ROUND_TRIP,
        ),
        threshold: text(
            "Slow-start threshold after the timeout: 3 KB.",
            Unit::Bytes,
            2.0 * 1_448.0,
            ONE_SEGMENT,
        ),
        congestion_avoidance: seconds(
            "Congestion avoidance, until the window has 13 segments.",
            29.30 - 11.21,
            ONE_STEP,
        ),
        segments: text(
            "Segments transmitted and acknowledged in recovery.",
            Unit::Number,
            124.0,
            TRANSMITTED,
        ),
        added: text(
            "Round trips that congestion control adds to the connection's life.",
            Unit::Number,
            9.46,
            ONE_ROUND_TRIP,
        ),
    }
}
