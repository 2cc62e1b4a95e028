//! Figure 2: throughput of a transfer in the four scenarios of motion.

use super::testbed::{A_SECOND, AT_ONCE, Motion};
use super::{claim, transfer};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Strip, StripRow};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;

/// Figure 2.
#[derive(Debug)]
pub struct Figure02;

const ZERO: Motion = Motion::Apart {
    rendezvous: AT_ONCE,
};
const ONE: Motion = Motion::Apart {
    rendezvous: A_SECOND,
};

/// Half a beat of the timer at each of three hand-offs in 24 s.
const HALF_BEATS: Tolerance = Tolerance::Absolute(0.03);

impl Figure for Figure02 {
    fn name(&self) -> &'static str {
        "figure-2"
    }

    fn title(&self) -> &'static str {
        "Loss of throughput due to motion"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        transfer::jobs(extent, &Motion::ALL)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let lost = loss(runs, ONE);
        Part::new("Figure 2 of the paper: loss of throughput")
            .table(table(runs))
            .figure(
                strip(runs).draw(),
                "Throughput of each transfer, beside the paper's. Compare figure 2 of the paper.",
            )
            .claims(claims(runs))
            .highlight(Highlight {
                label: "Lost to motion".to_owned(),
                value: lost.map_or("–".to_owned(), |lost| Unit::Share.show(lost.value)),
                note: "of the throughput, with 1 s rendezvous delay (31 % published)".to_owned(),
                tone: Tone::Plain,
            })
    }
}

/// Throughput in the text: sections III.A, III.D and IV.E.
const fn published(motion: Motion) -> f64 {
    match motion {
        Motion::None => 1.6e6,
        Motion::Overlapping => 0.94 * 1.6e6,
        Motion::Apart { rendezvous } if rendezvous.is_zero() => 1.4e6,
        Motion::Apart { .. } => 1.1e6,
    }
}

/// The share of the throughput without motion that motion costs.
fn loss(runs: &Runs, motion: Motion) -> Option<Measured> {
    let base = transfer::throughput(runs, Motion::None)?.mean;
    let moving = transfer::throughput(runs, motion)?;
    Some(Measured {
        value: 1.0 - moving.mean / base,
        standard_deviation: moving.standard_deviation.map(|by| by / base),
        count: moving.count,
    })
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("scenario", "Scenario"),
        Column::quantity("published_bit_per_s", "Published", Unit::BitsPerSecond),
        Column::quantity("throughput_bit_per_s", "Ours", Unit::BitsPerSecond),
        Column::quantity("difference", "Difference", Unit::Share),
        Column::quantity("loss", "Lost to motion", Unit::Share),
        Column::quantity("lifetime_s", "Transfer takes", Unit::Seconds),
        Column::fixed("hand_offs", "Hand-offs in it", 1),
    ]);
    for motion in Motion::ALL {
        let ours = transfer::throughput(runs, motion).map(|sample| sample.mean);
        let published = published(motion);
        table.push([
            Cell::from(motion.name()),
            Cell::from(published),
            Cell::from(ours),
            Cell::from(ours.map(|ours| ours / published - 1.0)),
            Cell::from(loss(runs, motion).map(|loss| loss.value)),
            Cell::from(transfer::lifetime(runs, motion).map(|time| time.value)),
            Cell::from(transfer::hand_offs(runs, motion).map(|count| count.value)),
        ]);
    }
    table.note(
        "The rate of the link is set to give the first published value, which is therefore not judged. The second is the paper's \
         \"only slightly, by 6 %\".",
    );
    table.titled("Throughput of a transfer of 4 MiB from the mobile")
}

fn strip(runs: &Runs) -> Strip {
    let rate = |record: &outlast_experiments::record::Record| {
        let bytes = record.result.settings.bytes?;
        record
            .succeeded()
            .then(|| bytes as f64 * 8.0 / record.result.elapsed_s)
    };
    let row = |motion: Motion| StripRow {
        group: None,
        label: motion.name(),
        samples: vec![
            vec![Some(published(motion))],
            transfer::of(runs, motion).iter().map(rate).collect(),
        ],
    };
    Strip {
        axis: Axis::new("Throughput", Unit::BitsPerSecond).range(0.8e6, 1.8e6),
        variants: vec![("published".to_owned(), true), ("ours".to_owned(), false)],
        rows: Motion::ALL.map(row).to_vec(),
        limit: None,
    }
}

/// What a hand-off costs in the paper and not here.
pub(super) const fn unmodelled(motion: Motion) -> &'static str {
    match motion {
        Motion::Overlapping => {
            "encapsulation and forwarding by Mobile IP, which are all that such a hand-off costs in \
             the paper, are not modelled."
        }
        _ => {
            "what Mobile IP costs besides the interruption is not modelled, and the connection is back \
             at its full rate half a second after it resumes, where the paper has about one; the rest \
             is how the beats of the timers fell."
        }
    }
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let mut claims = Vec::new();
    let losses = [
        (
            Motion::Overlapping,
            0.06,
            "Between overlapping cells 6 % of the throughput are lost.",
        ),
        (
            ZERO,
            0.12,
            "Between cells apart, with 0 s rendezvous delay, 12 % are lost.",
        ),
        (ONE, 0.31, "With 1 s rendezvous delay 31 % are lost."),
    ];
    for (motion, published, statement) in losses {
        let lost = claim(
            "section III.A, figure 2",
            statement,
            Unit::Share,
            Published::About(published),
            HALF_BEATS,
        );
        let lost = Claim {
            departure: Some(unmodelled(motion).into()),
            ..lost
        };
        claims.push(lost.judge(loss(runs, motion)));
    }
    for (motion, seconds) in [(ZERO, 24.0), (ONE, 29.0)] {
        let name = motion.name();
        let lifetime = claim(
            "section III.A",
            format!("With {name} the transfer takes roughly {seconds} s."),
            Unit::Seconds,
            Published::About(seconds),
            Tolerance::Relative(0.1),
        );
        claims.push(lifetime.judge(transfer::lifetime(runs, motion)));
        let hand_offs = claim(
            "section III.A",
            format!("With {name} 3 hand-offs fall into it."),
            Unit::Number,
            Published::About(3.0),
            Tolerance::Absolute(0.5),
        );
        claims.push(hand_offs.judge(transfer::hand_offs(runs, motion)));
    }
    claims
}
