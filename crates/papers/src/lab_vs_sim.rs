//! The simulator's profile `linux-6` beside the kernel: the same scenario files in both worlds.
//!
//! Scenarios and tolerances were chosen before anything was run, and are those of the claim; what
//! is beyond them is explained in `docs/model-fidelity.md`.

pub mod comparison;
pub mod scenarios;

use crate::experiment::{Experiment, Extent, Figure, Part};
use crate::job::Job;
use crate::present::claim;
use crate::record::Runs;
use comparison::{COMPLETION, Comparison, Pair, RESUME};
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Strip, StripRow};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::result::World;
use scenarios::{Case, on_or_off};

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "lab-vs-sim",
    title: "The simulator beside the kernel",
    source: "an experiment of Outlast",
    measures: "The same scenarios in the lab and in the simulator with profile linux-6: completion, \
               resumption, timeouts",
    method,
    figures: &[&Beside],
};

/// Scenarios with equal timeouts, of those that are compared, at least.
const EQUAL_TIMEOUTS: f64 = 14.0 / 16.0;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "A transfer of 6 MB at {} Mbit/s and 40 ms round trip, with room for {} packets at the \
             link, is cut off after 3 s. Each scenario file is carried out once in the simulator, \
             which always says the same, and {} times in the lab; compared is the middle of the \
             lab's runs, and what lies between the least and the largest of them is shown.",
            scenarios::RATE_MBIT_PER_S,
            scenarios::QUEUE,
            scenarios::repeats(extent),
        ),
        format!(
            "Completion agrees if it is off by no more than {} of the lab's, resumption if it is \
             off by no more than a round trip or {} of it, timeouts if their number is the same. \
             The kernel's timer wheel rounds long timeouts up, by how much depends on where it \
             stands: the files say where it stands when the first byte is sent, a different place \
             in each, and the lab waits for it.",
            Unit::Share.show_exact(COMPLETION),
            Unit::Share.show_exact(RESUME),
        ),
    ]
}

/// The comparison as one figure.
#[derive(Debug)]
pub struct Beside;

impl Figure for Beside {
    fn name(&self) -> &'static str {
        "beside"
    }

    fn title(&self) -> &'static str {
        "Completion, resumption and timeouts in both worlds"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        scenarios::jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cases = scenarios::cases(extent);
        let compared: Vec<_> = cases
            .iter()
            .map(|case| (case, Comparison::of(case, runs)))
            .collect();
        let known: Vec<_> = compared.iter().filter_map(|(_, both)| *both).collect();
        let all = share(&known, |both| {
            both.completion_agrees() && both.resume_agrees() && both.timeouts_agree()
        });
        Part::new("Every scenario in both worlds")
            .table(table(&compared))
            .figure(
                strip(&cases, runs).draw(),
                "Every mark is one run; the simulator's says what all of its runs would.",
            )
            .claims(claims(&known))
            .highlight(Highlight {
                label: "Agree in everything".to_owned(),
                value: all.map_or("–".to_owned(), |all| Unit::Share.show(all.value)),
                note: "of the scenarios".to_owned(),
                tone: Tone::Plain,
            })
    }
}

