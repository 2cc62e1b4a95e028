//! From what went wrong to the package's exceptions, which Python code declares.

use outlast_scenario::{Problem, ScenarioError};
use outlast_sweep::output::OutputError;
use outlast_sweep::{BundleError, JournalError, RunError, RunFault, UnbundleError};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::error::Error;
use std::fmt::Write;
use std::str::Utf8Error;

/// Columns of a message.
const WIDTH: usize = 100;

/// `outlast.ScenarioError`, with every problem and its place.
pub(crate) fn of_scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    raise(py, "ScenarioError", &error.render(WIDTH), error.problems())
}

/// The exception for a run whose drawn values do not fit each other.
pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    let problems = match &error.source {
        RunFault::Scenario(error) => error.problems(),
        RunFault::Sim(_) | RunFault::World(_) => &[],
    };
    raise(py, "ScenarioError", &chain(error), problems)
}

/// `outlast.SweepError` for a journal that cannot be used.
pub(crate) fn of_journal(py: Python<'_>, error: &JournalError) -> PyErr {
    let advice = match error {
        JournalError::Foreign { .. } | JournalError::Damaged { .. } => {
            "name another directory with `out`, or begin anew with `fresh=True`"
        }
        JournalError::Busy { .. } => "wait for its end, or name another directory with `out`",
        JournalError::File { .. } => "name another directory with `out`",
    };
    raise(
        py,
        "SweepError",
        &format!("{}; {advice}", chain(error)),
        &[],
    )
}

/// `outlast.SweepError` for tables that cannot be written.
pub(crate) fn of_output(py: Python<'_>, error: &OutputError) -> PyErr {
    match error {
        OutputError::Journal(error) => of_journal(py, error),
        error => raise(py, "SweepError", &chain(error), &[]),
    }
}

/// `outlast.SweepError` for a sweep that cannot be sent.
pub(crate) fn of_bundle(py: Python<'_>, error: &BundleError) -> PyErr {
    raise(py, "SweepError", &chain(error), &[])
}

/// The exception for a sweep that was sent and cannot be used.
pub(crate) fn of_unbundle(py: Python<'_>, error: &UnbundleError) -> PyErr {
    match error {
        UnbundleError::Scenario(error) => of_scenario(py, error),
        error => raise(py, "SweepError", &chain(error), &[]),
    }
}

/// `outlast.SweepError` for what is no line of a journal.
pub(crate) fn of_line(py: Python<'_>, error: &serde_json::Error) -> PyErr {
    let text = format!("a worker has sent something else than a run: {error}");
    raise(py, "SweepError", &text, &[])
}

/// `outlast.SweepError` for what is no text.
pub(crate) fn of_text(py: Python<'_>, error: Utf8Error) -> PyErr {
    let text = format!("a worker has sent something else than a run: {error}");
    raise(py, "SweepError", &text, &[])
}

/// An exception for threads that do not start.
pub(crate) fn of_threads(error: &std::io::Error) -> PyErr {
    PyOSError::new_err(format!("no thread starts: {error}"))
}

/// An exception for results that are no JSON.
pub(crate) fn of_json(error: &serde_json::Error) -> PyErr {
    PyRuntimeError::new_err(format!("not JSON: {error}"))
}

/// An error with its reasons.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut reason = error.source();
    while let Some(error) = reason {
        write!(text, ": {error}").expect("a string takes everything written to it");
        reason = error.source();
    }
    text
}

/// The exception `name` of the package, of `text` and, for scenarios, `problems`.
fn raise(py: Python<'_>, name: &str, text: &str, problems: &[Problem]) -> PyErr {
    let exception = || {
        let class = py.import("outlast._errors")?.getattr(name)?;
        if name != "ScenarioError" {
            return class.call1((text,));
        }
        let problems: PyResult<Vec<_>> = problems.iter().map(|known| problem(py, known)).collect();
        class.call1((text, PyList::new(py, problems?)?))
    };
    exception().map_or_else(|error| error, PyErr::from_value)
}

/// A problem as an `outlast.Problem`.
fn problem<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    let (line, column) = problem.position().unzip();
    fields.set_item("message", problem.to_string())?;
    fields.set_item("file", problem.file())?;
    fields.set_item("line", line)?;
    fields.set_item("column", column)?;
    fields.set_item("value", problem.written())?;
    fields.set_item("hint", problem.label())?;
    fields.set_item("remedy", problem.remedy())?;
    let class = py.import("outlast._errors")?.getattr("Problem")?;
    class.call((), Some(&fields))
}
