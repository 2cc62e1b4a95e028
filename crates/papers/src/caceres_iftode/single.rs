//! Short transfers with one hand-off between cells that do not overlap: the runs of figures 5, 6
//! and 9.

use super::claim;
use super::testbed::{self, Crossings, Motion};
use super::transfer::pauses;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::{mean, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;
use std::collections::BTreeMap;

/// Half a beat of the 500 ms timer: the paper shows one hand-off and not how its beats fell.
pub const HALF_A_BEAT: Tolerance = Tolerance::Absolute(0.25);

/// The shortest pause and the shortest wait of TCP after a hand-off that the paper claims, in seconds.
const LEAST_PAUSE_S: f64 = 0.8;
const LEAST_WAIT_S: f64 = 0.65;

/// The receiver's window in bytes: no more can be under way.
pub const WINDOW: f64 = 16_384.0;
/// How much of the time before a crossing and after the pause is drawn, in seconds.
const DRAWN_S: (f64, f64) = (0.3, 0.7);
/// Runs of which the packets are kept.
const KEPT: u32 = 20;

/// Runs of each direction and rendezvous delay.
#[must_use]
pub fn runs(extent: Extent) -> u32 {
    extent.choose(20, 100)
}

/// The runs; their packets are kept of an upload.
#[must_use]
pub fn jobs(extent: Extent, rendezvous: Duration, direction: Direction) -> Vec<Job> {
    let job = |index| {
        let motion = Motion::Apart { rendezvous };
        let cell = cell(rendezvous, direction);
        let watch = if direction == Direction::Upload && index < KEPT {
            Watch::Packets
        } else {
            Watch::Nothing
        };
        testbed::job(cell, motion, Crossings::Once, direction, index).watching(watch)
    };
    (0..runs(extent)).map(job).collect()
}

fn cell(rendezvous: Duration, direction: Direction) -> String {
    format!("one hand-off, {} s, {direction}", rendezvous.as_secs())
}

/// The runs that were carried out.
#[must_use]
pub fn of(runs: &Runs, rendezvous: Duration, direction: Direction) -> &[Record] {
    runs.of(&cell(rendezvous, direction))
}

/// From the crossing until the receiver had new bytes.
#[must_use]
pub fn pause(records: &[Record]) -> Option<Sample> {
    Sample::of(pauses(records).flatten())
}

/// From the end of the hand-off until then.
#[must_use]
pub fn wait(records: &[Record]) -> Option<Sample> {
    let waits = records.iter().flat_map(Record::outages);
    Sample::of(waits.filter_map(|(outage, _)| outage.resume_s))
}

/// Payload that was lost with a hand-off, in bytes, each byte once: the mean.
#[must_use]
pub fn lost(records: &[Record]) -> Option<Measured> {
    mean(records.iter().filter_map(lost_in))
}

fn lost_in(record: &Record) -> Option<f64> {
    let trace = record.trace.as_ref()?;
    let dropped = trace
        .data
        .iter()
        .filter(|segment| segment.arrival_s.is_none());
    let each: BTreeMap<u64, u32> = dropped
        .map(|segment| (segment.number, segment.payload_len))
        .collect();
    Some(each.values().map(|&len| f64::from(len)).sum())
}

/// What is published of one figure.
pub(super) struct Numbers {
    /// The figure.
    pub figure: &'static str,
    /// Where it is described.
    pub place: &'static str,
    pub rendezvous: Duration,
    /// From the crossing until the retransmission that got through.
    pub pause_s: f64,
    /// From the end of the hand-off until the retransmission that got through.
    pub wait_s: f64,
    /// Timeouts of a typical hand-off.
    pub timeouts: u64,
}

/// A lower bound of the paper, held to the letter.
fn bound(place: &'static str, statement: String, seconds: f64) -> Claim {
    Claim {
        departure: Some(
            "the bound is what the paper read off its hand-offs. A timeout of two beats of 500 ms fires 0.5 s \
             to 1 s after it was set, wherever the hand-off ends in between: of a hand-off of 0.15 s \
             that leaves 0.35 s at least, after a later timeout, nothing at all."
                .into(),
        ),
        ..claim(
            place,
            statement,
            Unit::Seconds,
            Published::AtLeast(seconds),
            Tolerance::Exact,
        )
    }
}

impl Numbers {
    /// The diagram, the table and the claims of a figure.
    pub(super) fn part(&self, runs: &Runs, heading: String) -> Part {
        let records = of(runs, self.rendezvous, Direction::Upload);
        let part = Part::new(heading);
        let drawn = records.iter().find_map(|record| {
            let trace = record.trace.as_ref()?;
            let crossing = record.result.outages.first()?.start_s;
            let pause = pauses(std::slice::from_ref(record)).next()??;
            let (before, after) = DRAWN_S;
            Some(
                trace
                    .diagram(crossing - before, crossing + pause + after)
                    .draw(),
            )
        });
        let part = match drawn {
            None => part,
            Some(figure) => part.figure(
                figure,
                format!(
                    "One hand-off with {} s rendezvous delay; shaded from the crossing to its end. \
                     Sequence numbers count from the lowest shown. Compare {} of the paper, which \
                     shows the packets of Mobile IP, too.",
                    self.rendezvous.as_secs(),
                    self.figure
                ),
            ),
        };
        let claims = self.claims();
        let measured = self.measured(records);
        part.table(self.table(records)).claims(
            claims
                .into_iter()
                .zip(measured)
                .map(|(claim, measured)| claim.judge(measured))
                .collect(),
        )
    }

    fn claims(&self) -> [Claim; 6] {
        let name = format!("{} s rendezvous delay", self.rendezvous.as_secs());
        let times = match self.timeouts {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            n => format!("{n} times"),
        };
        let of = |place, statement: String, unit, published, tolerance| {
            claim(place, statement, unit, published, tolerance)
        };
        [
            of(
                self.place,
                format!("With {name} communication halts for {} s.", self.pause_s),
                Unit::Seconds,
                Published::About(self.pause_s),
                HALF_A_BEAT,
            ),
            of(
                "section IV.C",
                format!(
                    "TCP retransmits {} s after the hand-off is complete.",
                    self.wait_s
                ),
                Unit::Seconds,
                Published::About(self.wait_s),
                HALF_A_BEAT,
            ),
            of(
                "section III.C",
                format!("The timer fires {times} typically (share of the hand-offs)."),
                Unit::Share,
                Published::AtLeast(0.5),
                Tolerance::Exact,
            ),
            bound(
                "abstract, sections I, III.C and III.E",
                format!("With {name} communication halts for 0.8 s or longer (shortest)."),
                LEAST_PAUSE_S,
            ),
            bound(
                "sections III.E and VI",
                format!(
                    "With {name} TCP retransmits at least 0.65 s after the hand-off is complete \
                     (shortest)."
                ),
                LEAST_WAIT_S,
            ),
            // That no more than the window is lost is not judged: flow control allows no more.
            own_claim(
                "the profile's window",
                "Up to the full window of 16 KiB is lost: more than half of it (mean).",
                Unit::Bytes,
                Published::AtLeast(WINDOW / 2.0),
            ),
        ]
    }

    fn measured(&self, records: &[Record]) -> [Option<Measured>; 6] {
        let least = |of: Option<Sample>| {
            of.map(|of| Measured {
                value: of.least,
                standard_deviation: None,
                count: of.count,
            })
        };
        [
            pause(records).map(Measured::from),
            wait(records).map(Measured::from),
            share(records, |record| {
                record.result.timeouts == Some(self.timeouts)
            }),
            least(pause(records)),
            least(wait(records)),
            lost(records),
        ]
    }

    fn table(&self, records: &[Record]) -> Table {
        let mut table = Table::new([
            Column::text("what", "From"),
            Column::quantity("published_s", "Published", Unit::Seconds),
            Column::quantity("mean_s", "Mean", Unit::Seconds),
            Column::quantity("difference_s", "Difference", Unit::Seconds),
            Column::quantity("least_s", "Shortest", Unit::Seconds),
            Column::quantity("greatest_s", "Longest", Unit::Seconds),
        ]);
        let rows = [
            ("the crossing", self.pause_s, pause(records)),
            ("the end of the hand-off", self.wait_s, wait(records)),
        ];
        for (from, published, ours) in rows {
            table.push([
                Cell::from(from),
                Cell::from(published),
                Cell::from(ours.as_ref().map(|ours| ours.mean)),
                Cell::from(ours.as_ref().map(|ours| ours.mean - published)),
                Cell::from(ours.as_ref().map(|ours| ours.least)),
                Cell::from(ours.as_ref().map(|ours| ours.greatest)),
            ]);
        }
        table.note(
            "The timer of 4.3BSD beats every 500 ms, and a timeout of 1 s is two beats, so that it \
             fires between 0.5 s and 1 s after the last acknowledgement; later if that one was \
             delayed beyond the hand-off, or the timeout was of three beats.",
        );
        table.titled("Time until the receiver has new bytes")
    }
}
