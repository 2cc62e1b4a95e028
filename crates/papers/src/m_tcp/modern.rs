//! What the published scheme does to senders of today, beside `hold`; serial timeouts of a sender of 1997
//! (figure 1).

use super::claim;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;
use outlast_scenario::result::World;
use std::ops::RangeInclusive;

/// The sender of figure 1.
const THEN: (&str, &str) = STACKS[2];

/// Mechanisms for CUBIC, BBR and NetBSD of 1997.
#[derive(Debug)]
pub struct Modern;

const STACKS: [(&str, &str); 3] = [
    ("Linux 6, CUBIC", "congestion = \"cubic\""),
    ("Linux 6, BBR", "congestion = \"bbr\""),
    ("NetBSD 1997", "profile = \"netbsd-1997\""),
];
const OUTAGES: [u32; 3] = [1, 10, 60];
/// Outages of the sender of figure 1, in seconds: how long it is silent afterwards depends on where in its last interval
/// between retransmissions the outage ends, and that interval is 64 s at most.
const SERIAL: RangeInclusive<u32> = 1..=64;
const MECHANISMS: [Mechanism; 5] = [
    Mechanism::None,
    Mechanism::MTcp,
    Mechanism::MTcpAdaptive,
    Mechanism::Hold,
    Mechanism::AcknowledgeAhead,
];

fn cell(stack: &str, outage: u32, gateway: Mechanism) -> String {
    format!("{stack}, {outage} s, {gateway}")
}

fn text(stack: &str, outage: u32, gateway: Mechanism) -> String {
    format!(
        "name = \"one outage\"\n[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 150\n\
         [link.outages]\nprocess = \"single\"\nstart = \"5 s\"\nlength = \"{outage} s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"8 MB\"\n[stack]\n{stack}\n\
         [outlast]\ngateway = \"{gateway}\"\n[run]\nseed = 1\ndeadline = \"300 s\"\n"
    )
}

impl Figure for Modern {
    fn name(&self) -> &'static str {
        "senders-of-today"
    }

    fn title(&self) -> &'static str {
        "What M-TCP does to senders of today, beside `hold`"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (name, stack) in STACKS {
            for outage in OUTAGES {
                for gateway in MECHANISMS {
                    let text = text(stack, outage, gateway);
                    for index in 0..extent.choose(3, 10) {
                        let job = Job::from_toml(cell(name, outage, gateway), text.clone(), index);
                        jobs.push(job.in_world(World::Sim));
                    }
                }
            }
        }
        let (name, stack) = THEN;
        for outage in SERIAL.filter(|outage| !OUTAGES.contains(outage)) {
            let text = text(stack, outage, Mechanism::None);
            for index in 0..extent.choose(3, 10) {
                let cell = cell(name, outage, Mechanism::None);
                let job = Job::from_toml(cell, text.clone(), index);
                jobs.push(job.in_world(World::Sim));
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut table = Table::new([
            Column::text("sender", "Sender"),
            Column::quantity("outage_s", "Outage", Unit::Seconds),
            Column::text("mechanism", "Mechanism"),
            Column::text("acknowledges", "Acknowledgements"),
            Column::text("completed", "Completed"),
            Column::quantity("time_s", "Transfer", Unit::Seconds),
            Column::quantity("ideal_s", "Ideal", Unit::Seconds),
            Column::quantity("resume_s", "Resume", Unit::Seconds),
            Column::fixed("timeouts", "Timeouts", 1),
        ]);
        for (name, _) in STACKS {
            for outage in OUTAGES {
                for gateway in MECHANISMS {
                    table.push(row(runs, name, outage, gateway));
                }
            }
        }
        table.note(
            "8 MB over 4 Mbit/s, 20 ms each way, room for 150 packets, one outage after 5 s; given up \
             after 300 s. NetBSD's buffers of 16 KB do not fill the link.",
        );
        let title = "One outage, by sender and mechanism";
        Part::new("Senders of today")
            .paragraph(
                "Linux does not stop its retransmission timer when a window closes over data in flight. \
                 Under the published scheme it is then told no more than it has sent again since the \
                 window is open, which it has no reason to do: a segment for each timeout.",
            )
            .table(table.titled(title))
            .claims(claims(runs))
    }
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let (name, _) = THEN;
    let silences = SERIAL.flat_map(|outage| runs.of(&cell(name, outage, Mechanism::None)));
    let silences = silences.map(|run| {
        let outage = run.result.outages.first();
        outage
            .and_then(|outage| outage.resume_s)
            .unwrap_or(f64::INFINITY)
    });
    let silences: Vec<f64> = silences.collect();
    let longest = silences.iter().copied().reduce(f64::max);
    let longest = longest.map(|value| Measured {
        value,
        standard_deviation: None,
        count: silences.len(),
    });
    vec![
        claim(
            "section 1.1, figure 1",
            "After serial timeouts no data comes for as long as 1 minute once the mobile is back: NetBSD 1997, \
             outages of 1 to 64 s in steps of 1 s (longest).",
            Unit::Seconds,
            Published::About(60.0),
            // The paper's minute is the cap of 64 s.
            Tolerance::Relative(0.1),
        )
        .judge(longest),
    ]
}

fn row(runs: &Runs, name: &str, outage: u32, gateway: Mechanism) -> Vec<Cell> {
    let records = runs.of(&cell(name, outage, gateway));
    let done = || records.iter().filter(|run| run.succeeded());
    let middle = |values: Vec<f64>| Sample::of(values).map(|sample| sample.mean);
    let ahead = gateway
        .on_path()
        .is_some_and(|kind| kind.info().acknowledges_ahead);
    vec![
        Cell::from(name),
        Cell::from(f64::from(outage)),
        Cell::from(gateway.name()),
        Cell::from(if ahead { "ahead" } else { "end to end" }),
        Cell::from(format!("{} of {}", done().count(), records.len())),
        Cell::from(middle(done().map(|run| run.result.elapsed_s).collect())),
        Cell::from(middle(
            records
                .iter()
                .filter_map(|run| run.result.ideal_s)
                .collect(),
        )),
        Cell::from(middle(
            records
                .iter()
                .filter_map(|run| run.result.outages.first()?.resume_s)
                .collect(),
        )),
        Cell::from(middle(
            records
                .iter()
                .filter_map(|run| Some(run.result.timeouts? as f64))
                .collect(),
        )),
    ]
}
