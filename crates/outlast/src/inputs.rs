//! Scenario and sweep files whose relative paths may count from elsewhere: those of another program's texts.

use outlast_scenario::{Document, Scenario, ScenarioError};
use outlast_sweep::{Check, Plan};
use std::fs;
use std::path::{Path, PathBuf};

/// A file, and where relative paths in it count from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) file: &'a Path,
    /// The directory that was given in place of the file's own.
    pub(crate) directory: Option<&'a PathBuf>,
}

impl Input<'_> {
    pub(crate) fn scenario(self) -> Result<Scenario, ScenarioError> {
        match self.text() {
            Some((text, name, directory)) => Scenario::parse(&text, &name, directory),
            None => Scenario::load(self.file),
        }
    }

    pub(crate) fn document(self) -> Result<Document, ScenarioError> {
        match self.text() {
            Some((text, name, directory)) => Document::parse(&text, &name, directory),
            None => Document::load(self.file),
        }
    }

    pub(crate) fn plan(self, check: Check<'_>) -> Result<Plan, ScenarioError> {
        match self.text() {
            Some((text, name, directory)) => Plan::parse_for(&text, &name, directory, check),
            None => Plan::load_for(self.file, check),
        }
    }

    /// The text, its name and its directory, if the directory is not the file's own. A file that cannot be read is
    /// left to the readers of files, which say why.
    fn text(&self) -> Option<(String, String, &Path)> {
        let directory = self.directory?;
        let text = fs::read_to_string(self.file).ok()?;
        Some((text, self.file.display().to_string(), directory))
    }
}
