//! Sections 3.3.2 and 3.3.3: segments that the retransmission trigger sends beyond those of standard TCP.
//!
//! The peer has the data to send and is told nothing, so that the mobile wakes it by duplicate acknowledgements.
//! The peer's answer takes a round trip: until then all that the mobile sends comes from the trigger.

use super::claim;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;
use outlast_scenario::result::World;

/// The trigger's own segments.
#[derive(Debug)]
pub struct ExtraSegments;

/// Lengths of the disconnection, in seconds.
const DOWN_S: [u32; 4] = [13, 26, 52, 104];
const MECHANISMS: [Mechanism; 2] = [Mechanism::None, Mechanism::RetransmissionTrigger];
/// There and back on the testbed's path.
const ROUND_TRIP: Duration = Duration::from_millis(100);

fn cell(mechanism: Mechanism, down_s: u32) -> String {
    format!("download, {mechanism}, disconnected {down_s} s")
}

fn text(mechanism: Mechanism, down_s: u32) -> String {
    format!(
        "name = \"extra segments\"\n\
         [link]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\nqueue = 75\n\
         [link.outages]\nprocess = \"single\"\nstart = \"2 s\"\nlength = \"{down_s} s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\n\
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
        for mechanism in MECHANISMS {
            for down_s in DOWN_S {
                for index in 0..extent.choose(3, 10) {
                    let text = text(mechanism, down_s);
                    let job = Job::from_toml(cell(mechanism, down_s), text, index);
                    jobs.push(job.in_world(World::Sim).watching(Watch::Packets));
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Sections 3.3.2 and 3.3.3 of the paper: segments of the trigger";
        let mut table = Table::new([
            Column::quantity("disconnected_s", "Disconnected", Unit::Seconds),
            Column::fixed("without", "Segments without", 1),
            Column::fixed("with", "Segments with", 1),
            Column::quantity("resume_without_s", "Resumes without after", Unit::Seconds),
            Column::quantity("resume_with_s", "Resumes with after", Unit::Seconds),
        ]);
        for down_s in DOWN_S {
            let of = |mechanism, value: fn(&Record) -> Option<f64>| {
                let records = runs.of(&cell(mechanism, down_s)).iter();
                Cell::from(Sample::of(records.filter_map(value)).map(|sample| sample.mean))
            };
            let [without, with] = MECHANISMS;
            table.push([
                Cell::from(f64::from(down_s)),
                of(without, sent_at_once),
                of(with, sent_at_once),
                of(without, resume_s),
                of(with, resume_s),
            ]);
        }
        table.note(
            "What the mobile, which receives, sends in the round trip after its reconnection; nobody tells the peer.",
        );
        Part::new(title)
            .table(table.titled(title))
            .claims(claims(runs))
    }
}

fn resume_s(record: &Record) -> Option<f64> {
    record.result.outages.first()?.resume_s
}

/// The mobile's segments in the round trip after its reconnection.
fn sent_at_once(record: &Record) -> Option<f64> {
    let trace = record.trace.as_ref()?;
    let (_, back) = *trace.outages.first()?;
    let (from, until) = (back?, back? + ROUND_TRIP.as_secs_f64());
    let sent = trace.acknowledgements.iter();
    let sent = sent.filter(|segment| (from..until).contains(&segment.time_s));
    Some(sent.count() as f64)
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let [without, with] = MECHANISMS;
    let extra = DOWN_S.into_iter().flat_map(|down_s| {
        let with = runs.of(&cell(with, down_s));
        let without = runs.of(&cell(without, down_s));
        let extra = with.iter().zip(without);
        extra.filter_map(|(with, without)| Some(sent_at_once(with)? - sent_at_once(without)?))
    });
    let most = Sample::of(extra).map(|all| Measured {
        value: all.greatest,
        standard_deviation: None,
        count: all.count,
    });
    vec![
        claim(
            "sections 3.3.2 and 3.3.3",
            "The trigger sends at most four segments more than standard TCP (most).",
            Unit::Number,
            Published::AtMost(4.0),
            Tolerance::Exact,
        )
        .judge(most),
    ]
}
