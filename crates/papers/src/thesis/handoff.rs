//! Hand-offs of Mobile IP (sections 4.3 and 4.4): what tables 4.4 and 4.5 have in common.

use super::claim;
use outlast_core::time::Duration;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;

/// A row of table 4.4 or 4.5: means of ten hand-offs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The hand-off, until the home agent answers the registration.
    pub handoff: Duration,
    /// Round trip between server and mobile.
    pub round_trip: Duration,
    /// Timeouts per hand-off.
    pub timeouts: f64,
    /// From the end of the hand-off to the retransmission at the home agent, in round trips.
    pub idle: f64,
    /// Hand-off and idle time, in round trips.
    pub total: f64,
}

/// A row as it is printed, without the column that is hand-off over round trip.
pub(super) const fn row(
    handoff: u64,
    round_trip: u64,
    timeouts: f64,
    idle: f64,
    total: f64,
) -> Row {
    Row {
        handoff: Duration::from_millis(handoff),
        round_trip: Duration::from_millis(round_trip),
        timeouts,
        idle,
        total,
    }
}

/// Share of the whole pause by which an idle time may be off. What a sender's timeouts add up to is
/// as uncertain as its first one (see [`super::timeouts::SHARE`]), and the idle time is what is left
/// of it after the hand-off.
pub const SHARE: f64 = super::timeouts::SHARE;
/// Round trips by which it may be off at least: when in a round trip the hand-off begins is spread
/// evenly, so that a mean of ten has a standard error of 0.09 round trips; three of them.
pub const ROUND_TRIPS: f64 = 0.3;
/// Timeouts per hand-off that may be more or fewer: one in half of the hand-offs.
pub const TIMEOUTS: Tolerance = Tolerance::Absolute(0.5);

/// A published table.
#[derive(Debug)]
pub struct HandoffTable {
    /// Its place in the thesis.
    pub place: &'static str,
    /// The server's stack.
    pub profile: outlast_scenario::Profile,
    /// Its rows.
    pub rows: &'static [Row],
    /// What an idle time may be off at least, for the granularity of the stack's timers.
    pub slack: Duration,
}

impl Row {
    /// Hand-off and round trip, for readers.
    #[must_use]
    pub fn name(&self) -> String {
        let (handoff, round_trip) = (self.handoff.as_millis(), self.round_trip.as_millis());
        format!("hand-off of {handoff} ms, round trip of {round_trip} ms")
    }

    /// By how many round trips an idle time of `table` may be off.
    #[must_use]
    pub fn tolerance(&self, table: &HandoffTable) -> Tolerance {
        let round_trip = self.round_trip.as_secs_f64();
        let slack = table.slack.as_secs_f64() / round_trip;
        let pause = self.handoff.as_secs_f64() / round_trip + self.idle;
        Tolerance::Absolute((SHARE * pause).max(ROUND_TRIPS).max(slack))
    }
}

impl HandoffTable {
    /// Timeouts and idle time of `row` as claims.
    #[must_use]
    pub fn claims(&self, row: &Row) -> [Claim; 2] {
        let of = |what, published, tolerance| {
            let statement = format!("{}, {}: {what}.", self.profile, row.name());
            let published = Published::About(published);
            claim(self.place, statement, Unit::Number, published, tolerance)
        };
        [
            of("timeouts", row.timeouts, TIMEOUTS),
            of("idle round trips", row.idle, row.tolerance(self)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::thesis::{table_4_4, table_4_5};

    #[test]
    fn hand_off_and_idle_time_make_the_total_but_for_two_misprints() {
        let rows = table_4_4::TABLE.rows.iter().chain(table_4_5::TABLE.rows);
        let off = |row: &super::Row| {
            row.total - row.idle - row.handoff.as_secs_f64() / row.round_trip.as_secs_f64()
        };
        let odd: Vec<f64> = rows.map(off).filter(|off| off.abs() > 0.07).collect();
        assert!(
            odd.len() == 2 && odd.iter().all(|off| (off - 1.0).abs() < 0.01),
            "{odd:?}"
        );
    }
}