fn table(compared: &[(&Case, Option<Comparison>)]) -> Table {
    let mut table = Table::new([
        Column::text("congestion", "Congestion"),
        Column::text("sack", "SACK"),
        Column::text("direction", "Direction"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
        Column::text("hold", "hold"),
        Column::quantity("completion_lab_s", "Done, lab", Unit::Seconds),
        Column::text("completion_spread", "spread"),
        Column::quantity("completion_sim_s", "sim", Unit::Seconds),
        Column::quantity("completion_off", "off", Unit::Share),
        Column::quantity("resume_lab_s", "Resumes, lab", Unit::Seconds),
        Column::text("resume_spread", "spread"),
        Column::quantity("resume_sim_s", "sim", Unit::Seconds),
        Column::text("timeouts_lab", "Timeouts, lab"),
        Column::quantity("timeouts_sim", "sim", Unit::Count),
        Column::text("drops_lab", "Queue drops, lab"),
        Column::quantity("drops_sim", "sim", Unit::Count),
        Column::text("agrees", "Agrees"),
    ])
    .titled("Lab (middle and spread) and simulator");
    for (case, both) in compared {
        let mut row = vec![
            Cell::from(case.congestion.name()),
            Cell::from(on_or_off(case.sack)),
            Cell::from(case.direction.name()),
            Cell::from(case.outage.as_secs_f64()),
            Cell::from(if case.hold { "both ends" } else { "nowhere" }),
        ];
        row.extend(both.map_or_else(|| vec![Cell::missing(); 12], |both| cells(&both)));
        table.push(row);
    }
    table
}

fn cells(both: &Comparison) -> Vec<Cell> {
    let Comparison {
        completion,
        resume,
        timeouts,
        queue_drops,
    } = *both;
    let tone = |agrees| if agrees { Tone::Plain } else { Tone::Warning };
    let seconds = |Pair { spread, .. }: Pair| {
        let (low, high) = spread;
        let show = |value| Unit::Seconds.show(value);
        Cell::from(format!("{}–{}", show(low), show(high)))
    };
    let counts = |Pair { lab, spread, .. }: Pair| {
        let (low, high) = spread;
        Cell::from(if low == high {
            format!("{lab}")
        } else {
            format!("{lab} ({low}–{high})")
        })
    };
    vec![
        Cell::from(completion.lab),
        seconds(completion),
        Cell::from(completion.sim),
        Cell::from(completion.relative()).tone(tone(both.completion_agrees())),
        Cell::from(resume.lab),
        seconds(resume),
        Cell::from(resume.sim).tone(tone(both.resume_agrees())),
        counts(timeouts),
        Cell::from(timeouts.sim).tone(tone(both.timeouts_agree())),
        counts(queue_drops),
        Cell::from(queue_drops.sim),
        verdict(both),
    ]
}

fn verdict(both: &Comparison) -> Cell {
    let beyond: Vec<_> = [
        ("completion", both.completion_agrees()),
        ("resumption", both.resume_agrees()),
        ("timeouts", both.timeouts_agree()),
    ]
    .into_iter()
    .filter_map(|(what, agrees)| (!agrees).then_some(what))
    .collect();
    match beyond[..] {
        [] => Cell::from("yes").tone(Tone::Good),
        _ => Cell::from(format!("not in {}", beyond.join(", "))).tone(Tone::Warning),
    }
}

fn strip(cases: &[Case], runs: &Runs) -> Strip {
    let worlds = [World::Lab, World::Sim];
    let rows = cases.iter().map(|case| StripRow {
        group: None,
        label: format!("{}, {}", case.group(), case.label()),
        samples: worlds
            .iter()
            .map(|&world| {
                let records = runs.of(&case.name(world));
                records.iter().map(crate::hold_matrix::resume).collect()
            })
            .collect(),
    });
    Strip {
        axis: Axis::new("Time from link-up to new bytes", Unit::Seconds).logarithmic(),
        variants: vec![
            ("the lab, on this kernel".to_owned(), true),
            ("the simulator, profile linux-6".to_owned(), false),
        ],
        rows: rows.collect(),
        limit: None,
    }
}

fn share(known: &[Comparison], holds: impl Fn(&Comparison) -> bool) -> Option<Measured> {
    (!known.is_empty()).then(|| Measured {
        value: known.iter().filter(|both| holds(both)).count() as f64 / known.len() as f64,
        standard_deviation: None,
        count: known.len(),
    })
}

fn claims(known: &[Comparison]) -> Vec<Judged> {
    let own = |statement: &'static str, unit, published| {
        claim(
            "Outlast",
            "lab-vs-sim",
            statement.into(),
            unit,
            published,
            Tolerance::Exact,
        )
    };
    let compared = own(
        "Scenarios are compared, with outages of 0.2 to 90 s.",
        Unit::Count,
        Published::AtLeast(16.0),
    );
    let completion = own(
        "The completion time is that of the lab to 5 % (share of scenarios).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let resume = own(
        "The resume time is that of the lab to a round trip or 5 % (share of scenarios).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let timeouts = own(
        "There are as many timeouts as in the lab (share of scenarios; 14 of 16).",
        Unit::Share,
        Published::AtLeast(EQUAL_TIMEOUTS),
    );
    let count = (!known.is_empty()).then_some(Measured {
        value: known.len() as f64,
        standard_deviation: None,
        count: known.len(),
    });
    vec![
        compared.judge(count),
        completion.judge(share(known, Comparison::completion_agrees)),
        resume.judge(share(known, Comparison::resume_agrees)),
        timeouts.judge(share(known, Comparison::timeouts_agree)),
    ]
}
