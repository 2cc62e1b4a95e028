//! The simulator's profile `linux-6` beside the kernel: the same scenario files in both worlds.
//!
//! Scenarios and tolerances were chosen before anything was run, and are those of the claim; what
//! is beyond them is explained in `docs/model-fidelity.md`.

pub mod comparison;
pub mod scenarios;

use comparison::{COMPLETION, Comparison, RESUME};
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::own_claim;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published};
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
const EQUAL_TIMEOUTS: f64 = 7.0 / 8.0;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "A transfer of 6 MB at {} Mbit/s and 40 ms round trip, with room for {} packets at the \
             link, is cut off after 3 s. Each scenario file is carried out {} times in the lab and \
             {} times in the simulator, there each time from another moment of a millisecond, \
             which decides how timestamps round, and with hosts that take {} µs for a packet, as the \
             lab's do; compared are the middles, and the least and the \
             largest of each are shown.",
            scenarios::RATE_MBIT_PER_S,
            scenarios::QUEUE,
            scenarios::repeats(extent),
            scenarios::SIM_REPEATS,
            scenarios::HOST_LATENCY.as_micros(),
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
        "The kernel is not always of one mind: the last two columns say in what the lab's own runs \
         differ by more than that, and whether the simulator lies between the least and the \
         largest of them, each widened by the same tolerance. They do not change the judgement of \
         the column before."
            .to_owned(),
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
            .figure(strip(&cases, runs).draw(), "Every mark is one run.")
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
        Column::text("completion_sim_spread", "spread"),
        Column::quantity("completion_off", "off", Unit::Share),
        Column::quantity("resume_lab_s", "Resumes, lab", Unit::Seconds),
        Column::text("resume_spread", "spread"),
        Column::quantity("resume_sim_s", "sim", Unit::Seconds),
        Column::text("resume_sim_spread", "spread"),
        Column::text("timeouts_lab", "Timeouts, lab"),
        Column::text("timeouts_sim", "sim"),
        Column::text("drops_lab", "Queue drops, lab"),
        Column::text("drops_sim", "sim"),
        Column::text("agrees", "Agrees"),
        Column::text("lab_itself", "The lab with itself"),
        Column::text("within", "Within the lab's runs"),
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
        row.extend(both.map_or_else(|| vec![Cell::missing(); 16], |both| cells(&both)));
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
    let seconds = |(low, high)| {
        let show = |value| Unit::Seconds.show(value);
        Cell::from(format!("{}–{}", show(low), show(high)))
    };
    let counts = |middle: f64, (low, high): (f64, f64)| {
        Cell::from(if low == high {
            format!("{middle}")
        } else {
            format!("{middle} ({low}–{high})")
        })
    };
    vec![
        Cell::from(completion.lab),
        seconds(completion.lab_spread),
        Cell::from(completion.sim),
        seconds(completion.sim_spread),
        Cell::from(completion.relative()).tone(tone(both.completion_agrees())),
        Cell::from(resume.lab),
        seconds(resume.lab_spread),
        Cell::from(resume.sim).tone(tone(both.resume_agrees())),
        seconds(resume.sim_spread),
        counts(timeouts.lab, timeouts.lab_spread),
        counts(timeouts.sim, timeouts.sim_spread).tone(tone(both.timeouts_agree())),
        counts(queue_drops.lab, queue_drops.lab_spread),
        counts(queue_drops.sim, queue_drops.sim_spread),
        verdict(both),
        named("agrees", "differs in", &both.lab_disagrees_in()),
        named("yes", "not in", &both.outside_in()),
    ]
}

/// `good`, or what follows `bad`.
fn named(good: &str, bad: &str, what: &[&str]) -> Cell {
    match what {
        [] => Cell::from(good).tone(Tone::Good),
        _ => Cell::from(format!("{bad} {}", what.join(", "))).tone(Tone::Warning),
    }
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
    named("yes", "not in", &beyond)
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
    let own = |statement: &'static str, unit, published| Claim {
        departure: Some(
            "Without SACK the kernel's own runs end differently where an outage falls into the \
             repair of many losses, and HyStart has two modes: see docs/model-fidelity.md."
                .into(),
        ),
        ..own_claim("lab-vs-sim", statement, unit, published)
    };
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
        "There are as many timeouts as in the lab (share of scenarios; seven of eight).",
        Unit::Share,
        Published::AtLeast(EQUAL_TIMEOUTS),
    );
    let settled: Vec<_> = known
        .iter()
        .filter(|both| both.lab_disagrees_in().is_empty())
        .copied()
        .collect();
    let where_settled = own(
        "Where the lab's own runs agree, completion and resumption are theirs (share of scenarios).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    let within = own(
        "Everything lies within the lab's own runs, widened by the tolerance (share of scenarios).",
        Unit::Share,
        Published::AtLeast(1.0),
    );
    vec![
        completion.judge(share(known, Comparison::completion_agrees)),
        resume.judge(share(known, Comparison::resume_agrees)),
        timeouts.judge(share(known, Comparison::timeouts_agree)),
        where_settled.judge(share(&settled, |both| {
            both.completion_agrees() && both.resume_agrees()
        })),
        within.judge(share(known, |both| both.outside_in().is_empty())),
    ]
}
