//! Hand-offs of Mobile IP (sections 4.3 and 4.4): what tables 4.4 and 4.5 have in common.

use super::beside::{Beside, beside};
use super::claim;
use super::path::Path;
use super::table_4_1::TRANSIT;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Departure, Published, Tolerance};
use outlast_report::plot::{Axis, Strip, StripRow};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;
use outlast_scenario::Profile;

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

/// Share by which an idle time may be off: where neither the thesis's repetitions nor the granularity of a
/// timer allows for more.
pub const SHARE: f64 = super::timeouts::SHARE;
/// Round trips by which it may be off at least, for the thesis's ten repetitions.
///
/// The moment in a round trip at which the hand-off begins is spread evenly, so that a mean of ten has a standard error
/// of 0.09 round trips: two of them.
pub const ROUND_TRIPS: f64 = 0.18;
/// Timeouts per hand-off that may be more or fewer, for the thesis's ten repetitions.
///
/// Of hand-offs that cost one of two neighbouring numbers of timeouts the mean of ten has a standard error of up to
/// 0.16: two of them. Where ten hand-offs all have the same number, up to 0.26 of all may have another one, at 95 %.
pub const TIMEOUTS: Tolerance = Tolerance::Absolute(0.3);

/// A published table.
#[derive(Debug)]
pub struct HandoffTable {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Its place in the thesis.
    pub place: &'static str,
    /// The server's stack.
    pub profile: Profile,
    /// The mobile's receive buffer in bytes.
    pub buffer: u32,
    /// Its rows.
    pub rows: &'static [Row],
    /// Least accepted difference of an idle time, for the granularity of the stack's timers.
    pub slack: Duration,
    /// Idle time after a hand-off of 50 ms at a round trip of 60 ms (text of section 4.4).
    pub after_the_shortest: Duration,
    /// Hand-offs and round trips at which a difference is known, and where it comes from.
    pub departures: &'static [(Duration, Duration, Departs)],
    /// Hand-offs and round trips at which the number of timeouts differs for a reason of its own, and that reason.
    pub of_timeouts: &'static [(Duration, Duration, Departs)],
    /// The reason for every other difference.
    pub otherwise: Option<Departs>,
}

/// A reason for a difference, or the word that none is known.
#[derive(Clone, Copy, Debug)]
pub enum Departs {
    /// For this reason.
    For(&'static str),
    /// For no known reason; this was tried.
    Unexplained(&'static str),
}

impl From<Departs> for Departure {
    fn from(departs: Departs) -> Self {
        match departs {
            Departs::For(reason) => Self::Known(reason.into()),
            Departs::Unexplained(tried) => Self::Unexplained(tried.into()),
        }
    }
}

/// The shortest hand-off, and the only round trip at which it loses anything (section 4.4).
pub(super) const SHORTEST: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_millis(60));

impl Row {
    /// Hand-off and round trip, for readers.
    #[must_use]
    pub fn name(&self) -> String {
        let (handoff, round_trip) = (self.handoff.as_millis(), self.round_trip.as_millis());
        format!("hand-off of {handoff} ms, round trip of {round_trip} ms")
    }

    /// True for the row of this hand-off and round trip.
    pub(super) fn is_of(&self, (handoff, round_trip): (Duration, Duration)) -> bool {
        (self.handoff, self.round_trip) == (handoff, round_trip)
    }

    /// By how many round trips an idle time of `table` may be off.
    #[must_use]
    pub fn tolerance(&self, table: &HandoffTable) -> Tolerance {
        let round_trip = self.round_trip.as_secs_f64();
        let slack = table.slack.as_secs_f64() / round_trip;
        Tolerance::Absolute((SHARE * self.idle).max(ROUND_TRIPS).max(slack))
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
            self.departing(
                row,
                of("timeouts", row.timeouts, TIMEOUTS),
                &[self.of_timeouts, self.departures],
            ),
            self.known(row, of("idle round trips", row.idle, row.tolerance(self))),
        ]
    }

    /// The claim on the idle time of `row`, with the reason for a difference if one is known.
    #[must_use]
    pub fn known(&self, row: &Row, claim: Claim) -> Claim {
        self.departing(row, claim, &[self.departures])
    }

    fn departing(
        &self,
        row: &Row,
        claim: Claim,
        known: &[&[(Duration, Duration, Departs)]],
    ) -> Claim {
        let mut known = known.iter().copied().flatten();
        let of_row = known.find(|(handoff, round_trip, _)| row.is_of((*handoff, *round_trip)));
        let why = of_row.map(|(_, _, why)| *why).or(self.otherwise);
        Claim {
            departure: why.map(Into::into),
            ..claim
        }
    }

    /// The hand-off of which only the text tells.
    pub(super) fn shortest(&self) -> Row {
        let (handoff, round_trip) = SHORTEST;
        Row {
            handoff,
            round_trip,
            timeouts: 1.0,
            // To the decimals that the tables have.
            idle: (self.after_the_shortest.div_duration_f64(round_trip) * 100.0).round() / 100.0,
            total: (handoff + self.after_the_shortest).div_duration_f64(round_trip),
        }
    }
}

/// The mobile's receive buffer: 18 KB (section 4.3).
///
/// That is 392 bytes less than 13 whole segments: the last segment of a window is a short one.
pub(super) const BUFFER: u32 = 18 * 1_024;
/// A buffer of 13 whole segments, for runs that measure the first new bytes after a hand-off.
///
/// After a window with a short last segment the mobile has the oldest unacknowledged segment, as the hand-off takes its
/// delayed acknowledgement: new bytes come a round trip after the retransmission, which is what the thesis counts.
pub(super) const WHOLE_SEGMENTS: u32 = 13 * 1_448;
/// When the mobile moves, from the server's first segment on. "Midway" through a connection that
/// lasts as long again.
pub(super) const MOVE: Duration = Duration::from_secs(30);

