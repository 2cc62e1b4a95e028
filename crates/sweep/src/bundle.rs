//! A sweep with every file that it names, to be sent to another machine.

use crate::plan::Plan;
use outlast_link::trace::{Trace, TraceError};
use outlast_scenario::{Document, ScenarioError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A sweep, its scenario and its traces as texts.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Bundle {
    /// The version of the program that made it.
    version: String,
    fingerprint: String,
    author: Part,
    /// The scenario, if it is a file of its own.
    base: Option<Part>,
    traces: Vec<TraceFile>,
}

/// A trace of a bundle.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct TraceFile {
    path: PathBuf,
    text: String,
}

/// A sweep file or scenario file of a bundle.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Part {
    /// What messages call it.
    name: String,
    /// From where relative paths in it count.
    directory: PathBuf,
    text: String,
}

/// Why a sweep cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the trace {} again", path.display())]
pub struct BundleError {
    /// The trace.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Why a sweep that was sent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnbundleError {
    /// It comes from another version, which may simulate otherwise.
    #[error(
        "the sweep comes from Outlast {theirs}, and this is {ours}: install one version everywhere"
    )]
    Version {
        /// The sender's version.
        theirs: String,
        /// This one.
        ours: String,
    },
    /// It does not say here what it says where it comes from.
    #[error("the sweep is not what it was when it was sent: its files were changed meanwhile")]
    Changed,
    /// It cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A trace cannot be read.
    #[error("a trace of the sweep cannot be read")]
    Trace(#[from] TraceError),
}

impl Plan {
    /// The sweep with all its files. `version` is the program's.
    ///
    /// # Errors
    ///
    /// When a trace cannot be read.
    pub fn bundle(&self, version: &str) -> Result<Bundle, BundleError> {
        let trace = |path: PathBuf| match fs::read_to_string(&path) {
            Ok(text) => Ok(TraceFile { path, text }),
            Err(source) => Err(BundleError { path, source }),
        };
        let traces = self.base().trace_paths().into_iter().map(trace);
        let is_one = Arc::ptr_eq(self.base().source(), self.author().source());
        Ok(Bundle {
            version: version.to_owned(),
            fingerprint: self.fingerprint().to_owned(),
            author: Part::of(self.author()),
            base: (!is_one).then(|| Part::of(self.base())),
            traces: traces.collect::<Result<_, _>>()?,
        })
    }

    /// The sweep of a bundle, of which nothing is read from files. Its cells were checked where it
    /// comes from.
    ///
    /// # Errors
    ///
    /// When it comes from another version than `version`, or was changed on its way.
    pub fn unbundle(bundle: &Bundle, version: &str) -> Result<Self, UnbundleError> {
        if bundle.version != version {
            return Err(UnbundleError::Version {
                theirs: bundle.version.clone(),
                ours: version.to_owned(),
            });
        }
        let author = bundle.author.document()?;
        let base = bundle.base.as_ref().map(Part::document).transpose()?;
        for trace in &bundle.traces {
            let parsed = Trace::parse(&trace.text)?;
            let document = base.as_ref().unwrap_or(&author);
            document.remember_trace(trace.path.clone(), &parsed);
        }
        let plan = Self::known(author, base)?;
        match plan.fingerprint() == bundle.fingerprint {
            true => Ok(plan),
            false => Err(UnbundleError::Changed),
        }
    }
}

impl Part {
    fn of(document: &Document) -> Self {
        let source = document.source();
        Self {
            name: source.name.clone(),
            directory: document.directory().to_owned(),
            text: source.text.clone(),
        }
    }

    fn document(&self) -> Result<Document, ScenarioError> {
        Document::parse(&self.text, &self.name, &self.directory)
    }
}
