//! Collects what is wrong with a file while it is read.

use crate::problem::{Problem, Source};
use outlast_link::trace::Trace;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What messages call a scenario file.
pub(crate) const SCENARIO: &str = "scenario file";

/// Collects what is wrong with one file, and with the values that another one puts into it.
pub(crate) struct Problems {
    /// What kind of file it is, as in "scenario file".
    kind: &'static str,
    source: Arc<Source>,
    /// Who puts values into it. Places count through its text first.
    author: Option<Arc<Source>>,
    traces: Arc<Traces>,
    list: RefCell<Vec<Problem>>,
}

/// The traces that were read, by their paths: whoever reads a scenario a thousand times reads them
/// once, and finds them as they were.
#[derive(Debug, Default)]
pub(crate) struct Traces(Mutex<BTreeMap<PathBuf, Trace>>);

impl Traces {
    pub(crate) fn known(&self, path: &Path) -> Option<Trace> {
        self.lock().get(path).cloned()
    }

    pub(crate) fn remember(&self, path: PathBuf, trace: &Trace) {
        let _ = self.lock().insert(path, trace.clone());
    }

    /// Their paths, in order.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.lock().keys().cloned().collect()
    }

    /// All, in the order of their paths.
    pub(crate) fn all(&self) -> Vec<Trace> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Trace>> {
        // Whoever panicked has inserted a trace or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Problems {
    pub(crate) fn new(kind: &'static str, source: Arc<Source>) -> Self {
        Self {
            kind,
            source,
            author: None,
            traces: Arc::default(),
            list: RefCell::default(),
        }
    }

    /// Of a file into which `author` puts values, and whose `traces` may be known.
    pub(crate) fn of_changed(
        source: Arc<Source>,
        author: Arc<Source>,
        traces: Arc<Traces>,
    ) -> Self {
        Self {
            kind: SCENARIO,
            source,
            author: Some(author),
            traces,
            list: RefCell::default(),
        }
    }

    /// What kind of file it is.
    pub(crate) const fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Where the file's own text begins among the places.
    pub(crate) fn start(&self) -> usize {
        self.author.as_ref().map_or(0, |author| author.text.len())
    }

    /// In which text a place lies, and where there.
    pub(crate) fn locate(&self, span: Range<usize>) -> (&Arc<Source>, Range<usize>) {
        let start = self.start();
        match &self.author {
            Some(author) if span.start < start => (author, span),
            _ => {
                let own = |at: usize| at.saturating_sub(start);
                (&self.source, own(span.start)..own(span.end))
            }
        }
    }

    /// What is written at a place.
    pub(crate) fn written(&self, span: Range<usize>) -> &str {
        let (source, span) = self.locate(span);
        source.text.get(span).unwrap_or_default()
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.list.into_inner()
    }

    /// Notes `message` about the text at `span`.
    pub(crate) fn note(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (source, span) = self.locate(span);
        self.push(Problem::new(source, span, message, label, remedy));
    }

    /// Notes `message` about something that is not in the table that begins at `span`.
    pub(crate) fn note_absence(&self, span: Range<usize>, message: String, remedy: String) {
        let place = if span.is_empty() {
            "in this file"
        } else {
            "in this table"
        };
        let (source, span) = self.locate(span);
        self.push(Problem {
            is_absence: true,
            ..Problem::new(source, span, message, place, remedy)
        });
    }

    pub(crate) fn push(&self, problem: Problem) {
        self.list.borrow_mut().push(problem);
    }
}
