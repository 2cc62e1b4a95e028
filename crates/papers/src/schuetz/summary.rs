//! What the paper says of its figures together: abstract, sections 1, 2.3, 4.1, 4.1.3, 4.1.4 and 4.2.
//!
//! There are no runs of its own: those of figures 11 to 13 are held against each other.

use super::claim;
use super::figure_13;
use super::single::{self, connected, disconnected};
use super::surface::{BEST_S, INTERRUPTED, OVER, READ_OFF, extreme};
use super::testbed::{EXPECTED, PROTOTYPE, Readdressing, Variant};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, median, own_claim};
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::unit::Unit;

/// Claims on several figures together.
#[derive(Debug)]
pub struct Summary;

/// What is compared: a variant with an assumed time of readdressing.
type Series = (Variant, Readdressing);

const USER_TIMEOUT: Series = (Variant::UserTimeout, PROTOTYPE);
const TRIGGER: Series = (Variant::Trigger, PROTOTYPE);
const BETTER_HIP: Series = (Variant::Trigger, EXPECTED);

impl Figure for Summary {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn title(&self) -> &'static str {
        "What the paper says of its figures together"
    }

    /// None: all runs are those of figures 11 to 13.
    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        Vec::new()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        Part::new("The figures together")
            .paragraph(
                "Claims of abstract, introduction and summary, held against the runs of figures 11 to 13.",
            )
            .claims(claims(extent, runs))
    }
}

/// Pairs of connected and disconnected period of which every transfer is interrupted.
fn cells(extent: Extent) -> impl Iterator<Item = (u32, u32)> {
    let ups = connected(extent)
        .iter()
        .copied()
        .filter(|&up| up <= INTERRUPTED);
    ups.flat_map(move |up| disconnected(extent).iter().map(move |&down| (up, down)))
}

/// The median net transmission time of a cell.
fn net(runs: &Runs, (variant, readdressing): Series, (up, down): (u32, u32)) -> Option<f64> {
    let records = single::of(runs, variant, readdressing, up, down);
    single::quartiles(records, up, down).map(|[_, median, _]| median)
}

/// The median time of a transfer that is over before its disconnection.
fn undisturbed(extent: Extent, runs: &Runs) -> Option<f64> {
    let up = connected(extent).iter().rfind(|&&up| up >= OVER)?;
    net(runs, USER_TIMEOUT, (*up, 0))
}

fn claims(extent: Extent, runs: &Runs) -> Vec<Judged> {
    let best = undisturbed(extent, runs);
    let mut claims = vec![
        claim(
            "section 4.1",
            "Without a disconnection and without HIP 25 MB take 21 s.",
            Unit::Seconds,
            Published::About(BEST_S),
            READ_OFF,
        )
        .judge(best.map(Measured::single)),
        wasted(extent, runs, best),
    ];
    claims.extend(of_trigger(extent, runs, best));
    for (down, low, high) in [(37, 3.0, 8.0), (67, 15.0, 25.0)] {
        let next = claim(
            "section 4.2",
            format!(
                "After disconnections of {down} s standard TCP's next timeout comes {low} to {high} s later \
                 (median, with readdressing)."
            ),
            Unit::Seconds,
            Published::Between(low, high),
            READ_OFF,
        );
        claims.push(next.judge(median(figure_13::waits(runs, down))));
    }
    claims
}

/// Section 2.3: what a timeout of up to 120 s wastes.
fn wasted(extent: Extent, runs: &Runs, best: Option<f64>) -> Judged {
    let wasted: Vec<f64> = cells(extent)
        .filter_map(|cell| Some(net(runs, USER_TIMEOUT, cell)? - best?))
        .collect();
    claim(
        "section 2.3",
        "Waiting for the timeout wastes up to a minute of connected time where it grows to 60 s, and more with \
         others: Linux, whose timeout grows to 120 s (longest median).",
        Unit::Seconds,
        Published::AtLeast(60.0),
        Tolerance::Exact,
    )
    .judge(extreme(&wasted, f64::max))
}

/// What the trigger gains, and what readdressing takes of it.
fn of_trigger(extent: Extent, runs: &Runs, best: Option<f64>) -> Vec<Judged> {
    let factors: Vec<f64> = cells(extent)
        .filter_map(|cell| Some(net(runs, USER_TIMEOUT, cell)? / net(runs, TRIGGER, cell)?))
        .collect();
    let readdressing = cells(extent).filter_map(|cell| {
        let slow = net(runs, TRIGGER, cell)?;
        Some((slow - net(runs, BETTER_HIP, cell)?) / (slow - best?))
    });
    let efficiency: Vec<f64> = cells(extent)
        .filter_map(|cell| Some(BEST_S / net(runs, TRIGGER, cell)?))
        .collect();
    let as_measured = Claim {
        departure: Some(
            "abstract and section 1 present as measured what section 4.1.4 expects of better \
             implementations of HIP; measured there are 72 to 86 %."
                .into(),
        ),
        ..claim(
            "abstract, section 1",
            "Experiments with the prototype come to within 86 to 96 % of constant connectivity (worst cell).",
            Unit::Share,
            Published::Between(0.86, 0.96),
            Tolerance::Exact,
        )
    };
    vec![
        as_measured.judge(extreme(&efficiency, f64::min)),
        own_claim(
            "summary",
            "Readdressing is most of what the trigger still needs beyond an undisturbed transfer, which is our \
             reading of \"a large fraction\" in section 4.1.3 (mean share over the cells).",
            Unit::Share,
            Published::AtLeast(0.5),
        )
        .judge(mean(readdressing)),
        Claim {
            departure: Some(
                "Linux waits for up to 120 s, so that the factor may reach (22 + 120) / 25 = 5.7, where a disconnection ends just \
                 after a retransmission. The round trip decides which cells do, and with it the queue: in one transfer of each of 44 \
                 cells the greatest factor is 5.52, with a receive buffer of 160 kB 5.23, and with one of 128 kB 5.54."
                    .into(),
            ),
            ..claim(
                "section 4.1.4",
                "The trigger reduces median net transmission times up to a factor of five (greatest factor).",
                Unit::Factor,
                Published::About(5.0),
                READ_OFF,
            )
        }
        .judge(extreme(&factors, f64::max)),
    ]
}
