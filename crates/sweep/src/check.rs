//! Checks every cell before anything is run, so that a mistake does not come to light after hours.

use crate::axis::Axis;
use crate::plan::{Drawn, Plan};
use crate::runner::{Check, Refusal};
use outlast_scenario::{Document, Problem, Scenario, ScenarioError, Source};
use outlast_sim::{SimError, Simulation};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// More would hide the first ones.
const MOST_PROBLEMS: usize = 20;

/// Something that is wrong, and in how many cells.
struct Finding {
    problem: Problem,
    /// The first of them.
    first: u64,
    /// The latest of them.
    latest: u64,
    cells: u64,
}

/// Reads the scenario of every cell of `plan`, and asks `world` whether it has all that it needs.
///
/// # Errors
/// What is wrong with them, each thing once.
pub(crate) fn check(plan: &Plan, world: Check<'_>) -> Result<(), ScenarioError> {
    let mut findings: Vec<Finding> = Vec::new();
    let draws: &[Drawn] = match plan.samples() {
        [] => &[Drawn::Least],
        _ => &[Drawn::Least, Drawn::Greatest],
    };
    for cell in 0..plan.cells() {
        for &drawn in draws {
            let problems = match plan.scenario_with(cell, drawn) {
                Ok(scenario) => match world(&scenario) {
                    Ok(()) => Vec::new(),
                    Err(refusal) => vec![located(plan, cell, &refusal)],
                },
                Err(error) => error.problems().to_vec(),
            };
            for problem in problems {
                note(&mut findings, problem, cell);
            }
        }
        if findings.len() >= MOST_PROBLEMS {
            break;
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    findings.truncate(MOST_PROBLEMS);
    let problems = findings.into_iter().map(|finding| finding.told(plan));
    Err(ScenarioError::new(problems.collect()))
}

fn note(findings: &mut Vec<Finding>, problem: Problem, cell: u64) {
    let is_same = |finding: &&mut Finding| {
        finding.problem.location() == problem.location()
            && finding.problem.to_string() == problem.to_string()
    };
    match findings.iter_mut().find(is_same) {
        Some(finding) => {
            finding.cells += u64::from(finding.latest != cell);
            finding.latest = cell;
        }
        None => findings.push(Finding {
            problem,
            first: cell,
            latest: cell,
            cells: 1,
        }),
    }
}

impl Finding {
    /// The problem, with the cells that have it unless all have.
    fn told(self, plan: &Plan) -> Problem {
        let all = plan.cells();
        if self.cells == all {
            return self.problem;
        }
        let first = plan.describe_cell(self.first).join(", ");
        let number = self.first + 1;
        let note = match self.cells {
            1 => format!("\nin cell {number} of {all}: {first}"),
            cells => format!("\nin {cells} of {all} cells, the first of them {number}: {first}"),
        };
        self.problem.with_note(&note)
    }
}

/// Asks the simulator whether it has all that a scenario needs.
///
/// # Errors
/// The lack, as a refusal.
pub fn simulable(scenario: &Scenario) -> Result<(), Refusal> {
    let simulation = Simulation::new(scenario, 0);
    simulation.map(drop).map_err(|error| refused(&error))
}

/// The refusal of a cell's scenario, shown where it asks for what is lacking.
fn located(plan: &Plan, cell: u64, refusal: &Refusal) -> Problem {
    let (source, span) = place(plan, cell, &refusal.keys);
    problem(refusal, &source, span)
}

/// What the simulator lacks of the scenario in `document`, with the place where that is asked for.
#[must_use]
pub fn refusal(document: &Document, error: &SimError) -> Problem {
    let refusal = refused(error);
    let top = document.table();
    let span = refusal.keys.iter().find_map(|path| find(&top, path));
    problem(&refusal, document.source(), span.unwrap_or_default())
}

fn problem(refusal: &Refusal, source: &Arc<Source>, span: Range<usize>) -> Problem {
    let Refusal {
        message,
        label,
        remedy,
        ..
    } = refusal.clone();
    Problem::new(source, span, message, label, remedy)
}

fn refused(error: &SimError) -> Refusal {
    let remedy = match error {
        SimError::NoSuchMechanism { available, .. } => format!("there it has {available}"),
        SimError::Command => {
            "choose another `workload.kind`, or run this one with `outlast lab`".to_owned()
        }
        SimError::NoSuchCongestionControl { .. } => {
            "leave it out to have the profile's own, or choose another profile".to_owned()
        }
    };
    Refusal {
        message: error.to_string(),
        keys: keys_of(error).to_vec(),
        label: "cannot be simulated",
        remedy,
    }
}

/// The keys of which one asks for what the simulator lacks.
fn keys_of(error: &SimError) -> &[&'static str] {
    match error {
        SimError::NoSuchMechanism { key, .. } => std::slice::from_ref(key),
        SimError::Command => &["workload.kind"],
        SimError::NoSuchCongestionControl { .. } => &[
            "stack.congestion",
            "flows.congestion",
            "stack.profile",
            "flows.profile",
        ],
    }
}

/// Where the value of the first of these keys is written that is: in the sweep, else in the
/// scenario. Of a list of tables any will do.
fn place(plan: &Plan, cell: u64, paths: &[&str]) -> (Arc<Source>, Range<usize>) {
    let (values, top) = (plan.values(cell), plan.base().table());
    let is_at = |axis: &Axis, path: &str| {
        let words = axis.path.split('.');
        let words = words.filter(|word| word.parse::<usize>().is_err());
        words.eq(path.split('.'))
    };
    let place = |path: &&str| {
        let varied = values.iter().find(|(axis, _)| is_at(axis, path));
        varied
            .map(|(_, value)| (plan.author().source().clone(), value.at.clone()))
            .or_else(|| Some((plan.base().source().clone(), find(&top, path)?)))
    };
    let somewhere = || (plan.base().source().clone(), 0..0);
    paths.iter().find_map(place).unwrap_or_else(somewhere)
}

/// Where a table has the value of the key at `path`.
fn find(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let Some((first, rest)) = path.split_once('.') else {
        return entry(table, path).map(Spanned::span);
    };
    match entry(table, first)?.get_ref() {
        DeValue::Table(inner) => find(inner, rest),
        DeValue::Array(items) => {
            let mut tables = items.iter().filter_map(|item| item.get_ref().as_table());
            tables.find_map(|inner| find(inner, rest))
        }
        _ => None,
    }
}

fn entry<'t>(table: &'t DeTable<'t>, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
    let mut entries = table.iter();
    entries.find_map(|(name, value)| (name.get_ref() == key).then_some(value))
}
