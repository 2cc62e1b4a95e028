//! Sections 3.3.2 and 3.3.3: segments that the retransmission trigger sends beyond those of standard TCP.
//!
//! The peer is told nothing, so that the mobile wakes it. In a download the mobile has nothing to send again, the
//! paper's worst case: all that it sends in the round trip after its reconnection, before an answer can come, is the
//! trigger's. In an upload the trigger sends again what was lost, as standard TCP does at its timeout: compared is
//! what both send in the round trip that begins with their first segment.

use super::claim;
use outlast_base::time::Duration;
use outlast_experiments::diagram::Segment;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::result::World;
use outlast_scenario::{Direction, Mechanism};

/// The trigger's own segments.
#[derive(Debug)]
pub struct ExtraSegments;

/// Lengths of the disconnection, in seconds.
const DOWN_S: [u32; 4] = [13, 26, 52, 104];
const MECHANISMS: [Mechanism; 2] = [Mechanism::None, Mechanism::RetransmissionTrigger];
/// There and back on the testbed's path.
const ROUND_TRIP: Duration = Duration::from_millis(100);

const DIRECTIONS: [Direction; 2] = [Direction::Download, Direction::Upload];

fn cell(direction: Direction, mechanism: Mechanism, down_s: u32) -> String {
    format!("{direction}, {mechanism}, disconnected {down_s} s")
}

fn text(direction: Direction, mechanism: Mechanism, down_s: u32) -> String {
    format!(
        "name = \"extra segments\"\n\
         [link]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\nqueue = 75\n\
         [link.outages]\nprocess = \"single\"\nstart = \"2 s\"\nlength = \"{down_s} s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\ndirection = \"{direction}\"\n\
         [stack]\nprofile = \"linux-2.4\"\nreceive_buffer = \"256 kB\"\n\
         [outlast]\nmobile = \"{mechanism}\"\n\
         [run]\nseed = 1\ndeadline = \"1 h\"\n"
    )
}

impl Figure for ExtraSegments {
    fn name(&self) -> &'static str {
        "section-3-3"
    }

    fn title(&self) -> &'static str {
        "Segments that the retransmission trigger sends beyond standard TCP's"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for direction in DIRECTIONS {
            for mechanism in MECHANISMS {
                for down_s in DOWN_S {
                    for index in 0..extent.choose(3, 10) {
                        let text = text(direction, mechanism, down_s);
                        let cell = cell(direction, mechanism, down_s);
                        let job = Job::from_toml(cell, text, index);
                        jobs.push(job.in_world(World::Sim).watching(Watch::Packets));
                    }
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Sections 3.3.2 and 3.3.3 of the paper: segments of the trigger";
        let mut table = Table::new([
            Column::text("direction", "Transfer"),
            Column::quantity("disconnected_s", "Disconnected", Unit::Seconds),
            Column::fixed("without", "Segments without", 1),
            Column::fixed("with", "Segments with", 1),
            Column::quantity("resume_without_s", "Resumes without after", Unit::Seconds),
            Column::quantity("resume_with_s", "Resumes with after", Unit::Seconds),
        ]);
        for direction in DIRECTIONS {
            for down_s in DOWN_S {
                let of = |mechanism, value: fn(&Record) -> Option<f64>| {
                    let records = runs.of(&cell(direction, mechanism, down_s)).iter();
                    Cell::from(Sample::of(records.filter_map(value)).map(|sample| sample.mean))
                };
                let [without, with] = MECHANISMS;
                let sent = sent_at_once(direction);
                table.push([
                    Cell::from(direction.to_string()),
                    Cell::from(f64::from(down_s)),
                    of(without, sent),
                    of(with, sent),
                    of(without, resume_s),
                    of(with, resume_s),
                ]);
            }
        }
        table.note(
            "What the mobile sends in a round trip: in a download after its reconnection, in an upload from its first \
             segment after that on. Nobody tells the peer.",
        );
        Part::new(title)
            .table(table.titled(title))
            .claims(claims(runs))
    }
}

fn resume_s(record: &Record) -> Option<f64> {
    record.result.outages.first()?.resume_s
}

/// The mobile's segments in a round trip after its reconnection.
fn sent_at_once(direction: Direction) -> fn(&Record) -> Option<f64> {
    match direction {
        Direction::Download => |record| {
            let trace = record.trace.as_ref()?;
            let (_, back) = *trace.outages.first()?;
            Some(count_from(&trace.acknowledgements, back?))
        },
        Direction::Upload => |record| {
            let trace = record.trace.as_ref()?;
            let (_, back) = *trace.outages.first()?;
            let since = |segment: &&Segment| back.is_some_and(|back| segment.time_s >= back);
            let first = trace.data.iter().find(since)?.time_s;
            Some(count_from(&trace.data, first))
        },
    }
}

/// Segments that were sent in the round trip from `from_s` on.
fn count_from(segments: &[Segment], from_s: f64) -> f64 {
    let until = from_s + ROUND_TRIP.as_secs_f64();
    let sent = segments.iter();
    sent.filter(|segment| (from_s..until).contains(&segment.time_s))
        .count() as f64
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let [without, with] = MECHANISMS;
    let cells = DIRECTIONS
        .into_iter()
        .flat_map(|direction| DOWN_S.map(|down_s| (direction, down_s)));
    let extra = cells.flat_map(|(direction, down_s)| {
        let with = runs.of(&cell(direction, with, down_s));
        let without = runs.of(&cell(direction, without, down_s));
        let sent = sent_at_once(direction);
        let extra = with.iter().zip(without);
        extra.filter_map(move |(with, without)| Some(sent(with)? - sent(without)?))
    });
    let most = Sample::of(extra).map(|all| Measured {
        value: all.greatest,
        standard_deviation: None,
        count: all.count,
    });
    vec![
        claim(
            "sections 3.3.2 and 3.3.3",
            "The trigger sends at most four segments more than standard TCP (most of all downloads and uploads).",
            Unit::Number,
            Published::AtMost(4.0),
            Tolerance::Exact,
        )
        .judge(most),
    ]
}
