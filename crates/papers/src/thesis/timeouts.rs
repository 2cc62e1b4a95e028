//! First and second timeout of a stack whose peer goes away (section 3.2): what tables 3.2 to 3.5
//! have in common.

use super::claim;
use outlast_core::time::Duration;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_tcp::profile::measured::Timeouts;

/// How far off a mean may be, as a share of the published one.
///
/// Each published mean is of five connections over a host that delays packets with an accuracy that
/// is not told, and in a timeout the deviation of the samples counts four times.
pub const SHARE: f64 = 0.15;

/// How far off a mean may be at least, where timers have a heartbeat of 500 ms: half of one. The
/// phase of the heartbeat spreads each timeout over one, and a mean of five is no better than that.
pub const HEARTBEAT_SLACK: Duration = Duration::from_millis(250);

/// The same for timers with a granularity of 10 ms: two ticks, one for each end of the interval.
pub const TICK_SLACK: Duration = Duration::from_millis(20);

/// A published table.
#[derive(Debug)]
pub struct TimeoutTable {
    /// Its place in the thesis.
    pub place: &'static str,
    /// The stack, as scenarios name it.
    pub profile: outlast_scenario::Profile,
    /// Its rows.
    pub rows: &'static [Timeouts],
    /// What is accepted at least, in either direction.
    pub slack: Duration,
    /// Round trips at which a difference is known, and where it comes from.
    pub departures: &'static [(Duration, &'static str)],
}

impl TimeoutTable {
    /// The first and the second timeout of `row` as claims.
    #[must_use]
    pub fn claims(&self, row: &Timeouts) -> [Claim; 2] {
        let known = self.departures.iter().find(|(at, _)| *at == row.round_trip);
        let round_trip = row.round_trip.as_millis();
        [("first", row.first), ("second", row.second)].map(|(which, published)| {
            let published = published.as_secs_f64();
            let slack = (SHARE * published).max(self.slack.as_secs_f64());
            Claim {
                departure: known.map(|(_, why)| (*why).into()),
                ..claim(
                    self.place,
                    format!(
                        "{}, round trip of {round_trip} ms: {which} timeout.",
                        self.profile
                    ),
                    Unit::Seconds,
                    Published::About(published),
                    Tolerance::Absolute(slack),
                )
            }
        })
    }
}
