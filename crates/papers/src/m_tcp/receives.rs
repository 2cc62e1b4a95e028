//! Figure 13: how often the mobile receives each byte.

use super::claim;
use super::testbed::{DISCONNECTIONS, Detection, PROCESSES, Sender, Transfer, trials};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::present::mean;
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 13.
#[derive(Debug)]
pub struct Receives;

const KILOBYTES: u32 = 500;

fn transfers(gateway: Mechanism) -> impl Iterator<Item = Transfer> {
    let of = move |process| {
        DISCONNECTIONS.map(move |down_ms| Transfer {
            sender: Sender::Near,
            kilobytes: KILOBYTES,
            process,
            up_ms: 5_000,
            down_ms,
            gateway,
            compressed: None,
            detection: Detection::Told,
        })
    };
    PROCESSES.into_iter().flat_map(of)
}

/// Among the runs it has another name than the same transfer of figures 7 to 9, of which no packet is kept.
fn cell(transfer: &Transfer) -> String {
    format!("{}, receives", transfer.cell())
}

/// Payload bytes that came to the mobile for each byte of the file.
fn receives_per_byte(run: &Record) -> Option<f64> {
    let trace = run.trace.as_ref().filter(|trace| trace.omitted == 0)?;
    let arrived = trace
        .data
        .iter()
        .filter(|segment| segment.arrival_s.is_some());
    let bytes: u64 = arrived.map(|segment| u64::from(segment.payload_len)).sum();
    Some(bytes as f64 / (f64::from(KILOBYTES) * 1_000.0))
}

fn sample(runs: &Runs, transfer: &Transfer) -> Option<Sample> {
    let completed = runs.of(&cell(transfer)).iter();
    let completed = completed.filter(|run| run.succeeded());
    Sample::of(completed.filter_map(receives_per_byte))
}

impl Figure for Receives {
    fn name(&self) -> &'static str {
        "figure-13"
    }

    fn title(&self) -> &'static str {
        "Figure 13: receives per byte at the mobile, from five hops away"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let runs = |transfer: Transfer| {
            let jobs = transfer.jobs(trials(extent)).into_iter();
            jobs.map(move |job| Job {
                cell: cell(&transfer),
                ..job.watching(Watch::Packets)
            })
        };
        [Mechanism::None, Mechanism::MTcp]
            .into_iter()
            .flat_map(transfers)
            .flat_map(runs)
            .collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut table = Table::new([
            Column::text("process", "Distribution"),
            Column::quantity("down_s", "Disconnection", Unit::Seconds),
            Column::quantity("m_tcp", "M-TCP", Unit::Factor),
            Column::quantity("tcp", "TCP", Unit::Factor),
        ])
        .titled(self.title());
        let mut pairs = Vec::new();
        for (ours, plain) in transfers(Mechanism::MTcp).zip(transfers(Mechanism::None)) {
            let means = [ours, plain].map(|one| sample(runs, &one).map(|sample| sample.mean));
            pairs.extend(means[0].zip(means[1]));
            table.push([
                Cell::from(ours.process),
                Cell::from(f64::from(ours.down_ms) / 1_000.0),
                Cell::from(means[0]),
                Cell::from(means[1]),
            ]);
        }
        table.note(format!(
            "Payload bytes that came to the mobile, for each byte of {KILOBYTES} kB. The paper does not tell the \
             file's size."
        ));
        let fewer = pairs.iter().filter(|(ours, plain)| ours < plain).count();
        let all = pairs.len();
        let share = (all > 0).then(|| Measured {
            value: fewer as f64 / all as f64,
            standard_deviation: None,
            count: all,
        });
        let most = pairs.iter().map(|(ours, _)| *ours).reduce(f64::max);
        let unaided = mean(pairs.iter().map(|(_, plain)| *plain));
        Part::new(self.title()).table(table).claims(vec![
            claim(
                "figure 13",
                "M-TCP generally sends fewer duplicates than TCP (share of cells).",
                Unit::Share,
                Published::AtLeast(1.0),
                // "Generally".
                Tolerance::Absolute(0.25),
            )
            .judge(share),
            claim(
                "figure 13",
                "Receives per byte with M-TCP, as in 1.02 of M-TCP against 1.06 of TCP (the most).",
                Unit::Factor,
                Published::AtMost(1.02),
                // A quarter of the difference that the paper shows.
                Tolerance::Absolute(0.01),
            )
            .judge(most.map(|value| Measured {
                value,
                standard_deviation: None,
                count: all,
            })),
            claim(
                "figure 13",
                "Receives per byte with TCP, as in 1.06 of TCP against 1.02 of M-TCP (mean of cells).",
                Unit::Factor,
                Published::About(1.06),
                // Half of the difference that the paper shows.
                Tolerance::Absolute(0.02),
            )
            .judge(unaided),
        ])
    }
}
