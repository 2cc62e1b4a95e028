//! The paper's channel with the stacks that came later.

use super::sweep;
use super::testbed::Testbed;
use super::{figure_05, figure_06, figure_07};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, share, title};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Judged, Measured};
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::{Mechanism, Profile};

/// Transfers with each stack.
#[derive(Debug)]
pub struct FigureStacks;

/// The stack that is taken for the paper's, and the later ones.
const STACKS: [Profile; 3] = [Profile::Linux22, Profile::Linux24, Profile::Linux6];

/// What is compared.
const SELECTED: [Mechanism; 3] = [Mechanism::None, Mechanism::SmartLink3, Mechanism::Hold];

impl Figure for FigureStacks {
    fn name(&self) -> &'static str {
        "figure-stacks"
    }

    fn title(&self) -> &'static str {
        "Transfers with linux-2.2, linux-2.4 and linux-6"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let beds = STACKS.map(Testbed::Sim);
        beds.into_iter()
            .flat_map(|bed| sweep::jobs(bed, extent, &SELECTED))
            .collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let success = table(extent, runs, Unit::Share, "_success", |trials| {
            share(trials, Record::succeeded).map_or(Cell::missing(), |rate| {
                let tone = if rate.value < 1.0 {
                    Tone::Bad
                } else {
                    Tone::Good
                };
                Cell::from(rate.value).tone(tone)
            })
        });
        let factors = table(extent, runs, Unit::Factor, "_times_ideal", |trials| match (
            trials,
            factor(trials),
        ) {
            ([], _) => Cell::missing(),
            (_, None) => Cell::from("failed").tone(Tone::Bad),
            (_, Some(factor)) => Cell::from(factor.value),
        });
        Part::new("The same channel with later stacks")
            .table(success.titled("Share of transfers that completed, by stack"))
            .table(factors.titled("Duration as a multiple of the optimum, by stack"))
            .figure(
                curves(extent, runs).draw(),
                "Mean duration of the unaided transfers that completed, as a multiple of the \
                 optimum, by stack. The paper has the first of them.",
            )
            .claims(claims(extent, runs))
    }
}

fn factor(trials: &[Record]) -> Option<Measured> {
    mean(trials.iter().filter_map(Record::times_ideal))
}

fn table(
    extent: Extent,
    runs: &Runs,
    unit: Unit,
    suffix: &str,
    show: impl Fn(&[Record]) -> Cell,
) -> Table {
    let columns = || {
        let of = |mechanism| STACKS.map(|stack| (mechanism, stack));
        SELECTED.into_iter().flat_map(of)
    };
    let mut heads = vec![Column::quantity(
        "availability",
        "Availability",
        Unit::Share,
    )];
    heads.extend(columns().map(|(mechanism, stack)| {
        let key = format!("{mechanism}_{stack}{suffix}").replace(['-', '.'], "_");
        Column::quantity(key, format!("{}, {stack}", title(mechanism)), unit)
    }));
    let mut table = Table::new(heads);
    for &percent in sweep::availabilities(extent) {
        let mut row = vec![Cell::from(f64::from(percent) / 100.0)];
        row.extend(columns().map(|(mechanism, stack)| {
            show(sweep::of(Testbed::Sim(stack), runs, mechanism, percent))
        }));
        table.push(row);
    }
    table
}

fn curves(extent: Extent, runs: &Runs) -> Curves {
    let series = STACKS.map(|stack| Series {
        name: stack.to_string(),
        is_control: false,
        points: sweep::availabilities(extent)
            .iter()
            .filter_map(|&percent| {
                let trials = sweep::of(Testbed::Sim(stack), runs, Mechanism::None, percent);
                let x = f64::from(percent) / 100.0;
                // Where nothing succeeded the line is interrupted.
                let y = factor(trials).map_or(f64::NAN, |factor| factor.value);
                (!trials.is_empty()).then_some(Point::new(x, y))
            })
            .collect(),
    });
    Curves {
        x: Axis::new("Availability of the link", Unit::Share),
        y: Axis::new("Duration, as a multiple of the optimum", Unit::Factor).logarithmic(),
        series: series.to_vec(),
        optimum: None,
    }
}

/// What the paper says of the stack, asked of the later ones.
fn claims(extent: Extent, runs: &Runs) -> Vec<Judged> {
    let mut claims = Vec::new();
    for stack in [Profile::Linux24, Profile::Linux6] {
        let bed = Testbed::Sim(stack);
        let of = |claim: Claim| Claim {
            statement: format!("{stack}: {}", claim.statement).into(),
            ..claim
        };
        let unaided = figure_05::unaided_never_succeeds();
        let rate = share(sweep::of(bed, runs, Mechanism::None, 10), Record::succeeded);
        claims.push(of(unaided).judge(rate));
        let all = sweep::availabilities(extent).iter().copied();
        let near = figure_06::stays_near(Mechanism::SmartLink3);
        let three = figure_06::factor(bed, runs, Mechanism::SmartLink3, all);
        claims.push(of(near).judge(three));
        for (percent, claim) in figure_07::degraded() {
            let measured = factor(sweep::of(bed, runs, Mechanism::None, percent));
            let claim = bed.departing_in_sim(claim, figure_07::TIMEOUT);
            claims.push(of(claim).judge(measured));
        }
    }
    claims
}
