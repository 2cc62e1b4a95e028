//! How a sender's window recovers after a whole window was lost: what section 3.3 looks at.

use super::path::Path;
use outlast_base::time::Duration;
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Record, Variables};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::unit::Unit;
use outlast_scenario::Profile;

/// Round trip of the experiments (section 3.3.1).
pub const ROUND_TRIP: Duration = Duration::from_secs(1);
/// Receive buffer of the experiments: 13 segments (section 3.3.1).
pub const SEGMENTS: u32 = 13;
/// Bytes of a segment: an Ethernet packet without headers and timestamps.
pub const SEGMENT_BYTES: u32 = 1_448;
/// Headers and timestamps of a packet.
pub const HEADERS: u32 = 52;

/// A cut that takes the window sent `round_trips` after the first one, and nothing else: it begins
/// a tenth of a round trip before it, and lasts until what a delayed acknowledgement lets out.
fn cut(round_trips: u32) -> (Duration, Duration) {
    (
        ROUND_TRIP * round_trips - ROUND_TRIP / 10,
        ROUND_TRIP * 6 / 10,
    )
}

/// Linux 2.2 at both ends, with a buffer of `segments` of `segment_bytes`, that loses the window sent
/// `round_trips` after the first one.
#[must_use]
pub fn job(cell: String, round_trips: u32, segments: u32, segment_bytes: u32, rate: u32) -> Job {
    let (cut, length) = cut(round_trips);
    // Until the window is whole again it grows by a segment every second round trip, so that each
    // segment costs two round trips of half a window.
    let enough = round_trips + 2 * segments + 30;
    let path = Path {
        server: Profile::Linux22,
        receiver: Profile::Linux22,
        buffer: segments * segment_bytes,
        round_trip: ROUND_TRIP,
        rate_mbit_per_s: rate,
        mtu: segment_bytes + HEADERS,
        cut,
        length,
        bytes: u64::from(segments * segment_bytes) * u64::from(enough),
        deadline: ROUND_TRIP * enough * 3,
    };
    path.job(cell, 0, Watch::Variables)
}

/// A recovery, as the sender's variables tell it.
#[derive(Clone, Copy, Debug)]
pub struct Recovery<'a> {
    rows: &'a [Variables],
    /// Of the rows.
    timeout: usize,
}

impl<'a> Recovery<'a> {
    /// The one of `record`; `None` if there was no timeout.
    #[must_use]
    pub fn of(record: &'a Record) -> Option<Self> {
        let rows = record.variables.as_slice();
        let timeout = rows.iter().position(|row| row.timeout)?;
        Some(Self { rows, timeout })
    }

    /// When the timeout came.
    #[must_use]
    pub fn timeout_s(&self) -> f64 {
        self.rows[self.timeout].time_s
    }

    /// The variables before the timeout.
    #[must_use]
    pub fn before(&self) -> Option<&'a Variables> {
        self.rows[..self.timeout].last()
    }

    /// When the window was first as large as `segments`, from the connection's start.
    #[must_use]
    pub fn first_full_s(&self, segments: u32) -> Option<f64> {
        let before = self.rows[..self.timeout].iter();
        Some(before.into_iter().find(|row| row.cwnd >= segments)?.time_s)
    }

    /// The first acknowledgement after the timeout.
    #[must_use]
    pub fn acknowledged_s(&self) -> Option<f64> {
        Some(self.after().find(|row| !row.timeout)?.time_s)
    }

    /// The slow-start threshold that the timeout leaves, in segments.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        self.rows[self.timeout].ssthresh
    }

    /// The variables at the end of slow start.
    #[must_use]
    pub fn slow_start_ends(&self) -> Option<&'a Variables> {
        let threshold = self.threshold()?;
        self.at_window(threshold)
    }

    /// The variables when the window is `segments` again.
    #[must_use]
    pub fn at_window(&self, segments: u32) -> Option<&'a Variables> {
        self.after().find(|row| row.cwnd >= segments)
    }

    /// Segments of `bytes` that went through in so many round trips after the timeout. The last of
    /// them may wait for a delayed acknowledgement.
    #[must_use]
    pub fn segments(&self, round_trips: u32, bytes: u32) -> f64 {
        let settle = ROUND_TRIP.mul_f64(0.3);
        let end = self.timeout_s() + (ROUND_TRIP * round_trips + settle).as_secs_f64();
        let until = self.after().take_while(|row| row.time_s <= end).last();
        let from = self.rows[self.timeout].acknowledged;
        until.map_or(0.0, |row| {
            (row.acknowledged - from) as f64 / f64::from(bytes)
        })
    }

    /// Round trips that are missing in so many: those in which `window` segments each would have
    /// done as much.
    #[must_use]
    pub fn added(&self, round_trips: u32, window: u32, segment_bytes: u32) -> f64 {
        f64::from(round_trips) - self.segments(round_trips, segment_bytes) / f64::from(window)
    }

    fn after(&self) -> impl Iterator<Item = &'a Variables> {
        self.rows[self.timeout + 1..].iter()
    }
}

/// The congestion window over time beside the published events, `(seconds from the first window,
/// bytes)`.
#[must_use]
pub fn plot(record: Option<&Record>, published: &[(f64, f64)], until_s: f64) -> Curves {
    let rows = record.map_or(&[][..], |record| &record.variables);
    let mut points: Vec<Point> = Vec::new();
    for row in rows
        .iter()
        .filter(|row| (0.0..=until_s).contains(&row.time_s))
    {
        // More than the buffer is never in the network.
        let window = f64::from(row.cwnd.min(SEGMENTS) * SEGMENT_BYTES);
        match points.last().map(|last| last.y) {
            Some(before) if before == window => {}
            before => {
                // The window stays as it is until it changes.
                points.extend(before.map(|before| Point::new(row.time_s, before)));
                points.push(Point::new(row.time_s, window));
            }
        }
    }
    Curves {
        x: Axis::new("Time since the first window", Unit::Seconds),
        y: Axis::new("Congestion window, up to the receive buffer", Unit::Bytes),
        series: vec![
            Series {
                name: "published".to_owned(),
                is_control: true,
                points: published.iter().map(|&(x, y)| Point::new(x, y)).collect(),
            },
            Series {
                name: "ours".to_owned(),
                is_control: false,
                points,
            },
        ],
        optimum: None,
    }
}
