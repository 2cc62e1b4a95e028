//! Sections 5.4.3 and 5.4.4: zero-window-size acknowledgements for senders other than AIX.
//!
//! The hand-offs are those of table 4.4, with and without the scheme, for each profile of the thesis, and for
//! later Linux beside them.

use super::claim;
use super::handoff::{HandoffTable, Row};
use super::table_4_4;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::own_claim;
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::{Mechanism, Profile};

/// The scheme for other senders.
#[derive(Debug)]
pub struct Section544;

/// The thesis's servers.
const THEN: [Profile; 4] = [
    Profile::Linux22,
    Profile::Freebsd22,
    Profile::Sunos56,
    Profile::Aix43,
];
/// Later servers.
const LATER: [Profile; 2] = [Profile::Linux24, Profile::Linux6];

/// Reason for which transfers of a sender that ignores the closed window take longer.
const HALVED_AGAIN: &str = "a sender that ignores the closed window sends again by its timer, and the agent \
    acknowledges its first retransmission. That is progress: the next timeout, still in the same hand-off, halves the slow-start threshold once more, at a round trip of 1 s and \
    a hand-off of 3,050 ms from 6 segments to 2, where it stays at 6 without the scheme. The transfer then takes 83.0 s in place of 80.8 s (full extent; the last table has each sender's).";

/// Hand-off and round trip of which the thresholds are shown.
const LONGEST: (Duration, Duration) = (Duration::from_millis(3_050), Duration::from_secs(1));

const MECHANISMS: [Mechanism; 2] = [Mechanism::None, Mechanism::ZeroWindowAck];

impl Figure for Section544 {
    fn name(&self) -> &'static str {
        "section-5-4-4"
    }

    fn title(&self) -> &'static str {
        "Zero-window-size acknowledgements for other senders"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let trials = extent.choose(3, 20);
        let mut jobs = Vec::new();
        for profile in profiles() {
            let hand_offs = hand_offs(profile);
            for row in hand_offs.rows {
                for index in 0..trials {
                    let path = hand_offs.path(row, index, trials);
                    let watch = match row.is_of(LONGEST) {
                        true => Watch::Variables,
                        false => Watch::Nothing,
                    };
                    jobs.push(path.job(cell(profile, row, Mechanism::None), index, watch));
                    let helped = Mechanism::ZeroWindowAck;
                    let job = path.helped_job(helped, cell(profile, row, helped), index);
                    jobs.push(job.watching(watch));
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut table = Table::new([
            Column::text("sender", "Sender"),
            Column::quantity("without_s", "Transfer without", Unit::Seconds),
            Column::quantity("with_s", "Transfer with", Unit::Seconds),
            Column::quantity("share", "With / without", Unit::Share),
            Column::quantity("worst_share", "Worst row", Unit::Share),
            Column::fixed("timeouts_without", "Timeouts without", 2),
            Column::fixed("timeouts_with", "Timeouts with", 2),
        ]);
        for profile in profiles() {
            let [without, with] =
                MECHANISMS.map(|mechanism| mean(runs, profile, mechanism, elapsed_s));
            let timeouts = MECHANISMS.map(|mechanism| mean(runs, profile, mechanism, timeouts));
            table.push([
                Cell::from(profile.name()),
                Cell::from(without),
                Cell::from(with),
                Cell::from(share(runs, profile)),
                Cell::from(worst(runs, profile)),
                Cell::from(timeouts[0]),
                Cell::from(timeouts[1]),
            ]);
        }
        table.note(
            "Means over the 20 hand-offs of table 4.4. Each transfer with the scheme has the seed of one without. The pause is not compared: \
             the agent delivers the segment that it keeps at once, which ends every pause and says nothing of the sender.",
        );
        let title = "Sections 5.4.3 and 5.4.4: zero-window-size acknowledgements by sender";
        Part::new(title)
            .table(table.titled("Transfers with a hand-off by sender, with and without the scheme"))
            .table(thresholds(runs))
            .claims(claims(runs))
    }
}

/// The slow-start thresholds that the longest hand-off leaves at the longest round trip.
fn thresholds(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("sender", "Sender"),
        Column::fixed("threshold_without", "Threshold without", 1),
        Column::fixed("threshold_with", "Threshold with", 1),
        Column::fixed("timeouts_without", "Timeouts without", 2),
        Column::fixed("timeouts_with", "Timeouts with", 2),
        Column::quantity("without_s", "Transfer without", Unit::Seconds),
        Column::quantity("with_s", "Transfer with", Unit::Seconds),
    ]);
    let row = table_4_4::TABLE.rows.iter().find(|row| row.is_of(LONGEST));
    for profile in profiles() {
        let of = |value: fn(&Record, &Row) -> Option<f64>| {
            MECHANISMS.map(|mechanism| {
                Cell::from(row.and_then(|row| mean_of_row(runs, profile, row, mechanism, value)))
            })
        };
        let columns = [of(threshold), of(timeouts), of(elapsed_s)];
        let cells = columns.into_iter().flatten();
        table.push([Cell::from(profile.name())].into_iter().chain(cells));
    }
    table.note(
        "Thresholds are in segments: the least after the hand-off, mean of the trials with a timeout.",
    );
    table.titled("A hand-off of 3,050 ms at a round trip of 1 s: slow-start threshold by sender")
}

