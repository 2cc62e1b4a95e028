//! Table 3.7 and figure 3.6: the second window of a connection is lost.

use super::beside::{Beside, beside};
use super::claim;
use super::recovery::{self, Recovery, SEGMENT_BYTES, SEGMENTS};
use super::table_3_6::{
    HALF_A_ROUND_TRIP, ONE_ROUND_TRIP, ONE_SEGMENT, ONE_STEP, TIMEOUT, TRANSMITTED, labels, paced,
    single, slow_start_alone,
};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
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

/// Table 3.7 and figure 3.6.
#[derive(Debug)]
pub struct Table37;

/// The window that is lost: the second one.
const LOST: u32 = 1;
const CELL: &str = "second window lost";
/// The table's events from its first on: seconds, bytes.
const EVENTS: [(f64, f64); 5] = [
    (0.0, 2_896.0),
    (1.0, 5_792.0),
    (6.49, 1_448.0),
    (7.49, 2_896.0),
    (25.58, 18_824.0),
];

impl Figure for Table37 {
    fn name(&self) -> &'static str {
        "table-3-7"
    }

    fn title(&self) -> &'static str {
        "The second window of a connection is lost"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        vec![recovery::job(
            CELL.to_owned(),
            LOST,
            SEGMENTS,
            SEGMENT_BYTES,
            10,
        )]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let record = runs.of(CELL).first();
        let found = record.and_then(Recovery::of);
        let part = Part::new("Table 3.7 and figure 3.6: the second window lost");
        let part = slow_start_alone(part, ROUND_TRIPS, 210.0, runs);
        beside(
            part,
            "Table 3.7: the second window lost",
            labels(),
            rows(found),
        )
        .figure(
            recovery::plot(record, &EVENTS, 35.0).draw(),
            "Congestion window. The published points are the events of table 3.7; compare \
                 figure 3.6.",
        )
    }
}

fn rows(found: Option<Recovery<'_>>) -> Vec<Beside> {
    let claims = published();
    let bytes = |segments: u32| f64::from(segments * SEGMENT_BYTES);
    let slow_start_ends = found
        .and_then(|f| f.slow_start_ends())
        .map(|row| row.time_s);
    let last = found
        .and_then(|f| f.at_window(SEGMENTS))
        .map(|row| row.time_s);
    let between = |from: Option<f64>, to: Option<f64>| Some(to? - from?);
    let timeout = found.map(|f| f.timeout_s());
    vec![
        single(
            claims.window,
            found.and_then(|f| f.before()).map(|row| bytes(row.cwnd)),
        ),
        single(claims.timeout, timeout.map(|at| at - f64::from(LOST))),
        single(claims.slow_start, between(timeout, slow_start_ends)),
        single(
            claims.threshold,
            found.and_then(|f| f.threshold()).map(bytes),
        ),
        single(claims.congestion_avoidance, between(slow_start_ends, last)),
        single(
            paced(claims.segments),
            found.map(|f| f.segments(ROUND_TRIPS, SEGMENT_BYTES)),
        ),
        single(
            paced(claims.added),
            found.map(|f| f.added(ROUND_TRIPS, SEGMENTS, SEGMENT_BYTES)),
        ),
    ]
}
