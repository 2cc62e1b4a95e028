//! A scenario in virtual time.

use crate::error;
use crate::scenario::Scenario;
use crate::table::{Builder, Table};
use outlast_scenario::ScenarioError;
use outlast_scenario::result::{RunResult, ScenarioResult, World};
use outlast_sim::{SimError, Simulation};
use outlast_sweep::output::{self, Detail};
use outlast_sweep::{Column, Datum, Kind, Run, refusal};
use pyo3::prelude::*;

/// Steps of a simulation between two looks for signals: some tens of milliseconds.
const STEPS: u64 = 50_000;

/// What came of the runs of a scenario.
#[pyclass(frozen, module = "outlast._native")]
pub(crate) struct RunResults {
    result: ScenarioResult,
}

/// Simulates every run of `scenario`, and with `control` each of them without Outlast, too.
///
/// After each run `progress` is called with the number of those done and of all.
#[pyfunction]
#[pyo3(signature = (scenario, control, progress))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    control: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RunResults> {
    let own = &scenario.scenario;
    let plain = own.without_outlast();
    let total = own.run.repeat * if control { 2 } else { 1 };
    let mut result = ScenarioResult {
        kernel: None,
        scenario: own.name.clone(),
        world: World::Sim,
        runs: Vec::new(),
        control: Vec::new(),
    };
    let refused = |error| {
        let problem = refusal(&scenario.document, &error);
        error::of_scenario(py, &ScenarioError::new(vec![problem]))
    };
    for index in 0..own.run.repeat {
        result.runs.push(simulate(py, own, index, refused)?);
        report(progress, &result, total)?;
        if control {
            result.control.push(simulate(py, &plain, index, refused)?);
            report(progress, &result, total)?;
        }
    }
    Ok(RunResults { result })
}

fn report(
    progress: Option<&Bound<'_, PyAny>>,
    result: &ScenarioResult,
    total: u32,
) -> PyResult<()> {
    let done = result.runs.len() + result.control.len();
    match progress {
        Some(progress) => progress.call1((done, total)).map(drop),
        None => Ok(()),
    }
}

/// Simulates one run; a signal may end it.
fn simulate(
    py: Python<'_>,
    scenario: &outlast_scenario::Scenario,
    index: u32,
    refused: impl Fn(SimError) -> PyErr,
) -> PyResult<RunResult> {
    let mut running = Simulation::new(scenario, index).map_err(refused)?.begin();
    while !py.detach(|| running.advance(STEPS)) {
        py.check_signals()?;
    }
    let result = py.detach(|| running.finish().result);
    py.check_signals()?;
    Ok(result)
}

#[pymethods]
impl RunResults {
    /// The results of a document that the command has printed.
    #[staticmethod]
    fn parse(json: &str) -> PyResult<Self> {
        let result = serde_json::from_str(json);
        Ok(Self {
            result: result.map_err(|error| error::of_json(&error))?,
        })
    }

    /// The document that `outlast sim --json` prints.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.result).map_err(|error| error::of_json(&error))
    }

    /// The table `name`: "runs", "outages" or "flows". With `control` it has the runs without Outlast alone, with the
    /// opposite the others alone, and all of them otherwise; a column says which ones.
    #[pyo3(signature = (name, control))]
    fn table(&self, name: &str, control: Option<bool>) -> PyResult<Table> {
        let detail = Detail::ALL.into_iter().find(|detail| detail.name() == name);
        let columns = detail.map_or_else(
            || output::run_columns(Vec::new()),
            |detail| detail.columns(Vec::new()),
        );
        // All are repetitions of one cell.
        let columns = columns.iter().skip(1).cloned();
        let columns: Vec<Column> = columns
            .chain([Column::new("control", Kind::Flag)])
            .collect();
        let mut builder = Builder::new(&columns);
        for (runs, is_control) in [(&self.result.runs, false), (&self.result.control, true)] {
            if control.is_some_and(|wanted| wanted != is_control) {
                continue;
            }
            for (repetition, result) in (0..).zip(runs) {
                let run = Run {
                    cell: 0,
                    repetition,
                };
                let rows = match detail {
                    None => Vec::from([output::run_row(run, &[], result)]),
                    Some(detail) => detail.rows(run, &[], result),
                };
                for mut row in rows {
                    row.push(Datum::Flag(is_control));
                    builder.push(&row[1..])?;
                }
            }
        }
        builder.finish()
    }
}
