//! Table 3.6 and figure 3.5: a whole window is lost when the transmission rate is at its maximum.

use super::beside::{Beside, arithmetic, beside};
use super::claim;
use super::recovery::{self, Recovery, SEGMENT_BYTES, SEGMENTS};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;

/// Half a round trip of the experiment, in which everything happens once per round trip of one
/// second, and an event is read off to the nearest one.
pub const HALF_A_ROUND_TRIP: Tolerance = Tolerance::Absolute(0.5);
/// The window grows by a segment every second round trip, so that a phase of congestion avoidance
/// is as long as one step of it uncertain.
pub const ONE_STEP: Tolerance = Tolerance::Absolute(2.0);
/// As for the timeouts of table 3.2.
pub const TIMEOUT: Tolerance = Tolerance::Relative(super::timeouts::SHARE);
/// Windows are whole segments of 1448 bytes; which of them was read off depends on the instant.
pub const ONE_SEGMENT: Tolerance = Tolerance::Absolute(1448.0);
/// A sum over 15 round trips in which delayed acknowledgements decide over a segment in some.
pub const TRANSMITTED: Tolerance = Tolerance::Relative(0.1);
/// A round trip.
pub const ONE_ROUND_TRIP: Tolerance = Tolerance::Absolute(1.0);

/// What the table and the text beside it say.
#[derive(Clone, Debug)]
pub struct Published36 {
    /// From the first window (28.95 s) to the maximum rate (31.95 s).
    pub slow_start: Claim,
    /// From the lost window (39.95 s) to the timeout (41.36 s).
    pub timeout: Claim,
    /// From the timeout to the acknowledgement of the retransmission (42.35 s).
    pub acknowledged: Claim,
    /// From the timeout to the end of slow start (44.35 s).
    pub slow_start_again: Claim,
    /// Congestion window at the end of slow start.
    pub window: Claim,
    /// From there to the end of congestion avoidance (56.35 s), at 15,928 bytes.
    pub congestion_avoidance: Claim,
    /// Segments that go through in the 15 round trips after the timeout.
    pub segments: Claim,
    /// Round trips that this adds to the connection's life.
    pub added: Claim,
}

/// The window at which the table has congestion avoidance end, in segments of 1448 bytes.
pub const LAST_WINDOW: u32 = 15_928 / 1_448;
/// Round trips of recovery over which the text counts segments.
pub const ROUND_TRIPS: u32 = 15;

/// The published numbers.
#[must_use]
pub fn published() -> Published36 {
    let seconds = |statement, value: f64, tolerance| {
        let published = Published::About(value);
        claim("table 3.6", statement, Unit::Seconds, published, tolerance)
    };
    let text = |statement, value: f64, tolerance| {
        let published = Published::About(value);
        claim(
            "section 3.3.1",
            statement,
            Unit::Number,
            published,
            tolerance,
        )
    };
    Published36 {
        slow_start: seconds(
            "At the beginning: from two segments to the maximum rate.",
            31.95 - 28.95,
            HALF_A_ROUND_TRIP,
        ),
        timeout: seconds(
            "From the loss of the window to the timeout.",
            41.36 - 39.95,
            TIMEOUT,
        ),
        acknowledged: seconds(
            "From the timeout to the acknowledgement of the retransmission.",
            42.35 - 41.36,
            HALF_A_ROUND_TRIP,
        ),
        slow_start_again: seconds(
            "From the timeout to the end of slow start.",
            44.35 - 41.36,
            HALF_A_ROUND_TRIP,
        ),
        window: claim(
            "table 3.6",
            "Congestion window at the end of slow start.",
            Unit::Bytes,
            Published::About(8_688.0),
            ONE_SEGMENT,
        ),
        congestion_avoidance: seconds(
            "Congestion avoidance, until the window has 11 segments.",
            56.35 - 44.35,
            ONE_STEP,
        ),
        segments: text(
            "Segments transmitted and acknowledged in the 15 round trips after the timeout.",
            120.0,
            TRANSMITTED,
        ),
        added: text(
            "Round trips that congestion control adds to the connection's life.",
            5.76,
            ONE_ROUND_TRIP,
        ),
    }
}

/// Why the window grows at another pace.
pub(super) const ACKNOWLEDGEMENTS: &str = "the published windows need an acknowledgement for each \
    segment in slow start and for every second one later. Our receiver's are for every second \
    one, and for a single one that has waited for the timer, which counts as much.";

