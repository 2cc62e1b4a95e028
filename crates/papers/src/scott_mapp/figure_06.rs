//! Figure 6: the mean duration of the transfers that succeed, against availability.

use super::claim;
use super::sweep::{self, SERIES};
use super::testbed::Testbed;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, title};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Point};
use outlast_report::table::{Cell, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 6.
#[derive(Debug)]
pub struct Figure06 {
    /// Where it is measured.
    pub bed: Testbed,
}

/// What counts as near the optimum.
const NEAR: Tolerance = Tolerance::Relative(0.1);

impl Figure for Figure06 {
    fn name(&self) -> &'static str {
        "figure-6"
    }

    fn title(&self) -> &'static str {
        "Mean duration of the transfers that succeed, against availability"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        sweep::jobs(self.bed, extent, &SERIES)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let bed = self.bed;
        let durations = sweep::table(bed, extent, runs, Unit::Seconds, "_s", |trials| {
            Cell::from(sweep::durations(trials).map(|sample| sample.mean))
        });
        let mut factors = sweep::table(bed, extent, runs, Unit::Factor, "_times_ideal", |trials| {
            let factor = mean(trials.iter().filter_map(Record::times_ideal));
            let near = NEAR_OPTIMUM;
            factor.map_or(Cell::from("failed").tone(Tone::Bad), |factor| {
                Cell::from(factor.value).tone(if factor.value <= near {
                    Tone::Good
                } else {
                    Tone::Plain
                })
            })
        });
        factors.note(
            "Each trial is held against the least time that it needs over its own outages. Only \
             transfers that completed count, so that a small number among failures says little.",
        );
        let duration = |x, trials: &[Record]| {
            sweep::durations(trials).map(|sample| Point::new(x, sample.mean))
        };
        let y = bed.durations(Axis::new("Mean duration", Unit::Seconds));
        let curves = sweep::curves(bed, extent, runs, &SERIES, |_| true, y, duration);
        let held = factor(bed, runs, Mechanism::Hold, [10]);
        Part::new("Figure 6 of the paper: mean duration")
            .table(durations.titled("Mean duration of the transfers that completed"))
            .table(factors.titled("The same, as a multiple of the optimum"))
            .figure(
                curves.draw(),
                "Mean duration of the transfers that completed. Compare figure 6 of the paper.",
            )
            .claims(claims(bed, extent, runs))
            .highlight(Highlight {
                label: "hold at 10 %".to_owned(),
                value: held.map_or("–".to_owned(), |held| Unit::Factor.show(held.value)),
                note: "of the optimal duration".to_owned(),
                tone: match held {
                    Some(held) if held.value <= NEAR_OPTIMUM => Tone::Good,
                    Some(_) => Tone::Bad,
                    None => Tone::Plain,
                },
            })
    }
}

/// The greatest multiple of the optimum that counts as near it, see [`NEAR`].
const NEAR_OPTIMUM: f64 = 1.1;

/// How many times the optimum the trials that succeeded took.
pub(super) fn factor(
    bed: Testbed,
    runs: &Runs,
    mechanism: Mechanism,
    percents: impl IntoIterator<Item = u32>,
) -> Option<Measured> {
    mean(sweep::over(bed, runs, mechanism, percents).filter_map(Record::times_ideal))
}

pub(super) fn stays_near(level: Mechanism) -> Claim {
    claim(
        "figure 6",
        format!(
            "Level {}: stays close to the optimum at all availabilities.",
            title(level)
        ),
        Unit::Factor,
        Published::About(1.0),
        NEAR,
    )
}

fn claims(bed: Testbed, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let percents = || sweep::availabilities(extent).iter().copied();
    let mut claims = Vec::new();
    for level in [Mechanism::SmartLink3, Mechanism::SmartLink4] {
        let at_ten = claim(
            "section 5.3, figure 6",
            format!(
                "Level {}: near the optimum at 10 % availability.",
                title(level)
            ),
            Unit::Factor,
            Published::About(1.0),
            NEAR,
        );
        let at_ten = bed.departing(
            at_ten,
            "one packet restarts the flow, but a modern sender recovers the rest of the lost \
             window only as its ACKs come, and may wait for another timeout; half a second of \
             connected time leaves little for that.",
        );
        claims.push(at_ten.judge(factor(bed, runs, level, [10])));
        claims.push(stays_near(level).judge(factor(bed, runs, level, percents())));
    }
    let no_better = claim(
        "section 5.3",
        "Re-sending five times is no faster than re-sending once (duration of level 4 to level 3).",
        Unit::Factor,
        Published::AtLeast(1.0),
        Tolerance::Relative(0.05),
    );
    let four = factor(bed, runs, Mechanism::SmartLink4, percents());
    let three = factor(bed, runs, Mechanism::SmartLink3, percents());
    let ratio = four.zip(three).map(|(four, three)| Measured {
        value: four.value / three.value,
        standard_deviation: None,
        count: four.count + three.count,
    });
    claims.push(no_better.judge(ratio));
    claims
}
