//! Section III-E: pauses by rendezvous delay, beyond the paper's two.
//!
//! The paper says that pauses grow exponentially with the rendezvous delay, as TCP doubles its timeout.
//! Exponential growth squares the ratio of two pauses where the delays double once more; growth in proportion
//! leaves that ratio as it is. So the logarithms of two successive ratios are compared.

use super::claim;
use super::testbed::{self, Crossings, Motion, REGISTRATION};
use super::transfer::pauses;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::own_claim;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;
use std::ops::RangeInclusive;

/// Pauses by rendezvous delay.
#[derive(Debug)]
pub struct ByRendezvous;

/// Rendezvous delays in seconds.
const DELAYS_S: RangeInclusive<u64> = 0..=32;
/// The last octaves of delays in seconds. Within an octave the phase of the doubled timeouts is spread.
const OCTAVES_S: [RangeInclusive<u64>; 3] = [5..=8, 9..=16, 17..=32];
/// Allowance beyond twice the interruption: a first timeout of 1 s and one beat of the timer.
const FIRST_TIMEOUT_S: f64 = 1.5;

/// Reason for which pauses do not grow exponentially.
const IN_PROPORTION: &str = "the timeouts grow exponentially with their number, and not the pauses with the delay: a pause ends with the \
    first retransmission after the hand-off, which comes after at most about twice the interruption, as the sum of the doubled timeouts \
    until then is about the last of them. The claim below holds that bound.";

impl Figure for ByRendezvous {
    fn name(&self) -> &'static str {
        "section-3-e"
    }

    fn title(&self) -> &'static str {
        "Pauses by rendezvous delay, 0 to 32 s"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let of_delay = |seconds| {
            let motion = Motion::Apart {
                rendezvous: Duration::from_secs(seconds),
            };
            let job = move |index| {
                testbed::job(
                    cell(seconds),
                    motion,
                    Crossings::Once,
                    Direction::Upload,
                    index,
                )
            };
            (0..extent.choose(10, 20)).map(job)
        };
        DELAYS_S.flat_map(of_delay).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Section III-E of the paper: pauses by rendezvous delay";
        Part::new(title)
            .table(table(runs).titled("Pause after a crossing, by rendezvous delay"))
            .claims(claims(runs))
    }
}

fn cell(seconds: u64) -> String {
    format!("pause by rendezvous delay, {seconds} s")
}

fn pause(runs: &Runs, seconds: u64) -> Option<Sample> {
    Sample::of(pauses(runs.of(&cell(seconds))).flatten())
}

/// From the crossing until the hand-off is complete, in seconds.
fn interruption_s(seconds: u64) -> f64 {
    (Duration::from_secs(seconds) + REGISTRATION).as_secs_f64()
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::quantity("rendezvous_s", "Rendezvous delay", Unit::Seconds),
        Column::quantity("mean_s", "Mean", Unit::Seconds),
        Column::quantity("least_s", "Shortest", Unit::Seconds),
        Column::quantity("greatest_s", "Longest", Unit::Seconds),
        Column::quantity("share", "Mean over interruption", Unit::Factor),
    ]);
    for seconds in [0, 1, 2, 4, 8, 16, 32] {
        let ours = pause(runs, seconds);
        let of = |value: fn(&Sample) -> f64| Cell::from(ours.as_ref().map(value));
        table.push([
            Cell::from(interruption_s(seconds) - REGISTRATION.as_secs_f64()),
            of(|ours| ours.mean),
            of(|ours| ours.least),
            of(|ours| ours.greatest),
            Cell::from(ours.map(|ours| ours.mean / interruption_s(seconds))),
        ]);
    }
    table.note(format!(
        "Delays of every second up to {} s were tried; their pauses are judged.",
        DELAYS_S.end()
    ));
    table
}

/// The logarithm of the last octave's growth over that of the one before.
fn growth(runs: &Runs) -> Option<Measured> {
    let mean = |octave: RangeInclusive<u64>| {
        let means = octave.map(|seconds| Some(pause(runs, seconds)?.mean));
        let means = means.collect::<Option<Vec<f64>>>()?;
        Some(means.iter().sum::<f64>() / means.len() as f64)
    };
    let [before, middle, last] = OCTAVES_S.map(mean);
    let (before, middle, last) = (before?, middle?, last?);
    Some(Measured {
        value: (last / middle).ln() / (middle / before).ln(),
        standard_deviation: None,
        count: OCTAVES_S.into_iter().flatten().count(),
    })
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let factors = DELAYS_S.filter_map(|seconds| {
        let longest = pause(runs, seconds)?.greatest;
        Some((longest - FIRST_TIMEOUT_S) / interruption_s(seconds))
    });
    let greatest = Sample::of(factors).map(|all| Measured {
        value: all.greatest,
        standard_deviation: None,
        count: all.count,
    });
    vec![
        Claim {
            departure: Some(IN_PROPORTION.into()),
            ..claim(
                "section III.E",
                "Pauses grow exponentially with the rendezvous delay (logarithm of the growth from 9 to 16 s to 17 to \
                 32 s, over that from 5 to 8 s to 9 to 16 s: exponentially 2 or more, in proportion 1).",
                Unit::Factor,
                Published::AtLeast(2.0),
                // As far as the middle between the two kinds of growth.
                Tolerance::Absolute(0.5),
            )
        }
        .judge(growth(runs)),
        own_claim(
            "section-3-e",
            "A pause takes at most twice the interruption, a first timeout of 1 s and a beat of 0.5 s (greatest \
             pause less the latter two, over the interruption).",
            Unit::Factor,
            Published::AtMost(2.0),
        )
        .judge(greatest),
    ]
}
