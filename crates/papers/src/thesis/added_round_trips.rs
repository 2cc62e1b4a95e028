//! How many round trips congestion control adds after a needless timeout: the analytic model of
//! section 3.3.2.
//!
//! A timeout strikes when the window fills the receive buffer of `n` segments. Slow start doubles
//! from one segment up to half the buffer, then the window grows by a segment every second round
//! trip. What could have been sent meanwhile and was not, divided by `n`, is what the connection
//! lasts longer.
//!
//! As printed, the sum over slow start ends with the power that reaches the threshold, although
//! the window of that size is counted again with congestion avoidance; table 4.6 needs the sum
//! without it: 7.06 round trips at 16 KB, where the printed formula gives 6.56. Here the sum is the
//! one that gives the published numbers. They also tell the size of a segment: 1 KB.

use super::claim;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;

/// What the sender does after the timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum After {
    /// Slow start up to half the buffer, then congestion avoidance.
    CongestionControl,
    /// Slow start up to the whole buffer.
    SlowStart,
    /// One segment, and at its acknowledgement the whole window again.
    Nothing,
}

/// Round trips that a connection lasts longer with a receive buffer of `segments`.
#[must_use]
pub fn added(after: After, segments: u32) -> f64 {
    let buffer = segments.max(1);
    let doublings = |up_to: u32| up_to.next_power_of_two().trailing_zeros();
    let (round_trips, sent) = match after {
        After::CongestionControl => {
            let threshold = (buffer / 2).max(1);
            let slow_start = doublings(threshold);
            let avoiding: u64 = (threshold..buffer)
                .map(|window| 2 * u64::from(window))
                .sum();
            let round_trips = slow_start + 2 * (buffer - threshold);
            (round_trips, (1 << slow_start) - 1 + avoiding)
        }
        After::SlowStart => (doublings(buffer), (1 << doublings(buffer)) - 1),
        After::Nothing => (1, 1),
    };
    f64::from(round_trips) - sent as f64 / f64::from(buffer)
}

/// Bytes of a segment, as the published numbers imply.
pub const SEGMENT_BYTES: u32 = 1024;

/// What is stated of the model for a buffer of `kilobytes`: where, how the sender goes on, the
/// number.
///
/// Two of the numbers are read off a curve ("over 20", "over 70") and one is an upper bound. The
/// others are rounded to whole round trips, hence half a round trip.
#[must_use]
pub fn stated() -> [(u32, After, Claim); 6] {
    let about = |value| (Published::About(value), Tolerance::Absolute(0.5));
    let over = |value| (Published::AtLeast(value), Tolerance::Exact);
    let at_most = |value| (Published::AtMost(value), Tolerance::Exact);
    let stated = |kilobytes: u32, after, (published, tolerance)| {
        let what = match after {
            After::CongestionControl => "slow start and congestion avoidance",
            After::SlowStart => "slow start alone",
            After::Nothing => "no congestion control",
        };
        let statement = format!("Buffer of {kilobytes} KB, {what}: added round trips.");
        let claim = claim(
            "section 3.3.2, figure 3.7",
            statement,
            Unit::Number,
            published,
            tolerance,
        );
        (kilobytes, after, claim)
    };
    [
        stated(64, After::CongestionControl, over(20.0)),
        stated(256, After::CongestionControl, over(70.0)),
        stated(64, After::SlowStart, about(5.0)),
        stated(256, After::SlowStart, about(7.0)),
        stated(64, After::Nothing, at_most(1.0)),
        stated(256, After::Nothing, at_most(1.0)),
    ]
}

/// How near a simulated sender has to come to the model, which counts whole round trips in slow
/// start and lets every acknowledgement stand for two segments: 15 %, and no less than the round
/// trip that either may round up.
#[must_use]
pub fn tolerance_of_simulation(modelled: f64) -> Tolerance {
    Tolerance::Absolute((0.15 * modelled).max(1.0))
}

/// What the four columns of table 4.6 add to those of table 4.4: KB and round trips.
pub const TABLE_4_6: [(u32, f64); 4] = [(16, 7.06), (32, 12.03), (64, 21.02), (128, 38.01)];

/// Two decimals are printed.
pub const PRINTED: Tolerance = Tolerance::Absolute(0.0051);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_buffer_can_be_counted_by_hand() {
        // Threshold 4: windows 1, 2, then 4, 4, 5, 5, 6, 6, 7, 7 in place of ten times 8.
        let sent = f64::from(1 + 2 + 2 * (4 + 5 + 6 + 7));
        let expected = (10.0 * 8.0 - sent) / 8.0;
        assert!((added(After::CongestionControl, 8) - expected).abs() < 1e-12);
        // Windows 1, 2, 4 in place of three times 8.
        assert!((added(After::SlowStart, 8) - (24.0 - 7.0) / 8.0).abs() < 1e-12);
        assert!((added(After::Nothing, 8) - 7.0 / 8.0).abs() < 1e-12);
    }
}
