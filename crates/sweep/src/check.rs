//! Checks every cell before anything is run, so that a mistake does not come to light after hours.

use crate::plan::{Drawn, Plan};
use outlast_scenario::{Document, Problem, Scenario, ScenarioError, Source};
use outlast_sim::{SimError, Simulation};
use std::ops::Range;
use std::sync::Arc;
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

/// Reads the scenario of every cell of `plan`, and asks the simulator whether it has all that it
/// needs.
///
/// # Errors
/// What is wrong with them, each thing once.
pub(crate) fn check(plan: &Plan) -> Result<(), ScenarioError> {
    let mut findings: Vec<Finding> = Vec::new();
    let draws: &[Drawn] = match plan.samples() {
        [] => &[Drawn::Least],
        _ => &[Drawn::Least, Drawn::Greatest],
    };
    for cell in 0..plan.cells() {
        for &drawn in draws {
            let problems = match plan.scenario_with(cell, drawn) {
                Ok(scenario) => simulable(plan, cell, &scenario),
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

fn simulable(plan: &Plan, cell: u64, scenario: &Scenario) -> Vec<Problem> {
    let Err(error) = Simulation::new(scenario, 0) else {
        return Vec::new();
    };
    let (path, remedy) = match &error {
        SimError::NoSuchMechanism { key, available, .. } => (
            format!("outlast.{key}"),
            format!("there it has {available}"),
        ),
        SimError::Command => (
            "workload.kind".to_owned(),
            "sweep another `workload.kind`, or run this one with `outlast lab`".to_owned(),
        ),
        SimError::NoSuchCongestionControl { .. } => (
            "stack.congestion".to_owned(),
            "leave it out to have the profile's own, or choose another profile".to_owned(),
        ),
    };
    let (source, span) = place(plan, cell, &path);
    vec![Problem::new(
        &source,
        span,
        error.to_string(),
        "cannot be simulated",
        remedy,
    )]
}

/// Where the value of the key at `path` is written: in the sweep, else in the scenario.
fn place(plan: &Plan, cell: u64, path: &str) -> (Arc<Source>, Range<usize>) {
    let values = plan.values(cell);
    let varied = values.iter().find(|(axis, _)| axis.path == path);
    match varied {
        Some((_, value)) => (plan.author().source().clone(), value.at.clone()),
        None => (plan.base().source().clone(), find(plan.base(), path)),
    }
}

/// Where a document has the value of the key at `path`; its beginning if nowhere.
fn find(document: &Document, path: &str) -> Range<usize> {
    fn search(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
        let (first, rest) = path
            .split_once('.')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        let (_, value) = table.iter().find(|(name, _)| name.get_ref() == first)?;
        match (rest, value.get_ref()) {
            (None, _) => Some(value.span()),
            (Some(rest), DeValue::Table(inner)) => search(inner, rest),
            (Some(_), _) => None,
        }
    }
    search(&document.table(), path).unwrap_or(0..0)
}
