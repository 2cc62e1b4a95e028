//! Every figure, table and quantitative claim of the five works, each with what reproduces it.
//!
//! An entry is bound to a figure of an experiment, or says why it is not run. Tests hold the entries
//! against the experiments: no figure, table or experiment can be left out silently.

mod brown_singh;
mod caceres_iftode;
mod schuetz;
mod scott_mapp;
mod thesis;

use outlast_experiments::experiment::Experiment;
use std::fmt::{self, Write as _};

/// A published work with all that it shows and claims.
#[derive(Debug)]
pub struct Work {
    /// Authors and year.
    pub cite: &'static str,
    /// Title.
    pub title: &'static str,
    /// The figures that the work numbers: its chapter, or none, and the last number.
    pub figures: &'static [(Option<u32>, u32)],
    /// The tables that the work numbers, likewise.
    pub tables: &'static [(Option<u32>, u32)],
    /// Figures, tables and claims in the order of the work.
    pub entries: &'static [Entry],
}

/// A figure, a table, or a claim with a number in it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it stands in the work, such as "Figure 5" or "Section 4.2".
    pub place: &'static str,
    /// What it shows or claims, with the published numbers.
    pub says: &'static str,
    /// What reproduces it.
    pub bound: Bound,
}

/// What reproduces an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// A figure of an experiment of `outlast papers`.
    Run {
        /// The experiment's name.
        experiment: &'static str,
        /// The figure's name.
        figure: &'static str,
    },
    /// Nothing, for this reason.
    NotRun(&'static str),
}

/// The five works, in the order of their years.
pub const WORKS: [&Work; 5] = [
    &caceres_iftode::WORK,
    &brown_singh::WORK,
    &thesis::WORK,
    &scott_mapp::WORK,
    &schuetz::WORK,
];

/// Figures of experiments that no work shows: Outlast's own, beside the published ones.
pub const BESIDE: [&str; 5] = [
    "figure-hold",
    "figure-stacks",
    "figure-12-today",
    "figure-12-linux-6",
    "senders-of-today",
];

/// Drawings: nothing in them is measured.
const DRAWING: &str = "a drawing: nothing is measured";
/// What the experiment of the work does not measure.
const NOT_MEASURED: &str = "the experiment does not measure it yet";
/// What the work itself takes from elsewhere.
const CITED: &str = "cited from another work";
/// What needs the hardware of then.
const HARDWARE: &str = "processing times of the authors' machines";

const fn run(
    place: &'static str,
    says: &'static str,
    experiment: &'static str,
    figure: &'static str,
) -> Entry {
    let bound = Bound::Run { experiment, figure };
    Entry { place, says, bound }
}

const fn not_run(place: &'static str, says: &'static str, reason: &'static str) -> Entry {
    let bound = Bound::NotRun(reason);
    Entry { place, says, bound }
}

impl Work {
    /// How many entries an experiment reproduces.
    #[must_use]
    pub fn count_run(&self) -> usize {
        let is_run = |entry: &&Entry| matches!(entry.bound, Bound::Run { .. });
        self.entries.iter().filter(is_run).count()
    }
}

impl Bound {
    /// The experiment among `all`, if there is one of that name with a figure of that name.
    #[must_use]
    pub fn resolve(self, all: &[&'static Experiment]) -> Option<&'static Experiment> {
        let Self::Run { experiment, figure } = self else {
            return None;
        };
        let found = outlast_experiments::experiment::named(all, experiment)?;
        let has_it = found.figures.iter().any(|known| known.name() == figure);
        has_it.then_some(found)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { experiment, figure } => write!(f, "{experiment}: {figure}"),
            Self::NotRun(reason) => write!(f, "not run: {reason}"),
        }
    }
}

/// The catalogue as Markdown, for the page beside the pages of results.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    for work in WORKS {
        let Work {
            cite,
            title,
            entries,
            ..
        } = work;
        let _ = write!(
            text,
            "\n### {cite}\n\n*{title}.* {} of {} entries are run.\n\n\
             | place | published | reproduced by |\n|---|---|---|\n",
            work.count_run(),
            entries.len(),
        );
        for Entry { place, says, bound } in *entries {
            let by = match bound {
                Bound::Run { experiment, figure } => {
                    format!("[{experiment}]({experiment}.md), `{figure}`")
                }
                Bound::NotRun(_) => bound.to_string(),
            };
            let _ = writeln!(text, "| {place} | {says} | {by} |");
        }
    }
    text
}
