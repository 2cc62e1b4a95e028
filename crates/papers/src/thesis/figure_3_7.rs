//! Figure 3.7: round trips that congestion control adds, by the receive buffer; the model of section
//! 3.3.2 and a simulated sender.

use super::added_round_trips::{After, SEGMENT_BYTES, added, stated, tolerance_of_simulation};
use super::beside::{Beside, arithmetic, beside, beside_reference};
use super::claim;
use super::recovery::{self, Recovery};
use super::table_3_6::paced;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Published, Tolerance};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
use outlast_report::unit::Unit;

/// Figure 3.7.
#[derive(Debug)]
pub struct Figure37;

/// Receive buffers of the simulated sender, in KB.
const fn buffers(extent: Extent) -> &'static [u32] {
    match extent {
        Extent::Quick => &[8, 16, 32, 64, 128, 256],
        Extent::Full => &[
            4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256,
        ],
    }
}

/// The window that is lost: slow start has long filled the largest buffer.
const LOST: u32 = 20;
/// Rate of the path: a burst of the largest buffer takes a small part of a round trip.
const RATE_MBIT_PER_S: u32 = 100;

fn cell(kilobytes: u32) -> String {
    format!("window lost, buffer of {kilobytes} KB")
}

impl Figure for Figure37 {
    fn name(&self) -> &'static str {
        "figure-3-7"
    }

    fn title(&self) -> &'static str {
        "Round trips that congestion control adds, by the receive buffer"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let job = |&kilobytes: &u32| {
            let segment = SEGMENT_BYTES;
            recovery::job(cell(kilobytes), LOST, kilobytes, segment, RATE_MBIT_PER_S)
        };
        buffers(extent).iter().map(job).collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let labels = || {
            vec![
                Column::fixed("buffer_kb", "Buffer, KB", 0),
                Column::text("sender", "Sender"),
            ]
        };
        let part = Part::new("Figure 3.7: what congestion control adds").paragraph(
                "The model counts segments of 1 KB and whole round trips. As printed, its sum over \
                 slow start goes one power of two too far; without that power it gives every number \
                 of the text and of table 4.6.",
            );
        let part = arithmetic(
            part,
            "What is stated of the model",
            labels(),
            modelled(runs),
        );
        let title = "The model's numbers, and a sender in its place";
        let part = beside_reference(part, title, "Model", labels(), simulated(extent, runs));
        let title = "The text's numbers, and a sender in the model's place";
        beside(part, title, labels(), in_the_text(runs)).figure(
            plot(extent, runs).draw(),
            "Round trips that a connection lasts longer after a needless timeout. Compare \
                 figure 3.7.",
        )
    }
}

/// What is stated of the model. It is ours as well, but counts as measured only beside a
/// simulation.
fn modelled(runs: &Runs) -> Vec<Beside> {
    let has_runs = runs.all().next().is_some();
    stated()
        .into_iter()
        .map(|(kilobytes, after, claim)| Beside {
            labels: vec![Cell::from(kilobytes), Cell::from(name(after))],
            claim,
            ours: Sample::of([added(after, kilobytes)]).filter(|_| has_runs),
        })
        .collect()
}

/// Our sender beside the model. Only the numbers of table 4.6 are published.
fn simulated(extent: Extent, runs: &Runs) -> Vec<Beside> {
    let row = |&kilobytes: &u32| {
        // To the decimals that the thesis prints of it.
        let modelled = (added(After::CongestionControl, kilobytes) * 100.0).round() / 100.0;
        let claim = claim(
            "figure 3.7",
            format!("Buffer of {kilobytes} KB: round trips that Linux 2.2 adds, beside the model."),
            Unit::Number,
            Published::About(modelled),
            tolerance_of_simulation(modelled),
        );
        Beside {
            labels: vec![Cell::from(kilobytes), Cell::from("Linux 2.2")],
            claim: paced(claim),
            ours: of_sender(runs, kilobytes).and_then(|ours| Sample::of([ours])),
        }
    };
    buffers(extent).iter().map(row).collect()
}

/// Our sender beside what the text says of congestion control.
fn in_the_text(runs: &Runs) -> Vec<Beside> {
    let row = |(kilobytes, least): (u32, f64)| {
        let claim = claim(
            "section 3.3.2",
            format!("Buffer of {kilobytes} KB: over {least} round trips are added, by Linux 2.2."),
            Unit::Number,
            Published::AtLeast(least),
            Tolerance::Exact,
        );
        Beside {
            labels: vec![Cell::from(kilobytes), Cell::from("Linux 2.2")],
            claim: paced(claim),
            ours: of_sender(runs, kilobytes).and_then(|ours| Sample::of([ours])),
        }
    };
    [(64, 20.0), (256, 70.0)].map(row).to_vec()
}

/// Round trips that our sender adds.
pub(super) fn of_sender(runs: &Runs, kilobytes: u32) -> Option<f64> {
    let cell = cell(kilobytes);
    let recovery = Recovery::of(runs.of(&cell).first()?)?;
    let full = recovery.at_window(kilobytes)?.time_s - recovery.timeout_s();
    let round_trips = (full / recovery::ROUND_TRIP.as_secs_f64()).ceil() as u32 + 1;
    Some(recovery.added(round_trips, kilobytes, SEGMENT_BYTES))
}

const fn name(after: After) -> &'static str {
    match after {
        After::CongestionControl => "slow start and congestion avoidance",
        After::SlowStart => "slow start alone",
        After::Nothing => "no congestion control",
    }
}

fn plot(extent: Extent, runs: &Runs) -> Curves {
    let bytes = |kilobytes: u32| f64::from(kilobytes * SEGMENT_BYTES);
    let model = |after| Series {
        name: format!("model: {}", name(after)),
        is_control: false,
        points: (1..=64)
            .map(|step| 4 * step)
            .map(|kilobytes| Point::new(bytes(kilobytes), added(after, kilobytes)))
            .collect(),
    };
    let sender = buffers(extent)
        .iter()
        .filter_map(|&kilobytes| Some(Point::new(bytes(kilobytes), of_sender(runs, kilobytes)?)));
    Curves {
        x: Axis::new("Receive buffer", Unit::Bytes),
        y: Axis::new("Added round trips", Unit::Number),
        series: vec![
            model(After::CongestionControl),
            model(After::SlowStart),
            model(After::Nothing),
            Series {
                name: "simulated: Linux 2.2".to_owned(),
                is_control: true,
                points: sender.collect(),
            },
        ],
        optimum: None,
    }
}
