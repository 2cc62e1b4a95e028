//! Figure 5: the share of transfers that succeed, against availability.

use super::claim;
use super::sweep::{self, SERIES};
use super::testbed::Testbed;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{share, title};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Point};
use outlast_report::statistics::wilson_interval;
use outlast_report::table::{Cell, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figure 5.
#[derive(Debug)]
pub struct Figure05 {
    /// Where it is measured.
    pub bed: Testbed,
}

/// Below this availability, in percent, the paper sees failures.
const FAILURES_BELOW: u32 = 50;

impl Figure for Figure05 {
    fn name(&self) -> &'static str {
        "figure-5"
    }

    fn title(&self) -> &'static str {
        "Transfers that succeed, against availability"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        sweep::jobs(self.bed, extent, &SERIES)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let bed = self.bed;
        let table = sweep::table(bed, extent, runs, Unit::Share, "_success", |trials| {
            let rate = successes(trials) as f64 / trials.len() as f64;
            Cell::from(rate).tone(if rate < 1.0 { Tone::Bad } else { Tone::Good })
        });
        let rates = |x, trials: &[Record]| {
            let (successes, all) = (successes(trials), trials.len() as u64);
            let (low, high) = wilson_interval(successes, all)?;
            Some(Point::new(x, successes as f64 / all as f64).between(low, high))
        };
        let y = Axis::new("Transfers completed", Unit::Share).range(0.0, 1.0);
        let mut curves = sweep::curves(bed, extent, runs, &SERIES, |_| true, y, rates);
        curves.optimum = None;
        let percents = || sweep::availabilities(extent).iter().copied();
        let held = share(
            sweep::over(bed, runs, Mechanism::Hold, percents()),
            Record::succeeded,
        );
        Part::new("Figure 5 of the paper: transfers that succeed")
            .table(table.titled("Share of transfers that completed"))
            .figure(
                curves.draw(),
                format!(
                    "Transfers that completed {} with content intact, and 95 % Wilson intervals. \
                     Compare figure 5 of the paper, which lacks `hold`.",
                    bed.end()
                ),
            )
            .claims(claims(bed, extent, runs))
            .highlight(Highlight {
                label: "Completed with hold".to_owned(),
                value: held.map_or("–".to_owned(), |held| Unit::Share.show(held.value)),
                note: "at every availability".to_owned(),
                tone: held.map_or(Tone::Plain, |held| {
                    if held.value < 1.0 {
                        Tone::Bad
                    } else {
                        Tone::Good
                    }
                }),
            })
    }
}

fn successes(trials: &[Record]) -> u64 {
    trials.iter().filter(|trial| trial.succeeded()).count() as u64
}

/// The share of transfers that succeeded at a level, over some availabilities.
type Rate<'a> = dyn Fn(Mechanism, Vec<u32>) -> Option<Measured> + 'a;

fn claims(bed: Testbed, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let percents = || sweep::availabilities(extent).iter().copied();
    let all: Vec<u32> = percents().collect();
    let (high, low): (Vec<u32>, Vec<u32>) = percents().partition(|&p| p >= FAILURES_BELOW);
    let rate = |mechanism, percents: Vec<u32>| {
        share(
            sweep::over(bed, runs, mechanism, percents),
            Record::succeeded,
        )
    };
    let mut claims = Vec::new();
    for level in [Mechanism::SmartLink3, Mechanism::SmartLink4] {
        claims.push(always_succeeds(bed, level, &rate, all.clone()));
    }
    // In the lab our own deadline ends the transfers, where the paper waited until TCP gave up.
    if let Testbed::Sim(_) = bed {
        let none = rate(Mechanism::None, vec![10]);
        claims.push(unaided_never_succeeds().judge(none));
    }
    for level in [
        Mechanism::None,
        Mechanism::SmartLink1,
        Mechanism::SmartLink2,
    ] {
        claims.push(succeeds_from_half(bed, level, &rate, high.clone()));
        claims.push(begins_to_fail(bed, level, &rate, low.clone()));
    }
    claims.push(better_than_none(&rate, low));
    claims
}

fn always_succeeds(bed: Testbed, level: Mechanism, rate: &Rate<'_>, percents: Vec<u32>) -> Judged {
    let statement = format!(
        "Level {}: every transfer succeeds at every availability.",
        title(level)
    );
    let all = claim(
        "section 5.3, figure 5",
        statement,
        Unit::Share,
        Published::AtLeast(1.0),
        Tolerance::Exact,
    );
    let all = bed.departing(
        all,
        "a modern sender may take the re-sent old packet for a sign that its timeout was \
         spurious, and go back to waiting; and its retransmissions are rarer (a deadline ends \
         the run here, not TCP).",
    );
    all.judge(rate(level, percents))
}

pub(super) fn unaided_never_succeeds() -> Claim {
    claim(
        "section 5.3",
        "Unaided TCP has no success at 10 % availability.",
        Unit::Share,
        Published::AtMost(0.0),
        Tolerance::Exact,
    )
}

fn succeeds_from_half(
    bed: Testbed,
    level: Mechanism,
    rate: &Rate<'_>,
    percents: Vec<u32>,
) -> Judged {
    let high = claim(
        "figure 5",
        format!(
            "Level {}: the trials succeed at availabilities from 50 %.",
            title(level)
        ),
        Unit::Share,
        Published::AtLeast(1.0),
        Tolerance::Absolute(0.05),
    );
    let high = bed.departing(
        high,
        "the paper waited until TCP gave up; here a deadline ends the run, and a timeout that \
         has grown with every outage may outlast it.",
    );
    high.judge(rate(level, percents))
}

fn begins_to_fail(bed: Testbed, level: Mechanism, rate: &Rate<'_>, percents: Vec<u32>) -> Judged {
    let low = claim(
        "section 5.3",
        format!("Level {}: trials begin to fail below 50 %.", title(level)),
        Unit::Share,
        Published::AtMost(0.99),
        Tolerance::Exact,
    );
    let low = bed.departing(
        low,
        "while it recovers, today's Linux looks at every ACK for what to retransmit, at a repeated \
         one too, so that re-receiving helps more than it did.",
    );
    low.judge(rate(level, percents))
}

/// "Smartlvls 1 and 2 [...] show some improvement".
fn better_than_none(rate: &Rate<'_>, below: Vec<u32>) -> Judged {
    let improvement = claim(
        "section 5.3",
        "Below 50 %, levels 1 and 2 complete no less than unaided TCP.",
        Unit::Share,
        Published::AtLeast(0.0),
        Tolerance::Exact,
    );
    let difference = || {
        let none = rate(Mechanism::None, below.clone())?;
        let one = rate(Mechanism::SmartLink1, below.clone())?;
        let two = rate(Mechanism::SmartLink2, below.clone())?;
        let value = f64::midpoint(one.value, two.value) - none.value;
        Some(Measured {
            value,
            standard_deviation: None,
            count: one.count + two.count,
        })
    };
    improvement.judge(difference())
}
