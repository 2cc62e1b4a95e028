//! A scenario that was found to be sound.

use crate::error;
use outlast_scenario::Document;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A scenario with the text that it was read from.
#[pyclass(frozen, module = "outlast._native")]
pub(crate) struct Scenario {
    pub(crate) scenario: outlast_scenario::Scenario,
    pub(crate) document: Document,
}

#[pymethods]
impl Scenario {
    /// Reads the scenario file at `path`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        // A scenario tells more of what is wrong than a document.
        let scenario = outlast_scenario::Scenario::load(&path);
        scenario
            .and_then(|scenario| {
                let document = Document::load(&path)?;
                Ok(Self { scenario, document })
            })
            .map_err(|error| error::of_scenario(py, &error))
    }

    /// Reads a scenario from `text`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, name: &str, directory: PathBuf) -> PyResult<Self> {
        let scenario = outlast_scenario::Scenario::parse(text, name, &directory);
        scenario
            .and_then(|scenario| {
                let document = Document::parse(text, name, &directory)?;
                Ok(Self { scenario, document })
            })
            .map_err(|error| error::of_scenario(py, &error))
    }

    /// Its name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    /// How many runs it has.
    #[getter]
    fn repeat(&self) -> u32 {
        self.scenario.run.repeat
    }

    /// The seed of the first run.
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.run.seed
    }

    /// The text of its file.
    #[getter]
    fn text(&self) -> &str {
        &self.document.source().text
    }

    /// What messages call it.
    #[getter]
    fn file(&self) -> &str {
        &self.document.source().name
    }

    /// From where relative paths in it count.
    #[getter]
    fn directory(&self) -> &Path {
        self.document.directory()
    }
}
