//! First and second timeout of a stack whose peer goes away (section 3.2): what tables 3.2 to 3.5
//! have in common.

use super::beside::{Beside, beside, unjudged};
use super::claim;
use super::path::Path;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;
use outlast_scenario::Profile;
use outlast_tcp::profile::measured::Timeouts;

/// How far off a mean may be, as a share of the published one.
///
/// Each published mean is of five connections over a host that delays packets with an accuracy that
/// is not told, and in a timeout the deviation of the samples counts four times.
pub const SHARE: f64 = 0.15;

/// How far off a mean may be at least, where timers have a heartbeat of 500 ms: half of one. The
/// phase of the heartbeat spreads each timeout over one, and a mean of five is no better than that.
pub const HEARTBEAT_SLACK: Duration = Duration::from_millis(250);

/// How far off a mean may be at least, where timers tick every 10 ms.
///
/// Two ticks: one for each end of the interval.
pub const TICK_SLACK: Duration = Duration::from_millis(20);

/// Why a BSD stack's timeout over a short round trip may be another one.
pub(super) const STRADDLED: &str = "BSD measures in beats of 500 ms: a round trip counts as one if a \
    beat falls into it, else as none. How long ago the last one counted decides over the estimate \
    at the cut, and the pattern of the segments over how often one does; a mean of five \
    connections with another send buffer is another one.";

/// A published table.
#[derive(Debug)]
pub struct TimeoutTable {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Its place in the thesis.
    pub place: &'static str,
    /// The stack, as scenarios name it.
    pub profile: Profile,
    /// Its rows.
    pub rows: &'static [Timeouts],
    /// What is accepted at least, in either direction.
    pub slack: Duration,
    /// Round trips up to which the profile's least timeout, which is taken from the thesis, decides: rows that confirm
    /// nothing.
    pub given: Option<Duration>,
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

/// The receiver's buffer (section 3.2.1), the most that a window without scale can offer.
const BUFFER: u32 = 65_535;
/// Long enough for every estimate to settle: 20 round trips of the longest.
const CUT: Duration = Duration::from_secs(20);
/// Long enough for the second timeout of every stack.
const LENGTH: Duration = Duration::from_secs(10);

/// How many connections are cut. The thesis has five; more of them show the spread over all phases
/// of a heartbeat.
#[must_use]
pub const fn trials(extent: Extent) -> u32 {
    match extent {
        Extent::Quick => 10,
        Extent::Full => 100,
    }
}

impl TimeoutTable {
    fn cell(&self, row: &Timeouts) -> String {
        format!("{}, {} ms", self.profile, row.round_trip.as_millis())
    }

    /// Trial `index` of `of`. The cuts are spread over one round trip.
    fn job(&self, row: &Timeouts, index: u32, of: u32) -> Job {
        let path = Path {
            server: self.profile,
            receiver: Profile::Linux22,
            buffer: BUFFER,
            round_trip: row.round_trip,
            rate_mbit_per_s: 10,
            mtu: 1_500,
            cut: CUT + row.round_trip * index / of,
            length: LENGTH,
            // More than goes through before the cut.
            bytes: 30_000_000,
            deadline: CUT + LENGTH * 2,
        };
        path.job(self.cell(row), index, Watch::Reconnections)
    }

    /// Our first and second timeouts of `row`, in seconds.
    #[must_use]
    pub fn waits(&self, runs: &Runs, row: &Timeouts) -> [Option<Sample>; 2] {
        let records = runs.of(&self.cell(row));
        let of = |wait: fn(&Record) -> Option<f64>| Sample::of(records.iter().filter_map(wait));
        [
            of(|record| record.reconnections.first()?.again.first_wait_s),
            of(|record| record.reconnections.first()?.again.second_wait_s),
        ]
    }

    fn plot(&self, runs: &Runs) -> Curves {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let published = |name: &str, of: fn(&Timeouts) -> Duration| Series {
            name: format!("{name}, published"),
            is_control: false,
            points: self
                .rows
                .iter()
                .map(|row| Point::new(seconds(row.round_trip), seconds(of(row))))
                .collect(),
        };
        let ours = |name: &str, which: usize| Series {
            name: format!("{name}, ours"),
            is_control: false,
            points: self
                .rows
                .iter()
                .filter_map(|row| {
                    let sample = self.waits(runs, row)[which]?;
                    let point = Point::new(seconds(row.round_trip), sample.mean);
                    Some(point.between(sample.least, sample.greatest))
                })
                .collect(),
        };
        Curves {
            x: Axis::new("Round trip", Unit::Seconds),
            y: Axis::new("Timeout", Unit::Seconds),
            series: vec![
                published("First", |row| row.first),
                ours("First", 0),
                published("Second", |row| row.second),
                ours("Second", 1),
            ],
            optimum: None,
        }
    }
}

impl Figure for TimeoutTable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = trials(extent);
        let of_row = |row| (0..trials).map(move |index| self.job(row, index, trials));
        self.rows.iter().flat_map(of_row).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let (mut rows, mut given) = (Vec::new(), Vec::new());
        for row in self.rows {
            let is_given = self.given.is_some_and(|up_to| row.round_trip <= up_to);
            let rows = if is_given { &mut given } else { &mut rows };
            let waits = self.waits(runs, row);
            let which = ["first", "second"];
            for ((claim, ours), which) in self.claims(row).into_iter().zip(waits).zip(which) {
                rows.push(Beside {
                    labels: vec![Cell::from(row.round_trip.as_secs_f64()), Cell::from(which)],
                    claim,
                    ours,
                });
            }
        }
        let labels = || {
            vec![
                Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
                Column::text("timeout", "Timeout"),
            ]
        };
        let heading = format!("T{}: {}", &self.place[1..], self.title);
        let part = beside(Part::new(heading.clone()), heading.clone(), labels(), rows);
        let part = match given.is_empty() {
            true => part,
            false => unjudged(
                part,
                format!("{heading}, where the least timeout decides"),
                labels(),
                given,
                "The profile's least timeout is the thesis's: nothing is judged.",
            ),
        };
        part.figure(
            self.plot(runs).draw(),
            "Published means, and ours with the least and the greatest of all trials.",
        )
    }
}
