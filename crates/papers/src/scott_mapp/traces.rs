//! Traces of one transfer per level (section 5.4): what figures 1 and 8 to 11 share.
//!
//! The channel of these traces has longer periods than that of the transfers, so that an outage and
//! the recovery from it can be seen: connected for 3 s and disconnected for 2.5 s on average. The
//! paper does not state those of its traces; three retransmissions fell into the outage of its
//! figure 1, as they do here.

use super::channel;
use super::testbed::Testbed;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::diagram::FlowTrace;
use outlast_experiments::experiment::{Extent, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::{mean, median};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::Measured;
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::{Direction, Mechanism};

/// What counts as "immediately" after the link's return: the round trip is at most a fiftieth of it,
/// and the shortest retransmission timeout of Linux twice as long.
pub const IMMEDIATELY_S: f64 = 0.1;

/// Reason for which a sender goes on at once after half of the outages with levels 1 and 2.
pub(super) const ACKNOWLEDGED_AGAIN: &str = "the link layer stands at both ends, and the segment that the mobile receives again makes \
    it acknowledge again. Where the outage took the first acknowledgement, this one is new to the sender, which goes on. With the link layer at \
    the sender's end only, 48 of 51 outages wait, as many as without it. How often the outage took an acknowledgement in the paper's traces is not told.";

/// How long each trace is.
const LENGTH: Duration = Duration::from_secs(30);
/// Mean length of the outages.
const DOWN: Duration = Duration::from_millis(2_500);
/// How much of the time before and after an outage is drawn, in seconds.
const DRAWN_S: (f64, f64) = (0.3, 2.4);

/// The runs of which the table shows every outage.
const SHOWN: usize = 2;

/// The runs of a level; the first one is drawn.
#[must_use]
pub fn jobs(bed: Testbed, extent: Extent, mechanism: Mechanism) -> Vec<Job> {
    let setting = setting(bed, mechanism);
    let run = |index| {
        let watch = if index == 0 {
            Watch::Packets
        } else {
            Watch::Reconnections
        };
        bed.job(cell(bed, mechanism), &setting, index)
            .watching(watch)
    };
    (0..extent.choose(2, 10)).map(run).collect()
}

fn setting(bed: Testbed, mechanism: Mechanism) -> Setting {
    let outages = Outages::Uniform {
        up: Duration::from_secs(3),
        down: DOWN,
    };
    // More than fits: the deadline ends the trace.
    let task = Task::Bulk {
        bytes: ByteCount(50_000_000),
        direction: Direction::Download,
    };
    let name = format!("trace, {mechanism}");
    Setting {
        deadline: LENGTH,
        ..channel::over(bed, name, outages, task, mechanism)
    }
}

fn cell(bed: Testbed, mechanism: Mechanism) -> String {
    bed.cell(format!("trace, {mechanism}"))
}

/// The median time from link-up until the sender itself gets new segments through.
#[must_use]
pub fn restart(bed: Testbed, runs: &Runs, mechanism: Mechanism) -> Option<Measured> {
    let outages = runs
        .of(&cell(bed, mechanism))
        .iter()
        .flat_map(Record::outages);
    median(outages.map(|(_, reconnection)| reconnection.restart_s))
}

/// The share of outages after which the sender itself gets nothing through "immediately".
#[must_use]
pub fn waits(bed: Testbed, runs: &Runs, mechanism: Mechanism) -> Option<Measured> {
    let outages = runs
        .of(&cell(bed, mechanism))
        .iter()
        .flat_map(Record::outages);
    let waits = |restart_s: Option<f64>| restart_s.is_none_or(|after| after > IMMEDIATELY_S);
    let restarts = outages.map(|(_, reconnection)| f64::from(waits(reconnection.restart_s)));
    // A share has no spread.
    mean(restarts).map(|share| Measured {
        standard_deviation: None,
        ..share
    })
}

/// The diagram of one outage, and a table of all of them.
pub(super) fn part(
    bed: Testbed,
    runs: &Runs,
    mechanism: Mechanism,
    heading: &str,
    caption: &str,
) -> Part {
    let records = runs.of(&cell(bed, mechanism));
    let part = Part::new(heading);
    let drawn = records.iter().find_map(|record| {
        let trace = record.trace.as_ref()?;
        let (start, end) = typical_outage(trace)?;
        let to = (end + DRAWN_S.1).min(record.result.elapsed_s);
        Some(trace.diagram((start - DRAWN_S.0).max(0.0), to).draw())
    });
    let part = match drawn {
        None => part,
        Some(figure) => part.figure(
            figure,
            format!("{caption} Sequence numbers count from the lowest that the sender sends here."),
        ),
    };
    part.table(table(records))
}

/// The outage whose length is nearest to the mean: the same one at every level, as all have the
/// same seed.
fn typical_outage(trace: &FlowTrace) -> Option<(f64, f64)> {
    let over = trace
        .outages
        .iter()
        .filter_map(|&(start, end)| Some((start, end?)));
    let off = |(start, end): &(f64, f64)| (end - start - DOWN.as_secs_f64()).abs();
    over.min_by(|a, b| off(a).total_cmp(&off(b)))
}

fn table(records: &[Record]) -> Table {
    let mut table = Table::new([
        Column::quantity("run", "Run", Unit::Count),
        Column::quantity("outage_start_s", "Link down at", Unit::Seconds),
        Column::quantity("outage_length_s", "For", Unit::Seconds),
        Column::quantity("resume_s", "New bytes after", Unit::Seconds),
        Column::quantity("restart_s", "Sender restarts after", Unit::Seconds),
    ]);
    for record in records.iter().take(SHOWN) {
        for (outage, reconnection) in record.outages() {
            table.push([
                Cell::from(record.index),
                Cell::from(outage.start_s),
                Cell::from(outage.length_s),
                after(outage.resume_s),
                after(reconnection.restart_s),
            ]);
        }
    }
    if records.len() > SHOWN {
        let all = records.len();
        table.note(format!(
            "The first {SHOWN} of {all} runs; the claims are about all."
        ));
    }
    table.note(
        "Counted from link-up: until the receiving application has new bytes, be they re-sent by \
         Outlast, and until a segment that the sender itself sends gets through.",
    );
    table
}

fn after(seconds: Option<f64>) -> Cell {
    match seconds {
        None => Cell::from("not before the next outage").tone(Tone::Bad),
        Some(seconds) if seconds <= IMMEDIATELY_S => Cell::from(seconds).tone(Tone::Good),
        Some(seconds) => Cell::from(seconds).tone(Tone::Plain),
    }
}
