//! What the machine lacks, what does not work without it, and what would help: for the log and the status.

use outlast_linux::lack::Lack;
use serde::{Deserialize, Serialize};

/// Something that does not work here. The form only grows.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Lacking {
    /// What does not work.
    pub(super) without: String,
    /// What is missing.
    pub(super) what: String,
    /// What to do.
    pub(super) remedy: String,
}

impl Lacking {
    pub(super) fn of(without: &str, Lack { what, remedy }: Lack) -> Self {
        Self {
            without: without.to_owned(),
            what,
            remedy: remedy.to_owned(),
        }
    }

    pub(super) fn warn(&self) {
        tracing::warn!("{}", self.to_text());
    }

    pub(super) fn to_text(&self) -> String {
        let Self {
            without,
            what,
            remedy,
        } = self;
        format!("{without}: {what}; {remedy}")
    }
}