/// How many hand-offs there are in each row. The thesis has ten.
#[must_use]
pub const fn trials(extent: Extent) -> u32 {
    match extent {
        Extent::Quick => 10,
        Extent::Full => 100,
    }
}

impl HandoffTable {
    /// The cell of its runs of `row`.
    pub(super) fn cell(&self, row: &Row) -> String {
        format!("{}, {}", self.profile, row.name())
    }

    pub(super) fn job(&self, row: &Row, index: u32, of: u32) -> Job {
        let path = self.path(row, index, of);
        path.job(self.cell(row), index, Watch::Reconnections)
    }

    /// Trial `index` of `of`. The mobile's movements are spread over one round trip.
    pub(super) fn path(&self, row: &Row, index: u32, of: u32) -> Path {
        let round_trip = row.round_trip;
        let whole = MOVE * 2 + row.handoff;
        let windows = whole.div_duration_f64(round_trip).ceil() as u64;
        Path {
            server: self.profile,
            receiver: Profile::Linux24,
            buffer: self.buffer,
            round_trip,
            rate_mbit_per_s: 10,
            mtu: 1_500,
            // What has left the home agent and not yet arrived is lost as well.
            cut: MOVE + round_trip * index / of,
            length: TRANSIT + row.handoff,
            bytes: windows * u64::from(self.buffer),
            deadline: whole * 3,
        }
    }

    /// Timeouts, and idle time in round trips of the trials that had any.
    #[must_use]
    pub fn ours(&self, runs: &Runs, row: &Row) -> [Option<Sample>; 2] {
        let records = runs.of(&self.cell(row));
        let timeouts = records.iter().filter_map(timeouts);
        let idle = records.iter().filter_map(idle_s);
        let round_trip = row.round_trip.as_secs_f64();
        [
            Sample::of(timeouts),
            Sample::of(idle.map(|idle| idle / round_trip)),
        ]
    }

    /// The number that stands in the text alone.
    fn text(&self, ours: Option<Sample>) -> Beside {
        let row = self.shortest();
        Beside {
            labels: vec![
                Cell::from(row.handoff.as_secs_f64()),
                Cell::from(row.round_trip.as_secs_f64()),
                Cell::from("idle round trips"),
            ],
            claim: self.known(
                &row,
                claim(
                    "section 4.4",
                    format!("{}, {}: idle round trips.", self.profile, row.name()),
                    Unit::Number,
                    Published::About(row.idle),
                    row.tolerance(self),
                ),
            ),
            ours,
        }
    }

    fn strip(&self, runs: &Runs) -> Strip {
        let mut round_trips: Vec<Duration> = self.rows.iter().map(|row| row.round_trip).collect();
        round_trips.sort();
        round_trips.dedup();
        let mut rows = Vec::new();
        for round_trip in round_trips {
            let mut group = Some(format!("round trip of {} ms", round_trip.as_millis()));
            for row in self.rows.iter().filter(|row| row.round_trip == round_trip) {
                let published = row.idle * round_trip.as_secs_f64();
                let ours = runs.of(&self.cell(row)).iter().filter_map(idle_s);
                rows.push(StripRow {
                    group: group.take(),
                    label: format!("hand-off of {} ms", row.handoff.as_millis()),
                    samples: vec![vec![Some(published)], ours.map(Some).collect()],
                });
            }
        }
        Strip {
            axis: Axis::new("Idle time after the hand-off", Unit::Seconds),
            variants: vec![
                ("published mean".to_owned(), true),
                ("ours".to_owned(), false),
            ],
            rows,
            limit: None,
        }
    }
}

/// Timeouts of a trial.
pub(super) fn timeouts(record: &Record) -> Option<f64> {
    record.result.timeouts.map(|timeouts| timeouts as f64)
}

/// From the end of the hand-off to the retransmission that gets through, of trials with timeouts.
fn idle_s(record: &Record) -> Option<f64> {
    let had_timeouts = timeouts(record).is_some_and(|timeouts| timeouts > 0.0);
    let again = record.reconnections.first()?.again;
    again.through_s.filter(|_| had_timeouts)
}

impl Figure for HandoffTable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = trials(extent);
        let rows = [self.shortest()]
            .into_iter()
            .chain(self.rows.iter().copied());
        let of_row = |row| (0..trials).map(move |index| self.job(&row, index, trials));
        rows.flat_map(of_row).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let heading = format!("T{}: {}", &self.place[1..], self.title);
        let part = self.part(heading, |row| self.ours(runs, row));
        part.figure(
            self.strip(runs).draw(),
            "From the end of the hand-off to the retransmission that gets through. Every mark \
                 of ours is one hand-off.",
        )
    }
}

impl HandoffTable {
    /// The published numbers beside `ours`, which are timeouts and idle round trips.
    pub(super) fn part(&self, heading: String, ours: impl Fn(&Row) -> [Option<Sample>; 2]) -> Part {
        let mut rows = vec![self.text(ours(&self.shortest())[1])];
        for row in self.rows {
            let what = ["timeouts", "idle round trips"];
            let ours = ours(row);
            for ((claim, ours), what) in self.claims(row).into_iter().zip(ours).zip(what) {
                rows.push(Beside {
                    labels: vec![
                        Cell::from(row.handoff.as_secs_f64()),
                        Cell::from(row.round_trip.as_secs_f64()),
                        Cell::from(what),
                    ],
                    claim,
                    ours,
                });
            }
        }
        let labels = vec![
            Column::quantity("handoff_s", "Hand-off", Unit::Seconds),
            Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
            Column::text("what", "What"),
        ];
        beside(Part::new(heading.clone()), heading, labels, rows)
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