/// The least slow-start threshold of a transfer.
fn threshold(record: &Record, _row: &Row) -> Option<f64> {
    let thresholds = record.variables.iter().filter_map(|row| row.ssthresh);
    thresholds.min().map(f64::from)
}

fn profiles() -> impl Iterator<Item = Profile> {
    THEN.into_iter().chain(LATER)
}

/// The hand-offs of table 4.4 for a server with `profile`.
fn hand_offs(profile: Profile) -> HandoffTable {
    let HandoffTable {
        name,
        title,
        place,
        buffer,
        rows,
        slack,
        after_the_shortest,
        departures,
        of_timeouts,
        otherwise,
        ..
    } = table_4_4::OF_WHOLE_SEGMENTS;
    HandoffTable {
        name,
        title,
        place,
        profile,
        buffer,
        rows,
        slack,
        after_the_shortest,
        departures,
        of_timeouts,
        otherwise,
    }
}

fn cell(profile: Profile, row: &Row, mechanism: Mechanism) -> String {
    format!("zero window, {profile}, {}, {mechanism}", row.name())
}

/// The whole transfer, about 60 s of which are connected.
fn elapsed_s(record: &Record, _row: &Row) -> Option<f64> {
    record.succeeded().then_some(record.result.elapsed_s)
}

fn timeouts(record: &Record, _row: &Row) -> Option<f64> {
    super::handoff::timeouts(record)
}

fn mean_of_row(
    runs: &Runs,
    profile: Profile,
    row: &Row,
    mechanism: Mechanism,
    of: fn(&Record, &Row) -> Option<f64>,
) -> Option<f64> {
    let records = runs.of(&cell(profile, row, mechanism)).iter();
    Some(Sample::of(records.filter_map(|record| of(record, row)))?.mean)
}

/// The mean over the rows.
fn mean(
    runs: &Runs,
    profile: Profile,
    mechanism: Mechanism,
    of: fn(&Record, &Row) -> Option<f64>,
) -> Option<f64> {
    let rows = table_4_4::TABLE.rows.iter();
    let means = rows.filter_map(|row| mean_of_row(runs, profile, row, mechanism, of));
    Some(Sample::of(means)?.mean)
}

/// The mean time of a transfer with the scheme as a share of that without.
fn share(runs: &Runs, profile: Profile) -> Option<f64> {
    let [without, with] = MECHANISMS.map(|mechanism| mean(runs, profile, mechanism, elapsed_s));
    Some(with? / without?)
}

/// The greatest such share of a row.
fn worst(runs: &Runs, profile: Profile) -> Option<f64> {
    let shares = table_4_4::TABLE.rows.iter().filter_map(|row| {
        let [without, with] =
            MECHANISMS.map(|mechanism| mean_of_row(runs, profile, row, mechanism, elapsed_s));
        Some(with? / without?)
    });
    shares.reduce(f64::max)
}

/// The greatest share of `profiles`.
fn greatest(runs: &Runs, profiles: &[Profile]) -> Option<Measured> {
    let shares = profiles.iter().map(|&profile| share(runs, profile));
    let shares = shares.collect::<Option<Vec<f64>>>()?;
    Some(Measured {
        value: shares.iter().copied().reduce(f64::max)?,
        standard_deviation: None,
        count: shares.len(),
    })
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let no_longer = |place, statement: &'static str| Claim {
        departure: Some(HALVED_AGAIN.into()),
        ..claim(
            place,
            statement,
            Unit::Share,
            Published::AtMost(1.0),
            Tolerance::Exact,
        )
    };
    vec![
        no_longer(
            "section 5.4.3",
            "For Linux 2.2 the scheme changes nothing for the worse (mean time of a transfer, as a share of that without).",
        )
        .judge(greatest(runs, &[Profile::Linux22])),
        no_longer(
            "section 5.4.4",
            "Zero-window-size acknowledgements have no negative effects in general (mean time of a transfer, as a share of that without: \
             greatest of the thesis's four senders).",
        )
        .judge(greatest(runs, &THEN)),
        Claim {
            departure: Some(HALVED_AGAIN.into()),
            ..own_claim(
                "section-5-4-4",
                "Nor have they with Linux 2.4 and Linux 6 (greatest).",
                Unit::Share,
                Published::AtMost(1.0),
            )
        }
        .judge(greatest(runs, &LATER)),
    ]
}