/// The claim, with the reason for a difference.
pub(super) fn paced(claim: Claim) -> Claim {
    Claim {
        departure: Some(ACKNOWLEDGEMENTS.into()),
        ..claim
    }
}

/// Table 3.6 and figure 3.5.
#[derive(Debug)]
pub struct Table36;

/// The window that is lost: eight round trips after the maximum rate is reached, which takes three.
const LOST: u32 = 11;
const CELL: &str = "window lost at the maximum rate";
/// The table's events from its first on: seconds, bytes.
const EVENTS: [(f64, f64); 7] = [
    (0.0, 2_896.0),
    (3.0, 18_824.0),
    (11.0, 18_824.0),
    (12.41, 1_448.0),
    (13.4, 2_896.0),
    (15.4, 8_688.0),
    (27.4, 15_928.0),
];

impl Figure for Table36 {
    fn name(&self) -> &'static str {
        "table-3-6"
    }

    fn title(&self) -> &'static str {
        "A whole window is lost at the maximum rate"
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
        let part = Part::new("Table 3.6 and figure 3.5: a window lost at the maximum rate");
        let part = slow_start_alone(part, ROUND_TRIPS, 158.0, runs);
        beside(
            part,
            "Table 3.6: a window lost at the maximum rate",
            labels(),
            rows(found),
        )
        .figure(
            recovery::plot(record, &EVENTS, 35.0).draw(),
            "Congestion window. The published points are the events of table 3.6; compare \
                 figure 3.5.",
        )
    }
}

/// What a sender would send in `round_trips` that grows by slow start alone, up to the buffer of
/// [`SEGMENTS`]; beside what section 3.3.1 states of the experiment.
pub(super) fn slow_start_alone(part: Part, round_trips: u32, stated: f64, runs: &Runs) -> Part {
    let windows = (0..round_trips).map(|at| (1_u32 << at.min(16)).min(SEGMENTS));
    let sent: u32 = windows.sum();
    let claim = claim(
        "section 3.3.1",
        format!("Segments in {round_trips} round trips of slow start alone."),
        Unit::Number,
        Published::About(stated),
        Tolerance::Exact,
    );
    let ours = Some(f64::from(sent)).filter(|_| runs.all().next().is_some());
    let title = "Slow start in place of congestion avoidance";
    arithmetic(part, title, labels(), vec![single(claim, ours)])
}

pub(super) fn labels() -> Vec<Column> {
    vec![Column::text("what", "What")]
}

/// A number that a single run gives.
pub(super) fn single(claim: Claim, ours: Option<f64>) -> Beside {
    Beside {
        labels: vec![Cell::from(claim.statement.as_ref())],
        claim,
        ours: ours.and_then(|ours| Sample::of([ours])),
    }
}

fn rows(found: Option<Recovery<'_>>) -> Vec<Beside> {
    let claims = published();
    let since_timeout = |at: Option<f64>| Some(at? - found?.timeout_s());
    let slow_start_ends = found.and_then(|found| found.slow_start_ends());
    let last = found.and_then(|found| found.at_window(LAST_WINDOW));
    let bytes = |segments: u32| f64::from(segments * SEGMENT_BYTES);
    vec![
        single(
            claims.slow_start,
            found.and_then(|f| f.first_full_s(SEGMENTS)),
        ),
        single(
            claims.timeout,
            found.map(|f| f.timeout_s() - f64::from(LOST)),
        ),
        single(
            claims.acknowledged,
            since_timeout(found.and_then(|f| f.acknowledged_s())),
        ),
        single(
            paced(claims.slow_start_again),
            since_timeout(slow_start_ends.map(|row| row.time_s)),
        ),
        single(claims.window, slow_start_ends.map(|row| bytes(row.cwnd))),
        single(
            paced(claims.congestion_avoidance),
            last.zip(slow_start_ends)
                .map(|(last, first)| last.time_s - first.time_s),
        ),
        single(
            claims.segments,
            found.map(|f| f.segments(ROUND_TRIPS, SEGMENT_BYTES)),
        ),
        single(
            claims.added,
            found.map(|f| f.added(ROUND_TRIPS, SEGMENTS, SEGMENT_BYTES)),
        ),
    ]
}
